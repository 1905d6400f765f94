// In which order configurations are tried. A strategy is a deterministic function of its seed and
// of what it is told, so a resumed run replays the ledger into a fresh one and goes on exactly.
#ifndef HONE_AGENT_STRATEGY_H
#define HONE_AGENT_STRATEGY_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/space.h"

namespace hone {

class Strategy {
 public:
  virtual ~Strategy() = default;
  // A valid point never proposed before; nullopt when none is left.
  virtual std::optional<Point> propose() = 0;
  // The speedup that the proposed point reached; nullopt when it failed.
  virtual void tell(const Point& point, std::optional<double> speedup) = 0;
  virtual std::unique_ptr<Strategy> clone() const = 0;

  // What would be proposed next if nothing got better: for compiling ahead.
  std::vector<Point> upcoming(std::size_t count) const;
};

const std::vector<std::string>& strategy_names();   // the first is the default
// Kind usage for an unknown name, with the nearest. `space` must outlive the strategy.
//   ils     the seeds' own values, some random points, then iterated local search
//   random  the seeds' own values, then random order
//   grid    lexicographic order (also called exhaustive)
Result<std::unique_ptr<Strategy>> make_strategy(const std::string& name, const Space& space, std::uint64_t seed);

}  // namespace hone

#endif
