#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/verb.h"
#include "judge/receipt.h"
#include "run/frontier.h"
#include "run/git.h"
#include "run/launcher.h"
#include "run/progress.h"
#include "run/record.h"

namespace hone::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string run, first, second, receipt, name, family, why;
  std::vector<std::string> names;
};

struct Opened {
  Run run;
  LedgerText ledger;
  std::vector<FrontierEntry> entries;
};

Result<Opened> open(const Options& options) {
  HONE_TRY(Run run, find_run(options.run.empty() ? std::nullopt : std::optional<fs::path>(options.run)));
  HONE_TRY(LedgerText ledger, read_ledger(run.ledger()));
  auto entries = frontier_of(ledger.rows);
  return Opened{std::move(run), std::move(ledger), std::move(entries)};
}

std::string ratio_text(double ratio, const std::optional<Interval>& interval) {
  return interval ? fmt::format("{:.3f}x [{:.3f}, {:.3f}]", ratio, interval->low, interval->high) : fmt::format("{:.3f}x", ratio);
}

void print_json(const json& value) { fmt::print("{}\n", value.dump(2, ' ', false, json::error_handler_t::replace)); }

Result<int> list(const Global& global, const Options& options) {
  HONE_TRY(const Opened opened, open(options));
  const auto altered = altered_entries(opened.run, opened.entries);
  if (global.json) {
    json out = frontier_index(opened.run, opened.entries);
    out["altered"] = altered;
    print_json(out);
    return 0;
  }
  if (opened.entries.empty()) fmt::print("the frontier is empty\n");
  for (const FrontierEntry& each : opened.entries) {
    std::error_code code;
    const bool receipt = fs::exists(opened.run.receipts() / (each.receipt + ".json"), code);
    double worst = each.geomean;
    std::string where;
    for (const auto& [id, ratio] : each.ratios)
      if (ratio < worst) worst = ratio, where = id;
    fmt::print("{:<28} {:<26} receipt {}  row {}{}{}\n", each.name, ratio_text(each.geomean, each.geomean_ci), each.receipt.substr(0, 12), each.row,
               where.empty() ? "" : fmt::format("  worst {} {:.3f}x{}", where, worst, worst < 1 ? " (slower)" : ""),
               !receipt ? "  its receipt is gone" : std::find(altered.begin(), altered.end(), each.name) != altered.end() ? "  files were altered" : "");
  }
  if (std::find(altered.begin(), altered.end(), "index.json") != altered.end())
    fmt::print("index.json was altered or removed; this list is the ledger's, and the next change writes it again\n");
  return 0;
}

Result<int> show(const Global& global, const Options& options) {
  HONE_TRY(const Opened opened, open(options));
  HONE_TRY(const FrontierSide side, frontier_side(opened.run, opened.entries, options.first));
  const auto found = std::find_if(opened.entries.begin(), opened.entries.end(), [&](const FrontierEntry& each) { return each.name == options.first; });
  if (found == opened.entries.end())
    return fail(make_error(ErrorKind::not_found, "the frontier holds no \"{}\"", options.first).with_hint("`hone frontier list` shows what it holds"));
  if (global.json) {
    json out = *found;
    out["schema"] = "hone.frontier_entry/1";
    out["row"] = found->row;
    out["path"] = (opened.run.frontier() / found->name).string();
    out["receipt_path"] = (opened.run.receipts() / (found->receipt + ".json")).string();
    out["sources"] = side.candidate.sources;
    print_json(out);
    return 0;
  }
  fmt::print("{}  {}\n", found->name, ratio_text(found->geomean, found->geomean_ci));
  fmt::print("  source     {}\n  sha256     {}\n  receipt    {}\n", (opened.run.frontier() / found->name).string(), found->sha256,
             (opened.run.receipts() / (found->receipt + ".json")).string());
  fmt::print("  family     {}\n  had to beat {}\n  parameters {}\n  device     {}\n  row        {}\n", found->family,
             found->parent.empty() ? "-" : found->parent, params_text(found->params), found->device, found->row);
  for (const auto& [id, ratio] : found->ratios) fmt::print("  {:<24} {:.3f}x{}\n", id, ratio, ratio < 1 ? " (slower)" : "");
  return 0;
}

Result<std::string> source_diff(const FrontierSide& x, const FrontierSide& y) {
  HONE_TRY(const ScratchDir scratch, ScratchDir::create());
  for (const auto& [side, folder] : {std::pair(&x, "a"), std::pair(&y, "b")}) {
    HONE_CHECK(make_dirs(scratch.path() / folder));
    for (const auto& [path, bytes] : frozen_files(side->candidate)) {
      HONE_CHECK(make_dirs((scratch.path() / folder / path).parent_path()));
      HONE_CHECK(write_file_atomic(scratch.path() / folder / path, bytes));
    }
  }
  return diff_folders(scratch.path() / "a", scratch.path() / "b");
}

