// Programs on a GPU beyond the contract suite: faults and who survives them, timing, what a launch can ask for, native
// baselines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/clock.h"
#include "device/cuda_subject.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

constexpr std::int64_t kElements = 1 << 16;

PlanArg i32_arg(std::int32_t value) {
  PlanArg arg;
  arg.kind = ArgKind::i32;
  arg.bits = static_cast<std::uint32_t>(value);
  return arg;
}

PlanArg map_arg(std::size_t index) {
  PlanArg arg;
  arg.kind = ArgKind::tensor_map;
  arg.index = index;
  return arg;
}

class CudaProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    subject_ = CudaSubject::make();
    ASSERT_NE(subject_, nullptr);
    if (!subject_->missing().empty()) GTEST_SKIP() << subject_->missing();
    open(workload_of({vector_of("x", TensorRole::input, kElements), vector_of("y", TensorRole::output, kElements)}));
  }
  void open(Workload workload, double timeout_s = 10) {
    session_.reset();
    SessionSpec spec;
    spec.workload = std::move(workload);
    spec.call_timeout_s = timeout_s;
    auto session = subject_->device().open(spec);
    HONE_ASSERT_OK(session);
    session_ = *std::move(session);
    for (HostTensor& tensor : session_->inputs()) {
      auto* values = reinterpret_cast<float*>(tensor.data);
      std::iota(values, values + tensor.shape.span_elements(), 0.0f);
    }
    HONE_ASSERT_OK(session_->commit_inputs());
  }
  ProgramId load(Plan plan) {
    auto program = subject_->program("candidate", std::move(plan));
    EXPECT_TRUE(program.has_value()) << (program ? "" : to_text(program.error()));
    auto id = session_->load(*program);
    EXPECT_TRUE(id.has_value()) << (id ? "" : to_text(id.error()));
    return id ? *id : 9999;
  }
  ProgramId load(const std::string& kernel, std::vector<PlanArg> args, Extent3 grid = {1, 1, 1}, std::int64_t threads = 32) {
    return load(plan_of({launch(kernel, std::move(args), grid, threads)}));
  }
  static PlanLaunch launch(const std::string& kernel, std::vector<PlanArg> args, Extent3 grid = {1, 1, 1}, std::int64_t threads = 32,
                           std::int64_t shared = 0) {
    PlanLaunch out = launch_of(kernel, std::move(args), grid, shared);
    out.block = {threads, 1, 1};
    return out;
  }
  Result<ProgramId> try_load(Plan plan) {
    HONE_TRY(const Executable program, subject_->program("candidate", std::move(plan)));
    return session_->load(program);
  }
  CallResult call(ProgramId id, bool timed = false) {
    auto result = session_->call(id, {timed});
    EXPECT_TRUE(result.has_value()) << (result ? "" : to_text(result.error()));
    return result ? *result : CallResult{};
  }
  // The output's first bytes as T.
  template <class T>
  std::vector<T> output(ProgramId id, std::size_t count) {
    std::vector<T> values(count);
    const auto bytes = session_->output(id, "y");
    EXPECT_TRUE(bytes.has_value()) << (bytes ? "" : to_text(bytes.error()));
    if (bytes) std::memcpy(values.data(), bytes->data(), count * sizeof(T));
    return values;
  }
  void expect_fault(const CallResult& result, ErrorKind kind, const std::string& text) {
    ASSERT_TRUE(result.fault);
    EXPECT_EQ(result.fault->kind, kind) << to_text(*result.fault);
    EXPECT_THAT(result.fault->message, ::testing::HasSubstr(text));
  }

  std::unique_ptr<CudaSubject> subject_;
  std::unique_ptr<Session> session_;
};

