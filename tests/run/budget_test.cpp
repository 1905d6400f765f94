#include "run/budget.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "testing/testing.h"

namespace hone {
namespace {

TEST(Budget, ReadsEveryKey) {
  const auto budget = parse_budget("evaluations=60,time=2m,cost=1.5,turns=3,tokens=100000");
  HONE_ASSERT_OK(budget);
  EXPECT_EQ(budget->evaluations(), 60);
  EXPECT_EQ(budget->seconds(), 120);
  EXPECT_EQ(budget->limit("cost"), 1.5);
  EXPECT_EQ(parse_budget("duration=90")->seconds(), 90);
  EXPECT_TRUE(parse_budget("")->empty());
}

TEST(Budget, RefusesWhatIsNoAmount) {
  for (const char* text : {"evaluations=-1", "evaluations=1.5", "evaluations=many", "evaluations=", "time=soon", "evaluation=5",
                           "evaluations=1,evaluations=2", "time=5,duration=6", "cost=nan", "cost=1e99", "evaluations"})
    HONE_EXPECT_ERROR(parse_budget(text), usage);
}

TEST(Budget, RaisingOneLimitKeepsTheOthers) {
  const Budget raised = parse_budget("evaluations=10,cost=1")->with(*parse_budget("evaluations=15"));
  EXPECT_EQ(raised.evaluations(), 15);
  EXPECT_EQ(raised.limit("cost"), 1);
  EXPECT_EQ(nlohmann::json(raised).get<Budget>().limits, raised.limits);
}

}  // namespace
}  // namespace hone
