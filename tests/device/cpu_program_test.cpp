// What the CPU device does beyond the contract of all devices: arguments by libffi, scratch memory,
// workers, native baselines, clean environments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>

#include "device/cpu_subject.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

using ::testing::HasSubstr;

PlanArg scalar(ArgKind kind, std::uint64_t bits) {
  PlanArg arg;
  arg.kind = kind;
  arg.bits = bits;
  return arg;
}

class CpuProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    subject_ = CpuSubject::make();
    if (subject_ == nullptr) GTEST_SKIP() << "no sandbox here";
    open({vector_of("x", TensorRole::input, 64), vector_of("y", TensorRole::output, 64, DType::f64)});
  }
  void open(std::vector<TensorShape> tensors) {
    session_.reset();
    SessionSpec spec;
    spec.workload = workload_of(std::move(tensors));
    auto session = subject_->device().open(spec);
    HONE_ASSERT_OK(session);
    session_ = *std::move(session);
    for (HostTensor& tensor : session_->inputs()) std::memset(tensor.data, 0, tensor.shape.bytes());
    HONE_ASSERT_OK(session_->commit_inputs());
  }
  Result<ProgramId> load(PlanLaunch launch, const std::string& source) {
    HONE_TRY(Executable program, subject_->program("p", plan_of({std::move(launch)}),
                                                   "#include <hone/kernel.h>\n#include <cstring>\n" + source));
    return session_->load(program);
  }
  template <class T = double>
  std::vector<T> output(ProgramId id) {
    const auto bytes = *session_->output(id, "y");
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::unique_ptr<CpuSubject> subject_;
  std::unique_ptr<Session> session_;
};

TEST_F(CpuProgram, EveryKindOfArgumentArrives) {
  PlanLaunch launch = launch_of("kinds", {tensor_arg("y")});
  const auto add = [&](ArgKind kind, std::uint64_t bits) { launch.args.push_back(scalar(kind, bits)); };
  for (int repeat = 0; repeat < 3; ++repeat) {   // more than there are registers
    add(ArgKind::i32, static_cast<std::uint32_t>(-5));
    add(ArgKind::f32, std::bit_cast<std::uint32_t>(1.5f));
    add(ArgKind::u32, 0xffffffffu);
    add(ArgKind::f64, std::bit_cast<std::uint64_t>(-2.25));
    add(ArgKind::i64, static_cast<std::uint64_t>(std::int64_t{-1} << 40));
    add(ArgKind::u64, std::uint64_t{1} << 63);
    add(ArgKind::f32, std::bit_cast<std::uint32_t>(-0.5f));
  }
  const auto id = load(launch, R"(
#define GROUP(k) \
  std::int32_t a##k, float b##k, std::uint32_t c##k, double d##k, std::int64_t e##k, std::uint64_t f##k, float g##k
#define STORE(k) y[7*k] = a##k; y[7*k+1] = b##k; y[7*k+2] = c##k; y[7*k+3] = d##k; \
  y[7*k+4] = e##k; y[7*k+5] = f##k; y[7*k+6] = g##k;
extern "C" void kinds(const hone::Block&, double* y, GROUP(0), GROUP(1), GROUP(2)) { STORE(0) STORE(1) STORE(2) })");
  HONE_ASSERT_OK(id);
  ASSERT_FALSE(session_->call(*id, {})->fault);
  const auto y = output(*id);
  const std::vector<double> expected = {-5, 1.5, 4294967295.0, -2.25, -1099511627776.0, 9223372036854775808.0, -0.5};
  for (std::size_t i = 0; i < 21; ++i) EXPECT_EQ(y[i], expected[i % 7]) << i;
}

