// The tuner over real configurations that crash, hang, cheat or do not compile.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "testing/command.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

using nlohmann::json;

// y = 2 x, or y = y + 2 x when `update`.
fs::path task(const std::string& name, bool update) {
  const fs::path folder = scratch(name) / name;
  fs::copy(source_dir() / "tests/faults/scale", folder, fs::copy_options::recursive);
  if (!update) return folder;
  const auto replace = [](const fs::path& file, const std::string& from, const std::string& to) {
    std::string text = *read_file(file);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_TRUE(write_file_atomic(file, text));
  };
  replace(folder / "task.yaml", "role: output", "role: persistent");
  replace(folder / "task.yaml", "inputs: {x: {bell: 1}}", "inputs: {x: {uniform: [0.5, 1.5]}, y: {uniform: [0.5, 1]}}");
  replace(folder / "task.cpp", "double* y = call->tensor(\"y\").reference;",
          "double* y = call->tensor(\"y\").reference;\n  const auto* old = call->data<float>(\"y\");");
  replace(folder / "task.cpp", "y[i] = 2.0 *", "y[i] = static_cast<double>(old[i]) + 2.0 *");
  replace(folder / "baseline/kernel.cpp", "y[i] = 2 * x[i]", "y[i] += 2 * x[i]");
  return folder;
}

struct Tuned {
  CommandResult result;
  std::map<std::string, json> rows;   // of the parameter V: its one evaluation
  json status, frontier;
};

