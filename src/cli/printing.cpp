#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/verb.h"

namespace hone::cli {
namespace {

bool terminal(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

bool color(int fd) {
  const char* no = std::getenv("NO_COLOR");
  return terminal(fd) && (no == nullptr || *no == '\0');
}

std::size_t columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : std::size_t{80};
}

bool drawn = false;   // a progress line is on the terminal

// Control characters of a candidate's compiler must not reach the terminal; a line is one line.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

// At most `width` columns, cut between UTF-8 characters.
std::string cut(const std::string& text, std::size_t width) {
  std::size_t used = 0, end = 0;
  while (end < text.size() && used < width) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) ++end;
    ++used;
  }
  return text.substr(0, end);
}

// What a line is about: all but what follows the last colon, and that part's first word. Elsewhere
// than on a terminal only a new step is a new line.
std::string step_of(const std::string& line) {
  const std::size_t colon = line.rfind(": ");
  if (colon == std::string::npos) return line;
  return line.substr(0, line.find(' ', colon + 2));
}

}  // namespace

void end_progress() {
  if (!std::exchange(drawn, false)) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

Progress progress_printer(const Global& global) {
  if (global.quiet) return [](const std::string&) {};
  if (terminal(STDERR_FILENO))
    return [](const std::string& line) {
      fmt::print(stderr, "\r\033[K{}", cut(printable(line), columns() - 1));
      std::fflush(stderr);
      drawn = true;
    };
  return [last = std::string(), at = 0.0](const std::string& line) mutable {
    const std::string step = step_of(line);
    const double now = now_s();
    if (step == last && now - at < 10) return;
    last = step;
    at = now;
    fmt::print(stderr, "{}\n", printable(line));
  };
}

int report_error(const Global& global, const Error& error) {
  end_progress();
  if (global.json) {
    nlohmann::json body;
    to_json(body, error);
    const nlohmann::json out{{"schema", "hone.error/1"}, {"error", std::move(body)}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    std::string text = to_text(error);
    for (char& c : text)
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f) c = ' ';
    const std::size_t label = color(STDERR_FILENO) ? text.find("error(") : std::string::npos;
    if (label != std::string::npos) text.insert(text.find(')', label) + 1, "\033[0m").insert(label, "\033[1;31m");
    fmt::print(stderr, "{}\n", text);
  }
  return exit_code_of(error.kind);
}

}  // namespace hone::cli
