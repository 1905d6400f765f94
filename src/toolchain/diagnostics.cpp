#include "toolchain/diagnostics.h"

#include <charconv>
#include <optional>

namespace hone {
namespace {

constexpr std::size_t kNoteLines = 20, kNoteBytes = 8192, kLineBytes = 400;

struct Message {
  Place place;
  std::string severity;   // "error", "warning", "note"; empty for context such as "required from here"
  std::string text;
};

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value <= 0) return std::nullopt;
  return value;
}

// Printable text, bounded: a terminal must not obey what a candidate prints.
std::string clean(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kLineBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) out += c;
    else out += c == '\t' ? ' ' : '?';
  }
  if (text.size() > kLineBytes) out += "...";
  return out;
}

std::string stripped(std::string_view line, const std::vector<std::string>& prefixes) {
  std::string out(line);
  for (const std::string& prefix : prefixes)
    for (std::size_t at = 0; (at = out.find(prefix, at)) != std::string::npos;) out.erase(at, prefix.size());
  return out;
}

// "file:line:column: rest" or "file:line: rest".
std::optional<Message> located(std::string_view line) {
  for (std::size_t colon = line.find(':'); colon != std::string_view::npos; colon = line.find(':', colon + 1)) {
    const std::size_t second = line.find(':', colon + 1);
    if (second == std::string_view::npos) return std::nullopt;
    const auto row = number(line.substr(colon + 1, second - colon - 1));
    if (!row || colon == 0) continue;
    Message message;
    message.place = {clean(line.substr(0, colon)), *row, 0};
    std::string_view rest = line.substr(second + 1);
    if (const std::size_t third = rest.find(':'); third != std::string_view::npos)
      if (const auto column = number(rest.substr(0, third))) {
        message.place.column = *column;
        rest = rest.substr(third + 1);
      }
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    for (const std::string_view severity : {"fatal error: ", "error: ", "warning: ", "note: "})
      if (rest.starts_with(severity)) {
        message.severity = severity == "fatal error: " ? "error" : severity.substr(0, severity.size() - 2);
        rest.remove_prefix(severity.size());
        break;
      }
    // The linker gives only the line.
    if (message.severity.empty() && rest.starts_with("undefined reference")) message.severity = "error";
    message.text = rest.empty() ? "an error without a text" : clean(rest);
    return message;
  }
  return std::nullopt;
}

bool of_candidate(const Place& place) {
  return !place.file.starts_with('/') && !place.file.starts_with(kGenerated) && place.file != kKernelNames;
}

// "In file included from kernel.cpp:3:" and "                 from kernel.cpp:3,"
std::optional<Place> included_from(std::string_view line) {
  const std::size_t at = line.find("from ");
  if (at == std::string_view::npos || (!line.starts_with("In file included ") && line.find_first_not_of(' ') != at))
    return std::nullopt;
  line.remove_prefix(at + 5);
  while (!line.empty() && (line.back() == ',' || line.back() == ':')) line.remove_suffix(1);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view tail = line.substr(colon + 1);
  const auto row = number(tail.substr(0, tail.find(':')));
  return row ? std::optional(Place{clean(line.substr(0, colon)), *row, 0}) : std::nullopt;
}

template <class F>
void each_line(const CompilerMessages& messages, F&& visit) {
  std::string_view rest = messages.text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line = stripped(rest.substr(0, end), messages.strip);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!visit(line)) return;
  }
}

}  // namespace

Error compile_error(const CompilerMessages& messages) {
  std::optional<Message> first;
  Place context;                          // nearest place in the candidate's own files before the error
  std::string loose;                      // an error line without a place
  std::vector<std::string> notes;
  std::size_t bytes = 0, more = 0;
  each_line(messages, [&](const std::string& line) {
    if (line.empty()) return true;
    const auto message = located(line);
    const auto include = message ? std::nullopt : included_from(line);
    if (!first) {
      if (include && of_candidate(*include)) context = *include;
      if (message && message->severity == "error") {
        first = message;
        return true;
      }
      if (message && of_candidate(message->place) && message->text.starts_with("required from"))
        context = message->place;
      if (const std::size_t at = line.find("undefined reference"); at != std::string::npos && !message)
        loose = clean(line.substr(at));
      if (loose.empty() && line.find("error: ") != std::string::npos) loose = clean(line);
      if (message && message->severity == "warning") return true;
    }
    const bool generated = line.find(kGenerated) != std::string::npos || line.find(kKernelNames) != std::string::npos;
    if (generated || line.starts_with("compilation terminated")) return true;
    std::string note = clean(line);
    if (notes.size() >= kNoteLines || bytes + note.size() > kNoteBytes) {
      ++more;
      return true;
    }
    bytes += note.size();
    notes.push_back(std::move(note));
    return true;
  });
  if (more > 0) notes.push_back(fmt::format("{} more lines", more));

  Error error;
  error.kind = ErrorKind::compile;
  if (!first) {
    error.message = loose.empty() ? "the compiler failed without a message" : loose;
    error.place.file = messages.entry;
  } else if (first->place.file == kKernelNames) {
    const auto index = static_cast<std::size_t>(first->place.line) - 1;
    const std::string kernel = index < messages.kernels.size() ? messages.kernels[index] : "?";
    const bool several = first->text.find("deduce") != std::string::npos ||
                         first->text.find("ambiguous") != std::string::npos ||
                         first->text.find("incompatible initializer") != std::string::npos;
    error.kind = ErrorKind::kernel_name;
    error.message = several ? fmt::format("`{}` names no single function in {}", kernel, messages.entry)
                            : fmt::format("`{}` names no function{} in {}", kernel,
                                          kernel.ends_with('>') ? " template" : "", messages.entry);
    error.place.file = messages.entry;
    error.hint = "check the name, its namespace and its template arguments in the plan's launch()";
    notes.insert(notes.begin(), first->text);
  } else {
    error.message = first->text;
    error.place = first->place;
    if (!of_candidate(first->place) && context.line > 0) {
      notes.insert(notes.begin(), fmt::format("{}:{}:{}: the error lies in this header", first->place.file,
                                              first->place.line, first->place.column));
      error.place = context;
    }
  }
  error.notes = std::move(notes);
  return error;
}

Place first_place(const CompilerMessages& messages) {
  Place place{messages.entry, 0, 0};
  each_line(messages, [&](const std::string& line) {
    const auto message = located(line);
    if (!message || message->severity.empty()) return true;
    place = message->place;
    return false;
  });
  return place;
}

std::string readable_log(const CompilerMessages& messages) {
  std::string out;
  each_line(messages, [&](const std::string& line) {
    if (line.find(kGenerated) != std::string::npos) return true;
    out += clean(line) + "\n";
    return out.size() < kNoteBytes;
  });
  return out;
}

}  // namespace hone
