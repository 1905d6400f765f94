// One workload judged on the scripted device: what is refused, why, and what is written down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "judge/statistics.h"
#include "judge/toy.h"

namespace hone::testing {
namespace {

using ::testing::HasSubstr;

std::string kind_of(const WorkloadOutcome& outcome) {
  return outcome.report.error ? std::string(name_of(outcome.report.error->kind)) : "none";
}
std::string all_text(const WorkloadOutcome& outcome) {
  std::string out = outcome.report.error ? to_text(*outcome.report.error) : "";
  for (const std::string& note : outcome.report.notes) out += "\n" + note;
  return out;
}

TEST(Workload, HonestPasses) {
  Toy toy;
  toy.script(honest, 0.5e-3);
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(outcome.report.verdict, Verdict::pass) << all_text(outcome);
  EXPECT_NEAR(*outcome.report.ratio, 2, 0.05);
  EXPECT_LT(outcome.report.ratio_ci->low, *outcome.report.ratio);
  EXPECT_GT(outcome.report.ratio_ci->high, *outcome.report.ratio);
  EXPECT_EQ(outcome.report.baseline, "base");
  EXPECT_EQ(outcome.facts["baseline"]["describe"], "base 1.0");
  EXPECT_GE(outcome.facts["oracle_samples"].get<int>(), 1);
}

// C01: NaN compares false with everything.
TEST(Workload, NonFiniteInTheLastValidRow) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Toy toy;
    toy.script([bad](FakeCall& call) {
      honest(call);
      for (std::int64_t i = 0; i < kColumns; ++i) call.out<float>("y")[(kRows - 1) * kPitch + i] = bad;
    });
    const WorkloadOutcome outcome = toy.judge();
    EXPECT_EQ(outcome.report.verdict, Verdict::fail);
    EXPECT_EQ(kind_of(outcome), "non_finite");
    EXPECT_THAT(outcome.report.error->message, HasSubstr("16 of 112"));
    EXPECT_THAT(outcome.report.error->message, HasSubstr("(group 1, row 3, column 0)"));
    EXPECT_FALSE(outcome.ratio || outcome.report.ratio || outcome.report.candidate_s);
    EXPECT_EQ(toy.device.count("timed"), 0u);
  }
}

TEST(Workload, NonFiniteInPaddingIsNobodysBusiness) {
  Toy toy;
  toy.script([](FakeCall& call) {
    honest(call);
    call.out<float>("y")[3 * kPitch] = std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_EQ(toy.judge().report.verdict, Verdict::pass);
}

// C02: nothing is written, though right answers lie around in every other program's buffers.
TEST(Workload, NotWritten) {
  Toy toy;
  toy.script([](FakeCall&) {});
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(outcome.report.verdict, Verdict::fail);
  EXPECT_EQ(kind_of(outcome), "not_written");
  EXPECT_THAT(outcome.report.error->message, HasSubstr("output not written: 112 of 112"));
}

// C16: both facts in the message.
TEST(Workload, WrongPitchNamesBothFacts) {
  Toy toy;
  FakeProgram program;
  program.run = [](FakeCall& call) {
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) call.out<float>("y")[i] = 2 * call.in<float>("x")[i];
  };
  program.damage = {{"y", 4 * kColumns, 16}};
  toy.device.script("candidate", program);
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(outcome.report.verdict, Verdict::fail);
  EXPECT_EQ(kind_of(outcome), "out_of_bounds");
  EXPECT_THAT(outcome.report.error->message, HasSubstr("first at byte 64 = element 16 (between rows: row 0, offset 16"));
  EXPECT_THAT(all_text(outcome), HasSubstr("(group 0, row 1, column 0)"));
}

TEST(Workload, GuardsAloneRefuse) {
  Toy toy;
  FakeProgram program;
  program.run = honest;
  program.damage = {{"y", -8, 8}};
  toy.device.script("candidate", program);
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(kind_of(outcome), "out_of_bounds");
  EXPECT_THAT(outcome.report.error->message, HasSubstr("before its start"));
}

TEST(Workload, ModifiedInput) {
  Toy toy;
  FakeProgram program;
  program.run = honest;
  program.modifies_inputs = true;
  toy.device.script("candidate", program);
  EXPECT_EQ(kind_of(toy.judge()), "input_modified");
}

TEST(Workload, TrivialOutputs) {
  Toy toy;
  toy.script([](FakeCall& call) {
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t i = 0; i < kColumns; ++i) call.out<float>("y")[row * kPitch + i] = call.in<float>("x")[row * kColumns + i];
  });
  EXPECT_THAT(all_text(toy.judge()), HasSubstr("equals the input x"));
  toy.script([](FakeCall& call) {
    for (std::int64_t i = 0; i < kSpan; ++i) call.out<float>("y")[i] = 0;
  });
  EXPECT_THAT(all_text(toy.judge()), HasSubstr("trivial output"));
}

