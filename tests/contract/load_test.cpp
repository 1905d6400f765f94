#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "contract/task.h"
#include "testing/testing.h"

namespace hone {
namespace {

// Without the sync of write_file_atomic: these files need not survive anything.
void put(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// A task folder with this contract; its code is never compiled here.
fs::path task_folder(const std::string& yaml) {
  const fs::path folder = testing::scratch("sample");
  put(folder / "task.yaml", yaml);
  put(folder / "task.cpp", "#include <hone/task.h>\n");
  put(folder / "baseline.cpp", "#include <hone/task.h>\n");
  return folder;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& each : lines) text += each + "\n";
  return text;
}

const fs::path kCases = "tests/cases/contract";

TEST(Load, ErrorsOfTheCases) {
  const fs::path folder = testing::source_dir() / kCases;
  const auto base = read_file(folder / "base.yaml"), cases = read_file(folder / "errors.txt");
  HONE_ASSERT_OK(base);
  HONE_ASSERT_OK(cases);
  HONE_ASSERT_OK(load_task(task_folder(*base).string()));
  std::vector<std::string> yaml, updated;
  std::string name, expected;
  int ran = 0;
  std::vector<std::string> removed, added;
  const auto finish = [&] {
    if (name.empty()) return;
    ++ran;
    yaml = lines_of(*base);
    auto at = yaml.end();
    for (const std::string& line : removed) {
      const auto found = std::find(yaml.begin(), yaml.end(), line);
      ASSERT_NE(found, yaml.end()) << name << ": base.yaml has no line \"" << line << "\"";
      at = yaml.erase(found);
    }
    yaml.insert(at, added.begin(), added.end());
    const fs::path changed = task_folder(join(yaml));
    const auto task = load_task(changed.string());
    std::string answer = task ? "loads" : to_text(task.error());
    const std::string path = changed.string() + "/";
    for (std::size_t found = answer.find(path); found != std::string::npos; found = answer.find(path)) answer.erase(found, path.size());
    for (const std::string& line : lines_of(answer)) updated.push_back("> " + line);
    EXPECT_EQ(answer + "\n", expected) << name;
    name.clear();
    expected.clear();
    removed.clear();
    added.clear();
  };
  for (const std::string& line : lines_of(*cases)) {
    if (line.starts_with(">")) {
      expected += line.size() > 2 ? line.substr(2) + "\n" : "";
      continue;
    }
    if (line.starts_with("case: ") || line.empty()) finish();
    if (line.starts_with("case: ")) name = line.substr(6);
    else if (line.starts_with("- ")) removed.push_back(line.substr(2));
    else if (line.starts_with("+ ")) added.push_back(line.substr(2));
    updated.push_back(line);
  }
  finish();
  EXPECT_GE(ran, 50);
  if (std::getenv("HONE_UPDATE") != nullptr) {
    HONE_ASSERT_OK(write_file_atomic(folder / "errors.txt", join(updated)));
  }
}

TEST(Load, WhatTheContractSays) {
  const auto base = read_file(testing::source_dir() / kCases / "base.yaml");
  HONE_ASSERT_OK(base);
  const auto task = load_task(task_folder(*base).string() + "/");
  HONE_ASSERT_OK(task);
  EXPECT_EQ(task->name, "sample");
  EXPECT_EQ(task->architectures, std::vector<std::string>{"cpu"});
  EXPECT_EQ(task->memory_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(task->sha256, hash_of(task->files));
  ASSERT_EQ(task->workloads.size(), 2u);
  const Workload& one = *task->find("one");
  EXPECT_EQ(one.axes.at("M"), std::vector<std::int64_t>{5});
  EXPECT_EQ(one.axes.at("rows"), (std::vector<std::int64_t>{3, 0, 2}));
  EXPECT_EQ(one.flops, 80);
  EXPECT_EQ(one.bytes, 4 * (5 * 8 + 3 + 5 * 8));
  const TensorShape& y = one.tensors[2];
  EXPECT_EQ(y.shape, (std::vector<std::int64_t>{5, 8}));
  EXPECT_EQ(y.strides, (std::vector<std::int64_t>{12, 1}));
  EXPECT_EQ(y.span_elements(), 4 * 12 + 8);
  EXPECT_EQ(task->gates.at("y").metric, "rel_l2");
  ASSERT_EQ(task->baselines.size(), 1u);
  EXPECT_EQ(task->baselines[0].link, std::vector<std::string>{"-lm"});
  ASSERT_EQ(task->input_sets.size(), 2u);
  EXPECT_EQ(task->input_sets[0].name, "random");
  // An input of whole numbers is the task code's, unless the contract says otherwise.
  EXPECT_EQ(task->input_sets[0].inputs.at("s").kind, Distribution::Kind::structured);
  EXPECT_EQ(task->input_sets[1].inputs.at("x").high, 1000);
  EXPECT_EQ(task->input_sets[1].inputs.size(), 2u);
}

// A list axis is data: a plan must not see it, however short it is.
TEST(Load, PlansSeeNoLists) {
  const auto base = read_file(testing::source_dir() / kCases / "base.yaml");
  HONE_ASSERT_OK(base);
  const auto task = load_task(task_folder(*base).string());
  HONE_ASSERT_OK(task);
  for (const Workload& workload : task->workloads) {
    const ProblemShape problem = problem_of(workload, "cpu", 3);
    EXPECT_EQ(problem.axes.size(), 2u);
    for (const auto& [name, value] : problem.axes) EXPECT_NE(name, "rows");
    EXPECT_EQ(problem.workers, 3);
    EXPECT_EQ(problem.workload, workload.id);
  }
}

TEST(Load, UnknownTasks) {
  const auto unknown = load_task("grouped_gem_f32");
  HONE_EXPECT_ERROR(unknown, not_found);
  EXPECT_EQ(unknown.error().hint, "did you mean \"grouped_gemm_f32\"?");
  HONE_EXPECT_ERROR(load_task(""), not_found);
  HONE_EXPECT_ERROR(load_task("../../etc/passwd"), not_found);
  HONE_EXPECT_ERROR(load_task(std::string(100000, 'x')), not_found);
  HONE_EXPECT_ERROR(load_task(testing::scratch("empty").string()), not_found);
}

// A contract with bfloat16 bit patterns that are denormal, and a gate that zeros would pass, is a
// contract that loads: telling that it measures nothing is the task check's work.
TEST(Load, BitPatternsAndAbsoluteGates) {
  const auto shipped = load_task("grouped_gemm_bf16");
  HONE_ASSERT_OK(shipped);
  const fs::path folder = testing::scratch("copy_of_grouped_gemm_bf16");
  for (const auto& [name, text] : shipped->files) {
    std::string changed = text;
    if (name == "task.yaml") {
      std::vector<std::string> lines = lines_of(text);
      for (std::string& line : lines) {
        if (line.starts_with("inputs:")) line = "inputs: {A: {bits: [0, 3]}, B: {bits: [0, 3]}}";
        if (line.starts_with("gate:")) line = "gate:   {metric: abs, limit: 0.1}";
      }
      changed = join(lines);
    }
    put(folder / name, changed);
  }
  const auto task = load_task(folder.string());
  HONE_ASSERT_OK(task);
  EXPECT_EQ(task->gates.at("D").metric, "abs");
  EXPECT_EQ(task->input_sets[0].inputs.at("A").kind, Distribution::Kind::bits);
  EXPECT_EQ(task->input_sets[0].inputs.at("rows").kind, Distribution::Kind::structured);
}

TEST(Load, ShippedTasks) {
  const std::vector<std::string> names = task_names();
  for (const char* each : {"grouped_gemm_bf16", "grouped_gemm_f32", "rmsnorm_bf16", "softmax_f32"})
    EXPECT_NE(std::find(names.begin(), names.end(), each), names.end()) << each;
  for (const std::string& name : names) {
    const auto task = load_task(name);
    HONE_ASSERT_OK(task);
    EXPECT_GE(task->workloads.size(), 4u) << name;
    EXPECT_GE(task->input_sets.size(), 9u) << name;
    EXPECT_FALSE(task->baselines.empty()) << name;
    std::set<std::string> reasons;
    for (const InputSet& set : task->input_sets) {
      EXPECT_TRUE(reasons.insert(set.reason).second) << name << ": two input sets for one reason, " << set.reason;
    }
    for (const Workload& each : task->workloads) {
      EXPECT_GT(each.flops, 0) << name;
      EXPECT_GT(each.bytes, 0) << name;
    }
  }
}

}  // namespace
}  // namespace hone
