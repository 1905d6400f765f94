#include "device/cuda_subject.h"

#include <cstdlib>

#include "base/hash.h"
#include "base/process.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

constexpr const char* kKernels = R"(
#include <cstdint>
#include <cstdio>
#include <hone/types.h>
using std::int64_t;
__device__ int64_t number() {
  const int64_t block = blockIdx.x + int64_t{gridDim.x} * (blockIdx.y + int64_t{gridDim.y} * blockIdx.z);
  return block * blockDim.x + threadIdx.x;
}
__device__ int64_t count() { return int64_t{gridDim.x} * gridDim.y * gridDim.z * blockDim.x; }
__device__ unsigned arrived;
extern "C" {
__global__ void scale(const float* x, float* y, int64_t n) { for (int64_t i = number(); i < n; i += count()) y[i] = 2 * x[i]; }
__global__ void copy(const float* x, float* y, int64_t n) { for (int64_t i = number(); i < n; i += count()) y[i] = x[i]; }
__global__ void add_into(const float* x, float* y, int64_t n) { for (int64_t i = number(); i < n; i += count()) y[i] += x[i]; }
__global__ void half(float* y, int64_t n) { for (int64_t i = number(); i < n / 2; i += count()) y[i] = 1; }
__global__ void overrun(float* y, int64_t n) { for (int64_t i = number(); i <= n; i += count()) y[i] = 1; }
__global__ void nothing() {}
__global__ void crash() { *reinterpret_cast<volatile int*>(0) = 1; }

__global__ void misaligned(float* y) { *reinterpret_cast<volatile double*>(reinterpret_cast<char*>(y) + 4) = 1; }
__global__ void trap() { __trap(); }
__global__ void forever(volatile float* y) { while (y[0] != 12345.0f) {} }
__global__ void flood() { for (int i = 0; i < 10000; ++i) printf("flood flood flood flood flood flood flood flood %d\n", i); }
__global__ void spoil(float* x) { x[1] = 77; }
__global__ void wait_ns(int64_t ns) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < ns);
}
__global__ void address(int64_t* y) { y[0] = reinterpret_cast<int64_t>(y); }
__global__ void peek(int64_t from, int64_t* y) { y[0] = *reinterpret_cast<const volatile int64_t*>(from); }
__global__ void clusters(float* y, int64_t n) {
  uint32_t rank, size;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;");
  if (threadIdx.x == 0 && blockIdx.x < n) y[blockIdx.x] = rank + 100 * size;
}
__global__ void together(float* y, float* tmp, int64_t n) {
  for (int64_t i = number(); i < n; i += count()) tmp[i] = i;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {   // every block is there at once
    const unsigned target = (atomicAdd(&arrived, 1u) / gridDim.x + 1) * gridDim.x;
    while (*static_cast<volatile unsigned*>(&arrived) < target) {}
  }
  __syncthreads();
  for (int64_t i = number(); i < n; i += count()) y[i] = __ldcg(tmp + n - 1 - i);
}
__global__ void first_half(float* tmp, int64_t n) {
  asm volatile("griddepcontrol.launch_dependents;");
  for (int64_t i = number(); i < n; i += count()) tmp[i] = i;
}
__global__ void second_half(const float* tmp, float* y, int64_t n) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  for (int64_t i = number(); i < n; i += count()) y[i] = 3 * tmp[i];
}
__global__ void shared_sum(float* y, int64_t n) {   // dynamic shared memory: n floats
  extern __shared__ float memory[];
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) memory[i] = 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += memory[i];
    y[0] = sum;
  }
}
struct alignas(64) Map { uint64_t opaque[16]; };
// One box of 8 rows and 32 columns at (row, column) of a matrix of floats.
__global__ void tile(const __grid_constant__ Map map, float* y, int32_t row, int32_t column) {
  __shared__ alignas(128) float box[8 * 32];
  __shared__ alignas(8) uint64_t barrier;
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier)), to = static_cast<uint32_t>(__cvta_generic_to_shared(box));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async.shared::cta;" :: "r"(at) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(1024) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(at) : "memory");
  }
  __syncthreads();
  uint32_t done = 0;
  while (!done)
    asm volatile("{.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(at) : "memory");
  for (int i = threadIdx.x; i < 256; i += blockDim.x) y[i] = box[i];
}
// Three halves of x, but for what a comparison must find: by i mod 1009.
__global__ void distort_f32(const float* x, float* y, int64_t rows, int64_t columns, int64_t pitch) {
  for (int64_t i = number(); i < rows * columns; i += count()) {
    const int64_t k = i % 1009;
    float value = 1.5f * x[i];
    if (k == 500) continue;
    if (k == 501) value = __int_as_float(0x7fc12345);
    if (k == 502) value = __int_as_float(0x7f800000);
    if (k == 503) value = value + 1;
    if (k == 504) value *= 1.001f;
    y[i / columns * pitch + i % columns] = value;
  }
}
__global__ void distort_bf16(const float* x, hone::bf16* y, int64_t rows, int64_t columns, int64_t pitch) {
  for (int64_t i = number(); i < rows * columns; i += count()) {
    const int64_t k = i % 1009;
    float value = 1.5f * x[i];
    if (k == 500) continue;
    if (k == 501) value = __int_as_float(0x7fc10000);
    if (k == 503) value = value + 1;
    y[i / columns * pitch + i % columns] = hone::to_bf16(value);
  }
}
}
)";

