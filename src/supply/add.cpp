#include "supply/add.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "client/url.h"
#include "supply/download.h"
#include "supply/index.h"
#include "supply/unpack.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr const char* kRecord = "hone.json";   // in the toolkit's root: what it was made of
constexpr std::uint64_t kSpare = std::uint64_t{64} << 20;

json record_of(const Toolkit& toolkit) {
  json wheels = json::array();
  for (const Wheel& wheel : toolkit.wheels) wheels.push_back({{"file", wheel.file}, {"sha256", wheel.sha256}});
  return {{"schema", "hone.toolkit/1"}, {"name", toolkit.name}, {"version", toolkit.version}, {"licence", toolkit.licence},
          {"licence_url", toolkit.licence_url}, {"wheels", std::move(wheels)}};
}

Result<> check_space(const Toolkit& toolkit, const fs::path& work) {
  std::error_code code;
  std::uint64_t have = fs::space(work, code).available, need = toolkit.download_bytes() + toolkit.unpacked_bytes + kSpare;
  if (code) return {};                     // the writes will tell
  for (const Wheel& wheel : toolkit.wheels)
    for (const char* suffix : {"", ".part"})
      if (const std::uintmax_t there = fs::file_size(work / (wheel.file + suffix), code); !code) have += there;
  if (have >= need) return {};
  return fail(make_error(ErrorKind::io, "{} needs {} of disk at {}, which has {}", toolkit.name, format_bytes(need),
                         work.parent_path().string(), format_bytes(have))
                  .with_hint("free some space, or set HONE_HOME to a folder on another disk"));
}

// Everything below the folder reaches the disk before its name does.
void sync_tree(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::syncfs(fd);
  ::close(fd);
}

// `fresh` takes the place of `root`. Where both exist they change names at once, if the file system can do that.
Result<> put_in_place(const fs::path& fresh, const fs::path& root, const fs::path& old) {
  constexpr unsigned kExchange = 2;        // RENAME_EXCHANGE
  if (::syscall(SYS_renameat2, AT_FDCWD, fresh.c_str(), AT_FDCWD, root.c_str(), kExchange) == 0) return remove_tree(fresh);
  std::error_code code;
  if (fs::exists(root, code)) {
    fs::rename(root, old, code);
    if (code) return fail(io_error("rename", root, code.value()));
  }
  fs::rename(fresh, root, code);
  if (code) return fail(io_error("rename", fresh, code.value()));
  return {};
}

}  // namespace

bool is_added(const Toolkit& toolkit, const fs::path& toolchains) {
  const fs::path root = toolchains / toolkit.root_name();
  if (::access((root / toolkit.proof).c_str(), R_OK) != 0) return false;
  const auto text = read_file(root / kRecord, std::size_t{1} << 20);
  return text && json::parse(*text, nullptr, false) == record_of(toolkit);
}

Result<Added> add_toolkit(const Toolkit& toolkit, const AddOptions& options) {
  const fs::path root = options.toolchains / toolkit.root_name(), work = options.toolchains / ("." + toolkit.name);
  if (is_added(toolkit, options.toolchains)) return Added{root, true};
  HONE_TRY(client::Url index, client::parse_url(options.index));
  HONE_CHECK(make_dirs(work));
  auto lock = FileLock::try_acquire(options.toolchains / ("." + toolkit.name + ".lock"));
  if (!lock) return fail(make_error(ErrorKind::io, "another process is adding {}", toolkit.name).with_hint("wait until it has ended"));
  if (is_added(toolkit, options.toolchains)) return Added{root, true};
  HONE_CHECK(check_space(toolkit, work));

  const auto say = [&](const std::string& line) {
    if (options.progress) options.progress(line);
  };
  Fetching how;
  how.cancel = options.cancel;
  how.idle_s = options.idle_s;
  how.pause_s = options.pause_s;
  std::uint64_t done = 0;
  for (const Wheel& wheel : toolkit.wheels) {
    how.progress = [&](std::uint64_t bytes) {
      say(fmt::format("fetching {}: {} {} of {}", toolkit.name, wheel.project, format_bytes(done + bytes),
                      format_bytes(toolkit.download_bytes())));
    };
    say(fmt::format("fetching {}: {}", toolkit.name, wheel.project));
    if (!is_fetched(wheel, work / wheel.file)) {
      client::Url page = index;
      page.path += "/" + wheel.project + "/";
      HONE_TRY(const std::string html, fetch_page(page, how));
      HONE_TRY(const client::Url url, find_in_page(html, page, wheel.file));
      HONE_CHECK(fetch_wheel(url, wheel, work / wheel.file, how));
    }
    done += wheel.bytes;
  }

  const fs::path fresh = work / "fresh", old = work / "old";
  for (const fs::path& left : {fresh, old}) HONE_CHECK(remove_tree(left));
  HONE_CHECK(make_dirs(fresh));
  for (const Wheel& wheel : toolkit.wheels) {
    say(fmt::format("unpacking {}: {}", toolkit.name, wheel.project));
    HONE_CHECK(unpack_wheel(work / wheel.file, toolkit.folder, toolkit.below, fresh, options.cancel));
  }
  if (::access((fresh / toolkit.proof).c_str(), R_OK) != 0)
    return fail(ErrorKind::environment, "the packages of {} hold no {}", toolkit.name, toolkit.proof);
  HONE_CHECK(write_file_atomic(fresh / kRecord, record_of(toolkit).dump(2) + "\n"));
  sync_tree(fresh);
  HONE_CHECK(put_in_place(fresh, root, old));
  sync_tree(options.toolchains);
  HONE_CHECK(remove_tree(work));
  return Added{root, false};
}

}  // namespace hone
