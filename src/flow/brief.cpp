#include "flow/brief.h"

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr std::size_t kLongestPrompt = 9500, kLongestSteers = 1900, kLongestSection = 1100;
constexpr std::size_t kLastExperiments = 8;
constexpr std::size_t kFailedIdeas = 10;
constexpr std::size_t kFindings = 8;

// At most `limit` bytes, cut between characters.
std::string cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit - std::min<std::size_t>(limit, 4);
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return text.substr(0, end) + " ...";
}

// What agents and compilers wrote, as one line of Markdown.
std::string line(std::string text, std::size_t limit) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  if (!is_utf8(text))
    for (char& c : text)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return cut(std::move(text), limit);
}

// Lines under a title as far as there is room; empty when there are none.
std::string section(const std::string& title, const std::vector<std::string>& lines, std::size_t limit = kLongestSection) {
  if (lines.empty()) return {};
  std::string text = "\n## " + title + "\n\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (text.size() + lines[i].size() > limit) return text + fmt::format("- {} more: `hone report`\n", lines.size() - i);
    text += lines[i];
  }
  return text;
}

std::vector<const Recorded*> all_of(const RunProgress& progress) {
  std::vector<const Recorded*> all;
  for (const auto* list : {&progress.evaluations, &progress.remeasures, &progress.benches})
    for (const Recorded& each : *list) all.push_back(&each);
  std::sort(all.begin(), all.end(), [](const Recorded* a, const Recorded* b) { return a->row < b->row; });
  return all;
}

std::string idea_of(const Experiment& experiment) {
  std::string text = line(experiment.candidate, 60);
  if (!experiment.params.empty()) text += " (" + line(params_text(experiment.params), 80) + ")";
  if (!experiment.idea.empty() && !experiment.idea.starts_with("tuner ")) text += ": " + line(experiment.idea, 110);
  return text;
}

std::string outcome_of(const Experiment& experiment) {
  if (experiment.scored)
    return fmt::format("{:.3f}x{}", *experiment.geomean, experiment.decision.empty() ? "" : " " + experiment.decision);
  std::string text = experiment.total > 0 ? fmt::format("{}/{} passed", experiment.passed, experiment.total) : "not judged";
  if (experiment.error) text += fmt::format(", {}: {}", name_of(experiment.error->kind), line(experiment.error->message, 110));
  return text;
}

std::string standing(const BriefFacts& facts) {
  std::string text = "## Where the run stands\n\n";
  if (facts.frontier.empty()) {
    text += "Nothing is retained yet.";
    if (const Recorded* best = facts.progress.best())
      text += fmt::format(" The fastest that passed: {} {:.3f}x (row {}).", line(best->experiment.candidate, 60), *best->experiment.geomean, best->row);
    return text + "\n";
  }
  const FrontierEntry& front = facts.frontier.front();
  text += fmt::format("Best: `{}` {:.3f}x", front.name, front.geomean);
  if (front.geomean_ci) text += fmt::format(" [{:.3f}, {:.3f}]", front.geomean_ci->low, front.geomean_ci->high);
  text += fmt::format(" over the baseline, row {}, in `candidates/{}/frontier/{}`. It is what a new candidate must beat.\n\n| workload | ratio |\n|---|---|\n",
                      front.row, facts.run.manifest.task, front.name);
  std::size_t shown = 0;
  for (const auto& [id, ratio] : front.ratios) {
    if (++shown > 24) {
      text += fmt::format("| {} more | |\n", front.ratios.size() - 24);
      break;
    }
    text += fmt::format("| {} | {:.3f}x{} |\n", line(id, 60), ratio, ratio < 1 ? " (slower than the baseline)" : "");
  }
  if (facts.frontier.size() > 1) {
    text += "\nAlso retained:\n";
    for (std::size_t i = 1; i < std::min<std::size_t>(facts.frontier.size(), 6); ++i)
      text += fmt::format("- `{}` {:.3f}x, family {}\n", facts.frontier[i].name, facts.frontier[i].geomean, line(facts.frontier[i].family, 60));
  }
  return text;
}

// Families besides the best's, with the best each of them has reached.
std::string alternatives(const BriefFacts& facts) {
  struct Family {
    double best = 0;
    int tried = 0;
    std::int64_t row = 0;
  };
  std::map<std::string, Family> families;
  for (const Recorded* each : all_of(facts.progress)) {
    Family& family = families[each->experiment.family];
    ++family.tried;
    if (each->experiment.geomean && *each->experiment.geomean > family.best) family.best = *each->experiment.geomean, family.row = each->row;
  }
  if (!facts.frontier.empty()) families.erase(facts.frontier.front().family);
  std::vector<std::pair<std::string, Family>> open;
  for (const auto& each : families)
    if (each.second.best > 0 && !each.first.empty()) open.push_back(each);
  if (open.empty()) return {};
  std::sort(open.begin(), open.end(), [](const auto& a, const auto& b) { return a.second.best > b.second.best; });
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min<std::size_t>(open.size(), 6); ++i)
    lines.push_back(fmt::format("- {}: best {:.3f}x in {} experiments (row {})\n", line(open[i].first, 60), open[i].second.best, open[i].second.tried, open[i].second.row));
  return section("Other families that passed", lines);
}

