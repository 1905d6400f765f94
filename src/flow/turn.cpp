#include "flow/turn.h"

#include <algorithm>
#include <cstdlib>

#include "agent/tuner.h"
#include "base/clock.h"
#include "base/text.h"
#include "flow/brief.h"
#include "run/launcher.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr double kEvery = 0.05, kLookEvery = 0.25, kWriteEvery = 1;
constexpr std::size_t kLogs = 16;        // raw outputs kept
constexpr double kConfirmShare = 0.08;   // a tuner's turn confirms its winner, and there are many turns

// Ends that are no end of the turn's work: the same agent takes it again.
bool taken_again(const std::string& cause) { return cause == "cancelled" || cause == "stopped" || cause == "paused"; }

std::string cause_of(TurnEnd end) {
  switch (end) {
    case TurnEnd::finished: return "result";
    case TurnEnd::failed: return "failed";
    case TurnEnd::silent: return "silence";
    case TurnEnd::overtime: return "turn limit";
    case TurnEnd::flooded: return "output limit";
    case TurnEnd::cancelled: return "cancelled";
  }
  return "";
}

fs::path log_of(const Run& run, const TurnSetup& setup) { return run.root / "logs" / fmt::format("turn-{:04}-{}.log", setup.turn, setup.attempt); }

void prune_logs(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (const fs::directory_entry& each : fs::directory_iterator(folder, code)) files.push_back(each.path());
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + kLogs < files.size(); ++i) fs::remove(files[i], code);
}

