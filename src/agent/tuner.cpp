#include "agent/tuner.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/space.h"
#include "agent/strategy.h"
#include "base/clock.h"
#include "base/text.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kAhead = 4;             // configurations compiled before the next is measured
constexpr int kMachineFaults = 3;             // in a row, before the run is broken off
constexpr double kRemeasureSeconds = 20;      // a full measurement, when no time budget says less

class Search {
 public:
  Search(const Run& run, Ledger& ledger, const TunerOptions& options, Evaluator& evaluator, const Space& space)
      : run_(run), ledger_(ledger), options_(options), evaluator_(evaluator), space_(space), began_s_(now_s()),
        before_s_(progress_of(ledger.rows()).elapsed_s) {}

  Result<TunerOutcome> run() {
    HONE_TRY(const auto strategy, make_strategy(options_.strategy, space_, options_.seed));
    HONE_CHECK(sync_frontier(run_, ledger_.rows(), "Frontier as the ledger says"));
    refresh();
    auto end = search(*strategy);
    if (end && *end != RunEnd::cancelled && *end != RunEnd::target_reached) {
      auto confirmed = confirm_winners();
      if (!confirmed) end = fail(std::move(confirmed).error());
      else if (*confirmed == Confirmed::cancelled) end = RunEnd::cancelled;
      else if (*confirmed == Confirmed::retained && target_met()) end = RunEnd::target_reached;
    }
    if (options_.turn > 0) {
      if (!end) return fail(std::move(end).error());
      outcome_.end = *end;
      return outcome_;
    }
    if (!end) {
      // Best effort: the reason may be that nothing can be written.
      (void)ledger_.append("run_ended", elapsed_s(), {{"reason", "error"}, {"error", end.error()}, {"evaluations", evaluations()}});
      return fail(std::move(end).error());
    }
    outcome_.end = *end;
    HONE_CHECK(ledger_.append("run_ended", elapsed_s(),
                              {{"reason", name_of(*end)}, {"exit", exit_code_of(*end)}, {"evaluations", evaluations()}}));
    return outcome_;
  }

 private:
  enum class Confirmed { retained, kept_incumbent, cancelled, out_of_time };

  double elapsed_s() const { return before_s_ + now_s() - began_s_; }
  std::int64_t evaluations() const { return static_cast<std::int64_t>(progress_.evaluations.size()); }
  bool cancelled() const { return options_.cancel != nullptr && options_.cancel->load(); }
  void refresh() { progress_ = progress_of(ledger_.rows()); }

  // A full measurement's share of the time, and what the search leaves for two of them.
  double remeasure_s() const {
    const auto total = options_.budget.seconds();
    return total ? std::clamp(*total * options_.confirm_share, 0.5, kRemeasureSeconds) : kRemeasureSeconds;
  }
  bool search_time_is_over() const {
    const auto total = options_.budget.seconds();
    return total && elapsed_s() >= *total - std::min(2.5 * remeasure_s(), *total * 0.45);
  }
  // How long the next full measurement may take when `wanted` is what it should; nullopt: too little time is
  // left for one that decides. The second of a good pair may overrun: without it the first was for nothing.
  std::optional<double> granted_s(double wanted, int missing, bool begun) const {
    const auto total = options_.budget.seconds();
    if (!total) return wanted;
    const double share = (*total - elapsed_s()) / missing;
    if (!begun && share < wanted / 2) return std::nullopt;
    return std::clamp(share, wanted / 2, wanted);
  }

