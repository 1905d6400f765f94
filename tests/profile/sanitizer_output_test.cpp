// compute-sanitizer's log read into findings: its current and older forms, and text that a kernel has printed.
#include "profile/sanitizer_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "testing/testing.h"

namespace hone::testing {
namespace {

SanitizerLog log_of(const std::string& tool, const std::string& name) {
  const auto text = read_file(source_dir() / "tests/profile/data" / name);
  EXPECT_TRUE(text.has_value());
  return read_sanitizer_log(tool, text.value_or(""));
}

TEST(SanitizerOutput, AccessesOutsideAreOneFindingAPlace) {
  const SanitizerLog log = log_of("memcheck", "memcheck.log");
  EXPECT_EQ(log.errors, std::size_t{1027});
  EXPECT_EQ(log.fault, "");
  ASSERT_EQ(log.findings.size(), 2u);
  const Finding& write = log.findings[0];
  EXPECT_EQ(write.kind, "out_of_bounds");
  EXPECT_EQ(write.severity, "error");
  EXPECT_EQ(write.message, "Invalid __global__ write of size 4 bytes");
  EXPECT_EQ(write.kernel, "body(const float *, float *, int, int)");
  EXPECT_EQ(write.file, "kernel.cu");
  EXPECT_EQ(write.line, 5);
  EXPECT_EQ(write.count, 2u);
  EXPECT_EQ(write.thread, (std::array<long, 3>{31, 0, 0}));
  EXPECT_EQ(write.block, (std::array<long, 3>{4, 0, 0}));
  EXPECT_EQ(write.details,
            (std::vector<std::string>{"Address 0x7f2c8a3e7a1c is out of bounds",
                                      "and is 1 bytes after the nearest allocation at 0x7f2c8a000000 of size 4096284 bytes"}));
}

TEST(SanitizerOutput, TheOutermostFrameIsTheKernel) {
  const SanitizerLog log = log_of("memcheck", "memcheck.log");
  ASSERT_EQ(log.findings.size(), 2u);
  const Finding& copy = log.findings[1];
  EXPECT_EQ(copy.kind, "misaligned");
  EXPECT_EQ(copy.file, "<hone/ptx.cuh>");
  EXPECT_EQ(copy.line, 97);
  EXPECT_EQ(copy.kernel, "void tile<(int)128>(float *)");
  EXPECT_EQ(copy.details.front(), "in copy16(void *, const void *)");
  ASSERT_EQ(copy.related.size(), 1u);
  EXPECT_EQ(copy.related[0].file, "part.cuh");
  EXPECT_EQ(copy.related[0].line, 214);
}

TEST(SanitizerOutput, RacesNameBothSides) {
  const SanitizerLog log = log_of("racecheck", "racecheck.log");
  EXPECT_EQ(log.errors, std::size_t{4});
  ASSERT_EQ(log.findings.size(), 3u) << "an info is nothing to tell";
  const Finding& race = log.findings[0];
  EXPECT_EQ(race.kind, "race");
  EXPECT_EQ(race.message, "race between Write access and Read access and Write access");
  EXPECT_EQ(race.file, "kernel.cu");
  EXPECT_EQ(race.line, 6);
  EXPECT_EQ(race.count, 512u);
  ASSERT_EQ(race.related.size(), 2u);
  EXPECT_EQ(race.related[0].what, "Read access");
  EXPECT_EQ(race.related[0].line, 7);
  EXPECT_EQ(log.findings[1].severity, "review");
  const Finding& hazard = log.findings[2];
  EXPECT_EQ(hazard.kind, "race");
  EXPECT_EQ(hazard.message, "Potential WAR hazard detected at __shared__ 0x20 in block (3,0,0)");
  EXPECT_EQ(hazard.block, (std::array<long, 3>{3, 0, 0}));
  EXPECT_EQ(hazard.thread, (std::array<long, 3>{8, 0, 0}));
  EXPECT_EQ(hazard.line, 12);
  ASSERT_EQ(hazard.related.size(), 1u);
  EXPECT_EQ(hazard.related[0].line, 14);
}

TEST(SanitizerOutput, BarriersAndUnwrittenMemory) {
  const SanitizerLog barriers = log_of("synccheck", "synccheck.log");
  ASSERT_EQ(barriers.findings.size(), 1u);
  EXPECT_EQ(barriers.findings[0].kind, "barrier");
  EXPECT_EQ(barriers.findings[0].line, 20);
  EXPECT_EQ(barriers.findings[0].count, 2u);
  const SanitizerLog reads = log_of("initcheck", "initcheck_older.log");
  ASSERT_EQ(reads.findings.size(), 2u);
  EXPECT_EQ(reads.findings[0].kind, "uninitialised");
  EXPECT_EQ(reads.findings[0].file, "kernel.cu");
  EXPECT_EQ(reads.findings[0].line, 41);
  EXPECT_EQ(reads.findings[0].kernel, "add(float *)");
  EXPECT_EQ(reads.findings[1].kernel, "merge(float *, float *)");
  EXPECT_EQ(reads.findings[1].line, 0);
}

TEST(SanitizerOutput, CleanIsSaidByTheSummaryOnly) {
  const SanitizerLog clean = log_of("racecheck", "clean.log");
  EXPECT_TRUE(clean.findings.empty());
  EXPECT_EQ(clean.errors, std::size_t{0});
  EXPECT_FALSE(read_sanitizer_log("memcheck", "========= COMPUTE-SANITIZER\n").errors);
  EXPECT_FALSE(read_sanitizer_log("memcheck", "").errors);
}

TEST(SanitizerOutput, TheToolsOwnTroubleIsNoFinding) {
  const SanitizerLog log =
      read_sanitizer_log("memcheck",
                         "========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer to the documentation\n"
                         "========= ERROR SUMMARY: 1 error\n");
  EXPECT_TRUE(log.findings.empty());
  EXPECT_EQ(log.fault, "Device not supported. Please refer to the documentation");
}

// Words that are not in any table are a finding when a place follows.
TEST(SanitizerOutput, OtherReportsAreFaultsAtTheirPlace) {
  const SanitizerLog log = log_of("memcheck", "others.log");
  ASSERT_EQ(log.findings.size(), 5u);
  EXPECT_EQ(log.findings[0].message, "Potential invalid __shared__ read of size 4 bytes");
  EXPECT_EQ(log.findings[0].kind, "out_of_bounds");
  EXPECT_EQ(log.findings[1].kind, "fault");
  EXPECT_EQ(log.findings[1].line, 99);
  EXPECT_EQ(log.findings[2].message, "(Warp Level Programming) Potential RAW hazard detected at __shared__ 0x8c in block (0,0,0)");
  EXPECT_EQ(log.findings[2].severity, "review");
  EXPECT_EQ(log.findings[3].severity, "review") << "WARNING, as older versions write it";
  EXPECT_EQ(log.findings[3].kernel, "sum()");
  EXPECT_EQ(log.findings[3].count, 4096u);
  EXPECT_EQ(log.findings[4].kernel, "hang");
  EXPECT_EQ(log.findings[4].line, 98);
  EXPECT_EQ(log.errors, std::size_t{5376});
  EXPECT_EQ(log.fault, "");
}

TEST(SanitizerOutput, AFindingAsText) {
  const nlohmann::json finding = log_of("racecheck", "racecheck.log").findings.at(0);
  EXPECT_EQ(finding_text(finding), R"(kernel.cu:6: error(race): race between Write access and Read access and Write access
  body(const float *, float *, int, int), 512 times
  Read access body(const float *, float *, int, int) at kernel.cu:7
  Write access body(const float *, float *, int, int) at kernel.cu:6
)");
  Finding nowhere;
  nowhere.kind = "fault";
  nowhere.severity = "error";
  nowhere.message = "Hardware exception";
  EXPECT_EQ(finding_text(nlohmann::json(nowhere)), "error(fault): Hardware exception\n");
}

}  // namespace
}  // namespace hone::testing
