#include "agent/space.h"

#include <algorithm>
#include <charconv>

namespace hone {
namespace {

// Steps of a walk: some seconds of work. Only a space whose constraints defeat pruning needs more.
constexpr std::size_t kWalkSteps = 2'000'000;
constexpr std::size_t kListSteps = 100'000;

std::optional<std::int64_t> as_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::optional<std::int64_t>(value) : std::nullopt;
}

}  // namespace

Result<Space> Space::create(const std::vector<Candidate>& seeds) {
  Space space;
  if (seeds.empty())
    return fail(make_error(ErrorKind::contract, "no candidate to tune")
                    .with_hint("put a folder with `parameters` in candidate.yaml below the run's scratch folder, or say --candidate"));
  for (const Candidate& seed : seeds) {
    Part part;
    part.parameters = seed.parameters;
    part.defaults = seed.values;
    for (const TunableParameter& parameter : seed.parameters) {
      std::optional<std::vector<std::int64_t>> numbers(std::in_place);
      for (const std::string& value : parameter.values) {
        const auto number = as_number(value);
        if (!number) {
          numbers.reset();
          break;
        }
        numbers->push_back(*number);
      }
      part.numbers.push_back(std::move(numbers));
    }
    for (const std::string& text : seed.constraints) {
      const Place place{(seed.path / "candidate.yaml").string()};
      auto names = names_in(text);
      if (!names) return fail(std::move(names.error()).at(place));
      std::size_t depth = 0;
      for (const std::string& name : *names) {
        const auto found = std::find_if(part.parameters.begin(), part.parameters.end(),
                                        [&](const TunableParameter& each) { return each.name == name; });
        const auto at = static_cast<std::size_t>(found - part.parameters.begin());
        if (found == part.parameters.end() || !part.numbers[at])
          return fail(make_error(ErrorKind::contract, "constraint \"{}\": {} is not {}", text, name,
                                 found == part.parameters.end() ? "a parameter" : "a parameter with whole numbers")
                          .at(place));
        depth = std::max(depth, at + 1);
      }
      part.constraints.push_back({text, depth});
    }
    space.parts_.push_back(std::move(part));
  }
  return space;
}

double Space::raw_size() const {
  double sum = 0;
  for (const Part& part : parts_) {
    double product = 1;
    for (const TunableParameter& each : part.parameters) product *= static_cast<double>(each.values.size());
    sum += product;
  }
  return sum;
}

// Whether the constraints that are decided by exactly the first `depth` parameters hold.
bool Space::holds(const Part& part, const std::vector<std::size_t>& index, std::size_t depth) const {
  ExpressionValues values;
  for (const Constraint& constraint : part.constraints) {
    if (constraint.depth != depth) continue;
    if (values.empty())
      for (std::size_t i = 0; i < depth; ++i)
        if (part.numbers[i]) values[part.parameters[i].name] = {(*part.numbers[i])[index[i]]};
    const auto value = evaluate(constraint.text, values);
    if (!value || *value == 0) return false;
  }
  return true;
}

bool Space::valid(const Point& point) const {
  const Part& part = parts_[point.seed];
  for (std::size_t depth = 0; depth <= part.parameters.size(); ++depth)
    if (!holds(part, point.index, depth)) return false;
  return true;
}

Parameters Space::values(const Point& point) const {
  Parameters values;
  const Part& part = parts_[point.seed];
  for (std::size_t i = 0; i < part.parameters.size(); ++i) values[part.parameters[i].name] = part.parameters[i].values[point.index[i]];
  return values;
}

std::optional<Point> Space::defaults(std::size_t seed) const {
  Point point{seed, {}};
  const Part& part = parts_[seed];
  for (const TunableParameter& parameter : part.parameters) {
    const auto value = part.defaults.find(parameter.name);
    if (value == part.defaults.end()) return std::nullopt;
    const auto found = std::find(parameter.values.begin(), parameter.values.end(), value->second);
    if (found == parameter.values.end()) return std::nullopt;
    point.index.push_back(static_cast<std::size_t>(found - parameter.values.begin()));
  }
  return valid(point) ? std::optional<Point>(std::move(point)) : std::nullopt;
}

