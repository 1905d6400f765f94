#include "flow/limits.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "testing/testing.h"

namespace hone {
namespace {

LedgerRow row(std::int64_t seq, const std::string& kind, nlohmann::json data, double elapsed_s = 0) { return {seq, "", kind, elapsed_s, std::move(data)}; }

LedgerRow started(std::int64_t seq, int turn, const std::string& role) {
  return row(seq, "turn_started", {{"turn", turn}, {"attempt", 1}, {"role", role}, {"agent", "x"}, {"steers", nlohmann::json::array()}});
}
LedgerRow ended(std::int64_t seq, int turn, const std::string& role, bool counted) {
  return row(seq, "turn_ended", {{"turn", turn}, {"attempt", 1}, {"role", role}, {"end", "finished"}, {"cause", "result"}, {"reason", ""}, {"counted", counted}, {"failed", false}});
}

TEST(NextTurn, FirstThenTheOtherThenTheSameAgainAfterACut) {
  const std::vector<std::string> roles = {"first_chaser", "second_chaser"};
  std::vector<LedgerRow> rows;
  EXPECT_EQ(next_turn(turns_of(rows), roles).agent, 0u);
  rows.push_back(started(1, 1, roles[0]));
  EXPECT_TRUE(turns_of(rows).open());
  EXPECT_EQ(next_turn(turns_of(rows), roles).agent, 0u);   // killed in it
  rows.push_back(ended(2, 1, roles[0], true));
  EXPECT_EQ(next_turn(turns_of(rows), roles).agent, 1u);
  EXPECT_EQ(next_turn(turns_of(rows), roles).turn, 2);
  rows.push_back(started(3, 2, roles[1]));
  rows.push_back(ended(4, 2, roles[1], false));
  const NextTurn again = next_turn(turns_of(rows), roles);
  EXPECT_EQ(again.agent, 1u);
  EXPECT_EQ(again.turn, 2);
  EXPECT_EQ(again.attempt, 2);
}

TEST(Steers, AreGivenOnceAndAgainWhenTheTurnWasCut) {
  std::vector<LedgerRow> rows = {row(1, "steer", {{"text", "use tiles"}, {"by", "person"}})};
  EXPECT_EQ(turns_of(rows).waiting_steers().size(), 1u);
  LedgerRow start = started(2, 1, "agent");
  start.data["steers"] = {1};
  rows.push_back(start);
  EXPECT_TRUE(turns_of(rows).waiting_steers().empty());
  rows.push_back(ended(3, 1, "agent", false));
  EXPECT_EQ(turns_of(rows).waiting_steers().size(), 1u);
  rows.back().data["counted"] = true;
  EXPECT_TRUE(turns_of(rows).waiting_steers().empty());
}

TEST(Turns, DamagedRowsAreNoTurns) {
  std::vector<LedgerRow> rows = {row(1, "turn_ended", {{"turn", 1}}), row(2, "turn_started", {{"turn", "x"}, {"steers", 3}}),
                                 row(3, "turn_ended", {{"usage", "y"}, {"counted", 1}})};
  const Turns turns = turns_of(rows);
  ASSERT_EQ(turns.all.size(), 1u);
  EXPECT_FALSE(turns.all[0].counted);
  EXPECT_FALSE(turns.all[0].spent.tokens().has_value());
}

}  // namespace
}  // namespace hone
