#include "program/symbol.h"

#include <cxxabi.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "program/candidate.h"
#include "toolchain/toolchain_fixture.h"

namespace hone::testing {
namespace {

std::string standard_demangled(const std::string& mangled) {
  int status = 0;
  char* const text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 ? text : "";
  std::free(text);
  for (std::size_t at = 0; (at = out.find("(anonymous namespace)::", at)) != std::string::npos;) out.erase(at, 23);
  return out;
}

TEST(Demangle, SaysWhatTheStandardLibrarySays) {
  for (const char* mangled :
       {"_Z5scaleRKN4hone5BlockEPKfPfl", "_Z4gemmILi3ELi4EEvRKN4hone5BlockEPKfS5_Pf",
        "_ZN4tile4gemmILi128EfEEvRKN4hone5BlockEPKT0_PS5_", "_ZN12_GLOBAL__N_14gemmILi3EEEvRKN4hone5BlockE",
        "_ZL4gemmRKN4hone5BlockEPKNS_4bf16E", "_ZN1a1b1cILb1EEEvv", "_Z1fILj3ELl4ELm5ELx6ELy7ELb0ELin8ELs9ELc97EEvv",
        "_Z1fIL4Mode1EEvv", "_Z1fISt4pairIiiES1_EvT_T0_", "_Z1fPKvPVfPrfRiOj", "_Z1fDv8_fDv16_d", "_Z1fPPKPKc",
        "_Z1fmnoxyedgwabch", "_Z1fIJiflEEvRKN4hone5BlockE", "_Z1fILi1EJLi2ELi3EEEvv", "_Z1fN1a1bES0_NS_1cE",
        "_Z1fB5cxx11v", "_ZN3FooIiE3runERKN4hone5BlockE", "_Z1fSt6vectorIfSaIfEE"}) {
    const auto name = demangle_function(mangled);
    ASSERT_TRUE(name.has_value()) << mangled;
    EXPECT_EQ(name->text(), standard_demangled(mangled)) << mangled;
  }
  ASSERT_TRUE(demangle_function("_Z1fDF16_").has_value());   // younger than g++ 12's demangler
  EXPECT_EQ(demangle_function("_Z1fDF16_")->text(), "f(_Float16)");
}

// Every function of the C++ library that both can read. Ours leaves out a member's `const`, and
// knows the short names of std::string and streams only.
TEST(Demangle, AgreesOnTheWholeStandardLibrary) {
  std::string bytes;
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/aarch64-linux-gnu/libstdc++.so.6",
                           "/usr/lib64/libstdc++.so.6"})
    if (auto found = read_file(path)) bytes = *std::move(found);
  if (bytes.empty()) {
    GTEST_SKIP() << "no libstdc++.so.6 in the usual places";
  }
  const auto functions = functions_of(bytes);
  HONE_ASSERT_OK(functions);
  std::size_t compared = 0, different = 0;
  for (const ElfFunction& function : *functions) {
    const std::string mangled(function.name);
    const auto name = demangle_function(mangled);
    if (!name) continue;
    std::string expected = standard_demangled(mangled);
    if (expected.find("std::string") != std::string::npos || expected.find("std::basic_") != std::string::npos ||
        expected.find("std::iostream") != std::string::npos || expected.find("stream") != std::string::npos)
      continue;
    for (const char* tail : {" &&", " &", " const", " volatile"})
      if (expected.ends_with(tail)) expected.resize(expected.size() - std::strlen(tail));
    ++compared;
    if (name->text() != expected && ++different <= 5)
      ADD_FAILURE() << mangled << "\n  ours " << name->text() << "\n  its  " << expected;
  }
  EXPECT_GT(compared, 500u);
  EXPECT_EQ(different, 0u);
}

