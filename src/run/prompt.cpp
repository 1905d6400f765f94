#include "run/prompt.h"

#include <kainjow/mustache.hpp>

#include "base/text.h"

namespace hone {
namespace {

namespace mustache = kainjow::mustache;

std::string number(double value) { return fmt::format("{:.6g}", value); }

std::string axes_text(const ExpressionValues& axes) {
  std::string text;
  for (const auto& [name, values] : axes) {
    if (!text.empty()) text += ", ";
    text += name + "=";
    if (values.size() == 1) text += std::to_string(values[0]);
    else text += fmt::format("[{}]", fmt::join(values, " "));
  }
  return text;
}

mustache::data tensor_data(const TensorShape& tensor) {
  mustache::data data;
  data["name"] = tensor.name;
  data["dtype"] = std::string(name_of(tensor.dtype));
  data["role"] = std::string(name_of(tensor.role));
  data["shape"] = fmt::format("{}", fmt::join(tensor.shape, " x "));
  data["strides"] = fmt::format("{}", fmt::join(tensor.strides, ", "));
  return data;
}

}  // namespace

Result<std::string> render_prompt(const Task& task, const Manifest& manifest) {
  HONE_TRY(const fs::path share, share_dir());
  const fs::path file = share / "prompts/PROMPT.md.mustache";
  HONE_TRY(const std::string text, read_file(file, std::size_t{1} << 20));
  mustache::mustache page(text);
  page.set_custom_escape([](const std::string& raw) { return raw; });   // Markdown, not HTML
  if (!page.is_valid())
    return fail(make_error(ErrorKind::contract, "template is malformed: {}", page.error_message()).at({file.string()}));

  mustache::data data;
  data["run"] = manifest.name;
  data["task"] = task.name;
  data["summary"] = task.summary;
  data["notes"] = task.notes;
  data["device"] = task.device;
  data["cpu"] = task.device == "cpu";
  if (!manifest.remote.empty()) data["remote"] = manifest.remote;
  data["target"] = manifest.target ? number(*manifest.target) + "x" : std::string();
  data["has_target"] = manifest.target.has_value();
  data["budget"] = to_text(manifest.budget);
  data["has_budget"] = !manifest.budget.empty();
  data["call_timeout"] = format_duration(task.call_timeout_s);
  data["memory"] = format_bytes(task.memory_bytes);
  data["workload_count"] = std::to_string(task.workloads.size());

  mustache::data workloads(mustache::data::type::list);
  for (const Workload& each : task.workloads) {
    mustache::data row;
    row["id"] = each.id;
    row["axes"] = axes_text(each.axes);
    row["flops"] = number(each.flops);
    row["bytes"] = number(each.bytes);
    workloads << row;
  }
  data.set("workloads", workloads);

  mustache::data tensors(mustache::data::type::list);
  if (!task.workloads.empty())
    for (const TensorShape& each : task.workloads.front().tensors) tensors << tensor_data(each);
  data.set("tensors", tensors);
  data["first_workload"] = task.workloads.empty() ? std::string() : task.workloads.front().id;

  mustache::data gates(mustache::data::type::list);
  for (const auto& [tensor, gate] : task.gates) {
    mustache::data row;
    row["tensor"] = tensor;
    row["metric"] = gate.metric;
    row["limit"] = number(gate.limit);
    gates << row;
  }
  data.set("gates", gates);

  mustache::data sets(mustache::data::type::list);
  for (const InputSet& each : task.input_sets) {
    mustache::data row;
    row["name"] = each.name;
    row["reason"] = each.reason.empty() ? std::string("what is timed") : each.reason;
    sets << row;
  }
  data.set("input_sets", sets);

  mustache::data baselines(mustache::data::type::list);
  for (const BaselineSpec& each : task.baselines) {
    mustache::data row;
    row["name"] = each.name;
    baselines << row;
  }
  data.set("baselines", baselines);
  std::string rendered = page.render(data);
  if (!page.is_valid())
    return fail(make_error(ErrorKind::contract, "template cannot be rendered: {}", page.error_message()).at({file.string()}));
  return rendered;
}

}  // namespace hone
