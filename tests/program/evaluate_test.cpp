#include <cstring>
#include <nlohmann/json.hpp>

#include "program/candidate.h"
#include "toolchain/toolchain_fixture.h"

namespace hone::testing {
namespace {

// One plan for all cases, so that it is compiled once; parameter CASE says what it does.
const char* const kPlan = R"(#include <hone/plan.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include "sizes.h"
namespace {
struct Early { Early() { std::puts("\x1eplan 0 {}"); std::fflush(stdout); } } early;
int down(int n) { volatile char c[4096]; c[0] = static_cast<char>(n); return n < 0 ? 0 : down(n + 1) + c[0]; }
void everything(const hone::Problem& problem, hone::Plan& plan) {
  const auto& x = problem.tensor("x");
  auto one = plan.module("kernel.cpp", {{"TILE", problem.param("TILE")}, {"ORDER", problem.param_text("ORDER")}});
  auto same = plan.module("kernel.cpp", {{"TILE", 8}, {"ORDER", "rows"}});
  auto two = plan.module("kernel.cpp");
  auto packed = plan.workspace("packed", x.strides[0] * x.shape[0], true);
  auto map = plan.tensor_map("mx", x, {{8, 8}, {16, 1}, "128B", "none", "nan"});
  plan.memset(packed, 255);
  plan.memset(problem.tensor("y"), 7);
  plan.launch(one, "k<4>", {hone::ceil_div(problem.axis("M"), tile()), 2, 3}, {32, 2})
      .args(x, packed, map, std::int32_t{-5}, 7u, std::int64_t{-6}, std::uint64_t{18446744073709551615ull}, 1.5f, -0.0)
      .shared(1024).cluster({2, 1, 1}).cooperative().programmatic_dependent_launch().max_registers(64);
  plan.launch(same, "k\"\\\x01", {1});
  plan.launch(two, "j", {1});
  if (x.alignment != 128 || x.dtype != "bf16" || x.role != "input") throw 1;
  if (problem.workers != 3 || problem.device != "cpu") throw 2;
}
}
void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto which = problem.param_text("CASE");
  const auto m = problem.axis("M");
  if (which == "everything") return everything(problem, plan);
  if (which == "throws") {
    if (m == 100) problem.axis("N");
    if (m == 101) problem.tensor("z");
    if (m == 102) problem.param("ORDER");
    if (m == 103) throw hone::Unsupported("M must be even\n\x1bX");
    if (m == 104) throw 5;
    if (m == 105) throw std::runtime_error("own words");
    if (m == 106) std::free(::operator new(std::size_t{1} << 40));
  }
  if (which == "crash" && m == 101) *static_cast<volatile int*>(nullptr) = 1;
  if (which == "endless" && m == 100) for (volatile int i = 0;; i = i + 1) {}
  if (which == "leave" && m == 102) std::exit(0);
  if (which == "abort") std::abort();
  if (which == "deep" && down(1) == 7) return;
  if (which == "print") {
    std::printf("\n\x1eplan 0 {}\n\x1eplan 1 {}\n");
    std::puts("hello");
    std::fflush(stdout);
    if (write(1, "\x1e", 1) != 1) throw 1;
  }
  if (which == "flood" && m == 100) for (;;) if (write(1, plan.json().data(), 60) < 0) break;
  if (which == "huge" && m == 101) for (int i = 0; i < 20000; ++i) plan.launch(plan.module("kernel.cpp"), "k", {1});
  if (which == "escape") {
    for (const char* path : {"/etc/passwd", "/proc/self/environ", "/bin/sh"})
      if (std::fopen(path, "r") != nullptr) throw std::runtime_error(path);
    if (m == 101) fork();
    if (m == 102) socket(2, 1, 0);
  }
  plan.launch(plan.module("kernel.cpp"), "k", {m});
}
)";

class Evaluate : public ToolchainTest {
 protected:
  void SetUp() override {
    ToolchainTest::SetUp();
    if (IsSkipped()) return;
    static const fs::path shared = scratch("plans");
    auto toolchain = Toolchain::create(*sandbox_, shared, include_);
    HONE_ASSERT_OK(toolchain);
    toolchain_.emplace(*std::move(toolchain));
  }

