// One call of a program, in order: fresh poison and restored tensors; caches flushed; everything that is not the
// program's hidden; launches queued behind a kernel that holds the stream back; events around them; late work?
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "device/cuda/engine.h"
#include "device/poison.h"

namespace hone::cuda {
namespace {

constexpr double kBlockLimit = 1.0;                  // s that the stream is held back at most
constexpr double kLateLimit = 5e-3;                  // s from the end of the stream to that of the context
constexpr double kSpin = 0.05;                       // s of waiting without sleep
constexpr double kDoubt = 200e-6, kDoubtShare = 0.02;   // by which the host's clock may be ahead of the GPU's
constexpr int kAttempts = 3;

Error late(std::string message) {
  return Error{ErrorKind::late_work, std::move(message)}.with_hint("everything that a kernel does is done when its launches have ended");
}

}  // namespace

Result<> Engine::show_inputs() {
  for (const auto& each : inputs_)
    if (each != nullptr) HONE_CHECK(each->memory().show());
  return {};
}

// At fresh addresses, all of them.
Result<> Engine::refill(Program& program) {
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    Buffer& buffer = tensor_buffer(program, i);
    HONE_CHECK(buffer.memory().move());
    const TensorShape& tensor = spec_.workload.tensors[i];
    if (tensor.role == TensorRole::output) {
      program.poison[i] = poison_pattern(tensor.dtype, draw());
      HONE_CHECK(buffer.fill(context_, program.poison[i], size_of(tensor.dtype)));
    } else if (tensor.role == TensorRole::persistent) {
      HONE_CHECK(inputs_[i]->memory().show());
      HONE_CHECK(buffer.copy_from(context_, inputs_[i]->data()));
    }
    if (program.frame != nullptr) program.frame->tensor(i).data = reinterpret_cast<void*>(buffer.data());
  }
  for (std::size_t i = 0; i < program.workspaces.size(); ++i) {
    Buffer& buffer = *program.workspaces[i];
    HONE_CHECK(buffer.memory().move());
    // NaN as whatever floating type it is read
    HONE_CHECK(buffer.fill(context_, program.plan.workspaces[i].zeroed ? 0 : 0x7ff87ff87ff87ff8u | (draw() & 0x8007800780078007u), 8));
  }
  if (!program.maps.empty()) HONE_CHECK(encode_maps(program));
  return context_.finish();
}

// Outputs and workspaces stay as nobody has written them, so that reading them is seen.
Result<> Engine::refill_plain(Program& program) {
  for (std::size_t i = 0; i < program.tensors.size(); ++i)
    if (spec_.workload.tensors[i].role == TensorRole::persistent) HONE_CHECK(program.tensors[i]->copy_from(context_, inputs_[i]->data()));
  for (std::size_t i = 0; i < program.workspaces.size(); ++i) {
    if (!program.plan.workspaces[i].zeroed) continue;
    const Buffer& buffer = *program.workspaces[i];
    HONE_CHECK(check(cu.memset8(buffer.data(), 0, buffer.bytes(), context_.stream), "clearing a workspace"));
  }
  return context_.finish();
}

Result<> Engine::watched(ProgramId id, int rehearsals) {
  if (!spec_.plain) return fail(ErrorKind::internal, "only a plain session is for tools that watch");
  HONE_TRY(Program* program, find(id));
  *progress_.host = 0;
  for (int i = 0; i <= rehearsals; ++i) {
    HONE_CHECK(refill_plain(*program));
    const bool last = i == rehearsals;
    if (last && cu.profiler_start != nullptr) cu.profiler_start();
    std::optional<Error> fault = enqueue(*program, false);
    if (auto worse = await(nullptr, *program, false)) fault = std::move(worse);
    if (last && cu.profiler_stop != nullptr) cu.profiler_stop();
    if (fault) return fail(*std::move(fault));
  }
  return {};
}

Result<> Engine::leave_alone(Program& program) {
  for (const auto& each : reference_)
    if (each != nullptr) HONE_CHECK(each->hide());
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] != nullptr && spec_.workload.tensors[i].role == TensorRole::persistent) HONE_CHECK(inputs_[i]->memory().hide());
  for (const auto& [id, other] : programs_) {
    if (other.get() == &program) continue;
    for (const auto* list : {&other->tensors, &other->workspaces})
      for (const auto& each : *list)
        if (each != nullptr) HONE_CHECK(each->memory().hide());
  }
  return {};
}

Result<> Engine::flush_caches() {
  ScrubParams params = {reinterpret_cast<std::uint64_t*>(flush_), static_cast<std::int64_t>(flush_bytes_ / 8), draw(), nullptr};
  HONE_CHECK(context_.run("hone_scrub", params.words, params));
  params.sink = reinterpret_cast<unsigned long long*>(scratch_);
  HONE_CHECK(context_.run("hone_scrub", params.words, params));
  HONE_CHECK(context_.finish());
  return check(cu.reset_persisting(), "resetting the L2 cache");
}

