// The launch plan of a candidate. plan.cpp includes only this header and its own, and defines
//
//   void plan(const hone::Problem& problem, hone::Plan& plan);
//
// It is called with shapes, never with data or addresses, in a sandbox without network, files or
// device; what it fills in leaves the sandbox as data (JSON, schema hone.plan/1) and is checked
// against the device's limits before anything is compiled. Example (CPU device):
//
//   void plan(const hone::Problem& problem, hone::Plan& plan) {
//     const auto rows = problem.axis("M");
//     const auto tile = problem.param("TILE");
//     auto module = plan.module("kernel.cpp", {{"TILE", tile}});
//     plan.launch(module, "scale<4>", {hone::ceil_div(rows, tile)})
//         .args(problem.tensor("x"), problem.tensor("y"), rows);
//   }
//
// A name that does not exist, or a value that cannot be, ends the evaluation with an error that
// names it. A plan may also refuse a problem it was not made for: throw hone::Unsupported.
#ifndef HONE_PLAN_H
#define HONE_PLAN_H

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hone {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Shapes and strides in elements; alignment in bytes. `role` is input, output or persistent.
struct TensorInfo {
  std::string name, dtype, role;
  std::vector<std::int64_t> shape, strides;
  std::int64_t alignment = 0;
};

// The line of plan.cpp that a call stands on, filled in by the compiler for the error messages; 0 elsewhere.
struct Line {
  int number = 0;
  static constexpr Line here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    const char* name = file;
    for (; *file != '\0'; ++file)
      if (*file == '/') name = file + 1;
    const char* plan = "plan.cpp";
    while (*name != '\0' && *name == *plan) ++name, ++plan;
    return {*name == *plan ? line : 0};
  }
};

class Problem {
 public:
  // Each throws an std::out_of_range that names the missing thing.
  std::int64_t axis(const std::string& name, Line line = Line::here()) const;        // an axis of the workload
  std::int64_t param(const std::string& name, Line line = Line::here()) const;       // a tunable parameter of candidate.yaml
  std::string param_text(const std::string& name, Line line = Line::here()) const;   // the same, when it is not a number
  const TensorInfo& tensor(const std::string& name, Line line = Line::here()) const;

  std::string workload;                                     // id of the workload
  std::string device;                                       // "cpu", "sm_90a", ...
  std::int64_t workers = 1;                                 // CPU: worker threads; GPU: SMs
  std::vector<std::pair<std::string, std::int64_t>> axes;
  std::vector<std::pair<std::string, std::string>> params;
  std::vector<TensorInfo> tensors;
};

// A macro for the compiler: -Dname=value.
struct Define {
  Define(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
  Define(std::string n, const char* v) : name(std::move(n)), value(v) {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Define(std::string n, T v) : name(std::move(n)), value(std::to_string(v)) {}
  std::string name, value;
};

struct Module { int index; };
struct Workspace { int index; };
struct TensorMap { int index; };

struct Grid {
  std::int64_t x, y, z;
  Grid(std::int64_t x_, std::int64_t y_ = 1, std::int64_t z_ = 1) : x(x_), y(y_), z(z_) {}
};

// One kernel argument: a tensor's, workspace's or tensor map's address, or a scalar. The C++ type
// of a scalar is the type that the kernel must declare.
class Arg {
 public:
  Arg(const TensorInfo& tensor) : kind("tensor"), text(tensor.name) {}
  Arg(Workspace workspace) : kind("workspace"), text(std::to_string(workspace.index)) {}
  Arg(TensorMap map) : kind("tensor_map"), text(std::to_string(map.index)) {}
  Arg(float value);
  Arg(double value);
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Arg(T value)
      : kind(std::is_signed_v<T> ? (sizeof(T) <= 4 ? "i32" : "i64") : (sizeof(T) <= 4 ? "u32" : "u64")),
        text(std::to_string(value)) {}
  std::string kind, text;
};

// Returned by Plan::launch; each call refines that launch.
class Launch {
 public:
  Launch& args(std::initializer_list<Arg> values);
  template <class... A>
  Launch& args(const A&... values) { return args({Arg(values)...}); }
  Launch& shared(std::int64_t bytes);                  // dynamic shared memory, bytes
  Launch& cluster(Grid dims);                          // GPU: thread block cluster
  Launch& cooperative(bool on = true);                 // GPU: grid-wide synchronisation
  Launch& programmatic_dependent_launch(bool on = true);
  Launch& max_registers(std::int64_t count);           // GPU: registers a thread

 private:
  friend class Plan;
  Launch(class Plan& owner, std::size_t index) : plan_(owner), index_(index) {}
  class Plan& plan_;
  std::size_t index_;
};

// A box with fewer extents than the tensor has axes: the tensor's leading axes are taken as one.
struct TensorMapSpec {
  std::vector<std::int64_t> box, strides;              // elements, outermost first
  std::string swizzle = "none", l2 = "none", fill = "zero";
};

class Plan {
 public:
  // Compiles `source` (a file of the candidate) with these macros. Equal calls share one module.
  Module module(const std::string& source, std::vector<Define> defines = {}, Line line = Line::here());
  // Device memory that lives as long as the workload; poisoned before every call unless zeroed.
  Workspace workspace(const std::string& name, std::int64_t bytes, bool zeroed = false, Line line = Line::here());
  TensorMap tensor_map(const std::string& name, const TensorInfo& tensor, TensorMapSpec spec, Line line = Line::here());
  // `kernel` is the name as written in source, with template arguments: "gemm<128, 64>". `block`
  // is threads a block: {1} on the CPU device.
  Launch launch(Module module, const std::string& kernel, Grid grid, Grid block = {1},
                Line line = Line::here());
  // Fills a workspace or an output with a byte value, in sequence with the launches.
  void memset(Workspace workspace, int value, Line line = Line::here());
  void memset(const TensorInfo& tensor, int value, Line line = Line::here());

  std::string json() const;                            // hone.plan/1

 private:
  friend class Launch;
  struct ModuleEntry { std::string source; std::vector<Define> defines; Line line; };
  struct WorkspaceEntry { std::string name; std::int64_t bytes; bool zeroed; Line line; };
  struct MapEntry { std::string name, tensor; TensorMapSpec spec; Line line; };
  struct Step {
    std::string kind;                                  // launch, memset
    int module = 0;
    std::string kernel;
    Grid grid{1}, block{1}, cluster{1};
    std::int64_t shared = 0, max_registers = 0;
    bool cooperative = false, pdl = false;
    std::vector<Arg> args;
    std::string target_kind, target;                   // memset
    int value = 0;
    Line line;
  };
  std::vector<ModuleEntry> modules_;
  std::vector<WorkspaceEntry> workspaces_;
  std::vector<MapEntry> maps_;
  std::vector<Step> steps_;
};

}  // namespace hone

// Defined by the candidate.
void plan(const hone::Problem& problem, hone::Plan& plan);

#endif
