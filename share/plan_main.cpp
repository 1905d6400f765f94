// The program that evaluates a candidate's plan: compiled as one unit with plan.cpp, run in a jail.
//
// stdin   fields, each "<length>:<bytes>": "hone.problem/1", the count of problems, and a problem's
//         workload, device, workers, axes (count, then name and value), parameters (likewise),
//         tensors (count, then name, dtype, role, alignment, rank, extents, strides).
// answer  one line a problem on the descriptor that was stdout when the program started:
//         "\x1eplan <index> <json>" or "\x1e<error kind> <index> <json string: message>".
// What the plan itself prints to stdout goes to stderr and cannot be taken for an answer.
#include "plan.cpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include <hone/plan.h>

namespace hone {
namespace plan_program {

int answer_fd = -1;

// Before the candidate's own static constructors.
[[gnu::constructor(101)]] void take_answer_descriptor() {
  answer_fd = fcntl(1, F_DUPFD_CLOEXEC, 10);
  dup2(2, 1);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string list(const std::vector<std::int64_t>& values) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) out += (i == 0 ? "" : ",") + std::to_string(values[i]);
  return out + "]";
}

std::string extent(const Grid& grid) {
  return "{\"x\":" + std::to_string(grid.x) + ",\"y\":" + std::to_string(grid.y) + ",\"z\":" + std::to_string(grid.z) + "}";
}

template <class T, class F>
std::string joined(const std::vector<T>& values, F&& text) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) out += (i == 0 ? "" : ",") + text(values[i]);
  return out + "]";
}

std::string argument(const Arg& arg) {
  const std::string head = "{\"kind\":" + quoted(arg.kind);
  if (arg.kind == "tensor") return head + ",\"tensor\":" + quoted(arg.text) + "}";
  if (arg.kind == "workspace" || arg.kind == "tensor_map") return head + ",\"index\":" + arg.text + "}";
  return head + (arg.kind[0] == 'f' ? ",\"bits\":" : ",\"value\":") + arg.text + "}";
}

const char* boolean(bool value) { return value ? "true" : "false"; }

// Reading the problems. The text is Hone's own; a field that is not there ends the program.
std::string input;
std::size_t position = 0;

std::string field() {
  std::size_t length = 0;
  while (position < input.size() && input[position] != ':') length = length * 10 + static_cast<std::size_t>(input[position++] - '0');
  if (++position > input.size() || length > input.size() - position) std::exit(3);
  position += length;
  return input.substr(position - length, length);
}

std::int64_t integer() { return std::strtoll(field().c_str(), nullptr, 10); }

Problem read_problem() {
  Problem problem;
  problem.workload = field();
  problem.device = field();
  problem.workers = integer();
  for (std::int64_t n = integer(); n > 0; --n) {
    const std::string name = field();
    problem.axes.emplace_back(name, integer());
  }
  for (std::int64_t n = integer(); n > 0; --n) {
    const std::string name = field();
    problem.params.emplace_back(name, field());
  }
  for (std::int64_t n = integer(); n > 0; --n) {
    TensorInfo tensor;
    tensor.name = field();
    tensor.dtype = field();
    tensor.role = field();
    tensor.alignment = integer();
    const std::int64_t rank = integer();
    for (std::int64_t i = 0; i < rank; ++i) tensor.shape.push_back(integer());
    for (std::int64_t i = 0; i < rank; ++i) tensor.strides.push_back(integer());
    problem.tensors.push_back(tensor);
  }
  return problem;
}

void answer(const char* kind, std::int64_t index, const std::string& json) {
  const std::string line = "\n\x1e" + std::string(kind) + " " + std::to_string(index) + " " + json + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = write(answer_fd, line.data() + done, line.size() - done);
    if (n <= 0) std::_Exit(3);
    done += static_cast<std::size_t>(n);
  }
}

void evaluate(std::int64_t index, const Problem& problem) {
  try {
    Plan result;
    ::plan(problem, result);
    answer("plan", index, result.json());
  } catch (const Unsupported& e) {
    answer("unsupported", index, quoted(e.what()));
  } catch (const std::bad_alloc&) {
    answer("out_of_memory", index, quoted("memory ran out"));
  } catch (const std::exception& e) {
    answer("exception", index, quoted(e.what()));
  } catch (...) {
    answer("exception", index, quoted("an exception that is no std::exception"));
  }
}

}  // namespace plan_program

using plan_program::quoted;

namespace {

template <class Pairs>
auto& find_named(const Pairs& pairs, const std::string& name, const char* what) {
  for (const auto& each : pairs)
    if (each.first == name) return each.second;
  std::string known;
  for (const auto& each : pairs) known += (known.empty() ? "" : ", ") + each.first;
  throw std::out_of_range(std::string("no ") + what + " is called `" + name + "`; there " + (known.empty() ? "are none" : "is: " + known));
}

}  // namespace

std::int64_t Problem::axis(const std::string& name) const { return find_named(axes, name, "axis"); }

std::int64_t Problem::param(const std::string& name) const {
  const std::string& text = find_named(params, name, "parameter");
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') throw std::out_of_range("parameter `" + name + "` is `" + text + "`, not a number; read it with param_text");
  return value;
}

std::string Problem::param_text(const std::string& name) const { return find_named(params, name, "parameter"); }

const TensorInfo& Problem::tensor(const std::string& name) const {
  std::string known;
  for (const TensorInfo& each : tensors) {
    if (each.name == name) return each;
    known += (known.empty() ? "" : ", ") + each.name;
  }
  throw std::out_of_range("no tensor is called `" + name + "`; there " + (known.empty() ? "are none" : "is: " + known));
}

