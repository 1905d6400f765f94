// Element types of tensors: one table for the contract, plans, trusted task code and devices.
#ifndef HONE_DTYPE_H
#define HONE_DTYPE_H

#include <cstddef>
#include <cstdint>

#include <hone/host_device.h>

namespace hone {

// name, bytes an element, C++ type that a CPU kernel declares for it, is a floating type
#define HONE_DTYPES(X)                    \
  X(f64, 8, "double", true)               \
  X(f32, 4, "float", true)                \
  X(f16, 2, "unsigned short", true)       \
  X(bf16, 2, "hone::bf16", true)          \
  X(e4m3, 1, "unsigned char", true)       \
  X(e5m2, 1, "unsigned char", true)       \
  X(ue8m0, 1, "unsigned char", true)      \
  X(i8, 1, "signed char", false)          \
  X(u8, 1, "unsigned char", false)        \
  X(i32, 4, "int", false)                 \
  X(u32, 4, "unsigned int", false)        \
  X(i64, 8, "long", false)

enum class DType : std::int32_t {
#define HONE_DTYPE_ENUM(name, bytes, cpp, floating) name,
  HONE_DTYPES(HONE_DTYPE_ENUM)
#undef HONE_DTYPE_ENUM
};

HONE_HOST_DEVICE constexpr std::size_t size_of(DType type) {
  switch (type) {
#define HONE_DTYPE_SIZE(name, bytes, cpp, floating) \
  case DType::name: return bytes;
    HONE_DTYPES(HONE_DTYPE_SIZE)
#undef HONE_DTYPE_SIZE
  }
  return 0;
}

constexpr const char* name_of(DType type) {
  switch (type) {
#define HONE_DTYPE_NAME(name, bytes, cpp, floating) \
  case DType::name: return #name;
    HONE_DTYPES(HONE_DTYPE_NAME)
#undef HONE_DTYPE_NAME
  }
  return "?";
}

constexpr const char* cpp_type_of(DType type) {
  switch (type) {
#define HONE_DTYPE_CPP(name, bytes, cpp, floating) \
  case DType::name: return cpp;
    HONE_DTYPES(HONE_DTYPE_CPP)
#undef HONE_DTYPE_CPP
  }
  return "?";
}

HONE_HOST_DEVICE constexpr bool is_floating(DType type) {
  switch (type) {
#define HONE_DTYPE_FLOAT(name, bytes, cpp, floating) \
  case DType::name: return floating;
    HONE_DTYPES(HONE_DTYPE_FLOAT)
#undef HONE_DTYPE_FLOAT
  }
  return false;
}

}  // namespace hone

#endif
