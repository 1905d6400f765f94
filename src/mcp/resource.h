// What a client may read besides calling tools.
#ifndef HONE_MCP_RESOURCE_H
#define HONE_MCP_RESOURCE_H

#include <functional>
#include <string>

#include "base/error.h"

namespace hone::mcp {

struct Resource {
  std::string uri, name, title, description;
  std::string mime = "text/markdown";
  std::function<Result<std::string>()> read;
};

}  // namespace hone::mcp

#endif