Result<int> diff(const Global& global, const Options& options) {
  HONE_TRY(const Opened opened, open(options));
  HONE_TRY(const FrontierSide x, frontier_side(opened.run, opened.entries, options.first));
  HONE_TRY(const FrontierSide y, frontier_side(opened.run, opened.entries, options.second));
  HONE_TRY(const std::string source, source_diff(x, y));
  std::map<std::string, std::pair<const FrontierSide*, const FrontierSide*>> ids;
  for (const auto& [id, each] : x.workloads) ids[id].first = &x;
  for (const auto& [id, each] : y.workloads) ids[id].second = &y;
  const bool overall = x.geomean && y.geomean;
  const std::string reason = overall ? "" : fmt::format("no overall figure exists: {} did not pass every workload", x.geomean ? y.label : y.geomean ? x.label : "neither side");
  json rows = json::array();
  std::string text;
  for (const auto& [id, sides] : ids) {
    auto part = [&, &key = id](const FrontierSide* side) { return side == nullptr ? std::pair<std::string, std::optional<double>>{"-", std::nullopt} : side->workloads.at(key); };
    const auto [x_verdict, x_ratio] = part(sides.first);
    const auto [y_verdict, y_ratio] = part(sides.second);
    auto shown = [](const std::string& verdict, const std::optional<double>& ratio) { return ratio ? fmt::format("{:.3f}x", *ratio) : verdict; };
    const bool common = x_ratio && y_ratio && *x_ratio > 0;
    text += fmt::format("{:<24} {:>10} {:>10} {}\n", id, shown(x_verdict, x_ratio), shown(y_verdict, y_ratio), common ? fmt::format("{:>8.3f}", *y_ratio / *x_ratio) : "       -");
    rows.push_back({{"id", id},
                    {"verdicts", {x_verdict, y_verdict}},
                    {"ratios", {x_ratio ? json(*x_ratio) : json(), y_ratio ? json(*y_ratio) : json()}},
                    {"change", common ? json(*y_ratio / *x_ratio) : json()}});
  }
  if (global.json) {
    print_json({{"schema", "hone.frontier_diff/1"},
                {"sides", {x.label, y.label}},
                {"geomeans", {x.geomean ? json(*x.geomean) : json(), y.geomean ? json(*y.geomean) : json()}},
                {"change", overall ? json(*y.geomean / *x.geomean) : json()},
                {"reason", overall ? json() : json(reason)},
                {"workloads", rows},
                {"diff", source}});
    return 0;
  }
  fmt::print("{}", source.empty() ? "the sources are equal\n" : source);
  fmt::print("\n{:<24} {:>10} {:>10} {:>8}\n{}", "workload", x.label.substr(0, 10), y.label.substr(0, 10), "change", text);
  if (overall) fmt::print("geomean: {:.3f}x and {:.3f}x, change {:.3f}\n", *x.geomean, *y.geomean, *y.geomean / *x.geomean);
  else fmt::print("{}\n", reason);
  return 0;
}

// While a launcher works it alone writes the record.
Result<std::optional<json>> ask(const Run& run, const json& request) {
  HONE_TRY(auto answer, ask_launcher(run, request, {}, &interrupted()));
  if (!answer) HONE_CHECK(check_turn_has_launcher());
  return answer;
}

Result<int> add(const Global& global, const Options& options) {
  HONE_TRY(const Opened opened, open(options));
  const fs::path folder = candidate_path(opened.run, options.first);
  FrontierEntry entry;
  std::error_code code;
  HONE_TRY(const auto answer, ask(opened.run, {{"do", "frontier_add"}, {"candidate", fs::absolute(folder, code).string()}, {"receipt", options.receipt},
                                               {"name", options.name}, {"family", options.family}}));
  if (answer) {
    entry = answer->at("entry").get<FrontierEntry>();
    entry.row = answer->at("row").get<std::int64_t>();
  } else {
    HONE_TRY(Candidate candidate, load_candidate(folder));
    HONE_TRY(Ledger ledger, open_ledger(opened.run));
    HONE_TRY(entry, frontier_add_asked(opened.run, ledger, std::move(candidate), options.receipt, {options.family, ""},
                                       progress_of(ledger.rows()).elapsed_s, options.name));
  }
  if (global.json) {
    json out = entry;
    out["schema"] = "hone.frontier_entry/1";
    print_json(out);
  } else {
    fmt::print("added {}: {}, row {}\n", entry.name, ratio_text(entry.geomean, entry.geomean_ci), entry.row);
  }
  return 0;
}

