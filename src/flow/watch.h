// The monitor: a run as it stands, on a terminal. Derived from ledger, frontier, the launcher's word and the trace.
#ifndef HONE_FLOW_WATCH_H
#define HONE_FLOW_WATCH_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/summary.h"

namespace hone {

struct WatchFacts {
  const Summary& summary;
  const nlohmann::json& live;                  // hone.live/1, or null
  const std::vector<nlohmann::json>& events;   // the newest of the trace
};
// Lines of at most `columns` characters, without escape sequences.
std::string watch_text(const WatchFacts& facts, int columns);
// hone.watch/1: the report's facts, live and events.
nlohmann::json watch_json(const WatchFacts& facts);

// The best speedup over time, drawn with characters.
std::vector<std::string> curve_lines(const std::vector<Improvement>& curve, double seconds, const std::optional<double>& target, int columns, int lines);

}  // namespace hone

#endif
