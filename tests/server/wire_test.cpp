#include "wire/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/testing.h"

namespace hone::wire {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Candidate kernel_of_ours(const char* path) { return load_candidate(testing::source_dir() / "kernels" / path).value(); }

TEST(Wire, ACandidateArrivesWithItsHash) {
  for (const char* path : {"softmax_f32/pipelined", "grouped_gemm_f32/tiled"}) {
    const Candidate candidate = kernel_of_ours(path);
    const auto again = candidate_from_json(json::parse(candidate_json(candidate).dump()));
    HONE_ASSERT_OK(again);
    EXPECT_EQ(again->sha256, candidate.sha256) << path;
    EXPECT_EQ(again->name, candidate.name);
  }
}

TEST(Wire, AChosenConfigurationArrivesWithItsHash) {
  const Candidate candidate = kernel_of_ours("grouped_gemm_f32/tiled");
  ASSERT_FALSE(candidate.parameters.empty());
  int tried = 0;
  for (const TunableParameter& parameter : candidate.parameters)
    for (const std::string& value : parameter.values) {
      const auto chosen = candidate.with({{parameter.name, value}});
      if (!chosen) continue;               // a constraint forbids it
      ++tried;
      EXPECT_EQ(candidate_from_json(candidate_json(*chosen)).value().sha256, chosen->sha256) << parameter.name << "=" << value;
    }
  EXPECT_GT(tried, 5);
}

TEST(Wire, BytesThatAreNoTextArrive) {
  Candidate candidate = kernel_of_ours("softmax_f32/pipelined");
  candidate.sources["table.bin"] = std::string("\xff\x00\x80z", 4);
  candidate = candidate.with({}).value();
  EXPECT_EQ(candidate_from_json(candidate_json(candidate)).value().sources, candidate.sources);
}

TEST(Wire, ARequestArrivesWhole) {
  const Task task = load_task((testing::source_dir() / "tasks/softmax_f32").string()).value();
  JudgeRequest request;
  request.candidate = kernel_of_ours("softmax_f32/pipelined");
  request.workloads = {"small", "odd"};
  request.seed = UINT64_MAX;
  request.samples = 7;
  request.time_budget_s = 1.5;
  request.memory_bytes = 1 << 20;
  request.baselines = {{"small", "onednn"}};
  request.quick = true;
  const json body = bench_request(task, request);
  HONE_ASSERT_OK(check_job({{"kind", "bench"}, {"request", body}}));
  const auto again = judge_request_from(body);
  HONE_ASSERT_OK(again);
  EXPECT_EQ(bench_request(task, *again), body);
}

TEST(Wire, WhatIsNoFileNameIsRefused) {
  for (const char* name : {"", "/etc/passwd", "../x", "a/../../b", ".hidden", "a/.git/config", "a//b", "a/./b", "a\\b", "a\nb", "a/"}) {
    const auto candidate = candidate_from_json({{"name", "c"}, {"files", {{name, "x"}, {"kernel.cpp", "x"}, {"plan.cpp", "x"}}}});
    HONE_EXPECT_ERROR(candidate, contract);
    if (candidate) continue;
    EXPECT_THAT(candidate.error().message, HasSubstr("no name of a file")) << name;
  }
  HONE_EXPECT_ERROR(candidate_from_json({{"name", "c"}, {"files", {{"kernel.cpp", {{"hex", "0"}}}}}}), contract);
  HONE_EXPECT_ERROR(candidate_from_json({{"name", "c"}, {"files", {{"kernel.cpp", {{"sha256", "0"}}}}}}), contract);
  HONE_EXPECT_ERROR(candidate_from_json({{"name", "c"}, {"files", {{"kernel.cpp", "x"}}}}), contract);
}

TEST(Wire, MistakesOfAJobAreNamed) {
  const std::pair<json, const char*> cases[] = {
      {{{"kind", "bench"}}, "request"},
      {{{"kind", "benhc"}, {"request", json::object()}}, "kind"},
      {{{"kind", "bench"}, {"request", json::object()}}, "task"},
      {{{"kind", "bench"}, {"request", {{"task", "../x"}}}}, "task"},
      {{{"kind", "bench"}, {"request", {{"task", "t"}, {"sampels", 3}}}}, "sampels"},
      {{{"kind", "bench"}, {"request", {{"task", "t"}, {"seed", -1}}}}, "seed"},
      {{{"kind", "compile"}, {"request", {{"task", "t"}}}}, "candidate"},
      {{{"kind", "exec"}, {"request", {{"argv", json::array()}}}}, "argv"},
      {json::array(), ""},
  };
  for (const auto& [body, what] : cases) {
    const auto checked = check_job(body);
    HONE_EXPECT_ERROR(checked, contract);
    if (checked) continue;
    EXPECT_THAT(checked.error().message, HasSubstr(what)) << body;
  }
}

}  // namespace
}  // namespace hone::wire
