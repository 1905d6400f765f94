#include "inspect/listing.h"

#include <algorithm>
#include <charconv>

namespace hone {
namespace {

constexpr std::size_t kMostFunctions = 20'000;

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// The text up to the first blank; `rest` is what follows it.
std::string_view word(std::string_view text, std::string_view& rest) {
  text = trimmed(text);
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  rest = trimmed(text.substr(end));
  return text.substr(0, end);
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string_view quoted(std::string_view text) {
  const std::size_t open = text.find('"'), close = text.rfind('"');
  return open == std::string_view::npos || close <= open ? std::string_view() : text.substr(open + 1, close - open - 1);
}

// The function and the line that instructions are counted for.
class Reader {
 public:
  void begin(std::string_view symbol) {
    const auto found = listing_.find(symbol);
    if (found != listing_.end()) at_ = &found->second;
    else at_ = listing_.size() < kMostFunctions ? &listing_[std::string(symbol)] : nullptr;
    line_ = nullptr;
  }
  void end() { at_ = nullptr; }
  void line(const std::string& file, int line) {
    if (at_ != nullptr && line > 0) line_ = &at_->lines[{file, line}];
  }
  void instruction(OpClass kind) {
    if (at_ == nullptr) return;
    ++at_->instructions;
    ++at_->mix[static_cast<std::size_t>(kind)];
    if (line_ != nullptr) ++*line_;
  }
  Listing take() {
    for (auto& [symbol, code] : listing_) std::erase_if(code.lines, [](const auto& each) { return each.second == 0; });
    return std::move(listing_);
  }

 private:
  Listing listing_;
  KernelCode* at_ = nullptr;
  std::size_t* line_ = nullptr;
};

// "@!%p1 ld.global.f32 %f1, [%rd1]" without the predicate: its opcode, or empty for what is no instruction.
std::string_view ptx_opcode(std::string_view statement) {
  std::string_view rest;
  std::string_view first = word(statement, rest);
  if (first.starts_with('@')) first = word(rest, rest);
  return !first.empty() && first[0] >= 'a' && first[0] <= 'z' ? first : std::string_view();
}

// The name in ".visible .entry NAME( ... )" or ".func (.param .b32 r) NAME( ... )"; empty when it is neither.
std::string_view function_name(std::string_view heading) {
  for (const std::string_view mark : {".entry", ".func"}) {
    const std::size_t at = heading.find(mark);
    if (at == std::string_view::npos) continue;
    std::string_view name = heading.substr(at + mark.size());
    while (!name.empty() && (name.front() == ' ' || name.front() == '\t' || name.front() == '\n')) name.remove_prefix(1);
    if (name.starts_with('(')) name = trimmed(name.substr(std::min(name.find(')'), name.size() - 1) + 1));
    return trimmed(name.substr(0, name.find_first_of("( \t\n")));
  }
  return {};
}

bool is_line_directive(std::string_view statement) {
  std::string_view rest;
  while (!statement.empty() && statement.front() == '\n') statement.remove_prefix(1);
  const std::string_view first = word(statement, rest);
  return first == ".version" || first == ".target" || first == ".address_size" || first == ".file" ||
         first == ".section" || first == ".loc";
}

}  // namespace

Listing read_ptx(std::string_view text) {
  // .file directives follow the code that names them.
  std::map<int, std::string> files;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = trimmed(next_line(rest));
    std::string_view after;
    if (word(line, after) == ".file") files[number(after)] = std::string(quoted(after));
  }
  Reader reader;
  std::string statement;
  std::size_t depth = 0, vector = 0, data = 0;   // open braces: of bodies, of operands, of initialisers and sections
  const auto loc = [&](std::string_view directive) {
    std::string_view rest;
    if (word(directive, rest) != ".loc") return false;
    std::string_view where;
    if (const auto file = files.find(number(word(rest, where))); file != files.end()) reader.line(file->second, number(where));
    return true;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '/' && next == '/') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '"') {
      i = std::min(text.find('"', i + 1), text.size());
    } else if (data > 0) {
      data += c == '{' ? 1u : 0u;
      data -= c == '}' ? 1u : 0u;
    } else if (depth == 0) {
      if (c == '{') {
        const std::string_view name = function_name(statement);
        if (name.empty()) {
          data = 1;
        } else {
          reader.begin(name);
          depth = 1;
        }
        statement.clear();
      } else if (c == ';' || (c == '\n' && is_line_directive(statement))) {
        statement.clear();
      } else {
        statement += c;
      }
    } else if (c == '\n') {
      if (loc(trimmed(statement))) statement.clear();
      else statement += ' ';
    } else if (c == '{') {
      if (trimmed(statement).empty()) ++depth;
      else ++vector, statement += c;
    } else if (c == '}' && vector > 0) {
      --vector;
      statement += c;
    } else if (c == '}') {
      statement.clear();
      if (--depth == 0) reader.end();
    } else if (c == ';') {
      if (const std::string_view opcode = ptx_opcode(statement); !opcode.empty()) reader.instruction(class_of_ptx(opcode));
      statement.clear();
      vector = 0;
    } else if (c == ':' && next == ':') {   // "shared::cta"
      statement += "::";
      ++i;
    } else if (c == ':' && trimmed(statement).find_first_of(" \t") == std::string_view::npos) {
      statement.clear();                    // a label
    } else {
      statement += c;
    }
  }
  return reader.take();
}

