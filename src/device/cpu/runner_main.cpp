// hone-runner WORKERS PATIENCE: hosts one program of the CPU device, in a jail. It is started before
// there is a program, waits for one, and then serves the doorbell until it is killed.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "device/cpu/control.h"
#include "device/cpu/crew.h"
#include "device/cpu/runner_faults.h"
#include "device/cpu/runner_program.h"
#include "sandbox/lockdown.h"

namespace {

using namespace hone::cpu;

struct Follower {
  Crew* crew;
  std::uint32_t worker;
};

void* follow(void* argument) {
  const Follower follower = *static_cast<Follower*>(argument);
  prepare_thread(follower.worker);
  follower.crew->follow(follower.worker);
  return nullptr;
}

int refuse(Control& control, const char* message) {
  std::strncpy(control.message, message, sizeof control.message - 1);
  set(control.state, kRefused, Patience::sleep);
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  void* memory = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, kControlFd, 0);
  if (argc != 3 || memory == MAP_FAILED) {
    static constexpr char kUsage[] = "hone-runner is started by hone, not by hand\n";
    return ::write(2, kUsage, sizeof kUsage - 1) < 0 ? 4 : 3;
  }
  ::close(kControlFd);
  auto& control = *static_cast<Control*>(memory);
  const auto workers = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10));
  const auto patience = std::strcmp(argv[2], "spin") == 0 ? Patience::spin : Patience::sleep;
  if (workers == 0 || workers > kMaxWorkers) return refuse(control, "the number of workers is out of range");

  install_fault_handlers(control);
  prepare_thread(0);
  static Crew crew(control.bell, workers, patience);
  static Follower followers[kMaxWorkers];
  for (std::uint32_t i = 1; i < workers; ++i) {
    followers[i] = {&crew, i};
    pthread_t thread;
    if (const int code = ::pthread_create(&thread, nullptr, follow, &followers[i]); code != 0)
      return refuse(control, std::strerror(code));
    ::pthread_detach(thread);
  }
  set(control.state, kReady, Patience::sleep);

  wait_equal(control.command, 1, Patience::sleep);
  std::unique_ptr<Program> program;
  try {
    program = load_program(control, workers);
  } catch (const RunnerFault& fault) {
    return refuse(control, fault.what());
  }
  // From here on a candidate's code runs and nothing of ours needs a new thread, file or handler. A
  // baseline is trusted, and its library may start its threads when it is first called.
  if (!program->native()) {
    if (const int code = hone_lockdown(); code != 0) return refuse(control, std::strerror(code));
  }
  set(control.state, kLoaded, Patience::sleep);
  crew.lead(*program, program->native());
  return 0;
}
