// One turn of a driver, for the tests: the prompt on standard input, one JSON object on standard output.
//
//   agents_drive SPEC [--cwd DIR] [--config DIR] [--log FILE] [--wall S] [--silence S] [--stop S] [--output BYTES] [--line BYTES]
//                [--pass NAME]... [--confined] [--cancel-on EVENT] [--cancel-after S]
//
// --cancel-on EVENT --cancel-after S cancels S seconds after the first such event (without EVENT: after the start).
#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <mutex>
#include <thread>

#include "driver/driver.h"

namespace hone {
namespace {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json usage_json(const Usage& usage) {
  return {{"input_tokens", or_null(usage.input_tokens)}, {"cached_tokens", or_null(usage.cached_tokens)},
          {"output_tokens", or_null(usage.output_tokens)}, {"cost_usd", or_null(usage.cost_usd)}};
}

// Sets a flag some time after it was asked to; given up when the turn ends before that.
class Later {
 public:
  void in(double seconds) {
    const std::scoped_lock lock(mutex_);
    if (thread_.joinable()) return;
    thread_ = std::thread([this, seconds] {
      std::unique_lock wait(mutex_);
      if (!wake_.wait_for(wait, std::chrono::duration<double>(seconds), [this] { return over_; })) flag = true;
    });
  }
  ~Later() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  std::atomic<bool> flag = false;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

int drive(int argc, char** argv) {
  CLI::App app("one turn of a driver");
  std::string spec_text, cwd = ".", config, log, cancel_on;
  std::vector<std::string> passed;
  std::optional<double> cancel_after;
  Turn turn;
  app.add_option("spec", spec_text)->required();
  app.add_option("--cwd", cwd);
  app.add_option("--config", config);
  app.add_option("--log", log);
  app.add_option("--wall", turn.limits.wall_s);
  app.add_option("--silence", turn.limits.silence_s);
  app.add_option("--stop", turn.limits.stop_s);
  app.add_option("--output", turn.limits.output_bytes);
  app.add_option("--line", turn.limits.line_bytes);
  app.add_option("--pass", passed);
  app.add_flag("--confined", turn.confined);
  app.add_option("--cancel-on", cancel_on);
  app.add_option("--cancel-after", cancel_after);
  CLI11_PARSE(app, argc, argv);

  turn.writable = {fs::absolute(cwd)};
  turn.prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  turn.cwd = fs::absolute(cwd);
  if (!config.empty()) turn.config = fs::absolute(config);
  turn.log = log.empty() ? turn.cwd / "agent.log" : fs::absolute(log);
  for (const std::string& name : passed)
    if (const char* value = std::getenv(name.c_str())) turn.env.push_back(name + "=" + value);

  json out{{"error", nullptr}, {"result", nullptr}, {"events", json::array()}};
  Later cancel;
  std::mutex mutex;
  turn.cancel = &cancel.flag;
  turn.on_event = [&](const AgentEvent& event) {
    const std::scoped_lock lock(mutex);
    out["events"].push_back({{"kind", name_of(event.kind)}, {"at_s", event.at_s}, {"text", event.text}, {"tool", event.tool}, {"usage", usage_json(event.usage)}});
    if (cancel_after && name_of(event.kind) == cancel_on) cancel.in(*cancel_after);
  };
  const auto run = [&]() -> Result<TurnResult> {
    HONE_TRY(const AgentSpec spec, parse_agent_spec(spec_text));
    HONE_TRY(const std::unique_ptr<Driver> driver, make_driver(spec));
    if (cancel_after && cancel_on.empty()) cancel.in(*cancel_after);
    return driver->run(turn);
  };
  const Result<TurnResult> done = run();
  if (done) {
    out["result"] = {{"end", name_of(done->end)},     {"reason", done->reason},       {"exit_code", or_null(done->exit_code)}, {"signal", or_null(done->signal)},
                     {"usage", usage_json(done->usage)}, {"session", done->session},  {"last_text", done->last_text},          {"wall_s", done->wall_s},
                     {"left_behind", done->left_behind}};
  } else {
    out["error"] = {{"kind", name_of(done.error().kind)}, {"text", to_text(done.error())}};
  }
  std::cout << out.dump(1, ' ', false, json::error_handler_t::replace) << '\n';
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) { return hone::drive(argc, argv); }
