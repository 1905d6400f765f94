// The second, tighter filter: a program in the compute policy calls this when its threads, files and
// libraries are in place, right before it runs what it does not trust. Linked alone (hone_lockdown),
// C linkage, no allocation, no dependencies.
//
// From then on, for all threads of the process and for ever: memory (mmap of anonymous memory or of a
// descriptor already open, munmap, mprotect, mremap, madvise, brk), waiting (futex, poll, nanosleep,
// sched_yield), clocks, reading and writing open descriptors, closing them, ending a thread or the
// process, and a signal to oneself (abort) are allowed; also newfstatat, which is what fstat is. Everything else traps
// with SIGSYS: new threads and processes, exec, opening or changing files, signal handlers, limits, affinity, prctl.
// Every thread must have begun to run. Install the handlers of SIGSYS, SIGSEGV, ... before; they cannot be replaced after. Where a caller
// has blocked SIGSYS (pthread_create does, while it clones) the trap ends the process without a handler.
#ifndef HONE_SANDBOX_LOCKDOWN_H
#define HONE_SANDBOX_LOCKDOWN_H

#ifdef __cplusplus
extern "C" {
#endif

// 0, or an errno value: then nothing has changed and untrusted code must not be run. ESRCH: a thread
// has a filter that the others lack.
//
// `image_end`: the end of the caller's own image, below which no mapping may be changed, replaced or removed
// (munmap, mprotect, madvise, mremap, and mmap at a fixed address); MREMAP_FIXED is refused anywhere. Null: none.
// `loading`: not 0 while a shared object is still to be opened: files may be opened, and the filter that
// follows installed.
int hone_lockdown(const void* image_end, int loading);

#ifdef __cplusplus
}
#endif

#endif
