#include "toolchain/kernel_name.h"

namespace hone {
namespace {

constexpr std::size_t kLongest = 512;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Error bad_name(std::string_view name, std::size_t at, std::string_view why) {
  return make_error(ErrorKind::kernel_name, "kernel name `{}`: {} at character {}", name, why, at + 1)
      .with_hint("write it as in the source, such as gemm<128, 64> or tile::gemm<float>");
}

}  // namespace

Result<> check_kernel_name(std::string_view name) {
  if (name.empty()) return fail(make_error(ErrorKind::kernel_name, "the kernel name is empty"));
  if (name.size() > kLongest)
    return fail(ErrorKind::kernel_name, "a kernel name of {} characters is longer than {}", name.size(), kLongest);
  std::string open;                       // the brackets that are open: '<' and '('
  bool word_before = false;               // an identifier or a closing bracket precedes
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (is_letter(c) || is_digit(c)) {
      if (is_digit(c) && open.empty() && !word_before)
        return fail(bad_name(name, i, "a digit where a name must begin"));
      word_before = true;
    } else if (c == ':') {
      if (i + 1 >= name.size() || name[i + 1] != ':') return fail(bad_name(name, i, "a single `:`"));
      ++i;
      word_before = false;
    } else if (c == '<') {
      if (!word_before) return fail(bad_name(name, i, "`<` without a name before it"));
      open += '<';
      word_before = false;
    } else if (c == '>') {
      if (open.empty() || open.back() != '<') return fail(bad_name(name, i, "`>` without `<`"));
      open.pop_back();
      word_before = true;
      if (open.empty() && !trimmed(name.substr(i + 1)).empty() && !trimmed(name.substr(i + 1)).starts_with("::"))
        return fail(bad_name(name, i + 1, "text after the template arguments"));
    } else if (c == '(' || c == ')' || c == ',' || c == '-' || c == '*' || c == '&') {
      if (open.empty()) return fail(bad_name(name, i, "a character that is only allowed between `<` and `>`"));
      if (c == '(') open += '(';
      if (c == ')') {
        if (open.back() != '(') return fail(bad_name(name, i, "`)` without `(`"));
        open.pop_back();
      }
      word_before = false;
    } else if (c == ' ') {
      if (open.empty() && i + 1 < name.size() && word_before && (is_letter(name[i + 1]) || is_digit(name[i + 1])))
        return fail(bad_name(name, i, "a blank inside a name"));
    } else {
      return fail(bad_name(name, i, "a character that no kernel name has"));
    }
  }
  if (!open.empty()) return fail(bad_name(name, name.size(), open.back() == '<' ? "`>` is missing" : "`)` is missing"));
  if (trimmed(name).empty() || name.ends_with(':')) return fail(bad_name(name, name.size(), "the name ends too early"));
  return {};
}

KernelName split_kernel_name(std::string_view name) {
  KernelName out;
  name = trimmed(name);
  const std::size_t begin = name.ends_with('>') ? [&] {
    int depth = 0;                        // the `<` that the last `>` closes
    for (std::size_t i = name.size(); i-- > 0;) {
      if (name[i] == '>') ++depth;
      if (name[i] == '<' && --depth == 0) return i;
    }
    return std::string_view::npos;
  }() : std::string_view::npos;
  if (begin == std::string_view::npos) {
    out.qualified = name;
    return out;
  }
  out.qualified = trimmed(name.substr(0, begin));
  out.has_arguments = true;
  int depth = 0;
  std::size_t start = begin + 1;
  for (std::size_t i = start; i < name.size(); ++i) {
    const char c = name[i];
    if ((c == ',' && depth == 0) || i + 1 == name.size()) {
      if (const auto part = trimmed(name.substr(start, i - start)); !part.empty() || c == ',')
        out.arguments.emplace_back(part);
      start = i + 1;
    } else if (c == '<' || c == '(') {
      ++depth;
    } else if (c == '>' || c == ')') {
      --depth;
    }
  }
  return out;
}

}  // namespace hone
