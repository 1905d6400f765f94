// OpenBLAS, one sgemm a group.
#include <cblas.h>
#include <hone/task.h>

#include <cstdio>

extern "C" char* openblas_get_corename();

namespace {

struct State {
  char description[160];
};

}  // namespace

void* hone_baseline_open(const hone::TaskCall* call) {
  static State state;
  openblas_set_num_threads(call->workers);
  // The configuration begins with "OpenBLAS 0.3.21 ".
  char name[64] = "OpenBLAS";
  std::sscanf(openblas_get_config(), "%31[^ ] %*s", name);
  char version[32] = "";
  std::sscanf(openblas_get_config(), "%*s %31s", version);
  std::snprintf(state.description, sizeof state.description, "%s %s, kernel %s, %d thread%s", name, version, openblas_get_corename(),
                openblas_get_num_threads(), openblas_get_num_threads() == 1 ? "" : "s");
  return &state;
}

void hone_baseline_run(void*, const hone::TaskCall* call) {
  const auto* a = call->data<float>("A");
  const auto* b = call->data<float>("B");
  const auto* starts = call->data<std::int32_t>("starts");
  const auto* rows = call->data<std::int32_t>("rows");
  const hone::TaskTensor& d = call->tensor("D");
  const auto n = static_cast<int>(call->axis("N")), k = static_cast<int>(call->axis("K"));
  const std::int64_t pitch = d.strides[0];
  for (std::int64_t g = 0; g < call->axis("G"); ++g) {
    if (rows[g] == 0) continue;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows[g], n, k, 1.0f, a + std::int64_t{starts[g]} * k, k,
                b + g * n * k, k, 0.0f, static_cast<float*>(d.data) + starts[g] * pitch, static_cast<int>(pitch));
  }
}

const char* hone_baseline_describe(void* state) { return static_cast<State*>(state)->description; }
