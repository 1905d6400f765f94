// Trusted code of a task: task.cpp and baseline sources beside task.yaml include only this header
// (CUDA: or gemm_task.cuh, fp8_task.cuh, cublaslt.cuh beside it; and the libraries they compare with). Hone compiles them on first use and caches the result.
// All entry points are C functions; a file defines those that its role needs.
//
//   task.cpp      hone_oracle (needed), hone_inputs, hone_regions (optional)
//   baseline_*.cpp  hone_baseline_open, hone_baseline_run, hone_baseline_describe
//
// The oracle must not share code with a baseline, works in float64, and need not be fast.
//
// With `device: cuda` the code is CUDA C++, compiled by nvcc (task.cu, baseline_*.cu), and called on the host: `data` and
// `reference` are then device pointers, and what an entry point launches goes to `stream` of the current context. It may
// return before that work has ended. hone_inputs and hone_oracle may synchronise; hone_baseline_run must not, nor may it
// allocate: it is timed between two events of the stream, which is held back until all launches are queued.
#ifndef HONE_TASK_H
#define HONE_TASK_H

#include <cstdint>
#include <cstring>

#include <hone/dtype.h>
#include <hone/philox.h>
#include <hone/types.h>

namespace hone {

// Shapes and strides in elements.
struct TaskTensor {
  const char* name;
  DType dtype;
  std::int32_t rank;
  const std::int64_t* shape;
  const std::int64_t* strides;
  void* data;          // what a kernel sees. Inputs: filled. Outputs: null in the oracle.
  double* reference;   // oracle, outputs and persistent tensors: dense row-major result to fill in
};

struct TaskAxis {
  const char* name;
  std::int64_t count;            // 1, or the length of a list axis such as group sizes
  const std::int64_t* values;
};

struct TaskCall {
  const char* workload;
  const char* input_set;         // "random", or the name of a hard-input set
  std::int32_t axis_count;
  const TaskAxis* axes;
  std::int32_t tensor_count;
  const TaskTensor* tensors;
  std::uint64_t seed;            // Philox key
  std::uint32_t call;            // Philox data-set counter
  std::int32_t workers;          // worker threads that a baseline may use
  void* stream;                  // CUDA: the cudaStream_t (CUstream) to work in; null on the CPU
  void* sink;                    // for the callbacks below
  // hone_regions: rows [begin, end) of `tensor` (its leading dimensions flattened) belong to the
  // valid region `name`. Rows in no region are padding and are not compared.
  void (*add_region)(void* sink, const char* tensor, const char* name, std::int64_t begin, std::int64_t end);
  // Ends the call with an error. The text is copied.
  void (*fail)(void* sink, const char* message);

  const TaskTensor& tensor(const char* name) const {
    for (std::int32_t i = 0; i < tensor_count; ++i)
      if (std::strcmp(tensors[i].name, name) == 0) return tensors[i];
    fail(sink, name);
    return tensors[0];
  }
  std::int64_t axis(const char* name, std::int64_t index = 0) const {
    for (std::int32_t i = 0; i < axis_count; ++i)
      if (std::strcmp(axes[i].name, name) == 0 && index < axes[i].count) return axes[i].values[index];
    fail(sink, name);
    return 0;
  }
  std::int64_t axis_count_of(const char* name) const {
    for (std::int32_t i = 0; i < axis_count; ++i)
      if (std::strcmp(axes[i].name, name) == 0) return axes[i].count;
    return 0;
  }
  template <class T> T* data(const char* name) const { return static_cast<T*>(tensor(name).data); }
};

}  // namespace hone

extern "C" {
// Rewrites structured inputs (group sizes, indices) after the contract's distributions filled all.
void hone_inputs(const hone::TaskCall* call);
// Fills `reference` of every output and persistent tensor from the inputs. A persistent tensor's
// `data` holds its value before the call.
void hone_oracle(const hone::TaskCall* call);
// Names the valid regions through call->add_region; without it each output is one region, "all".
void hone_regions(const hone::TaskCall* call);

// A native baseline runs in its own sandboxed runner with a clean environment (CUDA: in the trusted process that owns
// the device). open: untimed, may build plans of the library or search for its fastest kernel; returns a state. CUDA: once
// for a workload; what it allocates stays. run: timed, computes the outputs from the inputs; addresses differ from call to
// call.
void* hone_baseline_open(const hone::TaskCall* call);
void hone_baseline_run(void* state, const hone::TaskCall* call);
// Which library, version, CPU kernel and thread count are in use: one line, static storage.
const char* hone_baseline_describe(void* state);
}

#endif
