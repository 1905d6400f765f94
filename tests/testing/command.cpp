#include "testing/command.h"

#include <cstdlib>
#include <stdexcept>

#include "base/process.h"
#include "testing/testing.h"

namespace hone::testing {

CommandResult run_hone(const std::vector<std::string>& arguments, const CommandOptions& options) {
  static const fs::path home = scratch("home");
  const fs::path own = options.home.empty() ? home : options.home;
  std::map<std::string, std::string> env{
      {"PATH", "/usr/local/bin:/usr/bin:/bin"},
      {"HOME", own.string()},
      {"XDG_DATA_HOME", (own / "data").string()},
      {"XDG_CONFIG_HOME", (own / "config").string()},
      {"XDG_CACHE_HOME", (options.cache.empty() ? hone_binary().parent_path().parent_path() / "testing-cache" : options.cache).string()},
      {"LC_ALL", "C.UTF-8"}};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"})
    if (const char* value = std::getenv(name); value != nullptr) env[name] = value;
  for (const auto& [name, value] : options.env) env[name] = value;

  ProcessSpec spec;
  spec.argv = {(options.binary.empty() ? hone_binary() : options.binary).string()};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  for (const auto& [name, value] : env)
    if (!value.empty()) spec.env.push_back(name + "=" + value);
  spec.cwd = options.cwd.string();
  spec.timeout_s = options.timeout_s;
  spec.stdout_limit = spec.stderr_limit = std::size_t{8} << 20;
  const auto outcome = run_process(spec);
  if (!outcome) throw std::runtime_error(to_text(outcome.error()));
  return {outcome->exit_code, outcome->signal, outcome->out, outcome->err, outcome->wall_s, outcome->max_rss_bytes};
}

}  // namespace hone::testing