TEST(Workload, OutputMustFollowTheInput) {
  Toy toy;
  toy.task.gates["y"] = {"abs", 5, 0};                 // so weak that any bounded output passes ...
  toy.code.scale = 4;                                  // ... but zeros do not
  toy.script([](FakeCall& call) {
    for (std::int64_t i = 0; i < kSpan; ++i) call.out<float>("y")[i] = i % 2 == 0 ? 0.25f : -0.25f;
  });
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(outcome.report.verdict, Verdict::fail);
}

TEST(Workload, FaultsAreErrors) {
  for (const ErrorKind kind : {ErrorKind::crash, ErrorKind::timeout, ErrorKind::out_of_memory, ErrorKind::output_limit, ErrorKind::forbidden}) {
    Toy toy;
    toy.script([kind](FakeCall& call) { call.fault = make_error(kind, "boom"); });
    const WorkloadOutcome outcome = toy.judge();
    EXPECT_EQ(outcome.report.verdict, Verdict::error);
    EXPECT_EQ(kind_of(outcome), name_of(kind));
  }
  Toy toy;
  toy.script([](FakeCall& call) { call.fault = make_error(ErrorKind::late_work, "threads went on"); });
  EXPECT_EQ(toy.judge().report.verdict, Verdict::fail);
}

TEST(Workload, FlakyWhenTwoFreshProcessesDisagree) {
  for (const int wrong_call : {0, 1}) {
    Toy toy;
    auto calls = std::make_shared<int>(0);
    toy.script([=](FakeCall& call) {
      honest(call);
      if ((*calls)++ == wrong_call) call.out<float>("y")[0] += 1;
    });
    const WorkloadOutcome outcome = toy.judge();
    EXPECT_EQ(outcome.report.verdict, Verdict::flaky) << wrong_call;
    EXPECT_EQ(kind_of(outcome), "wrong_result");
  }
}

TEST(Workload, HardInputsAreJudged) {
  Toy toy;
  toy.script([](FakeCall& call) {
    honest(call);
    if (call.in<float>("x")[0] == 1 && call.in<float>("x")[1] == 1) call.out<float>("y")[0] = 3;
  });
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(outcome.report.verdict, Verdict::fail);
  EXPECT_THAT(all_text(outcome), HasSubstr("input set ones"));
}

// C66: right on its first call only; correctness sees first calls, so a timed output must tell.
TEST(Workload, RightOnTheFirstCallOnlyFailsOnATimedOutput) {
  Toy toy;
  toy.script([](FakeCall& call) {
    honest(call);
    if (call.number > 1) call.out<float>("y")[0] += 1;
  });
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(outcome.report.verdict, Verdict::fail);
  EXPECT_THAT(outcome.report.error->message, HasSubstr("timed sample 1:"));
  EXPECT_FALSE(outcome.report.ratio);
}

TEST(Workload, WrongLateInTheTimingNamesTheSample) {
  Toy toy;
  toy.script([](FakeCall& call) {
    honest(call);
    if (call.number == 6) call.out<float>("y")[4 * kPitch + 2] += 1;      // a first call, a warm-up call, then samples and a hard round
  });
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_THAT(outcome.report.error->message, HasSubstr("timed sample 3:"));
  EXPECT_THAT(outcome.report.error->message, HasSubstr("(group 1, row 0, column 2)"));
  EXPECT_EQ(outcome.report.samples, 2);
}

// C66 A: y <- y + x, restored before each call.
TEST(Workload, PersistentTensorsAreFreshForEachCall) {
  Toy toy;
  auto& tensors = toy.task.workloads[0].tensors;
  tensors[1] = {"y", DType::f32, TensorRole::persistent, {kRows, kColumns}, {kColumns, 1}};
  const auto update = [](FakeCall& call) {
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) call.out<float>("y")[i] += call.in<float>("x")[i];
  };
  FakeProgram base;
  base.time = {.seconds = 1e-3, .jitter = 0.01};
  base.run = update;
  toy.device.script("base", base);
  toy.script(update);
  EXPECT_EQ(toy.judge().report.verdict, Verdict::pass) << all_text(toy.judge());
  toy.script([&](FakeCall& call) {                      // skips the update from the second call on
    if (call.number == 1) update(call);
  });
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(outcome.report.verdict, Verdict::fail);
  EXPECT_THAT(outcome.report.error->message, HasSubstr("timed sample"));
}

