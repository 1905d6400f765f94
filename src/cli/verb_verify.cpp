#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "judge/receipt.h"
#include "run/run.h"

namespace hone::cli {
namespace {

Result<fs::path> receipts_of(const std::string& run) {
  if (!run.empty()) {
    HONE_TRY(const Run found, find_run(fs::path(run)));
    return found.receipts();
  }
  HONE_TRY(const std::optional<Run> here, find_run_here());
  return here ? here->receipts() : data_dir() / "receipts";
}

Result<int> verify_receipt(const Global& global, const std::string& name, const std::string& run) {
  HONE_TRY(const fs::path folder, receipts_of(run));
  HONE_TRY(const nlohmann::json receipt, read_receipt(name, folder));
  HONE_TRY(const std::unique_ptr<Environment> environment, open_environment(global, receipt.at("device").value("name", "cpu")));
  HONE_TRY(const Verification found, verify(receipt, environment->bench(), progress_printer(global), &interrupted()));
  end_progress();
  const int code = found.again.cancelled ? exit_code_of(ErrorKind::cancelled) : found.confirmed ? 0 : 1;
  if (global.json) {
    const nlohmann::json out{{"schema", "hone.verify/1"}, {"receipt", receipt.at("id")}, {"confirmed", found.confirmed},
                             {"differences", found.differences}, {"then", receipt.at("report")}, {"now", to_json(found.again)}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return code;
  }
  fmt::print("{}\n", to_text(found.again));
  for (const std::string& difference : found.differences) fmt::print("{}\n", difference);
  fmt::print("{}\n", found.again.cancelled ? "cancelled" : found.confirmed ? "confirmed" : "not confirmed");
  return code;
}

}  // namespace

void define_verify(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string receipt, run;
  };
  auto options = std::make_shared<Options>();
  app.add_option("receipt", options->receipt, "path of a receipt, or its id (the first 8 digits do)")->required();
  app.add_option("--run", options->run, "run whose receipts an id is looked up in; found by itself inside one");
  app.callback([&invocation, options] {
    invocation.action = [&invocation, options] { return verify_receipt(invocation.global, options->receipt, options->run); };
  });
}

}  // namespace hone::cli
