// The configurations of one or more seed candidates: parameters' values under constraints.
//
// A space may be astronomically larger than what is valid in it, so valid points are found by a
// depth-first walk that leaves a branch as soon as a constraint over the parameters set so far fails.
#ifndef HONE_AGENT_SPACE_H
#define HONE_AGENT_SPACE_H

#include <compare>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/expression.h"
#include "program/candidate.h"

namespace hone {

// A seed candidate, and for each of its parameters the index of a value.
struct Point {
  std::size_t seed = 0;
  std::vector<std::size_t> index;
  friend auto operator<=>(const Point&, const Point&) = default;
};

// Portable draws: std's distributions differ between libraries, and a resumed run must not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

class Space {
 public:
  // Kind contract: a constraint that does not parse or names no parameter, or no seed at all. Where
  // a constraint has no value at a point (division by zero), it does not hold there.
  static Result<Space> create(const std::vector<Candidate>& seeds);

  std::size_t seeds() const { return parts_.size(); }
  double raw_size() const;                       // product of the lists, constraints not counted
  bool valid(const Point& point) const;
  Parameters values(const Point& point) const;
  // The seed's own values, when they are valid.
  std::optional<Point> defaults(std::size_t seed) const;

  // In lexicographic order; nullopt after the last.
  std::optional<Point> first() const;
  std::optional<Point> next(const Point& after) const;
  // A valid point by a walk that tries each list from a random place on (not uniform); nullopt when
  // there is none.
  std::optional<Point> random(Random& random) const;
  // Valid points that differ in one parameter, nearest values first.
  std::vector<Point> neighbours(const Point& point) const;
  // A point with up to `changes` parameters drawn anew, when a few tries find a valid one.
  std::optional<Point> perturbed(const Point& point, std::size_t changes, Random& random) const;
  // Every valid point, or nullopt when finding them all would take too long.
  std::optional<std::vector<Point>> all() const;

 private:
  struct Constraint {
    std::string text;
    std::size_t depth = 0;                       // decided once this many parameters are set
  };
  struct Part {
    std::vector<TunableParameter> parameters;
    std::vector<std::optional<std::vector<std::int64_t>>> numbers;   // by parameter; none when it is text
    std::vector<Constraint> constraints;
    Parameters defaults;
  };

  bool holds(const Part& part, const std::vector<std::size_t>& index, std::size_t depth) const;
  // The least valid completion that is not below `index` in the part; false when there is none.
  // `turn` (empty: none) turns each parameter's list by so many places.
  bool advance(const Part& part, const std::vector<std::size_t>& turn, std::vector<std::size_t>& index, std::size_t& budget) const;
  std::optional<Point> from(Point start, std::size_t& budget) const;

  std::vector<Part> parts_;
};

}  // namespace hone

#endif
