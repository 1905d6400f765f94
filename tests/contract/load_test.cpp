#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
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

// The figures of the GPU tasks' workloads, which measurements elsewhere are compared with.
TEST(Load, GroupsOfTheGpuTasks) {
  const auto task = load_task("grouped_gemm_fp8");
  HONE_ASSERT_OK(task);
  using List = std::vector<std::int64_t>;
  const struct {
    const char* id;
    std::int64_t n, k, m, valid;
    List rows;
  } expected[] = {{"g4-n6144-k7168", 6144, 7168, 33024, 32769, {6394, 9899, 9488, 6988}},
                  {"g4-n4096-k4096", 4096, 4096, 31616, 31567, {6904, 8409, 7552, 8702}},
                  {"g8-n7168-k3072", 7168, 3072, 33920, 33392, {4816, 4887, 4059, 3510, 2868, 4496, 4022, 4734}},
                  {"g8-n4096-k2048", 4096, 2048, 32128, 31686, {3424, 5232, 3177, 4599, 3076, 3475, 5322, 3381}}};
  ASSERT_EQ(task->workloads.size(), std::size(expected));
  for (const auto& each : expected) {
    SCOPED_TRACE(each.id);
    const Workload* workload = task->find(each.id);
    ASSERT_NE(workload, nullptr);
    EXPECT_EQ(workload->axes.at("rows"), each.rows);
    EXPECT_EQ(workload->axes.at("M"), List{each.m});
    const auto groups = static_cast<std::int64_t>(each.rows.size());
    const auto shape = [&](std::size_t i) { return workload->tensors.at(i).shape; };
    EXPECT_EQ(shape(0), (List{each.m, each.k}));
    EXPECT_EQ(shape(1), (List{each.k / 128, each.m}));
    EXPECT_EQ(shape(2), (List{groups, each.n, each.k}));
    EXPECT_EQ(shape(3), (List{groups, each.n / 128, each.k / 128}));
    EXPECT_EQ(shape(5), (List{each.m, each.n}));
    EXPECT_EQ(workload->flops, 2.0 * static_cast<double>(each.valid * each.n * each.k));
  }

  // The same groups for the next architecture: aligned to 224, four scales of one byte side by side.
  const auto next = load_task("grouped_gemm_fp8_sm100");
  HONE_ASSERT_OK(next);
  EXPECT_EQ(next->architectures, std::vector<std::string>{"sm_100a"});
  for (const auto& each : expected) {
    SCOPED_TRACE(each.id);
    const Workload* workload = next->find(each.id);
    ASSERT_NE(workload, nullptr);
    EXPECT_EQ(workload->axes.at("rows"), each.rows);
    std::int64_t m = 0;
    for (const std::int64_t rows : each.rows) m += (rows + 223) / 224 * 224;
    EXPECT_EQ(workload->axes.at("M"), List{m});
    EXPECT_EQ(workload->tensors.at(1).dtype, DType::ue8m0);
    EXPECT_EQ(workload->tensors.at(1).shape, (List{each.k / 512, m, 4}));
    EXPECT_EQ(workload->tensors.at(3).shape, (List{static_cast<std::int64_t>(each.rows.size()), each.k / 512, each.n, 4}));
  }
}

TEST(Load, GemmTasksHaveTheSameShapes) {
  for (const char* name : {"bf16_gemm", "fp16_gemm", "fp8_gemm"}) {
    SCOPED_TRACE(name);
    const auto task = load_task(name);
    HONE_ASSERT_OK(task);
    std::vector<std::string> ids;
    for (const Workload& each : task->workloads) ids.push_back(each.id);
    EXPECT_EQ(ids, (std::vector<std::string>{"square-4096", "square-8192", "ffn-up", "ffn-down", "odd"}));
    EXPECT_EQ(task->find("ffn-up")->flops, 2.0 * 8192 * 14336 * 4096);
  }
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
