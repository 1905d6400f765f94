// Plan evaluation: one jailed process for all problems, and one more after each problem that ends it.
#include <signal.h>

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "program/candidate.h"

namespace hone {
namespace {

constexpr std::size_t kLargestPlan = std::size_t{1} << 20;
constexpr std::size_t kMostProblems = 1024;
constexpr std::size_t kMostDeaths = 3;        // after that the rest is not tried
constexpr double kCpuSeconds = 2, kWallSeconds = 5;
constexpr std::uint64_t kMemory = std::uint64_t{512} << 20;
constexpr const char* kMain = ".hone/plan_main.cpp";   // a hidden name: no candidate has it

void put(std::string& out, std::string_view field) { out += fmt::format("{}:{}", field.size(), field); }
void put(std::string& out, std::int64_t number) { put(out, std::to_string(number)); }

std::string problem_fields(const Candidate& candidate, const ProblemShape& problem) {
  std::string out;
  put(out, problem.workload);
  put(out, problem.device);
  put(out, problem.workers);
  put(out, static_cast<std::int64_t>(problem.axes.size()));
  for (const auto& [name, value] : problem.axes) {
    put(out, name);
    put(out, value);
  }
  put(out, static_cast<std::int64_t>(candidate.values.size()));
  for (const auto& [name, value] : candidate.values) {
    put(out, name);
    put(out, value);
  }
  put(out, static_cast<std::int64_t>(problem.tensors.size()));
  for (const TensorShape& tensor : problem.tensors) {
    put(out, tensor.name);
    put(out, name_of(tensor.dtype));
    put(out, name_of(tensor.role));
    put(out, tensor.alignment);
    put(out, static_cast<std::int64_t>(tensor.shape.size()));
    for (const std::int64_t extent : tensor.shape) put(out, extent);
    for (const std::int64_t stride : tensor.strides) put(out, stride);
  }
  return out;
}

Error plan_error(ErrorKind kind, const std::string& what, int line = 0) {
  return make_error(kind, "plan evaluation: {}", what).at({"plan.cpp", line});
}

// What the plan program says of its own fault; nothing of it is trusted.
struct Fault {
  std::string message = "an unreadable message";
  int line = 0;
};

Fault fault_in(std::string_view text) {
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  Fault fault;
  if (!value.is_object()) return fault;
  if (const auto it = value.find("message"); it != value.end() && it->is_string()) fault.message = it->get<std::string>();
  if (fault.message.size() > 1000) fault.message.resize(1000);
  for (char& c : fault.message)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t') c = ' ';
  if (const auto it = value.find("line"); it != value.end() && it->is_number_unsigned() && *it < 1'000'000) fault.line = it->get<int>();
  return fault;
}

Result<Plan> read_answer(std::string_view kind, std::string_view text) {
  if (kind == "plan") {
    if (text.size() > kLargestPlan)
      return fail(plan_error(
          ErrorKind::output_limit,
          fmt::format("the plan has {}, more than {}", format_bytes(text.size()), format_bytes(kLargestPlan))));
    auto plan = plan_from_json(text);
    if (plan) return plan;
    return fail(plan_error(plan.error().kind, plan.error().message));
  }
  const Fault fault = fault_in(text);
  if (kind == "unsupported")
    return fail(plan_error(ErrorKind::plan, "the candidate does not support it: " + fault.message));
  if (kind == "out_of_memory")
    return fail(plan_error(ErrorKind::out_of_memory,
                           fmt::format("it reached the memory limit of {}", format_bytes(kMemory))));
  return fail(plan_error(ErrorKind::plan, fault.message, fault.line));
}

// Why the process ended before it answered.
Error death(const ProcessOutcome& outcome) {
  if (outcome.cancelled) return plan_error(ErrorKind::cancelled, "cancelled");
  if (outcome.flooded || outcome.out_dropped > 0)
    return plan_error(
        ErrorKind::output_limit,
        fmt::format("it printed without end; {} bytes dropped", outcome.out_dropped + outcome.err_dropped));
  if (outcome.timed_out || outcome.signal == SIGXCPU || outcome.signal == SIGKILL)
    return plan_error(ErrorKind::timeout,
                      fmt::format("it did not end within {} of processor time or {}", format_duration(kCpuSeconds),
                                  format_duration(kWallSeconds)))
        .with_hint("a plan only computes sizes; it should take microseconds");
  if (outcome.signal == SIGSYS) return plan_error(ErrorKind::forbidden, "the sandbox refused a system call");
  if (outcome.signal != 0) {
    Error error = plan_error(ErrorKind::crash,
                             fmt::format("it died of signal {} ({})", outcome.signal, ::strsignal(outcome.signal)));
    if (outcome.signal == SIGABRT && outcome.err.find("terminate called") != std::string::npos)
      error.notes.push_back(outcome.err.substr(0, 400));
    return error;
  }
  return plan_error(ErrorKind::plan,
                    fmt::format("it ended with exit code {} instead of returning", outcome.exit_code));
}

// The answers in `out` to `count` problems: index to kind and text. The last one for an index counts
// only when none came before: a plan that finds the descriptor can only speak about itself anyway.
std::vector<std::optional<std::pair<std::string, std::string>>> answers_in(std::string_view out, std::size_t count) {
  std::vector<std::optional<std::pair<std::string, std::string>>> answers(count);
  while (!out.empty()) {
    const std::size_t end = out.find('\n');
    if (end == std::string_view::npos) break;   // torn
    std::string_view line = out.substr(0, end);
    out.remove_prefix(end + 1);
    if (!line.starts_with('\x1e')) continue;
    line.remove_prefix(1);
    const std::size_t first = line.find(' ');
    const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
    if (second == std::string_view::npos) continue;
    std::size_t index = 0;
    const auto [stop, code] = std::from_chars(line.data() + first + 1, line.data() + second, index);
    if (code != std::errc() || stop != line.data() + second || index >= count || answers[index]) continue;
    answers[index] = {std::string(line.substr(0, first)), std::string(line.substr(second + 1))};
  }
  return answers;
}

Result<Artifact> compile_plan(const Candidate& candidate, const Toolchain& toolchain) {
  HONE_TRY(const fs::path share, share_dir());
  CompileRequest request;
  request.sources = candidate.sources;
  HONE_TRY(request.sources[kMain], read_file(share / "plan_main.cpp"));
  request.entry = kMain;
  request.compiler = candidate.is_cuda() ? "g++" : candidate.compiler;
  request.kind = ArtifactKind::executable;
  request.native = false;
  auto artifact = toolchain.compile(request);
  if (!artifact && artifact.error().message.find("undefined reference to `plan(hone::Problem const&, hone::Plan&)'") !=
                       std::string::npos)
    return fail(make_error(ErrorKind::plan, "plan.cpp does not define `void plan(const hone::Problem&, hone::Plan&)`")
                    .at({"plan.cpp"}));
  return artifact;
}

}  // namespace

Result<std::vector<Result<Plan>>> evaluate_plans(const Candidate& candidate, const std::vector<ProblemShape>& problems,
                                                 const Toolchain& toolchain, const Sandbox& sandbox) {
  if (problems.size() > kMostProblems)
    return fail(ErrorKind::plan, "{} workloads are more than {}", problems.size(), kMostProblems);
  HONE_TRY(const Artifact program, compile_plan(candidate, toolchain));
  const bool jailed = sandbox.mode() == SandboxMode::on;
  JailSpec jail;
  jail.argv = {jailed ? "/hone/plan" : program.path.string()};
  if (jailed) jail.mounts = {{program.path, "/hone/plan", false}};
  jail.policy = SyscallPolicy::compute;
  jail.tools = false;   // the program is linked statically
  jail.limits.memory_bytes = kMemory;
  jail.limits.file_bytes = 0;
  jail.limits.tmp_bytes = std::uint64_t{1} << 20;
  jail.limits.cpu_s = kCpuSeconds;
  jail.limits.wall_s = kWallSeconds;
  jail.limits.processes = 1;
  jail.limits.open_files = 32;

  std::vector<Result<Plan>> plans;
  for (std::size_t deaths = 0; plans.size() < problems.size();) {
    const std::size_t first = plans.size(), count = problems.size() - first;
    if (deaths == kMostDeaths) {
      plans.emplace_back(
          fail(plan_error(ErrorKind::plan,
                          fmt::format("not tried, since the program died for {} workloads before", deaths))));
      continue;
    }
    std::string fields;
    put(fields, "hone.problem/1");
    put(fields, static_cast<std::int64_t>(count));
    for (std::size_t i = first; i < problems.size(); ++i) fields += problem_fields(candidate, problems[i]);
    jail.stdin_text = std::move(fields);
    jail.limits.output_bytes = std::min(count * (kLargestPlan + 4096), std::size_t{64} << 20);
    HONE_TRY(const ProcessOutcome outcome, sandbox.run(jail));
    const auto answers = answers_in(outcome.out, count);
    for (std::size_t i = 0; i < count && answers[i]; ++i)
      plans.push_back(read_answer(answers[i]->first, answers[i]->second));
    if (plans.size() < problems.size()) {
      plans.emplace_back(fail(death(outcome)));
      ++deaths;
    }
  }
  return plans;
}

}  // namespace hone
