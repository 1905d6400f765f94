#include "mcp/command.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/json.h"
#include "base/process.h"

namespace hone::mcp {
namespace {

using nlohmann::json;

constexpr double kLongest_s = 24 * 3600;
constexpr double kStop_s = 1.5;            // to end by itself; clients end this server 2 s after they are done with it
constexpr std::size_t kOutput = std::size_t{64} << 20;
// A dead service is waited for, but not for as long as a person at a terminal would.
constexpr const char* kPatience = "HONE_PATIENCE=30s";

std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** each = environ; *each != nullptr; ++each) out.emplace_back(*each);
  if (std::getenv("HONE_PATIENCE") == nullptr) out.emplace_back(kPatience);
  return out;
}

// Standard error as lines.
std::function<void(std::string_view)> lines_to(const std::function<void(const std::string&)>& progress) {
  return [&progress, line = std::string()](std::string_view bytes) mutable {
    for (const char c : bytes) {
      if (c != '\n') {
        if (line.size() < 1000) line += c;
      } else if (!line.empty()) {
        progress(std::exchange(line, {}));
      }
    }
  };
}

// The last words of a process that gave no error of its own.
std::string last_words(const std::string& text) {
  const std::size_t from = text.size() > 600 ? text.size() - 600 : 0;
  std::string out = text.substr(from);
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

Result<ProcessOutcome> run(const Command& command, const std::vector<std::string>& arguments, const Call& call) {
  ProcessSpec spec;
  spec.argv = {command.program.string()};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.env = environment();
  spec.cwd = command.cwd.string();
  spec.timeout_s = kLongest_s;
  spec.stdout_limit = kOutput;
  spec.output_kill = 2 * kOutput;
  spec.cancel = &call.cancel;
  spec.stop_s = kStop_s;
  spec.on_err = lines_to(call.progress);
  HONE_TRY(ProcessOutcome outcome, run_process(spec));
  if (outcome.cancelled) return fail(make_error(ErrorKind::cancelled, "cancelled").with_hint("what had finished before is in the ledger"));
  if (outcome.flooded || outcome.out_dropped > 0) return fail(ErrorKind::internal, "hone {} printed more than can be taken", arguments.front());
  if (outcome.signal != 0)
    return fail(make_error(ErrorKind::internal, "hone {} died of signal {}", arguments.front(), outcome.signal).with_note(last_words(outcome.err)));
  return outcome;
}

// The error that a verb printed as JSON; none: it printed something else.
std::optional<Error> error_in(const json& said) {
  if (!said.is_object() || said.value("schema", json()) != "hone.error/1") return std::nullopt;
  try {
    return said.at("error").get<Error>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Result<json> run_verb(const Command& command, std::vector<std::string> arguments, const Call& call) {
  arguments.insert(arguments.begin() + 1, "--json");
  HONE_TRY(const ProcessOutcome outcome, run(command, arguments, call));
  const auto said = parse_json(outcome.out, {64, 20'000'000});
  if (!said || !said->is_object())
    return fail(make_error(ErrorKind::internal, "hone {} ended with {} and without a result", arguments.front(), outcome.exit_code).with_note(last_words(outcome.err)));
  if (auto error = error_in(*said)) return fail(*std::move(error));
  json value = *said;
  // Said on standard error only: that a result could not be kept, what a launcher did with it.
  std::istringstream said_besides(outcome.err);
  for (std::string line; std::getline(said_besides, line);)
    for (const char* word : {"note: ", "retained as ", "spent: ", "warning: ", "error("})
      if (line.starts_with(word) && value["said"].size() < 10) value["said"].push_back(line);
  return value;
}

Result<std::string> run_verb_for_text(const Command& command, std::vector<std::string> arguments, const Call& call) {
  HONE_TRY(ProcessOutcome outcome, run(command, arguments, call));
  if (outcome.exit_code <= 1 && !outcome.out.empty()) return std::move(outcome.out);
  // Once more for the error as an object: it is told with its kind and hint.
  HONE_TRY(const json value, run_verb(command, std::move(arguments), call));
  return fail(make_error(ErrorKind::internal, "hone printed nothing").with_note(value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 300)));
}

}  // namespace hone::mcp
