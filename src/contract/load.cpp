// task.yaml and its folder as a Task: schema first, then everything that a schema cannot say.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "base/yaml.h"
#include "contract/task.h"
#include "toolchain/headers.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr double kMaxWorkloadBytes = 64.0 * (1u << 30);
constexpr std::size_t kMaxNameLength = 64;

// Letters, digits, _ and what `also` holds, first a letter or _ (a digit too where `also` is not empty).
bool is_word(std::string_view text, std::string_view also) {
  if (text.empty() || text.size() > kMaxNameLength) return false;
  for (char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '_' && also.find(c) == std::string_view::npos) return false;
  }
  const bool digit = text[0] >= '0' && text[0] <= '9';
  return also.find(text[0]) == std::string_view::npos && (!digit || !also.empty());
}

bool is_reserved(std::string_view name) {
  static const std::set<std::string_view> kWords = {"and", "or", "not", "min", "max", "sum", "count", "ceil_div", "align_up", "id"};
  return kWords.contains(name);
}

class Loader {
 public:
  Loader(Task& task, YamlDocument document) : task_(task), document_(std::move(document)), root_(document_.value) {}

  Result<> run() {
    HONE_CHECK(read_head());
    HONE_CHECK(read_axes());
    HONE_CHECK(read_tensors());
    HONE_CHECK(read_workloads());
    HONE_CHECK(read_inputs());
    HONE_CHECK(read_gates());
    HONE_CHECK(read_code());
    return read_policies();
  }

 private:
  struct Axis {
    bool list = false;
    std::string value;   // expression of a derived axis
  };
  struct TensorSpec {
    std::string name, pointer;
    DType dtype = DType::f32;
    TensorRole role = TensorRole::input;
    std::vector<std::string> shape, strides;
    std::int64_t alignment = 64;
  };

  template <class... A>
  tl::unexpected<Error> bad(const std::string& pointer, fmt::format_string<A...> format, A&&... args) const {
    return tl::unexpected<Error>(make_error(ErrorKind::contract, "{}: {}", pointer.substr(1), fmt::format(format, std::forward<A>(args)...))
                                     .at(document_.place_of(pointer)));
  }

  // The error of an expression, at the expression's place in the file.
  tl::unexpected<Error> bad_expression(const std::string& pointer, Error error, const std::string& context = {}) const {
    error.message = pointer.substr(1) + ": " + error.message + (context.empty() ? "" : ", in " + context);
    error.place = document_.place_of(pointer);
    return tl::unexpected<Error>(std::move(error));
  }

  static std::string expression_text(const json& value) {
    return value.is_string() ? value.get<std::string>() : std::to_string(value.get<std::int64_t>());
  }

  // Unknown names in an expression are found once, not workload by workload.
  Result<> check_names(const std::string& pointer, const std::string& expression) const {
    auto names = names_in(expression);
    if (!names) return bad_expression(pointer, names.error());
    for (const std::string& name : *names) {
      if (axes_.contains(name)) continue;
      std::vector<std::string> known;
      for (const auto& [each, axis] : axes_) known.push_back(each);
      const std::string near = nearest(name, known);
      auto error = bad(pointer, "unknown axis \"{}\" in \"{}\"", name, expression);
      error.value().hint = near.empty() ? fmt::format("axes: {}", fmt::join(known, ", ")) : fmt::format("did you mean \"{}\"?", near);
      return error;
    }
    return {};
  }

  Result<> read_head() {
    if (root_.contains("name") && root_["name"] != task_.name)
      return bad("/name", "{} is not the folder's name, {}", root_["name"].dump(), task_.name);
    task_.summary = root_["summary"].get<std::string>();
    task_.device = root_["device"].get<std::string>();
    if (root_.contains("architectures")) task_.architectures = root_["architectures"].get<std::vector<std::string>>();
    if (task_.architectures.empty() && task_.device == "cpu") task_.architectures = {"cpu"};
    if (task_.architectures.empty()) return bad("/device", "a cuda task needs the key architectures, such as [sm_90a]");
    if (root_.contains("notes")) task_.notes = root_["notes"].get<std::string>();
    return {};
  }

