// Elements of any dtype as float64, and back: exact widening, round-to-nearest-even narrowing.
#ifndef HONE_CONTRACT_NUMERIC_H
#define HONE_CONTRACT_NUMERIC_H

#include <cstddef>

#include "hone/dtype.h"

namespace hone {

double load_element(DType dtype, const std::byte* at);
void store_element(DType dtype, double value, std::byte* at);

}  // namespace hone

#endif
