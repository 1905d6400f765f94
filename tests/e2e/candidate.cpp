#include "candidate.h"

#include <stdexcept>

#include "testing/testing.h"

namespace hone::testing {

const char* const kHonest = R"(
  float top = x[0];
  for (std::int64_t i = 1; i < n; ++i) top = std::max(top, x[i]);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[i]) - top);
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(std::exp(static_cast<double>(x[i]) - top) / sum);
)";

std::string kernel(const std::string& body) {
  return "#include <hone/kernel.h>\n#include <algorithm>\n#include <cmath>\n#include <cstdint>\n#include <cstdlib>\n#include <limits>\n#include <unistd.h>\n"
         "void softmax(const hone::Block& block, const float* x, float* y, std::int64_t n) {\n"
         "  x += block.index.x * n;\n  y += block.index.x * n;\n" + body + "}\n";
}

std::string plan(const std::string& launch) {
  return "#include <hone/plan.h>\nvoid plan(const hone::Problem& problem, hone::Plan& plan) {\n  plan.launch(plan.module(\"kernel.cpp\"), " + launch + ";\n}\n";
}

fs::path candidate(const std::string& name, std::map<std::string, std::string> files) {
  const fs::path folder = scratch(name);
  files.try_emplace("kernel.cpp", kernel(kHonest));
  files.try_emplace("plan.cpp", plan());
  for (const auto& [path, bytes] : files)
    if (auto written = write_file_atomic(folder / path, bytes); !written) throw std::runtime_error(to_text(written.error()));
  return folder;
}

}  // namespace hone::testing
