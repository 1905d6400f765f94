// The program that evaluates a candidate's plan: compiled as one unit with plan.cpp, run in a jail.
//
// stdin   fields, each "<length>:<bytes>": "hone.problem/1", the count of problems, and a problem's
//         workload, device, workers, axes (count, then name and value), parameters (likewise),
//         tensors (count, then name, dtype, role, alignment, rank, extents, strides).
// answer  one line a problem on the descriptor that was stdout when the program started:
//         "\x1eplan <index> <json>" or "\x1e<error kind> <index> {"message": ..., "line": of plan.cpp or 0}".
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

// JSON text. Its members stay out of line: this file is compiled anew for every plan.
struct Json {
  std::string out;
  bool comma = false;

  [[gnu::noinline]] void separate() {
    if (comma) out += ',';
    comma = true;
  }
  [[gnu::noinline]] void open(char bracket) {
    separate();
    out += bracket;
    comma = false;
  }
  [[gnu::noinline]] void close(char bracket) {
    out += bracket;
    comma = true;
  }
  [[gnu::noinline]] void key(const char* name) {
    separate();
    out += '"';
    out += name;
    out += "\":";
    comma = false;
  }
  [[gnu::noinline]] void number(std::int64_t value) { literal(std::to_string(value)); }
  [[gnu::noinline]] void literal(const std::string& text) {
    separate();
    out += text;
  }
  [[gnu::noinline]] void boolean(bool value) {
    separate();
    out += value ? "true" : "false";
  }
  [[gnu::noinline]] void string(const std::string& text) {
    separate();
    out += '"';
    for (const char c : text) {
      const unsigned char byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte == 0x7f) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", byte);
        out += escape;
        continue;
      }
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  void field(const char* name, const std::string& text) { key(name), string(text); }
  void field(const char* name, const char* text) { key(name), string(text); }
  void field(const char* name, std::int64_t value) { key(name), number(value); }
  void field(const char* name, int value) { key(name), number(value); }
  void field(const char* name, bool value) { key(name), boolean(value); }
  [[gnu::noinline]] void field(const char* name, const std::vector<std::int64_t>& values) {
    key(name);
    open('[');
    for (const std::int64_t value : values) number(value);
    close(']');
  }
  [[gnu::noinline]] void field(const char* name, const Grid& grid) {
    key(name);
    open('{');
    field("x", grid.x);
    field("y", grid.y);
    field("z", grid.z);
    close('}');
  }
  [[gnu::noinline]] void argument(const Arg& arg) {
    open('{');
    field("kind", arg.kind);
    if (arg.kind == "tensor") {
      field("tensor", arg.text);
    } else {
      key(arg.kind == "workspace" || arg.kind == "tensor_map" ? "index" : arg.kind[0] == 'f' ? "bits" : "value");
      literal(arg.text);
    }
    close('}');
  }
};

[[gnu::noinline]] std::string fault(const char* message, int line = 0) {
  Json json;
  json.open('{');
  json.field("message", message);
  json.field("line", line);
  json.close('}');
  return json.out;
}

struct Missing : std::out_of_range {
  Missing(const std::string& message, Line where) : std::out_of_range(message), line(where.number) {}
  int line;
};

// Reading the problems. The text is Hone's own; a field that is not there ends the program.
std::string input;
std::size_t position = 0;

std::string field() {
  std::size_t length = 0;
  while (position < input.size() && input[position] != ':')
    length = length * 10 + static_cast<std::size_t>(input[position++] - '0');
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
    answer("unsupported", index, fault(e.what()));
  } catch (const Missing& e) {
    answer("exception", index, fault(e.what(), e.line));
  } catch (const std::bad_alloc&) {
    answer("out_of_memory", index, fault("memory ran out"));
  } catch (const std::exception& e) {
    answer("exception", index, fault(e.what()));
  } catch (...) {
    answer("exception", index, fault("an exception that is no std::exception"));
  }
}

}  // namespace plan_program

namespace {

using plan_program::Missing;

template <class Pairs>
auto& find_named(const Pairs& pairs, const std::string& name, const char* what, Line line) {
  for (const auto& each : pairs)
    if (each.first == name) return each.second;
  std::string known;
  for (const auto& each : pairs) known += (known.empty() ? "" : ", ") + each.first;
  throw Missing(std::string("no ") + what + " is called `" + name + "`; there " + (known.empty() ? "are none" : "is: " + known), line);
}

}  // namespace

std::int64_t Problem::axis(const std::string& name, Line line) const { return find_named(axes, name, "axis", line); }

std::int64_t Problem::param(const std::string& name, Line line) const {
  const std::string& text = find_named(params, name, "parameter", line);
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0')
    throw Missing("parameter `" + name + "` is `" + text + "`, not a number; read it with param_text", line);
  return value;
}

