// Shared objects, cubins and mangled names. An input that begins with "_Z" is a name; anything else is a file
// in which a kernel is looked for.
#include <cstdlib>
#include <cstring>

#include "program/candidate.h"
#include "program/symbol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("_Z")) {
    const auto name = hone::demangle_function(bytes);
    if (name && name->text().size() > 64 * 1024) std::abort();
    return 0;
  }
  hone::ProblemShape problem;
  problem.tensors = {{"x", hone::DType::f32, hone::TensorRole::input, {8}, {1}},
                     {"y", hone::DType::f32, hone::TensorRole::output, {8}, {1}}};
  hone::PlanLaunch launch;
  launch.kernel = "scale<4>";
  launch.args = {
      {hone::ArgKind::tensor, "x", 0, 0}, {hone::ArgKind::tensor, "y", 0, 0}, {hone::ArgKind::i64, "", 0, 8}};
  (void)hone::resolve_kernel(bytes, launch, problem);
  return 0;
}
