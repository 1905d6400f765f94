#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/verb.h"
#include "run/guard.h"
#include "run/run.h"

namespace hone::cli {
namespace {

constexpr std::size_t kLongestInput = std::size_t{16} << 20;
constexpr int kDenied = 2;               // the one exit code that stops the tool; every failure of our own is one too

Result<> allowed(const std::string& dir) {
  HONE_TRY(const Run run, find_run(dir.empty() ? std::nullopt : std::optional<fs::path>(dir)));
  std::string text;
  char bytes[65536];
  for (std::size_t n; (n = std::fread(bytes, 1, sizeof bytes, stdin)) > 0;) {
    text.append(bytes, n);
    if (text.size() > kLongestInput) return fail(ErrorKind::forbidden, "the hook's input is too long");
  }
  return guard_hook(run.root, text);
}

Result<int> decide(const std::string& run) {
  const auto outcome = allowed(run);
  if (outcome) return 0;
  fmt::print(stderr, "hone guard: {}\n", outcome.error().message);
  return kDenied;
}

}  // namespace

void define_guard(CLI::App& app, Invocation& invocation) {
  auto run = std::make_shared<std::string>();
  app.add_option("--run", *run, "the run directory (default: the one around the current folder)");
  app.callback([&invocation, run] { invocation.action = [run] { return decide(*run); }; });
}

}  // namespace hone::cli
