#include "flow/flow.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/strategy.h"
#include "base/text.h"
#include "flow/brief.h"
#include "flow/listener.h"
#include "flow/turn.h"
#include "run/worktree.h"

namespace hone {
namespace {

using nlohmann::json;

class Flow {
 public:
  Flow(const Run& run, Books& books, Desk& desk, Live& live, Trace& trace, const FlowOptions& options)
      : run_(run), books_(books), desk_(desk), live_(live), trace_(trace), options_(options) {
    for (const FlowAgent& each : options.agents) roles_.push_back(each.role);
  }

  Result<json> answer(const json& request, const Caller& caller) {
    const auto text = [&](const char* key) {
      const auto found = request.find(key);
      return found != request.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const auto flag = [&](const char* key) {
      const auto found = request.find(key);
      return found != request.end() && found->is_boolean() && found->get<bool>();
    };
    const std::string wish = text("do");
    if (wish == "bench") return desk_.bench(request, caller);
    if (wish == "frontier_add") return desk_.frontier_add(request, caller);
    if (wish == "frontier_drop") return desk_.frontier_drop(request, caller);
    if (wish == "finding") return desk_.finding(request, caller);
    if (wish == "status") return json{{"live", live_.snapshot(books_.elapsed_s(), desk_.depth())}};
    if (wish != "steer" && wish != "pause" && wish != "stop")
      return fail(make_error(ErrorKind::usage, "the launcher knows no \"{}\"", wish).with_hint("bench, frontier_add, frontier_drop, finding, status, steer, pause, stop"));
    if (caller.of_turn) return fail(make_error(ErrorKind::forbidden, "{} is a person's word, not an agent's", wish));
    if (wish == "steer") {
      if (text("text").empty()) return fail(make_error(ErrorKind::usage, "what is the next turn to be told?"));
      HONE_TRY(const LedgerRow row, books_.append("steer", {{"text", text("text").substr(0, 4000)}, {"by", "person"}}));
      return json{{"row", row.seq}};
    }
    if (wish == "stop") {
      wishes_.stop = true;
      return json::object();
    }
    const bool off = flag("off");
    if (!off && !wishes_.pause) HONE_CHECK(books_.append("paused", json::object()));
    if (off && wishes_.pause) HONE_CHECK(books_.append("unpaused", json::object()));
    wishes_.pause_now = !off && flag("now");
    wishes_.pause = !off;
    return json{{"paused", !off}};
  }

  Result<FlowEnd> work() {
    HONE_CHECK(close_cut_turn());
    for (;;) {
      if (const auto end = wait_while_paused()) return *end;
      HONE_CHECK(books_.mend());
      const RunProgress progress = books_.progress();
      const auto frontier = entries();
      if (const auto end = end_of(progress, frontier, options_.budget, options_.target, options_.breakers, books_.elapsed_s())) return *end;
      if (const auto end = end_of_tuners()) return *end;
      HONE_CHECK(turn(progress, frontier));
    }
  }

 private:
  std::vector<FrontierEntry> entries() {
    const auto held = books_.hold();
    return frontier_of(books_.ledger().rows());
  }

  json row_of(int turn, int attempt, const std::string& role, const std::string& agent) const {
    return {{"turn", turn}, {"attempt", attempt}, {"role", role}, {"agent", agent}};
  }

  // The launcher was killed in a turn: what is known of it is written down, and it will be taken again.
  Result<> close_cut_turn() {
    const Turns turns = books_.progress().turns;
    if (!turns.open()) return {};
    const TurnRecord& last = turns.all.back();
    json row = row_of(last.turn, last.attempt, last.role, last.agent);
    const auto left = left_live(run_, books_.elapsed_s());
    const bool same = left && left->turn == last.turn && left->attempt == last.attempt;
    row.update({{"end", "cut"},
                {"cause", "the launcher was killed"},
                {"reason", "the turn is taken again"},
                {"counted", false},
                {"failed", false},
                {"usage", same ? left->spent : Spent{}},
                {"wall_s", std::max(0.0, books_.elapsed_s() - last.started_s)}});
    HONE_CHECK(books_.append("turn_ended", std::move(row)));
    return {};
  }

  std::optional<FlowEnd> wait_while_paused() {
    bool told = false;
    for (;;) {
      if (options_.cancel != nullptr && options_.cancel->load()) return end_by("cancelled");
      if (wishes_.stop) return end_by("stopped");
      if (!wishes_.pause) break;
      if (!std::exchange(told, true)) {
        books_.stop_clock();
        live_.paused(true);
        say("paused; `hone pause --off` goes on");
        (void)write_file_atomic(live_file(run_), live_.snapshot(books_.elapsed_s(), desk_.depth()).dump(1) + "\n");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    wishes_.pause_now = false;
    if (told) {
      live_.paused(false);
      books_.start_clock();
    }
    return std::nullopt;
  }

  // Tuners that have all tried everything, or have no time left for a measurement that decides.
  std::optional<FlowEnd> end_of_tuners() const {
    std::string reason;
    for (const FlowAgent& each : options_.agents) {
      const auto found = exhausted_.find(each.role);
      if (each.spec || found == exhausted_.end() || found->second.empty()) return std::nullopt;
      if (reason.empty() || found->second != "space exhausted") reason = found->second;
    }
    return end_by(reason);
  }

  Result<> turn(const RunProgress& progress, const std::vector<FrontierEntry>& frontier) {
    const NextTurn next = next_turn(progress.turns, roles_);
    const FlowAgent& agent = options_.agents[next.agent];
    auto steers = progress.turns.waiting_steers();
    std::size_t said = 0, fitting = 0;                 // those that do not fit wait for the next turn
    while (fitting < steers.size() && (fitting == 0 || said + steers[fitting].text.size() < 1600)) said += steers[fitting++].text.size();
    steers.resize(fitting);
    TurnSetup setup{agent, next.turn, next.attempt, {}};
    setup.prompt = brief_of({run_, progress, frontier, options_.budget, options_.target, books_.elapsed_s(), next.turn, next.attempt, agent.role, roles_, steers});
    HONE_CHECK(write_file_atomic(run_.root / "brief.md", setup.prompt));
    json started = row_of(next.turn, next.attempt, agent.role, agent.name);
    json rows = json::array();
    for (const Said& each : steers) rows.push_back(each.row);
    started["steers"] = std::move(rows);
    HONE_CHECK(books_.append("turn_started", std::move(started)));
    say(fmt::format("turn {} ({}): {}; best {}", next.turn, agent.role == "agent" ? agent.name : agent.role + ", " + agent.name,
                    budget_text(options_.budget, progress, books_.elapsed_s()), frontier.empty() ? "none" : fmt::format("{:.3f}x", frontier.front().geomean)));

    auto outcome = run_turn(books_, desk_, live_, trace_, options_, wishes_, setup);
    json ended = row_of(next.turn, next.attempt, agent.role, agent.name);
    if (!outcome) {
      ended.update({{"end", "failed"}, {"cause", "not started"}, {"reason", outcome.error().message}, {"counted", false}, {"failed", true}, {"usage", Spent{}}, {"wall_s", 0}});
      (void)books_.append("turn_ended", std::move(ended));
      return fail(std::move(outcome).error());
    }
    exhausted_[agent.role] = outcome->exhausted;
    ended.update({{"end", outcome->end},
                  {"cause", outcome->cause},
                  {"reason", outcome->reason.substr(0, 500)},
                  {"counted", outcome->counted},
                  {"failed", outcome->failed},
                  {"usage", outcome->spent},
                  {"wall_s", outcome->wall_s},
                  {"left_behind", outcome->left_behind}});
    if (!outcome->session.empty()) ended["session"] = outcome->session.substr(0, 200);
    HONE_CHECK(books_.append("turn_ended", std::move(ended)));
    say(fmt::format("turn {} ended: {}{}", next.turn, outcome->cause, outcome->reason.empty() ? "" : " (" + outcome->reason + ")"));
    return {};
  }

  void say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  const Run& run_;
  Books& books_;
  Desk& desk_;
  Live& live_;
  Trace& trace_;
  const FlowOptions& options_;
  Wishes wishes_;
  std::vector<std::string> roles_;
  std::map<std::string, std::string> exhausted_;   // by role, of its last turn
};

std::vector<std::string> roles_of(const std::string& flow) {
  return flow == "goal" ? std::vector<std::string>{"agent"} : std::vector<std::string>{"first_chaser", "second_chaser"};
}

Result<FlowAgent> flow_agent(const std::string& role, const std::string& text) {
  FlowAgent agent{role, text, text, std::nullopt, {}};
  if (text != "tuner" && !text.starts_with("tuner:")) {
    HONE_TRY(agent.spec, parse_agent_spec(text));
    agent.name = agent.spec->name;
    return agent;
  }
  const auto& names = strategy_names();
  agent.strategy = text == "tuner" ? names.front() : text.substr(6);
  if (std::find(names.begin(), names.end(), agent.strategy) == names.end())
    return fail(make_error(ErrorKind::usage, "the tuner has no strategy \"{}\"", agent.strategy).with_hint("strategies: ils, random, grid"));
  agent.name = "tuner:" + agent.strategy;
  return agent;
}

}  // namespace

Result<std::vector<FlowAgent>> parse_flow_agents(const std::string& flow, const std::vector<std::string>& agents) {
  const std::vector<std::string> roles = roles_of(flow);
  std::map<std::string, std::string> given;
  std::vector<std::string> bare;
  for (const std::string& each : agents) {
    const std::size_t equals = each.find('=');
    const std::string word = each.substr(0, equals);
    const bool named = equals != std::string::npos && !word.empty() && word.find_first_of(":/. ") == std::string::npos;
    if (!named) {
      bare.push_back(each);
      continue;
    }
    if (std::find(roles.begin(), roles.end(), word) == roles.end())
      return fail(make_error(ErrorKind::usage, "the flow {} has no role {}", flow, word).with_hint(fmt::format("its roles: {}", fmt::join(roles, ", "))));
    if (!given.emplace(word, each.substr(equals + 1)).second) return fail(ErrorKind::usage, "the role {} is given twice", word);
  }
  for (const std::string& role : roles)
    if (given.count(role) == 0 && !bare.empty()) {
      given[role] = bare.front();
      bare.erase(bare.begin());
    }
  if (given.size() != roles.size() || !bare.empty())
    return fail(make_error(ErrorKind::usage, "the flow {} takes {} agent{}, not {}", flow, roles.size(), roles.size() == 1 ? "" : "s", agents.size())
                    .with_hint(flow == "goal" ? "--agent claude/MODEL:EFFORT, codex/MODEL:EFFORT, command:PATH or acp:PATH"
                                              : "--agent first_chaser=SPEC --agent second_chaser=SPEC"));
  std::vector<FlowAgent> parsed;
  for (const std::string& role : roles) {
    HONE_TRY(FlowAgent agent, flow_agent(role, given[role]));
    parsed.push_back(std::move(agent));
  }
  return parsed;
}

Result<std::vector<fs::path>> hidden_from_agents(const Run& run, const Task& task) {
  HONE_TRY(std::vector<fs::path> hidden, banned_files(task));
  std::error_code code;
  for (const fs::path& folder : {run.root.parent_path(), data_dir() / "runs"})
    for (const fs::directory_entry& each : fs::directory_iterator(folder, code)) {
      const fs::path sibling = fs::weakly_canonical(each.path(), code);
      if (sibling != run.root && fs::is_regular_file(sibling / "manifest.json", code)) hidden.push_back(sibling);
    }
  std::sort(hidden.begin(), hidden.end());
  hidden.erase(std::unique(hidden.begin(), hidden.end()), hidden.end());
  return hidden;
}

Result<FlowEnd> run_flow(const Run& run, Ledger ledger, const FlowOptions& options, Evaluator& evaluator) {
  const RunProgress before = progress_of(ledger.rows());
  const auto left = left_live(run, before.elapsed_s);
  const double before_s = before.turns.open() && left ? std::max(before.elapsed_s, left->elapsed_s) : before.elapsed_s;
  HONE_TRY(const std::unique_ptr<Books> books, Books::open(run, std::move(ledger), options.shown, before_s));
  std::vector<std::pair<std::string, std::string>> names;
  json agents = json::array();
  std::string text;
  for (const FlowAgent& each : options.agents) {
    names.emplace_back(each.role, each.name);
    agents.push_back({{"role", each.role}, {"spec", each.text}, {"name", each.name}});
    text += (text.empty() ? "" : ", ") + (options.agents.size() > 1 ? each.role + "=" : std::string()) + each.name;
  }
  HONE_CHECK(books->append("run_started", {{"agent", text},
                                           {"flow", options.flow},
                                           {"agents", agents},
                                           {"seed", options.seed},
                                           {"budget", options.budget},
                                           {"target", options.target ? json(*options.target) : json()},
                                           {"breakers", {{"plateau", options.breakers.plateau}, {"no_progress", options.breakers.no_progress}, {"failures", options.breakers.failures}}},
                                           {"resumed", before.started.has_value()}}));
  HONE_TRY(Trace trace, Trace::open(run.root / "trace", options.trace));
  Live live(names);
  Desk desk(*books, evaluator, {options.target, options.budget, options.workloads});
  Flow flow(run, *books, desk, live, trace, options);
  Result<FlowEnd> end = fail(ErrorKind::internal, "no end");
  {
    HONE_TRY(const auto listener, Listener::start(run, [&](const json& request, const Caller& caller) { return flow.answer(request, caller); }));
    end = flow.work();
    desk.halt(true);
  }
  const auto evaluations = books->progress().evaluations.size();
  std::error_code code;
  fs::remove(live_file(run), code);
  if (!end) {
    // Best effort: the reason may be that nothing can be written.
    (void)books->append("run_ended", {{"reason", "error"}, {"error", end.error()}, {"evaluations", evaluations}});
    return end;
  }
  HONE_CHECK(books->append("run_ended", {{"reason", end->reason}, {"exit", end->exit}, {"evaluations", evaluations}, {"why", end->why}}));
  return end;
}

}  // namespace hone