  Result<RunEnd> search(Strategy& strategy) {
    std::map<std::string, std::optional<double>> known;
    for (const Recorded& each : progress_.evaluations) known[each.experiment.sha256] = each.experiment.geomean;
    std::set<std::string> prepared;
    for (;;) {
      if (cancelled()) return RunEnd::cancelled;
      const auto point = strategy.propose();
      if (!point) return RunEnd::space_exhausted;
      HONE_TRY(const Candidate candidate, candidate_of(*point));
      if (const auto found = known.find(candidate.sha256); found != known.end()) {
        strategy.tell(*point, found->second);
        continue;
      }
      if (const auto limit = options_.budget.evaluations(); limit && evaluations() >= *limit) return RunEnd::budget_evaluations;
      if (search_time_is_over()) return RunEnd::budget_time;
      prepare(strategy, candidate, known, prepared);
      HONE_TRY(const auto experiment, judge_once("search", candidate, Evaluation{candidate, true, std::nullopt, std::nullopt}, point));
      if (!experiment) return RunEnd::cancelled;
      known[candidate.sha256] = experiment->geomean;
      strategy.tell(*point, experiment->geomean);
      show(*experiment);
      if (options_.target && experiment->geomean && *experiment->geomean >= *options_.target && !settled(candidate.sha256)) {
        HONE_TRY(const Confirmed confirmed, confirm(candidate));
        if (confirmed == Confirmed::cancelled) return RunEnd::cancelled;
        if (target_met()) return RunEnd::target_reached;
      }
    }
  }

  Result<Candidate> candidate_of(const Point& point) const { return options_.seeds[point.seed].with(space_.values(point)); }

  void prepare(const Strategy& strategy, const Candidate& next, const std::map<std::string, std::optional<double>>& known,
               std::set<std::string>& prepared) {
    if (prepared.count(next.sha256) != 0) return;
    std::size_t ahead = kAhead - 1;
    if (const auto limit = options_.budget.evaluations())
      ahead = std::min(ahead, static_cast<std::size_t>(std::max<std::int64_t>(0, *limit - evaluations() - 1)));
    std::vector<Candidate> batch = {next};
    for (const Point& point : strategy.upcoming(ahead))
      if (auto candidate = candidate_of(point); candidate && known.count(candidate->sha256) == 0) batch.push_back(*std::move(candidate));
    for (const Candidate& each : batch) prepared.insert(each.sha256);
    evaluator_.prepare(batch);
  }

  // One judgement with its rows. nullopt: cancelled.
  Result<std::optional<Experiment>> judge_once(const std::string& purpose, const Candidate& candidate, Evaluation evaluation,
                                               const std::optional<Point>& point) {
    const bool search = purpose == "search";
    const auto open = progress_.open_starts.find(purpose + ":" + candidate.sha256);
    evaluation.quick = search;
    const Judging where{run_, ledger_, evaluator_, [this] { return elapsed_s(); }, options_.cancel, static_cast<int>(workloads_)};
    auto judged = hone::judge_once(where, evaluation, !search, open == progress_.open_starts.end() ? 0 : open->second,
                                   [&](Experiment& experiment, json& extra) -> Result<> {
                                     HONE_CHECK(count_machine_faults(experiment));
                                     experiment.family = candidate.name;
                                     experiment.parent = parent_of(candidate, point);
                                     experiment.idea = "tuner " + options_.strategy + ": " + params_text(candidate.values);
                                     extra["by"] = options_.by;
                                     if (options_.turn > 0) extra["turn"] = options_.turn;
                                     return {};
                                   });
    refresh();
    if (!judged) return fail(std::move(judged).error());
    if (!*judged) return std::optional<Experiment>();
    if ((*judged)->report && (*judged)->report->total > 0) workloads_ = static_cast<std::size_t>((*judged)->report->total);
    return std::optional<Experiment>(std::move((*judged)->experiment));
  }

  // A device that fails for one configuration may be that configuration's doing; for several in a
  // row it is the machine's.
  Result<> count_machine_faults(const Experiment& experiment) {
    const bool machine = experiment.error && (experiment.error->kind == ErrorKind::device || experiment.error->kind == ErrorKind::internal);
    machine_faults_ = machine ? machine_faults_ + 1 : 0;
    if (machine_faults_ < kMachineFaults) return {};
    Error error = *experiment.error;
    error.notes.push_back(fmt::format("{} configurations in a row ended so; the run is broken off", machine_faults_));
    return fail(std::move(error));
  }

  std::string parent_of(const Candidate& candidate, const std::optional<Point>& point) const {
    if (!point) return candidate.sha256;   // measured again: the same source
    const Candidate& seed = options_.seeds[point->seed];
    return seed.sha256 == candidate.sha256 ? std::string() : seed.sha256;
  }

