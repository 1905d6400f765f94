#include "agent/strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "testing/testing.h"

namespace hone {
namespace {

Candidate seed(std::vector<TunableParameter> parameters, std::vector<std::string> constraints = {}) {
  Candidate candidate;
  candidate.name = "seed";
  candidate.parameters = std::move(parameters);
  candidate.constraints = std::move(constraints);
  for (const TunableParameter& each : candidate.parameters) candidate.values[each.name] = each.values.front();
  return candidate;
}

std::vector<std::string> numbers(int n) {
  std::vector<std::string> list;
  for (int i = 0; i < n; ++i) list.push_back(std::to_string(i));
  return list;
}

std::vector<Point> run(Strategy& strategy, std::size_t steps, double (*score)(const Point&)) {
  std::vector<Point> points;
  while (points.size() < steps) {
    const auto point = strategy.propose();
    if (!point) break;
    const double value = score(*point);
    strategy.tell(*point, value > 0 ? std::optional<double>(value) : std::nullopt);
    points.push_back(*point);
  }
  return points;
}

double flat(const Point&) { return 1; }
double fails(const Point&) { return 0; }
// One hill at (20, 20, 20) of 40^3.
double hill(const Point& point) {
  double distance = 0;
  for (const std::size_t i : point.index) distance += std::fabs(static_cast<double>(i) - 20);
  return 100 - distance;
}

class EveryStrategy : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(EveryStrategy, ProposesEachAllowedPointOnceAndThenEnds) {
  const auto& [name, number] = GetParam();
  const auto space = Space::create(
      {seed({{"bx", {"1", "2", "4", "8", "16", "32", "64", "128", "256"}}, {"by", {"1", "2", "4", "8", "16", "32"}}, {"u", {"1", "2", "4"}}},
            {"bx * by == 256", "by % u == 0"})});
  HONE_ASSERT_OK(space);
  for (const auto score : {flat, fails, hill}) {
    auto strategy = make_strategy(name, *space, static_cast<std::uint64_t>(number));
    HONE_ASSERT_OK(strategy);
    const auto points = run(**strategy, 1000, score);
    EXPECT_EQ(points.size(), 15u);
    EXPECT_EQ(std::set<Point>(points.begin(), points.end()).size(), 15u);
    for (const Point& point : points) EXPECT_TRUE(space->valid(point));
    EXPECT_FALSE((*strategy)->propose().has_value());
  }
}

TEST_P(EveryStrategy, IsAFunctionOfItsSeed) {
  const auto& [name, number] = GetParam();
  const auto space = Space::create({seed({{"a", numbers(40)}, {"b", numbers(40)}, {"c", numbers(40)}})});
  HONE_ASSERT_OK(space);
  auto one = make_strategy(name, *space, static_cast<std::uint64_t>(number));
  auto two = make_strategy(name, *space, static_cast<std::uint64_t>(number));
  const auto points = run(**one, 80, hill);
  EXPECT_EQ(points, run(**two, 80, hill));
  // Looking ahead changes nothing.
  auto three = make_strategy(name, *space, static_cast<std::uint64_t>(number));
  std::vector<Point> watched;
  while (watched.size() < 80) {
    const auto ahead = (*three)->upcoming(3);
    ASSERT_EQ(ahead.size(), 3u);
    const auto next = run(**three, 1, hill);
    EXPECT_EQ(next.at(0), ahead[0]);
    watched.push_back(next.at(0));
  }
  EXPECT_EQ(watched, points);
}

INSTANTIATE_TEST_SUITE_P(Names, EveryStrategy,
                         ::testing::Combine(::testing::Values("ils", "random", "grid"), ::testing::Range(1, 6)));

TEST(Strategy, LocalSearchClimbsWhereRandomOrderWouldNot) {
  const auto space = Space::create({seed({{"a", numbers(40)}, {"b", numbers(40)}, {"c", numbers(40)}})});
  HONE_ASSERT_OK(space);
  auto best_of = [&](const std::string& name, std::uint64_t number) {
    auto strategy = make_strategy(name, *space, number);
    double best = 0;
    for (const Point& point : run(**strategy, 150, hill)) best = std::max(best, hill(point));
    return best;
  };
  double ils = 0, random = 0;
  for (std::uint64_t number = 1; number <= 5; ++number) {
    ils += best_of("ils", number);
    random += best_of("random", number);
  }
  EXPECT_GT(ils / 5, random / 5);
  EXPECT_GT(ils / 5, 95);
}

TEST(Strategy, TheSeedsOwnValuesComeFirst) {
  Candidate one = seed({{"a", numbers(9)}}), two = seed({{"b", numbers(9)}});
  one.values["a"] = "5";
  two.values["b"] = "7";
  const auto space = Space::create({one, two});
  HONE_ASSERT_OK(space);
  auto strategy = make_strategy("ils", *space, 3);
  const auto points = run(**strategy, 2, flat);
  EXPECT_EQ(points[0], (Point{0, {5}}));
  EXPECT_EQ(points[1], (Point{1, {7}}));
}

TEST(Strategy, UnknownNamesSuggestTheNearest) {
  const auto space = Space::create({seed({})});
  const auto strategy = make_strategy("randm", *space, 1);
  HONE_EXPECT_ERROR(strategy, usage);
  EXPECT_NE(strategy.error().hint.find("random"), std::string::npos);
}

}  // namespace
}  // namespace hone
