#include "mcp/tools.h"

namespace hone::mcp {

using nlohmann::json;

json object_schema(json members, std::vector<std::string> required) {
  members["full"] = nullable("string", "file with the whole answer");
  members["cut"] = {{"type", "boolean"}, {"description", "texts and lists were shortened; the whole is in `full`"}};
  members["error"] = {{"type", "object"}, {"description", "of a call that failed: kind, message, hint, place"}};
  json out = {{"type", "object"}, {"properties", std::move(members)}};
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

json input_schema(json members, std::vector<std::string> required) {
  json out = {{"type", "object"}, {"properties", std::move(members)}, {"additionalProperties", false}};
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

json text_schema(const std::string& description) { return {{"type", "string"}, {"description", description}}; }

json list_schema(json elements, const std::string& description) {
  return {{"type", "array"}, {"items", std::move(elements)}, {"description", description}};
}

json nullable(const std::string& type, const std::string& description) {
  return {{"type", json::array({type, "null"})}, {"description", description}};
}

json subject_members(const Workplace& place, const std::string& what) {
  json members = {{"candidate", {{"type", "string"}, {"minLength", 1}, {"description", what}}},
                  {"workloads", list_schema({{"type", "string"}, {"minLength", 1}}, "only these workloads, by id; left out: all. A part of them has no score")}};
  if (!place.run) members["task"] = text_schema("the task, by name or folder; needed where the candidate's path does not tell it");
  return members;
}

json picked(const json& from, const std::vector<const char*>& keys) {
  json out = json::object();
  for (const char* key : keys)
    if (const auto found = from.find(key); found != from.end()) out[key] = *found;
  return out;
}

void add_subject(std::vector<std::string>& line, const json& arguments) {
  if (const auto ids = arguments.find("workloads"); ids != arguments.end())
    for (const json& id : *ids) line.insert(line.end(), {"--workload", id.get<std::string>()});
  line.insert(line.end(), {"--", arguments.at("candidate").get<std::string>()});
}

std::vector<Tool> make_tools(const Place& place) {
  std::vector<Tool> all = measuring_tools(place);
  for (std::vector<Tool> part : {looking_tools(place), record_tools(place)})
    for (Tool& tool : part) all.push_back(std::move(tool));
  return all;
}

std::string instructions(const Workplace& place) {
  std::string text =
      "Hone judges compute kernels: it compiles a candidate, checks its results on secret inputs, and times it against the baseline in "
      "interleaved pairs. Only what `bench` measured counts. ";
  if (place.run)
    text += fmt::format(
        "You work in run {} of task {}. Read PROMPT.md (resource hone://run/prompt, or {}) first. Write a candidate in candidates/{}/scratch/<name>/, "
        "judge it with `bench`, look at failures with `compile` and `inspect`, see earlier experiments with `ledger`, keep what passed with `frontier`, and leave "
        "what you learnt with `note`. If your client ends tool calls after a fixed time, use `bench_submit` and `bench_poll`.",
        place.run->manifest.name, place.run->manifest.task, (place.run->root / "PROMPT.md").string(), place.run->manifest.task);
  else text += "No run is here: `bench` judges a candidate of a task that you name; `hone init` makes a run, which keeps a record.";
  return text;
}

}  // namespace hone::mcp
