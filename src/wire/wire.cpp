#include "wire/wire.h"

#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"

namespace hone::wire {
namespace {

using nlohmann::json;

// What read_tree would have refused in a folder.
Result<> check_name(const std::string& name) {
  const fs::path path(name);
  const bool plain = !name.empty() && name.size() <= 512 && path.is_relative() && name == path.lexically_normal().string() &&
                     std::none_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; }) &&
                     std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part.empty() || part.string().starts_with('.'); });
  if (plain) return {};
  return fail(make_error(ErrorKind::contract, "files: {} is no name of a file", json(name).dump(-1, ' ', true, json::error_handler_t::replace))
                  .with_hint("a relative path in which no part is hidden, `..` or empty"));
}

}  // namespace

Result<> check_job(const json& body) {
  struct Texts {
    std::string job;
    std::map<std::string, std::string> requests;   // by kind
  };
  static const Result<Texts> schemas = []() -> Result<Texts> {
    HONE_TRY(const fs::path share, share_dir());
    Texts out;
    HONE_TRY(out.job, read_file(share / "schema" / "job.json"));
    const json whole = json::parse(out.job);
    for (const char* kind : {"bench", "compile", "inspect", "profile", "sanitize", "exec"})
      out.requests[kind] = json{{"$ref", std::string("#/definitions/") + kind}, {"definitions", whole["definitions"]}}.dump();
    return out;
  }();
  if (!schemas) return fail(schemas.error());
  HONE_CHECK(check_schema(body, schemas->job, "job"));
  const auto own = schemas->requests.find(body["kind"].get<std::string>());
  return own == schemas->requests.end() ? Result<>() : check_schema(body["request"], own->second, "request");
}

json candidate_json(const Candidate& candidate) {
  json files = json::object();
  for (const auto& [name, bytes] : frozen_files(candidate)) files[name] = is_utf8(bytes) ? json(bytes) : json{{"hex", to_hex(bytes)}};
  return {{"name", candidate.name}, {"files", std::move(files)}};
}

Result<Candidate> candidate_from_json(const json& in) {
  const TreeLimits limits;
  SourceTree files;
  std::size_t bytes = 0;
  for (const auto& [name, content] : in.at("files").items()) {
    HONE_CHECK(check_name(name));
    if (content.is_string()) {
      files[name] = content.get<std::string>();
    } else if (content.contains("file")) {
      HONE_TRY(files[name], read_file(content.at("file").get<std::string>(), limits.bytes));
      if (sha256(files[name]) != content.at("sha256").get<std::string>()) {
        (void)remove_tree(content.at("file").get<std::string>());   // so that it can be put again
        return fail(make_error(ErrorKind::contract, "files.{}: the blob was damaged on the service's disk", name).with_hint("submit again: it is sent anew"));
      }
    } else if (!content.contains("hex")) {
      return fail(ErrorKind::contract, "files.{}: the blob is not here", name);
    } else {
      auto bytes_of_file = from_hex(content.at("hex").get<std::string>());
      if (!bytes_of_file) return fail(ErrorKind::contract, "files.{}: hex is not pairs of 0-9 and a-f", name);
      files[name] = *std::move(bytes_of_file);
    }
    bytes += files[name].size();
  }
  if (files.size() > limits.files) return fail(ErrorKind::contract, "files: {} files are more than {}", files.size(), limits.files);
  if (bytes > limits.bytes)
    return fail(ErrorKind::contract, "files: {} are more than {}", format_bytes(bytes), format_bytes(limits.bytes));
  HONE_TRY(Candidate candidate, candidate_from_files(in.at("name").get<std::string>(), std::move(files), {}));
  if (const auto values = in.find("values"); values != in.end()) return candidate.with(values->get<Parameters>());
  return candidate;
}

json bench_request(const Task& task, const JudgeRequest& request) {
  json out = {{"task", task.name}, {"task_sha256", task.sha256}};
  if (request.candidate) out["candidate"] = candidate_json(*request.candidate);
  if (request.incumbent) out["incumbent"] = candidate_json(*request.incumbent);
  if (!request.workloads.empty()) out["workloads"] = request.workloads;
  if (request.seed) out["seed"] = *request.seed;
  if (request.time_budget_s) out["time_budget_s"] = *request.time_budget_s;
  if (request.samples) out["samples"] = *request.samples;
  if (request.memory_bytes) out["memory_bytes"] = *request.memory_bytes;
  if (!request.baselines.empty()) out["baselines"] = request.baselines;
  if (request.quick) out["quick"] = true;
  return out;
}

Result<JudgeRequest> judge_request_from(const json& in) {
  JudgeRequest out;
  for (const auto& [key, side] : {std::pair{"candidate", &out.candidate}, std::pair{"incumbent", &out.incumbent}})
    if (const auto found = in.find(key); found != in.end()) {
      HONE_TRY(*side, candidate_from_json(*found));
    }
  const auto take = [&]<class T>(const char* key, std::optional<T>& value) {
    if (const auto found = in.find(key); found != in.end()) value = found->get<T>();
  };
  take("seed", out.seed);
  take("time_budget_s", out.time_budget_s);
  take("samples", out.samples);
  take("memory_bytes", out.memory_bytes);
  out.workloads = in.value("workloads", std::vector<std::string>());
  out.baselines = in.value("baselines", std::map<std::string, std::string>());
  out.quick = in.value("quick", false);
  return out;
}

Result<Task> task_from(const json& in) {
  const std::string name = in.at("task").get<std::string>();
  const std::vector<std::string> known = task_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {   // never a path
    const std::string near = nearest(name, known);
    return fail(make_error(ErrorKind::not_found, "the service has no task {}", name)
                    .with_hint(near.empty() ? fmt::format("it has {}", fmt::join(known, ", ")) : fmt::format("did you mean {}?", near)));
  }
  HONE_TRY(Task task, load_task(name));
  if (const auto theirs = in.find("task_sha256"); theirs != in.end() && theirs->get<std::string>() != task.sha256)
    return fail(make_error(ErrorKind::conflict, "task {} is another one here: its hash is {} on the service and {} with you", name,
                           task.sha256.substr(0, 12), theirs->get<std::string>().substr(0, 12))
                    .with_hint("install the same version of hone on both sides; measurements of two contracts cannot be compared"));
  return task;
}

}  // namespace hone::wire
