#include "run/ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kChainDigits = 32;
constexpr std::size_t kMaxLine = std::size_t{4} << 20;
constexpr std::string_view kSchema = "hone.ledger/1";
constexpr std::string_view kChainKey = ",\"chain\":\"";
// A ledger of this size holds some hundred thousand experiments.
constexpr std::size_t kMaxLedger = std::size_t{1} << 30;

std::string chain_of(std::string_view body) { return sha256(body).substr(0, kChainDigits); }

// Splits `{...,"chain":"x"}` into `{...` and x; false when the line does not end so.
bool split_line(std::string_view line, std::string_view& body, std::string_view& chain) {
  const std::size_t tail = kChainKey.size() + kChainDigits + 2;
  if (line.size() <= tail) return false;
  const std::string_view end = line.substr(line.size() - tail);
  if (end.substr(0, kChainKey.size()) != kChainKey || end.substr(end.size() - 2) != "\"}") return false;
  body = line.substr(0, line.size() - tail);
  chain = end.substr(kChainKey.size(), kChainDigits);
  return true;
}

Error ledger_error(std::string_view action, const fs::path& path, int code = errno) {
  Error error = io_error(action, path, code);
  if (code == ENOSPC || code == EDQUOT) error.hint += ", then go on with `hone run --resume`";
  return error;
}

struct Locked {
  explicit Locked(int file) : fd(file) {
    while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {}
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { ::flock(fd, LOCK_UN); }
  int fd;
};

bool read_row(const json& value, LedgerRow& row) {
  if (!value.is_object()) return false;
  const auto seq = value.find("seq"), time = value.find("time"), kind = value.find("kind"), elapsed = value.find("elapsed_s");
  if (seq == value.end() || !seq->is_number_integer() || time == value.end() || !time->is_string() || kind == value.end() ||
      !kind->is_string() || elapsed == value.end() || !elapsed->is_number() || !value.contains("data") ||
      !value["data"].is_object())
    return false;
  row.seq = seq->get<std::int64_t>();
  row.time = time->get<std::string>();
  row.kind = kind->get<std::string>();
  row.elapsed_s = elapsed->get<double>();
  row.data = value["data"];
  return row.seq > 0 && std::isfinite(row.elapsed_s) && row.elapsed_s >= 0;
}

// Parses whole lines from `text`, going on from what `into` already holds.
void parse_lines(std::string_view text, const std::string& file, int first_line, LedgerText& into) {
  int number = first_line;
  bool previous_known = true;   // a damaged line says nothing reliable about its successor
  for (;; ++number) {
    const std::size_t newline = text.find('\n');
    if (newline == std::string_view::npos) break;
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline + 1);
    into.whole_bytes += newline + 1;
    auto fault = [&](std::string message) {
      into.faults.push_back(make_error(ErrorKind::contract, "ledger line is {}", message)
                                .at({file, number, 0})
                                .with_hint("this row is left out; the others are intact"));
    };
    std::string_view body, chain;
    if (line.size() > kMaxLine) {
      fault(fmt::format("longer than {} bytes", kMaxLine));
      previous_known = false;
      continue;
    }
    if (!split_line(line, body, chain) || chain_of(body) != chain) {
      fault("damaged: its content does not match its own hash");
      previous_known = false;
      continue;
    }
    const json value = json::parse(std::string(body) + "}", nullptr, false);
    LedgerRow row;
    if (value.is_discarded() || !read_row(value, row)) {
      fault("not a row: seq, time, kind, elapsed_s and data are needed");
      previous_known = false;
      continue;
    }
    if (row.seq <= into.last_seq) {
      fault(fmt::format("out of order: row {} after row {}", row.seq, into.last_seq));
      previous_known = false;
      continue;
    }
    const std::string prev = value.contains("prev") && value["prev"].is_string() ? value["prev"].get<std::string>() : "";
    if (previous_known && (prev != into.last_chain || row.seq != into.last_seq + 1))
      into.faults.push_back(make_error(ErrorKind::contract, "ledger rows between {} and {} are missing or were replaced",
                                       into.last_seq, row.seq)
                                .at({file, number, 0})
                                .with_hint("the rows that are there are intact"));
    into.last_seq = row.seq;
    into.last_chain = std::string(chain);
    into.rows.push_back(std::move(row));
    previous_known = true;
  }
  into.torn_bytes = text.size();
}

}  // namespace

LedgerText parse_ledger(std::string_view text, const std::string& file) {
  LedgerText ledger;
  parse_lines(text, file, 1, ledger);
  return ledger;
}

Result<LedgerText> read_ledger(const fs::path& path) {
  std::error_code code;
  if (!fs::exists(path, code)) return LedgerText{};
  HONE_TRY(const std::string text, read_file(path, kMaxLedger));
  return parse_ledger(text, path.string());
}

Result<Ledger> Ledger::open(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return fail(ledger_error("open", path));
  Ledger ledger(path, fd);
  const Locked lock(fd);
  HONE_CHECK(ledger.catch_up());
  return ledger;
}

Ledger::Ledger(Ledger&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), text_(std::move(other.text_)), owned_(other.owned_),
      bytes_(std::move(other.bytes_)) {}

