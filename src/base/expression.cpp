#include "base/expression.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace hone {
namespace {

constexpr std::size_t kMaxLength = 4096;    // characters
constexpr int kMaxDepth = 64;               // parentheses, unary operators and calls
constexpr std::size_t kMaxList = 1u << 16;  // elements

using Int = std::int64_t;
using List = std::vector<Int>;   // a number is a list of one element

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// Parses and evaluates in one pass. `dead_` counts the enclosing operands whose value does not
// matter (the right side of `false && ...`): they must parse, but may divide by zero.
class Parser {
 public:
  Parser(std::string_view text, const ExpressionValues* values) : text_(text), values_(values) {}

  std::optional<Error> run(List& out) {
    if (text_.size() > kMaxLength) {
      error_ = make_error(ErrorKind::contract, "expression of {} characters is longer than {}", text_.size(), kMaxLength);
      return error_;
    }
    out = parse_or();
    skip_space();
    if (!error_ && at_ < text_.size()) unexpected();
    return error_;
  }

  std::vector<std::string> names;

 private:
  bool evaluating() const { return values_ != nullptr && dead_ == 0 && !error_; }

  void set_error(std::size_t column, const std::string& what, std::string hint = {}) {
    if (error_) return;
    error_ = make_error(ErrorKind::contract, "{} at column {} of \"{}\"", what, column + 1, text_);
    error_->hint = std::move(hint);
  }

  void unexpected() {
    if (at_ >= text_.size()) return set_error(at_, "the expression ends where a value is needed");
    const char c = text_[at_];
    const std::string shown = c >= 0x20 && c < 0x7f ? fmt::format("'{}'", c) : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
    set_error(at_, "unexpected " + shown, c == '=' ? "equality is written ==" : "");
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t after = at_ + token.size();
    if (is_name_start(token[0])) {
      if (after < text_.size() && is_name_part(text_[after])) return false;
    } else if (token == "<" || token == ">" || token == "!") {
      if (after < text_.size() && text_[after] == '=') return false;
    }
    at_ = after;
    return true;
  }

  Int number(const List& value, std::size_t column) {
    if (value.size() == 1) return value[0];
    if (evaluating())
      set_error(column, fmt::format("a list of {} where a number is needed", value.size()), "use sum(), count(), min() or max()");
    return 0;
  }

  // Element by element; a number goes with every element of a list.
  template <class F>
  List zip(const List& a, const List& b, std::size_t column, F&& apply) {
    if (!evaluating()) return {0};
    if (a.size() != b.size() && a.size() != 1 && b.size() != 1) {
      set_error(column, fmt::format("lists of different lengths, {} and {}", a.size(), b.size()));
      return {0};
    }
    List out(a.size() == 1 ? b.size() : a.size());
    for (std::size_t i = 0; i < out.size() && !error_; ++i) out[i] = apply(a.size() == 1 ? a[0] : a[i], b.size() == 1 ? b[0] : b[i]);
    return out;
  }

  Int overflow(std::size_t column) {
    set_error(column, "overflow of 64 bits");
    return 0;
  }
  Int add(Int a, Int b, std::size_t column) {
    Int out;
    return __builtin_add_overflow(a, b, &out) ? overflow(column) : out;
  }
  Int subtract(Int a, Int b, std::size_t column) {
    Int out;
    return __builtin_sub_overflow(a, b, &out) ? overflow(column) : out;
  }
  Int multiply(Int a, Int b, std::size_t column) {
    Int out;
    return __builtin_mul_overflow(a, b, &out) ? overflow(column) : out;
  }
  Int divide(Int a, Int b, std::size_t column, bool remainder) {
    if (b == 0) {
      set_error(column, "division by zero");
      return 0;
    }
    if (b == -1) return remainder ? 0 : subtract(0, a, column);
    return remainder ? a % b : a / b;
  }
  Int ceil_div(Int a, Int b, std::size_t column) {
    if (b <= 0) {
      set_error(column, fmt::format("the divisor of ceil_div or align_up must be above 0, not {}", b));
      return 0;
    }
    return a / b + (a % b > 0 ? 1 : 0);
  }

  List parse_or() {
    const std::size_t start = at_;
    List left = parse_and();
    while (!error_ && (take("||") || take("or"))) {
      const bool known = evaluating() && number(left, start) != 0;
      left = logical(known, start, left, [this] { return parse_and(); }, [](bool a, bool b) { return a || b; });
    }
    return left;
  }

