// The command line: one table of verbs, one file a verb (src/cli/verb_<name>.cpp).
//
// A verb declares its flags on a CLI11 sub-command and sets `action`, which runs after parsing.
// Facts go to stdout, progress and diagnostics to stderr.
#ifndef HONE_CLI_VERB_H
#define HONE_CLI_VERB_H

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "device/device.h"
#include "judge/judge.h"
#include "sandbox/sandbox.h"
#include "toolchain/toolchain.h"

namespace CLI {
class App;
}

namespace hone::cli {

// Flags that every verb has.
struct Global {
  bool json = false;
  bool quiet = false;
  std::string sandbox = "on";                 // --sandbox on|off
  int workers = 0;                            // HONE_WORKERS: CPU device's worker threads, 0 = cores - 1
};

struct Invocation {
  Global global;
  std::function<Result<int>()> action;        // set by the verb that was named; gives the exit code
};

struct Verb {
  const char* name;
  const char* summary;                        // one line of --help
  const char* example;                        // shown by `hone VERB --help`
  void (*define)(CLI::App& app, Invocation& invocation);
};

// In the order of --help. Generated artefacts (completion, man pages) come from this table.
#define HONE_VERBS(X)                                                                                     \
  X(doctor, "what this machine has and lacks, and what each lack costs", "hone doctor")                   \
  X(task, "tasks and their proof of sanity", "hone task show grouped_gemm_f32")                           \
  X(bench, "judge a candidate against the baseline", "hone bench kernels/softmax_f32/pipelined --task softmax_f32") \
  X(verify, "judge a receipt's candidate again and compare", "hone verify receipts/3f2a.json")            \
  X(init, "make a run directory", "hone init --task grouped_gemm_f32 --name first")                       \
  X(run, "let agents make kernels faster", "hone run --agent tuner --budget evaluations=60,time=120s")    \
  X(status, "what a run has reached and what it has left", "hone status --run runs/first")                \
  X(watch, "a run as it goes on: best so far, experiments, frontier, agents", "hone watch --run runs/first") \
  X(steer, "tell the next turn's agent something", "hone steer \"try wider tiles for the long rows\"")   \
  X(pause, "no further turn begins", "hone pause --run runs/first")                                       \
  X(stop, "end the agents' work; what is finished is kept", "hone stop --run runs/first")                 \
  X(frontier, "retained candidates of a run", "hone frontier list --run runs/first")                      \
  X(report, "a run's experiments as Markdown, HTML or JSON", "hone report --run runs/first")                    \
  X(compile, "plan and compile a candidate for every workload, without running it", "hone compile kernels/softmax_f32/pipelined") \
  X(inspect, "what a candidate's kernels are made of: resources, instructions, source lines", "hone inspect kernels/softmax_f32/pipelined --lines") \
  X(profile, "where a CUDA candidate's kernels spend their time, by Nsight Compute", "hone profile kernels/bf16_gemm/warp_specialized --workload square-4096") \
  X(sanitize, "a CUDA candidate under compute-sanitizer: bad accesses, races, barriers", "hone sanitize kernels/softmax_cuda/registers") \
  X(serve, "an evaluation service: judges for others on this machine's devices", "hone serve --device cpu --port 8000") \
  X(submit, "give a job to an evaluation service", "hone submit kernels/softmax_f32/pipelined --task softmax_f32 --remote http://127.0.0.1:8000 --wait") \
  X(jobs, "jobs of an evaluation service", "hone jobs list --remote http://127.0.0.1:8000") \
  X(token, "who may use an evaluation service", "hone token create ci --scope submit,read") \
  X(mcp, "Hone's tools for an agent's program, over stdio (Model Context Protocol)", "hone mcp --run runs/first") \
  X(guard, "a hook of agent programs: refuses writes outside the worktree", "hone guard --run runs/first < hook.json") \
  X(toolchain, "compilers of this machine, and fetching one", "hone toolchain list") \
  X(completion, "shell completion", "hone completion bash > /etc/bash_completion.d/hone")

// CLI11's check of --seed, which by itself takes -1 for 2^64 - 1: what is wrong with `text`, or nothing.
std::string seed_fault(const std::string& text);

#define HONE_VERB_DECLARE(name, summary, example) void define_##name(CLI::App& app, Invocation& invocation);
HONE_VERBS(HONE_VERB_DECLARE)
#undef HONE_VERB_DECLARE
void define_worker(CLI::App& app, Invocation& invocation);   // what `serve` starts for each device; not for people

// A sub-command of a verb (`hone task show`), with its example.
CLI::App* add_command(CLI::App& verb, Invocation& invocation, const char* name, const char* summary, const char* example,
                      std::function<Result<int>()> action);

// Sandbox, toolchain and device as the flags and this machine give them.
struct Environment {
  std::unique_ptr<const Sandbox> owner;       // of the sandbox, at an address that stays
  const Sandbox& sandbox;
  Toolchain toolchain;
  std::unique_ptr<Device> device;
  Bench bench() const { return {sandbox, toolchain, *device}; }
};
// Heap-allocated: toolchain and device keep references into it. `device`: cpu, or cuda for the GPU of this number.
Result<std::unique_ptr<Environment>> open_environment(const Global& global, const std::string& device, int gpu = 0);
// The same for compiling only: "cpu", or a GPU's architecture, which need not be here.
Result<std::unique_ptr<Environment>> open_target_environment(const Global& global, const std::string& architecture);

// True from the first SIGINT or SIGTERM on; a second one ends the process at once.
const std::atomic<bool>& interrupted();

// Prints the error (stderr, or a JSON object {"schema":"hone.error/1","error":{...}} on stdout with
// --json) and returns its exit code.
int report_error(const Global& global, const Error& error);
// A progress line on stderr: redrawn on a terminal, one line a step elsewhere, silent with --quiet.
Progress progress_printer(const Global& global);
// Takes a redrawn progress line off the terminal: call it before printing results.
void end_progress();

}  // namespace hone::cli

#endif
