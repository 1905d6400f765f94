// Parts of the CPU device without a process: the crew, layouts, canaries, poison, the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "device/cpu/arena.h"
#include "device/cpu/crew.h"
#include "device/cpu/suspicion.h"
#include "device/cpu/topology.h"
#include "device/cpu/tripwire.h"
#include "device/subject.h"
#include "testing/testing.h"

namespace hone::cpu {
namespace {

// Adds up, in plain memory, what every block of every step saw of the steps before: a barrier that
// lets a block through too early, or a block run twice, gives another sum (and a data race).
class Sums final : public Work {
 public:
  Sums(std::uint32_t steps, std::uint64_t blocks) : values_(steps + 1, std::vector<std::uint64_t>(blocks, 1)) {}
  std::uint32_t steps() const override { return static_cast<std::uint32_t>(values_.size() - 1); }
  std::uint64_t blocks(std::uint32_t) const override { return values_[0].size(); }
  void run(std::uint32_t step, std::uint32_t slot, std::uint64_t block, std::uint32_t) override {
    seen_slot.store(slot);
    const std::vector<std::uint64_t>& before = values_[step];
    values_[step + 1][block] = std::accumulate(before.begin(), before.end(), std::uint64_t{0}) % 1000003 + slot;
  }
  std::vector<std::uint64_t> expected(std::uint32_t slot) const {
    std::vector<std::uint64_t> row(values_[0].size(), 1);
    for (std::uint32_t step = 0; step < steps(); ++step)
      row.assign(row.size(), std::accumulate(row.begin(), row.end(), std::uint64_t{0}) % 1000003 + slot);
    return row;
  }
  const std::vector<std::uint64_t>& result() const { return values_.back(); }
  std::atomic<std::uint32_t> seen_slot{0};

