// Itanium C++ ABI, 5.1 "External Names (a.k.a. Mangling)".
#include <fmt/ranges.h>

#include <algorithm>

#include "program/symbol.h"

namespace hone {
namespace {

constexpr std::size_t kBudget = 8192;      // characters made in all
constexpr std::size_t kLargestNumber = 1 << 20;
constexpr int kDeepest = 48;
constexpr std::string_view kAnonymous = "(anonymous namespace)";

struct Unreadable {};   // thrown and caught inside this file

constexpr std::pair<char, std::string_view> kBuiltins[] = {
    {'v', "void"}, {'w', "wchar_t"}, {'b', "bool"}, {'c', "char"}, {'a', "signed char"}, {'h', "unsigned char"},
    {'s', "short"}, {'t', "unsigned short"}, {'i', "int"}, {'j', "unsigned int"}, {'l', "long"}, {'m', "unsigned long"},
    {'x', "long long"}, {'y', "unsigned long long"}, {'n', "__int128"}, {'o', "unsigned __int128"},
    {'f', "float"}, {'d', "double"}, {'e', "long double"}, {'g', "__float128"}};

constexpr std::pair<std::string_view, std::string_view> kTwoLetter[] = {
    {"Dn", "decltype(nullptr)"}, {"Di", "char32_t"}, {"Ds", "char16_t"}, {"Du", "char8_t"}, {"Dh", "half"}};

constexpr std::pair<char, std::string_view> kStandard[] = {{'a', "std::allocator"}, {'b', "std::basic_string"},
                                                           {'s', "std::string"},    {'i', "std::istream"},
                                                           {'o', "std::ostream"},   {'d', "std::iostream"}};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  FunctionName function() {
    if (!take("_Z")) throw Unreadable{};
    FunctionName out;
    out.qualified = name(&out);
    if (done()) throw Unreadable{};   // a variable
    // From here T_ means the function's own template arguments.
    if (out.is_template) out.returns = type();
    if (rest() == "v") return out;
    while (!done()) out.parameters.push_back(type());
    return out;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  char next() {
    if (done()) throw Unreadable{};
    return text_[at_++];
  }
  bool take(std::string_view token) {
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  std::size_t number() {
    if (!digit(peek())) throw Unreadable{};
    std::size_t value = 0;
    while (digit(peek())) {
      value = value * 10 + static_cast<std::size_t>(next() - '0');
      if (value > kLargestNumber) throw Unreadable{};
    }
    return value;
  }

  std::string made(std::string text) {
    used_ += text.size();
    if (used_ > kBudget) throw Unreadable{};
    return text;
  }
  const std::string& remember(const std::string& text) {
    substitutions_.push_back(made(text));
    return substitutions_.back();
  }

  std::string source_name() {
    while (take("L")) {}   // internal linkage
    const std::size_t length = number();
    if (length == 0 || length > text_.size() - at_) throw Unreadable{};
    std::string out(text_.substr(at_, length));
    at_ += length;
    if (out.starts_with("_GLOBAL__N")) out = kAnonymous;
    while (take("B")) {    // ABI tag
      const std::size_t tag = number();
      if (tag > text_.size() - at_) throw Unreadable{};
      out += "[abi:" + std::string(text_.substr(at_, tag)) + "]";
      at_ += tag;
    }
    return made(out);
  }

  // The function's name. Template arguments of its last component go to `out`, earlier ones stay in the text.
  std::string name(FunctionName* out) {
    if (peek() == 'N') return nested_name(out);
    std::string text = take("St") ? "std::" + source_name() : source_name();
    if (peek() == 'I') {
      remember(text);
      out->arguments = template_arguments(&parameters_of_function_);
      out->is_template = true;
    }
    return text;
  }

  // With `out` the name is a function's.
  std::string nested_name(FunctionName* out) {
    const Depth depth(*this);
    take("N");
    while (take("K") || take("V") || take("r") || take("R") || take("O")) {}
    std::string prefix;
    bool first = true;
    while (!take("E")) {
      if (peek() == 'S' && first) {
        prefix = take("St") ? "std" : substitution();
      } else if (peek() == 'I') {
        std::vector<std::string> parameters;
        const auto arguments = template_arguments(&parameters);
        if (peek() == 'E' && out != nullptr) {
          out->arguments = arguments;
          out->is_template = true;
          parameters_of_function_ = parameters;
        } else {
          prefix = made(with_arguments(prefix, arguments));
          if (peek() != 'E') remember(prefix);
        }
      } else {
        if (!digit(peek()) && peek() != 'L') throw Unreadable{};
        prefix = made(prefix.empty() ? source_name() : prefix + "::" + source_name());
        if (peek() != 'E') remember(prefix);
      }
      first = false;
    }
    if (prefix.empty()) throw Unreadable{};
    return prefix;
  }

  static std::string with_arguments(const std::string& name, const std::vector<std::string>& arguments) {
    return fmt::format("{}<{}{}>", name, fmt::join(arguments, ", "),
                       !arguments.empty() && arguments.back().ends_with('>') ? " " : "");
  }

  // Each parameter's text as T_ would mean it; a pack's is empty: nothing may refer to it.
  std::vector<std::string> template_arguments(std::vector<std::string>* parameters) {
    const Depth depth(*this);
    if (!take("I")) throw Unreadable{};
    std::vector<std::string> out;
    while (!take("E")) {
      if (take("J")) {
        parameters->emplace_back();
        while (!take("E")) out.push_back(template_argument());
      } else {
        out.push_back(template_argument());
        parameters->push_back(out.back());
      }
    }
    return out;
  }

  std::string template_argument() { return peek() == 'L' ? literal() : type(); }

  std::string literal() {
    take("L");
    if (peek() == '_') throw Unreadable{};   // an entity's address
    const std::string kind = type();
    const bool negative = take("n");
    std::string digits;
    while (digit(peek())) digits += next();
    if (digits.empty() || !take("E")) throw Unreadable{};   // floating literals among them
    if (negative) digits.insert(0, "-");
    if (kind == "bool") return digits == "0" ? "false" : "true";
    for (const auto& [integer, suffix] :
         std::initializer_list<std::pair<std::string_view, std::string_view>>{{"int", ""},
                                                                              {"unsigned int", "u"},
                                                                              {"long", "l"},
                                                                              {"unsigned long", "ul"},
                                                                              {"long long", "ll"},
                                                                              {"unsigned long long", "ull"}})
      if (kind == integer) return made(digits + std::string(suffix));
    return made("(" + kind + ")" + digits);
  }

  // Digits in base 36 up to "_": 0 for none, else value + 1.
  std::size_t sequence() {
    if (take("_")) return 0;
    std::size_t value = 0;
    while (!take("_")) {
      const char c = next();
      if (!digit(c) && !(c >= 'A' && c <= 'Z')) throw Unreadable{};
      value = value * 36 + static_cast<std::size_t>(digit(c) ? c - '0' : c - 'A' + 10);
      if (value > text_.size()) throw Unreadable{};
    }
    return value + 1;
  }

  std::string substitution() {
    if (!take("S")) throw Unreadable{};
    for (const auto& [letter, text] : kStandard)
      if (peek() == letter) {
        ++at_;
        return std::string(text);
      }
    const std::size_t index = sequence();
    if (index >= substitutions_.size()) throw Unreadable{};
    return made(substitutions_[index]);
  }

  std::string type() {
    const Depth depth(*this);
    const char c = peek();
    for (const auto& [letter, text] : kBuiltins)
      if (c == letter) {
        ++at_;
        return std::string(text);
      }
    for (const auto& [letters, text] : kTwoLetter)
      if (take(letters)) return std::string(text);
    if (take("DF16b")) return "std::bfloat16_t";
    if (take("DF")) {
      const std::size_t bits = number();
      if (!take("_")) throw Unreadable{};
      return fmt::format("_Float{}", bits);
    }
    if (take("Dv")) {
      const std::size_t lanes = number();
      if (!take("_")) throw Unreadable{};
      return remember(fmt::format("{} __vector({})", type(), lanes));
    }
    if (c == 'r' || c == 'V' || c == 'K') {
      std::string qualifiers;
      for (; peek() == 'r' || peek() == 'V' || peek() == 'K'; ++at_)
        qualifiers.insert(0, peek() == 'K' ? " const" : peek() == 'V' ? " volatile" : " restrict");
      return remember(type() + qualifiers);
    }
    if (take("P")) return remember(type() + "*");
    if (take("R")) return remember(type() + "&");
    if (take("O")) return remember(type() + "&&");
    if (take("u")) return remember(source_name());
    if (take("T")) {
      const std::size_t index = sequence();
      if (index >= parameters_of_function_.size() || parameters_of_function_[index].empty()) throw Unreadable{};
      return remember(parameters_of_function_[index]);
    }
    if (c == 'N') return remember(nested_name(nullptr));
    std::string text;
    if (c == 'S' && !rest().starts_with("St")) {
      text = substitution();
      if (peek() != 'I') return text;
    } else {
      text = take("St") ? "std::" + source_name() : source_name();
      remember(text);
    }
    if (peek() != 'I') return text;
    std::vector<std::string> unused;
    return remember(with_arguments(text, template_arguments(&unused)));
  }

  struct Depth {
    explicit Depth(Reader& owner) : reader(owner) {
      if (++reader.depth_ > kDeepest) throw Unreadable{};
    }
    ~Depth() { --reader.depth_; }
    Reader& reader;
  };

  std::string_view text_;
  std::size_t at_ = 0, used_ = 0;
  int depth_ = 0;
  std::vector<std::string> substitutions_, parameters_of_function_;
};

}  // namespace

std::string FunctionName::text() const {
  std::string out = returns.empty() ? "" : returns + " ";
  out += qualified;
  if (is_template)
    out += fmt::format("<{}{}>", fmt::join(arguments, ", "),
                       !arguments.empty() && arguments.back().ends_with('>') ? " " : "");
  return out + fmt::format("({})", fmt::join(parameters, ", "));
}

std::optional<FunctionName> demangle_function(std::string_view mangled) {
  try {
    FunctionName out = Reader(mangled).function();
    const std::string anonymous = std::string(kAnonymous) + "::";
    for (std::size_t at = 0; (at = out.qualified.find(anonymous, at)) != std::string::npos;)
      out.qualified.erase(at, anonymous.size());
    return out;
  } catch (const Unreadable&) {
    return std::nullopt;
  }
}

std::string readable_symbol(std::string_view mangled) {
  const auto name = demangle_function(mangled);
  return name ? name->text() : std::string(mangled);
}

}  // namespace hone