Listing read_sass(std::string_view text) {
  Reader reader;
  while (!text.empty()) {
    const std::string_view line = trimmed(next_line(text));
    if (constexpr std::string_view kSection = ".text."; line.starts_with(kSection) && line.ends_with(':')) {
      reader.begin(line.substr(kSection.size(), line.size() - kSection.size() - 1));
    } else if (constexpr std::string_view kFunction = "Function : "; line.starts_with(kFunction)) {
      reader.begin(line.substr(kFunction.size()));
    } else if (constexpr std::string_view kFile = "//## File "; line.starts_with(kFile)) {
      // With inlining the innermost place comes first: "... line 3 inlined at ...".
      const std::string_view where = line.substr(0, std::min(line.find(" inlined at "), line.size()));
      const std::size_t at = where.rfind(", line ");
      if (at != std::string_view::npos) reader.line(std::string(quoted(where)), number(where.substr(at + 7)));
    } else if (line.starts_with("/*") && line.size() > 2 && line[2] != ' ') {
      const std::size_t end = line.find("*/");
      if (end == std::string_view::npos) continue;
      std::string_view rest;
      std::string_view opcode = word(line.substr(end + 2), rest);
      if (opcode.starts_with('{')) opcode = opcode.size() > 1 ? opcode.substr(1) : word(rest, rest);   // dual issue of old devices
      if (opcode.starts_with('@')) opcode = word(rest, rest);
      while (opcode.ends_with(';')) opcode.remove_suffix(1);
      if (!opcode.empty() && opcode[0] >= 'A' && opcode[0] <= 'Z' && opcode != "NOP") reader.instruction(class_of_sass(opcode));
    }
  }
  return reader.take();
}

Listing read_objdump(std::string_view text) {
  Reader reader;
  while (!text.empty()) {
    const std::string_view whole = next_line(text);
    const std::string_view line = trimmed(whole);
    const std::size_t tab = whole.find(":\t");
    if (whole.starts_with(' ') && tab != std::string_view::npos) {
      std::string_view operands;
      std::string_view opcode = word(whole.substr(tab + 2), operands);
      while (opcode == "rep" || opcode == "repz" || opcode == "repnz" || opcode == "bnd" || opcode == "notrack" ||
             opcode == "data16" || opcode == "cs")
        opcode = word(operands, operands);
      if (!opcode.starts_with("nop") && opcode != "xchg" && !opcode.empty())
        reader.instruction(class_of_x86(opcode, operands.substr(0, operands.find(" #"))));
      else if (opcode == "xchg" && operands != "%ax,%ax") reader.instruction(class_of_x86(opcode, operands));
    } else if (!line.empty() && line.ends_with(">:")) {
      const std::size_t open = line.find('<');
      if (open != std::string_view::npos) reader.begin(line.substr(open + 1, line.size() - open - 3));
    } else if (line.starts_with('/')) {
      // "/hone/src/kernel.cpp:12 (discriminator 3)"
      const std::string_view where = line.substr(0, line.find(" ("));
      const std::size_t colon = where.rfind(':');
      if (colon != std::string_view::npos) reader.line(std::string(where.substr(0, colon)), number(where.substr(colon + 1)));
    }
  }
  return reader.take();
}

}  // namespace hone
