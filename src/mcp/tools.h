// The tools, as a table: what runs them is the verbs of this program and the run's own record.
#ifndef HONE_MCP_TOOLS_H
#define HONE_MCP_TOOLS_H

#include <memory>
#include <string>
#include <vector>

#include "mcp/tool.h"
#include "mcp/workplace.h"

namespace hone::mcp {

using Place = std::shared_ptr<const Workplace>;

// Those that can work at this place: what needs a run is there in a run only, what needs a verb only when the program has it.
std::vector<Tool> make_tools(const Place& place);
// What a model should know before it uses them.
std::string instructions(const Workplace& place);

// Parts of the table.
std::vector<Tool> measuring_tools(const Place& place);   // bench, bench_submit, bench_poll
std::vector<Tool> looking_tools(const Place& place);     // compile, inspect, profile, sanitize, and check, sim where they are verbs
std::vector<Tool> record_tools(const Place& place);      // status, task, frontier, ledger, note

// Schemas. An object's `members` are {name: schema}.
nlohmann::json object_schema(nlohmann::json members, std::vector<std::string> required = {});
nlohmann::json input_schema(nlohmann::json members, std::vector<std::string> required = {});   // nothing else is taken
nlohmann::json text_schema(const std::string& description);
nlohmann::json list_schema(nlohmann::json elements, const std::string& description);
nlohmann::json nullable(const std::string& type, const std::string& description);
// {candidate, workloads, and outside a run task}.
nlohmann::json subject_members(const Workplace& place, const std::string& what);

// Members of `from` that are there.
nlohmann::json picked(const nlohmann::json& from, const std::vector<const char*>& keys);
// --workload of the arguments, then `--` and the candidate.
void add_subject(std::vector<std::string>& line, const nlohmann::json& arguments);

}  // namespace hone::mcp

#endif
