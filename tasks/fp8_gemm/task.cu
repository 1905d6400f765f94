// FP8 GEMM: quantised inputs, hard inputs, float64 oracle.
#include <hone/fp8_task.cuh>

using Task = hone::fp8::DenseTask<hone::fp8::FloatScales>;

void hone_inputs(const hone::TaskCall* call) { Task::inputs(*call); }
void hone_oracle(const hone::TaskCall* call) { Task::oracle(*call); }
