#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "program/plan.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::string_view kSchema = "hone.plan/1";
constexpr std::size_t kLargestText = std::size_t{1} << 20, kLongestString = 4096, kDeepest = 8, kMostElements = 4096;

constexpr std::pair<ArgKind, std::string_view> kArgKinds[] = {
    {ArgKind::tensor, "tensor"}, {ArgKind::workspace, "workspace"}, {ArgKind::tensor_map, "tensor_map"},
    {ArgKind::i32, "i32"},       {ArgKind::u32, "u32"},             {ArgKind::i64, "i64"},
    {ArgKind::u64, "u64"},       {ArgKind::f32, "f32"},             {ArgKind::f64, "f64"}};

// Thrown and caught inside this file.
struct Refused {
  std::string text;
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Refused{path.empty() ? "the plan " + why : path + " " + why};
}

// A value and the path that names it: "launches[0].grid.x".
struct Field {
  const json& value;
  std::string path;

  Field at(const char* key) const { return {value.at(key), path.empty() ? key : path + "." + key}; }
  Field at(std::size_t index) const { return {value[index], fmt::format("{}[{}]", path, index)}; }
  bool has(const char* key) const { return value.contains(key); }

  // An object with all of `needed` and nothing beside them but `optional`.
  void object(const std::vector<std::string>& needed, const std::vector<std::string>& optional = {}) const {
    if (!value.is_object()) refuse(path, "must be an object");
    std::vector<std::string> known = needed;
    known.insert(known.end(), optional.begin(), optional.end());
    for (const auto& [key, unused] : value.items())
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        const std::string near = nearest(key, known);
        refuse(path.empty() ? key.substr(0, 64) : path + "." + key.substr(0, 64),
               near.empty() ? "is not a known field" : "is not a known field; did you mean " + near + "?");
      }
    for (const std::string& key : needed)
      if (!value.contains(key)) refuse(path.empty() ? key : path + "." + key, "is missing");
  }
  template <class F>
  void array(F&& visit) const {
    if (!value.is_array()) refuse(path, "must be a list");
    if (value.size() > kMostElements)
      refuse(path, fmt::format("has {} elements, more than {}", value.size(), kMostElements));
    for (std::size_t i = 0; i < value.size(); ++i) visit(at(i));
  }
  std::string text() const {
    if (!value.is_string()) refuse(path, "must be a string");
    const auto& string = value.get_ref<const std::string&>();
    if (string.size() > kLongestString) refuse(path, fmt::format("is longer than {} bytes", kLongestString));
    if (string.find('\0') != std::string::npos) refuse(path, "holds a zero byte");
    return string;
  }
  bool boolean() const {
    if (!value.is_boolean()) refuse(path, "must be true or false");
    return value.get<bool>();
  }
  std::uint64_t natural(std::uint64_t most) const {
    if (value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() < 0)
      refuse(path, fmt::format("is {}, below 0", value.get<std::int64_t>()));
    if (!value.is_number_unsigned()) refuse(path, "must be a whole number");
    const auto number = value.get<std::uint64_t>();
    if (number > most) refuse(path, fmt::format("is {}, above {}", number, most));
    return number;
  }
  std::int64_t integer(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) const {
    if (!value.is_number_integer()) refuse(path, "must be a whole number");
    if (value.is_number_unsigned() &&
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse(path, fmt::format("is {}, too large", value.get<std::uint64_t>()));
    const auto number = value.get<std::int64_t>();
    if (number < least || number > most) refuse(path, fmt::format("is {}, outside {} to {}", number, least, most));
    return number;
  }
  Extent3 extent() const {
    object({"x", "y", "z"});
    return {at("x").integer(), at("y").integer(), at("z").integer()};
  }
  std::vector<std::int64_t> integers() const {
    std::vector<std::int64_t> out;
    array([&](const Field& each) { out.push_back(each.integer()); });
    return out;
  }
};

constexpr std::uint64_t kIndexMost = 1u << 20;

