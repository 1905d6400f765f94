// Compiling for a GPU on a machine that need not have one. Skipped without nvcc.
#include "toolchain/cubin.h"
#include "toolchain/resources.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/hash.h"
#include "text_cases.h"
#include "toolchain_fixture.h"

namespace hone::testing {
namespace {

class Cuda : public ToolchainTest {
 protected:
  void SetUp() override {
    ToolchainTest::SetUp();
    if (IsSkipped()) return;
    if (const auto nvcc = Toolchain::compiler("nvcc"); !nvcc) {
      GTEST_SKIP() << nvcc.error().message;
    }
  }

  static CompileRequest cuda(std::string kernel, std::vector<std::string> instantiate = {}) {
    CompileRequest out;
    out.sources["kernel.cu"] = std::move(kernel);
    out.entry = "kernel.cu";
    out.compiler = "nvcc";
    out.architecture = "sm_90a";
    out.kind = ArtifactKind::cubin;
    out.instantiate = std::move(instantiate);
    return out;
  }

  // The text of the error that compiling ends with.
  std::string error_of(const CompileRequest& request) {
    const auto artifact = toolchain_->compile(request);
    return artifact ? "no error" : to_text(artifact.error());
  }
};

const char* const kTiles = R"(#include <cuda_bf16.h>
namespace tile {
template <int M, class T> __global__ void __launch_bounds__(128) sum(const T* __restrict__ x, float* y, long n) {
  __shared__ float part[64];
  part[threadIdx.x] = static_cast<float>(x[n]);
  __syncthreads();
  y[threadIdx.x] = part[63 - threadIdx.x] * M;
}
}
namespace {
template <int K> __global__ void hidden(float* y) { *y = K; }
}
__global__ void plain(float* y) { *y = 1; }
)";

TEST_F(Cuda, MakesACubinItsPtxAndWhatEachKernelTakes) {
  const CompileRequest wanted = cuda(kTiles, {"tile::sum<3, float>", "tile::sum<4, __nv_bfloat16>", "hidden<7>"});
  const auto artifact = toolchain_->compile(wanted);
  HONE_ASSERT_OK(artifact);
  EXPECT_EQ(artifact->path.filename(), "kernel.cubin");
  EXPECT_TRUE(artifact->compiler.starts_with("nvcc 1")) << artifact->compiler;
  const std::string cubin = *read_file(artifact->path), ptx = *read_file(artifact->ptx);
  EXPECT_TRUE(is_cubin(cubin));
  EXPECT_NE(ptx.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(ptx.find(".entry _ZN4tile3sumILi3EfEEvPKT0_Pfl("), std::string::npos);
  EXPECT_NE(ptx.find("\"/hone/src/kernel.cu\""), std::string::npos) << "line numbers name the candidate's file";
  const auto kernels = kernels_of_cubin(cubin);
  HONE_ASSERT_OK(kernels);
  EXPECT_EQ(kernels->size(), 4u);
  const auto sum = std::find_if(kernels->begin(), kernels->end(), [](const CubinKernel& each) { return each.symbol == "_ZN4tile3sumILi3EfEEvPKT0_Pfl"; });
  ASSERT_NE(sum, kernels->end());
  ASSERT_EQ(sum->parameters.size(), 3u);
  EXPECT_EQ(sum->parameters[2].offset, 16u);
  EXPECT_EQ(sum->parameters[2].bytes, 8u);
  EXPECT_EQ(sum->parameter_bytes, 24u);

  ASSERT_EQ(artifact->resources.size(), 4u);
  const auto taken = std::find_if(artifact->resources.begin(), artifact->resources.end(), [&](const KernelResources& each) { return each.symbol == sum->symbol; });
  ASSERT_NE(taken, artifact->resources.end());
  EXPECT_GT(taken->registers, 4u);
  EXPECT_EQ(taken->shared_bytes, 256u);
  EXPECT_EQ(taken->barriers, 1u);
  EXPECT_EQ(taken->max_threads, 128u);
  EXPECT_GT(taken->constant_bytes, 24u);
  EXPECT_EQ(taken->spill_store_bytes, 0u);
  EXPECT_TRUE(artifact->warnings.empty()) << artifact->warnings.front();

  const auto again = toolchain_->compile(wanted);
  HONE_ASSERT_OK(again);
  EXPECT_TRUE(again->cached);
  EXPECT_EQ(again->ptx, artifact->ptx);
  ASSERT_EQ(again->resources.size(), 4u);
  EXPECT_EQ(again->resources[0].registers, artifact->resources[0].registers);
  // A damaged PTX is made again, and the compile is reproducible.
  HONE_ASSERT_OK(write_file_atomic(artifact->ptx, "//"));
  const auto third = toolchain_->compile(wanted);
  HONE_ASSERT_OK(third);
  EXPECT_FALSE(third->cached);
  EXPECT_EQ(third->sha256, artifact->sha256);
  EXPECT_EQ(*read_file(third->ptx), ptx);
}

TEST_F(Cuda, TheArchitectureAndEveryAllowedFlagChangeTheKey) {
  CompileRequest request = cuda(kTiles);
  std::set<std::string> keys;
  const auto first = toolchain_->compile(request);
  HONE_ASSERT_OK(first);
  keys.insert(first->key);
  request.architecture = "sm_100a";
  const auto newer = toolchain_->compile(request);
  HONE_ASSERT_OK(newer);
  EXPECT_TRUE(keys.insert(newer->key).second);
  EXPECT_NE(read_file(newer->ptx)->find(".target sm_100a"), std::string::npos);
  request.architecture = "sm_90a";
  // Of flags that say the same thing with different values nvcc refuses two at once: the first of each,
  // then the last of each.
  for (const bool last : {false, true}) {
    std::map<std::string, std::string> by_name;
    for (std::string flag : Toolchain::allowed_flags("nvcc")) {
      if (flag.ends_with("=N")) flag.replace(flag.size() - 1, 1, flag.starts_with("-max") ? "64" : "5");
      const std::string name = flag.find("=-O") != std::string::npos ? flag.substr(0, flag.find("=-O")) : flag.substr(0, flag.rfind('='));
      if (last || !by_name.contains(name)) by_name[name] = flag;
    }
    request.flags.clear();
    for (const auto& [name, flag] : by_name) request.flags.push_back(flag);
    const auto artifact = toolchain_->compile(request);
    ASSERT_TRUE(artifact.has_value()) << to_text(artifact.error());
    EXPECT_TRUE(keys.insert(artifact->key).second);
  }
}

TEST_F(Cuda, ErrorsAreLocatedInTheSource) {
  EXPECT_EQ(error_of(cuda("#include \"sizes.h\"\n")), "kernel.cu:1:10: error(compile): sizes.h: No such file or directory");
  EXPECT_TRUE(error_of(cuda("__global__ void f(float* y) {\n  *y = missing;\n}\n")).starts_with("kernel.cu:2: error(compile): identifier \"missing\" is undefined\n"));
  const std::string named = error_of(cuda(kTiles, {"tile::sum<3, float>", "gemm<64>"}));
  EXPECT_TRUE(named.starts_with("kernel.cu: error(kernel_name): `gemm<64>` names no function template in kernel.cu\n")) << named;
  const std::string body = error_of(cuda("template <int N> __global__ void f() {\n  static_assert(N > 4, \"N is too small\");\n}\n", {"f<3>"}));
  EXPECT_TRUE(body.starts_with("kernel.cu:2: error(compile): static assertion failed with \"N is too small\"\n")) << body;
  const std::string instruction = error_of(cuda("__global__ void f(float* y) {\n  float v = *y;\n\n  asm volatile(\"no.such %0;\" : \"+f\"(v));\n  *y = v;\n}\n"));
  EXPECT_TRUE(instruction.starts_with("kernel.cu:4:")) << instruction;
  EXPECT_NE(instruction.find("no"), std::string::npos) << instruction;
  const std::string large = error_of(cuda("__global__ void f(float* y) {\n  __shared__ float big[80000];\n  big[threadIdx.x] = *y;\n  __syncthreads();\n  *y = big[9 - threadIdx.x];\n}\n"));
  EXPECT_TRUE(large.starts_with("kernel.cu: error(compile): ")) << large;
  EXPECT_NE(large.find("too much shared data"), std::string::npos) << large;
  EXPECT_EQ(left_in("artifacts"), 0u);
  EXPECT_EQ(left_in("scratch"), 0u);
}

TEST_F(Cuda, FilesOfTheHostAreNotThere) {
  for (const std::string file : {"/etc/shadow", "/proc/self/environ", "../../../../etc/shadow"}) {
    const auto result = toolchain_->compile(cuda(fmt::format("#include \"{}\"\n", file)));
    HONE_EXPECT_ERROR(result, compile);
    EXPECT_EQ(result.error().place.file, "kernel.cu");
    EXPECT_EQ(result.error().place.line, 1);
    EXPECT_EQ(to_text(result.error()).find("root:"), std::string::npos);
  }
  HONE_EXPECT_ERROR(toolchain_->compile(cuda("asm(\".incbin \\\"/etc/passwd\\\"\");\n__global__ void f() { asm volatile(\".include \\\"/etc/passwd\\\"\"); }\n")), compile);
}

TEST_F(Cuda, WhatIsNotAllowedIsRefusedByName) {
  CompileRequest request = cuda(kTiles);
  for (const char* flag : {"-Xcompiler=-fplugin=x", "-ccbin=/tmp", "-DX=1", "-I/etc", "-o/out", "--options-file=/etc/passwd", "-maxrregcount=", "-maxrregcount=6x",
                           "-maxrregcount=10000", "-Xptxas=-o/tmp/x", "-O3", "-ffast-math", "--run", ""}) {
    request.flags = {flag};
    HONE_EXPECT_ERROR(toolchain_->compile(request), forbidden);
  }
  request.flags = {"--use-fast-math"};
  const auto near = toolchain_->compile(request);
  HONE_EXPECT_ERROR(near, forbidden);
  EXPECT_EQ(near.error().hint, "did you mean --use_fast_math?");
  request.flags = {};
  for (const char* architecture : {"", "cpu", "sm_", "sm_90a -o", "compute_90"}) {
    request.architecture = architecture;
    HONE_EXPECT_ERROR(toolchain_->compile(request), contract);
  }
  request.architecture = "sm_90a";
  request.kind = ArtifactKind::shared_object;   // host code of a candidate
  HONE_EXPECT_ERROR(toolchain_->compile(request), internal);
}

TEST_F(Cuda, SpillsAndLocalMemoryAreWarnedOf) {
  CompileRequest request = cuda(R"(__global__ void f(float* y) {
  float v[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = y[i * 32 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) y[i * 32 + threadIdx.x] = v[95 - i] * v[i];
}
)");
  request.flags = {"-maxrregcount=32"};
  const auto artifact = toolchain_->compile(request);
  HONE_ASSERT_OK(artifact);
  ASSERT_EQ(artifact->resources.size(), 1u);
  EXPECT_EQ(artifact->resources[0].registers, 32u);
  EXPECT_GT(artifact->resources[0].spill_store_bytes, 0u);
  ASSERT_FALSE(artifact->warnings.empty());
  EXPECT_NE(artifact->warnings.back().find("_Z1fPf spills registers"), std::string::npos) << artifact->warnings.back();
}

TEST_F(Cuda, AFloodTimeAndMemoryEndACompile) {
  auto flooding = [](std::size_t length) {
    std::string source = fmt::format("\n#define A _Pragma(\"message \\\"{}\\\"\")\n", std::string(length, 'x'));
    for (char c = 'B'; c <= 'E'; ++c)
      source += fmt::format("#define {} {}\n", c, fmt::format("{0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0} {0}", static_cast<char>(c - 1)));
    return source + "E\n";
  };
  for (const std::size_t length : {200u, 4000u}) {   // too many messages, which take long as well; too large a temporary file
    CompileRequest request = cuda(flooding(length));
    request.timeout_s = 300;   // a busy machine takes its time until the limit that is meant is reached
    const auto flood = toolchain_->compile(request);
    HONE_EXPECT_ERROR(flood, output_limit);
    EXPECT_EQ(flood.error().place.file, "kernel.cu");
  }
  CompileRequest slow = cuda(
      "template <int N, long M> struct F { static const long v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };\n"
      "template <long M> struct F<0, M> { static const long v = M; };\n__global__ void f(long* y) { *y = F<30, 0>::v; }\n");
  slow.timeout_s = 3;
  HONE_EXPECT_ERROR(toolchain_->compile(slow), timeout);
  slow.timeout_s = 300;
  slow.memory_bytes = std::uint64_t{160} << 20;
  HONE_EXPECT_ERROR(toolchain_->compile(slow), out_of_memory);
  EXPECT_EQ(left_in("scratch"), 0u);
}

TEST_F(Cuda, TrustedCodeIsASharedObjectWithItsKernels) {
  CompileRequest task = cuda("__global__ void f(float* y) { *y = 1; }\nextern \"C\" void run(float* y) { f<<<1, 1>>>(y); }\n");
  task.trusted = true;
  task.kind = ArtifactKind::shared_object;
  task.flags = {"-Xcompiler=-ffp-contract=off", "--fmad=false"};
  const auto artifact = toolchain_->compile(task);
  HONE_ASSERT_OK(artifact);
  EXPECT_EQ(artifact->path.filename(), "kernel.so");
  EXPECT_NE(read_file(artifact->path)->find("_Z1fPf"), std::string::npos);
  task.sources["kernel.cu"] += "void other();\nvoid g() { other(); }\n";
  const auto undefined = toolchain_->compile(task);
  HONE_EXPECT_ERROR(undefined, compile);
  EXPECT_NE(undefined.error().message.find("undefined reference to `other()'"), std::string::npos) << undefined.error().message;
}

TEST_F(Cuda, WithoutASandboxTheSameKernelsAreMade) {
  auto open = Sandbox::create(SandboxMode::off, include_.parent_path() / "libexec");
  HONE_ASSERT_OK(open);
  const auto toolchain = Toolchain::create(*open, cache_, include_);
  HONE_ASSERT_OK(toolchain);
  const auto outside = toolchain->compile(cuda(kTiles, {"hidden<7>"}));
  HONE_ASSERT_OK(outside);
  EXPECT_EQ(outside->resources.size(), 2u);
  EXPECT_EQ(read_file(outside->ptx)->find(cache_.string()), std::string::npos) << "paths as the candidate knows them";
}

TEST(FindNvcc, AWrongRootIsNamed) {
  const std::string before = std::getenv("HONE_CUDA") == nullptr ? "" : std::getenv("HONE_CUDA");
  ::setenv("HONE_CUDA", "/nonexistent/cuda", 1);
  const auto found = Toolchain::compiler("nvcc");
  HONE_EXPECT_ERROR(found, no_compiler);
  EXPECT_NE(found.error().message.find("/nonexistent/cuda"), std::string::npos);
  if (before.empty()) ::unsetenv("HONE_CUDA");
  else ::setenv("HONE_CUDA", before.c_str(), 1);
}

TEST(AssemblerReport, TextCases) {
  replay(source_dir() / "tests/cases/toolchain/assembler.txt", [](const std::string&, const std::string& input) {
    const AssemblerReport report = read_assembler_report(input);
    std::string out;
    for (const KernelResources& each : report.kernels)
      out += fmt::format("{}: {} registers, {} barriers, spills {}/{}, stack {}, shared {}\n", each.symbol, each.registers, each.barriers,
                         each.spill_store_bytes, each.spill_load_bytes, each.stack_bytes, each.shared_bytes);
    for (const std::string& each : report.warnings) out += "warning: " + each + "\n";
    return out;
  });
}

}  // namespace
}  // namespace hone::testing
