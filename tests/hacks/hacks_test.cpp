// Every entry of the corpus is judged by the real command and must be refused for the right reason;
// honest twins must pass. README.md says what the lines at the top of an entry mean. Entries of CUDA skip without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "testing/command.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

struct Entry {
  std::string name, task, expect;
  std::vector<std::string> says, workloads;
  fs::path kernel;
};

fs::path corpus() { return source_dir() / "tests/hacks"; }

Entry read_entry(const fs::path& kernel) {
  Entry entry{.name = kernel.stem().string(), .task = {}, .expect = {}, .says = {}, .workloads = {}, .kernel = kernel};
  std::istringstream lines(read_file(kernel).value());
  for (std::string line; std::getline(lines, line) && line.starts_with("// ");) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(3, colon - 3), value = line.substr(colon + 2);
    if (key == "task") entry.task = value;
    if (key == "expect") entry.expect = value;
    if (key == "says") entry.says.push_back(value);
    if (key == "workload") entry.workloads.push_back(value);
  }
  return entry;
}

std::vector<std::string> entry_names(const std::string& extension) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(corpus() / "entries"))
    if (file.path().extension() == extension && !file.path().string().ends_with(".plan.cpp"))
      names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The entry as a candidate folder of its own.
fs::path candidate_of(const Entry& entry) {
  const fs::path folder = scratch(entry.name);
  const fs::path own_plan = corpus() / "entries" / (entry.name + ".plan.cpp");
  const std::string extension = entry.kernel.extension().string();
  fs::copy_file(entry.kernel, folder / ("kernel" + extension));
  if (extension == ".cu") (void)write_file_atomic(folder / "candidate.yaml", "language: cuda\n");
  fs::copy_file(fs::exists(own_plan) ? own_plan : corpus() / "common" / (entry.task + ".plan.cpp"), folder / "plan.cpp");
  for (const auto& file : fs::directory_iterator(corpus() / "common"))
    if (file.path().extension() == ".h" || file.path().extension() == ".cuh") fs::copy_file(file.path(), folder / file.path().filename());
  return folder;
}

void is_answered_as_it_should(const fs::path& kernel) {
  const Entry entry = read_entry(kernel);
  ASSERT_FALSE(entry.task.empty() || entry.expect.empty()) << entry.name << " lacks its lines";
  std::vector<std::string> arguments = {"bench", candidate_of(entry).string(), "--task", entry.task, "--json", "--samples", "5"};
  for (const std::string& id : entry.workloads) arguments.insert(arguments.end(), {"--workload", id});
  CommandOptions options;
  options.timeout_s = 240;
  const CommandResult result = run_hone(arguments, options);
  SCOPED_TRACE(result.out.substr(0, 6000) + result.err.substr(0, 3000));
  for (const std::string& text : entry.says) EXPECT_NE(result.out.find(text), std::string::npos) << "not said: " << text;
  ASSERT_FALSE(nlohmann::json::parse(result.out, nullptr, false).is_discarded());
  const nlohmann::json answer = nlohmann::json::parse(result.out);

  std::istringstream words(entry.expect);
  std::string verdict, kind;
  words >> verdict >> kind;
  if (verdict == "exit") {
    EXPECT_EQ(std::to_string(result.exit), kind);
    if (words >> kind) {
      EXPECT_NE(result.out.find("\"" + kind + "\""), std::string::npos) << "not of kind " << kind;
    }
    return;
  }
  if (verdict == "PASS") {
    EXPECT_EQ(result.exit, 0);
    EXPECT_EQ(answer.at("passed"), answer.at("total"));
    EXPECT_NE(answer.at("decision"), "KEEP");
    return;
  }
  EXPECT_EQ(result.exit, 1);
  EXPECT_TRUE(answer.at("geomean").is_null());
  EXPECT_TRUE(answer.at("decision").is_null());
  EXPECT_LT(answer.at("passed").get<int>(), answer.at("total").get<int>());
  for (const auto& workload : answer.at("workloads")) {
    if (workload.at("verdict") == "PASS") continue;
    EXPECT_EQ(workload.at("verdict"), verdict);
    if (!kind.empty()) {
      EXPECT_EQ(workload.at("error").at("kind"), kind) << workload.at("error").dump();
    }
  }
}

class Hacks : public ::testing::TestWithParam<std::string> {};
TEST_P(Hacks, IsAnsweredAsItShould) { is_answered_as_it_should(corpus() / "entries" / (GetParam() + ".cpp")); }

class GpuHacks : public ::testing::TestWithParam<std::string> {};
TEST_P(GpuHacks, IsAnsweredAsItShould) {
  static const std::string doctor = run_hone({"doctor", "--json"}, {}).out;
  const auto facts = nlohmann::json::parse(doctor, nullptr, false);
  ASSERT_FALSE(facts.is_discarded());
  const auto& rows = facts.at("facts");
  if (std::none_of(rows.begin(), rows.end(), [](const auto& each) { return each.at("id") == "gpu0" && each.at("state") == "ok"; }))
    GTEST_SKIP() << "no GPU";
  is_answered_as_it_should(corpus() / "entries" / (GetParam() + ".cu"));
}

const auto by_name = [](const auto& entry) { return entry.param; };
INSTANTIATE_TEST_SUITE_P(Corpus, Hacks, ::testing::ValuesIn(entry_names(".cpp")), by_name);
INSTANTIATE_TEST_SUITE_P(Corpus, GpuHacks, ::testing::ValuesIn(entry_names(".cu")), by_name);

}  // namespace
}  // namespace hone::testing
