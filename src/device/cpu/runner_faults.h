// Inside hone-runner: signal handlers that leave word of how the process died, then let it die.
#ifndef HONE_DEVICE_CPU_RUNNER_FAULTS_H
#define HONE_DEVICE_CPU_RUNNER_FAULTS_H

#include <cstddef>

#include "device/cpu/control.h"

namespace hone::cpu {

// Once in the process, then once on each thread (an alternate stack, for stack overflows).
void install_fault_handlers(Control& control);
void prepare_thread(std::uint32_t worker);

// Addresses that records speak of.
void note_arena(ArenaKind kind, const void* begin, std::size_t bytes);
void note_object(std::uint32_t index, std::uintptr_t base, std::uintptr_t end);
// A request for memory that failed (runner_memory.cpp).
void note_failed_allocation(std::size_t bytes);

}  // namespace hone::cpu

#endif