  Result<> read_axes() {
    for (const auto& [name, value] : root_["axes"].items()) {
      const std::string pointer = "/axes/" + name;
      if (!is_word(name, "") || is_reserved(name)) return bad(pointer, "\"{}\" cannot be the name of an axis", name);
      Axis axis;
      if (value.is_object()) {
        axis.list = value.value("list", false);
        if (value.contains("value")) axis.value = expression_text(value["value"]);
        if (axis.list && !axis.value.empty()) return bad(pointer, "a list axis comes from the workload and has no value");
      }
      axes_[name] = axis;
    }
    for (const auto& [name, axis] : axes_)
      if (!axis.value.empty()) HONE_CHECK(check_names("/axes/" + name + "/value", axis.value));
    return order_axes();
  }

  // Derived axes may build on one another: an order in which each comes after what it needs.
  Result<> order_axes() {
    std::set<std::string> known;
    for (const auto& [name, axis] : axes_)
      if (axis.value.empty()) known.insert(name);
    std::size_t left = axes_.size() - known.size();
    while (left > 0) {
      const std::size_t before = left;
      for (const auto& [name, axis] : axes_) {
        if (known.contains(name)) continue;
        HONE_TRY(const std::vector<std::string> needs, names_in(axis.value));
        if (!std::all_of(needs.begin(), needs.end(), [&](const std::string& need) { return known.contains(need); })) continue;
        known.insert(name);
        derived_.push_back(name);
        --left;
      }
      if (left == before)
        for (const auto& [name, axis] : axes_)
          if (!known.contains(name)) return bad("/axes/" + name, "the axis depends on itself");
    }
    return {};
  }

  static DType dtype_of(const std::string& text) {
#define HONE_DTYPE_FROM(name, bytes, cpp, floating) \
  if (text == #name) return DType::name;
    HONE_DTYPES(HONE_DTYPE_FROM)
#undef HONE_DTYPE_FROM
    return DType::f32;
  }

  Result<> read_tensors() {
    bool output = false;
    for (std::size_t i = 0; i < root_["tensors"].size(); ++i) {
      const json& value = root_["tensors"][i];
      TensorSpec spec;
      spec.pointer = fmt::format("/tensors/{}", i);
      spec.name = value["name"].get<std::string>();
      if (!is_word(spec.name, "")) return bad(spec.pointer + "/name", "\"{}\" cannot be the name of a tensor", spec.name);
      if (find_tensor(spec.name) != nullptr) return bad(spec.pointer + "/name", "a second tensor \"{}\"", spec.name);
      spec.dtype = dtype_of(value["dtype"].get<std::string>());
      const std::string role = value["role"].get<std::string>();
      spec.role = role == "input" ? TensorRole::input : role == "output" ? TensorRole::output : TensorRole::persistent;
      output = output || spec.role != TensorRole::input;
      for (const char* key : {"shape", "strides"}) {
        if (!value.contains(key)) continue;
        for (std::size_t k = 0; k < value[key].size(); ++k) {
          const std::string text = expression_text(value[key][k]);
          HONE_CHECK(check_names(fmt::format("{}/{}/{}", spec.pointer, key, k), text));
          (std::string_view(key) == "shape" ? spec.shape : spec.strides).push_back(text);
        }
      }
      if (!spec.strides.empty() && spec.strides.size() != spec.shape.size())
        return bad(spec.pointer + "/strides", "{} strides for {} dimensions", spec.strides.size(), spec.shape.size());
      spec.alignment = value.value("alignment", std::int64_t{64});
      if ((spec.alignment & (spec.alignment - 1)) != 0 || spec.alignment < static_cast<std::int64_t>(size_of(spec.dtype)))
        return bad(spec.pointer + "/alignment", "{} is not a power of two of at least the element's size", spec.alignment);
      tensors_.push_back(std::move(spec));
    }
    if (!output) return bad("/tensors", "no tensor has the role output");
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const json& value = root_["tensors"][i];
      if (!value.contains("scale") || value["scale"] == false) continue;
      const std::string pointer = tensors_[i].pointer + "/scale";
      if (tensors_[i].role != TensorRole::input) return bad(pointer, "only an input can be a scale");
      const std::string of = value["scale"].is_string() ? value["scale"].get<std::string>() : "";
      if (!of.empty() && find_tensor(of) == nullptr) return bad(pointer, "unknown tensor \"{}\"", of);
      task_.scale_inputs[tensors_[i].name] = of;
    }
    return {};
  }

