#include "program/plan.h"

#include <rapidcheck.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/yaml.h"
#include "toolchain/text_cases.h"

namespace hone::testing {
namespace {

ProblemShape problem() {
  ProblemShape out;
  out.workload = "w0";
  out.device = "cpu";
  out.axes = {{"M", 128}};
  out.tensors = {{"x", DType::f32, TensorRole::input, {128, 64}, {64, 1}},
                 {"y", DType::f32, TensorRole::output, {128, 64}, {64, 1}},
                 {"state", DType::f32, TensorRole::persistent, {64}, {1}}};
  return out;
}

ProgramLimits cpu_limits() {
  ProgramLimits out;
  out.max_shared_bytes = 1 << 20;
  out.max_workspace_bytes = 1 << 30;
  return out;
}

const std::vector<std::string> kSources = {"kernel.cpp", "plan.cpp", "tile.h"};

// The input is laid over a right plan, as a JSON merge patch (RFC 7396) after its first word, or replaces it.
std::string judged(const std::string&, const std::string& input) {
  nlohmann::json base = nlohmann::json::parse(R"({"schema": "hone.plan/1",
    "modules": [{"source": "kernel.cpp", "defines": [{"name": "TILE", "value": "4"}]}],
    "workspaces": [{"name": "packed", "bytes": 4096, "zeroed": false}], "tensor_maps": [],
    "launches": [{"kind": "launch", "module": 0, "kernel": "scale<4>",
      "grid": {"x": 32, "y": 1, "z": 1}, "block": {"x": 1, "y": 1, "z": 1},
      "args": [{"kind": "tensor", "tensor": "x"}, {"kind": "tensor", "tensor": "y"}, 
               {"kind": "workspace", "index": 0}, {"kind": "i64", "value": 128}]}]})");
  std::string text = input;
  if (input.starts_with("launch ")) {
    base["launches"][0].merge_patch(nlohmann::json::parse(input.substr(7)));
    text = base.dump();
  } else if (input.starts_with("plan ")) {
    base.merge_patch(nlohmann::json::parse(input.substr(5)));
    text = base.dump();
  }
  const auto plan = plan_from_json(text);
  if (!plan) return to_text(plan.error());
  const auto valid = validate(*plan, problem(), cpu_limits(), kSources);
  return valid ? "ok" : to_text(valid.error());
}

TEST(Plan, TextCases) { replay(source_dir() / "tests/cases/program/plan.txt", judged); }

TEST(Plan, LimitsOfAGpu) {
  ProgramLimits gpu;
  gpu.max_block = {1024, 1024, 64};
  gpu.max_threads_per_block = 1024;
  gpu.max_cluster = 8;
  gpu.max_shared_bytes = 232448;
  gpu.max_workspace_bytes = 1 << 30;
  gpu.max_resident_blocks = 264;
  gpu.tensor_maps = true;
  Plan plan;
  plan.modules = {{"kernel.cpp", {}}};
  PlanLaunch launch;
  launch.kernel = "k";
  launch.grid = {264, 1, 1};
  launch.block = {1024, 1, 1};
  launch.cooperative = true;
  ProblemShape shapes = problem();
  auto check = [&] {
    plan.launches = {launch};
    const auto result = validate(plan, shapes, gpu, kSources);
    return result ? std::string("ok") : result.error().message;
  };
  EXPECT_EQ(check(), "ok");
  launch.grid = {265, 1, 1};
  EXPECT_EQ(check(), "launches[0].cooperative: 265 blocks cannot run together; the device holds 264");
  launch.cooperative = false;
  launch.block = {1024, 2, 1};
  EXPECT_EQ(check(), "launches[0].block: has 2048 threads; the device allows 1024");
  launch.block = {128, 1, 1};
  launch.cluster = {2, 1, 1};
  EXPECT_EQ(check(), "launches[0].cluster.x: is 2 and does not divide the grid's 265");
  launch.grid = {264, 1, 1};
  EXPECT_EQ(check(), "ok");
  launch.shared_bytes = 1 << 20;
  EXPECT_EQ(check(), "launches[0].shared_bytes: is 1048576; the device allows 0 to 232448");
  launch.shared_bytes = 0;
  plan.tensor_maps = {{"mx", "x", {64, 64}, {}, "128B", "none", "zero"}};
  EXPECT_EQ(check(), "ok");
  plan.tensor_maps[0].box = {64};   // both axes as one
  EXPECT_EQ(check(), "ok");
  plan.tensor_maps[0].box = {};
  EXPECT_EQ(check(), "tensor_maps[0].box: has 0 extents; tensor x has 2");
  plan.tensor_maps[0].box = {1, 64, 64};
  EXPECT_EQ(check(), "tensor_maps[0].box: has 3 extents; tensor x has 2");
  plan.tensor_maps[0].box = {64};
  shapes.tensors[0].strides[0] += 64;
  EXPECT_EQ(check(), "tensor_maps[0].box: has 1 extents; tensor x has 2, and gaps between those to be taken as one");
}

TEST(TensorShape, LeadingAxesAsOne) {
  const TensorShape tensor{"b", DType::e4m3, TensorRole::input, {4, 6, 32}, {192, 32, 1}, 64};
  const auto two = tensor.flattened(2);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->shape, (std::vector<std::int64_t>{24, 32}));
  EXPECT_EQ(two->strides, (std::vector<std::int64_t>{32, 1}));
  EXPECT_EQ(tensor.flattened(1)->shape, std::vector<std::int64_t>{768});
  EXPECT_EQ(tensor.flattened(3)->shape, tensor.shape);
  EXPECT_FALSE(tensor.flattened(0));
  EXPECT_FALSE(tensor.flattened(4));
  TensorShape gaps = tensor;
  gaps.strides = {256, 32, 1};   // between the first two axes
  EXPECT_FALSE(gaps.flattened(2));
  EXPECT_TRUE(gaps.flattened(3));
}

