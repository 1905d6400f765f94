// Any program: the prompt on standard input or in a file, its exit code as its word.
//
// `{prompt_file}` among the arguments becomes the path of a file that holds the prompt, `{prompt}` the prompt itself; then standard
// input is empty.
#include "base/text.h"
#include "driver/program.h"
#include "driver/text.h"

namespace hone {
namespace {

constexpr std::string_view kFile = "{prompt_file}", kText = "{prompt}";
constexpr std::size_t kArgumentLimit = 127 << 10;   // bytes; Linux takes 128 KiB

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
    const auto put = [&](std::string& word, std::string_view mark, const std::string& text) {
      for (std::size_t place = 0; (place = word.find(mark, place)) != std::string::npos; place += text.size()) word.replace(place, mark.size(), text);
      from_stdin = false;
    };
    for (std::size_t i = 1; i < spec.argv.size(); ++i) {
      std::string& word = spec.argv[i];
      const bool file = word.find(kFile) != std::string::npos;
      if (file && !scratch) {
        HONE_TRY(auto made, ScratchDir::create());
        scratch.emplace(std::move(made));
        HONE_CHECK(write_file_atomic(scratch->path() / "prompt.md", turn.prompt));
      }
      if (file) {
        put(word, kFile, (scratch->path() / "prompt.md").string());
      } else if (word.find(kText) != std::string::npos) {
        put(word, kText, turn.prompt);
        if (word.size() > kArgumentLimit || word.find('\0') != std::string::npos)
          return fail(make_error(ErrorKind::usage, "the prompt ({}) is too long for an argument", format_bytes(turn.prompt.size()))
                          .with_hint("{prompt_file} hands it over as a file"));
      }
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
