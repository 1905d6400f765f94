#include "run/frontier.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "base/yaml.h"
#include "judge/receipt.h"
#include "run/experiment.h"
#include "run/git.h"
#include "run/progress.h"

namespace hone {
namespace {

using nlohmann::json;

std::string text_from(const json& in, const char* key) {
  const auto found = in.find(key);
  return found != in.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// What a receipt claims; read_receipt has checked its shape and its id.
struct ReceiptFacts {
  std::string id, task, task_sha256, device;
  bool quick = false;                              // the tuner's short look, not a full measurement
  int passed = 0, total = 0;
  std::optional<double> geomean;                   // none unless every workload of the task passed
  std::optional<Interval> geomean_ci;
  std::map<std::string, std::pair<std::string, std::optional<double>>> workloads;   // verdict, ratio
};

ReceiptFacts facts_of(const json& receipt) {
  ReceiptFacts facts;
  const json& report = receipt["report"];
  facts.id = text_from(receipt, "id");
  facts.task = text_from(receipt["task"], "name");
  facts.task_sha256 = text_from(receipt["task"], "sha256");
  facts.device = text_from(receipt["device"], "model");
  facts.quick = receipt.contains("quick") && receipt["quick"].is_boolean() && receipt["quick"].get<bool>();
  facts.passed = report["passed"].get<int>();
  facts.total = report["total"].get<int>();
  for (const json& each : report["workloads"]) {
    auto& [verdict, ratio] = facts.workloads[text_from(each, "id")];
    verdict = text_from(each, "verdict");
    if (verdict == "PASS" && each["ratio"].is_number()) ratio = each["ratio"].get<double>();
  }
  if (facts.passed != facts.total || !report["geomean"].is_number()) return facts;
  facts.geomean = report["geomean"].get<double>();
  if (const json& ci = report["geomean_ci"]; ci.is_array()) facts.geomean_ci = Interval{ci[0].get<double>(), ci[1].get<double>()};
  return facts;
}

bool good_name(const std::string& name) {
  if (name.empty() || name.size() > 100 || !std::isalnum(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

// Whether a judgement of this run wrote the receipt: anybody can make a file whose id is right, but a
// row of the ledger is Hone's. The id is the hash of all that the receipt says.
bool in_ledger(const std::vector<LedgerRow>& rows, const ReceiptFacts& facts, const Candidate& candidate) {
  return std::any_of(rows.begin(), rows.end(), [&](const LedgerRow& row) {
    if (row.kind != "evaluation" && row.kind != "remeasure") return false;
    const Experiment experiment = row.data.get<Experiment>();
    return experiment.receipt == facts.id && experiment.sha256 == candidate.sha256 && experiment.scored && experiment.geomean == facts.geomean;
  });
}

Error unknown_entry(const std::string& name, const std::vector<FrontierEntry>& entries) {
  std::vector<std::string> names;
  for (const FrontierEntry& each : entries) names.push_back(each.name);
  Error error = make_error(ErrorKind::not_found, "the frontier holds no \"{}\"", name);
  const std::string near = nearest(name, names);
  error.hint = !near.empty() ? fmt::format("did you mean {}?", near) : "`hone frontier list` shows what it holds";
  return error;
}

// The bytes of an entry's folder; empty when it cannot be read.
std::map<std::string, std::string> folder_files(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return {};
  auto tree = read_tree(folder);
  return tree ? *std::move(tree) : std::map<std::string, std::string>{};
}

Result<> write_folder(const fs::path& folder, const std::map<std::string, std::string>& files) {
  HONE_CHECK(remove_tree(folder));
  for (const auto& [path, bytes] : files) {
    HONE_CHECK(make_dirs((folder / path).parent_path()));
    HONE_CHECK(write_file_atomic(folder / path, bytes));
  }
  return {};
}

}  // namespace

void to_json(json& out, const FrontierEntry& entry) {
  out = {{"name", entry.name},
         {"sha256", entry.sha256},
         {"receipt", entry.receipt},
         {"geomean", entry.geomean},
         {"geomean_ci", entry.geomean_ci ? json{entry.geomean_ci->low, entry.geomean_ci->high} : json()},
         {"ratios", entry.ratios},
         {"params", entry.params},
         {"family", entry.family},
         {"parent", entry.parent},
         {"device", entry.device},
         {"added", entry.added}};
}

void from_json(const json& in, FrontierEntry& entry) {
  entry = {};
  entry.name = text_from(in, "name");
  entry.sha256 = text_from(in, "sha256");
  entry.receipt = text_from(in, "receipt");
  entry.family = text_from(in, "family");
  entry.parent = text_from(in, "parent");
  entry.device = text_from(in, "device");
  if (in.contains("geomean") && in["geomean"].is_number()) entry.geomean = in["geomean"].get<double>();
  if (const auto ci = in.find("geomean_ci"); ci != in.end() && ci->is_array() && ci->size() == 2 && (*ci)[0].is_number() && (*ci)[1].is_number())
    entry.geomean_ci = Interval{(*ci)[0].get<double>(), (*ci)[1].get<double>()};
  if (const auto ratios = in.find("ratios"); ratios != in.end() && ratios->is_object())
    for (const auto& [id, ratio] : ratios->items())
      if (ratio.is_number()) entry.ratios[id] = ratio.get<double>();
  if (const auto params = in.find("params"); params != in.end() && params->is_object())
    for (const auto& [name, value] : params->items())
      if (value.is_string()) entry.params[name] = value.get<std::string>();
}

std::vector<FrontierEntry> frontier_of(const std::vector<LedgerRow>& rows) {
  std::vector<FrontierEntry> entries;
  for (const LedgerRow& row : rows) {
    if (row.kind == "frontier_drop") {
      std::erase_if(entries, [&](const FrontierEntry& each) { return each.name == text_from(row.data, "name"); });
    } else if (row.kind == "frontier_add") {
      FrontierEntry entry = row.data.get<FrontierEntry>();
      if (!good_name(entry.name) || !(entry.geomean > 0)) continue;
      entry.row = row.seq;
      entry.added = row.time;
      std::erase_if(entries, [&](const FrontierEntry& each) { return each.name == entry.name || each.sha256 == entry.sha256; });
      entries.push_back(std::move(entry));
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const FrontierEntry& a, const FrontierEntry& b) { return a.geomean > b.geomean; });
  return entries;
}

Result<FrontierEntry> frontier_add(const Run& run, Ledger& ledger, const Candidate& candidate, const std::string& receipt,
                                   const Lineage& lineage, double elapsed_s, const std::string& name) {
  HONE_TRY(const json body, read_receipt(receipt, run.receipts()));
  const ReceiptFacts facts = facts_of(body);
  auto refuse = [&](std::string why, std::string hint) {
    return fail(make_error(ErrorKind::contract, "receipt {} does not admit {}: {}", facts.id, candidate.name, why)
                    .at({receipt})
                    .with_hint(std::move(hint)));
  };
  if (facts.task != run.manifest.task || facts.task_sha256 != run.manifest.task_sha256)
    return refuse(fmt::format("it is of task {} ({}), this run's is {} ({})", facts.task, facts.task_sha256.substr(0, 12),
                              run.manifest.task, run.manifest.task_sha256.substr(0, 12)),
                  "judge the candidate in this run with `hone bench`");
  if (!facts.geomean)
    return refuse(facts.passed == facts.total ? std::string("it judged only some workloads")
                                              : fmt::format("{} of {} workloads passed", facts.passed, facts.total),
                  "only a candidate whose every workload passes can enter");
  if (facts.quick) return refuse("it is the tuner's quick look, not a full measurement", "judge the candidate with `hone bench`");
  if (!facts.geomean_ci) return refuse("it has no interval, for want of samples", "judge the candidate with a larger `--budget time=`");
  if (body["candidate"].is_null()) return refuse("it judged the baseline", "judge the candidate in this run with `hone bench`");
  HONE_TRY(const Candidate judged, hone::candidate_of(body));
  if (judged.sha256 != candidate.sha256)
    return refuse(fmt::format("it judged other bytes ({} instead of {})", judged.sha256.substr(0, 12), candidate.sha256.substr(0, 12)),
                  "judge the candidate as it is now with `hone bench`, then add that receipt");
  if (!in_ledger(ledger.rows(), facts, candidate))
    return refuse("no judgement in this run's ledger wrote it", "judge the candidate in this run with `hone bench`");
  if (auto figures = check_figures(body); !figures) return refuse(figures.error().message, figures.error().hint);

  FrontierEntry entry;
  const std::vector<FrontierEntry> present = frontier_of(ledger.rows());
  entry.name = name;
  if (name.empty()) {
    for (const FrontierEntry& each : present)
      if (each.sha256 == candidate.sha256) entry.name = each.name;
    if (entry.name.empty()) entry.name = candidate.parameters.empty() ? candidate.name : candidate.name + "-" + candidate.sha256.substr(0, 8);
    auto taken = [&](const std::string& wanted) {
      return std::any_of(present.begin(), present.end(), [&](const FrontierEntry& each) { return each.name == wanted && each.sha256 != candidate.sha256; });
    };
    if (taken(entry.name)) entry.name += "-" + candidate.sha256.substr(0, 8);
  }
  for (const FrontierEntry& each : present)
    if (each.name == entry.name && each.sha256 == candidate.sha256 && each.receipt == facts.id) return each;   // nothing new
  if (!good_name(entry.name))
    return fail(make_error(ErrorKind::usage, "\"{}\" is not a name for a frontier entry", entry.name).with_hint("letters, digits, '-', '_' and '.' only"));
  entry.sha256 = candidate.sha256;
  entry.receipt = facts.id;
  entry.geomean = *facts.geomean;
  entry.geomean_ci = facts.geomean_ci;
  for (const auto& [id, each] : facts.workloads)
    if (each.second) entry.ratios[id] = *each.second;
  entry.params = candidate.values;
  entry.family = lineage.family.empty() ? candidate.name : lineage.family;
  entry.parent = lineage.parent;
  entry.device = facts.device;
  // What is verified later is the run's own copy: when it is lost or altered, a whole one mends it.
  if (!read_receipt(facts.id, run.receipts())) HONE_CHECK(write_file_atomic(run.receipts() / (facts.id + ".json"), body.dump(1) + "\n"));
  json data = entry;
  data.erase("added");                             // the row's own time
  HONE_TRY(const LedgerRow row, ledger.append("frontier_add", elapsed_s, data));
  entry.row = row.seq;
  entry.added = row.time;
  HONE_CHECK(sync_frontier(run, ledger.rows(), fmt::format("Frontier: add {} ({:.2f}x)", entry.name, entry.geomean)));
  return entry;
}

Result<FrontierEntry> frontier_add_asked(const Run& run, Ledger& ledger, Candidate candidate, std::string receipt, const Lineage& lineage,
                                         double elapsed_s, const std::string& name) {
  if (receipt.empty()) {
    const RunProgress progress = progress_of(ledger.rows());
    const Recorded* newest = nullptr;
    for (const auto* rows : {&progress.evaluations, &progress.remeasures, &progress.benches})
      for (const Recorded& each : *rows)
        if (each.full && each.experiment.sha256 == candidate.sha256 && each.experiment.scored && (newest == nullptr || each.row > newest->row)) newest = &each;
    if (newest == nullptr)
      return fail(make_error(ErrorKind::contract, "no receipt in this run judged {} as it is now and passed", candidate.name)
                      .at({candidate.path.string()})
                      .with_hint("run `hone bench " + shell_word(candidate.path.string()) + "` first"));
    receipt = newest->experiment.receipt;
  } else if (!candidate.parameters.empty()) {
    // The receipt says which of the listed values it measured.
    HONE_TRY(const json body, read_receipt(receipt, run.receipts()));
    HONE_TRY(const Candidate judged, hone::candidate_of(body));
    if (auto same = candidate.with(judged.values); same && same->sha256 == judged.sha256) candidate = *std::move(same);
  }
  return frontier_add(run, ledger, candidate, receipt, lineage, elapsed_s, name);
}

Result<> frontier_drop(const Run& run, Ledger& ledger, const std::string& name, const std::string& why, double elapsed_s) {
  const std::vector<FrontierEntry> entries = frontier_of(ledger.rows());
  if (std::none_of(entries.begin(), entries.end(), [&](const FrontierEntry& each) { return each.name == name; }))
    return fail(unknown_entry(name, entries));
  HONE_CHECK(ledger.append("frontier_drop", elapsed_s, {{"name", name}, {"why", why}}));
  return sync_frontier(run, ledger.rows(), fmt::format("Frontier: drop {}", name));
}

Result<> sync_frontier(const Run& run, const std::vector<LedgerRow>& rows, const std::string& message) {
  const std::vector<FrontierEntry> entries = frontier_of(rows);
  HONE_CHECK(make_dirs(run.frontier()));
  std::set<std::string> names;
  bool changed = false;
  for (const FrontierEntry& entry : entries) {
    names.insert(entry.name);
    HONE_TRY(const Candidate candidate, candidate_of_entry(run, entry));
    const auto files = frozen_files(candidate);
    if (folder_files(run.frontier() / entry.name) == files) continue;
    HONE_CHECK(write_folder(run.frontier() / entry.name, files));
    changed = true;
  }
  std::error_code code;
  std::vector<fs::path> stray;
  for (const fs::directory_entry& each : fs::directory_iterator(run.frontier(), code))
    if (const std::string name = each.path().filename().string(); name != "index.json" && names.count(name) == 0) stray.push_back(each.path());
  for (const fs::path& path : stray) HONE_CHECK(remove_tree(path));
  const std::string index = frontier_index(run, entries).dump(2) + "\n";
  const fs::path file = run.frontier() / "index.json";
  const auto present = read_file(file);
  if (!present || *present != index) {
    HONE_CHECK(write_file_atomic(file, index));
    changed = true;
  }
  if (!changed && stray.empty()) return {};
  return Git(run.worktree()).commit({"candidates/" + run.manifest.task + "/frontier"}, message);
}

std::vector<std::string> altered_entries(const Run& run, const std::vector<FrontierEntry>& entries) {
  std::vector<std::string> altered;
  for (const FrontierEntry& entry : entries) {
    const auto candidate = candidate_of_entry(run, entry);
    if (!candidate || folder_files(run.frontier() / entry.name) != frozen_files(*candidate)) altered.push_back(entry.name);
  }
  const auto index = read_file(run.frontier() / "index.json");
  if (!entries.empty() && (!index || *index != frontier_index(run, entries).dump(2) + "\n")) altered.push_back("index.json");
  return altered;
}

Result<Candidate> candidate_of_entry(const Run& run, const FrontierEntry& entry) {
  HONE_TRY(const json receipt, read_receipt(entry.receipt, run.receipts()));
  HONE_TRY(Candidate candidate, hone::candidate_of(receipt));
  if (candidate.sha256 != entry.sha256)
    return fail(make_error(ErrorKind::contract, "receipt {} no longer holds the source of {}", entry.receipt, entry.name)
                    .at({(run.receipts() / (entry.receipt + ".json")).string()})
                    .with_hint("restore the receipt, or `hone frontier drop " + entry.name + "`"));
  candidate.name = entry.name;
  return candidate;
}

json frontier_index(const Run& run, const std::vector<FrontierEntry>& entries) {
  return {{"schema", "hone.frontier/1"},
          {"run", run.manifest.name},
          {"task", run.manifest.task},
          {"task_sha256", run.manifest.task_sha256},
          {"entries", entries}};
}

Result<FrontierSide> frontier_side(const Run& run, const std::vector<FrontierEntry>& entries, const std::string& name) {
  std::string receipt = name;
  for (const FrontierEntry& each : entries)
    if (each.name == name) receipt = each.receipt;
  auto body = read_receipt(receipt, run.receipts());
  if (!body) {
    if (body.error().kind == ErrorKind::not_found || body.error().kind == ErrorKind::io) return fail(unknown_entry(name, entries));
    return fail(std::move(body).error());
  }
  const ReceiptFacts facts = facts_of(*body);
  FrontierSide side;
  HONE_TRY(side.candidate, hone::candidate_of(*body));
  side.label = receipt == name ? side.candidate.name : name;
  side.geomean = facts.geomean;
  side.workloads = facts.workloads;
  return side;
}

}  // namespace hone