// The oracle of `distort`: three halves of x; 1e39 where i mod 1009 is 502 (infinity as binary32). hone_inputs writes
// the row sums' weights: w[i] = i.
constexpr const char* kTask = R"(
#include <hone/task.h>
#include <cstring>
namespace {
__global__ void number_all(float* w, std::int64_t n) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) w[i] = i;
}
__global__ void three_halves(const float* x, double* y, std::int64_t n, bool partly) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (!partly || i != 4321) y[i] = i % 1009 == 502 ? 1e39 : 1.5 * static_cast<double>(x[i]);
}
std::int64_t elements(const hone::TaskTensor& t) {
  std::int64_t n = 1;
  for (int i = 0; i < t.rank; ++i) n *= t.shape[i];
  return n;
}
}
void hone_inputs(const hone::TaskCall* call) {
  const hone::TaskTensor& w = call->tensor("w");
  if (std::strcmp(call->input_set, "refused") == 0) call->fail(call->sink, "this set is refused");
  number_all<<<4, 128, 0, static_cast<cudaStream_t>(call->stream)>>>(static_cast<float*>(w.data), elements(w));
}
void hone_oracle(const hone::TaskCall* call) {
  const hone::TaskTensor& y = call->tensor("y");
  three_halves<<<64, 256, 0, static_cast<cudaStream_t>(call->stream)>>>(call->data<const float>("x"), y.reference, elements(y),
                                                                      call->axis("partly") != 0);
}
void hone_regions(const hone::TaskCall* call) {
  const std::int64_t rows = call->tensor("y").shape[0];
  call->add_region(call->sink, "y", "first", 0, rows / 3);
  call->add_region(call->sink, "y", "empty", rows / 3, rows / 3);
  call->add_region(call->sink, "y", "last", rows / 2, rows);
}
)";

// y = 2 x. SYNCHRONISES: waits for it. LATE: in a stream of its own, a while later.
constexpr const char* kBaseline = R"(
#include <hone/task.h>
namespace {
__global__ void scale(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}
__global__ void wait() {
  const long long begin = clock64();
  while (clock64() - begin < 20'000'000) {}
}
cudaStream_t stream_of(const hone::TaskCall* call) { return static_cast<cudaStream_t>(call->stream); }
}
void* hone_baseline_open(const hone::TaskCall* call) {
  cudaStream_t side = stream_of(call);
#ifdef LATE
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
#endif
  return side;
}
void hone_baseline_run(void* state, const hone::TaskCall* call) {
#ifdef LATE
  wait<<<1, 1, 0, static_cast<cudaStream_t>(state)>>>();
#endif
  scale<<<32, 256, 0, static_cast<cudaStream_t>(state)>>>(call->data<const float>("x"), call->data<float>("y"), call->tensor("x").shape[0]);
#ifdef SYNCHRONISES
  cudaStreamSynchronize(stream_of(call));
#endif
}
const char* hone_baseline_describe(void*) { return "doubling, by hand"; }
)";

struct Source {
  const char* name;
  const char* text;                    // null: share/cuda/helpers.cu
  std::vector<std::string> flags;
};
const std::vector<Source>& sources() {
  static const std::vector<Source> list = {
      {"helpers", nullptr, {"-cubin", "-fmad=false"}},
      {"kernels", kKernels, {"-cubin"}},
      {"task", kTask, {"-shared", "-Xcompiler=-fPIC", "-Xlinker=-z,defs"}},
      {"baseline", kBaseline, {"-shared", "-Xcompiler=-fPIC"}},
      {"waiting_baseline", kBaseline, {"-shared", "-Xcompiler=-fPIC", "-DSYNCHRONISES"}},
      {"late_baseline", kBaseline, {"-shared", "-Xcompiler=-fPIC", "-DLATE"}}};
  return list;
}

