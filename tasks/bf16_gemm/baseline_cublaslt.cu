#include <hone/cublaslt.cuh>

HONE_CUBLASLT_BASELINE(hone::bf16, CUDA_R_16BF)
