// The configuration that DeepGEMM picks by itself on 132 SMs for all four workloads: blocks of 128 by 192 by 128 in 4
// stages, one warpgroup that fetches and two that multiply, pairs of blocks that share B (seen in DeepGEMM 2.6.1).
#include <hone/plan.h>

#include <string>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  constexpr std::int64_t kM = 128, kN = 192, kK = 128, kStages = 4, kFetching = 128, kMultiplying = 256, kCluster = 2, kSwizzle = 128;
  const auto m = problem.axis("M"), n = problem.axis("N"), k = problem.axis("K"), groups = problem.axis("G");
  const auto sms = problem.workers / kCluster * kCluster;

  // M is a run-time argument; 0 says so. N, K and the number of groups are compiled in, as DeepGEMM does.
  std::string kernel = "deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0";
  for (const std::int64_t value : {n, k, groups, kM, kN, kK, kSwizzle, kSwizzle, kSwizzle, kStages, kFetching, kMultiplying, kCluster})
    kernel += ", " + std::to_string(value);
  kernel += ", false, " + std::to_string(sms) + ", (deep_gemm::GemmType)1, cutlass::bfloat16_t>";

  // A tile of D, the stages of A, B and A's scales, all of B's scales for two columns of blocks, the barriers.
  const auto shared = 2 * kM * kN + kStages * (kM * kK + kN * kK + 4 * kM) + 2 * 4 * (k / kK) + 2 * 8 * 16;
  const auto map = [&](const char* tensor, std::vector<std::int64_t> box, const char* swizzle) {
    return plan.tensor_map(tensor, problem.tensor(tensor), {.box = std::move(box), .strides = {}, .swizzle = swizzle, .l2 = "256B"});
  };
  plan.launch(plan.module("kernel.cu"), kernel, {sms}, {kFetching + kMultiplying})
      .cluster({kCluster})
      .shared(shared)
      .args(problem.tensor("SFB"), problem.tensor("groups"), static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(n),
            static_cast<std::uint32_t>(k), map("A", {kM, kK}, "128B"), map("B", {kN, kK}, "128B"), map("D", {kM, kSwizzle / 2}, "128B"),
            map("SFA", {1, kM}, "none"));
}
