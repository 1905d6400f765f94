#include "flow/desk.h"

#include <algorithm>
#include <cctype>
#include <thread>

#include "agent/judging.h"
#include "base/clock.h"
#include "base/text.h"
#include "flow/limits.h"
#include "judge/receipt.h"
#include "run/frontier.h"
#include "run/record.h"
#include "run/summary.h"

namespace hone {
namespace {

using nlohmann::json;

std::string text_of(const json& request, const char* key) {
  const auto found = request.find(key);
  return found != request.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The hold on the books is let go of while something is measured or compiled.
class Apart : public Evaluator {
 public:
  Apart(Evaluator& inner, std::unique_lock<std::mutex>& held) : inner_(inner), held_(held) {}
  Result<Report> evaluate(const Evaluation& evaluation) override {
    held_.unlock();
    auto report = inner_.evaluate(evaluation);
    held_.lock();
    return report;
  }
  void prepare(const std::vector<Candidate>& upcoming) override {
    held_.unlock();
    inner_.prepare(upcoming);
    held_.lock();
  }

 private:
  Evaluator& inner_;
  std::unique_lock<std::mutex>& held_;
};

class InLine : public Evaluator {
 public:
  InLine(Evaluator& inner, Turnstile& line, const std::atomic<bool>& halt) : inner_(inner), line_(line), halt_(halt) {}
  Result<Report> evaluate(const Evaluation& evaluation) override {
    const auto pass = line_.enter({});
    Evaluation stoppable = evaluation;
    stoppable.cancel = &halt_;
    return inner_.evaluate(stoppable);
  }
  void prepare(const std::vector<Candidate>& upcoming) override {
    const auto pass = line_.enter({});
    inner_.prepare(upcoming);
  }

 private:
  Evaluator& inner_;
  Turnstile& line_;
  const std::atomic<bool>& halt_;
};

class ApartInLine : public Evaluator {
 public:
  ApartInLine(Evaluator& inner, Turnstile& line, const std::atomic<bool>& halt, std::unique_lock<std::mutex>& held)
      : in_line_(inner, line, halt), apart_(in_line_, held) {}
  Result<Report> evaluate(const Evaluation& evaluation) override { return apart_.evaluate(evaluation); }
  void prepare(const std::vector<Candidate>& upcoming) override { apart_.prepare(upcoming); }

 private:
  InLine in_line_;
  Apart apart_;
};

// A measurement that is there already, and whether it may be made again, marked as such.
struct Known {
  const Recorded* recorded = nullptr;
  bool again = false;
};

Known known_of(const RunProgress& progress, const std::string& sha256, int workloads) {
  Known known;
  int looks = 0;
  for (const auto* list : {&progress.evaluations, &progress.remeasures, &progress.benches})
    for (const Recorded& each : *list) {
      if (each.experiment.sha256 != sha256 || each.experiment.total != workloads) continue;
      ++looks;
      if (known.recorded == nullptr || each.row > known.recorded->row) known.recorded = &each;
    }
  if (known.recorded == nullptr) return known;
  const Experiment& last = known.recorded->experiment;
  // A tuner's quick look decides nothing, and an undecided full one is worth a second.
  if (last.scored) known.again = !known.recorded->full || (last.decision == "AMBIGUOUS" && looks < 2);
  return known;
}

}  // namespace

std::string field_of_notes(const std::string& notes, const std::string& name) {
  std::size_t at = 0;
  while (at < notes.size()) {
    const std::size_t end = std::min(notes.find('\n', at), notes.size());
    std::string line = notes.substr(at, end - at);
    at = end + 1;
    line.erase(0, line.find_first_not_of(" -*#\t"));
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    if (!std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); })) continue;
    line.erase(0, name.size() + 1);
    line.erase(0, std::min(line.size(), line.find_first_not_of(" *\t")));
    line.erase(line.find_last_not_of(" *\t\r") + 1);
    return line.substr(0, 200);
  }
  return {};
}

