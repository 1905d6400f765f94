// Inside hone-runner: where a worker sleeps between two calls, and what keeps it the runner's.
//
// A candidate's code shares the runner's memory. Were a worker to come back to it between two calls, it could
// work before the clock runs (docs/adr/0008-seats.md). So each worker sleeps in one system call at one address, with its
// stack pointer at one place: told to the trusted side before any code of a candidate is there, and looked at by
// it before every call (Runner::at_rest). Whoever sleeps there is woken into hone_awake, with an empty stack and no
// register of before. Up to `go` that code uses nothing but the runner's image: its text, its constants and the
// seats, which are read-only by then, and a filter keeps every mapping of the image as it is.
#ifndef HONE_DEVICE_CPU_RUNNER_SEAT_H
#define HONE_DEVICE_CPU_RUNNER_SEAT_H

#include "device/cpu/control.h"
#include "device/cpu/crew.h"

namespace hone::cpu {

// Crew and stacks for so many workers; what Control says of them is filled in. Null: no memory (errno).
Crew* make_seats(Control& control, std::uint32_t workers, Patience patience);
// From now on they cannot be changed. False: errno.
bool seal_seats();
// Serves calls on this thread, on the worker's own stack, and does not return: with kStop the process ends.
void take_seat(std::uint32_t worker);

// Before a candidate's static constructors: files may still be opened. Throws RunnerFault.
void lock_while_loading();
// For good. 0 or an errno value.
int lock();

}  // namespace hone::cpu

#endif
