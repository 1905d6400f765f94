#include "server/work.h"

#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>

#include "inspect/inspect.h"
#include "judge/prepare.h"
#include "judge/receipt.h"
#include "profile/profile.h"
#include "profile/sanitize.h"
#include "wire/wire.h"

namespace hone::server {
namespace {

using nlohmann::json;

constexpr std::size_t kExecOutput = std::size_t{1} << 20;

// Whether something can run here at all: a small kernel of Hone's own, loaded and called as a candidate's.
class Probe {
 public:
  Result<> run(Bench bench) {
    if (!programs_) {
      const bool gpu = bench.device.info().name == "cuda";
      const std::string source = gpu ? "kernel.cu" : "kernel.cpp";
      Candidate candidate;
      candidate.name = "probe";
      candidate.compiler = gpu ? "nvcc" : "g++";
      candidate.sources = {{"plan.cpp",
                            "#include <hone/plan.h>\nvoid plan(const hone::Problem& problem, hone::Plan& plan) {\n"
                            "  plan.launch(plan.module(\"" + source + "\"), \"twice\", {1}).args(problem.tensor(\"x\"), problem.tensor(\"y\"));\n}\n"},
                           {source, std::string(gpu ? "__global__ void twice(" : "#include <hone/kernel.h>\nvoid twice(const hone::Block&, ") +
                                        "const float* x, float* y) {\n  for (int i = 0; i < 16; ++i) y[i] = 2 * x[i];\n}\n"}};
      TensorShape x{"x", DType::f32, TensorRole::input, {16}, {1}, 64}, y = x;
      y.name = "y";
      y.role = TensorRole::output;
      workload_.id = "probe";
      workload_.tensors = {x, y};
      HONE_TRY(programs_, prepare(candidate, {workload_}, bench));
      if (!programs_->programs[0]) return fail(programs_->programs[0].error());
    }
    HONE_TRY(const auto session, bench.device.open({.workload = workload_, .memory_bytes = std::uint64_t{64} << 20}));
    for (const HostTensor& tensor : session->inputs())
      for (int i = 0; i < 16; ++i) {
        const float value = static_cast<float>(i) + 0.5f;
        std::memcpy(tensor.data + 4 * i, &value, 4);
      }
    HONE_CHECK(session->commit_inputs());
    HONE_TRY(const ProgramId id, load(*session, *programs_->programs[0]));
    HONE_TRY(const CallResult called, session->call(id, {}));
    if (called.fault) return fail(make_error(ErrorKind::device, "the probe failed: {}", called.fault->message));
    HONE_TRY(const auto out, session->output(id, "y"));
    for (int i = 0; i < 16; ++i) {
      float value = 0;
      std::memcpy(&value, out.data() + 4 * i, 4);
      if (std::abs(value - static_cast<float>(2 * i + 1)) > 1e-6f)
        return fail(ErrorKind::device, "the probe computed {} instead of {}", value, 2 * i + 1);
    }
    return {};
  }

 private:
  Workload workload_;
  std::optional<Prepared> programs_;
};

class Worker {
 public:
  Worker(Channel& channel, Bench bench, bool exec) : channel_(channel), bench_(bench), exec_(exec) {}

  void run() {
    std::thread reader([this] { read(); });
    channel_.send({{"ready", device_json(bench_.device.info(), bench_.sandbox)}});
    for (;;) {
      json message;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
        if (closed_) break;
        message = std::move(waiting_.front());
        waiting_.pop_front();
        cancel_ = false;
        job_ = message.value("job", "");
      }
      if (message.contains("probe")) {
        const auto probed = probe_.run(bench_);
        channel_.send({{"probed", message["probe"]}, {"error", probed ? json() : json(probed.error())}});
        continue;
      }
      json answer = {{"done", job_}};
      auto result = execute(message);
      if (result) answer["result"] = *std::move(result);
      else answer["error"] = json(result.error());
      // The service gives the answer on before anything here is torn down.
      channel_.send(answer);
    }
    reader.join();
  }

