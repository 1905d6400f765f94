#include <hone/plan.h>

#include <cstdlib>
#include <cstring>

void plan(const hone::Problem&, hone::Plan&) {
  for (;;) std::memset(std::malloc(64 << 20), 1, 64 << 20);
}
