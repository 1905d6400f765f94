#include "agent/space.h"

#include <gtest/gtest.h>

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

// 162 points, 15 allowed.
Candidate sparse() {
  return seed({{"bx", {"1", "2", "4", "8", "16", "32", "64", "128", "256"}}, {"by", {"1", "2", "4", "8", "16", "32"}}, {"u", {"1", "2", "4"}}},
              {"bx * by == 256", "by % u == 0"});
}

std::vector<Point> walk(const Space& space) {
  std::vector<Point> points;
  for (auto point = space.first(); point; point = space.next(*point)) points.push_back(*point);
  return points;
}

TEST(Space, WalkFindsExactlyTheAllowedPoints) {
  const auto space = Space::create({sparse()});
  HONE_ASSERT_OK(space);
  EXPECT_EQ(space->raw_size(), 162);
  const auto points = walk(*space);
  EXPECT_EQ(points.size(), 15u);
  EXPECT_EQ(std::set<Point>(points.begin(), points.end()).size(), 15u);
  for (const Point& point : points) {
    Parameters values = space->values(point);
    EXPECT_EQ(std::stoi(values["bx"]) * std::stoi(values["by"]), 256);
    EXPECT_EQ(std::stoi(values["by"]) % std::stoi(values["u"]), 0);
  }
  EXPECT_EQ(space->all(), points);
  EXPECT_FALSE(space->defaults(0).has_value());   // 1 * 1 != 256
}

TEST(Space, WalkEqualsBruteForce) {
  const Candidate candidate = seed({{"a", {"0", "1", "2", "3"}}, {"b", {"5", "2", "9"}}, {"c", {"1", "0"}}, {"d", {"x", "y"}}},
                                   {"a + c < 4", "b > a", "c == 0 || b % 2 == 1"});
  const auto space = Space::create({candidate});
  HONE_ASSERT_OK(space);
  std::vector<Point> expected;
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t c = 0; c < 2; ++c)
        for (std::size_t d = 0; d < 2; ++d)
          if (const Point point{0, {a, b, c, d}}; space->valid(point)) expected.push_back(point);
  EXPECT_FALSE(expected.empty());
  EXPECT_LT(expected.size(), 48u);
  EXPECT_EQ(walk(*space), expected);
}

TEST(Space, UnionOfSeeds) {
  const auto space = Space::create({seed({{"a", {"1", "2"}}}), seed({}), sparse()});
  HONE_ASSERT_OK(space);
  EXPECT_EQ(walk(*space).size(), 2u + 1u + 15u);
}

TEST(Space, NeighboursDifferInOneParameter) {
  const auto space = Space::create({seed({{"a", {"1", "2", "3"}}, {"b", {"1", "2", "3"}}}, {"a + b < 6"})});
  HONE_ASSERT_OK(space);
  const auto near = space->neighbours({0, {1, 1}});
  EXPECT_EQ(near.size(), 4u);
  const auto corner = space->neighbours({0, {2, 1}});
  ASSERT_EQ(corner.size(), 3u);   // (2,2) is refused
  EXPECT_EQ(corner.back(), (Point{0, {0, 1}}));   // two steps away comes last
}

TEST(Space, AConstraintWithoutAValueDoesNotHold) {
  const auto space = Space::create({seed({{"a", {"0", "1"}}}, {"4 % a == 0"})});
  HONE_ASSERT_OK(space);
  EXPECT_EQ(walk(*space), (std::vector<Point>{{0, {1}}}));
}

TEST(Space, RefusesBadConstraints) {
  HONE_EXPECT_ERROR(Space::create({seed({{"a", {"1"}}}, {"b == 1"})}), contract);
  HONE_EXPECT_ERROR(Space::create({seed({{"a", {"x"}}}, {"a == 1"})}), contract);
  HONE_EXPECT_ERROR(Space::create({seed({{"a", {"1"}}}, {"a =="})}), contract);
  HONE_EXPECT_ERROR(Space::create({}), contract);
}

TEST(Space, HugeSpacesAreWalkedLazily) {
  std::vector<TunableParameter> parameters;
  std::vector<std::string> values;
  for (int i = 0; i < 100; ++i) values.push_back(std::to_string(i));
  for (int i = 0; i < 20; ++i) parameters.push_back({fmt::format("p{}", i), values});
  const auto space = Space::create({seed(parameters, {"p0 == 50", "p19 == p18 + 1", "p1 > 97"})});
  HONE_ASSERT_OK(space);
  EXPECT_GT(space->raw_size(), 1e39);
  EXPECT_FALSE(space->all().has_value());
  const auto first = space->first();
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(space->valid(*first));
  Random random(1);
  std::set<Point> drawn;
  for (int i = 0; i < 50; ++i) {
    const auto point = space->random(random);
    ASSERT_TRUE(point.has_value());
    EXPECT_TRUE(space->valid(*point));
    drawn.insert(*point);
  }
  EXPECT_GT(drawn.size(), 40u);
}

TEST(Space, ConstraintsThatNothingSatisfiesGiveAnEmptySpace) {
  const auto space = Space::create({seed({{"a", {"1", "2"}}, {"b", {"1", "2"}}}, {"a > 5"})});
  HONE_ASSERT_OK(space);
  Random random(1);
  EXPECT_FALSE(space->first().has_value());
  EXPECT_FALSE(space->random(random).has_value());
  EXPECT_TRUE(space->all()->empty());
}

}  // namespace
}  // namespace hone