  const TensorSpec* find_tensor(std::string_view name) const {
    for (const TensorSpec& each : tensors_)
      if (each.name == name) return &each;
    return nullptr;
  }

  Result<> read_workloads() {
    for (const char* key : {"flops", "bytes"})
      if (root_.contains(key)) HONE_CHECK(check_names(std::string("/") + key, expression_text(root_[key])));
    for (std::size_t i = 0; i < root_["workloads"].size(); ++i) {
      const json& value = root_["workloads"][i];
      const std::string pointer = fmt::format("/workloads/{}", i);
      Workload workload;
      workload.id = value["id"].get<std::string>();
      if (!is_word(workload.id, "-.")) return bad(pointer + "/id", "\"{}\" cannot be a workload's id", workload.id);
      if (task_.find(workload.id) != nullptr) return bad(pointer + "/id", "a second workload \"{}\"", workload.id);
      HONE_CHECK(read_workload_axes(value, pointer, workload));
      double bytes = 0, touched = 0;
      for (const TensorSpec& spec : tensors_) {
        HONE_TRY(TensorShape shape, resolve(spec, workload));
        bytes += static_cast<double>(shape.bytes());
        const double part = static_cast<double>(shape.elements()) * static_cast<double>(size_of(shape.dtype));
        touched += part * (spec.role == TensorRole::persistent ? 2 : 1);
        workload.tensors.push_back(std::move(shape));
      }
      if (bytes > kMaxWorkloadBytes)
        return bad(pointer, "the tensors of workload {} take {:.0f} GiB, more than {:.0f}", workload.id, bytes / (1u << 30), kMaxWorkloadBytes / (1u << 30));
      HONE_TRY(workload.flops, work("flops", workload, 0));
      HONE_TRY(workload.bytes, work("bytes", workload, touched));
      task_.workloads.push_back(std::move(workload));
    }
    return {};
  }

  Result<> read_workload_axes(const json& value, const std::string& pointer, Workload& workload) {
    for (const auto& [name, given] : value.items()) {
      if (name == "id") continue;
      const std::string at = pointer + "/" + name;
      const auto axis = axes_.find(name);
      if (axis == axes_.end()) {
        std::vector<std::string> known;
        for (const auto& [each, ignored] : axes_) known.push_back(each);
        auto error = bad(at, "unknown axis \"{}\"", name);
        const std::string near = nearest(name, known);
        if (!near.empty()) error.value().hint = fmt::format("did you mean \"{}\"?", near);
        return error;
      }
      if (!axis->second.value.empty()) return bad(at, "the axis is derived: {}", axis->second.value);
      if (given.is_array() != axis->second.list) return bad(at, "the axis needs {}", axis->second.list ? "a list" : "one number");
      std::vector<std::int64_t>& values = workload.axes[name];
      for (const json& each : given.is_array() ? given : json::array({given})) {
        if (!each.is_number_integer() || (each.is_number_unsigned() && each.get<std::uint64_t>() > INT64_MAX))
          return bad(at, "{} does not fit in 64 bits", each.dump());
        values.push_back(each.get<std::int64_t>());
        if (values.back() < 0 || (values.back() == 0 && !axis->second.list)) return bad(at, "{} is too small", values.back());
      }
      if (axis->second.list) workload.list_axes.push_back(name);
    }
    for (const auto& [name, axis] : axes_)
      if (axis.value.empty() && !workload.axes.contains(name)) return bad(pointer, "workload {} lacks the axis {}", workload.id, name);
    for (const std::string& name : derived_) {
      auto result = evaluate(axes_[name].value, workload.axes);
      if (!result) return bad_expression("/axes/" + name + "/value", result.error(), "workload " + workload.id);
      workload.axes[name] = {*result};
    }
    return {};
  }

