// The process edge: arguments in, exit code out. No exception and no signal passes it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <system_error>

#include "cli/app.h"
#include "cli/startup.h"

namespace {

using namespace hone;

int run(const std::vector<std::string>& arguments) {
  cli::Invocation invocation;
  // Errors of parsing itself follow --json too.
  invocation.global.json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  const auto workers = cli::workers_from(std::getenv("HONE_WORKERS"));
  if (!workers) return cli::report_error(invocation.global, workers.error());
  invocation.global.workers = *workers;
  const auto app = cli::make_app(invocation);
  const auto parsed = cli::parse(*app, arguments);
  if (!parsed) return cli::report_error(invocation.global, parsed.error());
  if (parsed->done) return 0;
  if (invocation.global.sandbox == "off")
    fmt::print(stderr, "warning: --sandbox=off: candidate code runs with your rights, and receipts will say so\n");
  try {
    const auto code = invocation.action();
    cli::end_progress();
    return code ? *code : cli::report_error(invocation.global, code.error());
  } catch (const std::bad_alloc&) {
    return cli::report_error(invocation.global, make_error(ErrorKind::environment, "out of memory"));
  } catch (const std::system_error& error) {
    if (error.code().value() == EPIPE) return 0;   // the reader of standard output has seen enough
    return cli::report_error(invocation.global, make_error(ErrorKind::io, "{}", error.what()));
  } catch (const std::exception& error) {
    return cli::report_error(invocation.global, make_error(ErrorKind::internal, "{}", error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  cli::catch_signals();
  int code = 3;
  try {
    code = run({argv + std::min(argc, 1), argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error(internal): %s\n", error.what());
  }
  errno = 0;
  if (std::fflush(stdout) != 0 && errno != EPIPE) {
    std::fprintf(stderr, "error(io): cannot write standard output: %s\n", std::strerror(errno));
    return 3;
  }
  return code;
}