Ledger::~Ledger() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> Ledger::catch_up() {
  struct stat info = {};
  if (::fstat(fd_, &info) != 0) return fail(ledger_error("read", path_));
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == text_.whole_bytes) return {};
  HONE_TRY(const std::string text, read_file(path_, kMaxLedger));
  text_ = parse_ledger(text, path_.string());
  if (text_.torn_bytes == 0) return {};
  // A writer was killed inside write(2), or the disk filled up. Its row was never acknowledged.
  const std::string tail = text.substr(text_.whole_bytes);
  const fs::path aside = path_.parent_path() / "ledger.torn";
  const int torn = ::open(aside.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (torn < 0) return fail(ledger_error("write", aside));
  const ssize_t kept = ::write(torn, tail.data(), tail.size());
  ::close(torn);
  if (kept != static_cast<ssize_t>(tail.size())) return fail(ledger_error("write", aside));
  if (::ftruncate(fd_, static_cast<off_t>(text_.whole_bytes)) != 0) return fail(ledger_error("mend", path_));
  text_.torn_bytes = 0;
  const double elapsed = text_.rows.empty() ? 0 : text_.rows.back().elapsed_s;
  HONE_TRY(const LedgerRow note,
           write_row("note", elapsed,
                     {{"text", fmt::format("a row torn by a kill ({} bytes) was moved to ledger.torn", tail.size())}}));
  (void)note;
  return {};
}

Result<> Ledger::own() {
  const Locked lock(fd_);
  HONE_CHECK(catch_up());
  HONE_TRY(bytes_, read_file(path_, kMaxLedger));
  owned_ = true;
  return {};
}

bool Ledger::intact() const {
  struct stat here = {}, there = {};
  if (::fstat(fd_, &here) != 0 || ::lstat(path_.c_str(), &there) != 0 || here.st_ino != there.st_ino || here.st_dev != there.st_dev) return false;
  const auto now = read_file(path_, kMaxLedger);
  return now && *now == bytes_;
}

Result<bool> Ledger::mend(double elapsed_s) {
  if (!owned_ || intact()) return false;
  std::error_code code;
  const fs::path aside = path_.parent_path() / "ledger.altered";
  HONE_CHECK(remove_tree(aside));
  fs::rename(path_, aside, code);
  const bool missing = static_cast<bool>(code);
  HONE_CHECK(write_file_atomic(path_, bytes_));
  const int fd = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (fd < 0) return fail(ledger_error("open", path_));
  ::close(std::exchange(fd_, fd));
  const Locked lock(fd_);
  HONE_CHECK(write_row("record_restored", elapsed_s,
                       {{"path", path_.filename().string()},
                        {"what", missing ? "it was removed" : "it was changed; what lay there is kept as ledger.altered"}}));
  return true;
}

Result<LedgerRow> Ledger::append(const std::string& kind, double elapsed_s, json data) {
  if (owned_) {
    HONE_CHECK(mend(elapsed_s));
    const Locked lock(fd_);
    return write_row(kind, elapsed_s, std::move(data));
  }
  const Locked lock(fd_);
  struct stat now = {};
  if (::fstat(fd_, &now) == 0 && now.st_nlink == 0)
    return fail(make_error(ErrorKind::io, "the ledger was removed while the run went on").at({path_.string()}).with_hint("its receipts, if they are still there, can be judged again with `hone verify`"));
  HONE_CHECK(catch_up());
  return write_row(kind, elapsed_s, std::move(data));
}

Result<LedgerRow> Ledger::write_row(const std::string& kind, double elapsed_s, json data) {
  LedgerRow row;
  // Numbers go on after lines that were damaged, too: each of them had one.
  row.seq = text_.last_seq + 1;
  row.time = utc_timestamp();
  row.kind = kind;
  row.elapsed_s = std::round(elapsed_s * 1000) / 1000;
  row.data = std::move(data);
  const json value = {{"schema", kSchema}, {"seq", row.seq},   {"time", row.time}, {"kind", row.kind},
                      {"elapsed_s", row.elapsed_s}, {"data", row.data}, {"prev", text_.last_chain}};
  // Text from candidates and compilers may not be UTF-8; it must not make the ledger unreadable.
  std::string body = value.dump(-1, ' ', false, json::error_handler_t::replace);
  body.pop_back();
  const std::string chain = chain_of(body);
  const std::string line = body + std::string(kChainKey) + chain + "\"}\n";
  if (line.size() > kMaxLine)
    return fail(ErrorKind::internal, "a ledger row of {} bytes is larger than the limit of {}", line.size(), kMaxLine);
  ssize_t written;
  do written = ::write(fd_, line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(line.size())) {
    const int code = written < 0 ? errno : ENOSPC;
    if (written > 0 && ::ftruncate(fd_, static_cast<off_t>(text_.whole_bytes)) != 0) return fail(ledger_error("mend", path_));
    return fail(ledger_error("write", path_, code));
  }
  if (::fdatasync(fd_) != 0) return fail(ledger_error("sync", path_));
  text_.whole_bytes += line.size();
  if (owned_) bytes_ += line;
  text_.last_seq = row.seq;
  text_.last_chain = chain;
  text_.rows.push_back(row);
  return row;
}

}  // namespace hone