// C08: order shuffled, warm-up in time.
TEST(Workload, SidesAreShuffledAndWarmedUpByTime) {
  Toy toy;
  toy.script(honest);
  toy.device.set_call_overhead(0);
  WorkloadJob job = toy.job();
  job.samples = 60;
  job.timing_s = 10;
  const auto outcome = judge_workload(job);
  ASSERT_TRUE(outcome);
  int first = 0;
  for (const RawPair& pair : outcome->report.raw) {
    EXPECT_TRUE(pair.order == "bc" || pair.order == "cb");
    first += pair.order == "bc";
  }
  EXPECT_GT(first, 15);
  EXPECT_LT(first, 45);
  EXPECT_GE(outcome->report.warmup_s, toy.task.timing.warmup_s);
  EXPECT_GE(toy.device.count("load", "candidate"), 5u) << "several processes";
  std::set<std::uint32_t> data;
  for (const RawPair& pair : outcome->report.raw) data.insert(pair.call);
  EXPECT_EQ(data.size(), 60u) << "fresh data for each round";
}

// C11: what is printed is the median of what is recorded.
TEST(Workload, MediansAndCountsAreThoseOfTheRawSamples) {
  for (const int samples : {5, 50}) {
    Toy toy;
    toy.script(honest, 2e-3, 0.2);
    WorkloadJob job = toy.job();
    job.samples = samples;
    const auto outcome = judge_workload(job);
    ASSERT_TRUE(outcome);
    const WorkloadReport& report = outcome->report;
    EXPECT_EQ(report.samples, samples);
    ASSERT_EQ(report.raw.size(), static_cast<std::size_t>(samples));
    std::vector<double> seconds;
    for (const RawPair& pair : report.raw) seconds.push_back(pair.candidate);
    EXPECT_EQ(*report.candidate_s, median(seconds));
    EXPECT_EQ(report.ratio_ci.has_value(), samples >= toy.task.timing.min_pairs);
    EXPECT_TRUE(report.ratio && std::isfinite(*report.ratio));
  }
}

// C09: a noisy kernel ends in its budget, with a finite interval and a note.
TEST(Workload, NoiseEndsWithTheBudget) {
  for (const double budget : {10.0, 0.05}) {
    Toy toy;
    toy.device.set_call_overhead(5e-3);
    toy.script(honest, 1e-3, 0.3);
    WorkloadJob job = toy.job();
    job.timing_s = budget;
    const double begin = toy.device.clock();
    const auto outcome = judge_workload(job);
    ASSERT_TRUE(outcome);
    EXPECT_LE(toy.device.clock() - begin, budget + 2);
    EXPECT_EQ(outcome->report.verdict, Verdict::pass);
    EXPECT_EQ(outcome->facts["stop"], "time budget");
    EXPECT_EQ(outcome->report.notes.empty(), false);
    if (budget < 1) {
      EXPECT_FALSE(outcome->report.ratio_ci || outcome->ratio);
      EXPECT_GE(outcome->report.samples, 1);
    } else {
      EXPECT_THAT(outcome->report.notes.back(), HasSubstr("interval +-"));
    }
  }
}

// C15: one workload asks for more than there may be.
TEST(Workload, MemoryLimitNamesLimitAndNeed) {
  Toy toy;
  toy.script(honest);
  WorkloadJob job = toy.job();
  job.memory_bytes = 512;
  const auto outcome = judge_workload(job);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->report.verdict, Verdict::error);
  EXPECT_EQ(kind_of(*outcome), "out_of_memory");
  EXPECT_THAT(outcome->report.error->message, HasSubstr("512"));
  EXPECT_EQ(toy.device.count("open"), 0u);
}

TEST(Workload, FasterThanPhysicallyPossible) {
  Toy toy;
  toy.device.change_info().peak_bytes = 1e6;            // 1000 bytes: 1 ms
  toy.device.script("base", {.time = {.seconds = 2e-3}, .run = honest, .damage = {}, .describe = "", .load_error = {}});
  toy.script(honest, 0.5e-3, 0);
  const WorkloadOutcome outcome = toy.judge();
  EXPECT_EQ(outcome.report.verdict, Verdict::fail);
  EXPECT_THAT(outcome.report.error->message, HasSubstr("faster than physically possible: 500.00 us < floor 1000.00 us"));
}

