#include "judge/receipt.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/yaml.h"
#include "judge/statistics.h"

namespace hone {
namespace {

using json = nlohmann::json;

constexpr std::size_t kReceiptLimit = std::size_t{256} << 20;
constexpr std::size_t kIdDigits = 32;

Result<std::string> schema_text() {
  HONE_TRY(const fs::path share, share_dir());
  return read_file(share / "schema" / "receipt.json");
}

// Of everything but the id itself.
std::string id_of(json body) {
  body.erase("id");
  return sha256(body.dump()).substr(0, kIdDigits);
}

bool is_id(const std::string& text) {
  return text.size() == kIdDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The id that `name` is, or begins: lists show the start of an id. Else `name`, which is a path then.
Result<std::string> whole_id(const std::string& name, const fs::path& folder) {
  constexpr std::size_t kLeast = 8;
  if (name.size() < kLeast || name.size() >= kIdDigits || name.find_first_not_of("0123456789abcdef") != std::string::npos) return name;
  std::error_code code;
  std::vector<std::string> found;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (const std::string id = it->path().stem().string(); is_id(id) && it->path().extension() == ".json" && id.starts_with(name)) found.push_back(id);
  if (found.size() > 1)
    return fail(make_error(ErrorKind::usage, "{} receipts begin with {}", found.size(), name).at({folder.string()}).with_hint("give more of the id"));
  return found.empty() ? name : found.front();
}

std::optional<Interval> interval_of(const json& value) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number() || !value[1].is_number()) return std::nullopt;
  return Interval{value[0].get<double>(), value[1].get<double>()};
}

// Intervals of two honest measurements of one thing may miss each other by little; the band of
// effects that never decide is allowed on top.
bool apart(const Interval& a, const Interval& b, double min_effect) {
  return a.low * (1 - min_effect) > b.high * (1 + min_effect) || b.low * (1 - min_effect) > a.high * (1 + min_effect);
}

// A figure and what it is computed from went through the same rounding.
bool equal(double said, double found) { return std::abs(said - found) <= 1e-9 * std::abs(found); }

// As the judge takes it of a workload's samples; none where these are no paired, positive times.
std::optional<double> ratio_of(const json& raw) {
  const json& baseline = raw.at("baseline_s");
  const json& candidate = raw.at("candidate_s");
  if (baseline.empty() || baseline.size() != candidate.size()) return std::nullopt;
  std::vector<double> logs;
  for (std::size_t i = 0; i < baseline.size(); ++i) {
    logs.push_back(std::log(baseline[i].get<double>() / candidate[i].get<double>()));
    if (!std::isfinite(logs.back())) return std::nullopt;
  }
  return std::exp(interquartile_mean(std::move(logs)));
}

std::string show(const Interval& value) { return fmt::format("[{:.4f}, {:.4f}]", value.low, value.high); }

}  // namespace

Result<> write_receipt(Report& report, const fs::path& folder) {
  HONE_CHECK(make_dirs(folder));
  json body = report.receipt_body;
  const std::string id = id_of(body);
  body["id"] = id;
  const fs::path path = fs::absolute(folder / (id + ".json"));
  HONE_CHECK(write_file_atomic(path, body.dump(1) + "\n"));
  report.receipt = path.string();
  return {};
}

Result<json> read_receipt(const std::string& given, const fs::path& folder) {
  std::error_code ignored;
  std::string name = given;
  if (!fs::exists(given, ignored)) {
    HONE_TRY(name, whole_id(given, folder));
  }
  const bool by_id = is_id(name) && !fs::exists(name, ignored);
  const fs::path path = by_id ? folder / (name + ".json") : fs::path(name);
  if (!fs::exists(path, ignored))
    return fail(make_error(ErrorKind::not_found, "no receipt {}", path.string()).with_hint("the last line of `hone bench` is a receipt's path"));
  HONE_TRY(const std::string text, read_file(path, kReceiptLimit));
  json body = json::parse(text, nullptr, false);
  if (body.is_discarded()) return fail(make_error(ErrorKind::contract, "the receipt is no JSON").at({path.string()}));
  HONE_TRY(const std::string schema, schema_text());
  HONE_CHECK(check_schema(body, schema, "the receipt", {path.string()}));
  const std::string id = body["id"].get<std::string>();
  std::string actual;
  try {
    actual = id_of(body);
  } catch (const json::exception&) {
    return fail(make_error(ErrorKind::contract, "the receipt holds text that is no UTF-8").at({path.string()}));
  }
  if (actual != id)
    return fail(make_error(ErrorKind::contract, "the receipt was edited: its id is {}, its contents hash to {}", id, actual)
                    .at({path.string()})
                    .with_hint("only the file that `hone bench` wrote can be verified"));
  if (by_id && name != id)
    return fail(make_error(ErrorKind::contract, "the receipt was replaced: it is {}, not {}", id, name)
                    .at({path.string()})
                    .with_hint("only the file that `hone bench` wrote can be verified"));
  return body;
}

