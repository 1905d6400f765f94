#include "judge/mutants.h"

#include <gtest/gtest.h>

#include <cstring>

#include "judge/compare.h"

namespace hone {
namespace {

const TensorShape kShape{"y", DType::f32, TensorRole::output, {3, 2}, {2, 1}};

const Mutant* find(const std::vector<Mutant>& mutants, const std::string& name) {
  for (const Mutant& mutant : mutants)
    if (mutant.name == name) return &mutant;
  return nullptr;
}

TEST(Mutants, EachDiffersInAValidElement) {
  const std::vector<Region> regions = {{"a", 0, 2}};
  const std::vector<double> reference = {1, 2, 3, 4, 9, 9};
  const auto mutants = mutants_of(kShape, regions, reference, {});
  ASSERT_EQ(mutants.size(), 5u);
  EXPECT_EQ(find(mutants, "two rows swapped")->output, (std::vector<double>{3, 4, 1, 2, 9, 9}));
  EXPECT_EQ(find(mutants, "constant (the mean)")->output[0], 2.5);
  EXPECT_EQ(find(mutants, "one element off")->output[3], 8);
}

TEST(Mutants, WhatCannotBeToldApartIsNotTried) {
  const std::vector<double> reference = {5, 5, 5, 5, 5, 5};
  const auto mutants = mutants_of(kShape, {}, reference, {});
  EXPECT_EQ(find(mutants, "two rows swapped"), nullptr);
  EXPECT_EQ(find(mutants, "constant (the mean)"), nullptr);
  EXPECT_NE(find(mutants, "zeros"), nullptr);
  EXPECT_EQ(find(mutants_of(kShape, {}, std::vector<double>(6, 0), {}), "zeros"), nullptr);
}

TEST(Mutants, InputsAsAFaultyKernelReadsThem) {
  Task task;
  task.scale_inputs["s"] = "a";
  Workload workload;
  workload.tensors = {{"a", DType::f32, TensorRole::input, {1, 4}, {4, 1}}, {"s", DType::f32, TensorRole::input, {2, 2}, {2, 1}},
                      {"i", DType::i32, TensorRole::input, {4}, {1}}, kShape};
  const auto mutations = input_mutations(task, workload);
  ASSERT_EQ(mutations.size(), 2u);
  float a[4] = {1, 2, 3, 4}, s[4] = {1, 2, 3, 4};
  apply(mutations[0], task, workload.tensors[0], reinterpret_cast<std::byte*>(a));
  apply(mutations[1], task, workload.tensors[1], reinterpret_cast<std::byte*>(s));
  EXPECT_EQ(std::vector<float>(a, a + 4), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(std::vector<float>(s, s + 4), (std::vector<float>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace hone
