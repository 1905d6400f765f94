#include "device/poison.h"

namespace hone {

std::uint64_t poison_pattern(DType dtype, std::uint64_t random) {
  switch (dtype) {
    case DType::f64: return 0x7ff8000000000001u | (random & 0x8007fffffffffffeu);
    case DType::f32: return 0x7fc00001u | (random & 0x803ffffeu);
    case DType::f16: return 0x7e01u | (random & 0x81feu);
    case DType::bf16: return 0x7fc1u | (random & 0x803eu);
    case DType::e4m3: return 0x7fu | (random & 0x80u);
    case DType::e5m2: return 0x7du | (random & 0x82u);
    case DType::ue8m0: return 0xffu;
    case DType::i8:
    case DType::u8: return random & 0xffu;
    case DType::i32:
    case DType::u32: return random & 0xffffffffu;
    case DType::i64: return random;
  }
  return random;
}

}  // namespace hone