  Result<TensorShape> resolve(const TensorSpec& spec, const Workload& workload) const {
    TensorShape shape;
    shape.name = spec.name;
    shape.dtype = spec.dtype;
    shape.role = spec.role;
    shape.alignment = spec.alignment;
    std::int64_t elements = 1;
    for (std::size_t k = 0; k < spec.shape.size(); ++k) {
      const std::string at = fmt::format("{}/shape/{}", spec.pointer, k);
      auto extent = evaluate(spec.shape[k], workload.axes);
      if (!extent) return bad_expression(at, extent.error(), "workload " + workload.id);
      if (*extent < 1) return bad(at, "\"{}\" is {} in workload {}; an extent is at least 1", spec.shape[k], *extent, workload.id);
      if (__builtin_mul_overflow(elements, *extent, &elements) || elements > (std::int64_t{1} << 40))
        return bad(at, "tensor {} of workload {} has too many elements", spec.name, workload.id);
      shape.shape.push_back(*extent);
    }
    shape.strides.resize(shape.shape.size(), 1);
    for (std::size_t k = shape.shape.size() - 1; k-- > 0;) shape.strides[k] = shape.strides[k + 1] * shape.shape[k + 1];
    for (std::size_t k = 0; k < spec.strides.size(); ++k) {
      const std::string at = fmt::format("{}/strides/{}", spec.pointer, k);
      auto stride = evaluate(spec.strides[k], workload.axes);
      if (!stride) return bad_expression(at, stride.error(), "workload " + workload.id);
      if (*stride < 1 || *stride > (std::int64_t{1} << 40))
        return bad(at, "\"{}\" is {} in workload {}; a stride is between 1 and 2^40", spec.strides[k], *stride, workload.id);
      shape.strides[k] = *stride;
    }
    // Elements must not share memory: each stride steps over all that the smaller ones reach.
    std::vector<std::size_t> order(shape.shape.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shape.strides[a] < shape.strides[b]; });
    std::int64_t reach = 1;
    for (std::size_t k : order) {
      if (shape.shape[k] == 1) continue;
      if (shape.strides[k] < reach)
        return bad(spec.pointer + "/strides", "the elements of {} overlap in workload {}: stride {} of dimension {} is below {}", spec.name,
                   workload.id, shape.strides[k], k, reach);
      std::int64_t span;
      if (__builtin_mul_overflow(shape.shape[k] - 1, shape.strides[k], &span) || __builtin_add_overflow(reach, span, &reach) ||
          reach > (std::int64_t{1} << 40))
        return bad(spec.pointer + "/strides", "tensor {} of workload {} reaches too far", spec.name, workload.id);
    }
    return shape;
  }

  Result<double> work(const char* key, const Workload& workload, double fallback) const {
    if (!root_.contains(key)) return fallback;
    const std::string pointer = std::string("/") + key;
    auto value = evaluate(expression_text(root_[key]), workload.axes);
    if (!value) return bad_expression(pointer, value.error(), "workload " + workload.id);
    if (*value < 0) return bad(pointer, "{} in workload {}", *value, workload.id);
    return static_cast<double>(*value);
  }

  Result<Distribution> read_distribution(const json& value, const std::string& pointer, const TensorSpec& tensor) const {
    using Kind = Distribution::Kind;
    if (value.is_string()) {
      if (value == "structured") return Distribution{Kind::structured, 0, 0};
      return bad(pointer, "{} is no distribution", value.dump());
    }
    const std::string key = value.begin().key();
    const std::string at = pointer + "/" + key;
    const json& given = value.begin().value();
    static const std::map<std::string_view, Kind> kKinds = {
        {"uniform", Kind::uniform}, {"bell", Kind::bell}, {"integers", Kind::integers}, {"bits", Kind::bits},
        {"constant", Kind::constant}, {"log_scale", Kind::log_scale}, {"sparse", Kind::sparse}};
    Distribution out;
    out.kind = kKinds.at(key);
    if (given.is_array()) {
      out.low = given[0].get<double>();
      out.high = given[1].get<double>();
      if (out.low > out.high) return bad(at, "{} is above {}", given[0].dump(), given[1].dump());
    } else if (out.kind == Kind::constant) {
      out.low = given.get<double>();
    } else {
      out.low = 0;
      out.high = given.get<double>();
    }
    const bool floats = out.kind == Kind::uniform || out.kind == Kind::bell || out.kind == Kind::log_scale || out.kind == Kind::sparse;
    if (floats && !is_floating(tensor.dtype)) return bad(at, "{} is for floating tensors, and {} is {}", key, tensor.name, name_of(tensor.dtype));
    if ((out.kind == Kind::uniform || out.kind == Kind::bell || out.kind == Kind::constant) &&
        (std::abs(out.low) > 3.0e38 || std::abs(out.high) > 3.0e38))
      return bad(at, "beyond the range of float32");
    if (out.kind == Kind::uniform && out.high - out.low > 3.0e38) return bad(at, "the range is wider than float32 can hold");
    if (out.kind == Kind::integers && (std::abs(out.low) > 9e15 || std::abs(out.high) > 9e15 || out.high - out.low >= 4294967296.0))
      return bad(at, "whole numbers go up to 9e15 and spread over less than 2^32");
    if (out.kind == Kind::bits && size_of(tensor.dtype) < 4 && out.high >= std::ldexp(1.0, static_cast<int>(8 * size_of(tensor.dtype))))
      return bad(at, "{} does not fit in the {} bits of {}", given[1].dump(), 8 * size_of(tensor.dtype), name_of(tensor.dtype));
    return out;
  }

  Result<> read_input_map(const std::string& pointer, const json& map, InputSet& set) const {
    for (const auto& [name, value] : map.items()) {
      const std::string at = pointer + "/" + name;
      const TensorSpec* tensor = find_tensor(name);
      if (tensor == nullptr || tensor->role == TensorRole::output) {
        std::vector<std::string> known;
        for (const TensorSpec& each : tensors_)
          if (each.role != TensorRole::output) known.push_back(each.name);
        auto error = bad(at, "\"{}\" is no input", name);
        error.value().hint = fmt::format("inputs: {}", fmt::join(known, ", "));
        return error;
      }
      HONE_TRY(set.inputs[name], read_distribution(value, at, *tensor));
    }
    return {};
  }

  Result<> read_inputs() {
    InputSet random;
    random.name = "random";
    random.reason = "what is timed";
    for (const TensorSpec& each : tensors_)
      if (each.role != TensorRole::output)
        random.inputs[each.name] = is_floating(each.dtype) ? Distribution{} : Distribution{Distribution::Kind::structured, 0, 0};
    if (root_.contains("inputs")) HONE_CHECK(read_input_map("/inputs", root_["inputs"], random));
    task_.input_sets.push_back(random);
    const json hard = root_.value("hard", json::array());
    for (std::size_t i = 0; i < hard.size(); ++i) {
      const std::string pointer = fmt::format("/hard/{}", i);
      InputSet set = random;
      set.name = hard[i]["name"].get<std::string>();
      set.reason = hard[i]["reason"].get<std::string>();
      if (!is_word(set.name, "-")) return bad(pointer + "/name", "\"{}\" cannot be the name of an input set", set.name);
      for (const InputSet& each : task_.input_sets)
        if (each.name == set.name) return bad(pointer + "/name", "a second input set \"{}\"", set.name);
      if (hard[i].contains("inputs")) HONE_CHECK(read_input_map(pointer + "/inputs", hard[i]["inputs"], set));
      task_.input_sets.push_back(std::move(set));
    }
    return {};
  }

  static Gate gate_from(const json& value) {
    return {value["metric"].get<std::string>(), value["limit"].get<double>(), value.value("abs_floor", 0.0)};
  }

  Result<> read_gates() {
    const json gates = root_.value("gates", json::object());
    for (const auto& [name, value] : gates.items()) {
      const TensorSpec* tensor = find_tensor(name);
      if (tensor == nullptr || tensor->role == TensorRole::input) return bad("/gates/" + name, "\"{}\" is no output", name);
      task_.gates[name] = gate_from(value);
    }
    for (const TensorSpec& each : tensors_) {
      if (each.role == TensorRole::input || task_.gates.contains(each.name)) continue;
      if (!root_.contains("gate")) return bad(each.pointer, "the output {} has no gate", each.name);
      task_.gates[each.name] = gate_from(root_["gate"]);
    }
    return {};
  }

  Result<> read_code() {
    const bool gpu = task_.device == "cuda";
    task_.oracle = root_.value("oracle", gpu ? "task.cu" : "task.cpp");
    if (task_.oracle.ends_with(".cu") != gpu)
      return bad("/oracle", "{} is not for device {}: trusted code of a CUDA task is a .cu, of others a .cpp", task_.oracle, task_.device);
    if (!task_.files.contains(task_.oracle)) return bad("/oracle", "there is no file {} in the task's folder", task_.oracle);
    for (std::size_t i = 0; i < root_["baselines"].size(); ++i) {
      const json& value = root_["baselines"][i];
      const std::string pointer = fmt::format("/baselines/{}", i);
      BaselineSpec spec;
      spec.name = value["name"].get<std::string>();
      spec.source = value["source"].get<std::string>();
      if (!is_word(spec.name, "-.")) return bad(pointer + "/name", "\"{}\" cannot be the name of a baseline", spec.name);
      for (const BaselineSpec& each : task_.baselines)
        if (each.name == spec.name) return bad(pointer + "/name", "a second baseline \"{}\"", spec.name);
      while (spec.source.ends_with('/')) spec.source.pop_back();
      const bool folder = task_.files.contains(spec.source + "/plan.cpp");
      if (!folder && !task_.files.contains(spec.source))
        return bad(pointer + "/source", "{} is neither a file nor a folder with a plan.cpp in the task's folder", spec.source);
      spec.kind = folder ? BaselineSpec::Kind::program : BaselineSpec::Kind::native;
      if (value.contains("flags")) spec.flags = value["flags"].get<std::vector<std::string>>();
      if (folder && !spec.flags.empty()) return bad(pointer + "/flags", "a kernel program's flags are in its candidate.yaml");
      for (const json& each : value.value("link", json::array())) {
        const std::string library = each.get<std::string>();
        if (!is_word(library, "-+.")) return bad(pointer + "/link", "\"{}\" cannot be the name of a library", library);
        if (folder) return bad(pointer + "/link", "a kernel program links with nothing");
        spec.link.push_back("-l" + library);
      }
      spec.needs = value.value("needs", "");
      if (!spec.needs.empty() && find_header_package(spec.needs) == nullptr) {
        std::vector<std::string_view> known;
        for (const HeaderPackage& each : header_packages()) known.push_back(each.name);
        return bad(pointer + "/needs", "there is no package of headers \"{}\"; there is {}", spec.needs, fmt::join(known, ", "));
      }
      task_.baselines.push_back(std::move(spec));
    }
    return {};
  }

  Result<> read_policies() {
    if (root_.contains("memory")) {
      const json& given = root_["memory"];
      auto size = given.is_string() ? parse_size(given.get<std::string>()) : Result<std::uint64_t>(given.get<std::uint64_t>());
      if (!size) return bad_expression("/memory", Error{ErrorKind::contract, size.error().message});
      if (*size < (1u << 20)) return bad("/memory", "{} bytes are too few for any program", *size);
      task_.memory_bytes = *size;
    }
    task_.call_timeout_s = root_.value("call_timeout_s", task_.call_timeout_s);
    if (root_.contains("leak_bans")) task_.leak_bans = root_["leak_bans"].get<std::vector<std::string>>();
    if (root_.contains("timing")) {
      const json& given = root_["timing"];
      TimingPolicy& timing = task_.timing;
      timing.warmup_s = given.value("warmup_s", timing.warmup_s);
      timing.min_effect = given.value("min_effect", timing.min_effect);
      timing.target_halfwidth = given.value("target_halfwidth", timing.target_halfwidth);
      timing.min_pairs = given.value("min_pairs", timing.min_pairs);
      timing.max_pairs = given.value("max_pairs", timing.max_pairs);
      timing.budget_s = given.value("budget_s", timing.budget_s);
      if (timing.max_pairs < timing.min_pairs) return bad("/timing", "max_pairs {} is below min_pairs {}", timing.max_pairs, timing.min_pairs);
    }
    return {};
  }

  Task& task_;
  YamlDocument document_;
  const json& root_;
  std::map<std::string, Axis> axes_;
  std::vector<std::string> derived_;
  std::vector<TensorSpec> tensors_;
};

