// BF16 GEMM: hard inputs, float64 oracle.
#include <hone/gemm_task.cuh>

void hone_inputs(const hone::TaskCall* call) { hone::gemm::inputs<hone::bf16>(*call, 4096); }
void hone_oracle(const hone::TaskCall* call) { hone::gemm::oracle<hone::bf16>(*call); }
