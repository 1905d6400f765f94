// FP16 GEMM: hard inputs, float64 oracle.
#include <hone/gemm_task.cuh>

void hone_inputs(const hone::TaskCall* call) { hone::gemm::inputs<__half>(*call, 64); }
void hone_oracle(const hone::TaskCall* call) { hone::gemm::oracle<__half>(*call); }