 private:
  std::vector<std::vector<std::uint64_t>> values_;
};

struct CrewCase {
  std::uint32_t workers;
  Patience patience;
  bool alone;
};
class CrewTest : public ::testing::TestWithParam<CrewCase> {};

TEST_P(CrewTest, RunsEveryBlockOnceInOrderOfSteps) {
  const CrewCase& param = GetParam();
  Doorbell bell;
  Crew crew(bell, param.workers, param.patience);
  Sums work(7, 13);
  std::vector<std::thread> threads;
  crew.take(work, param.alone);
  for (std::uint32_t i = 0; i < param.workers; ++i) threads.emplace_back([&crew, i] { crew.serve(i); });
  for (std::uint32_t call = 1; call <= 100; ++call) {
    bell.slot.store(call % 5);
    set(bell.call, call, Patience::sleep);
    wait_equal(bell.armed, call, param.patience);
    EXPECT_NE(bell.done.load(), call);
    set(bell.go, call, param.patience);
    wait_equal(bell.done, call, param.patience);
    ASSERT_EQ(work.result(), work.expected(call % 5)) << call;
    ASSERT_EQ(work.seen_slot.load(), call % 5);
  }
  set(bell.call, kStop, Patience::sleep);
  for (std::thread& thread : threads) thread.join();
}

// Spinning threads without a core each only make progress by time slices: few of them.
INSTANTIATE_TEST_SUITE_P(Cpu, CrewTest,
                         ::testing::Values(CrewCase{1, Patience::sleep, false}, CrewCase{4, Patience::sleep, false},
                                           CrewCase{3, Patience::sleep, true}, CrewCase{1, Patience::spin, false}));

TensorShape shape_of(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  TensorShape tensor;
  tensor.name = "t";
  tensor.shape = std::move(shape);
  tensor.strides = std::move(strides);
  return tensor;
}

std::vector<std::pair<std::size_t, std::size_t>> pairs(const std::vector<Run>& runs) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (const Run& run : runs) out.emplace_back(run.begin, run.bytes);
  return out;
}

TEST(CpuArena, RunsCoverExactlyTheElements) {
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(pairs(runs_of(shape_of({3, 4}, {4, 1}))), (Pairs{{0, 48}}));
  EXPECT_EQ(pairs(runs_of(shape_of({4, 3}, {1, 4}))), (Pairs{{0, 48}})) << "a transposed tensor is dense too";
  EXPECT_EQ(pairs(runs_of(shape_of({3, 4}, {6, 1}))), (Pairs{{0, 16}, {24, 16}, {48, 16}}));
  EXPECT_EQ(pairs(runs_of(shape_of({2, 2, 2}, {20, 6, 1}))), (Pairs{{0, 8}, {24, 8}, {80, 8}, {104, 8}}));
  EXPECT_EQ(pairs(runs_of(shape_of({3}, {2}))), (Pairs{{0, 4}, {8, 4}, {16, 4}}));
  EXPECT_EQ(pairs(runs_of(shape_of({3, 4}, {0, 1}))).size(), 1u) << "a broadcast axis";
  EXPECT_EQ(pairs(runs_of(shape_of({1, 5}, {77, 1}))), (Pairs{{0, 20}}));
}

TEST(CpuArena, EveryByteAroundABufferIsGuarded) {
  Layout layout(3);
  layout.add({"a", 100, 64, {}, true});
  layout.add({"b", 5000, 4096, {{0, 1000}, {2000, 3000}}, true});
  layout.add({"c", 64, 64, {}, false});
  std::vector<std::byte> pattern(kPage), memory(layout.bytes());
  for (std::size_t i = 0; i < kPage; ++i) pattern[i] = static_cast<std::byte>(i * 7 + 3);
  layout.write_canaries(memory.data(), pattern);
  EXPECT_TRUE(layout.check_canaries(memory.data(), pattern).empty());
  for (std::size_t buffer = 0; buffer < layout.count(); ++buffer) {
    const std::size_t bytes = layout.spec(buffer).bytes;
    for (std::size_t slot = 0; slot < 3; ++slot) {
      const std::size_t at = layout.offset(buffer, slot);
      EXPECT_EQ(at % layout.spec(buffer).alignment, 0u);
      // The payload is not guarded, the byte on each side is.
      memory[at] ^= std::byte{1};
      memory[at + bytes - 1] ^= std::byte{1};
      EXPECT_TRUE(layout.check_canaries(memory.data(), pattern).empty());
      for (const std::int64_t off : {std::int64_t{-4096}, std::int64_t{-1}, static_cast<std::int64_t>(bytes),
                                     static_cast<std::int64_t>(bytes) + 4095}) {
        memory[static_cast<std::size_t>(static_cast<std::int64_t>(at) + off)] ^= std::byte{0x80};
        const auto damage = layout.check_canaries(memory.data(), pattern);
        ASSERT_EQ(damage.size(), 1u) << layout.spec(buffer).name << " " << off;
        EXPECT_EQ(damage[0].buffer, layout.spec(buffer).name);
        EXPECT_EQ(damage[0].first_byte, off);
        EXPECT_EQ(damage[0].bytes, 1);
      }
    }
  }
  const std::size_t gap = layout.offset(1, 2) + 1000;
  memory[gap] ^= std::byte{1};
  memory[gap + 999] ^= std::byte{1};
  memory[gap + 4500] ^= std::byte{1};
  const auto damage = layout.check_canaries(memory.data(), pattern);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_EQ(damage[0].first_byte, 1000);
  EXPECT_EQ(damage[0].bytes, 3);
}

TEST(CpuArena, GuardsHoldNoBufferAndAreWide) {
  Layout layout(2);
  for (std::size_t bytes : {1u, 4096u, 4097u, 1000000u, 5u}) layout.add({"b", bytes, 64, {}, true});
  std::size_t last_end = 0;
  for (const cpu::Run& guard : layout.guards()) {
    EXPECT_EQ(guard.begin % kPage, 0u);
    EXPECT_TRUE(guard.begin >= last_end) << "in order";
    EXPECT_GE(guard.bytes, 65536u);
    last_end = guard.begin + guard.bytes;
    EXPECT_LE(last_end, layout.bytes());
    for (std::size_t buffer = 0; buffer < layout.count(); ++buffer)
      for (std::size_t slot = 0; slot < 2; ++slot) {
        const std::size_t at = layout.offset(buffer, slot), end = at + layout.spec(buffer).bytes;
        EXPECT_TRUE(end + kPage <= guard.begin || last_end + kPage <= at)
            << "less than a page between a buffer and a guard";
        if (end <= guard.begin && guard.begin - end < 2 * kPage) {
          EXPECT_GE(guard.bytes, layout.spec(buffer).bytes);
        }
        if (last_end <= at && at - last_end < 2 * kPage) {
          EXPECT_GE(guard.bytes, layout.spec(buffer).bytes);
        }
      }
  }
}

TEST(CpuArena, PoisonIsNeverAFiniteNumber) {
  for (std::uint64_t random : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x123456789abcdef}}) {
    const auto f32 = static_cast<std::uint32_t>(poison_pattern(DType::f32, random));
    const std::uint64_t f64 = poison_pattern(DType::f64, random);
    float narrow;
    double wide;
    std::memcpy(&narrow, &f32, 4);
    std::memcpy(&wide, &f64, 8);
    EXPECT_TRUE(std::isnan(narrow));
    EXPECT_TRUE(std::isnan(wide));
    EXPECT_GT(poison_pattern(DType::bf16, random) & 0x7fffu, 0x7f80u);
    EXPECT_GT(poison_pattern(DType::f16, random) & 0x7fffu, 0x7c00u);
    EXPECT_EQ(poison_pattern(DType::e4m3, random) & 0x7fu, 0x7fu);
    EXPECT_GT(poison_pattern(DType::e5m2, random) & 0x7fu, 0x7cu);
    EXPECT_LE(poison_pattern(DType::u8, random), 0xffu);
  }
}

