#include <hone/plan.h>

void plan(const hone::Problem&, hone::Plan&) { *reinterpret_cast<volatile int*>(8) = 1; }