TEST_F(CpuProgram, ABlockKnowsItsPlaceAndItsScratch) {
  const std::int64_t workers = subject_->device().info().workers;
  const auto id = load(launch_of("place", {tensor_arg("y")}, {3, 4, 5}, 1000), R"(
extern "C" void place(const hone::Block& b, double* y) {
  bool good = b.grid.x == 3 && b.grid.y == 4 && b.grid.z == 5;
  good = good && b.index.x < 3 && b.index.y < 4 && b.index.z < 5;
  good = good && b.worker < b.workers && b.shared != nullptr && b.shared_bytes == 1000;
  good = good && (unsigned long)b.shared % 64 == 0;
  std::memset(b.shared, b.index.x, b.shared_bytes);
  y[b.index.x + 3 * (b.index.y + 4 * b.index.z)] = good && ((char*)b.shared)[999] == (char)b.index.x;
  if (b.index.x + b.index.y + b.index.z == 0) y[60] = b.workers;
})");
  HONE_ASSERT_OK(id);
  ASSERT_FALSE(session_->call(*id, {})->fault);
  const auto y = output(*id);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(y[i], 1) << i;
  EXPECT_EQ(y[60], static_cast<double>(workers));
  EXPECT_TRUE(session_->guards(*id)->empty());
  const auto beyond = load(launch_of("beyond", {}, {1, 1, 1}, 1000),
                           "extern \"C\" void beyond(const hone::Block& b) { ((char*)b.shared)[1000] ^= 1; }");
  HONE_ASSERT_OK(beyond);
  ASSERT_FALSE(session_->call(*beyond, {})->fault);
  const auto damage = session_->guards(*beyond);
  ASSERT_EQ(damage->size(), 1u);
  EXPECT_THAT((*damage)[0].buffer, HasSubstr("shared memory of worker"));
  EXPECT_EQ((*damage)[0].first_byte, 1000);
}

TEST_F(CpuProgram, BlocksBeginInIncreasingOrder) {
  if (subject_->device().info().workers != 1) GTEST_SKIP() << "one worker shows the order";
  const auto id = load(launch_of("order", {tensor_arg("y")}, {4, 4, 4}), R"(
extern "C" void order(const hone::Block& b, double* y) {
  static int next = 0;
  y[b.index.x + 4 * (b.index.y + 4 * b.index.z)] = next++;
  next %= 64;
})");
  HONE_ASSERT_OK(id);
  ASSERT_FALSE(session_->call(*id, {})->fault);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(output(*id)[i], static_cast<double>(i));
}

TEST_F(CpuProgram, AddressesChangeFromCallToCall) {
  const auto id = load(launch_of("where", {tensor_arg("x"), tensor_arg("y")}),
                       "extern \"C\" void where(const hone::Block&, float* x, double* y) { y[0] = (double)(long)x; "
                       "y[1] = (double)(long)y; }");
  HONE_ASSERT_OK(id);
  std::vector<double> x, y;
  for (int i = 0; i < 3; ++i) {
    HONE_ASSERT_OK(session_->commit_inputs());
    ASSERT_FALSE(session_->call(*id, {true})->fault);
    x.push_back(output(*id)[0]);
    y.push_back(output(*id)[1]);
  }
  EXPECT_THAT(x, ::testing::Each(::testing::Gt(0)));
  EXPECT_NE(x[0], x[1]);
  EXPECT_NE(x[1], x[2]);
  EXPECT_NE(y[0], y[1]);
  EXPECT_NE(y[1], y[2]);
}

constexpr const char* kBaseline = R"(
#include <hone/task.h>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
extern char** environ;
struct State { int calls; char text[400]; };
extern "C" void* hone_baseline_open(const hone::TaskCall* call) {
  auto* s = new State{};
  for (char** e = environ; *e; ++e) { std::strncat(s->text, *e, 60); std::strcat(s->text, ";"); }
  if (call->axis("n") != 64 || call->tensor_count != 2 || call->workers < 1) call->fail(call->sink, "wrong shapes");
  return s;
}
extern "C" void hone_baseline_run(void* state, const hone::TaskCall* call) {
  auto* s = static_cast<State*>(state);
  const float* x = call->data<float>("x");
  double* y = call->data<double>("y");
  const auto& shape = call->tensor("y");
  for (long i = 0; i < shape.shape[0]; ++i) y[i] = x[i] + 1;
  if (++s->calls == 4) call->fail(call->sink, "the fourth call");
}
extern "C" const char* hone_baseline_describe(void* state) { return static_cast<State*>(state)->text; }
)";