// Floating scalars travel as their bits: JSON has neither NaN nor infinity.
Arg::Arg(float value) : kind("f32") {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  text = std::to_string(bits);
}

Arg::Arg(double value) : kind("f64") {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  text = std::to_string(bits);
}

Launch& Launch::args(std::initializer_list<Arg> values) {
  plan_.steps_[index_].args = values;
  return *this;
}

Launch& Launch::shared(std::int64_t bytes) {
  plan_.steps_[index_].shared = bytes;
  return *this;
}

Launch& Launch::cluster(Grid dims) {
  plan_.steps_[index_].cluster = dims;
  return *this;
}

Launch& Launch::cooperative(bool on) {
  plan_.steps_[index_].cooperative = on;
  return *this;
}

Launch& Launch::programmatic_dependent_launch(bool on) {
  plan_.steps_[index_].pdl = on;
  return *this;
}

Launch& Launch::max_registers(std::int64_t count) {
  plan_.steps_[index_].max_registers = count;
  return *this;
}

Module Plan::module(const std::string& source, std::vector<Define> defines) {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const ModuleEntry& known = modules_[i];
    bool same = known.source == source && known.defines.size() == defines.size();
    for (std::size_t j = 0; same && j < defines.size(); ++j)
      same = known.defines[j].name == defines[j].name && known.defines[j].value == defines[j].value;
    if (same) return Module{static_cast<int>(i)};
  }
  modules_.push_back({source, std::move(defines)});
  return Module{static_cast<int>(modules_.size()) - 1};
}

Workspace Plan::workspace(const std::string& name, std::int64_t bytes, bool zeroed) {
  workspaces_.push_back({name, bytes, zeroed});
  return Workspace{static_cast<int>(workspaces_.size()) - 1};
}

TensorMap Plan::tensor_map(const std::string& name, const TensorInfo& tensor, TensorMapSpec spec) {
  maps_.push_back({name, tensor.name, std::move(spec)});
  return TensorMap{static_cast<int>(maps_.size()) - 1};
}

Launch Plan::launch(Module module, const std::string& kernel, Grid grid, Grid block) {
  Step step;
  step.kind = "launch";
  step.module = module.index;
  step.kernel = kernel;
  step.grid = grid;
  step.block = block;
  steps_.push_back(std::move(step));
  return Launch(*this, steps_.size() - 1);
}

void Plan::memset(Workspace workspace, int value) {
  Step step;
  step.kind = "memset";
  step.target_kind = "workspace";
  step.target = std::to_string(workspace.index);
  step.value = value;
  steps_.push_back(std::move(step));
}

void Plan::memset(const TensorInfo& tensor, int value) {
  Step step;
  step.kind = "memset";
  step.target_kind = "tensor";
  step.target = tensor.name;
  step.value = value;
  steps_.push_back(std::move(step));
}

std::string Plan::json() const {
  using namespace plan_program;
  std::string out = "{\"schema\":\"hone.plan/1\",\"modules\":";
  out += joined(modules_, [](const ModuleEntry& each) {
    return "{\"source\":" + quoted(each.source) + ",\"defines\":" + joined(each.defines, [](const Define& define) {
      return "{\"name\":" + quoted(define.name) + ",\"value\":" + quoted(define.value) + "}";
    }) + "}";
  });
  out += ",\"workspaces\":" + joined(workspaces_, [](const WorkspaceEntry& each) {
    return "{\"name\":" + quoted(each.name) + ",\"bytes\":" + std::to_string(each.bytes) + ",\"zeroed\":" + boolean(each.zeroed) + "}";
  });
  out += ",\"tensor_maps\":" + joined(maps_, [](const MapEntry& each) {
    return "{\"name\":" + quoted(each.name) + ",\"tensor\":" + quoted(each.tensor) + ",\"box\":" + list(each.spec.box) +
           ",\"strides\":" + list(each.spec.strides) + ",\"swizzle\":" + quoted(each.spec.swizzle) + ",\"l2\":" + quoted(each.spec.l2) +
           ",\"fill\":" + quoted(each.spec.fill) + "}";
  });
  out += ",\"launches\":" + joined(steps_, [](const Step& each) -> std::string {
    if (each.kind == "memset")
      return "{\"kind\":\"memset\",\"" + each.target_kind + "\":" + (each.target_kind == "tensor" ? quoted(each.target) : each.target) +
             ",\"value\":" + std::to_string(each.value) + "}";
    return "{\"kind\":\"launch\",\"module\":" + std::to_string(each.module) + ",\"kernel\":" + quoted(each.kernel) + ",\"grid\":" + extent(each.grid) +
           ",\"block\":" + extent(each.block) + ",\"cluster\":" + extent(each.cluster) + ",\"shared_bytes\":" + std::to_string(each.shared) +
           ",\"max_registers\":" + std::to_string(each.max_registers) + ",\"cooperative\":" + boolean(each.cooperative) +
           ",\"programmatic_dependent_launch\":" + boolean(each.pdl) + ",\"args\":" + joined(each.args, argument) + "}";
  });
  return out + "}";
}

}  // namespace hone

int main() {
  using namespace hone::plan_program;
  char buffer[65536];
  for (ssize_t n; (n = read(0, buffer, sizeof buffer)) > 0;) input.append(buffer, static_cast<std::size_t>(n));
  if (field() != "hone.problem/1") return 3;
  const std::int64_t count = integer();
  for (std::int64_t i = 0; i < count; ++i) evaluate(i, read_problem());
  std::_Exit(0);   // no destructor of the candidate runs
}