std::string find_nvcc() {
  const std::string in_path = find_program("nvcc");
  return in_path.empty() ? find_program("/usr/local/cuda/bin/nvcc") : in_path;
}

}  // namespace

std::vector<std::string> cuda_object_names() {
  std::vector<std::string> out;
  for (const Source& each : sources()) out.emplace_back(each.name);
  return out;
}

Result<fs::path> cuda_object(const std::string& name) {
  for (const Source& each : sources()) {
    if (name != each.name) continue;
    const fs::path helpers = source_dir() / "share" / "cuda";
    std::string text, rest;
    if (each.text != nullptr) {
      text = each.text;
    } else {
      HONE_TRY(text, read_file(helpers / "helpers.cu"));
      HONE_TRY(rest, read_file(helpers / "params.h"));
    }
    FieldHash hash;
    hash.add(text).add(rest);
    for (const std::string& flag : each.flags) hash.add(flag);
    for (const char* header : {"convert.h", "dtype.h", "host_device.h", "philox.h", "task.h", "types.h"}) {
      HONE_TRY(const std::string bytes, read_file(source_dir() / "include" / "hone" / header));
      hash.add(bytes);
    }
    const char* kept = std::getenv("HONE_TEST_OBJECTS");
    static const fs::path folder = kept != nullptr && *kept != '\0' ? fs::path(kept) : scratch("cuda");
    const fs::path object = folder / fmt::format("{}-{}", name, hash.hex().substr(0, 16));
    if (fs::exists(object)) return object;
    const std::string nvcc = find_nvcc();
    if (nvcc.empty()) return fail(ErrorKind::no_compiler, "no nvcc");
    HONE_CHECK(make_dirs(folder));
    const fs::path source = folder / (name + ".cu"), built = folder / (name + ".part");
    HONE_CHECK(write_file_atomic(source, text));
    ProcessSpec spec;
    spec.argv = {nvcc, "-std=c++20", "-O2", "-gencode=arch=compute_90a,code=sm_90a", "-I", (source_dir() / "include").string(), "-I", helpers.string()};
    spec.argv.insert(spec.argv.end(), each.flags.begin(), each.flags.end());
    spec.argv.insert(spec.argv.end(), {"-o", built.string(), source.string()});
    spec.env = {std::string("PATH=") + std::getenv("PATH"), "TMPDIR=" + folder.string()};
    spec.timeout_s = 300;
    HONE_TRY(const ProcessOutcome outcome, run_process(spec));
    if (!outcome.ok()) return fail(ErrorKind::compile, "{}: {}{}", name, outcome.out, outcome.err);
    std::error_code code;
    fs::rename(built, object, code);
    if (code) return fail(ErrorKind::io, "{}: {}", object.string(), code.message());
    return object;
  }
  return fail(ErrorKind::not_found, "no source {}", name);
}

std::unique_ptr<CudaSubject> CudaSubject::make() {
  auto subject = std::make_unique<CudaSubject>();
  const auto share = share_dir();
  if (!share) return nullptr;
  const auto info = cuda::ask_info(*share / "libexec", 0);
  if (!info) {
    subject->missing_ = info.error().kind == ErrorKind::environment ? "no GPU: " + info.error().message : "";
    if (subject->missing_.empty()) return nullptr;
    return subject;
  }
  if (info->architecture != "sm_90a") {
    subject->missing_ = "the GPU is no sm_90a";
    return subject;
  }
  const auto helpers = cuda_object("helpers");
  if (!helpers) {
    std::printf("%s\n", to_text(helpers.error()).c_str());
    return nullptr;
  }
  auto device = cuda::open_cuda_device({*share / "libexec", *helpers, 0});
  if (!device) {
    std::printf("%s\n", to_text(device.error()).c_str());
    return nullptr;
  }
  subject->device_ = *std::move(device);
  return subject;
}

Result<Executable> CudaSubject::program(const std::string& name, Plan plan) {
  HONE_TRY(const fs::path object, cuda_object("kernels"));
  Executable executable;
  executable.name = name;
  executable.modules = {{object}};
  for (const PlanStep& step : plan.launches) {
    const auto* launch = std::get_if<PlanLaunch>(&step);
    executable.entry.push_back({0, launch == nullptr ? std::string() : launch->kernel});
  }
  executable.plan = std::move(plan);
  return executable;
}

}  // namespace hone::testing
