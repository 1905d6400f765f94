#include "device/cpu/runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include "base/clock.h"
#include "base/text.h"

namespace hone::cpu {
namespace {

constexpr double kStartTimeout = 20;
constexpr std::size_t kOutputKept = 64 * 1024;
constexpr std::uint64_t kOutputLimit = std::uint64_t{1} << 20;   // of a whole life
constexpr std::uint64_t kLoadSlack = std::uint64_t{128} << 20;   // address space of shared objects and their libraries
constexpr double kCheckPeriod = 1e-3;
constexpr double kStall = 20e-6;           // 64 looks take about a microsecond

// Everything that a program sees of an environment; the baselines' libraries read it. Nothing of the
// caller's can slow a baseline or help a candidate.
std::vector<std::string> clean_environment(std::size_t workers) {
  const std::string count = std::to_string(workers);
  // Restartable sequences let user memory say where a preempted thread goes on: not with a candidate in it.
  return {"PATH=/usr/bin:/bin", "LC_ALL=C", "GLIBC_TUNABLES=glibc.pthread.rseq=0", "OMP_NUM_THREADS=" + count, "OPENBLAS_NUM_THREADS=" + count,
          "OMP_DYNAMIC=FALSE",  "OMP_PROC_BIND=TRUE", "OMP_PLACES=threads"};
}

std::uint64_t address_space(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  std::uint64_t pages = 0;
  file >> pages;
  return pages * kPage;
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::start(const RunnerSetup& setup, const SharedMemory& inputs) {
  HONE_TRY(ScratchDir folder, ScratchDir::create());
  // The jail's user is another one: it may read here, and only here.
  if (::chmod(folder.path().c_str(), 0755) != 0)
    return fail(io_error("open to the runner", folder.path()));
  std::unique_ptr<Runner> runner(new Runner(setup, std::move(folder)));
  HONE_TRY(runner->control_, SharedMemory::create("hone-control"));
  HONE_CHECK(runner->control_.resize((sizeof(Control) + kPage - 1) / kPage * kPage));
  HONE_CHECK(runner->control_.seal());
  new (runner->control_.data()) Control;
  HONE_TRY(runner->arena_, SharedMemory::create("hone-arena"));

  const std::size_t workers = setup.topology.worker_cores.size();
  JailSpec spec;
  spec.argv = {"/hone/hone-runner", std::to_string(workers), setup.topology.clock_core_shared ? "sleep" : "spin"};
  spec.env = clean_environment(workers);
  spec.mounts = {{setup.libexec / "hone-runner", "/hone/hone-runner", false}, {runner->folder_.path(), "/work", false}};
  spec.policy = SyscallPolicy::compute;
  spec.limits.memory_bytes = std::uint64_t{1} << 46;   // until the program is known
  spec.limits.file_bytes = std::uint64_t{16} << 20;
  spec.limits.tmp_bytes = std::uint64_t{16} << 20;
  spec.limits.cpu_s = 0;
  spec.limits.wall_s = 0;
  spec.limits.processes = static_cast<int>(2 * workers + 8);
  spec.limits.open_files = 64;
  spec.limits.output_bytes = kOutputKept;
  HONE_TRY(const int read_only, inputs.read_only());
  auto process = setup.sandbox.start(
      spec, {{runner->control_.fd(), kControlFd}, {read_only, kInputFd}, {runner->arena_.fd(), kArenaFd}});
  ::close(read_only);
  HONE_TRY(runner->process_, std::move(process));
  if (const int code = ::clock_getcpuclockid(runner->pid(), &runner->cpu_clock_); code != 0)
    return fail(ErrorKind::device, "cannot read the runner's CPU clock: {}", std::strerror(code));
  Labels labels;
  labels.program = "the runner";
  if (auto fault = runner->wait(runner->control().state, kReady, Patience::sleep, kStartTimeout, labels))
    return fail(
        Error{ErrorKind::device, fmt::format("the CPU device's runner did not start: {}", fault->message)}.with_hint(
            "hone doctor shows what this machine lacks"));
  // In the order of their creation: worker by worker.
  const std::vector<int> threads = runner->threads();
  if (threads.size() != workers)
    return fail(ErrorKind::device, "the runner has {} threads instead of {}", threads.size(), workers);
  for (std::size_t i = 0; i < workers; ++i) {
    if (!restrict_to(threads[i], std::span<const int>(&setup.topology.worker_cores[i], 1)))
      return fail(ErrorKind::device, "cannot keep a worker on core {}: {}", setup.topology.worker_cores[i],
                  std::strerror(errno));
    const int fd =
        ::open(fmt::format("/proc/{}/task/{}/stat", runner->pid(), threads[i]).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail(ErrorKind::device, "cannot watch a worker: {}", std::strerror(errno));
    runner->states_.push_back(fd);
    const int call =
        ::open(fmt::format("/proc/{}/task/{}/syscall", runner->pid(), threads[i]).c_str(), O_RDONLY | O_CLOEXEC);
    char text[8];
    if (call >= 0 && ::pread(call, text, sizeof text, 0) > 0) runner->calls_.push_back(call);
    else if (call >= 0) ::close(call);
  }
  if (runner->calls_.size() != workers) {
    for (const int fd : runner->calls_) ::close(fd);
    runner->calls_.clear();
  }
  runner->idle_pc_ = runner->control().idle_pc;
  runner->idle_sp_.assign(runner->control().idle_sp, runner->control().idle_sp + workers);
  return runner;
}

Runner::~Runner() {
  if (process_ != nullptr) process_->kill();
  for (const int fd : states_) ::close(fd);
  for (const int fd : calls_) ::close(fd);
}

std::vector<int> Runner::threads() const {
  std::vector<int> out;
  DIR* folder = ::opendir(fmt::format("/proc/{}/task", pid()).c_str());
  if (folder == nullptr) return out;
  while (const dirent* entry = ::readdir(folder))
    if (entry->d_name[0] != '.') out.push_back(std::atoi(entry->d_name));
  ::closedir(folder);
  std::sort(out.begin(), out.end());
  return out;
}

bool Runner::asleep() const {
  const auto waits = [](int fd) {
    char text[256];   // "1234 (hone-runner) S ..."
    const ssize_t n = ::pread(fd, text, sizeof text, 0);
    if (n <= 0) return true;   // gone
    const std::string_view line(text, static_cast<std::size_t>(n));
    const std::size_t name_end = line.rfind(") ");
    return name_end != std::string_view::npos && name_end + 2 < line.size() && line[name_end + 2] != 'R' &&
           line[name_end + 2] != 'D';
  };
  if (!own_threads_) return std::all_of(states_.begin(), states_.end(), waits);
  for (const int thread : threads()) {
    const int fd = ::open(fmt::format("/proc/{}/task/{}/stat", pid(), thread).c_str(), O_RDONLY | O_CLOEXEC);
    const bool waiting = fd < 0 || waits(fd);
    if (fd >= 0) ::close(fd);
    if (!waiting) return false;
  }
  return true;
}

bool Runner::at_rest() const {
  for (std::size_t worker = 0; worker < calls_.size(); ++worker) {
    char text[256];   // "202 0x7f.. 0x0 0x5 0x0 .. SP PC": number, six arguments, stack pointer, instruction
    const ssize_t n = ::pread(calls_[worker], text, sizeof text - 1, 0);
    if (n <= 0) continue;   // gone
    text[n] = 0;
    const std::string_view line(text, static_cast<std::size_t>(n));
    if (line.substr(0, line.find(' ')) != std::to_string(SYS_futex)) return false;
    const std::size_t pc = line.rfind(' '), sp = pc == std::string_view::npos ? pc : line.rfind(' ', pc - 1);
    if (sp == std::string_view::npos) return false;
    if (std::strtoull(text + sp, nullptr, 16) != idle_sp_[worker] || std::strtoull(text + pc, nullptr, 16) != idle_pc_) return false;
  }
  return true;
}

std::optional<double> Runner::cpu_s() const {
  timespec time = {};
  if (::clock_gettime(cpu_clock_, &time) != 0) return std::nullopt;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Result<std::string> Runner::place(const fs::path& object, const std::string& name) {
  const fs::path target = folder_.path() / name;
  HONE_CHECK(copy_file(object, target, 0444));
  return setup_.sandbox.mode() == SandboxMode::off ? target.string() : "/work/" + name;
}

std::optional<Error> Runner::load(const Order& order, const Labels& labels) {
  Control& shared = control();
  const std::size_t workers = setup_.topology.worker_cores.size();
  own_threads_ = labels.native;
  // A library's own threads are to be on the workers' cores too, and inherit this thread's.
  if (labels.native) restrict_to(pid(), setup_.topology.worker_cores);
  const std::uint64_t space =
      address_space(pid()) + arena_.size() + order.input_bytes + order.memory_bytes + kLoadSlack;
  const rlimit limit = {space, space};
  if (::prlimit(pid(), RLIMIT_AS, &limit, nullptr) != 0 && running())
    return make_error(ErrorKind::device, "cannot limit the runner's memory: {}", std::strerror(errno));
  shared.blob_offset = order.blob_offset;
  shared.blob_bytes = order.blob_bytes;
  shared.arena_bytes = arena_.size();
  shared.input_bytes = order.input_bytes;
  set(shared.command, 1, Patience::sleep);
  if (auto fault = wait(shared.state, kLoaded, Patience::sleep, order.timeout_s, labels)) return fault;
  if (labels.native) return std::nullopt;
  if (const std::size_t count = threads().size(); count != workers) {
    process_->kill();
    return make_error(ErrorKind::forbidden,
                      "{} has {} threads after loading instead of {}: a static constructor started one", labels.program,
                      count, workers)
        .with_hint("blocks run on the device's worker threads; a kernel has none of its own");
  }
  return std::nullopt;
}

std::optional<Error> Runner::check(double waited_s, double timeout_s, const Labels& labels) {
  if (process_->output_seen() > kOutputLimit) {
    process_->kill();
    const std::string kept = process_->output();
    const std::uint64_t seen = process_->output_seen();
    std::string shown = kept.substr(0, 200);
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';   // one line, whatever it printed
    return make_error(ErrorKind::output_limit, "{} printed more than {} ({} bytes seen, {} kept)", labels.program,
                      format_bytes(kOutputLimit), seen, kept.size())
        .with_hint("a kernel prints nothing; its results are its outputs")
        .with_note("output begins: " + shown);
  }
  if (!process_->running()) return death(labels);
  if (waited_s <= timeout_s) return std::nullopt;
  std::string where;
  const Position& position = control().positions[0];
  const std::uint32_t step = position.step.load(std::memory_order_relaxed);
  if (step < labels.steps.size() && !labels.steps[step].kernel.empty())
    where = fmt::format(" (launch {}, {}, block {})", step, labels.steps[step].kernel,
                        position.block.load(std::memory_order_relaxed));
  process_->kill();
  return make_error(ErrorKind::timeout, "{} did not end within {}{}", labels.program, format_duration(timeout_s), where)
      .with_hint("an endless loop, or a workload that needs the task's call_timeout_s raised");
}

std::optional<Error> Runner::wait(const Word& word, std::uint32_t value, Patience patience, double timeout_s,
                                  const Labels& labels) {
  const double start = now_s();
  double checked = start;
  looked_s_ = start;
  stalled_s_ = 0;
  for (;;) {
    std::uint32_t seen = word.load(std::memory_order_acquire);
    for (int i = 0; i < 64 && patience == Patience::spin && seen != value; ++i) {
      pause_core();
      seen = word.load(std::memory_order_acquire);
    }
    if (patience == Patience::sleep && seen != value) nap(word, seen, 2000000);
    const double now = now_s();
    if (now - looked_s_ > kStall) stalled_s_ += now - looked_s_;
    looked_s_ = now;
    if (seen == value) return std::nullopt;
    const bool refused = control().state.load(std::memory_order_acquire) == kRefused;
    if (now - checked < kCheckPeriod && !refused) continue;
    checked = now;
    if (refused) {
      process_->wait(1);   // it is about to leave
      return death(labels);
    }
    if (auto fault = check(now - start, timeout_s, labels)) return fault;
  }
}

}  // namespace hone::cpu
