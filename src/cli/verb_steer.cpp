#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/person.h"
#include "run/progress.h"
#include "run/record.h"

namespace hone::cli {
namespace {

constexpr std::size_t kLongestSteer = 1500;

struct Options {
  std::string run, text;
};

Result<int> steer(const Global& global, const Options& options) {
  HONE_TRY(const Run run, find_run(options.run.empty() ? std::nullopt : std::optional<fs::path>(options.run)));
  HONE_CHECK(check_person());
  if (options.text.size() > kLongestSteer)
    return fail(make_error(ErrorKind::usage, "{} bytes are too many: a brief has room for {}", options.text.size(), kLongestSteer)
                    .with_hint("put what is long into a file of the worktree and name it"));
  HONE_TRY(const auto answer, ask_launcher(run, {{"do", "steer"}, {"text", options.text}}, {}, &interrupted()));
  std::int64_t row = 0;
  if (answer) {
    row = answer->value("row", std::int64_t{0});
  } else {
    HONE_TRY(Ledger ledger, open_ledger(run));
    HONE_TRY(const LedgerRow written, ledger.append("steer", progress_of(ledger.rows()).elapsed_s, {{"text", options.text}, {"by", "person"}}));
    row = written.seq;
  }
  if (global.json) fmt::print("{}\n", nlohmann::json{{"schema", "hone.steer/1"}, {"row", row}}.dump(2));
  else fmt::print("the next turn is told; row {}\n", row);
  return 0;
}

}  // namespace

void define_steer(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("text", options->text, "what the next turn's brief tells its agent")->required();
  app.add_option("--run", options->run, "the run directory (default: the one around the current folder)");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return steer(invocation.global, *options); }; });
}

}  // namespace hone::cli
