#include "flow/books.h"

#include <algorithm>

#include "base/clock.h"
#include "base/hash.h"
#include "run/frontier.h"

namespace hone {

Result<std::unique_ptr<Books>> Books::open(const Run& run, Ledger ledger, const std::map<std::string, std::string>& shown, double before_s) {
  HONE_TRY(Safe safe, Safe::create());
  std::unique_ptr<Books> books(new Books(run, std::move(ledger), std::move(safe)));
  HONE_CHECK(books->ledger_.own());
  books->before_s_ = std::max(before_s, progress_of(books->ledger_.rows()).elapsed_s);
  books->began_s_ = now_s();
  for (const auto& [path, bytes] : shown) {
    // Of another release of Hone: what `hone init` put there is not known any more.
    const auto first = run.manifest.sources.find(path);
    if (path.starts_with("candidates/") || first == run.manifest.sources.end() || first->second != sha256(bytes)) continue;
    const fs::path file = run.worktree() / path;
    if (const auto now = read_file(file); !now || *now != bytes) {
      std::error_code code;
      if (fs::exists(fs::symlink_status(file, code)) && !fs::is_regular_file(fs::symlink_status(file, code))) HONE_CHECK(remove_tree(file));
      HONE_CHECK(make_dirs(file.parent_path()));
      HONE_CHECK(write_file_atomic(file, bytes));
      HONE_CHECK(books->ledger_.append("record_restored", books->before_s_,
                                       {{"path", "worktree/" + path}, {"what", "it was not as `hone init` had written it"}}));
    }
    HONE_CHECK(books->safe_.keep(file));
  }
  for (const char* each : {"manifest.json", "PROMPT.md", "flowverse.yaml"}) {
    std::error_code code;
    if (fs::is_regular_file(run.root / each, code)) HONE_CHECK(books->safe_.keep(run.root / each));
  }
  HONE_CHECK(books->safe_.keep_folder(run.root / "agents"));
  HONE_CHECK(books->mend());
  return books;
}

Result<LedgerRow> Books::append(const std::string& kind, nlohmann::json data) {
  const auto held = hold();
  return ledger_.append(kind, elapsed_s(), std::move(data));
}

RunProgress Books::progress() {
  const auto held = hold();
  return progress_of(ledger_.rows());
}

Result<> Books::mend() {
  const auto held = hold();
  HONE_CHECK(mend_held());
  return sync_frontier(run_, ledger_.rows(), "Frontier as the ledger says");
}

Result<> Books::mend_held() {
  HONE_CHECK(ledger_.mend(elapsed_s()));
  HONE_TRY(const auto mended, safe_.mend());
  for (const fs::path& each : mended)
    HONE_CHECK(ledger_.append("record_restored", elapsed_s(),
                              {{"path", each.lexically_relative(run_.root).string()}, {"what", "it was changed or removed"}}));
  // New receipts are the launcher's own: nobody else's are named by a row.
  for (const LedgerRow& row : ledger_.rows()) {
    if (row.seq <= kept_rows_) continue;
    kept_rows_ = row.seq;
    const auto receipt = row.data.find("receipt");
    if (receipt == row.data.end() || !receipt->is_string() || receipt->get<std::string>().empty()) continue;
    std::error_code code;
    const fs::path file = run_.receipts() / (receipt->get<std::string>() + ".json");
    if (fs::is_regular_file(file, code)) HONE_CHECK(safe_.keep(file));
  }
  return {};
}

double Books::elapsed_s() const {
  const std::lock_guard held(clock_);
  return stopped_ ? before_s_ : before_s_ + now_s() - began_s_;
}

void Books::stop_clock() {
  const std::lock_guard held(clock_);
  if (stopped_) return;
  before_s_ += now_s() - began_s_;
  stopped_ = true;
}

void Books::start_clock() {
  const std::lock_guard held(clock_);
  if (!stopped_) return;
  began_s_ = now_s();
  stopped_ = false;
}

}  // namespace hone