// What the program sees besides the driver's own list: the way to this very `hone`, and that it belongs to a turn.
std::vector<std::string> environment_of(const FlowOptions& options, const TurnSetup& setup) {
  std::vector<std::string> env = options.env;
  env.push_back(fmt::format("{}={}", kTurnVariable, setup.turn));
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code);
  const char* path = std::getenv("PATH");
  env.push_back(fmt::format("PATH={}:{}", self.parent_path().string(), path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin"));
  if (const char* share = std::getenv("HONE_SHARE"); share != nullptr && *share != '\0') env.push_back(fmt::format("HONE_SHARE={}", share));
  return env;
}

// Never this process's own: a program that reads to its end would wait for ever.
std::string stdin_of(const AgentSpec& spec) {
  if (spec.kind == "acp") return "a pipe, open for the protocol";
  return spec.program.find("{prompt}") != std::string::npos ? "empty; the prompt is in a file" : "the prompt, then end of file";
}

json event_json(const AgentEvent& event) {
  json out = {{"kind", name_of(event.kind)}, {"at_s", event.at_s}};
  if (!event.text.empty()) out["text"] = event.text;
  if (!event.tool.empty()) out["tool"] = event.tool;
  if (event.kind == EventKind::usage) out["usage"] = spent_of(event.usage);
  return out;
}

Result<TurnOutcome> program_turn(Books& books, Desk& desk, Live& live, const FlowOptions& options, const TurnSetup& setup, const Watchman& watchman,
                                 const std::function<void(json)>& tell) {
  HONE_TRY(const std::unique_ptr<Driver> driver, options.make_driver(*setup.agent.spec));
  const Run& run = books.run();
  HONE_CHECK(make_dirs(run.root / "logs"));
  Turn turn;
  turn.env = environment_of(options, setup);
  // The temporary folder can be written, so a run that lies in it is given another.
  std::error_code code;
  const fs::path temporary = fs::weakly_canonical(fs::temp_directory_path(code), code);
  if (options.confined && run.root.string().starts_with(temporary.string() + "/")) {
    HONE_CHECK(make_dirs(run.root / "tmp"));
    turn.env.push_back("TMPDIR=" + (run.root / "tmp").string());
  }
  turn.prompt = setup.prompt;
  turn.cwd = run.worktree();
  turn.config = run.root / "agents";
  turn.log = log_of(run, setup);
  turn.confined = options.confined;
  turn.writable = {run.worktree()};
  turn.hidden = options.hidden;
  turn.limits = options.limits;
  turn.busy = [&] { return desk.depth() > 0; };
  turn.on_event = [&](const AgentEvent& event) {
    live.event(event);
    tell(event_json(event));
  };
  turn.cancel = &watchman.cut();
  HONE_TRY(const TurnResult result, driver->run(turn));
  prune_logs(run.root / "logs");
  TurnOutcome outcome;
  outcome.end = name_of(result.end);
  outcome.cause = cause_of(result.end);
  outcome.reason = result.reason;
  outcome.failed = result.end == TurnEnd::failed || result.end == TurnEnd::silent || result.end == TurnEnd::flooded;
  outcome.spent = spent_of(result.usage);
  outcome.wall_s = result.wall_s;
  outcome.left_behind = result.left_behind;
  outcome.session = result.session;
  const std::string cause = watchman.cause();
  if (cause.empty() && result.end == TurnEnd::cancelled) {
    outcome.cause = "failed";
    outcome.failed = true;
  }
  if (!cause.empty()) {
    // Whatever the program says of its end, it was the launcher that ended it.
    outcome.end = name_of(TurnEnd::cancelled);
    outcome.cause = cause;
    outcome.failed = false;
    if (outcome.spent.tokens() == 0 && outcome.spent.cost_usd.value_or(0) == 0) outcome.spent = {};
  }
  return outcome;
}

Result<TurnOutcome> tuner_turn(Books& books, Desk& desk, Live& live, const FlowOptions& options, const TurnSetup& setup, const Watchman& watchman,
                               const std::function<void(json)>& tell) {
  const double start = now_s();
  TunerOptions tuner;
  HONE_TRY(tuner.seeds, seed_candidates(books.run()));
  tuner.strategy = setup.agent.strategy;
  const auto place = std::find_if(options.agents.begin(), options.agents.end(), [&](const FlowAgent& each) { return each.role == setup.agent.role; });
  tuner.seed = options.seed + static_cast<std::uint64_t>(place - options.agents.begin());
  tuner.target = options.target;
  tuner.cancel = &watchman.cut();
  tuner.by = setup.agent.role;
  tuner.turn = setup.turn;
  tuner.confirm_share = kConfirmShare;
  tuner.contenders = 1;
  tuner.progress = [&](const std::string& line) {
    const AgentEvent event{EventKind::text, now_s() - start, line, {}, {}};
    live.event(event);
    tell(event_json(event));
  };
  auto held = books.hold();
  const RunProgress before = progress_of(books.ledger().rows());
  // The slice of a turn that was cut is finished, not begun anew.
  const auto done = std::count_if(before.evaluations.begin(), before.evaluations.end(),
                                  [&](const Recorded& each) { return each.turn == setup.turn && each.by == setup.agent.role; });
  tuner.budget = options.budget;
  const auto end_of_slice = static_cast<double>(before.evaluations.size()) + std::max(0.0, static_cast<double>(options.slice) - static_cast<double>(done));
  auto& limit = tuner.budget.limits["evaluations"];
  limit = limit > 0 ? std::min(limit, end_of_slice) : end_of_slice;
  const auto evaluator = desk.in_line(held);
  HONE_TRY(const TunerOutcome tuned, tune(books.run(), books.ledger(), tuner, *evaluator));
  const RunProgress after = progress_of(books.ledger().rows());
  held.unlock();

  TurnOutcome outcome;
  outcome.end = name_of(TurnEnd::finished);
  outcome.cause = "result";
  outcome.reason = fmt::format("{} evaluations, {}{}", after.evaluations.size() - before.evaluations.size(),
                               tuned.end == RunEnd::budget_evaluations ? "its slice is done" : name_of(tuned.end), tuned.note.empty() ? "" : "; " + tuned.note);
  outcome.spent = {0, 0, 0, 0.0};        // it needs no model
  outcome.wall_s = now_s() - start;
  if (const std::string cause = watchman.cause(); !cause.empty() && tuned.end == RunEnd::cancelled) {
    outcome.end = name_of(TurnEnd::cancelled);
    outcome.cause = cause;
  }
  const bool nothing = after.evaluations.size() == before.evaluations.size() && after.remeasures.size() == before.remeasures.size();
  if (nothing && tuned.end == RunEnd::space_exhausted) outcome.exhausted = "space exhausted";
  if (nothing && tuned.end == RunEnd::budget_time) outcome.exhausted = "budget: duration";
  return outcome;
}

}  // namespace