  List parse_and() {
    const std::size_t start = at_;
    List left = parse_not();
    while (!error_ && (take("&&") || take("and"))) {
      const bool known = evaluating() && number(left, start) == 0;
      left = logical(known, start, left, [this] { return parse_not(); }, [](bool a, bool b) { return a && b; });
    }
    return left;
  }

  template <class Parse, class Join>
  List logical(bool known, std::size_t start, const List& left, Parse&& parse, Join&& join) {
    dead_ += known ? 1 : 0;
    const std::size_t column = at_;
    const List right = parse();
    dead_ -= known ? 1 : 0;
    if (!evaluating()) return {0};
    const bool a = number(left, start) != 0;
    if (known) return {a ? 1 : 0};
    return {join(a, number(right, column) != 0) ? 1 : 0};
  }

  // `not` as a word binds more loosely than comparisons, as in Python; `!` is C's.
  List parse_not() {
    skip_space();
    const std::size_t start = at_;
    if (!take("not")) return parse_equality();
    if (!enter(start)) return {0};
    const List value = parse_not();
    --depth_;
    return {number(value, start) == 0 ? 1 : 0};
  }

  List parse_equality() {
    List left = parse_relation();
    while (!error_) {
      skip_space();
      const std::size_t column = at_;
      if (take("==")) left = zip(left, parse_relation(), column, [](Int a, Int b) { return Int{a == b}; });
      else if (take("!=")) left = zip(left, parse_relation(), column, [](Int a, Int b) { return Int{a != b}; });
      else break;
    }
    return left;
  }

  List parse_relation() {
    List left = parse_sum();
    while (!error_) {
      skip_space();
      const std::size_t column = at_;
      if (take("<=")) left = zip(left, parse_sum(), column, [](Int a, Int b) { return Int{a <= b}; });
      else if (take(">=")) left = zip(left, parse_sum(), column, [](Int a, Int b) { return Int{a >= b}; });
      else if (take("<")) left = zip(left, parse_sum(), column, [](Int a, Int b) { return Int{a < b}; });
      else if (take(">")) left = zip(left, parse_sum(), column, [](Int a, Int b) { return Int{a > b}; });
      else break;
    }
    return left;
  }

  List parse_sum() {
    List left = parse_product();
    while (!error_) {
      skip_space();
      const std::size_t column = at_;
      if (take("+")) left = zip(left, parse_product(), column, [&](Int a, Int b) { return add(a, b, column); });
      else if (take("-")) left = zip(left, parse_product(), column, [&](Int a, Int b) { return subtract(a, b, column); });
      else break;
    }
    return left;
  }

  List parse_product() {
    List left = parse_unary();
    while (!error_) {
      skip_space();
      const std::size_t column = at_;
      if (take("*")) left = zip(left, parse_unary(), column, [&](Int a, Int b) { return multiply(a, b, column); });
      else if (take("/")) left = zip(left, parse_unary(), column, [&](Int a, Int b) { return divide(a, b, column, false); });
      else if (take("%")) left = zip(left, parse_unary(), column, [&](Int a, Int b) { return divide(a, b, column, true); });
      else break;
    }
    return left;
  }

  bool enter(std::size_t column) {
    if (++depth_ <= kMaxDepth) return true;
    set_error(column, fmt::format("nested more than {} deep", kMaxDepth));
    return false;
  }

  List parse_unary() {
    skip_space();
    const std::size_t column = at_;
    const bool minus = take("-"), plus = !minus && take("+"), bang = !minus && !plus && take("!");
    if (!minus && !plus && !bang) return parse_primary();
    if (!enter(column)) return {0};
    List value = parse_unary();
    --depth_;
    if (bang) return zip(value, {0}, column, [](Int a, Int) { return Int{a == 0}; });
    if (minus) return zip({0}, value, column, [&](Int a, Int b) { return subtract(a, b, column); });
    return value;
  }