TEST_F(CpuProgram, ABaselineRunsInACleanEnvironment) {
  ::setenv("OPENBLAS_CORETYPE", "Prescott", 1);
  ::setenv("OMP_NUM_THREADS", "77", 1);
  ::setenv("LD_PRELOAD_NOT", "x", 1);
  subject_ = CpuSubject::make();
  open({vector_of("x", TensorRole::input, 64), vector_of("y", TensorRole::output, 64, DType::f64)});
  ::unsetenv("OPENBLAS_CORETYPE");
  ::unsetenv("OMP_NUM_THREADS");
  ::unsetenv("LD_PRELOAD_NOT");
  const auto object = subject_->compile(kBaseline);
  HONE_ASSERT_OK(object);
  const auto id = session_->load(NativeBaseline{"reference", *object});
  HONE_ASSERT_OK(id);
  const std::string text = session_->describe(*id);
  const std::string workers = std::to_string(subject_->device().info().workers);
  EXPECT_THAT(text, HasSubstr("OMP_NUM_THREADS=" + workers + ";"));
  EXPECT_THAT(text, HasSubstr("OPENBLAS_NUM_THREADS=" + workers + ";"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("CORETYPE")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("LD_PRELOAD")));
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(session_->call(*id, {i == 1})->fault);
    EXPECT_EQ(output(*id)[63], 1.0);
    EXPECT_TRUE(session_->guards(*id)->empty());
  }
  const auto failed = session_->call(*id, {});
  HONE_ASSERT_OK(failed);
  ASSERT_TRUE(failed->fault);
  EXPECT_EQ(name_of(failed->fault->kind), "launch");
  EXPECT_THAT(failed->fault->message, HasSubstr("the fourth call"));
}

TEST_F(CpuProgram, ABaselineThatCannotBeOpenedSaysWhy) {
  open({vector_of("x", TensorRole::input, 65), vector_of("y", TensorRole::output, 65, DType::f64)});
  const auto id = session_->load(NativeBaseline{"reference", *subject_->compile(kBaseline)});
  HONE_EXPECT_ERROR(id, launch);
  EXPECT_THAT(id.error().message, HasSubstr("wrong shapes"));
  HONE_EXPECT_ERROR(session_->load(NativeBaseline{"empty", *subject_->compile("int nothing;")}), launch);
}

TEST_F(CpuProgram, ALibraryWithThreadsOfItsOwnWorks) {
  const auto object = subject_->compile(R"(
#include <hone/task.h>
#include <omp.h>
#include <sched.h>
extern "C" void* hone_baseline_open(const hone::TaskCall*) { return nullptr; }
extern "C" void hone_baseline_run(void*, const hone::TaskCall* call) {
  double* y = call->data<double>("y");
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 64; ++i) y[i] = sched_getcpu();
}
)", {"-fopenmp"});
  HONE_ASSERT_OK(object);
  const auto id = session_->load(NativeBaseline{"omp", *object});
  HONE_ASSERT_OK(id);
  for (int i = 0; i < 3; ++i) {
    const auto result = session_->call(*id, {true});
    ASSERT_FALSE(result->fault) << to_text(*result->fault);
    const auto cores = subject_->device().info().facts.at("worker_cores").get<std::vector<int>>();
    for (const double core : output(*id)) EXPECT_THAT(cores, ::testing::Contains(static_cast<int>(core)));
  }
}

TEST(CpuDevice, RefusesWrongWorkers) {
  const auto share = share_dir();
  HONE_ASSERT_OK(share);
  const auto sandbox = Sandbox::create(SandboxMode::off, *share / "libexec");
  HONE_ASSERT_OK(sandbox);
  for (const char* text : {"0", "-1", "two", "3x", "100000", "200"}) {
    ::setenv("HONE_WORKERS", text, 1);
    HONE_EXPECT_ERROR(make_cpu_device(*sandbox, *share / "libexec"), usage);
  }
  ::setenv("HONE_WORKERS", "1", 1);
  const auto device = make_cpu_device(*sandbox, *share / "libexec");
  HONE_ASSERT_OK(device);
  EXPECT_EQ((*device)->info().workers, 1);
  ::unsetenv("HONE_WORKERS");
  HONE_EXPECT_ERROR(make_cpu_device(*sandbox, "/nonexistent"), environment);
}

}  // namespace
}  // namespace hone::testing
