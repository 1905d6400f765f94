#include "program/candidate.h"

#include <gtest/gtest.h>

#include "testing/testing.h"

namespace hone::testing {
namespace {

fs::path folder_with(const std::string& name, const std::string& yaml) {
  const fs::path folder = scratch(name);
  for (const auto& [file, text] :
       {std::pair<std::string, std::string>{"kernel.cpp", "int k;\n"}, {"plan.cpp", "int p;\n"}})
    EXPECT_TRUE(write_file_atomic(folder / file, text).has_value());
  if (!yaml.empty()) {
    EXPECT_TRUE(write_file_atomic(folder / "candidate.yaml", yaml).has_value());
  }
  return folder;
}

TEST(Candidate, WithoutSettings) {
  const fs::path folder = folder_with("plain", "");
  HONE_ASSERT_OK(write_file_atomic(folder / "NOTES.md", "idea\n"));
  const auto candidate = load_candidate(folder);
  HONE_ASSERT_OK(candidate);
  EXPECT_EQ(candidate->name, "plain");
  EXPECT_EQ(candidate->compiler, "g++");
  EXPECT_EQ(candidate->notes, "idea\n");
  EXPECT_EQ(candidate->sources.size(), 2u);
  const std::string before = candidate->sha256;
  HONE_ASSERT_OK(write_file_atomic(folder / "NOTES.md", "another idea\n"));
  EXPECT_EQ(load_candidate(folder.string() + "/")->sha256, before) << "notes are no part of an experiment";
  HONE_ASSERT_OK(write_file_atomic(folder / "kernel.cpp", "int k2;\n"));
  EXPECT_NE(load_candidate(folder)->sha256, before);
}

TEST(Candidate, ParametersConstraintsAndValues) {
  const auto candidate = load_candidate(folder_with("tuned", R"(compiler: g++
flags: [-funroll-loops]
parameters:
  TILE: [64, 16, 8]
  ORDER: [rows, columns]
  DEPTH: [4, 2, 1]
constraints:
  - "TILE * DEPTH <= 32"
values: {DEPTH: 2}
)"));
  HONE_ASSERT_OK(candidate);
  ASSERT_EQ(candidate->parameters.size(), 3u);
  EXPECT_EQ(candidate->parameters[0].name, "TILE");
  EXPECT_EQ(candidate->parameters[1].values, (std::vector<std::string>{"rows", "columns"}));
  EXPECT_EQ(candidate->parameters[2].name, "DEPTH");
  EXPECT_EQ(candidate->values, (Parameters{{"DEPTH", "2"}, {"ORDER", "rows"}, {"TILE", "16"}}));
  const auto other = candidate->with({{"TILE", "8"}, {"ORDER", "columns"}});
  HONE_ASSERT_OK(other);
  EXPECT_EQ(other->values.at("TILE"), "8");
  EXPECT_NE(other->sha256, candidate->sha256);
  EXPECT_EQ(other->with({{"TILE", "16"}, {"ORDER", "rows"}})->sha256, candidate->sha256);
  HONE_EXPECT_ERROR(candidate->with({{"TILE", "64"}}), contract);
  HONE_EXPECT_ERROR(candidate->with({{"TILE", "12"}}), contract);
  HONE_EXPECT_ERROR(candidate->with({{"WIDTH", "1"}}), contract);
}

// C61: of 162 points 15 are allowed; the default is the first of them in enumeration order.
TEST(Candidate, DefaultsObeyASparseSpace) {
  const auto candidate = load_candidate(folder_with("sparse", R"(parameters:
  bx: [1, 2, 4, 8, 16, 32, 64, 128, 256]
  by: [1, 2, 4, 8, 16, 32]
  u:  [1, 2, 4]
constraints:
  - "bx * by == 256"
  - "by % u == 0"
)"));
  HONE_ASSERT_OK(candidate);
  EXPECT_EQ(candidate->values, (Parameters{{"bx", "8"}, {"by", "32"}, {"u", "1"}}));
  std::size_t allowed = 0;
  for (const std::string& bx : candidate->parameters[0].values)
    for (const std::string& by : candidate->parameters[1].values)
      for (const std::string& u : candidate->parameters[2].values)
        allowed += candidate->with({{"bx", bx}, {"by", by}, {"u", u}}) ? 1u : 0u;
  EXPECT_EQ(allowed, 15u);
}

TEST(Candidate, FaultsAreLocated) {
  struct Case {
    const char* yaml;
    const char* kind;
    int line;
    const char* says;
  };
  for (const Case& each : {Case{"compiler: gcc\n", "contract", 1, "compiler"},
                           Case{"flags: [-O3]\nflag: []\n", "contract", 2, "flag"},
                           Case{"flags:\n  - -O2\n  - -fplugin=x\n", "contract", 3, "-fplugin=x"},
                           Case{"parameters:\n  A: []\n", "contract", 2, "A"},
                           Case{"parameters:\n  A: [1, 2, 1]\n", "contract", 2, "twice"},
                           Case{"parameters:\n  A: [1.5]\n", "contract", 2, "A"},
                           Case{"parameters:\n  A: [1]\nconstraints:\n  - \"A ==\"\n", "contract", 4, "A =="},
                           Case{"parameters:\n  A: [1]\nconstraints:\n  - \"B == 1\"\n", "contract", 4, "B"},
                           Case{"parameters:\n  A: [x, y]\nconstraints:\n  - \"A == 1\"\n", "contract", 4, "integers"},
                           Case{"parameters:\n  A: [1, 2]\nconstraints:\n  - \"A > 2\"\n", "contract", 3, "A > 2"},
                           Case{"parameters:\n  A: [1, 2]\nvalues:\n  A: 3\n", "contract", 4, "3"},
                           Case{"parameters:\n  A: [1, 2]\nvalues:\n  B: 1\n", "contract", 4, "B"},
                           Case{"parameters: [\n", "contract", 0, ""},
                           Case{"language: fortran\n", "contract", 1, "language"},
                           Case{"- a\n", "contract", 1, ""}}) {
    SCOPED_TRACE(each.yaml);
    const auto candidate = load_candidate(folder_with("faulty", each.yaml));
    ASSERT_FALSE(candidate.has_value());
    EXPECT_EQ(name_of(candidate.error().kind), each.kind) << to_text(candidate.error());
    EXPECT_TRUE(candidate.error().place.file.ends_with("candidate.yaml")) << to_text(candidate.error());
    if (each.line > 0) {
      EXPECT_EQ(candidate.error().place.line, each.line) << to_text(candidate.error());
    }
    EXPECT_NE(to_text(candidate.error()).find(each.says), std::string::npos) << to_text(candidate.error());
  }
}

TEST(Candidate, MissingFilesAndFolders) {
  const fs::path folder = folder_with("whole", "");
  fs::remove(folder / "kernel.cpp");
  const auto lacking = load_candidate(folder);
  HONE_EXPECT_ERROR(lacking, contract);
  EXPECT_EQ(lacking.error().message, "candidate whole has no kernel.cpp");
  const auto near = load_candidate(folder.parent_path() / "whoel");
  HONE_EXPECT_ERROR(near, not_found);
  EXPECT_NE(near.error().hint.find("whole"), std::string::npos) << near.error().hint;
  HONE_EXPECT_ERROR(load_candidate(folder / "plan.cpp"), not_found);
  EXPECT_NE(load_candidate("0123456789ab").error().hint.find("--receipt"), std::string::npos);
  fs::create_symlink("/etc/passwd", folder / "kernel.cpp");
  HONE_EXPECT_ERROR(load_candidate(folder), contract);
}

TEST(Candidate, AKernelForCuda) {
  const fs::path folder = scratch("cuda");
  HONE_ASSERT_OK(write_file_atomic(folder / "kernel.cu", "__global__ void k() {}\n"));
  HONE_ASSERT_OK(write_file_atomic(folder / "plan.cpp", "int p;\n"));
  const auto plain = load_candidate(folder);
  HONE_ASSERT_OK(plain);
  EXPECT_TRUE(plain->is_cuda());
  EXPECT_EQ(plain->compiler, "nvcc");
  auto with = [&](const std::string& yaml) {
    EXPECT_TRUE(write_file_atomic(folder / "candidate.yaml", yaml).has_value());
    return load_candidate(folder);
  };
  const auto flags = with("flags: [--use_fast_math, -maxrregcount=168]\n");
  HONE_ASSERT_OK(flags);
  EXPECT_EQ(flags->flags.size(), 2u);
  const auto frozen = candidate_from_files("cuda", frozen_files(*flags), folder);
  HONE_ASSERT_OK(frozen);
  EXPECT_EQ(frozen->sha256, flags->sha256);
  const auto host_flag = with("flags: [-ffast-math]\n");
  HONE_EXPECT_ERROR(host_flag, contract);
  EXPECT_EQ(host_flag.error().place.line, 1);
  const auto compiler = with("compiler: g++\n");
  HONE_EXPECT_ERROR(compiler, contract);
  EXPECT_EQ(compiler.error().message, "g++ does not compile a candidate of language cuda");
  HONE_EXPECT_ERROR(with("language: cpp\n"), contract);   // then a kernel.cpp is needed
}

}  // namespace
}  // namespace hone::testing
