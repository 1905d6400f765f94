#include <hone/cublaslt.cuh>

HONE_CUBLASLT_BASELINE(__half, CUDA_R_16F)
