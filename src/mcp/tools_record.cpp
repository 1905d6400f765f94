#include <algorithm>

#include "mcp/tools.h"
#include "run/ledger.h"
#include "run/record.h"

namespace hone::mcp {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestNote = 4000;

// To a confined program the record is an empty device. It is told so, instead of that nothing was ever tried.
Result<> check_record_is_seen(const Workplace& place) {
  std::error_code code;
  if (!fs::is_character_file(place.run->ledger(), code)) return {};
  return fail(make_error(ErrorKind::unavailable, "the run's record is out of a confined program's sight")
                  .with_hint(fmt::format("the brief tells what was tried ({}, resource hone://run/brief), and candidates/{}/frontier/index.json what is retained",
                                         (place.run->root / "brief.md").string(), place.run->manifest.task)));
}

// A verb's object as the facts, its text as the text: both are quick.
Result<Answer> both(const Workplace& place, const std::string& name, const std::vector<std::string>& line, const Call& call) {
  HONE_TRY(const json whole, run_verb(place.command, line, call));
  HONE_TRY(const std::string text, run_verb_for_text(place.command, line, call));
  Answer answer{text, whole};
  place.keep(answer.facts, name, whole);
  return answer;
}

Result<Answer> task(const Workplace& place, const Call& call) {
  const std::string name = place.run ? place.run->manifest.task_source : call.arguments.value("task", "");
  return name.empty() ? both(place, "tasks", {"task", "list"}, call) : both(place, "task", {"task", "show", "--", name}, call);
}

Result<Answer> frontier(const Workplace& place, const Call& call) {
  const json& given = call.arguments;
  const std::string action = given.value("action", "list");
  if (action != "add") HONE_CHECK(check_record_is_seen(place));
  const auto words = [&](std::vector<const char*> names) -> Result<std::vector<std::string>> {
    std::vector<std::string> line{"frontier", action, "--run", place.run->root.string()};
    for (const char* flag : {"receipt", "family"})
      if (action == "add" && given.contains(flag)) line.insert(line.end(), {std::string("--") + flag, given[flag].get<std::string>()});
    line.emplace_back("--");
    for (const char* name : names) {
      if (!given.contains(name)) return fail(make_error(ErrorKind::usage, "frontier {} needs `{}`", action, name));
      line.push_back(given[name].get<std::string>());
    }
    return line;
  };
  HONE_TRY(std::vector<std::string> line, action == "show" ? words({"name"}) : action == "diff" ? words({"name", "other"}) : action == "add" ? words({"candidate"}) : words({}));
  if (line.back() == "--") line.pop_back();
  if (action != "add") return both(place, "frontier", line, call);
  HONE_TRY(const json entry, run_verb(place.command, line, call));      // once: it changes the record
  return Answer{fmt::format("added {}: {:.3f}x, row {}\n", entry.value("name", ""), entry.value("geomean", 0.0), entry.value("row", 0)), entry};
}

std::string line_of(const LedgerRow& row, const json& shown) {
  std::string text = fmt::format("row {} {} {}", row.seq, row.time, row.kind);
  for (const char* key : {"by", "candidate", "decision", "text", "reason", "name"})
    if (const auto found = shown.find(key); found != shown.end() && found->is_string()) text += fmt::format(" {}", shortened(found->get<std::string>(), 200));
  if (shown.contains("passed")) text += fmt::format(" {}/{}", shown["passed"].dump(), shown["total"].dump());
  if (shown.contains("geomean") && shown["geomean"].is_number()) text += fmt::format(" {:.3f}x", shown["geomean"].get<double>());
  if (shown.contains("error") && shown["error"].is_object())
    text += fmt::format(" {}: {}", shown["error"].value("kind", ""), shortened(shown["error"].value("message", ""), 160));
  return text + "\n";
}

Result<Answer> ledger(const Workplace& place, const Call& call) {
  const json& wanted = call.arguments;
  const auto last = wanted.value("last", std::size_t{10});
  const std::string kind = wanted.value("kind", ""), candidate = wanted.value("candidate", "");
  HONE_CHECK(check_record_is_seen(place));
  HONE_TRY(const LedgerText all, read_ledger(place.run->ledger()));
  std::vector<const LedgerRow*> rows;
  for (auto row = all.rows.rbegin(); row != all.rows.rend() && rows.size() < last; ++row) {
    const json& data = row->data;
    if (!kind.empty() && row->kind != kind) continue;
    if (!candidate.empty() && (!data.is_object() || data.value("candidate", json()) != candidate)) continue;
    if (wanted.value("failed", false) && !(data.is_object() && data.contains("error") && data["error"].is_object())) continue;
    rows.push_back(&*row);
  }
  std::reverse(rows.begin(), rows.end());
  Answer answer;
  answer.facts = {{"rows", json::array()}, {"total", all.rows.size()}, {"full", place.run->ledger().string()}, {"faults", all.faults.size()}};
  for (const LedgerRow* row : rows) {
    json shown = row->data.is_object() ? picked(row->data, {"by", "turn", "candidate", "params", "family", "parent", "idea", "passed", "total", "geomean", "geomean_ci", "decision",
                                                            "receipt", "error", "text", "reason", "name", "why", "agent"})
                                       : json::object();
    if (const auto error = shown.find("error"); error != shown.end() && error->is_object()) *error = picked(*error, {"kind", "message", "place", "hint"});
    shown.update({{"row", row->seq}, {"time", row->time}, {"kind", row->kind}});
    answer.text += line_of(*row, shown);
    answer.facts["rows"].push_back(std::move(shown));
  }
  if (rows.empty()) answer.text = fmt::format("no such row among {}\n", all.rows.size());
  if (!all.faults.empty()) answer.text += fmt::format("{} lines of the ledger are damaged or missing\n", all.faults.size());
  return answer;
}

Result<Answer> note(const Workplace& place, const Call& call) {
  HONE_TRY(const std::int64_t row, record_finding(*place.run, call.arguments.at("text").get<std::string>(), &call.cancel));
  return Answer{fmt::format("noted as row {}, as what an agent says\n", row), {{"row", row}}};
}

}  // namespace

