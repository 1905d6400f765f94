#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"
#include "program/candidate.h"
#include "program/symbol.h"
#include "toolchain/kernel_name.h"

namespace hone {
namespace {

constexpr std::size_t kMostDemangled = 4096, kMostListed = 8;
constexpr std::string_view kBlock = "hone::Block const&";

// Names that the standard headers give to builtin types, as compilers of this platform mean them.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"int8_t", "signed char"}, {"uint8_t", "unsigned char"}, {"int16_t", "short"}, {"uint16_t", "unsigned short"},
    {"int32_t", "int"}, {"uint32_t", "unsigned int"}, {"int64_t", "long"}, {"uint64_t", "unsigned long"},
    {"size_t", "unsigned long"}, {"ptrdiff_t", "long"}, {"unsigned", "unsigned int"}};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Blanks only where two words would run together.
std::string squeezed(std::string_view text) {
  std::string out;
  bool blank = false;
  for (const char c : text) {
    if (c == ' ') {
      blank = true;
      continue;
    }
    if (blank && !out.empty() && is_word(out.back()) && is_word(c)) out += ' ';
    blank = false;
    out += c;
  }
  return out;
}

// One spelling for all spellings of a template argument: "(int)3", "3u", "0x3" are 3, "true" is 1,
// "std::uint32_t" is "unsigned int", "const float*" is "float const*".
std::string normal(std::string_view argument) {
  std::string text = squeezed(argument);
  if (text == "true") return "1";
  if (text == "false") return "0";
  std::string_view number = text;
  if (number.starts_with('('))
    if (const std::size_t close = number.find(')'); close != std::string_view::npos) number.remove_prefix(close + 1);
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  if (!number.empty() && number[0] >= '0' && number[0] <= '9') {
    while (!number.empty() && std::string_view("uUlL").find(number.back()) != std::string_view::npos)
      number.remove_suffix(1);
    const bool hex = number.starts_with("0x") || number.starts_with("0X");
    if (hex) number.remove_prefix(2);
    const int base = hex ? 16 : number.size() > 1 && number[0] == '0' ? 8 : 10;
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value, base);
    if (code == std::errc() && end == number.data() + number.size())
      return (negative && value != 0 ? "-" : "") + std::to_string(value);
    return text;
  }
  std::string tail;
  while (text.ends_with('*') || text.ends_with('&')) {
    tail.insert(0, 1, text.back());
    text.pop_back();
  }
  if (text.starts_with("const ")) text = text.substr(6) + " const";
  std::string constant;
  if (text.ends_with(" const")) {
    constant = " const";
    text.resize(text.size() - 6);
  }
  const std::string_view bare = text.starts_with("std::") ? std::string_view(text).substr(5) : std::string_view(text);
  for (const auto& [alias, meant] : kAliases)
    if (bare == alias) return std::string(meant) + constant + tail;
  if (const KernelName nested = split_kernel_name(text); nested.has_arguments) {
    std::vector<std::string> arguments;
    for (const std::string& each : nested.arguments) arguments.push_back(normal(each));
    text = fmt::format("{}<{}>", nested.qualified, fmt::join(arguments, ","));
  }
  return text + constant + tail;
}

// "bf16" and "hone::bf16": the name as a using-declaration lets a source write it.
bool same_argument(const std::string& written, const std::string& actual) {
  return written == actual || (actual.size() > written.size() + 2 && actual.ends_with("::" + written));
}

enum class Match { none, loose, exact };

Match match(const KernelName& wanted, const std::vector<std::string>& arguments, const FunctionName& function) {
  if (function.qualified != wanted.qualified || function.is_template != wanted.has_arguments) return Match::none;
  if (arguments.size() > function.arguments.size()) return Match::none;
  Match result =
      arguments.size() == function.arguments.size() ? Match::exact : Match::loose;  // loose: default arguments
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string actual = normal(function.arguments[i]);
    if (arguments[i] == actual) continue;
    if (!same_argument(arguments[i], actual)) return Match::none;
    result = Match::loose;
  }
  return result;
}

