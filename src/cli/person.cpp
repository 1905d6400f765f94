#include "cli/person.h"

#include <cstdlib>

#include "base/text.h"

namespace hone::cli {

nlohmann::json live_of(const Run& run) {
  const auto answer = ask_launcher(run, {{"do", "status"}}, {}, &interrupted());
  return answer && *answer ? (*answer)->value("live", nlohmann::json()) : nlohmann::json();
}

Result<nlohmann::json> need_launcher(const Run& run, const nlohmann::json& request) {
  HONE_TRY(auto answer, ask_launcher(run, request, {}, &interrupted()));
  if (answer) return *std::move(answer);
  return fail(make_error(ErrorKind::unavailable, "no agents work on this run now")
                  .at({run.root.string()})
                  .with_hint("`hone status --run " + shell_word(run.root.string()) + "` says how it ended; a tuner alone is stopped with Ctrl-C"));
}

Result<> check_person() {
  const char* turn = std::getenv(kTurnVariable);
  if (turn == nullptr || *turn == '\0') return {};
  return fail(make_error(ErrorKind::forbidden, "this is a person's to say, not an agent's"));
}

Result<std::vector<std::string>> passed_on(const std::vector<std::string>& names) {
  std::vector<std::string> env;
  for (const std::string& name : names) {
    if (name.find('=') != std::string::npos)
      return fail(make_error(ErrorKind::usage, "--pass-env takes a name, not a value").with_hint("set the variable for `hone run` and give its name alone"));
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return fail(make_error(ErrorKind::usage, "{} is not set", name).with_hint("set it, or leave --pass-env out"));
    env.push_back(name + "=" + value);
  }
  return env;
}

}  // namespace hone::cli
