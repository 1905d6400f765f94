// What outputs hold before a call.
#ifndef HONE_DEVICE_POISON_H
#define HONE_DEVICE_POISON_H

#include <cstdint>

#include "hone/dtype.h"

namespace hone {

// An element pattern (the low bytes) that is NaN in the dtype where it has one, secret by `random`.
std::uint64_t poison_pattern(DType dtype, std::uint64_t random);

}  // namespace hone

#endif
