// Opens a shared object from a frame without unwind information (CMakeLists.txt): an exception that a
// static constructor throws ends in its own runtime's terminate, which says what it was, instead of
// travelling through this program's frames, whose C++ runtime is another one.
#include <dlfcn.h>

#include "device/cpu/runner_program.h"

namespace hone::cpu {

void* open_shared_object(const char* path) {
  void* handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  asm volatile("" ::: "memory");   // not a tail call: this frame has to be there
  return handle;
}

}  // namespace hone::cpu