TEST(Workload, AFloorAboveTheBaselineIsTheFloorsFault) {
  Toy toy;
  toy.device.change_info().peak_bytes = 1e6;
  toy.script(honest, 0.5e-3, 0);
  const WorkloadOutcome outcome = toy.judge();          // the baseline takes 1 ms: at the floor
  Toy lower;
  lower.device.change_info().peak_bytes = 1e5;
  lower.script(honest, 0.5e-3, 0);
  const WorkloadOutcome noted = lower.judge();
  EXPECT_EQ(noted.report.verdict, Verdict::pass);
  EXPECT_THAT(all_text(noted), HasSubstr("physical floor"));
}

TEST(Workload, TheFasterBaselineCounts) {
  Toy toy;
  toy.device.script("fast", {.time = {.seconds = 0.6e-3, .jitter = 0.01}, .run = honest, .damage = {}, .describe = "fast 2", .load_error = {}});
  const Program fast{"fast", NativeBaseline{"fast", "fast.so"}, 0};
  toy.script(honest, 0.6e-3);
  WorkloadJob job = toy.job();
  job.baselines.push_back(&fast);
  const auto outcome = judge_workload(job);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->report.baseline, "fast");
  EXPECT_NEAR(*outcome->report.ratio, 1, 0.02);
}

TEST(Workload, AWrongBaselineIsTheTasksFault) {
  Toy toy;
  toy.device.script("base", {.time = {}, .run = [](FakeCall& call) { honest(call); call.out<float>("y")[0] += 1; }, .damage = {}, .describe = "", .load_error = {}});
  toy.script(honest);
  const auto outcome = judge_workload(toy.job());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::contract);
  EXPECT_THAT(outcome.error().message, HasSubstr("baseline base fails workload w"));
}

// C04: a gate that zeros satisfy measures nothing.
TEST(Workload, AGateThatZerosPassIsRefused) {
  Toy toy;
  toy.code.scale = 1e-40;
  toy.task.gates["y"] = {"abs", 0.1, 0};
  toy.script(honest);
  const auto outcome = judge_workload(toy.job());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::contract);
  EXPECT_THAT(outcome.error().message, HasSubstr("all-zero output passes the gate on workload w"));
  EXPECT_THAT(outcome.error().message, HasSubstr("the limit 0.1"));
}

TEST(Workload, IncumbentDecidesAndIsTimedInTheSameRounds) {
  Toy toy;
  toy.device.script("incumbent", {.time = {.seconds = 0.8e-3, .jitter = 0.01}, .run = honest, .damage = {}, .describe = "", .load_error = {}});
  toy.script(honest, 0.5e-3);
  WorkloadJob job = toy.job();
  job.incumbent = &toy.incumbent;
  const auto outcome = judge_workload(job);
  ASSERT_TRUE(outcome);
  EXPECT_NEAR(*outcome->report.incumbent_ratio, 1.6, 0.05);
  EXPECT_NEAR(*outcome->report.ratio, 2, 0.05);
  EXPECT_TRUE(outcome->incumbent_ratio);
  for (const RawPair& pair : outcome->report.raw) {
    EXPECT_EQ(pair.order.size(), 3u);
    EXPECT_TRUE(pair.incumbent);
  }
}

// C08: on an H200 two loads of one kernel of 20 us differed by 1%, by their order.
TEST(Workload, TheOrderOfLoadingIsNotInTheRatio) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Toy toy;
    toy.device.set_first_load_penalty(0.01);
    toy.device.script("base", {.time = {.seconds = 1e-3, .jitter = 1e-4}, .run = honest, .damage = {}, .describe = "", .load_error = {}});
    toy.script(honest, 1e-3, 1e-4);
    WorkloadJob job = toy.job();
    job.seed = seed;
    const auto outcome = judge_workload(job);
    ASSERT_TRUE(outcome);
    EXPECT_NEAR(*outcome->report.ratio, 1, 1e-3) << "seed " << seed;
    std::map<std::uint32_t, int> pairs;
    for (const RawPair& pair : outcome->report.raw) pairs[pair.epoch] += pair.baseline > pair.candidate ? 1 : -1;
    for (const auto& [epoch, balance] : pairs) EXPECT_EQ(balance, 0) << "epoch " << epoch;
  }
}

TEST(Workload, TheBaselineItselfPasses) {
  Toy toy;
  WorkloadJob job = toy.job();
  job.candidate = nullptr;
  const auto outcome = judge_workload(job);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->report.verdict, Verdict::pass);
  EXPECT_NEAR(*outcome->report.ratio, 1, 0.02);
}