Result<int> drop(const Global& global, const Options& options) {
  HONE_TRY(const Opened opened, open(options));
  HONE_TRY(const auto answer, ask(opened.run, {{"do", "frontier_drop"}, {"name", options.first}, {"why", options.why}}));
  if (!answer) {
    HONE_TRY(Ledger ledger, open_ledger(opened.run));
    HONE_CHECK(frontier_drop(opened.run, ledger, options.first, options.why, progress_of(ledger.rows()).elapsed_s));
  }
  if (global.json) print_json({{"schema", "hone.frontier_drop/1"}, {"name", options.first}});
  else fmt::print("dropped {}; its receipt and its rows stay\n", options.first);
  return 0;
}

Result<int> verify_entries(const Global& global, const Options& options) {
  HONE_TRY(const Opened opened, open(options));
  std::vector<FrontierEntry> chosen;
  for (const FrontierEntry& each : opened.entries)
    if (options.names.empty() || std::find(options.names.begin(), options.names.end(), each.name) != options.names.end()) chosen.push_back(each);
  for (const std::string& name : options.names)
    if (std::none_of(chosen.begin(), chosen.end(), [&](const FrontierEntry& each) { return each.name == name; }))
      return fail(make_error(ErrorKind::not_found, "the frontier holds no \"{}\"", name).with_hint("`hone frontier list` shows what it holds"));
  HONE_CHECK(check_turn_has_launcher());   // one measurement at a time, and that is the launcher's
  HONE_TRY(const Task task, task_of(opened.run));
  HONE_TRY(const auto environment, open_environment(global, task.device));
  const Progress progress = progress_printer(global);
  json results = json::array();
  bool all = true;
  for (const FrontierEntry& each : chosen) {
    if (interrupted()) return fail(make_error(ErrorKind::cancelled, "stopped before {} was judged again", each.name));
    HONE_TRY(const json receipt, read_receipt(each.receipt, opened.run.receipts()));
    HONE_TRY(const Verification verification, verify(receipt, environment->bench(), progress));
    end_progress();
    all = all && verification.confirmed;
    results.push_back({{"name", each.name}, {"confirmed", verification.confirmed}, {"differences", verification.differences}});
    if (global.json) continue;
    fmt::print("{:<28} {}\n", each.name, verification.confirmed ? "confirmed" : "not confirmed");
    for (const std::string& difference : verification.differences) fmt::print("  {}\n", difference);
  }
  if (global.json) print_json({{"schema", "hone.frontier_verify/1"}, {"confirmed", all}, {"entries", results}});
  else if (chosen.empty()) fmt::print("the frontier is empty\n");
  return all ? 0 : 1;
}

}  // namespace

void define_frontier(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.require_subcommand(1);
  auto command = [&](const char* name, const char* summary, const char* example, Result<int> (*action)(const Global&, const Options&)) {
    CLI::App* sub = add_command(app, invocation, name, summary, example, [&invocation, options, action] { return action(invocation.global, *options); });
    sub->add_option("--run", options->run, "the run directory (default: the one around the current folder)");
    return sub;
  };
  command("list", "retained candidates, fastest first", "hone frontier list --run runs/first", &list);
  command("show", "one entry: source, receipt, speedup by workload", "hone frontier show tiled-3f2a9c01", &show)
      ->add_option("name", options->first, "an entry's name")->required();
  CLI::App* sides = command("diff", "sources and workloads of two entries or receipts", "hone frontier diff tiled-3f2a9c01 lanes", &diff);
  sides->add_option("x", options->first, "an entry's name, or a receipt's id or path")->required();
  sides->add_option("y", options->second, "the other")->required();
  CLI::App* adding = command("add", "retain a candidate by a passing receipt", "hone frontier add candidates/softmax_f32/scratch/mine", &add);
  adding->add_option("candidate", options->first, "a candidate's folder")->required();
  adding->add_option("--receipt", options->receipt, "id or path (default: the newest that judged these bytes)");
  adding->add_option("--name", options->name, "the entry's name (default: the candidate's)");
  adding->add_option("--family", options->family, "what idea it belongs to (default: the candidate's name)");
  CLI::App* dropping = command("drop", "take an entry out of the frontier", "hone frontier drop lanes --why \"slower on tails\"", &drop);
  dropping->add_option("name", options->first, "an entry's name")->required();
  dropping->add_option("--why", options->why, "for the ledger");
  command("verify", "judge retained candidates again", "hone frontier verify", &verify_entries)
      ->add_option("names", options->names, "entries (default: all)");
}

}  // namespace hone::cli
