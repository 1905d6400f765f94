// When CPU time at the wrong moment becomes a verdict.
//
// A program's CPU clock says that it used more than waking up takes, outside its timed span. It is charged for that in any
// case. A machine with other work, or a virtual core that its host takes away for a while, shows the same of honest
// programs in a part of their calls: seen in 3 of 10. A program that means it does so call after call. So evidence counts
// for less than its absence: the sum rises by one with a suspicious call, falls by two with another, and at sixteen it is the
// program's. Where fewer than two calls of three are suspicious it keeps coming back to nought: three suspicious calls of
// ten make a false verdict once in 7e7 calls (3.09^-16, the root of Lundberg's equation 0.3 x + 0.7 x^-2 = 1).
#ifndef HONE_DEVICE_CPU_SUSPICION_H
#define HONE_DEVICE_CPU_SUSPICION_H

#include <algorithm>

namespace hone::cpu {

class Suspicion {
 public:
  // True when the evidence suffices.
  bool raise() { return ++sum_ >= kVerdict; }
  void lower() { sum_ = std::max(0, sum_ - 2); }

 private:
  static constexpr int kVerdict = 16;
  int sum_ = 0;
};

}  // namespace hone::cpu

#endif
