// Any program: the prompt on standard input or in a file, its exit code as its word.
//
// `{prompt}` among the arguments becomes the path of a file that holds the prompt; then standard input is empty.
#include "driver/program.h"
#include "driver/text.h"

namespace hone {
namespace {

class CommandDialect : public Dialect {
 public:
  CommandDialect(const Turn& turn, bool from_stdin) : Dialect(turn), from_stdin_(from_stdin) { heard_.success = true; }
  bool line(std::string_view text) override {
    heard_.last_text = clip(text);
    tell(EventKind::text, text);
    return true;
  }
  std::string to_send() override { return from_stdin_ && !std::exchange(sent_, true) ? turn_.prompt : std::string(); }
  bool stderr_is_life() const override { return true; }

 private:
  bool from_stdin_, sent_ = false;
};

class CommandDriver : public Driver {
 public:
  explicit CommandDriver(const AgentSpec& spec) : argv_(words_of(spec.program)) {}
  Result<TurnResult> run(const Turn& turn) override {
    ChildSpec spec{argv_};
    bool from_stdin = true;
    std::optional<ScratchDir> scratch;
    for (std::string& word : spec.argv) {
      const std::size_t mark = word.find("{prompt}");
      if (mark == std::string::npos) continue;
      if (!scratch) {
        HONE_TRY(auto made, ScratchDir::create());
        scratch.emplace(std::move(made));
        HONE_CHECK(write_file_atomic(scratch->path() / "prompt.md", turn.prompt));
      }
      word.replace(mark, 8, (scratch->path() / "prompt.md").string());
      from_stdin = false;
    }
    CommandDialect dialect(turn, from_stdin);
    HONE_TRY(TurnResult result, run_dialect(spec, turn, dialect));
    if (result.end == TurnEnd::finished) result.reason = "exit 0";
    return result;
  }

 private:
  std::vector<std::string> argv_;
};

}  // namespace

std::unique_ptr<Dialect> make_command_dialect(const Turn& turn) { return std::make_unique<CommandDialect>(turn, true); }
std::unique_ptr<Driver> make_command_driver(const AgentSpec& spec) { return std::make_unique<CommandDriver>(spec); }

}  // namespace hone
