// Why a runner died, in words. That it died, and of what, is the system's word; details come from
// the dead process and are only used to describe it.
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "base/text.h"
#include "device/cpu/runner.h"
#include "sandbox/syscalls.h"

namespace hone::cpu {
namespace {

constexpr std::string_view kJailSources = "/hone/src/";   // where the toolchain compiles

struct SignalName {
  int number;
  const char* name;
  const char* meaning;
};
constexpr SignalName kSignals[] = {
    {SIGSEGV, "SIGSEGV", "invalid memory access"},
    {SIGBUS, "SIGBUS", "invalid memory access"},
    {SIGFPE, "SIGFPE", "integer division by zero or overflow"},
    {SIGILL, "SIGILL", "illegal instruction"},
    {SIGABRT, "SIGABRT", "abort"},
    {SIGTRAP, "SIGTRAP", "trap"},
    {SIGSYS, "SIGSYS", "forbidden system call"},
    {SIGKILL, "SIGKILL", "killed from outside, perhaps for want of memory"},
    {SIGXFSZ, "SIGXFSZ", "file size limit"},
    {SIGXCPU, "SIGXCPU", "CPU time limit"},
    {SIGPIPE, "SIGPIPE", "broken pipe"},
    {SIGTERM, "SIGTERM", "terminated"},
};

std::string signal_text(int number) {
  for (const SignalName& each : kSignals)
    if (each.number == number) return fmt::format("{} (signal {}: {})", each.name, number, each.meaning);
  return fmt::format("signal {}", number);
}

// Printable, bounded, one line.
std::string clean(std::string_view text, std::size_t limit = 300) {
  std::string out;
  for (const char c : text.substr(0, limit)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

template <std::size_t N>
std::string bounded(const char (&text)[N]) {
  return std::string(text, ::strnlen(text, N));
}

// "terminate called after throwing an instance of 'std::bad_alloc'" and "what():  ...", as the C++
// library prints them.
struct Thrown {
  std::string type, what;
};
std::optional<Thrown> thrown_in(const std::string& output) {
  static constexpr std::string_view kBefore = "terminate called after throwing an instance of '", kWhat = "what():  ";
  const std::size_t at = output.rfind(kBefore);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + kBefore.size(), end = output.find('\'', begin);
  if (end == std::string::npos) return std::nullopt;
  Thrown thrown = {clean(output.substr(begin, end - begin)), ""};
  if (const std::size_t what = output.find(kWhat, end); what != std::string::npos)
    thrown.what = clean(output.substr(what + kWhat.size(), output.find('\n', what) - what - kWhat.size()));
  return thrown;
}

// Which buffer an address is in or near.
std::string near_buffer(const Layout& layout, std::uint64_t offset) {
  const std::int64_t at = static_cast<std::int64_t>(offset);
  std::string best;
  std::int64_t distance = INT64_MAX;
  for (std::size_t buffer = 0; buffer < layout.count(); ++buffer) {
    const auto bytes = static_cast<std::int64_t>(layout.spec(buffer).bytes);
    for (std::size_t slot = 0; slot < layout.slots(); ++slot) {
      const auto begin = static_cast<std::int64_t>(layout.offset(buffer, slot));
      const std::int64_t off = at < begin ? begin - at : at >= begin + bytes ? at - begin - bytes + 1 : 0;
      if (off >= distance) continue;
      distance = off;
      const std::string& name = layout.spec(buffer).name;
      best = at < begin              ? fmt::format("{} bytes before the start of '{}'", begin - at, name)
             : at >= begin + bytes ? fmt::format("{} bytes past the end of '{}'", at - begin - bytes, name)
                                   : fmt::format("byte {} of '{}'", at - begin, name);
    }
  }
  return best;
}

}  // namespace

std::string Runner::line_of(const Labels& labels, const FaultRecord& fault) const {
  const std::size_t object = fault.object;
  const std::string tool = find_program("addr2line");
  if (tool.empty() || object >= labels.objects.size()) return "";
  JailSpec spec;   // the object is hostile input, and debug information has ways to hurt its reader
  spec.argv = {"/usr/bin/addr2line", "-i", "-e", "/object"};
  for (std::uint32_t frame = 0; frame < std::min(fault.frames, kMaxFrames); ++frame)
    spec.argv.push_back(fmt::format("{:#x}", fault.pcs[frame]));
  spec.env = {"LC_ALL=C"};
  spec.mounts = {{labels.objects[object], "/object", false}};
  spec.limits.wall_s = spec.limits.cpu_s = 5;
  spec.limits.memory_bytes = std::uint64_t{1} << 30;
  spec.limits.output_bytes = 65536;
  const auto outcome = setup_.sandbox.run(spec);
  if (!outcome || !outcome->ok()) return "";
  // The innermost frame, inlined ones included, of the program's own sources: the C++ library's are linked in,
  // and throw and terminate on its behalf.
  std::istringstream lines(outcome->out);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    line = clean(line);
    const std::size_t extra = line.find(" (");   // "(discriminator 3)"
    if (extra != std::string::npos) line.resize(extra);
    if (line.rfind("??", 0) == 0) continue;
    if (line.rfind(kJailSources, 0) == 0) return line;
    if (first.empty()) first = line;
  }
  return first;
}

Error Runner::death(const Labels& labels) {
  const ProcessOutcome outcome = process_->wait(2);
  Control& shared = control();
  const std::string output = process_->output();
  const std::string who = labels.program;

  if (shared.state.load(std::memory_order_acquire) == kRefused && outcome.signal == 0) {
    const std::string why = clean(bounded(shared.message), 1000);
    if (labels.native) return make_error(ErrorKind::launch, "baseline {}: {}", who, why);
    return make_error(ErrorKind::launch, "{} cannot be loaded: {}", who, why);
  }

  Error error;
  error.kind = ErrorKind::crash;
  const bool told = outcome.signal != 0 && shared.fault.set.load(std::memory_order_acquire) == 1;
  FaultRecord& fault = shared.fault;
  std::string where;
  std::string line;
  if (told) {
    const std::uint32_t worker = fault.worker;
    const std::uint32_t step =
        worker < kMaxWorkers ? shared.positions[worker].step.load(std::memory_order_relaxed) : kUnknown;
    if (step < labels.steps.size() && !labels.steps[step].kernel.empty()) {
      const Labels::Step& launch = labels.steps[step];
      const std::uint64_t block = shared.positions[worker].block.load(std::memory_order_relaxed);
      const auto x = static_cast<std::uint64_t>(std::max<std::int64_t>(launch.grid_x, 1)),
                 y = static_cast<std::uint64_t>(std::max<std::int64_t>(launch.grid_y, 1));
      where = fmt::format("kernel {} (launch {}, block [{}, {}, {}])", launch.kernel, step, block % x, block / x % y,
                          block / x / y);
    }
    line = line_of(labels, fault);
  }
  if (where.empty()) where = who;
  if (!line.empty()) {
    const std::size_t colon = line.rfind(':');
    std::string file = line.substr(0, colon);
    const std::string& source = fault.object < labels.sources.size() ? labels.sources[fault.object] : "";
    if (file.rfind(kJailSources, 0) == 0) file = file.substr(kJailSources.size());
    else if (!source.empty() && fs::path(file).filename() == fs::path(source).filename()) file = source;
    error.place = {file, colon == std::string::npos ? 0 : std::atoi(line.c_str() + colon + 1), 0};
  }

  const std::uint64_t refused_bytes = shared.failed_allocation.load(std::memory_order_relaxed);
  const auto thrown = thrown_in(output);
  const auto memory_error = [&] {
    error.kind = ErrorKind::out_of_memory;
    error.message = refused_bytes != 0 ? fmt::format("{} asked for {} of memory, more than its limit allows", where,
                                                     format_bytes(refused_bytes))
                                       : fmt::format("{} reached its memory limit", where);
    error.hint =
        "the task's memory limit is for what a kernel allocates itself; scratch memory is a workspace of the plan";
  };

  if (outcome.signal == SIGSYS) {
    error.kind = ErrorKind::forbidden;
    error.message = told && fault.system_call >= 0 ? fmt::format("{} made a system call that is not allowed: {}", where,
                                                                 syscall_name(fault.system_call))
                                                   : fmt::format("{} made a system call that is not allowed", where);
    error.hint = "a kernel computes: no files, network, processes or threads";
  } else if (told && fault.signal == SIGSEGV && fault.arena == kInputArena && fault.write != 0 &&
             labels.inputs != nullptr) {
    error.kind = ErrorKind::input_modified;
    error.message = fmt::format("{} wrote to an input: {}", where, near_buffer(*labels.inputs, fault.offset));
    error.hint = "inputs are read-only; a tensor that is updated in place has the role persistent";
  } else if (outcome.signal == SIGABRT && thrown) {
    error.message = fmt::format("{} ended by an uncaught exception {}{}", where, thrown->type,
                                thrown->what.empty() ? "" : ": " + thrown->what);
    if (thrown->type.find("bad_alloc") != std::string::npos ||
        thrown->type.find("bad_array_new_length") != std::string::npos)
      memory_error();
  } else if (told && outcome.signal == SIGSEGV &&
             (fault.exhausted != 0 || (refused_bytes != 0 && fault.address < 65536))) {
    memory_error();
  } else if (outcome.signal != 0) {
    error.message = fmt::format("{} died of {}", where, signal_text(outcome.signal));
    if (told && (outcome.signal == SIGSEGV || outcome.signal == SIGBUS)) {
      const Layout* layout = fault.arena == kInputArena ? labels.inputs
                             : fault.arena == kOwnArena ? labels.own
                                                        : nullptr;
      error.message += fmt::format(
          ": {} {}", fault.write != 0 ? "store to" : "access to",
          layout != nullptr ? near_buffer(*layout, fault.offset) : fmt::format("address {:#x}", fault.address));
    }
  } else {
    error.message = fmt::format("{} ended its process with exit code {}", where, outcome.exit_code);
    error.hint = "a kernel returns; it does not exit";
  }
  if (!output.empty()) error.notes.push_back("it printed: " + clean(output));
  return error;
}

}  // namespace hone::cpu
