#include "sandbox/syscalls.h"

#include <seccomp.h>

#include <cstdlib>

namespace hone {

std::string syscall_name(int number) {
  char* name = number < 0 ? nullptr : seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  if (name == nullptr) return "system call " + std::to_string(number);
  std::string text = name;
  std::free(name);
  return text;
}

}  // namespace hone