 private:
  void read() {
    for (json message;;) {
      const auto got = channel_.receive(message, -1);
      if (got == Channel::Got::message && message.contains("ping")) {
        channel_.send({{"pong", message["ping"]}});
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (got != Channel::Got::message) {
        closed_ = cancel_ = true;
        wake_.notify_all();
        return;
      }
      if (message.contains("cancel")) {
        if (message["cancel"] == job_) cancel_ = true;
      } else {
        waiting_.push_back(std::move(message));
        wake_.notify_all();
      }
    }
  }

  void event(const std::string& name, json data) { channel_.send({{"job", job_}, {"event", name}, {"data", std::move(data)}}); }

  Result<json> execute(const json& message) {
    const std::string kind = message.at("kind").get<std::string>();
    const json& request = message.at("request");
    try {
      if (kind == "bench") return bench(request);
      if (kind == "compile" || kind == "inspect") return look(request, kind == "inspect");
      if (kind == "profile" || kind == "sanitize") return watch(request, kind == "profile");
      if (kind == "prepare") return prepare(request);
      if (kind == "exec") return exec(request);
    } catch (const std::bad_alloc&) {
      return fail(ErrorKind::device, "the device process ran out of memory");
    } catch (const std::exception& error) {
      return fail(ErrorKind::internal, "{}", error.what());
    }
    return fail(ErrorKind::unavailable, "this version cannot do jobs of kind {}", kind);
  }

  Result<json> bench(const json& in) {
    HONE_TRY(const Task task, wire::task_from(in));
    HONE_TRY(JudgeRequest request, wire::judge_request_from(in));
    request.cancel = &cancel_;
    request.progress = [&](const std::string& line) {
      event(line.find(": compiling") != std::string::npos ? "compiling" : "measuring", {{"progress", line}});
    };
    request.judged = [&](const WorkloadReport& workload) { event("judged", to_json(workload)); };
    HONE_TRY(Report report, judge(task, request, bench_));
    return json{{"report", to_json(report)}, {"receipt", std::move(report.receipt_body)}};
  }

  // What judging will need is in the cache from now on. A report: nothing is left for a device to do.
  Result<json> prepare(const json& in) {
    HONE_TRY(const Task task, wire::task_from(in));
    HONE_TRY(const JudgeRequest request, wire::judge_request_from(in));
    event("compiling", json::object());
    HONE_TRY(const bool runs, compile_all(task, request, bench_));
    return runs ? json::object() : bench(in);
  }

  // For this device, or for one that need not be here.
  Result<json> look(const json& in, bool inspect) {
    HONE_TRY(const Task task, wire::task_from(in));
    HONE_TRY(const Candidate candidate, wire::candidate_from_json(in.at("candidate")));
    event("compiling", json::object());
    const std::string architecture = target_architecture(task, in.value("architecture", ""), &bench_.device);
    std::unique_ptr<Device> target;
    if (architecture != bench_.device.info().architecture) {
      HONE_TRY(const fs::path share, share_dir());
      HONE_TRY(target, open_target(architecture, bench_.sandbox, share / "libexec", {}));
    }
    const Bench bench{bench_.sandbox, bench_.toolchain, target ? *target : bench_.device};
    HONE_TRY(const Compiled compiled, compile_for(task, candidate, in.value("workloads", std::vector<std::string>()), bench));
    if (!inspect) return compile_report(task, candidate, compiled, bench);
    InspectRequest request;
    for (const std::string& each : in.value("listings", std::vector<std::string>())) (each == "ptx" ? request.ptx : request.code) = true;
    return inspect_report(task, candidate, compiled, request, bench);
  }

  // On this device, under a tool of its vendor.
  Result<json> watch(const json& in, bool profile) {
    HONE_TRY(const Task task, wire::task_from(in));
    HONE_TRY(const Candidate candidate, wire::candidate_from_json(in.at("candidate")));
    WatchRequest request;
    request.workloads = in.value("workloads", std::vector<std::string>());
    request.timeout_s = in.value("tool_timeout_s", request.timeout_s);
    request.cancel = &cancel_;
    request.progress = [&](const std::string& line) {
      event(line.find(": compiling") != std::string::npos ? "compiling" : profile ? "profiling" : "sanitizing", {{"progress", line}});
    };
    return profile ? profile_report(task, candidate, request, bench_)
                   : sanitize_report(task, candidate, in.value("tools", std::vector<std::string>()), request, bench_);
  }

  Result<json> exec(const json& in) {
    if (!exec_) return fail(make_error(ErrorKind::unavailable, "this service runs no commands").with_hint("its operator can start it with --exec"));
    JailSpec jail;
    jail.argv = in.at("argv").get<std::vector<std::string>>();
    // A bare name is looked for where the jail's PATH says.
    if (jail.argv.front().find('/') == std::string::npos) jail.argv.insert(jail.argv.begin(), {"/bin/sh", "-c", "exec \"$@\"", "sh"});
    jail.env = {"PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"};
    jail.cwd = "/tmp";
    jail.stdin_text = in.value("stdin", "");
    jail.limits.output_bytes = kExecOutput;
    jail.cancel = &cancel_;
    HONE_TRY(const ProcessOutcome outcome, bench_.sandbox.run(jail));
    return json{{"schema", "hone.exec/1"}, {"exit_code", outcome.exit_code}, {"signal", outcome.signal}, {"stdout", outcome.out},
                {"stderr", outcome.err}, {"dropped_bytes", outcome.out_dropped + outcome.err_dropped},
                {"truncated", outcome.out_dropped + outcome.err_dropped > 0}, {"timed_out", outcome.timed_out},
                {"cancelled", outcome.cancelled}, {"wall_s", outcome.wall_s}};
  }

  Channel& channel_;
  const Bench bench_;
  const bool exec_;
  Probe probe_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<json> waiting_;
  std::string job_;
  std::atomic<bool> cancel_{false};
  bool closed_ = false;
};

}  // namespace

json device_json(const DeviceInfo& info, const Sandbox& sandbox) {
  return {{"name", info.name}, {"model", info.model}, {"architecture", info.architecture}, {"workers", info.workers},
          {"memory_bytes", info.memory_bytes}, {"sandbox", sandbox.mode() == SandboxMode::on ? "on" : "off"}};
}

void work(Channel& channel, Bench bench, bool exec) { Worker(channel, bench, exec).run(); }

}  // namespace hone::server
