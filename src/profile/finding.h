// What a checker has found, in one form for all of them.
#ifndef HONE_PROFILE_FINDING_H
#define HONE_PROFILE_FINDING_H

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hone {

// Another place that takes part: the second access of a race, the function that was inlined into.
struct RelatedPlace {
  std::string what;  // "Read access", "called from"
  std::string function, file;
  int line = 0;  // 0: unknown
};

struct Finding {
  std::string tool;      // memcheck, racecheck, synccheck, initcheck
  std::string kind;      // out_of_bounds, misaligned, race, barrier, uninitialised, fault
  std::string severity;  // error, review
  std::string message;   // the tool's own words
  std::string kernel;    // readable; empty: not told
  std::string file;      // as the candidate knows it: kernel.cu, <hone/ptx.cuh>; empty: not told
  int line = 0;
  std::optional<std::array<long, 3>> block, thread;  // of the first of them
  std::vector<std::string> details;                  // what the tool says besides: the address, the nearest allocation
  std::vector<RelatedPlace> related;
  std::size_t count = 1;  // threads, or hazards, for which it was told
};

void to_json(nlohmann::json& out, const Finding& finding);
// "kernel.cu:12: error(race): ..." with everything else indented below it.
std::string finding_text(const nlohmann::json& finding);

// One for all that tell the same of the same place, in the order of the first; `count` adds up.
std::vector<Finding> merged(std::vector<Finding> findings);

}  // namespace hone

#endif
