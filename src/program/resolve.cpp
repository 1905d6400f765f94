#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"
#include "program/candidate.h"
#include "program/symbol.h"
#include "toolchain/cubin.h"
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

// What the CUDA headers call the element types that C++ has no word for.
std::string_view cuda_type_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return "__half";
    case DType::bf16: return "__nv_bfloat16";
    case DType::e4m3: return "__nv_fp8_e4m3";
    case DType::e5m2: return "__nv_fp8_e5m2";
    case DType::ue8m0: return "__nv_fp8_e8m0";
    default: return cpp_type_of(dtype);
  }
}

// The first is the one to recommend.
std::vector<std::string> element_types(DType dtype, bool cuda) {
  std::vector<std::string> out = {cpp_type_of(dtype), "void"};
  if (cuda) out.insert(out.begin(), std::string(cuda_type_of(dtype)));
  if (dtype == DType::f16) out.push_back("_Float16");
  if (dtype == DType::i64) out.push_back("long long");
  return out;
}

// A tensor map by value: Hone's (<hone/ptx.cuh>), or the struct behind the driver's CUtensorMap.
bool is_tensor_map(const std::string& type) { return type == "hone::TensorMap" || type == "CUtensorMap_st"; }

// Bytes that a launch puts into the parameter block for an argument.
std::uint32_t bytes_of(ArgKind kind) {
  switch (kind) {
    case ArgKind::tensor_map: return 128;
    case ArgKind::i32: case ArgKind::u32: case ArgKind::f32: return 4;
    default: return 8;
  }
}