std::vector<fs::path> task_folders() {
  std::vector<fs::path> folders;
  if (auto share = share_dir()) folders.push_back(*share / "tasks");
  folders.push_back(data_dir() / "tasks");
  return folders;
}

Result<fs::path> find_folder(const std::string& name) {
  std::error_code code;
  if (is_word(name, "-"))
    for (const fs::path& folder : task_folders())
      if (fs::exists(folder / name / "task.yaml", code)) return folder / name;
  if (name.empty() || name.size() > 4096) return fail(ErrorKind::not_found, "a task needs a name");
  fs::path path = fs::path(name).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (fs::is_directory(path, code)) {
    if (fs::exists(path / "task.yaml", code)) return fs::absolute(path, code).lexically_normal();
    return fail(make_error(ErrorKind::not_found, "the folder {} has no task.yaml", path.string()));
  }
  const std::vector<std::string> known = task_names();
  const std::string near = nearest(name, known);
  return fail(make_error(ErrorKind::not_found, "unknown task \"{}\"", name)
                  .with_hint(near.empty() ? fmt::format("tasks: {}", fmt::join(known, ", ")) : fmt::format("did you mean \"{}\"?", near)));
}

}  // namespace

const Workload* Task::find(std::string_view workload) const {
  for (const Workload& each : workloads)
    if (each.id == workload) return &each;
  return nullptr;
}