nlohmann::json seen(std::vector<std::string> throttle, int processes) {
  return {{"samples", 40}, {"throttle", std::move(throttle)}, {"processes", {{"least", 1}, {"most", processes}}}};
}

bool says(const WorkloadOutcome& out, const std::string& note) {
  return std::find(out.report.notes.begin(), out.report.notes.end(), note) != out.report.notes.end();
}

TEST(Workload, WhatHeldTheDeviceBackIsSaid) {
  Toy toy;
  toy.device.set_conditions({seen({"power cap", "hardware thermal"}, 2)});
  toy.script(honest, 0.5e-3);
  const WorkloadOutcome out = toy.judge();
  EXPECT_EQ(out.facts.at("conditions").at("samples"), 40);
  EXPECT_TRUE(says(out, "the device was held back: power cap, hardware thermal"));
  EXPECT_TRUE(says(out, "another process was on the device"));
}

TEST(Workload, ADisturbedMeasurementIsRepeatedOnce) {
  for (const auto& [first, why] : {std::pair{seen({}, 2), "another process was on the device"},
                                   std::pair{seen({"software thermal"}, 1), "the device was held back: software thermal"}}) {
    Toy toy;
    toy.script(honest, 0.5e-3);
    toy.device.set_conditions({first, seen({}, 1)});
    const WorkloadOutcome out = toy.judge();
    EXPECT_EQ(toy.device.count("open"), 2u);
    EXPECT_EQ(out.report.notes, std::vector<std::string>{std::string("measured twice: at first ") + why});
    EXPECT_EQ(out.facts.at("disturbed").at("conditions"), first);
    EXPECT_NE(out.facts.at("disturbed").at("seed"), out.facts.at("seed"));
  }
}

TEST(Workload, CtrlCWhileMeasuringAgainKeepsTheFirstMeasurement) {
  Toy toy;
  toy.script(honest, 0.5e-3);
  toy.device.set_conditions({seen({}, 2), seen({}, 1)});
  std::atomic<bool> cancel = false;
  WorkloadJob job = toy.job();
  job.cancel = &cancel;
  job.progress = [&](const std::string& text) { cancel = cancel || text.find("measuring again") != std::string::npos; };
  const auto outcome = judge_workload(job);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->report.verdict, Verdict::pass);
  EXPECT_TRUE(outcome->report.ratio_ci);
  EXPECT_THAT(outcome->report.notes.back(), HasSubstr("measuring again ended early"));
}

TEST(Workload, UndisturbedAndQuickMeasurementsAreNotRepeated) {
  for (const bool quick : {false, true}) {
    Toy toy;
    toy.script(honest, 0.5e-3);
    toy.device.set_conditions({seen({"power cap"}, quick ? 2 : 1)});
    WorkloadJob job = toy.job();
    job.quick = quick;
    ASSERT_TRUE(judge_workload(job));
    EXPECT_EQ(toy.device.count("open"), 1u);
  }
}

TEST(Workload, CancelKeepsWhatWasMeasured) {
  Toy toy;
  std::atomic<bool> cancel = false;
  auto calls = std::make_shared<int>(0);
  toy.script([&cancel, calls](FakeCall& call) {
    honest(call);
    if (call.timed && ++*calls == 10) cancel = true;
  });
  WorkloadJob job = toy.job();
  job.cancel = &cancel;
  const auto outcome = judge_workload(job);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(kind_of(*outcome), "cancelled");
  EXPECT_GT(outcome->report.samples, 3);
  EXPECT_TRUE(outcome->report.candidate_s);
  EXPECT_FALSE(outcome->ratio);
}

TEST(Workload, QuickJudgesLessAndStillRefuses) {
  Toy toy;
  toy.script(honest);
  WorkloadJob job = toy.job();
  job.quick = true;
  ASSERT_EQ(judge_workload(job)->report.verdict, Verdict::pass);
  toy.script([](FakeCall& call) {
    honest(call);
    if (call.timed) call.out<float>("y")[0] += 1;
  });
  EXPECT_EQ(judge_workload(job)->report.verdict, Verdict::fail);
}

TEST(Workload, SeedsOfPurposesDiffer) {
  std::set<std::uint64_t> seen;
  for (const char* purpose : {"a", "b", "ab", "ba", ""})
    for (std::uint64_t i = 0; i < 100; ++i) seen.insert(derive_seed(7, purpose, i));
  EXPECT_EQ(seen.size(), 500u);
}

}  // namespace
}  // namespace hone::testing
