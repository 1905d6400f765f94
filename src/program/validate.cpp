#include <algorithm>
#include <set>

#include "base/text.h"
#include "program/plan.h"
#include "toolchain/kernel_name.h"

namespace hone {
namespace {

bool is_identifier(std::string_view name) {
  if (name.empty() || name.size() > 128 || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

template <class... A>
tl::unexpected<Error> refuse(const std::string& field, fmt::format_string<A...> format, A&&... args) {
  return fail(
      make_error(ErrorKind::plan, "{}: {}", field, fmt::format(format, std::forward<A>(args)...)).at({"plan.cpp"}));
}

template <class Part>
int line_of(const Part& part) { return part.line; }
int line_of(const PlanStep& step) { return std::visit([](const auto& what) { return what.line; }, step); }

// `check` on every part of a list, with its path; a refusal gets the part's line.
template <class Part, class Check>
Result<> each(const std::vector<Part>& parts, const char* list, Check&& check) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (Result<> result = check(parts[i], fmt::format("{}[{}]", list, i)); !result) {
      result.error().place.line = line_of(parts[i]);
      return result;
    }
  return {};
}

constexpr const char* kAxisNames[] = {"x", "y", "z"};

class Validator {
 public:
  Validator(const Plan& plan, const ProblemShape& problem, const ProgramLimits& limits,
            const std::vector<std::string>& sources)
      : plan_(plan), problem_(problem), limits_(limits), sources_(sources) {}

  Result<> run() const {
    HONE_CHECK(modules());
    HONE_CHECK(workspaces());
    HONE_CHECK(tensor_maps());
    if (std::none_of(plan_.launches.begin(), plan_.launches.end(),
                     [](const PlanStep& step) { return std::holds_alternative<PlanLaunch>(step); }))
      return refuse("launches", "the plan launches no kernel for workload {}", problem_.workload);
    if (plan_.launches.size() > limits_.max_steps)
      return refuse("launches", "{} steps are more than {}", plan_.launches.size(), limits_.max_steps);
    return each(plan_.launches, "launches", [&](const PlanStep& step, const std::string& field) -> Result<> {
      if (const auto* launch = std::get_if<PlanLaunch>(&step)) return this->launch(*launch, field);
      return memset(std::get<PlanMemset>(step), field);
    });
  }

 private:
  Result<> modules() const {
    if (plan_.modules.size() > limits_.max_modules)
      return refuse("modules", "{} modules are more than {}", plan_.modules.size(), limits_.max_modules);
    return each(plan_.modules, "modules", [&](const PlanModule& module, const std::string& field) -> Result<> {
      if (std::find(sources_.begin(), sources_.end(), module.source) == sources_.end()) {
        const std::string near = nearest(module.source, sources_);
        return refuse(field + ".source", "the candidate has no file `{}`{}", module.source,
                      near.empty() ? "" : "; did you mean " + near + "?");
      }
      if (module.defines.size() > 64)
        return refuse(field + ".defines", "{} macros are more than 64", module.defines.size());
      std::set<std::string> names;
      for (std::size_t j = 0; j < module.defines.size(); ++j) {
        const auto& [name, value] = module.defines[j];
        const std::string define = fmt::format("{}.defines[{}]", field, j);
        if (!is_identifier(name)) return refuse(define + ".name", "`{}` is not an identifier", name);
        if (!names.insert(name).second) return refuse(define + ".name", "macro {} is there twice", name);
        if (value.size() > 1024 ||
            std::any_of(value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
          return refuse(define + ".value", "the value of {} is too long or holds a control character", name);
      }
      return {};
    });
  }

  Result<> workspaces() const {
    std::int64_t left = limits_.max_workspace_bytes;
    std::set<std::string> names;
    return each(plan_.workspaces, "workspaces", [&](const PlanWorkspace& workspace, const std::string& field) -> Result<> {
      if (!is_identifier(workspace.name)) return refuse(field + ".name", "`{}` is not an identifier", workspace.name);
      if (!names.insert(workspace.name).second)
        return refuse(field + ".name", "workspace {} is there twice", workspace.name);
      if (workspace.bytes < 1) return refuse(field + ".bytes", "is {}, below 1", workspace.bytes);
      if (workspace.bytes > left)
        return refuse(field + ".bytes", "is {}; the device gives {} for all workspaces together, {} are left",
                      workspace.bytes, limits_.max_workspace_bytes, left);
      left -= workspace.bytes;
      return {};
    });
  }

  Result<> tensor_maps() const {
    if (!plan_.tensor_maps.empty() && !limits_.tensor_maps)
      return refuse("tensor_maps", "device {} has no tensor maps", problem_.device);
    if (plan_.tensor_maps.size() > 64)
      return refuse("tensor_maps", "{} tensor maps are more than 64", plan_.tensor_maps.size());
    return each(plan_.tensor_maps, "tensor_maps", [&](const PlanTensorMap& map, const std::string& field) -> Result<> {
      HONE_TRY(const TensorShape* tensor, this->tensor(map.tensor, field + ".tensor"));
      if (map.box.empty() || map.box.size() > tensor->shape.size())
        return refuse(field + ".box", "has {} extents; tensor {} has {}", map.box.size(), tensor->name,
                      tensor->shape.size());
      if (!tensor->flattened(map.box.size()))
        return refuse(field + ".box", "has {} extents; tensor {} has {}, and gaps between those to be taken as one",
                      map.box.size(), tensor->name, tensor->shape.size());
      for (std::size_t d = 0; d < map.box.size(); ++d)
        if (map.box[d] < 1 || map.box[d] > 256)
          return refuse(fmt::format("{}.box[{}]", field, d), "is {}, outside 1 to 256", map.box[d]);
      if (!map.strides.empty() && map.strides.size() != map.box.size())
        return refuse(field + ".strides", "has {} values; the box has {}", map.strides.size(), map.box.size());
      HONE_CHECK(one_of(map.swizzle, {"none", "32B", "64B", "128B"}, field + ".swizzle"));
      HONE_CHECK(one_of(map.l2, {"none", "64B", "128B", "256B"}, field + ".l2"));
      HONE_CHECK(one_of(map.fill, {"zero", "nan"}, field + ".fill"));
      return {};
    });
  }

  Result<> launch(const PlanLaunch& launch, const std::string& field) const {
    if (launch.module >= plan_.modules.size())
      return refuse(field + ".module", "is {}; the plan has {} modules", launch.module, plan_.modules.size());
    if (auto named = check_kernel_name(launch.kernel); !named) {
      Error error = named.error();
      error.message = field + ".kernel: " + error.message;
      return fail(std::move(error).at({"plan.cpp"}));
    }
    HONE_CHECK(extent(launch.grid, limits_.max_grid, field + ".grid"));
    HONE_CHECK(extent(launch.block, limits_.max_block, field + ".block"));
    const std::int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];   // limited above
    if (threads > limits_.max_threads_per_block)
      return refuse(field + ".block", "has {} threads; the device allows {}", threads, limits_.max_threads_per_block);
    __int128 cluster = 1, blocks = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      if (launch.cluster[d] < 1)
        return refuse(fmt::format("{}.cluster.{}", field, kAxisNames[d]), "is {}, below 1", launch.cluster[d]);
      if (launch.grid[d] % launch.cluster[d] != 0)
        return refuse(fmt::format("{}.cluster.{}", field, kAxisNames[d]), "is {} and does not divide the grid's {}",
                      launch.cluster[d], launch.grid[d]);
      cluster *= launch.cluster[d];
      blocks *= launch.grid[d];
    }
    if (cluster > limits_.max_cluster)
      return refuse(field + ".cluster", "has {} blocks; the device allows {}",
                    static_cast<std::int64_t>(std::min<__int128>(cluster, INT64_MAX)), limits_.max_cluster);
    if (blocks > (std::int64_t{1} << 40)) return refuse(field + ".grid", "has more than 2^40 blocks");
    if (launch.cooperative && limits_.max_resident_blocks == 0)
      return refuse(field + ".cooperative", "device {} has no cooperative launches", problem_.device);
    if (launch.cooperative && blocks > limits_.max_resident_blocks)
      return refuse(field + ".cooperative", "{} blocks cannot run together; the device holds {}",
                    static_cast<std::int64_t>(blocks), limits_.max_resident_blocks);
    if (launch.shared_bytes < 0 || launch.shared_bytes > limits_.max_shared_bytes)
      return refuse(field + ".shared_bytes", "is {}; the device allows 0 to {}", launch.shared_bytes,
                    limits_.max_shared_bytes);
    if (launch.max_registers < 0 || launch.max_registers > 255)
      return refuse(field + ".max_registers", "is {}, outside 0 to 255", launch.max_registers);
    if (launch.args.size() > limits_.max_args)
      return refuse(field + ".args", "{} arguments are more than {}", launch.args.size(), limits_.max_args);
    for (std::size_t i = 0; i < launch.args.size(); ++i)
      HONE_CHECK(argument(launch.args[i], fmt::format("{}.args[{}]", field, i)));
    return {};
  }

  Result<> argument(const PlanArg& arg, const std::string& field) const {
    if (arg.kind == ArgKind::tensor) HONE_CHECK(tensor(arg.tensor, field + ".tensor"));
    if (arg.kind == ArgKind::workspace && arg.index >= plan_.workspaces.size())
      return refuse(field + ".index", "is {}; the plan has {} workspaces", arg.index, plan_.workspaces.size());
    if (arg.kind == ArgKind::tensor_map && arg.index >= plan_.tensor_maps.size())
      return refuse(field + ".index", "is {}; the plan has {} tensor maps", arg.index, plan_.tensor_maps.size());
    return {};
  }

  Result<> memset(const PlanMemset& memset, const std::string& field) const {
    if (memset.value < 0 || memset.value > 255)
      return refuse(field + ".value", "is {}, outside 0 to 255", memset.value);
    if (memset.tensor.empty()) {
      if (memset.workspace >= plan_.workspaces.size())
        return refuse(field + ".workspace", "is {}; the plan has {} workspaces", memset.workspace,
                      plan_.workspaces.size());
      return {};
    }
    HONE_TRY(const TensorShape* tensor, this->tensor(memset.tensor, field + ".tensor"));
    if (tensor->role == TensorRole::input)
      return refuse(field + ".tensor", "{} is an input and cannot be written", memset.tensor);
    return {};
  }

  Result<> extent(const Extent3& extent, const Extent3& most, const std::string& field) const {
    for (std::size_t d = 0; d < 3; ++d) {
      const std::string axis = field + "." + kAxisNames[d];
      if (extent[d] < 1) return refuse(axis, "is {}, below 1", extent[d]);
      if (extent[d] > most[d]) return refuse(axis, "is {}; device {} allows {}", extent[d], problem_.device, most[d]);
    }
    return {};
  }

  Result<> one_of(const std::string& value, std::initializer_list<const char*> known, const std::string& field) const {
    if (std::find(known.begin(), known.end(), value) != known.end()) return {};
    return refuse(field, "is `{}`; it must be one of {}", value, fmt::join(known, ", "));
  }

  Result<const TensorShape*> tensor(const std::string& name, const std::string& field) const {
    std::vector<std::string> names;
    for (const TensorShape& each : problem_.tensors) {
      if (each.name == name) return &each;
      names.push_back(each.name);
    }
    return refuse(field, "workload {} has no tensor `{}`; there is: {}", problem_.workload, name,
                  fmt::join(names, ", "));
  }

  const Plan& plan_;
  const ProblemShape& problem_;
  const ProgramLimits& limits_;
  const std::vector<std::string>& sources_;
};

}  // namespace

Result<> validate(const Plan& plan, const ProblemShape& problem, const ProgramLimits& limits,
                  const std::vector<std::string>& sources) {
  return Validator(plan, problem, limits, sources).run();
}

}  // namespace hone