std::string history(const BriefFacts& facts) {
  const auto all = all_of(facts.progress);
  std::vector<std::string> last, failed, findings, turns;
  for (std::size_t i = all.size() - std::min(all.size(), kLastExperiments); i < all.size(); ++i)
    last.push_back(fmt::format("- row {}: {}: {}\n", all[i]->row, idea_of(all[i]->experiment), outcome_of(all[i]->experiment)));
  for (auto each = all.rbegin(); each != all.rend() && failed.size() < kFailedIdeas; ++each)
    if (const Experiment& experiment = (*each)->experiment; !experiment.scored || experiment.decision == "REJECT")
      failed.push_back(fmt::format("- {}: {} (row {})\n", idea_of(experiment), outcome_of(experiment), (*each)->row));
  const auto& found = facts.progress.turns.findings;
  for (auto each = found.rbegin(); each != found.rend() && findings.size() < kFindings; ++each)
    findings.push_back(fmt::format("- {} (row {}, {})\n", line(each->text, 300), each->row, line(each->by, 40)));
  const auto& past = facts.progress.turns.all;
  for (std::size_t i = past.size() - std::min<std::size_t>(past.size(), 4); i < past.size(); ++i)
    if (past[i].ended_row != 0)
      turns.push_back(fmt::format("- turn {} ({}): {}, {} experiments{} (row {})\n", past[i].turn, past[i].role, line(past[i].cause, 60), past[i].experiments,
                                  past[i].improved ? ", something faster was retained" : "", past[i].ended_row));
  return section("Last experiments", last) + section("What did not work, newest first", failed) + alternatives(facts) + section("Findings, newest first", findings) +
         section("Last turns", turns);
}

}  // namespace

std::string budget_text(const Budget& budget, const RunProgress& progress, double elapsed_s) {
  const auto part = [&](const char* key, const std::string& used, const char* name) {
    const auto limit = budget.limit(key);
    if (!limit) return fmt::format("{} {}", name, used);
    return fmt::format("{} {} of {}", name, used, std::string_view(key) == "time" ? format_duration(*limit) : fmt::format("{}", *limit));
  };
  const Turns& turns = progress.turns;
  std::string text = part("evaluations", std::to_string(progress.evaluations.size()), "evaluations");
  text += ", " + part("time", format_duration(elapsed_s), "duration");
  text += ", " + part("turns", std::to_string(turns.counted()), "turns");
  const auto unknown = [](int count) { return count > 0 ? fmt::format(" (unknown for {} turn{})", count, count == 1 ? "" : "s") : std::string(); };
  if (turns.tokens() > 0 || budget.limit("tokens")) text += ", " + part("tokens", std::to_string(turns.tokens()), "tokens") + unknown(turns.unknown_tokens());
  if (turns.cost() > 0 || budget.limit("cost")) text += ", " + part("cost", fmt::format("{:.2f}", turns.cost()), "cost") + unknown(turns.unknown_cost());
  return text;
}

std::string brief_of(const BriefFacts& facts) {
  std::string head = fmt::format("# Turn {} of run {}{}\n\n", facts.turn, facts.run.manifest.name,
                                 facts.roles.size() > 1 ? fmt::format(": you are {}", facts.role) : std::string());
  head += "You begin in a fresh session: what earlier turns knew is in this brief and in the working tree. ";
  if (facts.roles.size() > 1) head += fmt::format("{} agents take turns ({}). ", facts.roles.size(), fmt::join(facts.roles, ", "));
  if (facts.attempt > 1) head += "This turn was begun before and cut off; look at what it left in the working tree. ";
  head += facts.target ? fmt::format("The run ends when Hone itself has measured a retained candidate at {:g}x or faster twice; saying so ends nothing.\n", *facts.target)
                       : std::string("The run ends with its budget; faster is better.\n");
  head += fmt::format("\nSpent: {}.\n", budget_text(facts.budget, facts.progress, facts.elapsed_s));
  if (!facts.steers.empty()) {
    std::vector<std::string> said;
    for (const Said& each : facts.steers) said.push_back(fmt::format("- {} (row {})\n", line(each.text, 1500), each.row));
    head += section("A person says", said, kLongestSteers);
  }
  if (!facts.progress.turns.restored.empty()) {
    const Said& last = facts.progress.turns.restored.back();
    head += fmt::format("\nThe record is Hone's alone: {} was changed by somebody and put back (row {}). Changing it gains nothing.\n", line(last.by, 100), last.row);
  }
  std::string prompt;
  if (const auto text = read_file(facts.run.root / "PROMPT.md", std::size_t{1} << 20)) {
    std::string whole = *text;
    if (!is_utf8(whole)) whole.clear();
    if (!whole.empty() && whole.size() <= kLongestPrompt) prompt = "\n---\n\n" + whole;
    else prompt = fmt::format("\n## The assignment\n\nIt is in `{}`: read it whole before anything else.\n", (facts.run.root / "PROMPT.md").string());
  }
  const std::string rest = standing(facts) + history(facts);
  const std::size_t room = kLongestBrief - std::min(kLongestBrief, head.size() + prompt.size() + 64);
  return cut(head + "\n" + cut(rest, room) + "\n" + prompt, kLongestBrief);
}

}  // namespace hone
