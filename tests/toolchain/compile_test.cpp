#include <dlfcn.h>
#include <xmmintrin.h>

#include "base/process.h"
#include "toolchain_fixture.h"

namespace hone::testing {
namespace {

class Compile : public ToolchainTest {};

const char* const kScale = R"(#include <hone/kernel.h>
namespace {
template <int kTile> void scale(const hone::Block& block, const float* x, float* y) {
  y[block.index.x] = x[block.index.x] * kTile;
}
}
template <class T> void twice(const hone::Block&, T* y) { *y *= 2; }
)";

TEST_F(Compile, TemplatesAreInTheObjectOnlyWhenTheyAreAskedFor) {
  CompileRequest plain = request(kScale), asked = request(kScale);
  asked.instantiate = {"scale<3>", "twice<float>"};
  const auto without = toolchain_->compile(plain);
  const auto with = toolchain_->compile(asked);
  HONE_ASSERT_OK(without);
  HONE_ASSERT_OK(with);
  EXPECT_EQ(read_file(without->path)->find("5scaleILi3E"), std::string::npos);
  EXPECT_NE(read_file(with->path)->find("5scaleILi3E"), std::string::npos);
  EXPECT_NE(read_file(with->path)->find("5twiceIfE"), std::string::npos);
  EXPECT_TRUE(with->compiler.starts_with("g++ ")) << with->compiler;
  EXPECT_FALSE(with->cached);
}

// A crash is located by these tables; the unit that instantiates is no file of the candidate's.
TEST_F(Compile, LinesOfATemplateAreThoseOfItsFile) {
  for (const CompilerInfo& compiler : Toolchain::compilers()) {
    if (compiler.name != "g++" && compiler.name != "clang++") continue;
    SCOPED_TRACE(compiler.name);
    CompileRequest asked = request("#include <hone/kernel.h>\ntemplate <int N> void f(const hone::Block&, float* y) {\n  *y = N;\n}\n");
    asked.instantiate = {"f<3>"};
    asked.compiler = compiler.name;
    const auto artifact = toolchain_->compile(asked);
    HONE_ASSERT_OK(artifact);
    const auto run = [&](std::vector<std::string> argv) {
      ProcessSpec spec;
      spec.argv = std::move(argv);
      spec.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
      const auto outcome = run_process(spec);
      return outcome ? outcome->out : std::string();
    };
    const std::string symbols = run({"nm", artifact->path.string()});
    const std::size_t at = symbols.find("_Z1fILi3E");
    ASSERT_NE(at, std::string::npos) << symbols;
    const std::size_t begin = symbols.rfind('\n', at) + 1;
    const std::uint64_t address = std::stoull(symbols.substr(begin, 16), nullptr, 16);
    const std::string lines = run({"addr2line", "-i", "-e", artifact->path.string(), fmt::format("{:#x}", address)});
    EXPECT_TRUE(lines.starts_with("/hone/src/kernel.cpp:")) << lines;
  }
}

TEST_F(Compile, BothCompilersLocateTheFirstError) {
  for (const CompilerInfo& compiler : Toolchain::compilers()) {
    SCOPED_TRACE(compiler.name);
    CompileRequest bad =
        request("#include \"sizes.h\"\nint f() {\n  return missing_name;\n}\nint g() { return also_missing; }\n");
    bad.sources["sizes.h"] = "inline int size() { return 4; }\n";
    bad.compiler = compiler.name;
    const auto result = toolchain_->compile(bad);
    HONE_EXPECT_ERROR(result, compile);
    EXPECT_EQ(result.error().place.file, "kernel.cpp");
    EXPECT_EQ(result.error().place.line, 3);
    EXPECT_EQ(result.error().place.column, 10);
    EXPECT_NE(result.error().message.find("missing_name"), std::string::npos);
    EXPECT_EQ(to_text(result.error()).find("/hone/"), std::string::npos) << to_text(result.error());

    bad.sources["kernel.cpp"] = "#include \"deep/sizes.h\"\n";
    bad.sources["deep/sizes.h"] = "\n#error too small\n";
    const auto nested = toolchain_->compile(bad);
    HONE_EXPECT_ERROR(nested, compile);
    EXPECT_EQ(nested.error().place.file, "deep/sizes.h");
    EXPECT_EQ(nested.error().place.line, 2);
  }
}

TEST_F(Compile, AnErrorInsideASystemHeaderIsLocatedWhereTheCandidateAskedForIt) {
  const auto result = toolchain_->compile(
      request("#include <memory>\nstruct S { S(int); };\n\nauto p() { return std::make_unique<S>(); }\n"));
  HONE_EXPECT_ERROR(result, compile);
  EXPECT_EQ(result.error().place.file, "kernel.cpp");
  EXPECT_EQ(result.error().place.line, 4);
}

TEST_F(Compile, FilesOfTheHostAreNotThere) {
  for (const CompilerInfo& compiler : Toolchain::compilers())
    for (const std::string source :
         {"#include \"/etc/shadow\"\n", "#include \"/proc/self/environ\"\n", "#include \"../../../../etc/shadow\"\n"}) {
      CompileRequest bad = request(source);
      bad.compiler = compiler.name;
      const auto result = toolchain_->compile(bad);
      HONE_EXPECT_ERROR(result, compile);
      EXPECT_EQ(result.error().place.file, "kernel.cpp");
      EXPECT_EQ(result.error().place.line, 1);
      EXPECT_EQ(to_text(result.error()).find("root:"), std::string::npos);
    }
  const auto assembled = toolchain_->compile(request("asm(\".incbin \\\"/etc/shadow\\\"\");\n"));
  HONE_EXPECT_ERROR(assembled, compile);
}

TEST_F(Compile, WhatIsNotAllowedIsRefusedByName) {
  CompileRequest flagged = request("int f() { return 1; }\n");
  flagged.flags = {"-funroll-lops"};
  const auto near = toolchain_->compile(flagged);
  HONE_EXPECT_ERROR(near, forbidden);
  EXPECT_NE(near.error().hint.find("-funroll-loops"), std::string::npos) << near.error().hint;
  for (const char* flag : {"-fplugin=/tmp/x.so", "-DX=1", "-I/etc", "@/etc/passwd", "-specs=x", "-wrapper", "-B/tmp",
                           "-o/out", "-Wl,-rpath,/tmp", ""}) {
    flagged.flags = {flag};
    HONE_EXPECT_ERROR(toolchain_->compile(flagged), forbidden);
  }
  flagged.flags = {};
  flagged.link = {"-lopenblas"};
  HONE_EXPECT_ERROR(toolchain_->compile(flagged), forbidden);
  flagged.link = {};
  flagged.defines = {{"A B", "1"}};
  HONE_EXPECT_ERROR(toolchain_->compile(flagged), contract);
  flagged.defines = {{"A", "1\n#include \"x\""}};
  HONE_EXPECT_ERROR(toolchain_->compile(flagged), contract);
  flagged.defines = {};
  flagged.sources["../x.h"] = "";
  HONE_EXPECT_ERROR(toolchain_->compile(flagged), contract);
  CompileRequest unknown = request("");
  unknown.compiler = "/bin/sh";
  HONE_EXPECT_ERROR(toolchain_->compile(unknown), no_compiler);
  EXPECT_EQ(left_in("scratch"), 0u);
}

TEST_F(Compile, DefinesArriveAndEveryAllowedFlagWorksWithSomeCompiler) {
  CompileRequest defined = request("static_assert(TILE == 4 * sizeof(NAME));\n");
  defined.defines = {{"TILE", "16"}, {"NAME", "unsigned int"}};
  HONE_ASSERT_OK(toolchain_->compile(defined));
  CompileRequest all = request("#include <cmath>\nfloat f(float x) { return std::sqrt(x); }\n");
  for (const std::string& flag : Toolchain::allowed_flags("g++")) all.flags.push_back(flag);
  HONE_ASSERT_OK(toolchain_->compile(all));
}

TEST_F(Compile, AKernelNameThatNamesNothingOrSeveralSaysSo) {
  CompileRequest named = request(std::string(kScale) + "void over(int) {}\nvoid over(float) {}\n");
  named.instantiate = {"twice<float>", "gemm<64>"};
  const auto none = toolchain_->compile(named);
  HONE_EXPECT_ERROR(none, kernel_name);
  EXPECT_EQ(none.error().message, "`gemm<64>` names no function template in kernel.cpp");
  named.instantiate = {"over"};
  const auto several = toolchain_->compile(named);
  HONE_EXPECT_ERROR(several, kernel_name);
  EXPECT_EQ(several.error().message, "`over` names no single function in kernel.cpp");
  named.instantiate = {"twice<float>; int x = (0"};
  HONE_EXPECT_ERROR(toolchain_->compile(named), kernel_name);
}

TEST_F(Compile, AnErrorInATemplatesBodyBelongsToTheSource) {
  CompileRequest bad = request("template <int N> void f() {\n  static_assert(N > 4, \"N is too small\");\n}\n");
  bad.instantiate = {"f<3>"};
  const auto result = toolchain_->compile(bad);
  HONE_EXPECT_ERROR(result, compile);
  EXPECT_EQ(result.error().place.line, 2);
  EXPECT_NE(result.error().message.find("N is too small"), std::string::npos);
}

TEST_F(Compile, AnUndefinedFunctionIsALocatedError) {
  const auto result = toolchain_->compile(request("extern \"C\" void cblas_sgemm();\n\nvoid f() { cblas_sgemm(); }\n"));
  HONE_EXPECT_ERROR(result, compile);
  EXPECT_NE(result.error().message.find("undefined reference to `cblas_sgemm'"), std::string::npos);
  EXPECT_EQ(result.error().place.file, "kernel.cpp");
  EXPECT_EQ(result.error().place.line, 3);
}

// -ffast-math at link time adds a constructor that flushes denormals in the whole process.
TEST_F(Compile, FastMathChangesTheObjectAndNotTheProcessThatLoadsIt) {
  for (const CompilerInfo& compiler : Toolchain::compilers()) {
    CompileRequest fast = request("float f(float a, float b) { return a / b; }\n");
    fast.flags = {"-Ofast", "-ffast-math"};
    fast.compiler = compiler.name;
    const auto artifact = toolchain_->compile(fast);
    HONE_ASSERT_OK(artifact);
    const unsigned before = _mm_getcsr() & ~0x3fu;
    void* const handle = ::dlopen(artifact->path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << ::dlerror();
    EXPECT_EQ(_mm_getcsr() & ~0x3fu, before);
    ::dlclose(handle);
  }
}

TEST_F(Compile, AFloodOfMessagesIsCutAndLocatedAtTheFirst) {
  std::string source = fmt::format("\n#define A _Pragma(\"message \\\"{}\\\"\")\n", std::string(4000, 'x'));
  for (char c = 'B'; c <= 'E'; ++c)
    source += fmt::format(
        "#define {} {}\n", c,
        fmt::format("{0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0}", static_cast<char>(c - 1)));
  source += "E\n";   // 65536 messages of 4000 bytes
  const auto result = toolchain_->compile(request(source));
  HONE_EXPECT_ERROR(result, output_limit);
  EXPECT_EQ(result.error().place.file, "kernel.cpp");
  EXPECT_EQ(result.error().place.line, 2);
  ASSERT_FALSE(result.error().notes.empty());
  EXPECT_NE(result.error().notes[0].find("truncated: "), std::string::npos);
  EXPECT_EQ(left_in("scratch"), 0u);
}

TEST_F(Compile, TimeAndMemoryEndACompile) {
  CompileRequest slow = request(
      "template <int N, long M> struct F { static const long v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };\n"
      "template <long M> struct F<0, M> { static const long v = M; };\nlong f() { return F<30, 0>::v; }\n");
  slow.timeout_s = 1;
  HONE_EXPECT_ERROR(toolchain_->compile(slow), timeout);
  slow.timeout_s = 60;
  slow.memory_bytes = std::uint64_t{160} << 20;
  const auto large = toolchain_->compile(slow);
  HONE_EXPECT_ERROR(large, out_of_memory);
  EXPECT_NE(large.error().message.find("160"), std::string::npos) << large.error().message;
}

TEST_F(Compile, TrustedCodeLinksLibrariesOfTheSystem) {
  CompileRequest task = request("#include <cmath>\nextern \"C\" double f(double x) { return std::cbrt(x); }\n");
  task.trusted = true;
  task.flags = {"-fopenmp"};
  task.link = {"-lm"};
  HONE_ASSERT_OK(toolchain_->compile(task));
}

TEST_F(Compile, WithoutASandboxTheSameHappensOnTheHost) {
  auto open = Sandbox::create(SandboxMode::off, include_.parent_path() / "libexec");
  HONE_ASSERT_OK(open);
  const auto toolchain = Toolchain::create(*open, cache_, include_);
  HONE_ASSERT_OK(toolchain);
  CompileRequest asked = request(kScale);
  asked.instantiate = {"scale<3>"};
  const auto outside = toolchain->compile(asked);
  HONE_ASSERT_OK(outside);
  const auto inside = toolchain_->compile(asked);
  HONE_ASSERT_OK(inside);
  EXPECT_FALSE(inside->cached) << "what was compiled without isolation is not served with it";
  EXPECT_EQ(inside->sha256, outside->sha256);
  asked.sources["kernel.cpp"] = "int f() { return x; }\n";
  asked.instantiate = {};
  const auto bad = toolchain->compile(asked);
  HONE_EXPECT_ERROR(bad, compile);
  EXPECT_EQ(bad.error().place.file, "kernel.cpp");
}

}  // namespace
}  // namespace hone::testing