bool Space::advance(const Part& part, const std::vector<std::size_t>& turn, std::vector<std::size_t>& index, std::size_t& budget) const {
  const std::size_t n = part.parameters.size();
  if (!holds(part, index, 0)) return false;
  std::vector<std::size_t> turned = index;
  const auto holds_at = [&](std::size_t depth) {
    const std::size_t at = depth - 1;
    turned[at] = turn.empty() ? index[at] : (index[at] + turn[at]) % part.parameters[at].values.size();
    return holds(part, turned, depth);
  };
  // `depth` parameters are known to be fine; the next one is tried at index[depth].
  std::size_t depth = 0;
  while (depth < n) {
    if (budget == 0) return false;
    --budget;
    if (index[depth] < part.parameters[depth].values.size()) {
      if (holds_at(depth + 1)) {
        ++depth;
        continue;
      }
      ++index[depth];
      std::fill(index.begin() + static_cast<std::ptrdiff_t>(depth) + 1, index.end(), 0);
      continue;
    }
    if (depth == 0) return false;
    std::fill(index.begin() + static_cast<std::ptrdiff_t>(depth), index.end(), 0);
    --depth;
    ++index[depth];
  }
  index = std::move(turned);
  return true;
}

std::optional<Point> Space::from(Point start, std::size_t& budget) const {
  for (; start.seed < parts_.size(); start = Point{start.seed + 1, {}}) {
    start.index.resize(parts_[start.seed].parameters.size(), 0);
    if (advance(parts_[start.seed], {}, start.index, budget)) return start;
    if (budget == 0) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Point> Space::first() const {
  std::size_t budget = kWalkSteps;
  return from(Point{}, budget);
}

std::optional<Point> Space::next(const Point& after) const {
  std::size_t budget = kWalkSteps;
  Point start = after;
  if (start.index.empty()) start = Point{after.seed + 1, {}};
  else ++start.index.back();   // one past the last value is carried by the walk
  return from(std::move(start), budget);
}

std::optional<Point> Space::random(Random& random) const {
  const std::size_t first_seed = random.below(parts_.size());
  std::size_t budget = kWalkSteps;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Point point{(first_seed + i) % parts_.size(), {}};
    const Part& part = parts_[point.seed];
    point.index.resize(part.parameters.size(), 0);
    std::vector<std::size_t> turn;
    for (const TunableParameter& each : part.parameters) turn.push_back(random.below(each.values.size()));
    if (advance(part, turn, point.index, budget)) return point;
  }
  return std::nullopt;
}

std::vector<Point> Space::neighbours(const Point& point) const {
  struct Near {
    std::size_t distance;
    Point point;
  };
  std::vector<Near> found;
  const Part& part = parts_[point.seed];
  for (std::size_t i = 0; i < part.parameters.size(); ++i)
    for (std::size_t value = 0; value < part.parameters[i].values.size(); ++value) {
      if (value == point.index[i]) continue;
      Point other = point;
      other.index[i] = value;
      if (valid(other)) found.push_back({value > point.index[i] ? value - point.index[i] : point.index[i] - value, std::move(other)});
    }
  std::stable_sort(found.begin(), found.end(), [](const Near& a, const Near& b) { return a.distance < b.distance; });
  std::vector<Point> points;
  for (Near& each : found) points.push_back(std::move(each.point));
  return points;
}

std::optional<Point> Space::perturbed(const Point& point, std::size_t changes, Random& random) const {
  const Part& part = parts_[point.seed];
  if (part.parameters.empty()) return std::nullopt;
  for (int attempt = 0; attempt < 64; ++attempt) {
    Point other = point;
    for (std::size_t i = 0; i < changes; ++i) {
      const std::size_t at = random.below(part.parameters.size());
      other.index[at] = random.below(part.parameters[at].values.size());
    }
    if (other != point && valid(other)) return other;
  }
  return std::nullopt;
}

std::optional<std::vector<Point>> Space::all() const {
  std::size_t budget = kListSteps;
  std::vector<Point> points;
  for (auto point = from(Point{}, budget); point; ) {
    points.push_back(*point);
    Point start = *point;
    if (start.index.empty()) start = Point{point->seed + 1, {}};
    else ++start.index.back();
    point = from(std::move(start), budget);
  }
  if (budget == 0) return std::nullopt;
  return points;
}

}  // namespace hone