  static bool kept(const Experiment& each) { return each.scored && each.decision == "KEEP"; }
  // Passed, but the interval decides nothing: too few samples, or a near tie.
  static bool undecided(const Experiment& each) { return each.scored && each.decision != "KEEP" && each.decision != "REJECT"; }
  // Whether nothing more is to be measured of it: confirmed twice, refused once, or undecided again
  // after a longer look.
  bool settled(const std::string& sha256) const {
    int keeps = 0, unsure = 0;
    for (const Recorded& each : progress_.remeasures) {
      if (each.experiment.sha256 != sha256) continue;
      if (kept(each.experiment)) ++keeps;
      else if (undecided(each.experiment)) ++unsure;
      else return true;
    }
    return keeps >= 2 || unsure >= 2;
  }
  int keeps_of(const std::string& sha256) const {
    return static_cast<int>(std::count_if(progress_.remeasures.begin(), progress_.remeasures.end(), [&](const Recorded& each) {
      return each.experiment.sha256 == sha256 && kept(each.experiment);
    }));
  }
  const Recorded* last_remeasure(const std::string& sha256) const {
    const Recorded* last = nullptr;
    for (const Recorded& each : progress_.remeasures)
      if (each.experiment.sha256 == sha256) last = &each;
    return last;
  }

  // Measures a candidate in full against the incumbent until two measurements say KEEP, and retains
  // it then. A near tie keeps the incumbent.
  Result<Confirmed> confirm(const Candidate& candidate) {
    // Retained before (and perhaps dropped by a person since): nothing to decide.
    for (const LedgerRow& row : ledger_.rows())
      if (row.kind == "frontier_add" && row.data.get<FrontierEntry>().sha256 == candidate.sha256) return Confirmed::kept_incumbent;
    const std::vector<FrontierEntry> frontier = frontier_of(ledger_.rows());
    std::optional<Candidate> incumbent;
    if (!frontier.empty()) {
      HONE_TRY(incumbent, candidate_of_entry(run_, frontier.front()));
    }
    for (int here = 0; !settled(candidate.sha256); ++here) {
      if (cancelled()) return Confirmed::cancelled;
      const Recorded* last = last_remeasure(candidate.sha256);
      const bool longer = last != nullptr && undecided(last->experiment);
      const auto seconds = granted_s(remeasure_s() * (longer ? 2 : 1), 2 - keeps_of(candidate.sha256), here > 0 && !longer);
      if (!seconds) {
        outcome_.note = fmt::format("no time was left to confirm {} ({}); `--resume` with a larger `--budget time=` does", candidate.name,
                                    params_text(candidate.values));
        return Confirmed::out_of_time;
      }
      Evaluation evaluation{candidate, false, incumbent, *seconds};
      HONE_TRY(const auto experiment, judge_once("remeasure", candidate, std::move(evaluation), std::nullopt));
      if (!experiment) return Confirmed::cancelled;
      show(*experiment);
    }
    const Recorded* last = last_remeasure(candidate.sha256);
    if (last == nullptr || !kept(last->experiment) || keeps_of(candidate.sha256) < 2) {
      if (last != nullptr)
        outcome_.note = fmt::format("{} ({}) was not confirmed against {}: {} in row {}", candidate.name, params_text(candidate.values),
                                    incumbent ? incumbent->name : "the baseline",
                                    !last->experiment.decision.empty()  ? last->experiment.decision
                                    : last->experiment.geomean_ci ? "no decision"
                                                                  : "too few samples for an interval",
                                    last->row);
      return Confirmed::kept_incumbent;
    }
    HONE_TRY(FrontierEntry entry, frontier_add(run_, ledger_, candidate, last->experiment.receipt,
                                               {candidate.name, incumbent ? incumbent->name : "baseline"}, elapsed_s()));
    refresh();
    outcome_.retained = std::move(entry);
    outcome_.note.clear();
    return Confirmed::retained;
  }

