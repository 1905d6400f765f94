#include "run/manifest.h"

#include "base/yaml.h"

namespace hone {

using nlohmann::json;

Result<std::string> schema_text(const std::string& name) {
  HONE_TRY(const fs::path share, share_dir());
  return read_file(share / "schema" / (name + ".json"));
}

Result<> write_manifest(const Manifest& manifest, const fs::path& path) {
  json compilers = json::array();
  for (const CompilerInfo& each : manifest.compilers)
    compilers.push_back({{"name", each.name}, {"path", each.path}, {"version", each.version}});
  const json value = {
      {"schema", "hone.manifest/1"},
      {"name", manifest.name},
      {"created", manifest.created},
      {"task", {{"name", manifest.task}, {"sha256", manifest.task_sha256}, {"source", manifest.task_source}}},
      {"judge", {{"version", manifest.judge_version}, {"sha256", manifest.judge_sha256}}},
      {"remote", manifest.remote.empty() ? json() : json(manifest.remote)},
      {"device", manifest.device},
      {"compilers", compilers},
      {"sources", manifest.sources},
      {"target", manifest.target ? json(*manifest.target) : json()},
      {"budget", manifest.budget},
      {"seed", manifest.seed},
  };
  HONE_TRY(const std::string schema, schema_text("manifest"));
  HONE_CHECK(check_schema(value, schema, "the run's manifest", {path.string()}));
  return write_file_atomic(path, value.dump(2) + "\n");
}

Result<Manifest> read_manifest(const fs::path& path) {
  HONE_TRY(const std::string text, read_file(path, std::size_t{16} << 20));
  HONE_TRY(const std::string schema, schema_text("manifest"));
  const json value = json::parse(text, nullptr, false);
  if (value.is_discarded())
    return fail(make_error(ErrorKind::contract, "{} is not JSON", path.string())
                    .at({path.string()})
                    .with_hint("it is written once by `hone init`; restore it or make a new run"));
  HONE_CHECK(check_schema(value, schema, "the run's manifest", {path.string()}));
  Manifest manifest;
  manifest.name = value["name"].get<std::string>();
  manifest.created = value["created"].get<std::string>();
  manifest.task = value["task"]["name"].get<std::string>();
  manifest.task_sha256 = value["task"]["sha256"].get<std::string>();
  manifest.task_source = value["task"]["source"].get<std::string>();
  manifest.judge_version = value["judge"]["version"].get<std::string>();
  manifest.judge_sha256 = value["judge"]["sha256"].get<std::string>();
  if (value.contains("remote") && value["remote"].is_string()) manifest.remote = value["remote"].get<std::string>();
  manifest.device = value["device"];
  for (const json& each : value["compilers"])
    manifest.compilers.push_back({each["name"].get<std::string>(), each["path"].get<std::string>(), each["version"].get<std::string>()});
  manifest.sources = value["sources"].get<std::map<std::string, std::string>>();
  if (!value["target"].is_null()) manifest.target = value["target"].get<double>();
  manifest.budget = value["budget"].get<Budget>();
  manifest.seed = value["seed"].get<std::uint64_t>();
  return manifest;
}

}  // namespace hone