std::vector<std::string> task_names() {
  std::set<std::string> names;
  for (const fs::path& folder : task_folders()) {
    std::error_code code;
    for (fs::directory_iterator each(folder, code), end; !code && each != end; each.increment(code)) {
      std::error_code ignored;
      if (fs::exists(each->path() / "task.yaml", ignored)) names.insert(each->path().filename().string());
    }
  }
  return {names.begin(), names.end()};
}

Result<Task> load_task(const std::string& name) {
  HONE_TRY(const fs::path folder, find_folder(name));
  Task task;
  task.folder = folder;
  task.name = folder.filename().string();
  const std::string file = (folder / "task.yaml").string();
  if (!is_word(task.name, "-"))
    return fail(make_error(ErrorKind::contract, "\"{}\" cannot be the name of a task", task.name).at({folder.string(), 0, 0})
                    .with_hint("letters, digits, - and _, at most 64"));
  HONE_TRY(task.files, read_tree(folder));
  const auto text = task.files.find("task.yaml");
  if (text == task.files.end()) return fail(make_error(ErrorKind::contract, "{} is not a file", file).at({file}));
  HONE_TRY(YamlDocument document, parse_yaml(text->second, file));
  HONE_TRY(const fs::path share, share_dir());
  HONE_TRY(const std::string schema, read_file(share / "schema" / "task.json", std::size_t{1} << 20));
  HONE_CHECK(check_schema(document, schema));
  task.sha256 = hash_of(task.files);
  HONE_CHECK(Loader(task, std::move(document)).run());
  return task;
}

ProblemShape problem_of(const Workload& workload, const std::string& device, std::int64_t workers) {
  ProblemShape problem;
  problem.workload = workload.id;
  problem.device = device;
  problem.workers = workers;
  for (const auto& [name, values] : workload.axes)
    if (std::find(workload.list_axes.begin(), workload.list_axes.end(), name) == workload.list_axes.end())
      problem.axes.emplace_back(name, values.at(0));
  problem.tensors = workload.tensors;
  return problem;
}

}  // namespace hone
