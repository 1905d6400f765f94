// Data where they lie on a GPU, held against the host's definitions: fill_tensor bit for bit, comparisons by HostPair.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "device/cuda_subject.h"
#include "judge/compare.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

using Kind = Distribution::Kind;

class CudaData : public ::testing::Test {
 protected:
  void SetUp() override {
    subject_ = CudaSubject::make();
    ASSERT_NE(subject_, nullptr);
    if (!subject_->missing().empty()) GTEST_SKIP() << subject_->missing();
  }
  void open(Workload workload, const fs::path& task = {}) {
    session_.reset();
    SessionSpec spec;
    spec.workload = workload_ = std::move(workload);
    spec.task_code = task;
    auto session = subject_->device().open(spec);
    HONE_ASSERT_OK(session);
    session_ = *std::move(session);
    ASSERT_NE(session_->data(), nullptr);
  }
  // x[rows, columns], w[100], y[rows, columns] with a pitch.
  void open_task(DType dtype, std::int64_t rows, std::int64_t columns, bool partly = false) {
    const auto task = cuda_object("task");
    HONE_ASSERT_OK(task);
    TensorShape x = vector_of("x", TensorRole::input, 1), y = vector_of("y", TensorRole::output, 1, dtype);
    x.shape = y.shape = {rows, columns};
    x.strides = {columns, 1};
    y.strides = {columns + 7, 1};
    Workload workload = workload_of({x, vector_of("w", TensorRole::input, 100), y});
    workload.axes["partly"] = {partly ? 1 : 0};
    open(workload, *task);
    set_.name = "random";
    set_.inputs = {{"x", {Kind::bell, 0, 1}}, {"w", {Kind::structured, 0, 1}}};
  }
  ProgramId run_distort(DType dtype) {
    const TensorShape& y = workload_.tensors[2];
    PlanLaunch launch = launch_of(dtype == DType::f32 ? "distort_f32" : "distort_bf16",
                                  {tensor_arg("x"), tensor_arg("y"), i64_arg(y.shape[0]), i64_arg(y.shape[1]), i64_arg(y.strides[0])}, {64, 1, 1});
    launch.block = {128, 1, 1};
    auto program = subject_->program("distort", plan_of({launch}));
    EXPECT_TRUE(program.has_value());
    auto id = session_->load(*program);
    EXPECT_TRUE(id.has_value()) << (id ? "" : to_text(id.error()));
    auto result = session_->call(*id, {});
    EXPECT_TRUE(result && !result->fault);
    return *id;
  }

  std::unique_ptr<CudaSubject> subject_;
  std::unique_ptr<Session> session_;
  Workload workload_;
  InputSet set_;
};

TEST_F(CudaData, FillsBitForBitAsTheHost) {
  const DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::ue8m0,
                          DType::i8,  DType::u8,  DType::i32, DType::u32,  DType::i64};
  std::vector<TensorShape> tensors;
  for (const DType dtype : dtypes) {
    TensorShape tensor = vector_of(std::string("t_") + name_of(dtype), TensorRole::input, 1, dtype);
    tensor.shape = {5, 3, 1237};
    tensor.strides = {3 * 1240 + 8, 1240, 1};
    tensors.push_back(tensor);
  }
  TensorShape transposed = vector_of("transposed", TensorRole::input, 1);
  transposed.shape = {33, 65};
  transposed.strides = {1, 40};
  tensors.push_back(transposed);
  tensors.push_back(vector_of("p", TensorRole::persistent, 1001, DType::bf16));
  tensors.push_back(vector_of("y", TensorRole::output, 10));
  open(workload_of(tensors));
  const Distribution distributions[] = {{Kind::uniform, -3, 5},      {Kind::uniform, 0, 1e-40},  {Kind::bell, 0, 1},       {Kind::bell, 0, 1e4},
                                        {Kind::integers, -7, 9},     {Kind::integers, 0, 4294967295.0}, {Kind::bits, 0, 127}, {Kind::constant, 2.7, 0},
                                        {Kind::constant, -1e9, 0},   {Kind::log_scale, -149, 20}, {Kind::log_scale, -3, 3}, {Kind::sparse, 0, 8},
                                        {Kind::structured, 0, 0}};
  std::int64_t compared = 0;
  for (const Distribution& distribution : distributions) {
    InputSet set;
    set.name = "s";
    for (const TensorShape& tensor : tensors)
      if (tensor.role != TensorRole::output) set.inputs[tensor.name] = distribution;
    const std::uint64_t seed = 0x0123456789abcdefu + static_cast<std::uint64_t>(compared);
    HONE_ASSERT_OK(session_->data()->fill(set, seed, 7));
    std::uint32_t stream = 0;
    for (const HostTensor& tensor : session_->inputs()) {
      const std::size_t size = size_of(tensor.shape.dtype);
      // Gaps are whatever they are.
      std::vector<std::byte> expected(tensor.data, tensor.data + tensor.shape.bytes());
      fill_tensor(tensor.shape, distribution, seed, stream++, 7, expected.data());
      for (std::size_t at = 0; at < expected.size(); at += size) {
        ASSERT_EQ(std::memcmp(expected.data() + at, tensor.data + at, size), 0)
            << "distribution " << static_cast<int>(distribution.kind) << " " << distribution.low << " " << distribution.high << ", " << tensor.shape.name
            << ", element " << at / size;
        ++compared;
      }
    }
  }
  std::printf("%lld elements are the host's, bit for bit\n", static_cast<long long>(compared));
  EXPECT_TRUE(*session_->inputs_intact());
}

