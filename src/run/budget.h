// What a run may spend: evaluations, time, turns, tokens, cost. Cumulative over resumed sessions.
#ifndef HONE_RUN_BUDGET_H
#define HONE_RUN_BUDGET_H

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hone {

struct Budget {
  std::map<std::string, double> limits;    // by key: evaluations, time (seconds), turns, tokens, cost

  std::optional<double> limit(const std::string& key) const;
  std::optional<std::int64_t> evaluations() const;
  std::optional<double> seconds() const { return limit("time"); }
  bool empty() const { return limits.empty(); }
  // The limits of `changed` replace those here; others stay.
  Budget with(const Budget& changed) const;
};

// "evaluations=60,time=120s"; `duration` means `time`. Empty text: no limits. Kind usage on error.
Result<Budget> parse_budget(std::string_view text);
std::string to_text(const Budget& budget);
void to_json(nlohmann::json& out, const Budget& budget);
void from_json(const nlohmann::json& in, Budget& budget);

}  // namespace hone

#endif