TEST(Demangle, RefusesWhatItCannotReadAndWhatExplodes) {
  for (const char* bad : {"",
                          "_Z",
                          "main",
                          "_ZN",
                          "_ZN1aE",
                          "_Z1",
                          "_Z99999999999999999999a",
                          "_Z1fS_",
                          "_Z1fT_",
                          "_Z1fIiEvT0_",
                          "_Z1fILi",
                          "_Z1fIXaE",
                          "_Z1f.cold",
                          "_Z1fv.part.0",
                          "_ZN1aC1Ev",
                          "_Zpliv",
                          "_ZZ1fvE1x",
                          "_Z1fM1aFvvE",
                          "_ZTV1a",
                          "_ZGV1a",
                          "_Z1fPFvvE",
                          "_Z1fSz",
                          "_Z1fS99999999999999_"})
    EXPECT_FALSE(demangle_function(bad).has_value()) << bad;
  // Each step doubles the last one: 2^60 characters for the standard demangler.
  std::string bomb = "_Z1fSt4pairIiiE";
  for (const std::string id : {"S0_", "S1_", "S2_", "S3_", "S4_", "S5_", "S6_", "S7_", "S8_", "S9_", "SA_", "SB_",
                               "SC_", "SD_", "SE_", "SF_", "SG_", "SH_"})
    bomb += "S_I" + id + id + "E";
  EXPECT_FALSE(demangle_function(bomb).has_value());
  EXPECT_FALSE(demangle_function("_Z1f" + std::string(100'000, 'P') + "i").has_value());
  std::string nested = "_Z1f";
  for (int i = 0; i < 5000; ++i) nested += "1aI";
  EXPECT_FALSE(demangle_function(nested).has_value());
}

class Resolve : public ToolchainTest {
 protected:
  void SetUp() override {
    ToolchainTest::SetUp();
    if (IsSkipped()) return;
    problem_.workload = "w0";
    problem_.device = "cpu";
    problem_.tensors = {
        {"x", DType::f32, TensorRole::input, {8}, {1}},    {"b", DType::bf16, TensorRole::input, {8}, {1}},
        {"y", DType::f32, TensorRole::output, {8}, {1}},   {"s", DType::f32, TensorRole::persistent, {8}, {1}},
        {"rows", DType::i32, TensorRole::input, {8}, {1}}, {"long_rows", DType::i64, TensorRole::input, {8}, {1}}};
    CompileRequest wanted = request(R"(#include <hone/kernel.h>
using hone::Block;
enum class Mode { slow, fast };
void plain(const Block&, const float* x, float* y) { *y = *x; }
namespace tile {
template <int M, int N = 4, class T = float> void gemm(const Block&, const T* x, T* y, std::int64_t n) {
  *y = *x * M * N + n;
}
}
namespace {
template <bool On, unsigned W> void hidden(const Block&, float* y) { *y = On * W; }
void internal(const Block&, float* y) { *y = 3; }
}
template <class T> void typed(const Block&, const T* x, float* y) { *y = sizeof *x; }
template <Mode kMode> void moded(const Block&, float* y) { *y = static_cast<int>(kMode); }
void scalars(const Block&, int a, unsigned b, std::int64_t c, std::uint64_t d, float e, double f, float* y) {
  *y = a + b + c + d + e + f;
}
void takes_bf16(const Block&, const hone::bf16* b, float* y) { *y = hone::to_float(*b); }
void takes_void(const Block&, const void* x, void* y) { *static_cast<float*>(y) = *static_cast<const float*>(x); }
void writes_input(const Block&, float* x, float* y) { *y = *x; }
void no_block(float* y) { *y = 1; }
extern "C" void c_name(const Block&, float* y) { *y = 1; }
void over(const Block&, float* y) { *y = 1; }
void over(const Block&, float* y, int n) { *y = n; }
void wide(const Block&, const long long* rows, float* y) { *y = *rows; }
)");
    wanted.instantiate = {"tile::gemm<3>", "tile::gemm<3, 8>",     "tile::gemm<-1, 2, double>", "hidden<true, 7>",
                          "internal",      "typed<std::uint16_t>", "typed<hone::bf16>",         "moded<(Mode)1>"};
    const auto artifact = toolchain_->compile(wanted);
    HONE_ASSERT_OK(artifact);
    object_ = *read_file(artifact->path);
  }

  PlanArg tensor(const char* name) { return {ArgKind::tensor, name, 0, 0}; }
  Result<KernelSymbol> resolve(const std::string& kernel, std::vector<PlanArg> args) {
    PlanLaunch launch;
    launch.kernel = kernel;
    launch.args = std::move(args);
    return resolve_kernel(object_, launch, problem_);
  }

  std::string object_;
  ProblemShape problem_;
};

TEST_F(Resolve, NamesAsWrittenInTheSource) {
  const PlanArg n{ArgKind::i64, "", 0, 8};
  const std::vector<std::pair<std::string, std::string>> three = {
      {"tile::gemm<3, 8>", "void tile::gemm<3, 8, float>(hone::Block const&, float const*, float*, long)"},
      {"tile::gemm<3,8>", ""}, {"tile::gemm< (int)3 , 0x8 >", ""}, {"::tile::gemm<3u, 8ul, float>", ""}};
  std::uint64_t offset = 0;
  for (const auto& [name, text] : three) {
    const auto found = resolve(name, {tensor("x"), tensor("y"), n});
    HONE_ASSERT_OK(found);
    if (offset == 0) offset = found->offset;
    EXPECT_EQ(found->offset, offset) << name;
    EXPECT_EQ(found->demangled, three[0].second);
  }
  HONE_ASSERT_OK(resolve("plain", {tensor("x"), tensor("y")}));
  HONE_ASSERT_OK(resolve("hidden<true, 7>", {tensor("y")}));
  HONE_ASSERT_OK(resolve("hidden<1, 7u>", {tensor("y")}));
  HONE_ASSERT_OK(resolve("internal", {tensor("y")}));
  HONE_ASSERT_OK(resolve("moded<(Mode)1>", {tensor("y")}));
  HONE_ASSERT_OK(resolve("typed<hone::bf16>", {tensor("b"), tensor("y")}));
  HONE_ASSERT_OK(resolve("typed<bf16>", {tensor("b"), tensor("y")}));
}

TEST_F(Resolve, NoneAndSeveral) {
  const auto none = resolve("plian", {tensor("x"), tensor("y")});
  HONE_EXPECT_ERROR(none, kernel_name);
  EXPECT_EQ(none.error().hint, "did you mean plain?");
  const auto other = resolve("tile::gemm<4, 8>", {});
  HONE_EXPECT_ERROR(other, kernel_name);
  EXPECT_NE(other.error().hint.find("tile::gemm<3, 8, float>"), std::string::npos) << other.error().hint;
  HONE_EXPECT_ERROR(resolve("gemm<3, 8>", {}), kernel_name);
  HONE_EXPECT_ERROR(resolve("tile::gemm", {}), kernel_name);
  HONE_EXPECT_ERROR(resolve("tile::gemm<3, 8, float, 1>", {}), kernel_name);
  const auto several = resolve("over", {tensor("y")});
  HONE_EXPECT_ERROR(several, kernel_name);
  EXPECT_EQ(several.error().message, "kernel `over`: it names 2 functions");
  EXPECT_EQ(several.error().notes.size(), 2u);
  const auto defaulted = resolve("tile::gemm<3>", {});
  HONE_EXPECT_ERROR(defaulted, kernel_name);   // <3, 4> and <3, 8> both begin so
  EXPECT_EQ(defaulted.error().notes.size(), 2u);
  const auto c = resolve("c_name", {tensor("y")});
  HONE_EXPECT_ERROR(c, kernel_name);
  EXPECT_NE(c.error().hint.find("extern"), std::string::npos);
  HONE_EXPECT_ERROR(resolve("no_block", {tensor("y")}), kernel_name);
  HONE_EXPECT_ERROR(resolve("a b", {}), kernel_name);
}

TEST_F(Resolve, ArgumentsAreHeldAgainstTheParameters) {
  auto message = [&](const std::string& kernel, std::vector<PlanArg> args) {
    const auto result = resolve(kernel, std::move(args));
    return result ? std::string("ok") : std::string(name_of(result.error().kind)) + ": " + result.error().message;
  };
  EXPECT_EQ(message("plain", {tensor("x")}),
            "kernel_name: kernel `plain`: it takes 2 arguments after the block, the plan gives 1");
  EXPECT_EQ(message("plain", {tensor("b"), tensor("y")}),
            "kernel_name: kernel `plain`: argument 1: the kernel takes float const*, the plan gives input b of dtype "
            "bf16: wrong dtype");
  EXPECT_EQ(message("takes_bf16", {tensor("x"), tensor("y")}),
            "kernel_name: kernel `takes_bf16`: argument 1: the kernel takes hone::bf16 const*, the plan gives input x "
            "of dtype f32: wrong dtype");
  EXPECT_EQ(message("writes_input", {tensor("x"), tensor("y")}),
            "kernel_name: kernel `writes_input`: argument 1: input x is passed as a pointer to non-const (float*)");
  EXPECT_EQ(message("writes_input", {tensor("s"), tensor("y")}), "ok");
  EXPECT_EQ(message("takes_bf16", {tensor("b"), tensor("y")}), "ok");
  EXPECT_EQ(message("takes_void", {tensor("rows"), tensor("y")}), "ok");
  EXPECT_EQ(message("wide", {tensor("long_rows"), tensor("y")}), "ok");
  EXPECT_EQ(message("plain", {{ArgKind::workspace, "", 0, 0}, {ArgKind::workspace, "", 0, 0}}), "ok");
  const std::vector<PlanArg> right = {{ArgKind::i32, "", 0, 1},
                                      {ArgKind::u32, "", 0, 1},
                                      {ArgKind::i64, "", 0, 1},
                                      {ArgKind::u64, "", 0, 1},
                                      {ArgKind::f32, "", 0, 1},
                                      {ArgKind::f64, "", 0, 1},
                                      tensor("y")};
  EXPECT_EQ(message("scalars", right), "ok");
  for (std::size_t i = 0; i < 6; ++i) {
    auto wrong = right;
    std::swap(wrong[i], wrong[(i + 1) % 6]);
    EXPECT_NE(message("scalars", wrong).find("argument "), std::string::npos);
  }
  auto scalar_for_pointer = right;
  scalar_for_pointer[6] = {ArgKind::i64, "", 0, 0};
  EXPECT_EQ(message("scalars", scalar_for_pointer),
            "kernel_name: kernel `scalars`: argument 7: the kernel takes float*, the plan gives i64 (long)");
  auto pointer_for_scalar = right;
  pointer_for_scalar[0] = tensor("y");
  EXPECT_EQ(message("scalars", pointer_for_scalar),
            "kernel_name: kernel `scalars`: argument 1: the kernel takes int, the plan gives output y of dtype f32");
}

// Whatever a module's bytes are, resolving ends with an offset inside them or an error.
TEST_F(Resolve, HostileBytes) {
  auto offer = [&](const std::string& bytes) {
    PlanLaunch launch;
    launch.kernel = "plain";
    launch.args = {tensor("x"), tensor("y")};
    (void)resolve_kernel(bytes, launch, problem_);
  };
  for (const std::string& bytes : {std::string(),
                                   std::string("\x7f"
                                               "ELF"),
                                   std::string(64, '\0'), std::string(4096, '\xff')}) {
    PlanLaunch launch;
    launch.kernel = "plain";
    HONE_EXPECT_ERROR(resolve_kernel(bytes, launch, problem_), kernel_name);
  }
  for (std::size_t cut = 0; cut < object_.size(); cut += 97) offer(object_.substr(0, cut));
  Elf64_Ehdr header;
  std::memcpy(&header, object_.data(), sizeof header);
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::string bytes = object_;
    for (int hit = 0; hit < 8; ++hit) {
      // In the file header, in the section headers, or anywhere.
      const std::size_t where = hit % 3 == 0   ? random() % sizeof header
                                : hit % 3 == 1 ? header.e_shoff + random() % (header.e_shnum * sizeof(Elf64_Shdr))
                                               : random() % bytes.size();
      bytes[where] = static_cast<char>(random());
    }
    offer(bytes);
  }
}

class ResolveCuda : public ToolchainTest {
 protected:
  void SetUp() override {
    ToolchainTest::SetUp();
    if (IsSkipped()) return;
    if (const auto nvcc = Toolchain::compiler("nvcc"); !nvcc) {
      GTEST_SKIP() << nvcc.error().message;
    }
    problem_.workload = "w0";
    problem_.device = "sm_90a";
    problem_.tensors = {{"x", DType::f32, TensorRole::input, {8}, {1}},  {"b", DType::bf16, TensorRole::input, {8}, {1}},
                        {"h", DType::f16, TensorRole::input, {8}, {1}},  {"e", DType::e4m3, TensorRole::input, {8}, {1}},
                        {"y", DType::f32, TensorRole::output, {8}, {1}}, {"n", DType::i32, TensorRole::input, {8}, {1}}};
    CompileRequest wanted;
    wanted.sources["kernel.cu"] = R"(#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
namespace hone { struct alignas(64) TensorMap { unsigned long long words[16]; }; }
__global__ void plain(const float* __restrict__ x, float* __restrict__ y) { *y = *x; }
namespace tile {
template <int M, class T = float> __global__ void sum(const T* x, float* y, long n) { *y = float(x[n]) * M; }
}
namespace {
template <bool On> __global__ void hidden(float* y) { *y = On; }
}
static __global__ void internal(float* y) { *y = 2; }
__global__ void typed(const __nv_bfloat16* b, const __half* h, const __nv_fp8_e4m3* e, const int* n, float* y) {
  *y = float(*b) + float(*h) + float(*e) + *n;
}
__global__ void raw(const void* b, const unsigned char* e, void* y) { *(char*)y = *(const char*)b + *e; }
__global__ void mapped(const __grid_constant__ CUtensorMap a, const __grid_constant__ hone::TensorMap b, int n, float* y) {
  *y = ((const int*)&a)[n] + ((const int*)&b)[n];
}
__global__ void map_pointer(const CUtensorMap* a, float* y) { *y = *(const float*)a; }
__global__ void scalars(int a, unsigned b, long long c, unsigned long d, float e, double f, float* y) { *y = a + b + c + d + e + f; }
__device__ __noinline__ void no_kernel(float* y) { *y = 1; }
__global__ void caller(float* y) { no_kernel(y); }
extern "C" __global__ void c_name(float* y) { *y = 1; }
__global__ void over(float* y) { *y = 1; }
__global__ void over(float* y, int n) { *y = n; }
)";
    wanted.entry = "kernel.cu";
    wanted.compiler = "nvcc";
    wanted.architecture = "sm_90a";
    wanted.kind = ArtifactKind::cubin;
    wanted.instantiate = {"tile::sum<3>", "tile::sum<3, __nv_bfloat16>", "hidden<true>", "hidden<false>"};
    const auto artifact = toolchain_->compile(wanted);
    HONE_ASSERT_OK(artifact);
    cubin_ = *read_file(artifact->path);
  }

  PlanArg tensor(const char* name) { return {ArgKind::tensor, name, 0, 0}; }
  PlanArg scalar(ArgKind kind) { return {kind, "", 0, 0}; }
  Result<KernelSymbol> resolve(const std::string& kernel, std::vector<PlanArg> args) {
    PlanLaunch launch;
    launch.kernel = kernel;
    launch.args = std::move(args);
    return resolve_kernel(cubin_, launch, problem_);
  }
  std::string message(const std::string& kernel, std::vector<PlanArg> args) {
    const auto result = resolve(kernel, std::move(args));
    return result ? "ok" : result.error().message;
  }

  std::string cubin_;
  ProblemShape problem_;
};

TEST_F(ResolveCuda, KernelsByTheirNamesInTheSource) {
  const auto plain = resolve("plain", {tensor("x"), tensor("y")});
  HONE_ASSERT_OK(plain);
  EXPECT_EQ(plain->symbol, "_Z5plainPKfPf");
  EXPECT_EQ(plain->demangled, "plain(float const*, float*)");
  const auto sum = resolve("tile::sum<3, __nv_bfloat16>", {tensor("b"), tensor("y"), scalar(ArgKind::i64)});
  HONE_ASSERT_OK(sum);
  EXPECT_EQ(sum->symbol, "_ZN4tile3sumILi3E13__nv_bfloat16EEvPKT0_Pfl");
  const auto first = resolve("hidden<true>", {tensor("y")}), second = resolve("hidden<false>", {tensor("y")});
  HONE_ASSERT_OK(first);
  HONE_ASSERT_OK(second);
  EXPECT_NE(first->symbol, second->symbol);
  HONE_EXPECT_ERROR(resolve("hidden<2>", {tensor("y")}), kernel_name);
  HONE_ASSERT_OK(resolve("internal", {tensor("y")}));
  const auto unknown = resolve("plian", {tensor("x"), tensor("y")});
  HONE_EXPECT_ERROR(unknown, kernel_name);
  EXPECT_EQ(unknown.error().hint, "did you mean plain?");
  HONE_EXPECT_ERROR(resolve("no_kernel", {tensor("y")}), kernel_name);
  EXPECT_EQ(message("over", {tensor("y")}), "kernel `over`: it names 2 functions");
  EXPECT_NE(message("c_name", {tensor("y")}).find("C linkage"), std::string::npos);
  EXPECT_EQ(message("tile::sum<3>", {tensor("x"), tensor("y"), scalar(ArgKind::i64)}), "kernel `tile::sum<3>`: it names 2 functions");
}

TEST_F(ResolveCuda, ArgumentsAreHeldAgainstTypesAndSizes) {
  const std::vector<PlanArg> typed = {tensor("b"), tensor("h"), tensor("e"), tensor("n"), tensor("y")};
  EXPECT_EQ(message("typed", typed), "ok");
  for (std::size_t i = 0; i + 1 < typed.size(); ++i) {
    auto wrong = typed;
    std::swap(wrong[i], wrong[i + 1]);
    EXPECT_NE(message("typed", wrong).find("argument "), std::string::npos) << i;
  }
  EXPECT_EQ(message("typed", {tensor("b")}), "kernel `typed`: it takes 5 arguments, the plan gives 1");
  EXPECT_EQ(message("raw", {tensor("b"), tensor("e"), tensor("y")}), "ok");
  EXPECT_EQ(message("plain", {tensor("b"), tensor("y")}),
            "kernel `plain`: argument 1: the kernel takes float const*, the plan gives input b of dtype bf16: wrong dtype");
  EXPECT_EQ(message("plain", {tensor("x"), scalar(ArgKind::i64)}), "kernel `plain`: argument 2: the kernel takes float*, the plan gives i64 (long)");
  const PlanArg map = scalar(ArgKind::tensor_map);
  EXPECT_EQ(message("mapped", {map, map, scalar(ArgKind::i32), tensor("y")}), "ok");
  const auto by_pointer = resolve("map_pointer", {map, tensor("y")});
  HONE_EXPECT_ERROR(by_pointer, kernel_name);
  EXPECT_EQ(by_pointer.error().hint, "declare the parameter const __grid_constant__ hone::TensorMap");
  EXPECT_NE(message("mapped", {tensor("x"), map, scalar(ArgKind::i32), tensor("y")}), "ok");
  const std::vector<PlanArg> right = {scalar(ArgKind::i32), scalar(ArgKind::u32), scalar(ArgKind::i64), scalar(ArgKind::u64),
                                      scalar(ArgKind::f32), scalar(ArgKind::f64), tensor("y")};
  EXPECT_EQ(message("scalars", right), "ok");
  for (std::size_t i = 0; i < 6; ++i) {
    auto wrong = right;
    std::swap(wrong[i], wrong[(i + 1) % 6]);
    EXPECT_NE(message("scalars", wrong).find("argument "), std::string::npos);
  }
}

// A name that lies about its parameters: the sizes that the cubin records are held against the plan too.
TEST_F(ResolveCuda, ANameThatDisagreesWithTheParameterBlockIsRefused) {
  const std::string was = "_Z5plainPKfPf";
  auto renamed = [&](const std::string& now) {
    std::string bytes = cubin_;
    for (std::size_t at = 0; (at = bytes.find(was, at)) != std::string::npos; at += was.size()) bytes.replace(at, was.size(), now);
    PlanLaunch launch;
    launch.kernel = "plain";
    launch.args = {tensor("x"), scalar(ArgKind::i32)};
    return resolve_kernel(bytes, launch, problem_);
  };
  const auto size = renamed("_Z5plainPKfii");   // three parameters by its name, two by the block
  HONE_EXPECT_ERROR(size, kernel_name);
  EXPECT_EQ(size.error().message, "kernel `plain`: it takes 3 arguments, the plan gives 2");
}

TEST_F(ResolveCuda, HostileBytes) {
  PlanLaunch launch;
  launch.kernel = "plain";
  launch.args = {tensor("x"), tensor("y")};
  for (std::size_t cut = 0; cut < cubin_.size(); cut += 61) (void)resolve_kernel(cubin_.substr(0, cut), launch, problem_);
  Elf64_Ehdr header;
  std::memcpy(&header, cubin_.data(), sizeof header);
  const std::size_t info = cubin_.find(".nv.info");
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = cubin_;
    for (int hit = 0; hit < 8; ++hit) {
      const std::size_t where = hit % 4 == 0   ? random() % sizeof header
                                : hit % 4 == 1 ? header.e_shoff + random() % (header.e_shnum * sizeof(Elf64_Shdr))
                                : hit % 4 == 2 ? info + random() % (bytes.size() - info)
                                               : random() % bytes.size();
      bytes[where % bytes.size()] = static_cast<char>(random());
    }
    (void)resolve_kernel(bytes, launch, problem_);
  }
}

}  // namespace
}  // namespace hone::testing