void Desk::begin_turn(const std::string& role, int turn) {
  const std::lock_guard held(turn_mutex_);
  role_ = role;
  turn_ = turn;
}

std::string Desk::by(const Caller& caller) {
  const std::lock_guard held(turn_mutex_);
  return caller.of_turn ? role_ : "bench";
}

int Desk::turn(const Caller& caller) {
  const std::lock_guard held(turn_mutex_);
  return caller.of_turn ? turn_ : 0;
}

void Desk::drain() {
  while (line_.depth() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

std::optional<std::string> Desk::closed() {
  const auto held = books_.hold();
  const RunProgress progress = progress_of(books_.ledger().rows());
  if (options_.target && target_met(progress, frontier_of(books_.ledger().rows()), *options_.target)) return "target reached";
  if (const auto limit = options_.budget.evaluations(); limit && static_cast<std::int64_t>(progress.evaluations.size()) >= *limit) return "budget: evaluations";
  return std::nullopt;
}

Result<> Desk::allowed(const Caller& caller, const std::unique_lock<std::mutex>&) {
  if (halt_) return fail(make_error(ErrorKind::cancelled, "the launcher is ending this turn").with_hint("nothing more is measured in it"));
  if (!caller.of_turn) return {};
  if (by(caller).empty()) return fail(make_error(ErrorKind::unavailable, "no turn goes on").with_hint("what is left of an earlier turn measures nothing"));
  const RunProgress progress = progress_of(books_.ledger().rows());
  if (const auto spent = spent_budget(options_.budget, progress, books_.elapsed_s()))
    return fail(make_error(ErrorKind::budget, "the run's {} is spent", *spent).with_hint("end this turn; what is in the frontier is the result"));
  if (options_.target && target_met(progress, frontier_of(books_.ledger().rows()), *options_.target))
    return fail(make_error(ErrorKind::budget, "the target is reached").with_hint("end this turn"));
  return {};
}

Result<Candidate> Desk::snapshot(const json& request, const Caller& caller) const {
  const std::string name = text_of(request, "candidate");
  if (name.empty()) return fail(make_error(ErrorKind::usage, "the request names no candidate"));
  std::error_code code;
  const fs::path folder = fs::weakly_canonical(name, code);
  // The launcher may read what the agent may not.
  const fs::path inside = folder.lexically_relative(fs::weakly_canonical(books_.run().worktree(), code));
  if (caller.of_turn && (inside.empty() || *inside.begin() == ".."))
    return fail(make_error(ErrorKind::forbidden, "{} is not in this run's worktree", name).with_hint("a candidate is a folder below candidates/"));
  return load_candidate(folder);
}

Result<json> Desk::bench(const json& request, const Caller& caller) {
  Evaluation wanted{Candidate{}, false, std::nullopt, std::nullopt};
  if (const auto ids = request.find("workloads"); ids != request.end() && ids->is_array())
    for (const json& each : *ids)
      if (each.is_string()) wanted.workloads.push_back(each.get<std::string>());
  if (const auto seconds = request.find("time_budget_s"); seconds != request.end() && seconds->is_number()) wanted.time_budget_s = seconds->get<double>();
  if (const auto samples = request.find("samples"); samples != request.end() && samples->is_number_integer())
    wanted.samples = std::clamp(samples->get<int>(), 1, 1000000);
  wanted.baseline = text_of(request, "candidate") == "baseline";
  // As it is now: what happens to the folder while it waits changes nothing.
  Candidate candidate;
  if (!wanted.baseline) {
    HONE_TRY(candidate, snapshot(request, caller));
  }
  HONE_CHECK(allowed(caller, books_.hold()));
  const auto pass = line_.enter([&] { return halt_ || (caller.gone && caller.gone()); },
                                [&](int before) {
                                  if (caller.progress) caller.progress(fmt::format("waiting: {} before this one", before));
                                });
  if (!pass) return fail(make_error(ErrorKind::cancelled, "given up before it was measured"));
  auto held = books_.hold();
  HONE_CHECK(allowed(caller, held));
  wanted.progress = caller.progress;
  wanted.cancel = &halt_;
  if (const auto limit = options_.budget.seconds())
    wanted.time_budget_s = std::min(wanted.time_budget_s.value_or(*limit), std::max(1.0, *limit - books_.elapsed_s()));
  if (wanted.baseline) {
    Apart apart(evaluator_, held);
    HONE_TRY(Report report, apart.evaluate(wanted));
    HONE_CHECK(write_receipt(report, books_.run().receipts()));
    return json{{"report", to_json(report)}, {"row", nullptr}, {"known", false}, {"retained", nullptr}, {"notes", json::array()}};
  }
  return judge_held(held, candidate, wanted, caller);
}

Result<json> Desk::judge_held(std::unique_lock<std::mutex>& held, const Candidate& candidate, const Evaluation& wanted, const Caller& caller) {
  Ledger& ledger = books_.ledger();
  const Run& run = books_.run();
  RunProgress progress = progress_of(ledger.rows());
  json answer = {{"known", false}, {"retained", nullptr}, {"notes", json::array()}};
  const bool whole = wanted.workloads.empty();
  const Known known = whole ? known_of(progress, candidate.sha256, options_.workloads) : Known{};
  if (known.recorded != nullptr && !known.again) {
    const Experiment& last = known.recorded->experiment;
    if (last.receipt.empty()) return fail(last.error ? *last.error : make_error(ErrorKind::conflict, "this source was judged in row {}", known.recorded->row));
    HONE_TRY(const json receipt, read_receipt(last.receipt, run.receipts()));
    answer["report"] = receipt["report"];
    answer["report"]["receipt"] = (run.receipts() / (last.receipt + ".json")).string();
    answer["row"] = known.recorded->row;
    answer["known"] = true;
    answer["notes"].push_back(fmt::format("these very bytes were measured in row {}; nothing was measured again", known.recorded->row));
    return answer;
  }

  HONE_CHECK(books_.mend_held());
  std::optional<Candidate> incumbent;
  const auto entries = frontier_of(ledger.rows());
  if (!entries.empty() && entries.front().sha256 != candidate.sha256) {
    HONE_TRY(incumbent, candidate_of_entry(run, entries.front()));
  }
  Apart apart(evaluator_, held);
  const Judging where{run, ledger, apart, [this] { return books_.elapsed_s(); }, &halt_, options_.workloads, true};
  const std::string asked_by = by(caller);
  const int in_turn = turn(caller);
  const std::string family = field_of_notes(candidate.notes, "family");
  const auto judge_one = [&](bool again, const std::optional<double>& seconds) {
    Evaluation evaluation{candidate, false, incumbent, seconds};
    evaluation.workloads = wanted.workloads;
    evaluation.samples = wanted.samples;
    evaluation.cancel = wanted.cancel;
    evaluation.progress = wanted.progress;
    const auto open = progress.open_starts.find((again ? "remeasure:" : "search:") + candidate.sha256);
    return judge_once(where, evaluation, again, open == progress.open_starts.end() ? 0 : open->second, [&](Experiment& experiment, json& extra) -> Result<> {
      if (!family.empty()) experiment.family = family;
      experiment.parent = field_of_notes(candidate.notes, "parent");
      experiment.idea = field_of_notes(candidate.notes, "idea");
      extra["by"] = asked_by;
      if (in_turn > 0) extra["turn"] = in_turn;
      if (whole) extra["full"] = true;
      return {};
    });
  };
  // A fault of the machine gets a second chance: it may have been somebody else's load.
  const auto judge = [&](bool again, const std::optional<double>& seconds) {
    auto judged = judge_one(again, seconds);
    return judged || of_the_candidate(judged.error().kind) || halt_ ? std::move(judged) : judge_one(again, seconds);
  };
  HONE_TRY(auto first, judge(known.again, wanted.time_budget_s));
  if (!first) return fail(make_error(ErrorKind::cancelled, "stopped while it was measured; nothing of it counts"));
  answer["row"] = first->row;
  if (!first->report) return fail(*first->experiment.error);
  answer["report"] = to_json(*first->report);
  HONE_CHECK(books_.mend_held());

  const auto retain = [&](const std::string& receipt) -> Result<> {
    auto entry = hone::frontier_add(run, ledger, candidate, receipt, {family, incumbent ? incumbent->name : "baseline"}, books_.elapsed_s());
    if (entry) {
      answer["retained"] = entry->name;
    } else if (entry.error().kind == ErrorKind::contract) {
      answer["notes"].push_back("not retained: " + entry.error().message);
    } else {
      return fail(std::move(entry).error());
    }
    return {};
  };
  if (first->experiment.decision == "KEEP") HONE_CHECK(retain(first->experiment.receipt));
  progress = progress_of(ledger.rows());
  if (options_.target && first->experiment.geomean && *first->experiment.geomean >= *options_.target && times_at_target(progress, candidate.sha256, *options_.target) == 1 && !halt_) {
    if (wanted.progress) wanted.progress(fmt::format("{:.3f}x reaches the target; measured once more", *first->experiment.geomean));
    HONE_TRY(auto second, judge(true, wanted.time_budget_s));
    if (!second) return answer;
    progress = progress_of(ledger.rows());
    const bool twice = times_at_target(progress, candidate.sha256, *options_.target) >= 2;
    if (twice && answer["retained"].is_null() && second->experiment.decision != "REJECT") HONE_CHECK(retain(second->experiment.receipt));
    answer["notes"].push_back(fmt::format("measured again in row {}: {}", second->row,
                                          second->experiment.geomean ? fmt::format("{:.3f}x", *second->experiment.geomean) : "it did not pass everywhere"));
  }
  if (options_.target && target_met(progress, frontier_of(ledger.rows()), *options_.target)) answer["notes"].push_back("the target is reached: end this turn");
  answer["spent"] = spent_text(progress);
  return answer;
}

Result<json> Desk::frontier_add(const json& request, const Caller& caller) {
  HONE_TRY(Candidate candidate, snapshot(request, caller));
  const auto held = books_.hold();
  HONE_CHECK(books_.mend_held());
  const Run& run = books_.run();
  HONE_TRY(const FrontierEntry entry, hone::frontier_add_asked(run, books_.ledger(), std::move(candidate), text_of(request, "receipt"),
                                                               {text_of(request, "family"), text_of(request, "parent")}, books_.elapsed_s(), text_of(request, "name")));
  json out = entry;
  out["row"] = entry.row;
  return json{{"entry", out}, {"row", entry.row}};
}

Result<json> Desk::frontier_drop(const json& request, const Caller&) {
  const auto held = books_.hold();
  HONE_CHECK(books_.mend_held());
  HONE_CHECK(hone::frontier_drop(books_.run(), books_.ledger(), text_of(request, "name"), text_of(request, "why"), books_.elapsed_s()));
  return json::object();
}

Result<json> Desk::finding(const json& request, const Caller& caller) {
  std::string text = text_of(request, "text");
  if (text.empty()) return fail(make_error(ErrorKind::usage, "a finding has a text"));
  text.resize(std::min<std::size_t>(text.size(), 2000));
  json data = {{"text", text}, {"by", by(caller)}};
  if (const int in_turn = turn(caller); in_turn > 0) data["turn"] = in_turn;
  HONE_TRY(const LedgerRow row, books_.append("finding", std::move(data)));
  return json{{"row", row.seq}};
}

std::unique_ptr<Evaluator> Desk::in_line(std::unique_lock<std::mutex>& held) { return std::make_unique<ApartInLine>(evaluator_, line_, halt_, held); }

}  // namespace hone
