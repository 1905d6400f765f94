#include "toolchain/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace hone {
namespace {

constexpr std::string_view kSchema = "hone.artifact/2";
constexpr std::size_t kLargestArtifact = std::size_t{256} << 20;
constexpr std::size_t kMostHeaders = 4096;
constexpr std::string_view kPtx = "kernel.ptx";

// Size and time of a header: enough to see a package upgrade.
std::string stamp_of(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return "missing";
  return fmt::format("{}:{}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

void sync_folder(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

std::optional<Artifact> ArtifactCache::find(const std::string& key) const {
  const fs::path folder = entry(key);
  const auto text = read_file(folder / "meta.json", std::size_t{4} << 20);
  if (!text) return std::nullopt;
  Artifact artifact;
  try {
    const nlohmann::json meta = nlohmann::json::parse(*text);
    if (meta.at("schema") != kSchema || meta.at("key") != key) return std::nullopt;
    artifact.path = folder / meta.at("file").get<std::string>();
    artifact.sha256 = meta.at("sha256").get<std::string>();
    artifact.compiler = meta.at("compiler").get<std::string>();
    artifact.command = meta.at("command").get<std::vector<std::string>>();
    artifact.log = meta.at("log").get<std::string>();
    artifact.seconds = meta.at("seconds").get<double>();
    artifact.resources = meta.at("resources").get<std::vector<KernelResources>>();
    artifact.warnings = meta.at("warnings").get<std::vector<std::string>>();
    if (const std::string ptx_sha256 = meta.at("ptx_sha256").get<std::string>(); !ptx_sha256.empty()) {
      artifact.ptx = folder / kPtx;
      const auto ptx = read_file(artifact.ptx, kLargestArtifact);
      if (!ptx || sha256(*ptx) != ptx_sha256) return std::nullopt;
    }
    for (const auto& [path, stamp] : meta.at("headers").items())
      if (stamp_of(path) != stamp.get<std::string>()) return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  const auto bytes = read_file(artifact.path, kLargestArtifact);
  if (!bytes || sha256(*bytes) != artifact.sha256) return std::nullopt;
  artifact.key = key;
  artifact.cached = true;
  return artifact;
}

Result<FileLock> ArtifactCache::lock(const std::string& key) const {
  HONE_CHECK(make_dirs(dir_ / "locks"));
  return FileLock::acquire(dir_ / "locks" / (key + ".lock"));
}

Result<fs::path> ArtifactCache::scratch(const std::string& key) const {
  static std::atomic<unsigned> count{0};
  const fs::path folder = dir_ / "scratch" / fmt::format("{}.{}.{}", key, ::getpid(), count++);
  HONE_CHECK(remove_tree(folder));
  HONE_CHECK(make_dirs(folder));
  return folder;
}

void ArtifactCache::sweep(const std::string& own_key) const {
  std::error_code code;
  for (fs::directory_iterator it(dir_ / "scratch", code), end; !code && it != end; it.increment(code)) {
    const std::string name = it->path().filename().string();
    const std::string key = name.substr(0, name.find('.'));
    if (key == own_key) {
      (void)remove_tree(it->path());   // our lock is held: its maker is gone
      continue;
    }
    if (const auto held = FileLock::try_acquire(dir_ / "locks" / (key + ".lock"))) (void)remove_tree(it->path());
  }
}

Result<Artifact> ArtifactCache::publish(const std::string& key, const fs::path& scratch, Artifact artifact,
                                        const Product& product, const std::vector<std::string>& headers) const {
  const fs::path made = scratch / "entry", place = entry(key);
  const std::string file = product.kind == ArtifactKind::shared_object ? "kernel.so" : product.kind == ArtifactKind::cubin ? "kernel.cubin" : "program";
  const bool with_ptx = product.kind == ArtifactKind::cubin;
  artifact.key = key;
  artifact.sha256 = sha256(product.bytes);
  artifact.path = place / file;
  if (with_ptx) artifact.ptx = place / kPtx;
  nlohmann::json stamps = nlohmann::json::object();
  for (const std::string& header : headers) stamps[header] = stamp_of(header);
  const nlohmann::json meta = {{"schema", kSchema},
                               {"key", key},
                               {"file", file},
                               {"bytes", product.bytes.size()},
                               {"sha256", artifact.sha256},
                               {"compiler", artifact.compiler},
                               {"command", artifact.command},
                               {"log", artifact.log},
                               {"seconds", artifact.seconds},
                               {"resources", artifact.resources},
                               {"warnings", artifact.warnings},
                               {"ptx_sha256", with_ptx ? sha256(product.ptx) : ""},
                               {"headers", stamps}};
  HONE_CHECK(make_dirs(made));
  HONE_CHECK(make_dirs(place.parent_path()));
  HONE_CHECK(write_file_atomic(made / file, product.bytes, product.kind == ArtifactKind::executable ? 0555 : 0444));
  if (with_ptx) HONE_CHECK(write_file_atomic(made / kPtx, product.ptx, 0444));
  HONE_CHECK(
      write_file_atomic(made / "meta.json", meta.dump(1, ' ', false, nlohmann::json::error_handler_t::replace), 0444));
  // What may lie there is broken or stale (find() said so under the lock); a rename replaces only empty folders.
  ::rename(place.c_str(), (scratch / "replaced").c_str());
  if (::rename(made.c_str(), place.c_str()) != 0)
    return fail(io_error("write", place));
  sync_folder(place.parent_path());
  return artifact;
}

std::vector<std::string> system_headers(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  auto end_word = [&] {
    if (word.starts_with('/') && !word.ends_with(':') && out.size() < kMostHeaders) out.push_back(word);
    word.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      if (text[++i] == '\n') end_word();
      else word += text[i];
    } else if (c == ' ' || c == '\n' || c == '\t') {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  return out;
}

}  // namespace hone
