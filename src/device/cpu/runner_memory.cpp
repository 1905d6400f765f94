// malloc and its kin in hone-runner: glibc's own, and a note of the largest request that failed. A
// kernel that then stores through the null pointer ran out of memory; without the note it would be
// an ordinary crash.
#include <cerrno>
#include <cstddef>

#include "device/cpu/runner_faults.h"

extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

static void* noted(void* memory, std::size_t bytes) {
  if (memory == nullptr && bytes != 0) hone::cpu::note_failed_allocation(bytes);
  return memory;
}

void* malloc(std::size_t bytes) { return noted(__libc_malloc(bytes), bytes); }
void* calloc(std::size_t count, std::size_t bytes) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) total = static_cast<std::size_t>(-1);
  return noted(__libc_calloc(count, bytes), total);
}
void* realloc(void* old, std::size_t bytes) { return noted(__libc_realloc(old, bytes), bytes); }
void* memalign(std::size_t alignment, std::size_t bytes) { return noted(__libc_memalign(alignment, bytes), bytes); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
}
