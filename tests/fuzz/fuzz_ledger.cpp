// Ledgers: any bytes are read without a crash, nothing is lost from the count, and every reader of
// rows copes with what they hold.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "run/frontier.h"
#include "run/ledger.h"
#include "run/progress.h"
#include "run/report.h"

namespace {

void read(const std::string& text) {
  hone::Summary summary;
  summary.ledger = hone::parse_ledger(text, "ledger.jsonl");
  if (summary.ledger.whole_bytes + summary.ledger.torn_bytes != text.size()) std::abort();
  summary.progress = hone::progress_of(summary.ledger.rows);
  summary.frontier = hone::frontier_of(summary.ledger.rows);
  const hone::Recorded* best = summary.progress.best();
  if (best != nullptr && best->experiment.passed != best->experiment.total) std::abort();
  (void)hone::status_json(summary).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  (void)hone::report_json(summary).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  (void)hone::status_text(summary);
  (void)hone::report_markdown(summary);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read(text);
  // The same lines with right hashes, which a fuzzer would not find: what the rows hold is read too.
  std::string sealed;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t chain = line.rfind(",\"chain\":\"");
    std::string body = chain == std::string::npos ? line : line.substr(0, chain);
    sealed += body + ",\"chain\":\"" + hone::sha256(body).substr(0, 32) + "\"}\n";
  }
  read(sealed);
  return 0;
}