TEST_F(CudaProgram, FaultsNameTheLaunchAndOthersGoOn) {
  const ProgramId good = load("scale", {tensor_arg("x"), tensor_arg("y"), i64_arg(kElements)});
  ASSERT_FALSE(call(good).fault);
  struct Case {
    const char* kernel;
    std::vector<PlanArg> args;
    ErrorKind kind;
    const char* text;
  };
  for (const Case& each : {Case{"crash", {}, ErrorKind::illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                           Case{"misaligned", {tensor_arg("y")}, ErrorKind::misaligned_address, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                           Case{"trap", {}, ErrorKind::crash, "CUDA_ERROR_LAUNCH_FAILED"}}) {
    const ProgramId bad = load(plan_of({launch("nothing", {}), launch(each.kernel, each.args), launch("nothing", {})}));
    const CallResult result = call(bad);
    expect_fault(result, each.kind, each.text);
    EXPECT_THAT(result.fault->message, ::testing::HasSubstr(each.kernel));
    // What had been computed is lost with the process; it can be computed again.
    HONE_EXPECT_ERROR(session_->output(good, "y"), device);
    ASSERT_FALSE(call(good).fault);
    EXPECT_EQ((output<float>(good, 3)[2]), 4.0f);
    expect_fault(call(bad), each.kind, each.text);
    EXPECT_FALSE(call(good, true).fault);
  }
}

TEST_F(CudaProgram, AHungKernelEnds) {
  open(workload_of({vector_of("x", TensorRole::input, kElements), vector_of("y", TensorRole::output, kElements)}), 1);
  const ProgramId good = load("scale", {tensor_arg("x"), tensor_arg("y"), i64_arg(kElements)});
  for (const bool timed : {false, true}) {
    const ProgramId bad = load("forever", {tensor_arg("y")});
    const double start = now_s();
    expect_fault(call(bad, timed), ErrorKind::timeout, "1 s");
    EXPECT_LT(now_s() - start, 8);
    ASSERT_FALSE(call(good, timed).fault);
    EXPECT_EQ((output<float>(good, 3)[2]), 4.0f);
  }
}

TEST_F(CudaProgram, WhatDoesNotFitIsRefusedWhenLoaded) {
  const auto expect = [&](PlanLaunch step, ErrorKind kind, const std::string& text) {
    const auto loaded = try_load(plan_of({std::move(step)}));
    ASSERT_FALSE(loaded.has_value()) << text;
    EXPECT_EQ(loaded.error().kind, kind) << to_text(loaded.error());
    EXPECT_THAT(loaded.error().message, ::testing::HasSubstr(text));
  };
  expect(launch("shared_sum", {tensor_arg("y"), i64_arg(10)}, {1, 1, 1}, 32, 300000), ErrorKind::launch, "300000 bytes of shared memory");
  expect(launch("no_such", {}), ErrorKind::kernel_name, "no_such");
  expect(launch("scale", {tensor_arg("x")}), ErrorKind::kernel_name, "3 parameters");
  expect(launch("scale", {tensor_arg("x"), tensor_arg("y"), i32_arg(1)}), ErrorKind::kernel_name, "parameter 3");
  PlanLaunch many = launch("together", {tensor_arg("y"), tensor_arg("y"), i64_arg(10)}, {1 << 20, 1, 1}, 1024);
  many.cooperative = true;
  expect(many, ErrorKind::launch, "cooperatively");
  // After all that, the session is well.
  EXPECT_FALSE(call(load("nothing", {})).fault);
}

TEST_F(CudaProgram, AWrittenInputIsSeen) {
  const ProgramId id = load("spoil", {tensor_arg("x")});
  EXPECT_TRUE(*session_->inputs_intact());
  ASSERT_FALSE(call(id).fault);
  EXPECT_FALSE(*session_->inputs_intact());
  EXPECT_FALSE(*session_->inputs_intact()) << "until the next data";
  HONE_ASSERT_OK(session_->commit_inputs());
  EXPECT_TRUE(*session_->inputs_intact());
}

TEST_F(CudaProgram, PrintingIsDiscarded) {
  const ProgramId id = load("flood", {}, {4, 1, 1}, 32);
  EXPECT_FALSE(call(id).fault);
  EXPECT_FALSE(call(id, true).fault);
}

TEST_F(CudaProgram, TimesAreThoseOfTheLaunches) {
  const ProgramId millisecond = load("wait_ns", {i64_arg(1'000'000)}, {1, 1, 1}, 1);
  EXPECT_NEAR(call(millisecond, true).seconds, 1e-3, 5e-5);
  EXPECT_NEAR(call(millisecond, false).seconds, 1e-3, 5e-4);
  // Long enough for the host to sleep while it waits: its clock still agrees with the GPU's.
  const ProgramId longer = load("wait_ns", {i64_arg(60'000'000)}, {1, 1, 1}, 1);
  const CallResult waited = call(longer, true);
  ASSERT_FALSE(waited.fault) << to_text(*waited.fault);
  EXPECT_NEAR(waited.seconds, 60e-3, 1e-3);
  // A hundred launches that do nothing: the host's time to launch them is not seen.
  Plan plan = plan_of({});
  for (int i = 0; i < 100; ++i) plan.launches.emplace_back(launch("nothing", {}));
  const ProgramId hundred = load(plan);
  std::vector<double> seconds;
  for (int i = 0; i < 11; ++i) {
    const CallResult result = call(hundred, true);
    ASSERT_FALSE(result.fault) << to_text(*result.fault);
    seconds.push_back(result.seconds);
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("100 empty launches: median %.1f us, from %.1f to %.1f\n", seconds[5] * 1e6, seconds[0] * 1e6, seconds[10] * 1e6);
  EXPECT_LT(seconds[5], 400e-6);
  const auto conditions = session_->conditions();
  std::printf("conditions: %s\n", conditions.dump().c_str());
  EXPECT_GE(conditions["samples"].get<int>(), 12);
  EXPECT_GT(conditions["sm_mhz"]["least"].get<int>(), 0);
}

TEST_F(CudaProgram, TimedCallsFindColdCaches) {
  constexpr std::int64_t n = 4 << 20;   // 16 MB in, 16 MB out: they fit the L2
  open(workload_of({vector_of("x", TensorRole::input, n), vector_of("y", TensorRole::output, n)}));
  const ProgramId one = load("copy", {tensor_arg("x"), tensor_arg("y"), i64_arg(n)}, {1056, 1, 1}, 256);
  // Twice in a row: the second launch finds what the first one left.
  const ProgramId two = load(plan_of({launch("copy", {tensor_arg("x"), tensor_arg("y"), i64_arg(n)}, {1056, 1, 1}, 256),
                                      launch("copy", {tensor_arg("x"), tensor_arg("y"), i64_arg(n)}, {1056, 1, 1}, 256)}));
  std::vector<double> first, second;
  for (int i = 0; i < 15; ++i) {
    first.push_back(call(one, true).seconds);
    second.push_back(call(two, true).seconds - first.back());
  }
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  std::printf("copy of 16 MB: cold %.1f us (%.2f TB/s), warm %.1f us\n", first[7] * 1e6, 2.0 * 4 * n / first[7] * 1e-12, second[7] * 1e6);
  EXPECT_LT(second[7], 0.9 * first[7]);
}

TEST_F(CudaProgram, AddressesChangeAndOthersAreHidden) {
  open(workload_of({vector_of("x", TensorRole::input, 16), vector_of("y", TensorRole::output, 16, DType::i64)}));
  const ProgramId id = load("address", {tensor_arg("y")});
  std::vector<std::int64_t> addresses;
  for (int i = 0; i < 6; ++i) {
    ASSERT_FALSE(call(id, i % 2 == 0).fault);
    addresses.push_back(output<std::int64_t>(id, 1)[0]);
    if (i > 0) {
      EXPECT_NE(addresses[static_cast<std::size_t>(i)], addresses[static_cast<std::size_t>(i - 1)]);
    }
  }
  // Another program's output has no address while this one runs.
  const ProgramId peeking = load("peek", {i64_arg(addresses.back()), tensor_arg("y")});
  expect_fault(call(peeking), ErrorKind::illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(CudaProgram, ClustersCooperationAndDependentLaunches) {
  for (const std::int64_t size : {2, 8, 16}) {
    PlanLaunch step = launch("clusters", {tensor_arg("y"), i64_arg(kElements)}, {64, 1, 1});
    step.cluster = {size, 1, 1};
    const ProgramId id = load(plan_of({step}));
    const CallResult result = call(id, true);
    ASSERT_FALSE(result.fault) << to_text(*result.fault);
    const auto y = output<float>(id, 64);
    for (std::size_t i = 0; i < 64; ++i)
      EXPECT_EQ(y[i], static_cast<float>(static_cast<std::int64_t>(i) % size + 100 * size)) << size << " " << i;
  }
  PlanLaunch together = launch("together", {tensor_arg("y"), workspace_arg(0), i64_arg(kElements)}, {132, 1, 1}, 256);
  together.cooperative = true;
  const ProgramId cooperative = load(plan_of({together}, {{"tmp", kElements * 4, false}}));
  ASSERT_FALSE(call(cooperative).fault);
  EXPECT_EQ((output<float>(cooperative, 1)[0]), static_cast<float>(kElements - 1));

  PlanLaunch first = launch("first_half", {workspace_arg(0), i64_arg(kElements)}, {64, 1, 1}, 256);
  PlanLaunch second = launch("second_half", {workspace_arg(0), tensor_arg("y"), i64_arg(kElements)}, {64, 1, 1}, 256);
  first.programmatic_dependent_launch = second.programmatic_dependent_launch = true;
  const ProgramId dependent = load(plan_of({first, second}, {{"tmp", kElements * 4, false}}));
  for (int i = 0; i < 10; ++i) {
    const CallResult result = call(dependent, i % 2 == 0);
    ASSERT_FALSE(result.fault) << to_text(*result.fault);
    const auto y = output<float>(dependent, static_cast<std::size_t>(kElements));
    for (std::size_t k = 0; k < y.size(); ++k) ASSERT_EQ(y[k], 3 * static_cast<float>(k));
  }
  const ProgramId shared = load(plan_of({launch("shared_sum", {tensor_arg("y"), i64_arg(50000)}, {1, 1, 1}, 256, 200000)}));
  ASSERT_FALSE(call(shared).fault);
  EXPECT_EQ((output<float>(shared, 1)[0]), 50000.0f);
}

TEST_F(CudaProgram, TensorMapsFollowTheAddresses) {
  TensorShape x = vector_of("x", TensorRole::input, 1);
  x.shape = {100, 200};
  x.strides = {208, 1};
  open(workload_of({x, vector_of("y", TensorRole::output, 256)}));
  Plan plan = plan_of({launch("tile", {map_arg(0), tensor_arg("y"), i32_arg(96), i32_arg(180)})});
  plan.tensor_maps = {{"x_map", "x", {8, 32}, {}, "none", "128B", "zero"}};
  const ProgramId id = load(plan);
  for (int i = 0; i < 4; ++i) {
    const CallResult result = call(id, i % 2 == 1);
    ASSERT_FALSE(result.fault) << to_text(*result.fault);
    const auto y = output<float>(id, 256);
    for (std::size_t row = 0; row < 8; ++row)
      for (std::size_t column = 0; column < 32; ++column)
        ASSERT_EQ(y[row * 32 + column], row < 4 && column < 20 ? static_cast<float>((96 + row) * 208 + 180 + column) : 0.0f) << row << " " << column;
  }
  plan.tensor_maps[0].box = {8, 33};
  HONE_EXPECT_ERROR(try_load(plan), launch);
}

TEST_F(CudaProgram, NativeBaselinesRunBesideIt) {
  const auto object = cuda_object("baseline"), waiting = cuda_object("waiting_baseline");
  HONE_ASSERT_OK(object);
  HONE_ASSERT_OK(waiting);
  const auto id = session_->load(NativeBaseline{"by hand", *object});
  HONE_ASSERT_OK(id);
  EXPECT_EQ(session_->describe(*id), "doubling, by hand");
  for (const bool timed : {true, false, true}) {
    const CallResult result = call(*id, timed);
    ASSERT_FALSE(result.fault) << to_text(*result.fault);
    EXPECT_GT(result.seconds, 0);
    EXPECT_LT(result.seconds, 1e-3);
    EXPECT_EQ((output<float>(*id, 10)[9]), 18.0f);
  }
  EXPECT_TRUE(session_->guards(*id)->empty());
  // One that waits for its own work cannot be held back; it is timed all the same, and says so.
  const auto slow = session_->load(NativeBaseline{"waiting", *waiting});
  HONE_ASSERT_OK(slow);
  const CallResult result = call(*slow, true);
  ASSERT_FALSE(result.fault) << to_text(*result.fault);
  EXPECT_LT(result.seconds, 1e-2);
  EXPECT_THAT(session_->describe(*slow), ::testing::HasSubstr("synchronises"));
  HONE_EXPECT_ERROR(session_->load(NativeBaseline{"none", "/nonexistent.so"}), contract);
}

TEST_F(CudaProgram, WorkThatGoesOnAfterTheEndIsSeen) {
  const auto object = cuda_object("late_baseline");
  HONE_ASSERT_OK(object);
  for (const bool timed : {false, true}) {
    const auto id = session_->load(NativeBaseline{"late", *object});
    HONE_ASSERT_OK(id);
    expect_fault(call(*id, timed), ErrorKind::late_work, "late");
  }
}

// What a judgement costs beside the launches; printed, for docs and budgets.
TEST_F(CudaProgram, LargeDataAreHandledWhereTheyLie) {
  TensorShape x = vector_of("x", TensorRole::input, 1), y = vector_of("y", TensorRole::output, 1);
  x.shape = y.shape = {16384, 8192};   // 512 MiB each
  x.strides = y.strides = {8192, 1};
  SessionSpec spec;
  spec.workload = workload_of({x, y});
  session_.reset();
  auto session = subject_->device().open(spec);
  HONE_ASSERT_OK(session);
  session_ = *std::move(session);
  InputSet set;
  set.name = "random";
  set.inputs["x"] = {Distribution::Kind::bell, 0, 1};
  const auto timed = [&](const char* what, auto&& f) {
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double start = now_s();
      f();
      least = std::min(least, now_s() - start);
    }
    std::printf("%s: %.2f ms\n", what, least * 1e3);
    EXPECT_LT(least, 1) << what;
  };
  std::uint32_t data = 0;
  timed("fill 512 MiB", [&] { EXPECT_TRUE(session_->data()->fill(set, 1, ++data).has_value()); });
  const ProgramId a = load("copy", {tensor_arg("x"), tensor_arg("y"), i64_arg(x.elements())}, {1056, 1, 1}, 256);
  const ProgramId b = load("copy", {tensor_arg("x"), tensor_arg("y"), i64_arg(x.elements())}, {1056, 1, 1}, 256);
  ASSERT_FALSE(call(a, true).fault);
  ASSERT_FALSE(call(b, true).fault);
  timed("a timed call", [&] { EXPECT_FALSE(call(a, true).fault); });
  timed("an untimed call", [&] { EXPECT_FALSE(call(a).fault); });
  const std::vector<Region> all = {{"all", 0, 16384}};
  timed("sums", [&] {
    const auto sums = session_->data()->sums({a, "y", b}, all, {});
    ASSERT_TRUE(sums.has_value());
    EXPECT_EQ((*sums)[0].error2, 0);
    EXPECT_GT((*sums)[0].got2, 1e8);
  });
  timed("odd elements", [&] {
    const auto odd = session_->data()->odd({a, "y", b}, all[0], {0, 0, true, true});
    ASSERT_TRUE(odd.has_value());
    EXPECT_EQ(odd->wrong + odd->not_written, 0);
    EXPECT_FALSE(odd->constant);
  });
  timed("digest", [&] { EXPECT_TRUE(session_->data()->output_digest(a, "y", all).has_value()); });
  timed("inputs intact", [&] { EXPECT_TRUE(*session_->inputs_intact()); });
  timed("guards", [&] { EXPECT_TRUE(session_->guards(a)->empty()); });
  // The same program against itself, in pairs.
  std::vector<double> ratios, times;
  for (int i = 0; i < 40; ++i) {
    const bool swapped = i % 2 == 1;
    const double first = call(swapped ? b : a, true).seconds, second = call(swapped ? a : b, true).seconds;
    ratios.push_back(swapped ? first / second : second / first);
    times.push_back(first);
  }
  std::sort(ratios.begin(), ratios.end());
  std::sort(times.begin(), times.end());
  std::printf("A/A of %.1f us (%.2f TB/s): median ratio %.5f, quartiles %.5f and %.5f\n", times[20] * 1e6, 2 * 512 * 1048576.0 / times[20] * 1e-12,
              ratios[20], ratios[10], ratios[30]);
  EXPECT_NEAR(ratios[20], 1, 0.01);
}

TEST_F(CudaProgram, SaysWhatTheGpuIs) {
  const DeviceInfo& info = subject_->device().info();
  std::printf("%s, %s, %lld SMs, L2 %.0f MB, peaks %.0f TFLOP/s, %.2f TB/s, %s\n", info.model.c_str(), info.architecture.c_str(),
              static_cast<long long>(info.workers), static_cast<double>(info.cache_bytes) * 1e-6, info.peak_flops * 1e-12, info.peak_bytes * 1e-12,
              info.facts.dump().c_str());
  EXPECT_EQ(info.name, "cuda");
  EXPECT_GE(info.limits.max_shared_bytes, 227 * 1024);
  EXPECT_EQ(info.limits.max_threads_per_block, 1024);
  EXPECT_TRUE(info.limits.tensor_maps);
}

// By the toolchain, as an installation makes it.
TEST(CudaToolchain, CompilesTheHelpersAndMakesTheDevice) {
  const auto share = share_dir();
  HONE_ASSERT_OK(share);
  auto sandbox = Sandbox::create(SandboxMode::off, *share / "libexec");
  HONE_ASSERT_OK(sandbox);
  auto toolchain = Toolchain::create(*sandbox, scratch("artifacts"), *share / "include");
  HONE_ASSERT_OK(toolchain);
  const auto helpers = cuda::compile_helpers(*toolchain, *share, "sm_90a");
  if (!helpers && helpers.error().kind == ErrorKind::environment) GTEST_SKIP() << "no nvcc";
  HONE_ASSERT_OK(helpers);
  auto device = make_cuda_device(*toolchain, *share / "libexec", *share, 0);
  if (!device) {
    EXPECT_EQ(device.error().kind, ErrorKind::environment) << to_text(device.error());
    EXPECT_FALSE(device.error().hint.empty());
    GTEST_SKIP() << "no GPU: " << device.error().message;
  }
  SessionSpec spec;
  spec.workload = workload_of({vector_of("x", TensorRole::input, 16), vector_of("y", TensorRole::output, 16)});
  HONE_ASSERT_OK((*device)->open(spec));
}

// Without a GPU too.
TEST(CudaInfo, AnUnknownGpuIsAnErrorOfTheEnvironment) {
  const auto share = share_dir();
  HONE_ASSERT_OK(share);
  const auto info = cuda::ask_info(*share / "libexec", 4711);
  HONE_EXPECT_ERROR(info, environment);
  EXPECT_FALSE(info.error().hint.empty());
}

}  // namespace
}  // namespace hone::testing
