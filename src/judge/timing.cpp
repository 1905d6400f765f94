#include "judge/timing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/clock.h"

namespace hone {
namespace {

// Shares of a workload's timing budget.
constexpr double kWarmupShare = 0.1, kChooseShare = 0.1, kControlShare = 0.1;
constexpr int kChooseRounds = 9, kControlRounds = 30;
// An epoch has two halves of equally many pairs. For the second the programs are loaded in the reverse order of the first:
// which one comes first decides where code and data lie, which is worth a percent for kernels of a few microseconds. The
// first few epochs are short so that an early end has seen several processes, later ones long so that loading costs little.
constexpr int kHalfPairs = 3;
constexpr std::uint32_t kShortEpochs = 3;
constexpr double kEpochsInBudget = 12;
// One round in so many is of hard data, unannounced and not counted; each epoch has at least one.
constexpr std::size_t kHardOdds = 8;
// The oracle may take this share of the timing beyond its one obligatory sample.
constexpr double kOracleShare = 0.1;
constexpr int kLookReplicates = 400;

class TimingLoop {
 public:
  TimingLoop(const WorkloadJob& job, Session& session, Checker& checker)
      : job_(job), session_(session), checker_(checker), policy_(stopping_policy(job)),
        data_seed_(derive_seed(job.seed, "timing")), order_seed_(derive_seed(job.seed, "order")), start_(job.clock()) {}

  Result<Timing> run() {
    HONE_CHECK(warm_up_and_choose());
    if (out_.refusal || out_.cancelled) return std::move(out_);
    if (!job_.quick) HONE_CHECK(control());
    HONE_CHECK(rounds());
    return std::move(out_);
  }

 private:
  struct Side {
    char letter;
    const Program* program;
    ProgramId id = 0;
    double seconds = 0;
  };

  double elapsed() const { return job_.clock() - start_; }

  // 0 <= value < limit, secret.
  std::size_t draw(std::size_t limit) { return static_cast<std::size_t>(derive_seed(order_seed_, "draw", draws_++) % limit); }
  template <class T>
  void shuffle(T& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[draw(i)]);
  }

  Result<> fresh_data() {
    const InputSet& random = job_.task.input_sets.front();
    return checker_.fill({&random, data_seed_, data_call_++, fmt::format("input set {}, timed data set {}", random.name, data_call_)});
  }

  bool ours(const Side& side) const { return side.letter == 'c' && job_.candidate != nullptr; }

  // Calls; a fault of the candidate becomes the refusal, that of anybody else the task's error.
  // False: refused.
  Result<bool> call(Side& side, bool timed, const std::string& when) {
    HONE_TRY(const CallResult result, session_.call(side.id, {timed}));
    side.seconds = result.seconds;
    std::optional<Refusal> fault = checker_.fault_of(result);
    if (!fault && timed && !(result.seconds > 0 && std::isfinite(result.seconds)))
      return fail(ErrorKind::device, "the device measured {} s for a call of {}", result.seconds, side.program->name);
    if (ours(side)) out_.extra_cpu_s += result.extra_cpu_s;
    if (!fault) return true;
    if (!ours(side))
      return fail(ErrorKind::contract, "{} {}: {}: {}", side.letter == 'i' ? "incumbent" : "baseline", side.program->name,
                  name_of(fault->error.kind), fault->error.message);
    fault->error.message = when + ": " + fault->error.message;
    out_.refusal = std::move(fault);
    return false;
  }

  // Loads and lets first-call work pass: one call for the program itself, one as it will be timed.
  Result<bool> start(Side& side) {
    auto id = load(session_, *side.program);
    if (!id) {
      if (!ours(side) || exit_code_of(id.error().kind) >= 3) return fail(id.error());
      out_.refusal = Refusal{verdict_of(id.error().kind), id.error()};
      return false;
    }
    side.id = *id;
    HONE_TRY(const bool first, call(side, false, "first call"));
    if (!first) return false;
    return call(side, true, "warm-up call");
  }

  // In the order of their letters. False: refused.
  Result<bool> start_all(std::vector<Side>& sides, const std::string& order) {
    for (const char letter : order)
      for (Side& side : sides)
        if (side.letter == letter) {
          HONE_TRY(const bool started, start(side));
          if (!started) return false;
        }
    return true;
  }

