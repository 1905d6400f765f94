// ncu's raw page and its complaints.
#include "profile/ncu_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profile/figures.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

std::vector<LaunchMetrics> sample() {
  const auto text = read_file(source_dir() / "tests/profile/data/raw.csv");
  EXPECT_TRUE(text.has_value());
  auto launches = read_ncu_csv(text.value_or(""));
  EXPECT_TRUE(launches.has_value());
  return launches.value_or(std::vector<LaunchMetrics>());
}

TEST(NcuOutput, ARowALaunchWithoutUnitsAndTalk) {
  const auto launches = sample();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].kernel, "_Z4gemmIfLi3EEvPKT_PS0_");
  EXPECT_EQ(launches[0].grid, "(132, 1, 1)");
  EXPECT_EQ(launches[0].block, "(384, 1, 1)");
  EXPECT_EQ(launches[0].values.at("gpu__time_duration.sum"), 181504);
  EXPECT_EQ(launches[1].kernel, "say \"hi\", twice\nover");
  EXPECT_EQ(launches[1].values.count("dram__throughput.avg.pct_of_peak_sustained_elapsed"), 0u) << "n/a is no number";
}

TEST(NcuOutput, OtherUnitsOfTimeAreTurnedToBase) {
  const auto launches = read_ncu_csv("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"usecond\"\n\"0\",\"k\",\"1.5\"\n");
  HONE_ASSERT_OK(launches);
  EXPECT_EQ(launches->at(0).values.at("gpu__time_duration.sum"), 1500);
}

TEST(NcuOutput, WithoutATableThereIsNoProfile) {
  HONE_EXPECT_ERROR(read_ncu_csv(""), device);
  HONE_EXPECT_ERROR(read_ncu_csv("==WARNING== No kernels were profiled.\n"), device);
  const auto cut = read_ncu_csv("\"ID\",\"Kernel Name\"\n\"0\",\"never closed");
  HONE_ASSERT_OK(cut);
  EXPECT_EQ(cut->size(), 1u);
}

TEST(NcuOutput, ComplaintsSayWhatToDo) {
  const Error counters = ncu_fault(
      "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
      "Counters on the target device 0.\n==PROF== Disconnected\n");
  EXPECT_EQ(counters.kind, ErrorKind::environment);
  EXPECT_NE(counters.hint.find("NVreg_RestrictProfilingToAdminUsers"), std::string::npos);
  EXPECT_NE(counters.message.find("does not have permission"), std::string::npos);
  EXPECT_EQ(ncu_fault("==ERROR== Profiling is not supported on this device\n").kind, ErrorKind::environment);
  const Error other = ncu_fault("==ERROR== Unknown Error on device 0.\n==ERROR== Profiling is not supported on this device");
  EXPECT_EQ(other.kind, ErrorKind::environment) << "a known reason before an unknown word";
  EXPECT_EQ(ncu_fault("nothing").kind, ErrorKind::device);
}

TEST(Figures, TheLimitingUnitIsTheBusiestOfTheBreakdown) {
  const nlohmann::json figures = figures_of(sample().at(0));
  EXPECT_EQ(figures["limiting"]["unit"], "tensor pipe");
  EXPECT_EQ(figures["limiting"]["pct"], 83.2);
  ASSERT_EQ(figures["units"].size(), 5u);
  EXPECT_EQ(figures["units"][1]["unit"], "L2");
  EXPECT_EQ(figures["duration_us"], 181.504);
  EXPECT_EQ(figures["tensor_pct"], 83.2);
  EXPECT_EQ(figures["dram_pct"], 21.5);
  EXPECT_EQ(figures["l2_hit_pct"], 71.75);
  EXPECT_EQ(figures["bank_conflicts"], 1120) << "loads and stores";
  EXPECT_EQ(figures["registers"], 168);
  ASSERT_EQ(figures["stalls"].size(), 3u);
  EXPECT_EQ(figures["stalls"][0]["reason"], "gmma");
  EXPECT_EQ(figures["stalls"][1]["reason"], "long_scoreboard");
}

TEST(Figures, WithoutABreakdownSharesOfPeaksCount) {
  const LaunchMetrics launch{"k",
                             "(1, 1, 1)",
                             "(32, 1, 1)",
                             {{"dram__throughput.avg.pct_of_peak_sustained_elapsed", 90},
                              {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 95},
                              {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 99},
                              {"lts__t_sectors.avg.pct_of_peak_sustained_elapsed", 40}},
                             {}};
  const nlohmann::json figures = figures_of(launch);
  EXPECT_EQ(figures["limiting"]["unit"], "DRAM");
  EXPECT_EQ(figures["units"].size(), 2u);
  EXPECT_TRUE(figures["tensor_pct"].is_null());
  EXPECT_TRUE(figures["bank_conflicts"].is_null());
}

TEST(Figures, AsText) {
  EXPECT_EQ(figures_text(figures_of(sample().at(0))), R"(  limited by tensor pipe: 83.2% of its peak, compute 83.2%, memory 44.2%
  units: tensor pipe 83.2%, L2 44.2%, DRAM 21.5%, issue slots 12.5%, data path of L1 and shared memory 8.0%
  stalls, cycles an instruction: gmma 6.50, long_scoreboard 5.75, barrier 0.25
  tensor pipe 83.2%, DRAM 21.5%, L2 hits 71.8%, L1 hits 0.0%, 1120 bank conflicts
  occupancy 18.5% of 18.8% possible, 168 registers
)");
  EXPECT_EQ(figures_text(figures_of({})), "");
}

}  // namespace
}  // namespace hone::testing