std::vector<Tool> record_tools(const Place& place) {
  const json free = object_schema(json::object());
  std::vector<Tool> tools;
  if (place->run)
    tools.push_back({"task", "The task", "Tensors, workloads, gates, input sets and baselines of this run's task.", input_schema(json::object()), free, false, false,
                     [place](const Call& call) { return task(*place, call); }});
  else
    tools.push_back({"task", "Tasks", "A task's tensors, workloads, gates, input sets and baselines; without a name all tasks.",
                     input_schema({{"task", text_schema("name or folder; left out: a list")}}), free, false, false,
                     [place](const Call& call) { return task(*place, call); }});
  if (!place->run) return tools;
  tools.push_back({"status", "Where the run stands", "Best so far, what is retained, what the run has spent of its budget, the last experiments.",
                   input_schema(json::object()), free, false, false,
                   [place](const Call& call) -> Result<Answer> {
                     HONE_CHECK(check_record_is_seen(*place));
                     return both(*place, "status", {"status", "--run", place->run->root.string()}, call);
                   }});
  tools.push_back({"frontier", "Retained candidates",
                   "list: all, fastest first. show: one entry (`name`). diff: sources and workloads of two (`name`, `other`; entries or receipts). "
                   "add: retain `candidate` by a passing judgement of its very bytes.",
                   input_schema({{"action", {{"enum", json::array({"list", "show", "diff", "add"})}, {"description", "default list"}}},
                                 {"name", text_schema("an entry's name; for diff also a receipt")},
                                 {"other", text_schema("for diff: the other side")},
                                 {"candidate", text_schema("for add: the candidate's folder, or bare name")},
                                 {"receipt", text_schema("for add: which judgement; left out: the newest full one")},
                                 {"family", text_schema("for add: what idea it belongs to")}}),
                   free, false, true, [place](const Call& call) { return frontier(*place, call); }});
  tools.push_back({"ledger", "Earlier experiments", "The newest rows of the run's record, oldest first: judgements with their verdicts and errors, what was retained, notes. Look here before trying an idea again.",
                   input_schema({{"last", {{"type", "integer"}, {"minimum", 1}, {"maximum", 50}, {"description", "how many; default 10"}}},
                                 {"kind", text_schema("only rows of this kind: evaluation, remeasure, frontier_add, finding, ...")},
                                 {"candidate", text_schema("only rows of this candidate")},
                                 {"failed", {{"type", "boolean"}, {"description", "only experiments with an error"}}}}),
                   object_schema({{"rows", list_schema({{"type", "object"}}, "oldest first")}, {"total", {{"type", "integer"}}}, {"faults", {{"type", "integer"}}}}), false, false,
                   [place](const Call& call) { return ledger(*place, call); }});
  tools.push_back({"note", "Leave a note", "Writes what you learnt into the run's record, for whoever works on it next: what you tried, what it showed, what you would try now. It is kept as your claim; only measurements are evidence.",
                   input_schema({{"text", {{"type", "string"}, {"minLength", 1}, {"maxLength", kLongestNote}}}}, {"text"}),
                   object_schema({{"row", {{"type", "integer"}}}}), false, true, [place](const Call& call) { return note(*place, call); }});
  return tools;
}

}  // namespace hone::mcp
