// What an agent program prints, line by line, to each of the four dialects: the first byte chooses. What they tell is bounded
// text that JSON can hold, and what they answer is one JSON message a line.
#include <cstdlib>

#include "base/json.h"
#include "driver/program.h"
#include "driver/text.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  hone::Turn turn;
  turn.prompt = "prompt";
  turn.cwd = "/nonexistent/hone-fuzz";   // where nothing can be read or written
  turn.hidden = {"/nonexistent/hone-fuzz/hidden"};
  turn.on_event = [](const hone::AgentEvent& event) {
    if (event.text.size() > hone::kEventText + 64 || !hone::is_utf8(event.text) || !hone::is_utf8(event.tool)) std::abort();
    for (const auto& count : {event.usage.input_tokens, event.usage.cached_tokens, event.usage.output_tokens})
      if (count && *count < 0) std::abort();
  };
  constexpr std::unique_ptr<hone::Dialect> (*makers[])(const hone::Turn&) = {hone::make_command_dialect, hone::make_claude_dialect, hone::make_codex_dialect,
                                                                             hone::make_acp_dialect};
  const bool json_lines = data[0] % 4 == 3;
  const auto dialect = makers[data[0] % 4](turn);
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    (void)dialect->line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::string answers = dialect->to_send();
    for (std::size_t next = 0; json_lines && (next = answers.find('\n')) != std::string::npos; answers.erase(0, next + 1))
      if (!nlohmann::json::accept(answers.substr(0, next))) std::abort();
    if (dialect->over() && dialect->heard().success == std::nullopt) std::abort();
  }
  (void)dialect->ask_to_stop();
  return 0;
}