Result<Engine::Hash> Engine::hash(CUdeviceptr data, std::size_t bytes, CUdeviceptr into) {
  HONE_CHECK(check(cu.memset8(into, 0, sizeof(Hash), context_.stream), "hashing"));
  HashParams params = {reinterpret_cast<const unsigned char*>(data), static_cast<std::int64_t>(bytes), secret_, reinterpret_cast<unsigned long long*>(into)};
  HONE_CHECK(context_.run("hone_hash", params.bytes / 8 + 1, params));
  HONE_CHECK(context_.finish());
  Hash out = {};
  HONE_CHECK(check(cu.to_host(out.data(), into, sizeof out), "hashing"));
  return out;
}

Result<> Engine::remember_inputs() {
  HONE_CHECK(show_inputs());
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] != nullptr) {
      HONE_TRY(input_hash_[i], hash(inputs_[i]->data(), inputs_[i]->bytes(), scratch_));
    }
  intact_ = true;
  return {};
}

// Between two fills an input that was changed stays changed.
Result<bool> Engine::intact() {
  HONE_CHECK(show_inputs());
  for (std::size_t i = 0; i < inputs_.size() && intact_; ++i) {
    if (inputs_[i] == nullptr) continue;
    HONE_TRY(const Hash now, hash(inputs_[i]->data(), inputs_[i]->bytes(), scratch_));
    intact_ = now == input_hash_[i];
  }
  return intact_;
}

// Queued, not waited for: the sum of all outputs.
Result<> Engine::hash_outputs(Program& program, CUdeviceptr into) {
  HONE_CHECK(check(cu.memset8(into, 0, sizeof(Hash), context_.stream), "hashing"));
  for (const auto& buffer : program.tensors) {
    if (buffer == nullptr) continue;
    HashParams params = {reinterpret_cast<const unsigned char*>(buffer->data()), static_cast<std::int64_t>(buffer->bytes()), secret_,
                         reinterpret_cast<unsigned long long*>(into)};
    HONE_CHECK(context_.run("hone_hash", params.bytes / 8 + 1, params));
  }
  return {};
}

std::optional<Error> Engine::enqueue(Program& program, bool mark) {
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Program::Step& step = program.steps[i];
    CUresult code = kSuccess;
    std::string what;
    if (step.function != nullptr) {
      const auto& launch = std::get<PlanLaunch>(program.plan.launches[step.plan_step]);
      what = launch.kernel;
      std::vector<CUdeviceptr> addresses(launch.args.size());
      std::vector<void*> arguments;
      for (std::size_t k = 0; k < launch.args.size(); ++k) {
        const PlanArg& arg = launch.args[k];
        addresses[k] = arg.kind == ArgKind::tensor || arg.kind == ArgKind::workspace ? buffer_of(program, arg).data() : arg.bits;
        arguments.push_back(arg.kind == ArgKind::tensor_map ? static_cast<void*>(&program.maps[arg.index]) : &addresses[k]);
      }
      std::vector<LaunchAttribute> attributes;
      const LaunchConfig config = config_of(launch, attributes, i == 0);
      code = cu.launch(&config, step.function, arguments.data(), nullptr);
    } else {
      const auto& memset = std::get<PlanMemset>(program.plan.launches[step.plan_step]);
      Buffer& buffer = memset.tensor.empty() ? *program.workspaces[memset.workspace] : tensor_buffer(program, *tensor_index(memset.tensor));
      what = "memset of " + buffer.name();
      code = cu.memset8(buffer.data(), static_cast<unsigned char>(memset.value), buffer.bytes(), context_.stream);
    }
    if (code != kSuccess) {
      Error error = cuda_error(code, fmt::format("{}: launch {} ({})", program.name, i + 1, what));
      if (error.kind == ErrorKind::device) error.kind = ErrorKind::launch;
      return error;
    }
    if (mark) cu.stream_write(context_.stream, progress_.device, static_cast<std::uint32_t>(i + 1), 0);
  }
  return std::nullopt;
}

Error Engine::launch_fault(const Program& program, CUresult code, bool mark) const {
  std::string what;
  const std::size_t done = *progress_.host;
  const auto name = [&](std::size_t i) {
    const auto* launch = std::get_if<PlanLaunch>(&program.plan.launches[i]);
    return launch != nullptr ? launch->kernel : std::string("memset");
  };
  if (program.steps.size() == 1) what = ": " + name(0);
  else if (mark && done < program.steps.size()) what = fmt::format(": launch {} ({})", done + 1, name(done));
  Error error = cuda_error(code, program.name + what);
  if (error.kind == ErrorKind::launch) error.kind = ErrorKind::crash;
  if (code == 719) error.hint = "a trap, an assertion, an access to memory that is not there, or a fault of the asynchronous units";
  return error;
}