Error name_error(const PlanLaunch& launch, std::string text) {
  return make_error(ErrorKind::kernel_name, "kernel `{}`: {}", launch.kernel, text).at({"plan.cpp", launch.line});
}

struct Pointer {
  std::string target;   // "float"
  bool constant = false;
};

std::optional<Pointer> as_pointer(std::string type) {
  while (type.ends_with(" restrict")) type.resize(type.size() - 9);
  if (!type.ends_with('*')) return std::nullopt;
  type.pop_back();
  Pointer out;
  if (type.ends_with(" const")) {
    out.constant = true;
    type.resize(type.size() - 6);
  }
  out.target = type;
  return out;
}

std::vector<std::string> scalar_types(ArgKind kind) {
  switch (kind) {
    case ArgKind::i32: return {"int"};
    case ArgKind::u32: return {"unsigned int"};
    case ArgKind::i64: return {"long", "long long"};
    case ArgKind::u64: return {"unsigned long", "unsigned long long"};
    case ArgKind::f32: return {"float"};
    case ArgKind::f64: return {"double"};
    default: return {};
  }
}

std::vector<std::string> element_types(DType dtype) {
  std::vector<std::string> out = {cpp_type_of(dtype), "void"};
  if (dtype == DType::f16) out.push_back("_Float16");
  if (dtype == DType::i64) out.push_back("long long");
  return out;
}

bool holds(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// `takes` is the kernel's parameter, `position` counts the plan's arguments from 1.
Result<> check_argument(const PlanLaunch& launch, const PlanArg& arg, const std::string& takes, std::size_t position,
                        const ProblemShape& problem) {
  const auto pointer = as_pointer(takes);
  auto refuse = [&](const std::string& gives, const std::string& wanted) {
    return fail(
        name_error(launch, fmt::format("argument {}: the kernel takes {}, the plan gives {}", position, takes, gives))
            .with_hint(fmt::format("declare the parameter {}", wanted)));
  };
  if (arg.kind == ArgKind::tensor) {
    const auto tensor = std::find_if(problem.tensors.begin(), problem.tensors.end(),
                                     [&](const TensorShape& each) { return each.name == arg.tensor; });
    if (tensor == problem.tensors.end())
      return fail(name_error(launch, fmt::format("argument {}: no tensor `{}`", position, arg.tensor)));
    const bool input = tensor->role == TensorRole::input;
    const std::string wanted = fmt::format("{}{}*", input ? "const " : "", cpp_type_of(tensor->dtype));
    const std::string gives =
        fmt::format("{} {} of dtype {}", name_of(tensor->role), tensor->name, name_of(tensor->dtype));
    if (!pointer) return refuse(gives, wanted);
    if (!holds(element_types(tensor->dtype), pointer->target)) return refuse(gives + ": wrong dtype", wanted);
    if (input && !pointer->constant)
      return fail(name_error(launch, fmt::format("argument {}: input {} is passed as a pointer to non-const ({})",
                                                 position, tensor->name, takes))
                      .with_hint(fmt::format("declare the parameter {}", wanted)));
    return {};
  }
  if (arg.kind == ArgKind::workspace || arg.kind == ArgKind::tensor_map) {
    if (!pointer) return refuse(arg.kind == ArgKind::workspace ? "a workspace" : "a tensor map", "as a pointer");
    return {};
  }
  const auto types = scalar_types(arg.kind);
  if (holds(types, takes)) return {};
  return fail(name_error(launch, fmt::format("argument {}: the kernel takes {}, the plan gives {} ({})", position,
                                             takes, name_of(arg.kind), types[0]))
                  .with_hint(fmt::format("declare the parameter {}, or cast the value in the plan", types[0])));
}

Result<> check_arguments(const PlanLaunch& launch, const FunctionName& function, const ProblemShape& problem) {
  if (function.parameters.empty() || function.parameters[0] != kBlock)
    return fail(
        name_error(launch, fmt::format("its first parameter must be `const hone::Block&`; it is {}", function.text())));
  const std::size_t takes = function.parameters.size() - 1;
  if (takes != launch.args.size())
    return fail(name_error(launch, fmt::format("it takes {} argument{} after the block, the plan gives {}", takes,
                                               takes == 1 ? "" : "s", launch.args.size()))
                    .with_note("it is " + function.text()));
  for (std::size_t i = 0; i < takes; ++i) {
    auto checked = check_argument(launch, launch.args[i], function.parameters[i + 1], i + 1, problem);
    if (!checked) return fail(std::move(checked).error().with_note("it is " + function.text()));
  }
  return {};
}

}  // namespace

