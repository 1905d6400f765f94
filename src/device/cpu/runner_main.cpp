// hone-runner WORKERS PATIENCE: hosts one program of the CPU device, in a jail. It is started before
// there is a program, waits for one, and then serves the doorbell until it is killed.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "device/cpu/control.h"
#include "device/cpu/crew.h"
#include "device/cpu/runner_faults.h"
#include "device/cpu/runner_program.h"
#include "device/cpu/runner_seat.h"

namespace {

using namespace hone::cpu;

void* follow(void* argument) {
  const auto worker = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(argument));
  prepare_thread(worker);
  take_seat(worker);
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
  Crew* const crew = make_seats(control, workers, patience);
  if (crew == nullptr || !seal_seats()) return refuse(control, std::strerror(errno));
  for (std::uint32_t i = 1; i < workers; ++i) {
    pthread_t thread;
    if (const int code = ::pthread_create(&thread, nullptr, follow, reinterpret_cast<void*>(std::uintptr_t{i})); code != 0)
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
  crew->take(*program, program->native());
  // Nothing of ours needs a new thread, file or handler any more.
  if (!program->native()) {
    if (const int code = lock(); code != 0) return refuse(control, std::strerror(code));
  }
  set(control.state, kLoaded, Patience::sleep);
  take_seat(0);
  return 3;
}