  List parse_primary() {
    skip_space();
    const std::size_t column = at_;
    if (at_ >= text_.size()) {
      unexpected();
      return {0};
    }
    if (is_digit(text_[at_])) return parse_number();
    if (take("(")) {
      if (!enter(column)) return {0};
      List value = parse_or();
      --depth_;
      if (!error_ && !take(")")) set_error(at_, fmt::format("the parenthesis of column {} is not closed", column + 1));
      return value;
    }
    if (!is_name_start(text_[at_])) {
      unexpected();
      return {0};
    }
    std::size_t end = at_;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    const std::string name(text_.substr(at_, end - at_));
    if (name == "and" || name == "or" || name == "not") {
      set_error(column, fmt::format("\"{}\" where a value is needed", name));
      return {0};
    }
    at_ = end;
    skip_space();
    if (at_ < text_.size() && text_[at_] == '(') return parse_call(name, column);
    return lookup(name, column);
  }

  List parse_number() {
    const std::size_t column = at_;
    Int value = 0;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      if (__builtin_mul_overflow(value, Int{10}, &value) || __builtin_add_overflow(value, Int{text_[at_] - '0'}, &value)) {
        set_error(column, "a number that does not fit in 64 bits");
        return {0};
      }
      ++at_;
    }
    if (at_ < text_.size() && (is_name_part(text_[at_]) || text_[at_] == '.'))
      set_error(column, "a malformed number", "only whole decimal numbers are known");
    return {value};
  }

  List lookup(const std::string& name, std::size_t column) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (values_ == nullptr || error_) return {0};
    const auto found = values_->find(name);
    if (found == values_->end()) {
      std::string known;
      for (const auto& [each, value] : *values_) known += (known.empty() ? "" : ", ") + each;
      set_error(column, fmt::format("unknown name \"{}\"", name), known.empty() ? "no names are known here" : "known names: " + known);
      return {0};
    }
    if (found->second.size() > kMaxList) {
      set_error(column, fmt::format("\"{}\" is a list of more than {}", name, kMaxList));
      return {0};
    }
    return found->second;
  }

  List parse_call(const std::string& name, std::size_t column) {
    at_ += 1;
    if (!enter(column)) return {0};
    std::vector<List> args;
    if (!take(")")) {
      do {
        args.push_back(parse_or());
      } while (!error_ && take(","));
      if (!error_ && !take(")")) set_error(at_, fmt::format("the call of {} is not closed", name));
    }
    --depth_;
    if (error_) return {0};
    return call(name, args, column);
  }

  List call(const std::string& name, const std::vector<List>& args, std::size_t column) {
    const bool reduces = name == "min" || name == "max" || name == "sum" || name == "count";
    if (!reduces && name != "ceil_div" && name != "align_up") {
      set_error(column, fmt::format("unknown function \"{}\"", name), "known functions: min max ceil_div align_up sum count");
      return {0};
    }
    if (reduces ? args.empty() : args.size() != 2) {
      set_error(column, fmt::format("{} takes {}, not {}", name, reduces ? "at least one argument" : "two arguments", args.size()));
      return {0};
    }
    if (!evaluating()) return {0};
    if (name == "ceil_div") return zip(args[0], args[1], column, [&](Int a, Int b) { return ceil_div(a, b, column); });
    if (name == "align_up")
      return zip(args[0], args[1], column, [&](Int a, Int b) { return multiply(ceil_div(a, b, column), b, column); });
    List all;
    for (const List& each : args) all.insert(all.end(), each.begin(), each.end());
    if (name == "count") return {static_cast<Int>(all.size())};
    if (name == "sum") {
      Int total = 0;
      for (Int each : all) total = add(total, each, column);
      return {total};
    }
    if (all.empty()) {
      set_error(column, name + " of an empty list");
      return {0};
    }
    return {name == "min" ? *std::min_element(all.begin(), all.end()) : *std::max_element(all.begin(), all.end())};
  }

  std::string_view text_;
  const ExpressionValues* values_;
  std::size_t at_ = 0;
  int depth_ = 0, dead_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<std::int64_t> evaluate(std::string_view expression, const ExpressionValues& values) {
  Parser parser(expression, &values);
  List out;
  if (auto error = parser.run(out)) return fail(*std::move(error));
  if (out.size() != 1)
    return fail(make_error(ErrorKind::contract, "\"{}\" is a list of {} where a number is needed", expression, out.size())
                    .with_hint("use sum(), count(), min() or max()"));
  return out[0];
}

Result<std::vector<std::string>> names_in(std::string_view expression) {
  Parser parser(expression, nullptr);
  List out;
  if (auto error = parser.run(out)) return fail(*std::move(error));
  return std::move(parser.names);
}

}  // namespace hone