  // The fastest of the search, or those next to it when it does not hold in a full measurement.
  Result<Confirmed> confirm_winners() {
    std::vector<const Experiment*> passing;
    const std::vector<Recorded> evaluations = progress_.evaluations;   // progress_ changes below
    for (const Recorded& each : evaluations)
      if (each.experiment.scored) passing.push_back(&each.experiment);
    std::stable_sort(passing.begin(), passing.end(),
                     [](const Experiment* a, const Experiment* b) { return *a->geomean > *b->geomean; });
    int tried = 0;
    for (const Experiment* each : passing) {
      // In a flow there are many turns: what one has settled takes no place in the next.
      if (options_.turn > 0 && settled(each->sha256) && keeps_of(each->sha256) < 2) continue;
      if (tried++ >= options_.contenders) break;
      const auto seed = std::find_if(options_.seeds.begin(), options_.seeds.end(),
                                     [&](const Candidate& seed_) { return seed_.name == each->candidate; });
      if (seed == options_.seeds.end()) continue;
      auto candidate = seed->with(each->params);
      if (!candidate || candidate->sha256 != each->sha256) continue;   // the seed was edited since
      HONE_TRY(const Confirmed confirmed, confirm(*candidate));
      if (confirmed != Confirmed::kept_incumbent) return confirmed;
      const auto frontier = frontier_of(ledger_.rows());
      if (!frontier.empty() && frontier.front().sha256 == each->sha256) return Confirmed::kept_incumbent;
    }
    return Confirmed::kept_incumbent;
  }

  // A retained candidate that reached the target in both of its full measurements.
  bool target_met() const {
    if (!options_.target) return false;
    for (const FrontierEntry& entry : frontier_of(ledger_.rows())) {
      int reached = 0;
      for (const Recorded& each : progress_.remeasures)
        if (each.experiment.sha256 == entry.sha256 && each.experiment.geomean && *each.experiment.geomean >= *options_.target) ++reached;
      if (reached >= 2) return true;
    }
    return false;
  }

  void show(const Experiment& last) const {
    if (!options_.progress) return;
    const auto limit = options_.budget.evaluations();
    std::string line = fmt::format("{}{} evaluations, {}", evaluations(), limit ? fmt::format("/{}", *limit) : "",
                                   format_duration(elapsed_s()));
    if (const Recorded* best = progress_.best())
      line += fmt::format(", best {:.2f}x ({})", *best->experiment.geomean, params_text(best->experiment.params));
    if (last.geomean)
      line += fmt::format(", last PASS {:.2f}x", *last.geomean);
    else
      line += fmt::format(", last {} ({})", last.error ? name_of(last.error->kind) : "FAIL", params_text(last.params));
    options_.progress(line);
  }

  const Run& run_;
  Ledger& ledger_;
  const TunerOptions& options_;
  Evaluator& evaluator_;
  const Space& space_;
  const double began_s_, before_s_;
  RunProgress progress_;
  TunerOutcome outcome_;
  std::size_t workloads_ = 0;
  int machine_faults_ = 0;
};

}  // namespace

std::string_view name_of(RunEnd end) {
  switch (end) {
    case RunEnd::space_exhausted: return "space exhausted";
    case RunEnd::target_reached: return "target reached";
    case RunEnd::budget_evaluations: return "budget: evaluations";
    case RunEnd::budget_time: return "budget: time";
    case RunEnd::cancelled: return "cancelled";
  }
  return "";
}

int exit_code_of(RunEnd end) { return end == RunEnd::space_exhausted || end == RunEnd::target_reached ? 0 : 4; }

Result<TunerOutcome> tune(const Run& run, Ledger& ledger, const TunerOptions& options, Evaluator& evaluator) {
  HONE_TRY(const Space space, Space::create(options.seeds));
  return Search(run, ledger, options, evaluator, space).run();
}

Result<std::vector<Candidate>> seed_candidates(const Run& run) {
  std::vector<fs::path> folders;
  std::error_code code;
  for (const fs::directory_entry& each : fs::directory_iterator(run.scratch(), code))
    if (each.is_directory(code) && !each.path().filename().string().starts_with('.')) folders.push_back(each.path());
  std::sort(folders.begin(), folders.end());
  std::vector<Candidate> seeds;
  for (const fs::path& folder : folders) {
    HONE_TRY(Candidate candidate, load_candidate(folder));
    if (!candidate.parameters.empty()) seeds.push_back(std::move(candidate));
  }
  return seeds;
}

}  // namespace hone
