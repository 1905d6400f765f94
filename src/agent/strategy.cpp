#include "agent/strategy.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace hone {
namespace {

// What is left of a space. Small spaces are listed, so that random draws are uniform and the end is
// found at once; of larger ones the points seen are kept.
class Remaining {
 public:
  explicit Remaining(const Space& space) : space_(&space) {
    if (auto all = space.all()) listed_ = std::set<Point>(all->begin(), all->end());
  }

  bool fresh(const Point& point) const { return listed_ ? listed_->count(point) != 0 : seen_.count(point) == 0; }
  void take(const Point& point) {
    if (listed_) listed_->erase(point);
    else seen_.insert(point);
  }

  std::optional<Point> draw(Random& random) const {
    if (listed_) {
      if (listed_->empty()) return std::nullopt;
      return *std::next(listed_->begin(), static_cast<std::ptrdiff_t>(random.below(listed_->size())));
    }
    for (int attempt = 0; attempt < 200; ++attempt) {
      const auto point = space_->random(random);
      if (!point) return std::nullopt;
      if (fresh(*point)) return point;
    }
    return least();
  }

  std::optional<Point> least() const {
    if (listed_) return listed_->empty() ? std::nullopt : std::optional<Point>(*listed_->begin());
    for (auto point = space_->first(); point; point = space_->next(*point))
      if (fresh(*point)) return point;
    return std::nullopt;
  }

 private:
  const Space* space_;
  std::optional<std::set<Point>> listed_;
  std::set<Point> seen_;
};

class Grid : public Strategy {
 public:
  explicit Grid(const Space& space) : space_(&space) {}
  std::optional<Point> propose() override {
    if (done_) return std::nullopt;
    auto point = last_ ? space_->next(*last_) : space_->first();
    done_ = !point;
    last_ = point;
    return point;
  }
  void tell(const Point&, std::optional<double>) override {}
  std::unique_ptr<Strategy> clone() const override { return std::make_unique<Grid>(*this); }

 private:
  const Space* space_;
  std::optional<Point> last_;
  bool done_ = false;
};

class RandomOrder : public Strategy {
 public:
  RandomOrder(const Space& space, std::uint64_t seed) : remaining_(space), random_(seed) {
    for (std::size_t i = space.seeds(); i-- > 0;)
      if (auto point = space.defaults(i)) first_.push_back(*std::move(point));
  }
  std::optional<Point> propose() override {
    std::optional<Point> point;
    if (!first_.empty()) {
      point = first_.back();
      first_.pop_back();
    } else {
      point = remaining_.draw(random_);
    }
    if (point) remaining_.take(*point);
    return point;
  }
  void tell(const Point&, std::optional<double>) override {}
  std::unique_ptr<Strategy> clone() const override { return std::make_unique<RandomOrder>(*this); }

 private:
  Remaining remaining_;
  Random random_;
  std::vector<Point> first_;
};

class IteratedLocalSearch : public Strategy {
 public:
  IteratedLocalSearch(const Space& space, std::uint64_t seed) : space_(&space), remaining_(space), random_(seed) {
    for (std::size_t i = space.seeds(); i-- > 0;)
      if (auto point = space.defaults(i)) first_.push_back(*std::move(point));
  }

  std::optional<Point> propose() override {
    auto point = choose();
    if (point) remaining_.take(*point);
    return point;
  }

  void tell(const Point& point, std::optional<double> speedup) override {
    if (!speedup) return;
    if (!best_ || *speedup > best_->speedup) best_ = Scored{point, *speedup};
    if (!climbing_ || (current_ && *speedup <= current_->speedup)) return;
    current_ = Scored{point, *speedup};
    around_.clear();
    surroundings();
  }

  std::unique_ptr<Strategy> clone() const override { return std::make_unique<IteratedLocalSearch>(*this); }

 private:
  struct Scored {
    Point point;
    double speedup;
  };
  static constexpr int kRandomStart = 6;

  void surroundings() {
    // Nearest values first, but in no fixed order among equals: the walk's order favours no parameter.
    around_ = space_->neighbours(current_->point);
    const std::size_t near = std::min<std::size_t>(around_.size(), 2 * current_->point.index.size());
    std::vector<Point> head(around_.begin(), around_.begin() + static_cast<std::ptrdiff_t>(near));
    random_.shuffle(head);
    std::copy(head.begin(), head.end(), around_.begin());
    std::reverse(around_.begin(), around_.end());   // taken from the back
  }

  std::optional<Point> choose() {
    if (!first_.empty()) {
      const Point point = first_.back();
      first_.pop_back();
      if (remaining_.fresh(point)) return point;
    }
    if (drawn_ < kRandomStart) {
      ++drawn_;
      return remaining_.draw(random_);
    }
    if (!climbing_ && best_) {
      climbing_ = true;
      current_ = best_;
      surroundings();
    }
    for (int kick = 0; kick < 8 && current_; ++kick) {
      while (!around_.empty()) {
        const Point point = around_.back();
        around_.pop_back();
        if (remaining_.fresh(point)) return point;
      }
      // A local optimum: go on from a point some changes away from the best. Its own value is what
      // the next steps are held against, so that the search may leave the optimum's basin.
      const auto away = space_->perturbed(best_->point, 2 + random_.below(2), random_);
      if (!away) break;
      current_.reset();
      if (remaining_.fresh(*away)) return away;
      current_ = Scored{*away, 0};
      surroundings();
    }
    return remaining_.draw(random_);
  }

  const Space* space_;
  Remaining remaining_;
  Random random_;
  std::vector<Point> first_, around_;
  std::optional<Scored> best_, current_;
  int drawn_ = 0;
  bool climbing_ = false;
};

}  // namespace

std::vector<Point> Strategy::upcoming(std::size_t count) const {
  std::vector<Point> points;
  const auto copy = clone();
  while (points.size() < count) {
    auto point = copy->propose();
    if (!point) break;
    copy->tell(*point, std::nullopt);
    points.push_back(*std::move(point));
  }
  return points;
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = {"ils", "random", "grid", "exhaustive"};
  return names;
}

Result<std::unique_ptr<Strategy>> make_strategy(const std::string& name, const Space& space, std::uint64_t seed) {
  if (name == "ils") return std::unique_ptr<Strategy>(std::make_unique<IteratedLocalSearch>(space, seed));
  if (name == "random") return std::unique_ptr<Strategy>(std::make_unique<RandomOrder>(space, seed));
  if (name == "grid" || name == "exhaustive") return std::unique_ptr<Strategy>(std::make_unique<Grid>(space));
  Error error = make_error(ErrorKind::usage, "the tuner has no strategy \"{}\"", name);
  const std::string near = nearest(name, strategy_names());
  error.hint = near.empty() ? "strategies: ils, random, grid" : fmt::format("did you mean {}?", near);
  return fail(std::move(error));
}

}  // namespace hone
