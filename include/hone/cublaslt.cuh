// cuBLASLt as the baseline of a task with D = A * B^T: tensors A [M, K], B [N, K] and D [M, N] of one 16-bit type, sums in
// float32. Its heuristics propose kernels; the fastest one on data of our own is kept, for each workload. A task's
// baseline includes this file, names `link: [cublasLt]` and defines the entry points with one of
//
//   HONE_CUBLASLT_BASELINE(hone::bf16, CUDA_R_16BF)
//   HONE_CUBLASLT_BASELINE(__half, CUDA_R_16F)
#ifndef HONE_CUBLASLT_CUH
#define HONE_CUBLASLT_CUH

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <hone/gemm_task.cuh>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace hone::cublaslt {

using gemm::Int;
constexpr std::size_t kWorkspace = 64u << 20;
constexpr int kProposals = 16, kRounds = 7;

struct Failure {
  Failure(const char* what, const char* why) { std::snprintf(text, sizeof text, "%s: %s", what, why); }
  char text[200];
};

inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Failure(what, cublasLtGetStatusString(status));
}
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Failure(what, cudaGetErrorString(status));
}

template <class T>
__global__ void fill(T* to, Int count, std::uint32_t stream) {
  const float scale = hone::bell_scale(1);
  for (Int i = Int{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += Int{gridDim.x} * blockDim.x) {
    const hone::PhiloxBlock block = hone::random_block(1, stream, 0, static_cast<std::uint64_t>(i));
    to[i] = gemm::narrow<T>(hone::bell_float(block.word[0], block.word[1], scale));
  }
}

// Row-major D = A * B^T is column-major D' = B'^T * A' with A' of K by M, B' of K by N, D' of N by M.
template <class T>
struct State {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  void* workspace = nullptr;
  char description[160];

  cublasStatus_t multiply(const void* a_data, const void* b_data, void* d_data, const cublasLtMatmulAlgo_t& with, cudaStream_t stream) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle, operation, &one, b_data, b, a_data, a, &zero, d_data, d, d_data, d, &with, workspace, kWorkspace, stream);
  }

  // Index of the fastest of the proposals, by the median of a few rounds.
  int fastest(const cublasLtMatmulHeuristicResult_t* proposals, int count, Int m, Int n, Int k, cudaStream_t stream) {
    T *left, *right, *out;
    check(cudaMalloc(&left, static_cast<std::size_t>(m * k) * sizeof(T)), "memory for a trial");
    check(cudaMalloc(&right, static_cast<std::size_t>(n * k) * sizeof(T)), "memory for a trial");
    check(cudaMalloc(&out, static_cast<std::size_t>(m * n) * sizeof(T)), "memory for a trial");
    fill<<<4096, 256, 0, stream>>>(left, m * k, 0);
    fill<<<4096, 256, 0, stream>>>(right, n * k, 1);
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "an event");
    check(cudaEventCreate(&end), "an event");
    std::vector<float> times(static_cast<std::size_t>(count * kRounds));
    for (int round = -1; round < kRounds; ++round)
      for (int i = 0; i < count; ++i) {
        check(cudaEventRecord(begin, stream), "an event");
        const cublasStatus_t status = multiply(left, right, out, proposals[i].algo, stream);
        check(cudaEventRecord(end, stream), "an event");
        check(cudaEventSynchronize(end), "a trial");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "an event");
        if (round >= 0) times[static_cast<std::size_t>(i * kRounds + round)] = status == CUBLAS_STATUS_SUCCESS ? ms : 1e30f;
      }
    int best = 0;
    float shortest = 1e30f;
    for (int i = 0; i < count; ++i) {
      float* const first = times.data() + i * kRounds;
      std::nth_element(first, first + kRounds / 2, first + kRounds);
      if (first[kRounds / 2] < shortest) best = i, shortest = first[kRounds / 2];
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaFree(left);
    cudaFree(right);
    cudaFree(out);
    return best;
  }
};

template <class T>
void* open(const TaskCall* call, cudaDataType_t type) {
  try {
    auto* state = new State<T>;
    const auto m = call->axis("M"), n = call->axis("N"), k = call->axis("K");
    check(cublasLtCreate(&state->handle), "cublasLtCreate");
    check(cudaMalloc(&state->workspace, kWorkspace), "the workspace");
    check(cublasLtMatmulDescCreate(&state->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const cublasOperation_t transpose = CUBLAS_OP_T;
    check(cublasLtMatmulDescSetAttribute(state->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose), "transposition");
    check(cublasLtMatrixLayoutCreate(&state->a, type, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(m), k), "layout of A");
    check(cublasLtMatrixLayoutCreate(&state->b, type, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(n), k), "layout of B");
    check(cublasLtMatrixLayoutCreate(&state->d, type, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(m), n), "layout of D");
    cublasLtMatmulPreference_t preference;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const std::uint64_t bytes = kWorkspace;
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes), "workspace limit");
    cublasLtMatmulHeuristicResult_t proposals[kProposals];   // nvcc 13.0 aborts over a vector of this unnamed struct
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(state->handle, state->operation, state->b, state->a, state->d, state->d, preference, kProposals,
                                         proposals, &found),
          "cublasLtMatmulAlgoGetHeuristic");
    cublasLtMatmulPreferenceDestroy(preference);
    if (found == 0) throw Failure("cublasLtMatmulAlgoGetHeuristic", "no kernel for this shape");
    const int best = state->fastest(proposals, found, m, n, k, static_cast<cudaStream_t>(call->stream));
    state->algorithm = proposals[best].algo;
    int id = -1, tile = -1;
    cublasLtMatmulAlgoConfigGetAttribute(&state->algorithm, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, nullptr);
    cublasLtMatmulAlgoConfigGetAttribute(&state->algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile, nullptr);
    const std::size_t version = cublasLtGetVersion();
    std::snprintf(state->description, sizeof state->description, "cuBLASLt %zu.%zu.%zu, the fastest of %d proposals: number %d, algorithm %d, tile %d",
                  version / 10000, version / 100 % 100, version % 100, found, best + 1, id, tile);
    return state;
  } catch (const Failure& failure) {
    call->fail(call->sink, failure.text);
    return nullptr;
  }
}

template <class T>
void run(void* opaque, const TaskCall* call) {
  auto& state = *static_cast<State<T>*>(opaque);
  try {
    check(state.multiply(call->data<T>("A"), call->data<T>("B"), call->data<T>("D"), state.algorithm,
                         static_cast<cudaStream_t>(call->stream)),
          "cublasLtMatmul");
  } catch (const Failure& failure) {
    call->fail(call->sink, failure.text);
  }
}

}  // namespace hone::cublaslt

#define HONE_CUBLASLT_BASELINE(T, TYPE)                                                                                \
  void* hone_baseline_open(const hone::TaskCall* call) { return hone::cublaslt::open<T>(call, TYPE); }                 \
  void hone_baseline_run(void* state, const hone::TaskCall* call) { hone::cublaslt::run<T>(state, call); }             \
  const char* hone_baseline_describe(void* state) { return static_cast<hone::cublaslt::State<T>*>(state)->description; }

#endif