TEST(CpuArena, SharedMemoryStartsAtZeroAndCanBeSealed) {
  auto memory = SharedMemory::create("test");
  HONE_ASSERT_OK(memory);
  HONE_ASSERT_OK(memory->resize(3 * kPage));
  std::memset(memory->data(), 1, 3 * kPage);
  HONE_ASSERT_OK(memory->resize(2 * kPage));
  EXPECT_EQ(memory->data()[100], std::byte{0});
  HONE_ASSERT_OK(memory->seal());
  EXPECT_FALSE(memory->resize(kPage).has_value());
}

TEST(CpuArena, MoreMemoryThanThereIsIsRefused) {
  auto memory = SharedMemory::create("test");
  HONE_ASSERT_OK(memory);
  HONE_EXPECT_ERROR(memory->resize(std::size_t{1} << 45), out_of_memory);
}

TEST(CpuTopology, WorkersAreBoundedByTheCores) {
  const auto own = find_topology(0);
  HONE_ASSERT_OK(own);
  EXPECT_FALSE(own->worker_cores.empty());
  EXPECT_GT(own->cache_bytes, 0u);
  HONE_EXPECT_ERROR(find_topology(100000), usage);
  HONE_EXPECT_ERROR(find_topology(-1), usage);
  const auto one = find_topology(1);
  HONE_ASSERT_OK(one);
  EXPECT_EQ(one->worker_cores.size(), 1u);
}

struct TripwireMemory {
  std::vector<std::byte> in = std::vector<std::byte>(4096), out = std::vector<std::byte>(1000);
  std::uint64_t state = 7;
  std::optional<Tripwires> tripwires;
  std::vector<std::byte> truth;
  TripwireMemory() {
    for (std::byte& each : in) each = static_cast<std::byte>(draw());
    truth = in;
    const TripwireBuffer input{in.data(), in.size(), 1, {}}, output{out.data(), out.size(), 4, kRuns};
    tripwires.emplace(std::span(&input, 1), std::span(&output, 1), [this] { return draw(); });
  }
  std::uint64_t draw() { return state = (state ^ (state >> 29)) * 0x9e3779b97f4a7c15u + 1; }
  static constexpr Run kRuns[] = {{0, 400}, {600, 400}};   // between them lies a gap
};

TEST(Tripwires, InputsAreFalseUntilTheyAreRevealed) {
  TripwireMemory memory;
  EXPECT_NE(memory.in, memory.truth);
  EXPECT_TRUE(memory.tripwires->reveal());
  EXPECT_EQ(memory.in, memory.truth);
}

TEST(Tripwires, InputsAreTrueAgainWhenTheCallFailed) {
  TripwireMemory memory;
  memory.tripwires.reset();
  EXPECT_EQ(memory.in, memory.truth);
}

TEST(Tripwires, AnOutputOfBeforeTheStartIsSeen) {
  TripwireMemory memory;
  for (std::size_t i = 0; i < 400; ++i) memory.out[i] = std::byte{1};
  EXPECT_FALSE(memory.tripwires->reveal());
}

TEST(Tripwires, OnlyWhatTheTensorCoversCounts) {
  TripwireMemory memory;
  for (std::size_t i = 400; i < 600; ++i) memory.out[i] = std::byte{1};
  EXPECT_TRUE(memory.tripwires->reveal());
}

TEST(Tripwires, AnOutputOfAfterTheEndIsSeen) {
  TripwireMemory memory;
  ASSERT_TRUE(memory.tripwires->reveal());
  for (std::byte& each : memory.out) each = std::byte{1};
  memory.tripwires->ended();
  EXPECT_TRUE(memory.tripwires->unchanged());
  for (std::size_t i = 600; i < 1000; ++i) memory.out[i] = std::byte{2};
  EXPECT_FALSE(memory.tripwires->unchanged());
}

TEST(Tripwires, NothingToWatch) {
  Tripwires none({}, {}, [] { return std::uint64_t{0}; });
  EXPECT_TRUE(none.reveal());
  none.ended();
  EXPECT_TRUE(none.unchanged());
}

// Among `calls` calls of which `parts` of ten are suspicious, whether and when there is a verdict.
std::optional<int> verdict_after(int parts, int calls, unsigned seed) {
  std::mt19937 random(seed);
  Suspicion suspicion;
  for (int i = 1; i <= calls; ++i) {
    if (static_cast<int>(random() % 10) >= parts) suspicion.lower();
    else if (suspicion.raise()) return i;
  }
  return std::nullopt;
}

TEST(Suspicion, NeedsCallAfterCall) {
  EXPECT_EQ(verdict_after(10, 100, 0), 16);
  for (unsigned seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(verdict_after(3, 10'000, seed), std::nullopt) << "a machine with other work was taken for a cheat, seed " << seed;
    const auto most = verdict_after(8, 1000, seed);
    ASSERT_TRUE(most.has_value()) << seed;
    EXPECT_LE(*most, 200) << seed;
  }
}

}  // namespace
}  // namespace hone::cpu
