#include <hone/plan.h>

#include <string>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto tokens = problem.axis("T"), experts = problem.axis("E"), each = hone::ceil_div(experts, 32);
  if (each > 32) throw hone::Unsupported("at most 1024 experts");
  plan.launch(plan.module("kernel.cu"), "route<" + std::to_string(each) + ">", {hone::ceil_div(tokens, 8)}, {256})
      .args(problem.tensor("x"), problem.tensor("weights"), problem.tensor("indices"), static_cast<std::int32_t>(tokens),
            static_cast<std::int32_t>(experts), static_cast<std::int32_t>(problem.axis("K")));
}