std::string name_gen() { return *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('a', 'z'))); }

PlanArg arg_gen() {
  PlanArg arg;
  arg.kind = static_cast<ArgKind>(*rc::gen::inRange(0, 9));
  if (arg.kind == ArgKind::tensor) arg.tensor = name_gen();
  else if (arg.kind == ArgKind::workspace || arg.kind == ArgKind::tensor_map)
    arg.index = *rc::gen::inRange<std::size_t>(0, 100);
  else if (arg.kind == ArgKind::i32 || arg.kind == ArgKind::u32 || arg.kind == ArgKind::f32)
    arg.bits = *rc::gen::arbitrary<std::uint32_t>();
  else arg.bits = *rc::gen::arbitrary<std::uint64_t>();
  return arg;
}

Extent3 extent_gen() {
  return {*rc::gen::arbitrary<std::int64_t>(), *rc::gen::arbitrary<std::int64_t>(),
          *rc::gen::arbitrary<std::int64_t>()};
}

int line_gen() { return *rc::gen::inRange(0, 1000); }

Plan plan_gen() {
  auto count = [] { return *rc::gen::inRange(0, 4); };
  Plan plan;
  for (int i = count(); i > 0; --i) plan.modules.push_back({name_gen(), {{name_gen(), "\"\\\n\xc3\xa9" + name_gen()}}, line_gen()});
  for (int i = count(); i > 0; --i)
    plan.workspaces.push_back({name_gen(), *rc::gen::arbitrary<std::int64_t>(), *rc::gen::arbitrary<bool>(), line_gen()});
  for (int i = count(); i > 0; --i)
    plan.tensor_maps.push_back(
        {name_gen(), name_gen(), {1, 2}, {*rc::gen::arbitrary<std::int64_t>()}, "none", "none", "zero", line_gen()});
  for (int i = count(); i > 0; --i) {
    PlanLaunch launch;
    launch.module = *rc::gen::inRange<std::size_t>(0, 8);
    launch.kernel = name_gen() + "<1, 2>";
    launch.grid = extent_gen();
    launch.block = extent_gen();
    launch.cluster = extent_gen();
    launch.shared_bytes = *rc::gen::arbitrary<std::int64_t>();
    launch.max_registers = *rc::gen::arbitrary<std::int64_t>();
    launch.cooperative = *rc::gen::arbitrary<bool>();
    launch.programmatic_dependent_launch = *rc::gen::arbitrary<bool>();
    launch.line = line_gen();
    for (int j = count(); j > 0; --j) launch.args.push_back(arg_gen());
    plan.launches.emplace_back(std::move(launch));
    PlanMemset memset;
    if (*rc::gen::arbitrary<bool>()) memset.tensor = name_gen();
    else memset.workspace = *rc::gen::inRange<std::size_t>(0, 8);
    memset.value = *rc::gen::inRange(0, 256);
    memset.line = line_gen();
    plan.launches.emplace_back(std::move(memset));
  }
  return plan;
}

TEST(Plan, JsonRoundTripAndSchema) {
  const auto schema = read_file(source_dir() / "share/schema/plan.json");
  HONE_ASSERT_OK(schema);
  EXPECT_TRUE(rc::check("a plan survives JSON and obeys its schema", [&] {
    const nlohmann::json json = plan_to_json(plan_gen());
    const auto again = plan_from_json(json.dump());
    if (!again) RC_FAIL(to_text(again.error()));
    RC_ASSERT(plan_to_json(*again) == json);
    const auto obeyed = check_schema(json, *schema, "plan");
    if (!obeyed) RC_FAIL(to_text(obeyed.error()));
  }));
}

TEST(Plan, HostileJson) {
  const std::string deep = std::string(200'000, '[');
  const std::string good = R"({"schema":"hone.plan/1","modules":[],"workspaces":[],"tensor_maps":[],"launches":[]})";
  EXPECT_TRUE(plan_from_json(good).has_value());
  std::string many = R"({"schema":"hone.plan/1","modules":[)";
  for (int i = 0; i < 5000; ++i) many += i == 0 ? "0" : ",0";
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), deep, std::string("{\"a\":") + deep,
        std::string(2 << 20, ' '), good + "x", std::string("\xff\xfe"), std::string("{\"schema\":\"\xff\"}"),
        many + "]}", std::string(good).replace(1, 0, "\"schema\":\"x\","), std::string("{\"schema\":1e999}"),
        std::string("nan"), std::string(1, '\0')})
    HONE_EXPECT_ERROR(plan_from_json(text), plan);
  for (std::size_t cut = 0; cut < good.size(); ++cut) EXPECT_FALSE(plan_from_json(good.substr(0, cut)).has_value());
}

}  // namespace
}  // namespace hone::testing
