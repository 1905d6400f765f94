// The few numbers of a profile that say where a kernel's time goes.
#ifndef HONE_PROFILE_FIGURES_H
#define HONE_PROFILE_FIGURES_H

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "profile/ncu_output.h"

namespace hone {

// duration_us, compute_pct, memory_pct (of what the GPU can at most), units [{unit, metric, pct}] highest first, at most six,
// limiting: the first of them; tensor_pct, dram_pct, l2_hit_pct, l1_hit_pct, bank_conflicts (of shared memory), occupancy_pct,
// occupancy_limit_pct, registers, stalls [{reason, cycles}]: cycles that a warp waits for each instruction it issues, highest
// first. Null where the profile does not say.
nlohmann::json figures_of(const LaunchMetrics& launch);
// For people, indented by two.
std::string figures_text(const nlohmann::json& figures);

}  // namespace hone

#endif