PlanArg read_arg(const Field& field) {
  field.object({"kind"}, {"tensor", "index", "value", "bits"});
  const std::string kind = field.at("kind").text();
  PlanArg arg;
  const auto* known =
      std::find_if(std::begin(kArgKinds), std::end(kArgKinds), [&](const auto& each) { return each.second == kind; });
  if (known == std::end(kArgKinds))
    refuse(field.path + ".kind", "is `" + kind.substr(0, 64) + "`, no kind of argument");
  arg.kind = known->first;
  switch (arg.kind) {
    case ArgKind::tensor:
      field.object({"kind", "tensor"});
      arg.tensor = field.at("tensor").text();
      break;
    case ArgKind::workspace:
    case ArgKind::tensor_map:
      field.object({"kind", "index"});
      arg.index = field.at("index").natural(kIndexMost);
      break;
    case ArgKind::i32:
      field.object({"kind", "value"});
      arg.bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(field.at("value").integer(
          std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max())));
      break;
    case ArgKind::i64:
      field.object({"kind", "value"});
      arg.bits = static_cast<std::uint64_t>(field.at("value").integer());
      break;
    case ArgKind::u32:
    case ArgKind::u64:
      field.object({"kind", "value"});
      arg.bits = field.at("value").natural(arg.kind == ArgKind::u32 ? std::numeric_limits<std::uint32_t>::max()
                                                                    : std::numeric_limits<std::uint64_t>::max());
      break;
    case ArgKind::f32:
    case ArgKind::f64:
      field.object({"kind", "bits"});
      arg.bits = field.at("bits").natural(arg.kind == ArgKind::f32 ? std::numeric_limits<std::uint32_t>::max()
                                                                   : std::numeric_limits<std::uint64_t>::max());
      break;
  }
  return arg;
}

int read_line(const Field& field) {
  return field.has("line") ? static_cast<int>(field.at("line").natural(1 << 24)) : 0;
}

PlanStep read_step(const Field& field) {
  if (!field.value.is_object()) refuse(field.path, "must be an object");
  if (!field.has("kind")) refuse(field.path + ".kind", "is missing");
  const std::string kind = field.at("kind").text();
  if (kind == "memset") {
    field.object({"kind", "value", field.has("tensor") ? "tensor" : "workspace"}, {"line"});
    PlanMemset memset;
    if (field.has("tensor")) {
      memset.tensor = field.at("tensor").text();
      if (memset.tensor.empty()) refuse(field.path + ".tensor", "is empty");
    } else {
      memset.workspace = field.at("workspace").natural(kIndexMost);
    }
    memset.value = static_cast<int>(field.at("value").integer(0, 255));
    memset.line = read_line(field);
    return memset;
  }
  if (kind != "launch") refuse(field.path + ".kind", "is `" + kind.substr(0, 64) + "`; it must be launch or memset");
  field.object({"kind", "module", "kernel", "grid", "block", "args"},
               {"cluster", "shared_bytes", "max_registers", "cooperative", "programmatic_dependent_launch", "line"});
  PlanLaunch launch;
  launch.module = field.at("module").natural(kIndexMost);
  launch.kernel = field.at("kernel").text();
  launch.grid = field.at("grid").extent();
  launch.block = field.at("block").extent();
  if (field.has("cluster")) launch.cluster = field.at("cluster").extent();
  if (field.has("shared_bytes")) launch.shared_bytes = field.at("shared_bytes").integer();
  if (field.has("max_registers")) launch.max_registers = field.at("max_registers").integer();
  if (field.has("cooperative")) launch.cooperative = field.at("cooperative").boolean();
  if (field.has("programmatic_dependent_launch"))
    launch.programmatic_dependent_launch = field.at("programmatic_dependent_launch").boolean();
  launch.line = read_line(field);
  field.at("args").array([&](const Field& each) { launch.args.push_back(read_arg(each)); });
  return launch;
}

Plan read_plan(const Field& root) {
  root.object({"schema", "modules", "workspaces", "tensor_maps", "launches"});
  if (const std::string schema = root.at("schema").text(); schema != kSchema)
    refuse("schema", fmt::format("is `{}`, not {}", schema.substr(0, 64), kSchema));
  Plan plan;
  root.at("modules").array([&](const Field& each) {
    each.object({"source", "defines"}, {"line"});
    PlanModule module{each.at("source").text(), {}, read_line(each)};
    each.at("defines").array([&](const Field& define) {
      define.object({"name", "value"});
      module.defines.emplace_back(define.at("name").text(), define.at("value").text());
    });
    plan.modules.push_back(std::move(module));
  });
  root.at("workspaces").array([&](const Field& each) {
    each.object({"name", "bytes"}, {"zeroed", "line"});
    plan.workspaces.push_back({each.at("name").text(), each.at("bytes").integer(),
                               each.has("zeroed") && each.at("zeroed").boolean(), read_line(each)});
  });
  root.at("tensor_maps").array([&](const Field& each) {
    each.object({"name", "tensor", "box", "strides", "swizzle", "l2", "fill"}, {"line"});
    plan.tensor_maps.push_back({each.at("name").text(), each.at("tensor").text(), each.at("box").integers(),
                                each.at("strides").integers(), each.at("swizzle").text(), each.at("l2").text(),
                                each.at("fill").text(), read_line(each)});
  });
  root.at("launches").array([&](const Field& each) { plan.launches.push_back(read_step(each)); });
  return plan;
}