// `kernel`: the body of `twice` with the macro V, one of `values`.
Tuned tune(const fs::path& task, const std::string& values, const std::string& body, const std::string& budget) {
  Tuned out;
  const fs::path run = scratch("run") / "run";
  const CommandResult made = run_hone({"init", "--task", task.string(), "--dir", run.string()});
  EXPECT_EQ(made.exit, 0) << made.out << made.err;
  const json manifest = json::parse(*read_file(run / "manifest.json"));
  const fs::path seed = run / "worktree/candidates" / manifest["task"]["name"].get<std::string>() / "scratch/seed";
  EXPECT_TRUE(make_dirs(seed));
  EXPECT_TRUE(write_file_atomic(seed / "candidate.yaml", "parameters: {V: [" + values + "]}\n"));
  EXPECT_TRUE(write_file_atomic(seed / "kernel.cpp", "#include <hone/kernel.h>\n#include <cstdlib>\n\nvoid twice(const hone::Block&, const float* x, "
                                                     "float* y, std::int64_t n) {\n" + body + "}\n"));
  EXPECT_TRUE(write_file_atomic(seed / "plan.cpp", R"(#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  auto module = plan.module("kernel.cpp", {{"V", problem.param("V")}});
  plan.launch(module, "twice", {1}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N"));
}
)"));
  CommandOptions options;
  options.timeout_s = 400;
  out.result = run_hone({"run", "--run", run.string(), "--quiet", "--budget", budget}, options);
  std::istringstream ledger(*read_file(run / "ledger.jsonl"));
  for (std::string line; std::getline(ledger, line);) {
    const json row = json::parse(line);
    if (row["kind"] != "evaluation") continue;
    const std::string value = row["data"]["params"]["V"];
    EXPECT_EQ(out.rows.count(value), 0u) << "V=" << value << " was evaluated twice";
    out.rows[value] = row["data"];
  }
  out.status = json::parse(run_hone({"status", "--run", run.string(), "--json"}).out);
  out.frontier = json::parse(run_hone({"frontier", "list", "--run", run.string(), "--json"}).out);
  return out;
}

std::string kind_of(const json& row) { return row["error"].is_null() ? "" : row["error"]["kind"].get<std::string>(); }

// Field case C64.
TEST(Tuner, OneBadConfigurationIsARowOfItsOwn) {
  const Tuned tuned = tune(task("scale", false), "0, 1, 2, 3, 4, 5, 6, 7", R"(
#if V == 4
  *static_cast<volatile float*>(nullptr) = 1;
#elif V == 5
  for (volatile int i = 0;;) i = i + 1;
#elif V == 6
  const std::size_t bytes = std::size_t{100} << 30;
  char* memory = static_cast<char*>(std::malloc(bytes));
  for (std::size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
#elif V == 7
  no_such_function(x);
#endif
  for (std::int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + 0 * V;
)", "evaluations=100");
  EXPECT_EQ(tuned.result.exit, 0) << "the space is exhausted\n" << tuned.result.out << tuned.result.err;
  EXPECT_NE(tuned.result.out.find("space exhausted"), std::string::npos) << tuned.result.out;
  ASSERT_EQ(tuned.rows.size(), 8u);
  for (const char* honest : {"0", "1", "2", "3"}) EXPECT_TRUE(tuned.rows.at(honest)["scored"].get<bool>()) << honest;
  EXPECT_EQ(kind_of(tuned.rows.at("4")), "crash");
  EXPECT_NE(tuned.rows.at("4")["error"].dump().find("SIGSEGV"), std::string::npos) << tuned.rows.at("4")["error"].dump();
  EXPECT_EQ(kind_of(tuned.rows.at("5")), "timeout");
  EXPECT_EQ(kind_of(tuned.rows.at("6")), "out_of_memory");
  EXPECT_EQ(kind_of(tuned.rows.at("7")), "compile");
  EXPECT_EQ(tuned.rows.at("7")["error"]["place"]["file"], "kernel.cpp");
  EXPECT_GT(tuned.rows.at("7")["error"]["place"]["line"].get<int>(), 1);
  EXPECT_EQ(tuned.status["evaluations"]["used"], 8);
}

// Field case C63.
TEST(Tuner, WorkLeftOutIsNeverTheBest) {
  const Tuned tuned = tune(task("scale", false), "1, 2, 0", R"(
#if V == 1
  return;
#elif V == 2
  for (std::int64_t i = 0; i < 16; ++i) y[i] = 2 * x[i];
  for (std::int64_t i = 16; i < n; ++i) y[i] = 0;
#else
  for (std::int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
#endif
)", "evaluations=20");
  EXPECT_EQ(tuned.result.exit, 0) << tuned.result.out << tuned.result.err;
  ASSERT_EQ(tuned.rows.size(), 3u);
  EXPECT_EQ(kind_of(tuned.rows.at("1")), "not_written");
  EXPECT_EQ(kind_of(tuned.rows.at("2")), "wrong_result");
  for (const char* bad : {"1", "2"}) {
    EXPECT_TRUE(tuned.rows.at(bad)["geomean"].is_null());
    EXPECT_FALSE(tuned.rows.at(bad)["scored"].get<bool>());
  }
  EXPECT_TRUE(tuned.rows.at("0")["scored"].get<bool>());
  for (const json& entry : tuned.frontier["entries"]) EXPECT_EQ(entry["params"]["V"], "0");
}

// Field case C66: a persistent tensor is restored before each call.
TEST(Tuner, UpdatesInPlaceAreJudgedOnTimedOutputsToo) {
  const Tuned tuned = tune(task("update", true), "0, 1, 2", R"(
#if V == 1
  if (y[0] > 1.2f) return;
#elif V == 2
  static int calls = 0;
  if (++calls > 1) return;
#endif
  for (std::int64_t i = 0; i < n; ++i) y[i] += 2 * x[i];
)", "evaluations=20");
  EXPECT_EQ(tuned.result.exit, 0) << tuned.result.out << tuned.result.err;
  ASSERT_EQ(tuned.rows.size(), 3u);
  EXPECT_TRUE(tuned.rows.at("0")["scored"].get<bool>()) << tuned.rows.at("0").dump(1);
  // Restored data never exceeds the threshold, so that skipping above it is never reached: right, by contract.
  EXPECT_TRUE(tuned.rows.at("1")["scored"].get<bool>()) << tuned.rows.at("1").dump(1);
  EXPECT_EQ(kind_of(tuned.rows.at("2")), "wrong_result") << tuned.rows.at("2").dump(1);
}

}  // namespace
}  // namespace hone::testing
