// The texts of a run that a client may read: the assignment, the brief of the turn, reports, manuals and skills.
#ifndef HONE_MCP_RESOURCES_H
#define HONE_MCP_RESOURCES_H

#include <vector>

#include "mcp/resource.h"
#include "mcp/workplace.h"

namespace hone::mcp {

std::vector<Resource> make_resources(const Workplace& place);

}  // namespace hone::mcp

#endif
