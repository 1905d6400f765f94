// What a turn begins with: the assignment, where the run stands, what was tried, what a person says. Together with the
// worktree it is all that one turn hands to the next.
#ifndef HONE_FLOW_BRIEF_H
#define HONE_FLOW_BRIEF_H

#include <optional>
#include <string>
#include <vector>

#include "run/frontier.h"
#include "run/progress.h"
#include "run/run.h"

namespace hone {

constexpr std::size_t kLongestBrief = 16000;   // bytes

struct BriefFacts {
  const Run& run;
  const RunProgress& progress;
  const std::vector<FrontierEntry>& frontier;
  const Budget& budget;
  std::optional<double> target;
  double elapsed_s = 0;
  int turn = 1, attempt = 1;
  std::string role;
  std::vector<std::string> roles;              // all of the flow
  std::vector<Said> steers;                    // for this turn
};
// Markdown, at most kLongestBrief bytes, valid UTF-8.
std::string brief_of(const BriefFacts& facts);

// "evaluations 3 of 10, duration 2m of 1h, cost 0.42 of 5 (unknown for 2 turns)".
std::string budget_text(const Budget& budget, const RunProgress& progress, double elapsed_s);

}  // namespace hone

#endif