Result<> check_figures(const json& receipt) {
  const json& report = receipt.at("report");
  const auto contradicts = [](std::string what) {
    return fail(make_error(ErrorKind::contract, "the receipt contradicts its own samples: {}", what)
                    .with_hint("it is no receipt that `hone bench` wrote; judge the candidate again"));
  };
  std::size_t passed = 0;
  double logs = 0;
  for (const json& workload : report.at("workloads")) {
    if (workload.at("verdict") != "PASS") continue;
    const std::string id = workload.at("id").get<std::string>();
    ++passed;
    const json* raw = nullptr;
    for (const json& each : receipt.at("workloads"))
      if (each.at("id") == id) raw = &each.at("raw");
    const auto found = raw != nullptr ? ratio_of(*raw) : std::nullopt;
    const json& said = workload.at("ratio");
    if (!said.is_number() && !found) continue;       // no time was left to measure it
    if (!said.is_number() || !found || !equal(said.get<double>(), *found))
      return contradicts(fmt::format("workload {} has a ratio of {}, its samples give {}", id, said.dump(), found ? json(*found).dump() : "none"));
    logs += std::log(*found);
  }
  const std::size_t total = report.at("workloads").size();
  if (report.at("passed") != passed || report.at("total") != total)
    return contradicts(fmt::format("it says {} of {} workloads passed, they are {} of {}", report["passed"].dump(), report["total"].dump(), passed, total));
  if (!report.at("geomean").is_number()) return {};
  const double mean = std::exp(logs / static_cast<double>(std::max<std::size_t>(passed, 1)));
  if (passed != total || !equal(report["geomean"].get<double>(), mean))
    return contradicts(fmt::format("its geomean is {}, that of the ratios is {}", report["geomean"].dump(), passed == total ? json(mean).dump() : "none"));
  return {};
}

Result<Candidate> candidate_of(const json& receipt) {
  const json& in = receipt.at("candidate");
  if (in.is_null()) return fail(ErrorKind::contract, "the receipt is of the baseline itself, it holds no candidate");
  Candidate out;
  out.name = in.at("name").get<std::string>();
  out.language = in.at("language").get<std::string>();
  out.compiler = in.at("compiler").get<std::string>();
  out.flags = in.at("flags").get<std::vector<std::string>>();
  out.constraints = in.at("constraints").get<std::vector<std::string>>();
  out.notes = in.at("notes").get<std::string>();
  for (const json& parameter : in.at("parameters"))
    out.parameters.push_back({parameter.at("name").get<std::string>(), parameter.at("values").get<std::vector<std::string>>()});
  out.values = in.at("values").get<Parameters>();
  for (const auto& [name, bytes] : in.at("sources").items()) {
    const fs::path file(name);
    if (name.empty() || file.is_absolute() || name != file.lexically_normal().string() || *file.begin() == "..")
      return fail(ErrorKind::contract, "receipt: a source is named {}, which is no relative path", json(name).dump());
    if (bytes.contains("text")) {
      out.sources[name] = bytes["text"].get<std::string>();
    } else {
      auto source = from_hex(bytes.at("hex").get<std::string>());
      if (!source) return fail(ErrorKind::contract, "receipt: the hex of source {} is not pairs of 0-9 and a-f", name);
      out.sources[name] = *std::move(source);
    }
  }
  HONE_TRY(out, out.with({}));                       // recomputes the hash
  if (out.sha256 != in.at("sha256").get<std::string>())
    return fail(make_error(ErrorKind::contract, "the receipt's candidate {} hashes to {}, the receipt says {}", out.name, out.sha256,
                           in.at("sha256").get<std::string>())
                    .with_hint("it was made by another version of hone, or by hand"));
  return out;
}

