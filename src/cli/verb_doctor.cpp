#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/facts.h"
#include "cli/verb.h"

namespace hone::cli {
namespace {

nlohmann::json to_json(const Fact& fact) {
  const auto text = [](const std::string& value) { return value.empty() ? nlohmann::json(nullptr) : nlohmann::json(value); };
  return {{"id", fact.id}, {"state", name_of(fact.state)}, {"value", fact.value}, {"cost", text(fact.cost)}, {"mend", text(fact.mend)},
          {"needed", fact.needed}};
}

void print(const std::vector<FactGroup>& groups, bool brief) {
  for (const FactGroup& group : groups) {
    fmt::print("{}\n", group.title);
    for (const Fact& fact : group.facts) {
      fmt::print("  {:<8}{:<18}{}\n", name_of(fact.state), fact.id, fact.value);
      if (brief || fact.state == Fact::State::ok) continue;
      fmt::print("{:28}costs: {}\n{:28}mend:  {}\n", "", fact.cost, "", fact.mend);
    }
  }
}

int doctor(const Global& global, bool brief) {
  std::optional<Sandbox> sandbox;
  if (const auto share = share_dir())
    if (auto made = Sandbox::create(global.sandbox == "off" ? SandboxMode::off : SandboxMode::on, *share / "libexec")) sandbox.emplace(*std::move(made));
  const std::vector<FactGroup> groups{machine_facts(global.workers), tool_facts(sandbox ? &*sandbox : nullptr), gpu_facts()};
  std::vector<std::string> lacks;
  for (const FactGroup& group : groups)
    for (const Fact& fact : group.facts)
      if (fact.needed && fact.state == Fact::State::missing) lacks.push_back(fact.id);

  if (global.json) {
    nlohmann::json facts = nlohmann::json::array();
    for (const FactGroup& group : groups)
      for (const Fact& fact : group.facts) {
        facts.push_back(to_json(fact));
        facts.back()["group"] = group.title;
      }
    const nlohmann::json out{{"schema", "hone.doctor/1"}, {"version", HONE_VERSION}, {"cpu_path", lacks.empty()}, {"lacks", lacks}, {"facts", facts}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    print(groups, brief);
    fmt::print("\n{}\n", lacks.empty() ? "CPU path: works" : fmt::format("CPU path: does not work, lacks {}", fmt::join(lacks, ", ")));
  }
  return lacks.empty() ? 0 : exit_code_of(ErrorKind::environment);
}

}  // namespace

void define_doctor(CLI::App& app, Invocation& invocation) {
  auto brief = std::make_shared<bool>(false);
  app.add_flag("--brief", *brief, "one line a fact, without costs and remedies");
  app.callback([&invocation, brief] { invocation.action = [&invocation, brief] { return doctor(invocation.global, *brief); }; });
}

}  // namespace hone::cli