TEST_F(CudaData, TheTasksCodeRunsThere) {
  open_task(DType::f32, 60, 300);
  HONE_ASSERT_OK(session_->data()->fill(set_, 1, 2));
  for (const HostTensor& tensor : session_->inputs()) {
    if (tensor.shape.name != "w") continue;
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(reinterpret_cast<const float*>(tensor.data)[i], static_cast<float>(i));
  }
  const auto regions = session_->data()->regions();
  HONE_ASSERT_OK(regions);
  ASSERT_EQ(regions->at("y").size(), 2u);
  EXPECT_EQ(regions->at("y")[1].name, "last");
  EXPECT_EQ(regions->at("y")[1].begin, 30);
  const auto seconds = session_->data()->refer();
  HONE_ASSERT_OK(seconds);
  EXPECT_GT(*seconds, 0);
  EXPECT_EQ(*session_->data()->refer(), 0);
  const auto first = session_->data()->reference_digest("y"), again = session_->data()->reference_digest("y");
  HONE_ASSERT_OK(first);
  EXPECT_EQ(*first, *again);
  HONE_ASSERT_OK(session_->data()->fill(set_, 1, 3));
  EXPECT_NE(*session_->data()->reference_digest("y"), *first);
  HONE_ASSERT_OK(session_->data()->fill(set_, 1, 2));
  EXPECT_EQ(*session_->data()->reference_digest("y"), *first);
  InputSet refused = set_;
  refused.name = "refused";
  const auto result = session_->data()->fill(refused, 1, 2);
  HONE_EXPECT_ERROR(result, contract);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("this set is refused"));
}

TEST_F(CudaData, AnIncompleteOracleIsToldByItsFirstElement) {
  open_task(DType::f32, 60, 300, true);
  HONE_ASSERT_OK(session_->data()->fill(set_, 1, 2));
  const auto result = session_->data()->refer();
  HONE_EXPECT_ERROR(result, contract);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("row 14 column 121"));
}

void expect_same(const std::optional<OddElement>& a, const std::optional<OddElement>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a) return;
  EXPECT_EQ(a->row, b->row);
  EXPECT_EQ(a->column, b->column);
  EXPECT_EQ(std::memcmp(&a->expected, &b->expected, 8), 0);
  EXPECT_TRUE(a->got == b->got || (std::isnan(a->got) && std::isnan(b->got)));
}