Watchman::Watchman(Books& books, Desk& desk, Live& live, const FlowOptions& options, const Wishes& wishes)
    : books_(books), desk_(desk), live_(live), options_(options), wishes_(wishes), thread_([this] { watch(); }) {}

Watchman::~Watchman() {
  over_ = true;
  thread_.join();
}

std::string Watchman::cause() const {
  const std::lock_guard held(mutex_);
  return cause_;
}

void Watchman::cut(const std::string& cause, bool measurement_too) {
  {
    const std::lock_guard held(mutex_);
    if (cause_.empty()) cause_ = cause;
  }
  cut_ = true;                           // before the measurement: whoever sees that end knows why
  if (measurement_too) desk_.halt(true);
}

void Watchman::watch() {
  double written_s = 0;
  while (!over_) {
    look();
    if (now_s() - written_s >= kWriteEvery) {
      written_s = now_s();
      // Best effort: the ledger is what counts.
      (void)write_file_atomic(live_file(books_.run()), live_.snapshot(books_.elapsed_s(), desk_.depth()).dump(1) + "\n");
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kEvery));
  }
}

void Watchman::look() {
  if (options_.cancel != nullptr && options_.cancel->load()) return cut("cancelled", true);
  if (wishes_.stop) return cut("stopped", true);
  if (wishes_.pause_now) return cut("paused", true);
  if (const auto limit = options_.budget.seconds(); limit && books_.elapsed_s() >= *limit) return cut("budget: duration", true);
  if (cut_ || now_s() - looked_s_ < kLookEvery) return;
  looked_s_ = now_s();
  const Spent live = live_.spent();
  for (const char* key : {"tokens", "cost"})
    if (options_.budget.limit(key) && (live.tokens() || live.cost_usd)) {
      const auto spent = spent_budget(options_.budget, books_.progress(), 0, live);
      if (spent && *spent == std::string("budget: ") + key) return cut(*spent, true);
    }
  // It may still say goodbye, and report what it used.
  if (closing_.empty()) {
    const auto closed = desk_.closed();
    if (!closed || desk_.depth() > 0) return;
    closing_ = *closed;
    closing_s_ = now_s();
  }
  if (now_s() - closing_s_ >= options_.grace_s) cut(closing_, false);
}

Result<TurnOutcome> run_turn(Books& books, Desk& desk, Live& live, Trace& trace, const FlowOptions& options, const Wishes& wishes, const TurnSetup& setup) {
  const auto tell = [&](json event) {
    event["elapsed_s"] = books.elapsed_s();
    event["turn"] = setup.turn;
    event["attempt"] = setup.attempt;
    event["role"] = setup.agent.role;
    event["agent"] = setup.agent.name;
    trace.write(std::move(event));
  };
  desk.halt(false);
  desk.begin_turn(setup.agent.role, setup.turn);
  live.begin(setup.turn, setup.attempt, setup.agent.role);
  json begin = {{"kind", "begin"}, {"prompt_bytes", setup.prompt.size()}};
  if (setup.agent.spec) begin["stdin"] = stdin_of(*setup.agent.spec);
  tell(std::move(begin));
  Result<TurnOutcome> outcome = fail(ErrorKind::internal, "no turn");
  {
    const Watchman watchman(books, desk, live, options, wishes);
    outcome = setup.agent.spec ? program_turn(books, desk, live, options, setup, watchman, tell) : tuner_turn(books, desk, live, options, setup, watchman, tell);
    desk.end_turn();
    desk.drain();
    desk.halt(false);
    if (outcome && outcome->counted && taken_again(outcome->cause)) outcome->counted = false;
  }
  live.end();
  if (outcome) tell({{"kind", "end"}, {"end", outcome->end}, {"cause", outcome->cause}, {"reason", outcome->reason}, {"usage", outcome->spent}, {"left_behind", outcome->left_behind}});
  else tell({{"kind", "end"}, {"end", "failed"}, {"cause", "not started"}, {"reason", outcome.error().message}});
  return outcome;
}

}  // namespace hone
