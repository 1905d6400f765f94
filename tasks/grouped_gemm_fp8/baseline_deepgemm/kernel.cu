// DeepGEMM's kernel for this very task, from its own headers; Hone ships none of them (`hone toolchain add deepgemm`).
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>