Result<Verification> verify(const json& receipt, Bench bench, const Progress& progress, const std::atomic<bool>* cancel) {
  const std::string name = receipt.at("task").at("name").get<std::string>();
  const std::string folder = receipt.at("task").at("folder").get<std::string>();
  auto task = load_task(name);
  if (!task && task.error().kind == ErrorKind::not_found) task = load_task(folder);
  if (!task) return fail(task.error());

  Verification out;
  const auto differ = [&](std::string text) { out.differences.push_back(std::move(text)); };
  const std::string task_hash = receipt["task"]["sha256"].get<std::string>();
  if (task->sha256 != task_hash && folder != task->folder.string())
    if (auto other = load_task(folder); other && other->sha256 == task_hash) task = std::move(other);
  const bool same_task = task->sha256 == task_hash;
  if (!same_task)
    differ(fmt::format("task {} has changed: {} then, {} now; the claim was made about another contract", name, task_hash.substr(0, 12),
                       task->sha256.substr(0, 12)));

  JudgeRequest request;
  request.progress = progress;
  request.cancel = cancel;
  if (!receipt.at("candidate").is_null()) {
    HONE_TRY(request.candidate, candidate_of(receipt));
  }
  const json& then = receipt.at("report");
  if (then.at("workloads").size() < task->workloads.size())
    for (const json& workload : then["workloads"]) request.workloads.push_back(workload.at("id").get<std::string>());
  HONE_TRY(out.again, judge(*task, request, bench));

  // Notes: another machine or version may well confirm a claim, but a reader must know.
  std::vector<std::string> notes;
  const DeviceInfo& device = bench.device.info();
  if (receipt.at("device").at("model") != device.model)
    notes.push_back(fmt::format("note: the receipt is of {}, this is {}", receipt["device"]["model"].get<std::string>(), device.model));
  if (receipt.at("hone") != out.again.receipt_body.at("hone")) notes.push_back("note: the receipt was made by hone " + receipt["hone"].get<std::string>());
  const auto compilers = [](const json& body) {
    std::vector<std::string> found;
    const json& binaries = body.at("binaries");
    if (binaries.contains("candidate"))
      for (const json& module : binaries["candidate"].at("modules")) found.push_back(module.at("compiler").get<std::string>());
    return found;
  };
  if (compilers(receipt) != compilers(out.again.receipt_body)) notes.push_back("note: compiled by another compiler than then");

  bool agree = same_task;
  const auto disagree = [&](std::string text) {
    agree = false;
    differ(std::move(text));
  };
  for (const json& before : then["workloads"]) {
    const std::string id = before.at("id").get<std::string>();
    const auto now = std::find_if(out.again.workloads.begin(), out.again.workloads.end(), [&](const WorkloadReport& each) { return each.id == id; });
    if (now == out.again.workloads.end()) {
      disagree(fmt::format("workload {} was not judged again", id));
    } else if (before.at("verdict").get<std::string>() != name_of(now->verdict)) {
      disagree(fmt::format("workload {}: {} then, {} now{}", id, before["verdict"].get<std::string>(), name_of(now->verdict),
                           now->error ? ": " + now->error->message : ""));
    }
  }
  const auto then_ci = interval_of(then.at("geomean_ci"));
  if (then_ci && out.again.geomean_ci) {
    if (apart(*then_ci, *out.again.geomean_ci, task->timing.min_effect))
      disagree(fmt::format("geomean {} then, {} now: the intervals do not meet", show(*then_ci), show(*out.again.geomean_ci)));
  } else if (then.at("geomean").is_number() && !out.again.geomean) {
    disagree("there was a geomean then, there is none now");
  }
  out.confirmed = agree;
  for (std::string& note : notes) differ(std::move(note));
  return out;
}

}  // namespace hone
