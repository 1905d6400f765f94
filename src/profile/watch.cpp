#include "profile/watch.h"

#include "base/clock.h"
#include "base/text.h"
#include "profile/tool.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kSaid = 2000;  // bytes of a tool's words in an error

// The process's own word.
void take_answer(const fs::path& file, Watched& out) {
  const auto text = read_file(file);
  const json answer = text ? json::parse(*text, nullptr, false) : json();
  out.answered = answer.is_object();
  if (!out.answered) {
    out.fault = make_error(ErrorKind::crash, "the process that was watched ended without an answer").with_note(out.said.substr(0, kSaid));
  } else if (answer.contains("error")) {
    Error error;
    from_json(answer["error"], error);
    out.fault = std::move(error);
  }
}

}  // namespace

std::vector<std::string> in_plain_words(std::vector<std::string> env) {
  std::erase_if(env, [](const std::string& each) { return each.starts_with("LC_") || each.starts_with("LANG="); });
  env.emplace_back("LC_ALL=C");
  return env;
}

Result<> can_watch(const Task& task, const std::string& tool) {
  if (task.device != "cuda")
    return fail(make_error(ErrorKind::contract, "task {} is for device {}: {} looks at CUDA kernels only", task.name, task.device, tool)
                    .with_hint("`hone inspect` shows what a CPU kernel is made of"));
  HONE_CHECK(find_vendor_tool(tool));
  return {};
}

Result<Watched> watch(const std::vector<std::string>& tool, const WatchedCommand& command, const fs::path& folder,
                      const WatchRequest& request) {
  HONE_CHECK(remove_tree(command.answer));
  ProcessSpec spec;
  spec.argv = tool;
  spec.argv.insert(spec.argv.end(), command.argv.begin(), command.argv.end());
  spec.env = in_plain_words(command.env);
  spec.cwd = folder.string();
  spec.timeout_s = request.timeout_s;
  spec.cancel = request.cancel;
  HONE_TRY(ProcessOutcome outcome, run_process(spec));
  if (outcome.cancelled) return fail(ErrorKind::cancelled, "cancelled");
  const std::string name = fs::path(tool.front()).filename().string();
  if (outcome.flooded) return fail(ErrorKind::output_limit, "{} printed more than {}", name, format_bytes(spec.output_kill));
  Watched out;
  out.said = outcome.out + "\n" + outcome.err;
  out.seconds = outcome.wall_s;
  if (outcome.timed_out) {
    out.ended = false;
    out.fault = make_error(ErrorKind::timeout, "{} did not end within {}", name, format_duration(request.timeout_s))
                    .with_hint("a smaller workload (--workload), or a longer --timeout");
  } else {
    take_answer(command.answer, out);
  }
  return out;
}

Result<json> watch_report(const Task& task, const Candidate& candidate, const WatchRequest& request, const Workload& otherwise, Bench bench,
                          const WatchEach& each) {
  HONE_CHECK(runs_on(task, bench.device.info()));
  if (task.input_sets.empty()) return fail(ErrorKind::contract, "task {} has no input set", task.name);
  const auto say = [&](const std::string& text) {
    if (request.progress) request.progress(candidate.name + ": " + text);
  };
  say("compiling");
  HONE_TRY(const Compiled compiled,
           compile_for(task, candidate, request.workloads.empty() ? std::vector<std::string>{otherwise.id} : request.workloads, bench));
  HONE_TRY(const OracleCode code, load_code(task, bench));
  WatchSpec spec;
  spec.session.memory_bytes = task.memory_bytes;
  spec.session.call_timeout_s = request.timeout_s;
  spec.session.task_code = code.on_device;
  spec.inputs = task.input_sets.front();
  spec.seed = request.seed.value_or(random_seed());
  json rows = json::array();
  int failed = 0;
  for (std::size_t i = 0; i < compiled.workloads.size(); ++i) {
    const Workload& workload = compiled.workloads[i];
    const auto row = [&]() -> Result<json> {
      const auto& program = compiled.prepared.programs[i];
      if (!program) return fail(program.error());
      say(fmt::format("workload {}/{}: {}", i + 1, compiled.workloads.size(), workload.id));
      spec.session.workload = workload;
      spec.program = std::get<Executable>(program->what);
      HONE_TRY(const ScratchDir folder, ScratchDir::create());
      return each(workload, spec, folder.path());
    }();
    json out = {{"id", workload.id}, {"error", nullptr}};
    if (row) {
      out.update(*row);
    } else {
      const int exit = exit_code_of(row.error().kind);
      if (exit > 2) return fail(row.error());
      out["error"] = row.error();
      ++failed;
    }
    rows.push_back(std::move(out));
  }
  return json{{"task", task.name},
              {"candidate", candidate.name},
              {"sha256", candidate.sha256},
              {"architecture", bench.device.info().architecture},
              {"device", bench.device.info().model},
              {"failed", failed},
              {"workloads", std::move(rows)}};
}

}  // namespace hone
