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

constexpr std::string_view kSeverities[] = {"fatal error", "catastrophic error", "error", "warning", "note"};

// nvcc's front end: "file(line): error: text", "file(line): warning #177-D: text".
std::optional<Message> located_by_front_end(std::string_view line) {
  for (std::size_t close = line.find("): "); close != std::string_view::npos; close = line.find("): ", close + 1)) {
    const std::size_t open = line.rfind('(', close);
    if (open == std::string_view::npos || open == 0) continue;
    const auto row = number(line.substr(open + 1, close - open - 1));
    if (!row) continue;
    std::string_view rest = line.substr(close + 3);
    for (const std::string_view severity : kSeverities) {
      if (!rest.starts_with(severity)) continue;
      rest.remove_prefix(severity.size());
      const std::size_t colon = rest.find(": ");
      if (colon == std::string_view::npos || (colon != 0 && !rest.starts_with(" #"))) return std::nullopt;
      rest.remove_prefix(colon + 2);
      return Message{{clean(line.substr(0, open)), *row, 0}, severity.ends_with("error") ? "error" : std::string(severity),
                     rest.empty() ? "an error without a text" : clean(rest)};
    }
  }
  return std::nullopt;
}

// "file:line:column: rest" or "file:line: rest".
std::optional<Message> located_by_colons(std::string_view line) {
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
    for (const std::string_view severity : kSeverities)
      if (rest.starts_with(severity) && rest.substr(severity.size()).starts_with(": ")) {
        message.severity = severity.ends_with("error") ? "error" : severity;
        rest.remove_prefix(severity.size() + 2);
        break;
      }
    // The linker gives only the line.
    if (message.severity.empty() && rest.starts_with("undefined reference")) message.severity = "error";
    message.text = rest.empty() ? "an error without a text" : clean(rest);
    return message;
  }
  return std::nullopt;
}

std::string stripped(std::string_view line, const std::vector<std::string>& prefixes) {
  std::string out(line);
  for (const std::string& prefix : prefixes)
    for (std::size_t at = 0; (at = out.find(prefix, at)) != std::string::npos;) out.erase(at, prefix.size());
  return out;
}

// Where a line of PTX comes from: the last `.loc FILE LINE COLUMN` before it in the same function. The
// text is the candidate's in part (asm statements): a wrong place is all that it can make of it.
std::optional<Place> source_of(const CompilerMessages& messages, int row) {
  std::string_view rest = messages.ptx;
  int file = 0, source_line = 0, column = 0;
  auto words_after = [](std::string_view line, std::string_view directive) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line.starts_with(directive) ? line.substr(directive.size()) : std::string_view();
  };
  auto next_number = [](std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto value = number(text.substr(0, end));
    text.remove_prefix(end);
    return value.value_or(0);
  };
  for (int i = 1; i <= row && !rest.empty(); ++i) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find(".entry ") != std::string_view::npos || line.find(".func ") != std::string_view::npos) file = 0;
    if (std::string_view words = words_after(line, ".loc\t"); !words.empty()) {
      file = next_number(words);
      source_line = next_number(words);
      column = next_number(words);
    }
  }
  if (file == 0 || source_line == 0) return std::nullopt;
  for (rest = messages.ptx; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view words = words_after(rest.substr(0, end), ".file\t");
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (words.empty() || next_number(words) != file) continue;
    const std::size_t open = words.find('"'), close = words.find('"', open + 1);
    if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
    return Place{clean(stripped(words.substr(open + 1, close - open - 1), messages.strip)), source_line, column};
  }
  return std::nullopt;
}

// "ptxas unit.ptx, line 55; error   : text", "ptxas error   : text".
std::optional<Message> located_by_assembler(const CompilerMessages& messages, std::string_view line) {
  if (!line.starts_with("ptxas ")) return std::nullopt;
  const std::size_t colon = line.find(" : ");
  if (colon == std::string_view::npos) return std::nullopt;
  Message message{{messages.entry, 0, 0}, "", clean(line.substr(colon + 3))};
  std::string_view head = line.substr(6, colon - 6);
  while (head.ends_with(' ')) head.remove_suffix(1);
  if (head.ends_with("error") || head.ends_with("fatal")) message.severity = "error";
  else if (head.ends_with("warning")) message.severity = "warning";
  else return std::nullopt;
  constexpr std::string_view kLine = ", line ";
  const std::size_t at = head.find(kLine), semicolon = head.find(';');
  if (at != std::string_view::npos && semicolon != std::string_view::npos && semicolon > at)
    if (const auto row = number(head.substr(at + kLine.size(), semicolon - at - kLine.size())))
      message.place = source_of(messages, *row).value_or(message.place);
  return message;
}

std::optional<Message> located(const CompilerMessages& messages, std::string_view line) {
  if (auto message = located_by_assembler(messages, line)) return message;
  if (auto message = located_by_front_end(line)) return message;
  return located_by_colons(line);
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

// "... at line 7 of kernel.cu" in what nvcc's front end says of an instantiation.
std::optional<Place> instantiated_at(std::string_view line) {
  constexpr std::string_view kAt = " at line ";
  const std::size_t at = line.rfind(kAt);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + kAt.size());
  const std::size_t of = line.find(" of ");
  const auto row = number(line.substr(0, std::min(of, line.size())));
  return row && of != std::string_view::npos ? std::optional(Place{clean(line.substr(of + 4)), *row, 0}) : std::nullopt;
}

// Lines that say nothing of the source.
bool is_noise(std::string_view line) {
  return line.starts_with("compilation terminated") || line.starts_with("Remark: The warnings can be suppressed") ||
         line.starts_with("ptxas fatal   : Ptx assembly aborted") || line.find_first_not_of(' ') == std::string_view::npos;
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
  bool of_first = true;                   // no second error has come yet
  each_line(messages, [&](const std::string& line) {
    if (is_noise(line)) return true;
    const auto message = located(messages, line);
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
    // The front end says after its error where the instantiation began, the candidate's own place last.
    if (message && message->severity == "error") of_first = false;
    if (const auto place = instantiated_at(line); of_first && place && of_candidate(*place)) context = *place;
    const bool generated = line.find(kGenerated) != std::string::npos || line.find(kKernelNames) != std::string::npos;
    if (generated) return true;
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
    const auto message = located(messages, line);
    if (!message || message->severity.empty()) return true;
    place = message->place;
    return false;
  });
  return place;
}

std::string readable_log(const CompilerMessages& messages) {
  std::string out;
  each_line(messages, [&](const std::string& line) {
    if (line.find(kGenerated) != std::string::npos || is_noise(line)) return true;
    out += clean(line) + "\n";
    return out.size() < kNoteBytes;
  });
  return out;
}

}  // namespace hone