json extent_json(const Extent3& extent) { return {{"x", extent[0]}, {"y", extent[1]}, {"z", extent[2]}}; }

json arg_json(const PlanArg& arg) {
  json out = {{"kind", name_of(arg.kind)}};
  switch (arg.kind) {
    case ArgKind::tensor: out["tensor"] = arg.tensor; break;
    case ArgKind::workspace:
    case ArgKind::tensor_map: out["index"] = arg.index; break;
    case ArgKind::i32: out["value"] = static_cast<std::int32_t>(static_cast<std::uint32_t>(arg.bits)); break;
    case ArgKind::i64: out["value"] = static_cast<std::int64_t>(arg.bits); break;
    case ArgKind::u32:
    case ArgKind::u64: out["value"] = arg.bits; break;
    case ArgKind::f32:
    case ArgKind::f64: out["bits"] = arg.bits; break;
  }
  return out;
}

json step_json(const PlanStep& step) {
  if (const auto* memset = std::get_if<PlanMemset>(&step)) {
    json out = {{"kind", "memset"}, {"value", memset->value}, {"line", memset->line}};
    if (memset->tensor.empty()) out["workspace"] = memset->workspace;
    else out["tensor"] = memset->tensor;
    return out;
  }
  const auto& launch = std::get<PlanLaunch>(step);
  json args = json::array();
  for (const PlanArg& arg : launch.args) args.push_back(arg_json(arg));
  return {{"kind", "launch"},
          {"line", launch.line},
          {"module", launch.module},
          {"kernel", launch.kernel},
          {"grid", extent_json(launch.grid)},
          {"block", extent_json(launch.block)},
          {"cluster", extent_json(launch.cluster)},
          {"shared_bytes", launch.shared_bytes},
          {"max_registers", launch.max_registers},
          {"cooperative", launch.cooperative},
          {"programmatic_dependent_launch", launch.programmatic_dependent_launch},
          {"args", std::move(args)}};
}

}  // namespace

std::string_view name_of(ArgKind kind) {
  for (const auto& [known, name] : kArgKinds)
    if (known == kind) return name;
  return "?";
}

Result<Plan> plan_from_json(std::string_view text) {
  if (text.size() > kLargestText)
    return fail(ErrorKind::plan, "the plan's JSON has {} bytes, more than {}", text.size(), kLargestText);
  const auto value = parse_json(text, {.depth = kDeepest, .values = 16 * kMostElements});
  if (!value) return fail(make_error(ErrorKind::plan, "the plan: {}", value.error().message));
  try {
    return read_plan({*value, ""});
  } catch (const Refused& refused) {
    return fail(make_error(ErrorKind::plan, "{}", refused.text));
  }
}

json plan_to_json(const Plan& plan) {
  json modules = json::array(), workspaces = json::array(), maps = json::array(), launches = json::array();
  for (const PlanModule& module : plan.modules) {
    json defines = json::array();
    for (const auto& [name, value] : module.defines) defines.push_back({{"name", name}, {"value", value}});
    modules.push_back({{"source", module.source}, {"defines", std::move(defines)}, {"line", module.line}});
  }
  for (const PlanWorkspace& workspace : plan.workspaces)
    workspaces.push_back({{"name", workspace.name}, {"bytes", workspace.bytes}, {"zeroed", workspace.zeroed}, {"line", workspace.line}});
  for (const PlanTensorMap& map : plan.tensor_maps)
    maps.push_back({{"name", map.name}, {"tensor", map.tensor}, {"box", map.box}, {"strides", map.strides},
                    {"swizzle", map.swizzle}, {"l2", map.l2}, {"fill", map.fill}, {"line", map.line}});
  for (const PlanStep& step : plan.launches) launches.push_back(step_json(step));
  return {{"schema", kSchema}, {"modules", std::move(modules)}, {"workspaces", std::move(workspaces)},
          {"tensor_maps", std::move(maps)}, {"launches", std::move(launches)}};
}

}  // namespace hone
