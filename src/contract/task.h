// A task's contract: tasks/<name>/task.yaml, checked against share/schema/task.json, with its
// trusted code compiled on first use. docs/contract.md explains every key.
#ifndef HONE_CONTRACT_TASK_H
#define HONE_CONTRACT_TASK_H

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/expression.h"
#include "base/fs.h"
#include "program/problem.h"
#include "toolchain/toolchain.h"

namespace hone {

// How a tensor's elements are made from Philox words (include/hone/philox.h). Every definition is
// exact in integer arithmetic and conversions, so that a GPU gives the same bits.
struct Distribution {
  enum class Kind {
    uniform,     // [low, high): low + (high - low) * k / 2^24, float32 arithmetic, then rounded to the dtype
    bell,        // sum of four 16-bit uniforms, mean 0, standard deviation `high`, float32 arithmetic
    integers,    // whole numbers low..high inclusive
    bits,        // raw patterns low..high inclusive
    constant,    // low
    log_scale,   // +-2^k, k uniform in low..high inclusive
    sparse,      // bell, but all except one of `high` elements are zero
    structured,  // left to the task's hone_inputs
  };
  Kind kind = Kind::bell;
  double low = 0, high = 1;
};

struct InputSet {
  std::string name;                                  // "random" is the first and is what is timed
  std::map<std::string, Distribution> inputs;        // by tensor, all of them: those a hard set does not name are random's
  std::string reason;                                // what this hard set is there to catch
};

struct Gate {
  // rel_energy: 1 - 2*sum(xy)/sum(x^2+y^2) by region. rel_l2: ||x-y||/||y|| by region.
  // abs: max |x-y|. rel_max: max |x-y| / max|y| by region. row_rel_l2: rel_l2 of the worst row.
  // bound: max |x-y| / (a + r*|y|) with a=abs_floor, r=limit: must be <= 1.
  std::string metric;
  double limit = 0;
  double abs_floor = 0;
};

struct BaselineSpec {
  enum class Kind { native, program };
  std::string name;                                  // "onednn"
  Kind kind = Kind::native;
  std::string source;                                // native: file; program: folder, beside task.yaml
  std::vector<std::string> flags;                    // further compiler flags: "-fopenmp"
  std::vector<std::string> link;                     // as the compiler takes them: "-ldnnl"
  std::string needs;                                 // a package of headers (toolchain/headers.h), or ""; without it the
                                                     // baseline is left out, and the report says so
};

struct Workload {
  std::string id;
  ExpressionValues axes;                             // scalars and lists, derived ones included
  std::vector<std::string> list_axes;                // those that are lists, whatever their length
  std::vector<TensorShape> tensors;                  // resolved for this workload
  double flops = 0, bytes = 0;                       // physical work, for the floor
};

struct TimingPolicy {
  double warmup_s = 0.1;             // of load, before the first sample of a workload
  double min_effect = 0.002;         // a ratio within 1 +- this is never KEEP or REJECT
  double target_halfwidth = 0.003;   // stop when the interval's relative half-width is below
  int min_pairs = 15, max_pairs = 4000;
  double budget_s = 10;              // wall time of a workload's timing
};

struct Task {
  std::string name, summary, device;                 // device: "cpu", "cuda"
  fs::path folder;
  std::string sha256;                                // of every file in the folder: the task's identity
  std::vector<std::string> architectures;
  std::vector<Workload> workloads;
  std::vector<InputSet> input_sets;
  std::map<std::string, Gate> gates;                 // by output tensor
  std::vector<BaselineSpec> baselines;
  std::map<std::string, std::string> scale_inputs;   // inputs that are scales, to the input they scale (or ""), for task check
  std::string oracle;                                // file of the trusted code: "task.cpp"
  TimingPolicy timing;
  std::uint64_t memory_bytes = std::uint64_t{2} << 30;   // a candidate's memory besides the tensors
  double call_timeout_s = 10;
  std::vector<std::string> leak_bans;
  std::string notes;                                 // Markdown for PROMPT.md
  SourceTree files;

  const Workload* find(std::string_view workload) const;
};

// Folders that hold tasks: share/hone/tasks, then data_dir()/tasks. `name` is a task's name or the
// path of a task folder. Errors: not_found with the nearest name, contract located in task.yaml.
Result<Task> load_task(const std::string& name);
std::vector<std::string> task_names();

// One set of inputs of one workload, in host memory, laid out as the contract says.
class TaskCode;
struct HostTensor {
  TensorShape shape;
  std::byte* data = nullptr;
};

struct Region {
  std::string name;
  std::int64_t begin = 0, end = 0;                   // rows: leading dimensions flattened
};

using Reference = std::map<std::string, std::vector<double>>;        // by output, dense row-major
using Regions = std::map<std::string, std::vector<Region>>;          // by output

// The task's compiled oracle, input generator and regions, loaded into this process (trusted).
class TaskCode {
 public:
  static Result<std::shared_ptr<TaskCode>> load(const Task& task, const Toolchain& toolchain);
  virtual ~TaskCode() = default;

  // Fills every input and persistent tensor: distributions of `set`, then hone_inputs.
  virtual Result<> fill(const Workload& workload, const InputSet& set, std::uint64_t seed, std::uint32_t call,
                        const std::vector<HostTensor>& tensors) const = 0;
  virtual Result<Reference> oracle(const Workload& workload, const std::vector<HostTensor>& tensors) const = 0;
  virtual Result<Regions> regions(const Workload& workload, const std::vector<HostTensor>& tensors) const = 0;
};

// The task's code as a shared object, not loaded. `architecture` is the device's: what a task.cu is compiled for.
Result<Artifact> compile_task_code(const Task& task, const Toolchain& toolchain, const std::string& architecture);
// A trusted source that ends in .cu is compiled by nvcc, for the device's architecture.
void for_device(CompileRequest& request, const std::string& architecture);

// One tensor by distribution; the definition that a GPU repeats (tests hold both to a table).
void fill_tensor(const TensorShape& shape, const Distribution& distribution, std::uint64_t seed, std::uint32_t stream,
                 std::uint32_t call, std::byte* data);

// Shapes only: what plans see.
ProblemShape problem_of(const Workload& workload, const std::string& device, std::int64_t workers);

}  // namespace hone

#endif
