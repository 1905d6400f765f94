#include <CLI/CLI.hpp>

#include "cli/look.h"
#include "inspect/inspect.h"

namespace hone::cli {
namespace {

struct Options {
  LookOptions look;
  bool ptx = false, code = false, lines = false;
};

// The listings alone, so that they can be redirected into a file.
Result<> print_listings(const nlohmann::json& report, const char* key) {
  bool any = false;
  for (const nlohmann::json& module : report.at("modules")) {
    if (!module.contains(key)) continue;
    any = true;
    fmt::print("// module {}\n{}\n", module_name(module), module[key].get_ref<const std::string&>());
  }
  if (any || report.at("modules").empty()) return {};
  std::vector<std::string> why = report.value("skipped", std::vector<std::string>());
  if (key == std::string_view("ptx")) why = {"only CUDA candidates have PTX"};
  return fail(ErrorKind::environment, "there is no listing: {}", fmt::join(why, "; "));
}

Result<int> inspect(const Global& global, const Options& options) {
  const InspectRequest request{options.ptx, options.code};
  nlohmann::json listings = nlohmann::json::array();
  if (request.ptx) listings.push_back("ptx");
  if (request.code) listings.push_back("sass");
  HONE_TRY(const Look made, look(global, options.look, "inspect", {{"listings", listings}},
                                 [&](const Task& task, const Candidate& candidate, Bench bench) -> Result<nlohmann::json> {
                                   HONE_TRY(const Compiled compiled, compile_for(task, candidate, options.look.workloads, bench));
                                   return inspect_report(task, candidate, compiled, request, bench);
                                 }));
  if (global.json) {
    fmt::print("{}\n", made.report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (options.ptx || options.code) {
    HONE_CHECK(print_listings(made.report, options.ptx ? "ptx" : "code"));
  } else {
    fmt::print("{}", options.lines ? inspect_text(made.report, SIZE_MAX) : inspect_text(made.report));
  }
  return report_failures(global, made);
}

}  // namespace

void define_inspect(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  add_look_options(app, options->look);
  CLI::Option* ptx = app.add_flag("--ptx", options->ptx, "print the PTX");
  CLI::Option* code =
      app.add_flag("--sass", options->code, "print the machine code: SASS, of a CPU candidate objdump's listing")
          ->excludes(ptx);
  app.add_flag("--lines", options->lines, "every source line with its instructions, not only the ten with most")
      ->excludes(ptx)
      ->excludes(code);
  app.callback([&invocation, options] {
    invocation.action = [&invocation, options] { return inspect(invocation.global, *options); };
  });
}

}  // namespace hone::cli
