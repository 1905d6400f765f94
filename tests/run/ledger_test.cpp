#include "run/ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/yaml.h"
#include "run/manifest.h"
#include "testing/testing.h"

namespace hone {
namespace {

using nlohmann::json;

void append_bytes(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::app | std::ios::binary) << bytes; }

fs::path ledger_with(const std::string& name, int rows) {
  const fs::path path = testing::scratch(name) / "ledger.jsonl";
  auto ledger = Ledger::open(path);
  EXPECT_TRUE(ledger.has_value());
  for (int i = 1; i <= rows; ++i) EXPECT_TRUE(ledger->append("note", i, {{"text", fmt::format("row {}", i)}}).has_value());
  return path;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at + 1));
    at = end + 1;
  }
  return lines;
}

TEST(Ledger, KeepsRowsInOrderAndFollowsItsSchema) {
  const fs::path path = ledger_with("order", 3);
  const auto ledger = read_ledger(path);
  HONE_ASSERT_OK(ledger);
  EXPECT_TRUE(ledger->faults.empty());
  ASSERT_EQ(ledger->rows.size(), 3u);
  EXPECT_EQ(ledger->rows[2].seq, 3);
  EXPECT_EQ(ledger->rows[2].data["text"], "row 3");
  EXPECT_EQ(ledger->rows[2].elapsed_s, 3);
  const auto schema = schema_text("ledger");
  HONE_ASSERT_OK(schema);
  for (const std::string& line : lines_of(read_file(path).value())) {
    const auto checked = check_schema(json::parse(line), *schema, "row");
    HONE_ASSERT_OK(checked);
  }
}

TEST(Ledger, MissingFileIsAnEmptyLedger) {
  const auto ledger = read_ledger(testing::scratch("missing") / "ledger.jsonl");
  HONE_ASSERT_OK(ledger);
  EXPECT_TRUE(ledger->rows.empty());
}

TEST(Ledger, TornTailIsMovedAsideAndNoted) {
  const fs::path path = ledger_with("torn", 2);
  const std::string whole = read_file(path).value();
  const std::string third = lines_of(whole)[1].substr(0, 40);
  append_bytes(path, third);
  const auto seen = read_ledger(path);   // a reader does not mend
  HONE_ASSERT_OK(seen);
  EXPECT_EQ(seen->rows.size(), 2u);
  EXPECT_EQ(seen->torn_bytes, 40u);
  auto ledger = Ledger::open(path);
  HONE_ASSERT_OK(ledger);
  ASSERT_EQ(ledger->rows().size(), 3u);
  EXPECT_EQ(ledger->rows()[2].kind, "note");
  EXPECT_NE(ledger->rows()[2].data["text"].get<std::string>().find("40 bytes"), std::string::npos);
  EXPECT_EQ(read_file(path.parent_path() / "ledger.torn").value(), third);
  EXPECT_TRUE(read_ledger(path)->faults.empty());
}

TEST(Ledger, EveryCutLeavesAllWholeRowsReadable) {
  const fs::path path = ledger_with("cuts", 4);
  const std::string whole = read_file(path).value();
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const LedgerText ledger = parse_ledger(std::string_view(whole).substr(0, cut), "ledger.jsonl");
    EXPECT_TRUE(ledger.faults.empty()) << cut;
    EXPECT_EQ(ledger.whole_bytes + ledger.torn_bytes, cut);
    EXPECT_EQ(ledger.rows.size(), static_cast<std::size_t>(std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut), '\n')));
  }
}

TEST(Ledger, EveryEditedByteIsNoticedAndOnlyItsRowIsLost) {
  const fs::path path = ledger_with("edited", 3);
  const std::string whole = read_file(path).value();
  const auto lines = lines_of(whole);
  for (std::size_t at = 0; at < lines[1].size() - 1; ++at) {
    std::string edited = lines[1];
    edited[at] = edited[at] == '7' ? '8' : '7';
    const LedgerText ledger = parse_ledger(lines[0] + edited + lines[2], "ledger.jsonl");
    ASSERT_EQ(ledger.faults.size(), 1u) << at;
    EXPECT_EQ(ledger.faults[0].place.line, 2);
    ASSERT_EQ(ledger.rows.size(), 2u);
    EXPECT_EQ(ledger.rows[1].seq, 3);
  }
}

TEST(Ledger, RemovedRowsAreNoticed) {
  const auto lines = lines_of(read_file(ledger_with("removed", 4)).value());
  const LedgerText ledger = parse_ledger(lines[0] + lines[3], "ledger.jsonl");
  ASSERT_EQ(ledger.faults.size(), 1u);
  EXPECT_NE(ledger.faults[0].message.find("between 1 and 4"), std::string::npos);
  EXPECT_EQ(ledger.rows.size(), 2u);
  const LedgerText swapped = parse_ledger(lines[1] + lines[0], "ledger.jsonl");
  EXPECT_FALSE(swapped.faults.empty());
}

TEST(Ledger, GoesOnAfterADamagedLine) {
  const fs::path path = ledger_with("goes_on", 2);
  append_bytes(path, "not a row at all\n");
  auto ledger = Ledger::open(path);
  HONE_ASSERT_OK(ledger);
  EXPECT_EQ(ledger->faults().size(), 1u);
  HONE_ASSERT_OK(ledger->append("note", 9, {{"text", "after"}}));
  const auto again = read_ledger(path);
  HONE_ASSERT_OK(again);
  EXPECT_EQ(again->rows.back().data["text"], "after");
  EXPECT_EQ(again->faults.size(), 1u);
}

TEST(Ledger, TextThatIsNotUtf8DoesNotMakeItUnreadable) {
  const fs::path path = testing::scratch("utf8") / "ledger.jsonl";
  auto ledger = Ledger::open(path);
  HONE_ASSERT_OK(ledger);
  HONE_ASSERT_OK(ledger->append("note", 0, {{"text", "\xff\xfe\n\"\\ \x01"}}));
  const auto read = read_ledger(path);
  HONE_ASSERT_OK(read);
  EXPECT_TRUE(read->faults.empty());
  EXPECT_EQ(read->rows.size(), 1u);
}

TEST(Ledger, WritersOfTwoProcessesShareOneChain) {
  const fs::path path = testing::scratch("two") / "ledger.jsonl";
  constexpr int kRows = 40;
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto ledger = Ledger::open(path);
      bool ok = ledger.has_value();
      for (int i = 0; ok && i < kRows; ++i) ok = ledger->append("note", i, {{"text", std::string(3000, 'x')}}).has_value();
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  const auto ledger = read_ledger(path);
  HONE_ASSERT_OK(ledger);
  EXPECT_TRUE(ledger->faults.empty());
  EXPECT_EQ(ledger->rows.size(), 3u * kRows);
  EXPECT_EQ(ledger->last_seq, 3 * kRows);
}

TEST(Ledger, FullDiskIsAnErrorAndLeavesTheLedgerWhole) {
  auto full = Ledger::open("/dev/full");
  if (full) HONE_EXPECT_ERROR(full->append("note", 0, {{"text", "x"}}), io);
}

}  // namespace
}  // namespace hone