bool holds(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// `takes` is the kernel's parameter, `position` counts the plan's arguments from 1. Input memory is watched whatever the
// kernel declares; the const is for whoever writes a candidate.
Result<> check_argument(const PlanLaunch& launch, const PlanArg& arg, const std::string& takes, std::size_t position,
                        const ProblemShape& problem, bool cuda, bool trusted) {
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
    const std::vector<std::string> types = element_types(tensor->dtype, cuda);
    const std::string wanted = fmt::format("{}{}*", input ? "const " : "", types[0]);
    const std::string gives =
        fmt::format("{} {} of dtype {}", name_of(tensor->role), tensor->name, name_of(tensor->dtype));
    if (!pointer) return refuse(gives, wanted);
    if (!holds(types, pointer->target)) return refuse(gives + ": wrong dtype", wanted);
    if (input && !pointer->constant && !trusted)
      return fail(name_error(launch, fmt::format("argument {}: input {} is passed as a pointer to non-const ({})",
                                                 position, tensor->name, takes))
                      .with_hint(fmt::format("declare the parameter {}", wanted)));
    return {};
  }
  if (arg.kind == ArgKind::tensor_map && cuda) {
    if (!is_tensor_map(takes)) return refuse("a tensor map", "const __grid_constant__ hone::TensorMap");
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

// `cubin` is null for a shared object, whose kernels take the block before the plan's arguments.
Result<> check_arguments(const PlanLaunch& launch, const FunctionName& function, const ProblemShape& problem, const CubinKernel* cubin,
                         bool trusted) {
  if (cubin == nullptr && (function.parameters.empty() || function.parameters[0] != kBlock))
    return fail(
        name_error(launch, fmt::format("its first parameter must be `const hone::Block&`; it is {}", function.text())));
  const std::size_t first = cubin == nullptr ? 1 : 0, takes = function.parameters.size() - first;
  if (takes != launch.args.size())
    return fail(name_error(launch, fmt::format("it takes {} argument{}{}, the plan gives {}", takes, takes == 1 ? "" : "s",
                                               cubin == nullptr ? " after the block" : "", launch.args.size()))
                    .with_note("it is " + function.text()));
  if (cubin != nullptr && cubin->parameters.size() != takes)
    return fail(name_error(launch, fmt::format("its name says {} parameters, the cubin {}", takes, cubin->parameters.size()))
                    .with_note("it is " + function.text()));
  for (std::size_t i = 0; i < takes; ++i) {
    auto checked = check_argument(launch, launch.args[i], function.parameters[i + first], i + 1, problem, cubin != nullptr, trusted);
    if (!checked) return fail(std::move(checked).error().with_note("it is " + function.text()));
    if (cubin != nullptr && cubin->parameters[i].bytes != bytes_of(launch.args[i].kind))
      return fail(name_error(launch, fmt::format("argument {}: the kernel takes {} bytes, the plan gives {}", i + 1, cubin->parameters[i].bytes,
                                                 bytes_of(launch.args[i].kind)))
                      .with_note("it is " + function.text()));
  }
  return {};
}

// A function that a plan may mean: of a shared object, or a kernel of a cubin.
struct ModuleFunction {
  std::string_view symbol;
  std::uint64_t offset = 0;
  const CubinKernel* cubin = nullptr;
};

}  // namespace

Result<KernelSymbol> resolve_kernel(std::string_view module, const PlanLaunch& launch, const ProblemShape& problem, bool trusted) {
  HONE_CHECK(check_kernel_name(launch.kernel));
  KernelName wanted = split_kernel_name(launch.kernel);
  if (wanted.qualified.starts_with("::")) wanted.qualified.erase(0, 2);
  std::vector<std::string> arguments;
  for (const std::string& each : wanted.arguments) arguments.push_back(normal(each));
  const std::string base =
      wanted.qualified.substr(wanted.qualified.rfind(':') == std::string::npos ? 0 : wanted.qualified.rfind(':') + 1);

  const bool cuda = is_cubin(module);
  std::vector<CubinKernel> kernels;
  std::vector<ModuleFunction> functions;
  if (cuda) {
    HONE_TRY(kernels, kernels_of_cubin(module));
    for (const CubinKernel& kernel : kernels) functions.push_back({kernel.symbol, 0, &kernel});
  } else {
    HONE_TRY(const auto found, functions_of(module));
    for (const ElfFunction& function : found) functions.push_back({function.name, function.offset, nullptr});
  }
  struct Found {
    FunctionName name;
    ModuleFunction function;
  };
  std::vector<Found> exact, loose;
  std::set<std::string> others, siblings;  // names of kernels, for the hint; those of the same template
  bool c_linkage = false;
  std::string unread;
  std::size_t demangled = 0;
  for (const ModuleFunction& function : functions) {
    c_linkage = c_linkage || function.symbol == wanted.qualified;
    const bool named = function.symbol.find(base) != std::string_view::npos;
    if (!function.symbol.starts_with("_Z") || (!named && !cuda && function.symbol.find("4hone5Block") == std::string_view::npos))
      continue;
    if (++demangled > kMostDemangled)
      return fail(name_error(
          launch, fmt::format("the module holds more than {} functions that could be meant", kMostDemangled)));
    auto name = demangle_function(function.symbol);
    if (!name) {
      if (named && function.symbol.find('.') == std::string_view::npos) unread = function.symbol.substr(0, 200);
      continue;
    }
    const Match how = match(wanted, arguments, *name);
    if (how == Match::none) {
      auto& list = name->qualified == wanted.qualified ? siblings : others;
      const bool kernel = cuda || (!name->parameters.empty() && name->parameters[0] == kBlock);
      if (kernel && list.size() < 256)
        list.insert(name->is_template ? fmt::format("{}<{}>", name->qualified, fmt::join(name->arguments, ", "))
                                      : name->qualified);
      continue;
    }
    auto& list = how == Match::exact ? exact : loose;
    if (std::none_of(list.begin(), list.end(), [&](const Found& each) {
          return each.function.offset == function.offset && each.name.text() == name->text();
        }))
      list.push_back({*std::move(name), function});
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
    // A template that nothing instantiates leaves no trace in the module.
    if (launch.kernel.find('<') == std::string::npos && !error.hint.starts_with("did you mean"))
      error.hint += fmt::format("{}a template's arguments belong to its name: {}<...>", error.hint.empty() ? "" : "; ", launch.kernel);
    if (!unread.empty()) error.notes.push_back(fmt::format("a function whose name Hone cannot read: {}", unread));
    return fail(std::move(error));
  }
  const Found& one = found[0];
  HONE_CHECK(check_arguments(launch, one.name, problem, one.function.cubin, trusted));
  return KernelSymbol{one.function.offset, std::string(one.function.symbol), one.name.text()};
}

}  // namespace hone
