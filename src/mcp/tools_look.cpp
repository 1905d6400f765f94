#include "inspect/inspect.h"
#include "mcp/tools.h"
#include "profile/profile.h"
#include "profile/sanitize.h"

namespace hone::mcp {
namespace {

using nlohmann::json;

constexpr std::size_t kShownListing = 2500;

// Errors of a report once each, as the terminal shows them.
std::string errors_text(const json& report) {
  std::string text;
  for (const auto& [error, workloads] : compile_errors(report)) {
    Error shown = error;
    shown.notes.push_back(fmt::format("for workload{} {}", workloads.size() == 1 ? "" : "s", fmt::join(workloads, ", ")));
    text += to_text(shown) + "\n";
  }
  return text;
}

// What a compile or inspect report says of modules, without commands, hashes and listings.
json facts_of(const json& report) {
  json facts = picked(report, {"candidate", "task", "architecture", "failed", "skipped"});
  facts["errors"] = json::array();
  for (const auto& [error, workloads] : compile_errors(report)) {
    json each = error;
    each["workloads"] = workloads;
    facts["errors"].push_back(std::move(each));
  }
  facts["modules"] = json::array();
  for (const json& module : report.value("modules", json::array())) {
    json shown = picked(module, {"compiler", "resources", "warnings", "from", "tool"});
    shown["module"] = module_name(module);
    for (const json& kernel : module.value("kernels", json::array())) {
      json each = picked(kernel, {"kernel", "instructions", "mix", "workloads", "lines"});
      if (each.contains("lines") && each["lines"].size() > 8) each["lines"].erase(each["lines"].begin() + 8, each["lines"].end());
      shown["kernels"].push_back(std::move(each));
    }
    facts["modules"].push_back(std::move(shown));
  }
  return facts;
}

json look_output() {
  const json lists = {{"type", "array"}};
  return object_schema({{"candidate", {{"type", "string"}}},
                        {"architecture", {{"type", "string"}}},
                        {"failed", {{"type", "integer"}, {"description", "workloads for which it does not compile"}}},
                        {"errors", list_schema({{"type", "object"}}, "each distinct compile error, with its workloads")},
                        {"modules", list_schema({{"type", "object"}}, "what was compiled: kernels, resources, warnings")},
                        {"listing", nullable("string", "file with the listing")}});
}

json look_input(const Workplace& place) {
  json members = subject_members(place, "folder of the candidate; in a run also its bare name in scratch or frontier");
  members["arch"] = text_schema("cpu, sm_90a or sm_100a, which need not be here; left out: the task's");
  return input_schema(std::move(members), {"candidate"});
}

std::vector<std::string> look_line(const Workplace& place, const std::string& verb, const json& arguments) {
  std::vector<std::string> line = place.line(verb, arguments);
  if (const std::string arch = arguments.value("arch", ""); !arch.empty()) line.insert(line.end(), {"--arch", arch});
  return line;
}

Result<Answer> compile(const Workplace& place, const Call& call) {
  std::vector<std::string> line = look_line(place, "compile", call.arguments);
  add_subject(line, call.arguments);
  HONE_TRY(const json report, run_verb(place.command, std::move(line), call));
  Answer answer{errors_text(report) + compile_text(report), facts_of(report)};
  place.keep(answer.facts, "compile", report);
  return answer;
}

Result<Answer> inspect(const Workplace& place, const Call& call) {
  const std::string listing = call.arguments.value("listing", "");
  std::vector<std::string> line = look_line(place, "inspect", call.arguments);
  if (listing.empty()) {
    add_subject(line, call.arguments);
    HONE_TRY(const json report, run_verb(place.command, std::move(line), call));
    Answer answer{errors_text(report) + inspect_text(report, 6), facts_of(report)};
    place.keep(answer.facts, "inspect", report);
    return answer;
  }
  line.push_back(listing == "ptx" ? "--ptx" : "--sass");
  add_subject(line, call.arguments);
  HONE_TRY(const std::string text, run_verb_for_text(place.command, std::move(line), call));
  HONE_TRY(const std::string file, place.shelf.put("inspect", listing == "ptx" ? "ptx" : "asm", text));
  return Answer{fmt::format("{} bytes in {}, which begin\n{}", text.size(), file, shortened(text, kShownListing)), {{"listing", file}, {"bytes", text.size()}}};
}

struct Further {
  const char *verb, *title, *description;
  bool measures;
};
// Verbs that this program may have: a tool stands for each that it does.
constexpr Further kFurther[] = {
    {"check", "Check for races and synchronisation faults", "Executes the candidate's PTX on a simulated device and reports races, wrong synchronisation and bad accesses.", false},
    {"sim", "Run on a simulated device", "Executes the candidate's PTX on a simulated device and says what it wrote.", false},
    {"profile", "Profile the kernels", "Runs the profiler on the device: achieved against possible, stall reasons, bank conflicts, cache hits.", true},
    {"sanitize", "Run under the sanitizer", "Runs the vendor's memory, race and synchronisation checker on the device.", true},
};

Result<Answer> further(const Workplace& place, const std::string& verb, const Call& call) {
  std::vector<std::string> line = place.line(verb, call.arguments);
  add_subject(line, call.arguments);
  HONE_TRY(const json report, run_verb(place.command, std::move(line), call));
  Answer answer{{}, report};
  place.keep(answer.facts, verb, report);
  if (verb == "profile") answer.text = errors_text(report) + profile_text(report);
  else if (verb == "sanitize") answer.text = errors_text(report) + sanitize_text(report);
  else answer.text = shrunk(answer.facts, kLongestText).dump(1, ' ', false, json::error_handler_t::replace);
  return answer;
}

}  // namespace

std::vector<Tool> looking_tools(const Place& place) {
  std::vector<Tool> tools;
  tools.push_back({"compile", "Compile a candidate",
                   "Plans and compiles the candidate for every workload without running it: compile errors with their place, and for CUDA registers, spills, "
                   "shared memory and warnings of each kernel. Needs no device; much quicker than `bench`.",
                   look_input(*place), look_output(), false, false, [place](const Call& call) { return compile(*place, call); }});
  json input = look_input(*place);
  input["properties"]["listing"] = {{"enum", json::array({"ptx", "sass"})}, {"description", "instead: the PTX, or the machine code (of a CPU candidate too), as a file"}};
  tools.push_back({"inspect", "Look at the compiled kernels",
                   "Resources, instruction mix and the source lines with most instructions of each kernel, without running it.", std::move(input), look_output(),
                   false, false, [place](const Call& call) { return inspect(*place, call); }});
  for (const Further& each : kFurther) {
    if (!place->has(each.verb)) continue;
    json members = subject_members(*place, "folder of the candidate; in a run also its bare name");
    if (each.measures) members["workloads"]["description"] = "these workloads, by id; left out: one, the task's first, or its smallest for `sanitize`";
    tools.push_back({each.verb, each.title, each.description, input_schema(std::move(members), {"candidate"}), object_schema(json::object()), each.measures, false,
                     [place, verb = std::string(each.verb)](const Call& call) { return further(*place, verb, call); }});
  }
  return tools;
}

}  // namespace hone::mcp
