// One hone-runner process, seen from the trusted side. It is started before there is a program for
// it, so that loading one costs no process start.
#ifndef HONE_DEVICE_CPU_RUNNER_H
#define HONE_DEVICE_CPU_RUNNER_H

#include <time.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"
#include "device/cpu/arena.h"
#include "device/cpu/control.h"
#include "device/cpu/topology.h"
#include "sandbox/sandbox.h"

namespace hone::cpu {

struct RunnerSetup {
  const Sandbox& sandbox;
  fs::path libexec;
  const Topology& topology;
};

// Names for messages about a program's death.
struct Labels {
  struct Step {
    std::string kernel;                     // empty: a memset
    std::int64_t grid_x = 1, grid_y = 1;
  };
  std::string program;
  std::vector<Step> steps;
  std::vector<fs::path> objects;
  std::vector<std::string> sources;         // by object: the file it was compiled from
  const Layout* inputs = nullptr;           // of the fault addresses
  const Layout* own = nullptr;
  bool native = false;
};

class Runner {
 public:
  // Started, its threads asleep and pinned. `input_fd` can only be mapped for reading.
  static Result<std::unique_ptr<Runner>> start(const RunnerSetup& setup, const SharedMemory& inputs);
  ~Runner();

  Control& control() { return *reinterpret_cast<Control*>(control_.data()); }
  SharedMemory& arena() { return arena_; }
  // Copies a shared object to where the jail sees it, read-only; its path in there.
  Result<std::string> place(const fs::path& object, const std::string& name);

  struct Order {
    std::size_t blob_offset = 0, blob_bytes = 0, input_bytes = 0;
    std::uint64_t memory_bytes = 0;         // what the program may allocate itself
    double timeout_s = 30;
  };
  // The arena is sized and described. A fault when the program could not be loaded.
  std::optional<Error> load(const Order& order, const Labels& labels);

  // Waits until the runner has set the word, spinning or asleep. A fault when it died, was too slow
  // or too loud; then it is killed.
  std::optional<Error> wait(const Word& word, std::uint32_t value, Patience patience, double timeout_s,
                            const Labels& labels);
  // Of the last spinning wait: time in which this thread did not look, since something else ran here,
  // and when it looked last.
  double stalled_s() const { return stalled_s_; }
  double looked_s() const { return looked_s_; }
  // Kills it when it has died, or when `waited_s` is beyond `timeout_s`, or its output beyond the limit.
  std::optional<Error> check(double waited_s, double timeout_s, const Labels& labels);

  // CPU time of all its threads; no value once it is gone. The system brings this up to date when a
  // thread falls asleep: exact while asleep(), up to a timer tick old while something runs.
  std::optional<double> cpu_s() const;
  // Every thread waits: nothing runs or could run.
  bool asleep() const;
  // Every worker sleeps where the runner's own code put it, and nowhere else (runner_seat.h): it will do nothing
  // of a candidate's before it is told to. True also where the system does not show it.
  bool at_rest() const;
  bool running() { return process_->running(); }
  pid_t pid() const { return process_->pid(); }

 private:
  Runner(const RunnerSetup& setup, ScratchDir folder) : setup_(setup), folder_(std::move(folder)) {}
  std::vector<int> threads() const;
  Error death(const Labels& labels);
  std::string line_of(const Labels& labels, const FaultRecord& fault) const;

  RunnerSetup setup_;
  ScratchDir folder_;
  SharedMemory control_, arena_;
  std::unique_ptr<JailedProcess> process_;
  clockid_t cpu_clock_ = 0;
  std::vector<int> states_;              // /proc/<pid>/task/<tid>/stat of each worker, open
  std::vector<int> calls_;               // /proc/<pid>/task/<tid>/syscall of each worker, open; none: refused
  std::uint64_t idle_pc_ = 0;
  std::vector<std::uint64_t> idle_sp_;   // by worker
  double stalled_s_ = 0, looked_s_ = 0;
  bool own_threads_ = false;             // a baseline's library starts others
};

}  // namespace hone::cpu

#endif