TEST_F(CudaData, ComparesAsTheHostDoes) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t columns : {300, 9001}) {
      open_task(dtype, 61, columns);
      HONE_ASSERT_OK(session_->data()->fill(set_, 5, 6));
      const ProgramId id = run_distort(dtype), other = run_distort(dtype);
      const TensorShape& shape = workload_.tensors[2];
      std::vector<double> reference(static_cast<std::size_t>(shape.elements()));
      for (const HostTensor& tensor : session_->inputs()) {
        if (tensor.shape.name != "x") continue;
        for (std::size_t i = 0; i < reference.size(); ++i)
          reference[i] = i % 1009 == 502 ? 1e39 : 1.5 * static_cast<double>(reinterpret_cast<const float*>(tensor.data)[i]);
      }
      const auto regions = session_->data()->regions();
      HONE_ASSERT_OK(regions);
      const auto& list = regions->at("y");
      std::int64_t clear = 0;   // padding
      for (const Region& region : list) {
        std::fill(reference.begin() + clear * columns, reference.begin() + region.begin * columns, 0.0);
        clear = region.end;
      }
      const auto bytes = session_->output(id, "y"), other_bytes = session_->output(other, "y");
      HONE_ASSERT_OK(bytes);
      HONE_ASSERT_OK(other_bytes);
      const std::vector<double> none(reference.size());
      const Rows got(shape, *bytes), second(shape, *other_bytes), expected(shape, std::span<const double>(reference)), zeros(shape, std::span<const double>(none));
      const struct {
        Pairing pairing;
        const Rows &got, &expected;
      } pairs[] = {{{id, "y", {}}, got, expected}, {{id, "y", other}, got, second}, {{{}, "y", {}}, zeros, expected}};
      for (const auto& pair : pairs) {
        HostPair host(pair.got, pair.expected, [&](std::size_t offset) { return pair.pairing.got && session_->is_poison(id, "y", offset); });
        for (const SumsRequest& request : {SumsRequest{}, SumsRequest{1e30, 0.5, 0.25}}) {
          const auto a = session_->data()->sums(pair.pairing, list, request), b = host.sums(list, request);
          HONE_ASSERT_OK(a);
          HONE_ASSERT_OK(b);
          ASSERT_EQ(a->size(), b->size());
          for (std::size_t i = 0; i < a->size(); ++i) {
            const auto near = [](double x, double y) { return x == y || std::abs(x - y) <= 1e-12 * std::abs(y); };
            EXPECT_PRED2(near, (*a)[i].error2, (*b)[i].error2);
            EXPECT_PRED2(near, (*a)[i].got2, (*b)[i].got2);
            EXPECT_PRED2(near, (*a)[i].expected2, (*b)[i].expected2);
            EXPECT_PRED2(near, (*a)[i].worst_row, (*b)[i].worst_row);
            EXPECT_EQ((*a)[i].worst_bound, (*b)[i].worst_bound);
            EXPECT_EQ((*a)[i].max_error, (*b)[i].max_error);
            EXPECT_EQ((*a)[i].max_expected, (*b)[i].max_expected);
            EXPECT_EQ((*a)[i].max_got, (*b)[i].max_got);
            EXPECT_EQ((*a)[i].special, (*b)[i].special);
          }
        }
        for (const Region& region : list)
          for (const Tolerance& tolerance : {Tolerance{1e-3, 0, true, true}, Tolerance{0, 1e-5, true, false}, Tolerance{0, 0, false, true}}) {
            const auto a = session_->data()->odd(pair.pairing, region, tolerance), b = host.odd(region, tolerance);
            HONE_ASSERT_OK(a);
            HONE_ASSERT_OK(b);
            EXPECT_EQ(a->not_written, b->not_written);
            EXPECT_EQ(a->non_finite, b->non_finite);
            EXPECT_EQ(a->wrong, b->wrong);
            EXPECT_EQ(a->special, b->special);
            expect_same(a->first_not_written, b->first_not_written);
            expect_same(a->first_non_finite, b->first_non_finite);
            expect_same(a->first_wrong, b->first_wrong);
            EXPECT_EQ(a->constant, b->constant);
            EXPECT_EQ(a->expected_constant, b->expected_constant);
            EXPECT_EQ(a->first_got, b->first_got);
            EXPECT_EQ(a->first_expected, b->first_expected);
          }
      }
      // Elements that are not written differ by their poison, the others do not.
      const auto one = session_->data()->output_digest(id, "y", list), same = session_->data()->output_digest(id, "y", list);
      HONE_ASSERT_OK(one);
      EXPECT_EQ(*one, *same);
      EXPECT_EQ(one->size(), 64u);
      EXPECT_NE(*session_->data()->output_digest(other, "y", list), *one);
      EXPECT_FALSE(*session_->data()->copies(id, "y", "x"));
      EXPECT_TRUE(session_->guards(id)->empty());
    }
}

TEST_F(CudaData, ACopyOfAnInputIsTold) {
  const auto task = cuda_object("task");
  HONE_ASSERT_OK(task);
  TensorShape x = vector_of("x", TensorRole::input, 1), y = vector_of("y", TensorRole::output, 1);
  x.shape = y.shape = {30, 40};
  x.strides = y.strides = {40, 1};
  Workload workload = workload_of({x, vector_of("w", TensorRole::input, 100), y});
  workload.axes["partly"] = {0};
  open(workload, *task);
  set_.name = "random";
  set_.inputs = {{"x", {Kind::bell, 0, 1}}, {"w", {Kind::structured, 0, 1}}};
  HONE_ASSERT_OK(session_->data()->fill(set_, 1, 2));
  const auto program = subject_->program("copy", plan_of({launch_of("copy", {tensor_arg("x"), tensor_arg("y"), i64_arg(1200)})}));
  HONE_ASSERT_OK(program);
  const auto id = session_->load(*program);
  HONE_ASSERT_OK(id);
  ASSERT_TRUE(session_->call(*id, {}).has_value());
  EXPECT_TRUE(*session_->data()->copies(*id, "y", "x"));
  // Where the right answer is the input, a copy is no trick.
  set_.inputs["x"] = {Kind::constant, 0, 0};
  HONE_ASSERT_OK(session_->data()->fill(set_, 1, 2));
  ASSERT_TRUE(session_->call(*id, {}).has_value());
  EXPECT_EQ(*session_->data()->copies(*id, "y", "x"), false);
}

TEST_F(CudaData, DataComeBackAfterACrash) {
  open_task(DType::f32, 60, 300);
  HONE_ASSERT_OK(session_->data()->fill(set_, 1, 2));
  const auto digest = session_->data()->reference_digest("y");
  HONE_ASSERT_OK(digest);
  const auto program = subject_->program("crash", plan_of({launch_of("crash", {})}));
  const auto id = session_->load(*program);
  HONE_ASSERT_OK(id);
  const auto result = session_->call(*id, {});
  ASSERT_TRUE(result && result->fault);
  EXPECT_EQ(*session_->data()->reference_digest("y"), *digest);
  const Pairing pairing{*id, "y", {}};
  HONE_EXPECT_ERROR(session_->data()->sums(pairing, {{"all", 0, 60}}, {}), illegal_address);
}

}  // namespace
}  // namespace hone::testing