  Result<> warm_up_and_choose() {
    std::vector<Side> sides;
    for (const Program* program : job_.baselines) sides.push_back({'b', program});
    HONE_CHECK(fresh_data());
    for (Side& side : sides) HONE_CHECK(start(side));
    const double load_s = std::min(job_.task.timing.warmup_s, kWarmupShare * job_.timing_s);
    const double begin = job_.clock();
    do {
      for (Side& side : sides) HONE_CHECK(call(side, false, "warm-up call"));
      if (job_.cancelled()) break;
    } while (job_.clock() - begin < load_s);
    out_.warmup_s = job_.clock() - begin;

    std::vector<std::vector<double>> seconds(sides.size());
    const double choose_end = elapsed() + kChooseShare * job_.timing_s;
    for (int round = 0; sides.size() > 1 && round < kChooseRounds && (round == 0 || elapsed() < choose_end); ++round) {
      HONE_CHECK(fresh_data());
      std::vector<std::size_t> order(sides.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      shuffle(order);
      for (const std::size_t i : order) {
        HONE_CHECK(call(sides[i], true, ""));
        seconds[i].push_back(sides[i].seconds);
      }
    }
    if (sides.size() > 1)
      for (std::size_t i = 0; i < sides.size(); ++i) {
        out_.choice_s.push_back(median(seconds[i]));
        if (out_.choice_s[i] < out_.choice_s[out_.baseline]) out_.baseline = i;
      }
    out_.baseline_text = session_.describe(sides[out_.baseline].id);
    if (out_.baseline_text.empty()) out_.baseline_text = sides[out_.baseline].program->description;
    for (Side& side : sides) session_.unload(side.id);
    out_.cancelled = job_.cancelled();
    return {};
  }

  // The same program twice: what is left of a difference here is the machine's, not the candidate's.
  Result<> control() {
    std::vector<Side> sides = {{'b', job_.baselines[out_.baseline]}, {'a', job_.baselines[out_.baseline]}};
    std::string order = "ba";
    const double begin = elapsed(), share = kControlShare * job_.timing_s;
    std::size_t pairs = kControlRounds / 2;            // of a half
    for (const int half : {0, 1}) {
      if (job_.cancelled()) break;
      HONE_CHECK(fresh_data());
      if (half == 0) shuffle(order);
      else std::reverse(order.begin(), order.end());
      HONE_CHECK(start_all(sides, order));
      std::size_t done = 0;
      while (done < pairs && (half == 1 || done == 0 || elapsed() < begin + share / 2) && !job_.cancelled()) {
        HONE_CHECK(fresh_data());
        shuffle(sides);
        double log_ratio = 0;
        for (Side& side : sides) {
          HONE_CHECK(call(side, true, ""));
          log_ratio += (side.letter == 'b' ? 1 : -1) * std::log(side.seconds);
        }
        out_.control.x.push_back(log_ratio);
        out_.control.epoch.push_back(0);
        ++done;
      }
      for (Side& side : sides) session_.unload(side.id);
      pairs = done;
    }
    return {};
  }

  // Off the clock. False: refused.
  Result<bool> check_round(const std::vector<Side>& sides, int sample, bool oracle) {
    const Side* baseline = nullptr;
    const Side* candidate = nullptr;
    for (const Side& side : sides) {
      if (side.letter == 'b') baseline = &side;
      if (side.letter == 'c') candidate = &side;
    }
    HONE_TRY(auto refusal, checker_.check_between(candidate->id, baseline->id));
    if (refusal || oracle) {
      HONE_TRY(auto by_oracle, checker_.check(candidate->id, {}));
      ++out_.oracle_samples;
      if (refusal && !by_oracle) {
        // They disagree, yet the candidate is right.
        HONE_TRY(const auto wrong_baseline, checker_.check(baseline->id, {}));
        if (wrong_baseline)
          return fail(ErrorKind::contract, "task {}: baseline {} is wrong on workload {} in timed sample {}: {}", job_.task.name,
                      baseline->program->name, job_.workload.id, sample, wrong_baseline->error.message);
      }
      refusal = std::move(by_oracle);
    }
    if (!refusal) return true;
    if (!ours(*candidate))
      return fail(ErrorKind::contract, "task {}: baseline {} is wrong on workload {} in timed sample {}: {}", job_.task.name,
                  baseline->program->name, job_.workload.id, sample, refusal->error.message);
    refusal->error.message = fmt::format("timed sample {}: {}", sample, refusal->error.message);
    out_.refusal = std::move(refusal);
    return false;
  }

  // A program may count its calls and be right only while it must expect to be checked. False: refused.
  Result<bool> hard_round(std::vector<Side>& sides, int sample) {
    if (deck_.empty()) {
      deck_.resize(job_.task.input_sets.size() - 1);
      std::iota(deck_.begin(), deck_.end(), std::size_t{1});
      shuffle(deck_);
    }
    const InputSet& set = job_.task.input_sets[deck_.back()];
    deck_.pop_back();
    ++hard_rounds_;
    HONE_CHECK(checker_.fill({&set, data_seed_, data_call_++, fmt::format("input set {} among the timed calls", set.name)}));
    shuffle(sides);
    for (Side& side : sides) {
      HONE_TRY(const bool fine, call(side, true, fmt::format("near timed sample {}", sample)));
      if (!fine) return false;
    }
    return check_round(sides, sample, false);
  }

  bool oracle_due(int sample) {
    if (sample == obligatory_) return true;
    const double spent = std::max(checker_.oracle_s(), 1e-9) * (out_.oracle_samples + 1);
    return spent < kOracleShare * (job_.clock() - main_start_) && draw(8) == 0;
  }

  Result<> rounds() {
    const Program* baseline = job_.baselines[out_.baseline];
    std::vector<Side> sides = {{'b', baseline}, {'c', job_.candidate ? job_.candidate : baseline}};
    if (job_.incumbent) sides.push_back({'i', job_.incumbent});
    StoppingPolicy policy = policy_;
    // Quick budgets are so short that loading and choosing would eat them up: they count from here.
    const double left_s = job_.quick ? job_.timing_s : std::max(0.0, job_.timing_s - elapsed());
    policy.budget_s = policy.exact && !job_.hard_budget ? std::numeric_limits<double>::infinity() : left_s;
    main_start_ = job_.clock();
    obligatory_ = 1 + static_cast<int>(draw(static_cast<std::size_t>(std::max(1, std::min(policy.min_pairs, policy.exact.value_or(policy.min_pairs))))));
    const double half_s = std::max(0.05, left_s / kEpochsInBudget / 2);
    const int exact_half = policy.exact ? std::max(kHalfPairs, *policy.exact / 20) : kHalfPairs;
    const bool any_hard = job_.task.input_sets.size() > 1;
    int look = policy.min_pairs, in_half = 0, half_pairs = 0, hard_at = 0;
    std::uint32_t loads = 1;                           // odd: the first half of an epoch
    Stop ending = Stop::no;                            // why, as soon as the epoch is whole
    std::string order;
    for (const Side& side : sides) order += side.letter;
    double half_start = 0;

    for (int sample = 1; out_.stop == Stop::no; ++sample) {
      if (job_.cancelled()) {
        out_.cancelled = true;
        break;
      }
      // Quick measurements tell configurations apart, not processes: one load does.
      const bool first_half = loads % 2 == 1;
      const bool long_enough = policy.exact || (loads - 1) / 2 < kShortEpochs || job_.clock() - half_start > half_s;
      const bool over = !job_.quick && (first_half ? ending != Stop::no || (in_half >= exact_half && long_enough) : in_half >= half_pairs);
      if (sample == 1 || over) {
        if (sample > 1) {
          for (Side& side : sides) session_.unload(side.id);
          ++loads;
          half_pairs = in_half;
        }
        HONE_CHECK(fresh_data());
        if (loads % 2 == 1) shuffle(order);
        else std::reverse(order.begin(), order.end());
        HONE_TRY(const bool started, start_all(sides, order));
        if (!started) return {};
        in_half = 0;
        hard_at = loads % 2 == 1 ? static_cast<int>(draw(kHalfPairs)) : -1;
        half_start = job_.clock();
      }
      if (any_hard && (in_half == hard_at || draw(kHardOdds) == 0)) {
        HONE_TRY(const bool right, hard_round(sides, sample));
        if (!right) return {};
      }

      HONE_CHECK(fresh_data());
      shuffle(sides);
      RawPair pair;
      pair.call = data_call_ - 1;
      pair.epoch = (loads - 1) / 2;
      for (Side& side : sides) {
        HONE_TRY(const bool fine, call(side, true, fmt::format("timed sample {}", sample)));
        if (!fine) return {};
        pair.order += side.letter;
        if (side.letter == 'b') pair.baseline = side.seconds;
        if (side.letter == 'c') pair.candidate = side.seconds;
        if (side.letter == 'i') pair.incumbent = side.seconds;
      }
      HONE_TRY(const bool right, check_round(sides, sample, oracle_due(sample)));
      if (!right) return {};
      record(pair);
      ++in_half;

      const double passed = job_.clock() - main_start_;
      Estimate seen;
      if (sample >= look && !policy.exact) {
        const double begin = now_s();
        seen = estimate(job_.incumbent ? out_.incumbent_ratio : out_.ratio, derive_seed(job_.seed, "look", static_cast<std::uint64_t>(sample)), kLookReplicates);
        out_.statistics_s += now_s() - begin;
        look = next_look(sample);
        job_.progress(fmt::format("timing, {} samples, {:.3f}x", sample, std::exp(seen.x)));
      }
      if (ending == Stop::no) ending = judge_look(policy, sample, seen, passed, passed / sample);
      const bool whole = loads % 2 == 0 && in_half == half_pairs;
      if (whole || job_.quick || ending == Stop::exact || ending == Stop::max_pairs) out_.stop = ending;
      if (out_.stop != Stop::no && out_.oracle_samples == 0) {
        HONE_TRY(const bool last_right, check_round(sides, sample, true));
        if (!last_right) return {};
      }
    }
    // Each of them at least once: which ones were dealt before was chance.
    while (!job_.quick && !out_.cancelled && hard_rounds_ + 1 < job_.task.input_sets.size()) {
      HONE_TRY(const bool right, hard_round(sides, static_cast<int>(out_.raw.size())));
      if (!right) return {};
    }
    for (Side& side : sides) session_.unload(side.id);
    return {};
  }

  void record(const RawPair& pair) {
    out_.raw.push_back(pair);
    out_.ratio.x.push_back(std::log(pair.baseline / pair.candidate));
    out_.ratio.epoch.push_back(pair.epoch);
    if (pair.incumbent) {
      out_.incumbent_ratio.x.push_back(std::log(*pair.incumbent / pair.candidate));
      out_.incumbent_ratio.epoch.push_back(pair.epoch);
    }
  }

  const WorkloadJob& job_;
  Session& session_;
  Checker& checker_;
  const StoppingPolicy policy_;
  const std::uint64_t data_seed_, order_seed_;
  const double start_;
  double main_start_ = 0;
  std::uint64_t draws_ = 0;
  std::uint32_t data_call_ = 0;
  int obligatory_ = 1;
  std::vector<std::size_t> deck_;        // hard input sets still to be dealt
  std::size_t hard_rounds_ = 0;
  Timing out_;
};

}  // namespace

StoppingPolicy stopping_policy(const WorkloadJob& job) {
  const TimingPolicy& timing = job.task.timing;
  StoppingPolicy out;
  out.min_pairs = timing.min_pairs;
  out.max_pairs = timing.max_pairs;
  out.target_halfwidth = timing.target_halfwidth;
  out.min_effect = timing.min_effect;
  out.budget_s = job.timing_s;
  out.exact = job.samples;
  if (job.quick) {
    out.min_pairs = std::min(out.min_pairs, 7);
    out.target_halfwidth = std::max(out.target_halfwidth, 0.02);
  }
  return out;
}

Result<Timing> time_workload(const WorkloadJob& job, Session& session, Checker& checker) {
  return TimingLoop(job, session, checker).run();
}

}  // namespace hone
