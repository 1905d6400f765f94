// Inside hone-runner: the program that it was given, ready to be called.
#ifndef HONE_DEVICE_CPU_RUNNER_PROGRAM_H
#define HONE_DEVICE_CPU_RUNNER_PROGRAM_H

#include <memory>
#include <stdexcept>

#include "device/cpu/control.h"
#include "device/cpu/crew.h"

namespace hone::cpu {

struct RunnerFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Program : public Work {
 public:
  virtual bool native() const = 0;
};

// Maps the arenas, closes their descriptors, opens the shared objects (their static constructors
// run) and binds every step's arguments. Throws RunnerFault when the program cannot be had.
std::unique_ptr<Program> load_program(Control& control, std::uint32_t workers);

// dlopen, and the static constructors (runner_open.cpp).
void* open_shared_object(const char* path);

}  // namespace hone::cpu

#endif