std::string Problem::param_text(const std::string& name, Line line) const { return find_named(params, name, "parameter", line); }

const TensorInfo& Problem::tensor(const std::string& name, Line line) const {
  std::string known;
  for (const TensorInfo& each : tensors) {
    if (each.name == name) return each;
    known += (known.empty() ? "" : ", ") + each.name;
  }
  throw Missing("no tensor is called `" + name + "`; there " + (known.empty() ? "are none" : "is: " + known), line);
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

Module Plan::module(const std::string& source, std::vector<Define> defines, Line line) {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const ModuleEntry& known = modules_[i];
    bool same = known.source == source && known.defines.size() == defines.size();
    for (std::size_t j = 0; same && j < defines.size(); ++j)
      same = known.defines[j].name == defines[j].name && known.defines[j].value == defines[j].value;
    if (same) return Module{static_cast<int>(i)};
  }
  modules_.push_back({source, std::move(defines), line});
  return Module{static_cast<int>(modules_.size()) - 1};
}

Workspace Plan::workspace(const std::string& name, std::int64_t bytes, bool zeroed, Line line) {
  workspaces_.push_back({name, bytes, zeroed, line});
  return Workspace{static_cast<int>(workspaces_.size()) - 1};
}

TensorMap Plan::tensor_map(const std::string& name, const TensorInfo& tensor, TensorMapSpec spec, Line line) {
  maps_.push_back({name, tensor.name, std::move(spec), line});
  return TensorMap{static_cast<int>(maps_.size()) - 1};
}

Launch Plan::launch(Module module, const std::string& kernel, Grid grid, Grid block, Line line) {
  Step step;
  step.kind = "launch";
  step.module = module.index;
  step.kernel = kernel;
  step.grid = grid;
  step.block = block;
  step.line = line;
  steps_.push_back(std::move(step));
  return Launch(*this, steps_.size() - 1);
}

void Plan::memset(Workspace workspace, int value, Line line) {
  Step step;
  step.kind = "memset";
  step.target_kind = "workspace";
  step.target = std::to_string(workspace.index);
  step.value = value;
  step.line = line;
  steps_.push_back(std::move(step));
}

void Plan::memset(const TensorInfo& tensor, int value, Line line) {
  Step step;
  step.kind = "memset";
  step.target_kind = "tensor";
  step.target = tensor.name;
  step.value = value;
  step.line = line;
  steps_.push_back(std::move(step));
}

std::string Plan::json() const {
  plan_program::Json json;
  json.open('{');
  json.field("schema", "hone.plan/1");
  json.key("modules");
  json.open('[');
  for (const ModuleEntry& each : modules_) {
    json.open('{');
    json.field("source", each.source);
    json.field("line", each.line.number);
    json.key("defines");
    json.open('[');
    for (const Define& define : each.defines) {
      json.open('{');
      json.field("name", define.name);
      json.field("value", define.value);
      json.close('}');
    }
    json.close(']');
    json.close('}');
  }
  json.close(']');
  json.key("workspaces");
  json.open('[');
  for (const WorkspaceEntry& each : workspaces_) {
    json.open('{');
    json.field("name", each.name);
    json.field("bytes", each.bytes);
    json.field("line", each.line.number);
    json.field("zeroed", each.zeroed);
    json.close('}');
  }
  json.close(']');
  json.key("tensor_maps");
  json.open('[');
  for (const MapEntry& each : maps_) {
    json.open('{');
    json.field("name", each.name);
    json.field("tensor", each.tensor);
    json.field("box", each.spec.box);
    json.field("strides", each.spec.strides);
    json.field("swizzle", each.spec.swizzle);
    json.field("l2", each.spec.l2);
    json.field("fill", each.spec.fill);
    json.field("line", each.line.number);
    json.close('}');
  }
  json.close(']');
  json.key("launches");
  json.open('[');
  for (const Step& each : steps_) {
    json.open('{');
    json.field("kind", each.kind);
    json.field("line", each.line.number);
    if (each.kind == "memset") {
      json.key(each.target_kind.c_str());
      if (each.target_kind == "tensor") json.string(each.target);
      else json.literal(each.target);
      json.field("value", each.value);
    } else {
      json.field("module", each.module);
      json.field("kernel", each.kernel);
      json.field("grid", each.grid);
      json.field("block", each.block);
      json.field("cluster", each.cluster);
      json.field("shared_bytes", each.shared);
      json.field("max_registers", each.max_registers);
      json.field("cooperative", each.cooperative);
      json.field("programmatic_dependent_launch", each.pdl);
      json.key("args");
      json.open('[');
      for (const Arg& arg : each.args) json.argument(arg);
      json.close(']');
    }
    json.close('}');
  }
  json.close(']');
  json.close('}');
  return json.out;
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
