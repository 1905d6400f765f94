// Trusted task code: compiled, loaded, called; shipped oracles against numbers worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>

#include "contract/numeric.h"
#include "contract/task.h"
#include "hone/types.h"
#include "testing/testing.h"

namespace hone {
namespace {

// Without the sync of write_file_atomic: these files need not survive anything.
void put(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

const Toolchain& toolchain() {
  static const auto tools = [] {
    const fs::path share = *share_dir();
    // Trusted code: the sandbox is not what is tested here, and not every machine has one.
    static const Sandbox sandbox = *Sandbox::create(SandboxMode::off, share / "libexec");
    return *Toolchain::create(sandbox, testing::scratch("cache"), share / "include");
  }();
  return tools;
}

// Buffers of one workload.
struct Buffers {
  explicit Buffers(const Workload& workload) {
    for (const TensorShape& each : workload.tensors) {
      memory.push_back(std::make_unique<std::byte[]>(each.bytes() + 64));
      tensors.push_back({each, memory.back().get()});
    }
  }
  template <class T>
  T* at(std::string_view name) const {
    for (const HostTensor& each : tensors)
      if (each.shape.name == name) return reinterpret_cast<T*>(each.data);
    return nullptr;
  }
  std::vector<std::unique_ptr<std::byte[]>> memory;
  std::vector<HostTensor> tensors;
};

// A shipped task with one other workload.
Result<Task> with_workload(const std::string& name, const std::string& workload) {
  HONE_TRY(const Task shipped, load_task(name));
  const fs::path folder = testing::scratch(name);
  for (const auto& [file, text] : shipped.files) {
    std::string changed = text;
    if (file == "task.yaml") {
      const std::size_t begin = text.find("\nworkloads:\n") + 12, end = text.find("\n\n", begin);
      changed = text.substr(0, begin) + "  - " + workload + text.substr(end);
    }
    put(folder / file, changed);
  }
  return load_task(folder.string());
}

Result<std::shared_ptr<TaskCode>> sample_code(const std::string& source, Task& task) {
  const fs::path folder = testing::scratch("sample");
  HONE_TRY(const std::string yaml, read_file(testing::source_dir() / "tests/cases/contract/base.yaml"));
  put(folder / "task.yaml", yaml);
  put(folder / "baseline.cpp", "");
  put(folder / "task.cpp", "#include <hone/task.h>\n" + source);
  HONE_TRY(task, load_task(folder.string()));
  return TaskCode::load(task, toolchain());
}

std::string message_of(const Result<std::shared_ptr<TaskCode>>& code) { return code ? "loads" : to_text(code.error()); }

TEST(Code, WhatIsMissingIsAnError) {
  Task task;
  const auto expect = [&](const std::string& source, const std::string& part) {
    const std::string text = message_of(sample_code(source, task));
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect("void hone_inputs(const hone::TaskCall*) {}", "task.cpp: error(contract): the task code has no hone_oracle");
  expect("void hone_oracle(const hone::TaskCall*) {}", "s is structured, and the task code has no hone_inputs");
  expect("int broken(", "/sample/task.cpp:2:12: error(contract): task sample: task code: ");
}

// One piece of task code with many faults; the first element of x says which.
constexpr const char* kFaults = R"(
#include <stdexcept>
void hone_inputs(const hone::TaskCall* c) { if (c->call == 99) c->axis("Q"); }
void hone_oracle(const hone::TaskCall* c) {
  const int fault = c->data<float>("x")[0];
  if (fault == 1) return;
  if (fault == 2) c->tensor("z");
  if (fault == 3) c->fail(c->sink, "no such luck");
  if (fault == 4) throw std::runtime_error("thrown");
  for (int i = 0; i < 40; ++i) c->tensor("y").reference[i] = i;
  if (fault == 5) c->tensor("y").reference[11] = 0.0 / 0.0;
}
void hone_regions(const hone::TaskCall* c) {
  const int fault = c->data<float>("x")[0];
  const auto add = [&](const char* tensor, const char* name, int begin, int end) { c->add_region(c->sink, tensor, name, begin, end); };
  if (fault == 10) { add("y", "a", 3, 5); add("y", "b", 0, 2); add("y", "none", 5, 5); }
  if (fault == 11) add("y", "a", 0, 6);
  if (fault == 12) { add("y", "a", 0, 3); add("y", "b", 2, 5); }
  if (fault == 13) add("y", "a", -1, 2);
  if (fault == 14) add("x", "a", 0, 2);
  if (fault == 15) add("y", "a", 2, 2);
  if (fault == 16) add("y", "a", 4, 1);
}
)";

TEST(Code, FaultsOfTheTaskAreErrors) {
  Task task;
  const auto code = sample_code(kFaults, task);
  HONE_ASSERT_OK(code);
  const Workload& workload = task.workloads[0];
  const Buffers buffers(workload);
  const auto filled = (*code)->fill(workload, task.input_sets[0], 1, 99, buffers.tensors);
  ASSERT_FALSE(filled);
  EXPECT_NE(filled.error().message.find("hone_inputs of workload one, input set random: Q"), std::string::npos) << filled.error().message;
  HONE_ASSERT_OK((*code)->fill(workload, task.input_sets[0], 1, 1, buffers.tensors));
  const std::vector<std::pair<int, const char*>> cases = {
      {0, "fine"},
      {1, "hone_oracle of workload one: y row 0 column 0 was not filled in"},
      {2, "hone_oracle of workload one: z"},
      {3, "no such luck"},
      {4, "hone_oracle of workload one: "},
      {5, "hone_oracle of workload one: y row 1 column 3 was not filled in, or is NaN"},
      {10, "fine"},
      {11, "region a of y, rows 0 to 6, ends beyond the 5 rows"},
      {12, "region b of y, rows 2 to 5, overlaps another"},
      {13, "region a of y, rows -1 to 2"},
      {14, "\"x\" is no output"},
      {15, "no valid row in y"},
      {16, "region a of y, rows 4 to 1, ends before it begins"},
  };
  for (const auto& [fault, part] : cases) {
    buffers.at<float>("x")[0] = static_cast<float>(fault);
    const auto reference = (*code)->oracle(workload, buffers.tensors);
    const std::string text = reference ? "fine" : to_text(reference.error());
    EXPECT_NE(text.find(part), std::string::npos) << fault << ": " << text;
  }
}

// Rows outside every region are padding: zero in the reference, whatever the oracle left there.
TEST(Code, PaddingIsZeroInTheReference) {
  Task task;
  const auto code = sample_code(
      "void hone_inputs(const hone::TaskCall*) {}\n"
      "void hone_oracle(const hone::TaskCall* c) { for (int i = 8; i < 24; ++i) c->tensor(\"y\").reference[i] = 7; }\n"
      "void hone_regions(const hone::TaskCall* c) { c->add_region(c->sink, \"y\", \"middle\", 1, 3); }\n",
      task);
  HONE_ASSERT_OK(code);
  const Buffers buffers(task.workloads[0]);
  const auto reference = (*code)->oracle(task.workloads[0], buffers.tensors);
  HONE_ASSERT_OK(reference);
  const std::vector<double>& y = reference->at("y");
  ASSERT_EQ(y.size(), 40u);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(y[i], i >= 8 && i < 24 ? 7 : 0) << i;
}

TEST(Oracle, GroupedGemm) {
  for (const char* name : {"grouped_gemm_f32", "grouped_gemm_bf16"}) {
    const auto task = with_workload(name, "{id: tiny, rows: [1, 2], N: 2, K: 3}");
    HONE_ASSERT_OK(task);
    const auto code = TaskCode::load(*task, toolchain());
    HONE_ASSERT_OK(code);
    const Workload& workload = task->workloads[0];
    const Buffers buffers(workload);
    HONE_ASSERT_OK((*code)->fill(workload, task->input_sets[0], 5, 0, buffers.tensors));
    EXPECT_EQ(buffers.at<std::int32_t>("starts")[1], 8);
    EXPECT_EQ(buffers.at<std::int32_t>("rows")[1], 2);
    const auto set = [&](const char* tensor, std::size_t first, std::vector<float> values) {
      for (float each : values) {
        if (std::string(name) == "grouped_gemm_f32") buffers.at<float>(tensor)[first] = each;
        else buffers.at<bf16>(tensor)[first] = to_bf16(each);
        ++first;
      }
    };
    set("A", 0, {1, 2, 3});                         // group 0
    set("A", 8 * 3, {1, 0, -1, 0.5, 0.25, 2});      // group 1
    set("B", 0, {1, 1, 1, 0, -1, 4});
    set("B", 6, {3, 5, 7, 2, 4, 8});
    const auto reference = (*code)->oracle(workload, buffers.tensors);
    HONE_ASSERT_OK(reference);
    const std::vector<double>& d = reference->at("D");
    EXPECT_EQ(d[0], 6);
    EXPECT_EQ(d[1], 10);
    EXPECT_EQ(d[16], -4);
    EXPECT_EQ(d[17], -6);
    EXPECT_EQ(d[18], 16.75);
    EXPECT_EQ(d[19], 18);
    const auto regions = (*code)->regions(workload, buffers.tensors);
    HONE_ASSERT_OK(regions);
    ASSERT_EQ(regions->at("D").size(), 2u);
    EXPECT_EQ(regions->at("D")[1].name, "group 1");
    EXPECT_EQ(regions->at("D")[1].begin, 8);
    EXPECT_EQ(regions->at("D")[1].end, 10);
  }
}

TEST(Oracle, Softmax) {
  const auto task = with_workload("softmax_f32", "{id: tiny, M: 2, N: 3}");
  HONE_ASSERT_OK(task);
  const auto code = TaskCode::load(*task, toolchain());
  HONE_ASSERT_OK(code);
  const Buffers buffers(task->workloads[0]);
  const std::vector<float> x = {1000, 1000, 1000, -5, 0, -3.0e38f};
  std::copy(x.begin(), x.end(), buffers.at<float>("x"));
  const auto reference = (*code)->oracle(task->workloads[0], buffers.tensors);
  HONE_ASSERT_OK(reference);
  const std::vector<double>& y = reference->at("y");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(y[i], 1.0 / 3);
  EXPECT_NEAR(y[3], 0.0066928509242848554, 1e-16);
  EXPECT_NEAR(y[4], 0.9933071490757151, 1e-15);
  EXPECT_EQ(y[5], 0);
}

TEST(Oracle, RmsNorm) {
  const auto task = with_workload("rmsnorm_bf16", "{id: tiny, M: 2, N: 2}");
  HONE_ASSERT_OK(task);
  const auto code = TaskCode::load(*task, toolchain());
  HONE_ASSERT_OK(code);
  const Buffers buffers(task->workloads[0]);
  const std::vector<float> x = {3, 4, 0, 0}, w = {1, -2};
  for (std::size_t i = 0; i < 4; ++i) buffers.at<bf16>("x")[i] = to_bf16(x[i]);
  for (std::size_t i = 0; i < 2; ++i) buffers.at<bf16>("w")[i] = to_bf16(w[i]);
  const auto reference = (*code)->oracle(task->workloads[0], buffers.tensors);
  HONE_ASSERT_OK(reference);
  const std::vector<double>& y = reference->at("y");
  EXPECT_NEAR(y[0], 3 / 3.5355340473540938, 1e-12);   // sqrt(12.5 + 1e-6)
  EXPECT_NEAR(y[1], -8 / 3.5355340473540938, 1e-12);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(std::abs(y[3]), 0);
}

// Every hard set of every shipped task: it fills, twice the same, the oracle takes it, and it differs
// from the timed set; the groups of the grouped tasks stay within M, apart and aligned.
TEST(Code, HardSetsOfShippedTasks) {
  const std::map<std::string, std::string> small = {{"grouped_gemm_f32", "{id: tiny, rows: [3, 30, 8, 1], N: 19, K: 11}"},
                                                    {"grouped_gemm_bf16", "{id: tiny, rows: [3, 30, 8, 1], N: 19, K: 11}"},
                                                    {"rmsnorm_bf16", "{id: tiny, M: 7, N: 100}"},
                                                    {"softmax_f32", "{id: tiny, M: 7, N: 100}"}};
  for (const auto& [name, tiny] : small) {
    const auto task = with_workload(name, tiny);
    HONE_ASSERT_OK(task);
    const auto code = TaskCode::load(*task, toolchain());
    HONE_ASSERT_OK(code);
    const Workload& workload = task->workloads[0];
    const Buffers timed(workload), again(workload), buffers(workload);
    HONE_ASSERT_OK((*code)->fill(workload, task->input_sets[0], 3, 4, timed.tensors));
    for (const InputSet& set : task->input_sets) {
      HONE_ASSERT_OK((*code)->fill(workload, set, 3, 4, buffers.tensors));
      HONE_ASSERT_OK((*code)->fill(workload, set, 3, 4, again.tensors));
      bool same = true;
      for (std::size_t i = 0; i < buffers.tensors.size(); ++i) {
        const HostTensor& each = buffers.tensors[i];
        if (each.shape.role != TensorRole::input) continue;
        EXPECT_EQ(std::memcmp(each.data, again.tensors[i].data, each.shape.bytes()), 0) << name << " " << set.name;
        same = same && std::memcmp(each.data, timed.tensors[i].data, each.shape.bytes()) == 0;
      }
      EXPECT_EQ(same, set.name == "random") << name << " " << set.name << " is the timed set again";
      HONE_ASSERT_OK((*code)->oracle(workload, buffers.tensors));
      const auto* starts = buffers.at<std::int32_t>("starts");
      const auto* rows = buffers.at<std::int32_t>("rows");
      if (starts == nullptr) continue;
      std::int64_t next = 0, most = 0, least = 1000;
      for (int g = 0; g < 4; ++g) {
        EXPECT_EQ(starts[g] % 8, 0);
        EXPECT_GE(starts[g], next);
        EXPECT_GE(rows[g], 0);
        next = starts[g] + rows[g];
        most = std::max<std::int64_t>(most, rows[g]);
        least = std::min<std::int64_t>(least, rows[g]);
      }
      EXPECT_LE(next, workload.axes.at("M")[0]);
      if (set.name == "imbalance") {
        EXPECT_GE(most, workload.axes.at("M")[0] - 3 * 8 - 7);
      }
      EXPECT_EQ(least == 0, set.name == "empty-groups") << set.name;
    }
  }
}

}  // namespace
}  // namespace hone