Result<KernelSymbol> resolve_kernel(std::string_view shared_object, const PlanLaunch& launch,
                                    const ProblemShape& problem) {
  HONE_CHECK(check_kernel_name(launch.kernel));
  KernelName wanted = split_kernel_name(launch.kernel);
  if (wanted.qualified.starts_with("::")) wanted.qualified.erase(0, 2);
  std::vector<std::string> arguments;
  for (const std::string& each : wanted.arguments) arguments.push_back(normal(each));
  const std::string base =
      wanted.qualified.substr(wanted.qualified.rfind(':') == std::string::npos ? 0 : wanted.qualified.rfind(':') + 1);

  HONE_TRY(const auto functions, functions_of(shared_object));
  struct Found {
    FunctionName name;
    std::uint64_t offset;
  };
  std::vector<Found> exact, loose;
  std::set<std::string> others, siblings;  // names of kernels, for the hint; those of the same template
  bool c_linkage = false;
  std::string unread;
  std::size_t demangled = 0;
  for (const ElfFunction& function : functions) {
    c_linkage = c_linkage || function.name == wanted.qualified;
    const bool named = function.name.find(base) != std::string_view::npos;
    if (!function.name.starts_with("_Z") || (!named && function.name.find("4hone5Block") == std::string_view::npos))
      continue;
    if (++demangled > kMostDemangled)
      return fail(name_error(
          launch, fmt::format("the module holds more than {} functions that could be meant", kMostDemangled)));
    auto name = demangle_function(function.name);
    if (!name) {
      if (named && function.name.find('.') == std::string_view::npos) unread = function.name.substr(0, 200);
      continue;
    }
    const Match how = match(wanted, arguments, *name);
    if (how == Match::none) {
      auto& list = name->qualified == wanted.qualified ? siblings : others;
      if (!name->parameters.empty() && name->parameters[0] == kBlock && list.size() < 256)
        list.insert(name->is_template ? fmt::format("{}<{}>", name->qualified, fmt::join(name->arguments, ", "))
                                      : name->qualified);
      continue;
    }
    auto& list = how == Match::exact ? exact : loose;
    if (std::none_of(list.begin(), list.end(), [&](const Found& each) {
          return each.offset == function.offset && each.name.text() == name->text();
        }))
      list.push_back({*std::move(name), function.offset});
  }

  const std::vector<Found>& found = exact.empty() ? loose : exact;
  if (found.size() > 1) {
    Error error = name_error(launch, fmt::format("it names {} functions", found.size()))
                      .with_hint("give the overloads different names");
    for (std::size_t i = 0; i < found.size() && i < kMostListed; ++i) error.notes.push_back(found[i].name.text());
    return fail(std::move(error));
  }
  if (found.empty()) {
    if (c_linkage)
      return fail(
          name_error(launch, "it has C linkage, so its parameters cannot be checked").with_hint("remove extern \"C\""));
    Error error = name_error(launch, "the module has no such function");
    const auto& list = siblings.empty() ? others : siblings;
    const std::vector<std::string> known(list.begin(), list.end());
    if (const std::string near = nearest(launch.kernel, known); !near.empty() && siblings.empty())
      error.hint = fmt::format("did you mean {}?", near);
    else if (!known.empty())
      error.hint = fmt::format(
          "it has {}",
          fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kMostListed)),
                    ", "));
    if (!unread.empty()) error.notes.push_back(fmt::format("a function whose name Hone cannot read: {}", unread));
    return fail(std::move(error));
  }
  HONE_CHECK(check_arguments(launch, found[0].name, problem));
  return KernelSymbol{found[0].offset, found[0].name.text()};
}

}  // namespace hone