  // Evaluated for workloads w0, w1, ... with M = 100, 101, ...
  Result<std::vector<Result<Plan>>> plans(const std::string& which, std::size_t count = 3,
                                          const std::string& source = kPlan) {
    Candidate candidate;
    candidate.name = "c";
    candidate.values = {{"TILE", "8"}, {"ORDER", "rows"}, {"CASE", which}};
    candidate.sources = {{"kernel.cpp", ""}, {"sizes.h", "inline int tile() { return 4; }\n"}, {"plan.cpp", source}};
    std::vector<ProblemShape> problems;
    for (std::size_t i = 0; i < count; ++i) {
      ProblemShape problem;
      problem.workload = fmt::format("w{}", i);
      problem.device = "cpu";
      problem.workers = 3;
      problem.axes = {{"M", 100 + static_cast<std::int64_t>(i)}};
      problem.tensors = {{"x", DType::bf16, TensorRole::input, {5, 7}, {16, 1}, 128},
                         {"y", DType::f32, TensorRole::output, {5}, {1}, 64}};
      problems.push_back(std::move(problem));
    }
    return evaluate_plans(candidate, problems, *toolchain_, *sandbox_);
  }

  static std::string says(const Result<Plan>& plan) {
    return plan ? "ok" : std::string(name_of(plan.error().kind)) + ": " + plan.error().message;
  }
};

TEST_F(Evaluate, EverythingThatAPlanCanSayArrives) {
  const auto result = plans("everything", 1);
  HONE_ASSERT_OK(result);
  ASSERT_EQ(result->size(), 1u);
  HONE_ASSERT_OK((*result)[0]);
  const Plan& plan = *(*result)[0];
  ASSERT_EQ(plan.modules.size(), 2u) << "equal calls share a module";
  EXPECT_EQ(plan.modules[0].defines,
            (std::vector<std::pair<std::string, std::string>>{{"TILE", "8"}, {"ORDER", "rows"}}));
  EXPECT_EQ(plan.workspaces.at(0).bytes, 80);
  EXPECT_TRUE(plan.workspaces.at(0).zeroed);
  EXPECT_EQ(plan.tensor_maps.at(0).swizzle, "128B");
  ASSERT_EQ(plan.launches.size(), 5u);
  EXPECT_EQ(std::get<PlanMemset>(plan.launches[0]).value, 255);
  EXPECT_EQ(std::get<PlanMemset>(plan.launches[1]).tensor, "y");
  EXPECT_EQ(plan.modules[1].line, 14);
  EXPECT_EQ(plan.workspaces[0].line, 15);
  EXPECT_EQ(plan.tensor_maps[0].line, 16);
  EXPECT_EQ(std::get<PlanMemset>(plan.launches[1]).line, 18);
  EXPECT_EQ(std::get<PlanLaunch>(plan.launches[3]).line, 22);
  const auto& launch = std::get<PlanLaunch>(plan.launches[2]);
  EXPECT_EQ(launch.grid, (Extent3{25, 2, 3}));
  EXPECT_EQ(launch.block, (Extent3{32, 2, 1}));
  EXPECT_EQ(launch.cluster, (Extent3{2, 1, 1}));
  EXPECT_EQ(launch.shared_bytes, 1024);
  EXPECT_EQ(launch.max_registers, 64);
  EXPECT_TRUE(launch.cooperative && launch.programmatic_dependent_launch);
  std::vector<std::string> kinds;
  for (const PlanArg& arg : launch.args) kinds.emplace_back(name_of(arg.kind));
  EXPECT_EQ(kinds,
            (std::vector<std::string>{"tensor", "workspace", "tensor_map", "i32", "u32", "i64", "u64", "f32", "f64"}));
  EXPECT_EQ(launch.args[3].bits, 0xfffffffbu);
  EXPECT_EQ(launch.args[5].bits, static_cast<std::uint64_t>(-6));
  EXPECT_EQ(launch.args[6].bits, ~std::uint64_t{0});
  EXPECT_EQ(launch.args[7].bits, 0x3fc00000u);
  EXPECT_EQ(launch.args[8].bits, std::uint64_t{1} << 63);
  EXPECT_EQ(std::get<PlanLaunch>(plan.launches[3]).kernel, "k\"\\\x01");
  EXPECT_EQ(std::get<PlanLaunch>(plan.launches[3]).module, 0u);
}

TEST_F(Evaluate, WhatIsThrownIsToldForThatWorkloadOnly) {
  const auto result = plans("throws", 8);
  HONE_ASSERT_OK(result);
  ASSERT_EQ(result->size(), 8u);
  EXPECT_EQ(says((*result)[0]), "plan: plan evaluation: no axis is called `N`; there is: M");
  EXPECT_EQ(says((*result)[1]), "plan: plan evaluation: no tensor is called `z`; there is: x, y");
  EXPECT_EQ(
      says((*result)[2]),
      "plan: plan evaluation: parameter `ORDER` is `rows`, not a number; read it with param_text");
  EXPECT_EQ(says((*result)[3]),
            "plan: plan evaluation: the candidate does not support it: M must be even  X");
  EXPECT_EQ(says((*result)[4]), "plan: plan evaluation: an exception that is no std::exception");
  EXPECT_EQ(says((*result)[5]), "plan: plan evaluation: own words");
  EXPECT_EQ(says((*result)[6]).substr(0, 14), "out_of_memory:");
  EXPECT_EQ(says((*result)[7]), "ok");
}