std::optional<Error> Engine::await(CUevent event, const Program& program, bool mark) {
  const double start = now_s();
  double wait = 0;
  for (;;) {
    const CUresult code = event != nullptr ? cu.event_query(event) : cu.stream_query(context_.stream);
    if (code == kSuccess) return std::nullopt;
    if (code != kNotReady) return launch_fault(program, code, mark);
    const double spent = now_s() - start;
    if (spent > spec_.call_timeout_s)
      return make_error(ErrorKind::timeout, "{} did not end within {:g} s", program.name, spec_.call_timeout_s);
    if (spent > wait + 0.1) {
      wait = spent;
      if (abandoned_()) ::_exit(1);
    }
    if (spent > kSpin) ::usleep(500);
  }
}

Result<CallResult> Engine::attempt(Program& program, bool timed, double& ahead_s) {
  CallResult result;
  ahead_s = 0;
  HONE_CHECK(refill(program));
  HONE_CHECK(leave_alone(program));
  if (timed) HONE_CHECK(flush_caches());
  const bool mark = !timed && !program.overlaps && !program.native(), block = timed && program.blockable;
  *progress_.host = 0;
  *gave_up_.host = 0;
  *go_.host = block ? 0 : 1;
  if (block) {
    const BlockParams params = {reinterpret_cast<volatile std::uint32_t*>(go_.device), reinterpret_cast<volatile std::uint32_t*>(gave_up_.device),
                                static_cast<std::uint64_t>(kBlockLimit * 1e9)};
    HONE_CHECK(context_.run("hone_block", 1, params, 1));
  }
  std::optional<Error> fault;
  HONE_CHECK(check(cu.event_record(begin_, context_.stream), "recording an event"));
  if (program.native()) {
    const auto ran = program.frame->run([&](const TaskCall* call) { program.library->run(program.library->state, call); }, program.name + ": hone_baseline_run");
    if (!ran) fault = ran.error();
  } else {
    fault = enqueue(program, mark);
  }
  const CUdeviceptr before = scratch_ + 1024, after = scratch_ + 2048;
  Result<> queued = check(cu.event_record(end_, context_.stream), "recording an event");
  if (queued) queued = hash_outputs(program, before);
  const double released = now_s();
  *go_.host = 1;
  if (fault) {
    // What was queued before the refusal ends by itself, or the context is lost with it.
    if (auto worse = await(nullptr, program, mark)) fault = std::move(worse);
    result.fault = std::move(fault);
    return result;
  }
  // An error that shows while queueing is the program's, which runs already.
  if (!queued) {
    if (auto told = await(nullptr, program, mark)) {
      result.fault = std::move(told);
      return result;
    }
    return fail(std::move(queued).error());
  }
  fault = await(end_, program, mark);
  const double host_s = now_s() - released;
  if (!fault) fault = await(nullptr, program, mark);
  if (fault) {
    result.fault = std::move(fault);
    return result;
  }
  float milliseconds = 0;
  HONE_CHECK(check(cu.event_elapsed(&milliseconds, begin_, end_), "reading the time"));
  result.seconds = static_cast<double>(milliseconds) * 1e-3;

  if (block) ahead_s = host_s - result.seconds - kDoubtShare * host_s;

  const double idle = now_s();
  if (const CUresult code = cu.synchronize(); code != kSuccess) {
    result.fault = launch_fault(program, code, mark);
    return result;
  }
  const double more = now_s() - idle;
  if (more > kLateLimit) result.fault = late(fmt::format("{} was still busy {:.1f} ms after the end of its launches", program.name, more * 1e3));
  HONE_CHECK(hash_outputs(program, after));
  HONE_CHECK(context_.finish());
  Hash hashes[2] = {};
  HONE_CHECK(check(cu.to_host(&hashes[0], before, sizeof(Hash)), "hashing"));
  HONE_CHECK(check(cu.to_host(&hashes[1], after, sizeof(Hash)), "hashing"));
  if (hashes[0] != hashes[1]) result.fault = late(fmt::format("{} wrote an output after the end of its launches", program.name));
  return result;
}

Result<CallResult> Engine::call(ProgramId id, bool timed) {
  HONE_TRY(Program* program, find(id));
  double ahead_s = 0;
  // The first launches may allocate or load lazily, which waits for the stream: not while it is held back.
  if (timed && !program->rehearsed) {
    HONE_TRY(CallResult rehearsal, attempt(*program, false, ahead_s));
    if (rehearsal.fault) return rehearsal;
  }
  program->rehearsed = true;
  CallResult result;
  for (int i = 0; i < kAttempts; ++i) {
    HONE_TRY(result, attempt(*program, timed, ahead_s));
    if (*gave_up_.host == 0 && ahead_s <= kDoubt) return result;
    // The stream was let go before everything was queued: a baseline that waits for its own work, or a busy host.
    if (program->native() && *gave_up_.host != 0) program->blockable = false;
  }
  if (*gave_up_.host != 0) return fail(ErrorKind::device, "the launches of {} could not be queued within {:g} s", program->name, kBlockLimit);
  // Once, the host may have been busy. The driver keeps an event's time where kernels of the context can write.
  result.fault = late(fmt::format("{} took {:.3f} ms by the GPU's clock, and {:.3f} ms more by the host's", program->name,
                                  result.seconds * 1e3, ahead_s * 1e3));
  return result;
}

}  // namespace hone::cuda
