#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "run/report.h"

namespace hone::cli {
namespace {

struct Options {
  std::string run, format = "markdown", out;
};

std::string rendered(const Summary& summary, const std::string& format) {
  if (format == "html") return report_html(summary);
  if (format == "svg") return curve_svg(summary);
  if (format == "json") return report_json(summary).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return report_markdown(summary);
}

Result<int> report(const Global& global, const Options& options) {
  HONE_TRY(const Run run, find_run(options.run.empty() ? std::nullopt : std::optional<fs::path>(options.run)));
  HONE_TRY(const auto summary, summarize(run));
  const std::string text = rendered(summary, global.json ? "json" : options.format);
  if (options.out.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  HONE_CHECK(write_file_atomic(options.out, text));
  fmt::print(stderr, "{}\n", options.out);
  return 0;
}

}  // namespace

void define_report(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("--run", options->run, "the run directory (default: the one around the current folder)");
  app.add_option("--format", options->format, "markdown, html, json, or svg: the curve of the best speedup alone")
      ->check(CLI::IsMember({"markdown", "html", "json", "svg"}))
      ->capture_default_str();
  app.add_option("--out", options->out, "a file instead of standard output");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return report(invocation.global, *options); }; });
}

}  // namespace hone::cli