TEST_F(Evaluate, ADeathCostsOneWorkloadAndTheOthersGoOn) {
  const auto crashed = plans("crash");
  HONE_ASSERT_OK(crashed);
  EXPECT_EQ(says((*crashed)[0]), "ok");
  EXPECT_EQ(says((*crashed)[1]),
            "crash: plan evaluation: it died of signal 11 (Segmentation fault)");
  EXPECT_EQ(says((*crashed)[2]), "ok");

  const auto endless = plans("endless");
  HONE_ASSERT_OK(endless);
  EXPECT_EQ(says((*endless)[0]).substr(0, 8), "timeout:");
  EXPECT_EQ(says((*endless)[1]), "ok");
  EXPECT_EQ(says((*endless)[2]), "ok");

  const auto left = plans("leave");
  HONE_ASSERT_OK(left);
  EXPECT_EQ(says((*left)[1]), "ok");
  EXPECT_EQ(says((*left)[2]), "plan: plan evaluation: it ended with exit code 0 instead of returning");

  const auto aborted = plans("abort", 6);
  HONE_ASSERT_OK(aborted);
  EXPECT_EQ(says((*aborted)[2]).substr(0, 6), "crash:");
  EXPECT_EQ(says((*aborted)[3]),
            "plan: plan evaluation: not tried, since the program died for 3 workloads before");

  const auto deep = plans("deep", 1);
  HONE_ASSERT_OK(deep);
  EXPECT_EQ(says((*deep)[0]).substr(0, 6), "crash:");
}

TEST_F(Evaluate, WhatAPlanPrintsIsNoAnswer) {
  const auto result = plans("print", 2);
  HONE_ASSERT_OK(result);
  EXPECT_EQ(says((*result)[0]), "ok");
  EXPECT_EQ(says((*result)[1]), "ok");
}

TEST_F(Evaluate, FloodsAndHugePlansAreCut) {
  const auto flood = plans("flood", 2);
  HONE_ASSERT_OK(flood);
  EXPECT_TRUE(says((*flood)[0]).starts_with("output_limit:") || says((*flood)[0]).starts_with("timeout:"))
      << says((*flood)[0]);
  EXPECT_EQ(says((*flood)[1]), "ok");
  const auto huge = plans("huge");
  HONE_ASSERT_OK(huge);
  EXPECT_EQ(says((*huge)[0]), "ok");
  EXPECT_EQ(says((*huge)[1]).substr(0, 13), "output_limit:");
  EXPECT_EQ(says((*huge)[2]), "ok");
}

TEST_F(Evaluate, TheJailHoldsNeitherFilesNorNetworkNorProcesses) {
  const auto result = plans("escape", 4);
  HONE_ASSERT_OK(result);
  EXPECT_EQ(says((*result)[0]), "ok");
  EXPECT_EQ(says((*result)[1]).substr(0, 10), "forbidden:") << says((*result)[1]);
  EXPECT_EQ(says((*result)[2]).substr(0, 10), "forbidden:") << says((*result)[2]);
  EXPECT_EQ(says((*result)[3]), "ok");
}

TEST_F(Evaluate, APlanThatDoesNotCompileIsLocated) {
  const auto bad =
      plans("", 1, "#include <hone/plan.h>\n\nvoid plan(const hone::Problem&, hone::Plan&) {\n\n  missing();\n}\n");
  HONE_EXPECT_ERROR(bad, compile);
  EXPECT_EQ(bad.error().place.file, "plan.cpp");
  EXPECT_EQ(bad.error().place.line, 5);
  Candidate candidate;
  candidate.sources = {{"plan.cpp", "#include <hone/plan.h>\nvoid plan(hone::Problem&, hone::Plan&) {}\n"}};
  const auto undefined = evaluate_plans(candidate, {}, *toolchain_, *sandbox_);
  HONE_EXPECT_ERROR(undefined, plan);
  EXPECT_EQ(undefined.error().message, "plan.cpp does not define `void plan(const hone::Problem&, hone::Plan&)`");
}

}  // namespace
}  // namespace hone::testing
