// What hone-gpu tells the kernels of helpers.cu: one parameter struct a kernel, the same on both sides.
#ifndef HONE_CUDA_PARAMS_H
#define HONE_CUDA_PARAMS_H

#include <cstdint>

namespace hone::cuda {

inline constexpr int kMaxRank = 8;
inline constexpr int kThreads = 256;
inline constexpr int kJoinThreads = 1024;
inline constexpr std::int64_t kPiece = 8192;      // columns that one block sums up

// Elements of a tensor; strides in elements.
struct View {
  const void* data;
  std::int32_t dtype, rank;
  std::int64_t shape[kMaxRank], strides[kMaxRank];
};

// Which bytes of a buffer its elements cover: runs of `run` bytes, repeated along axes of descending stride, none of which
// reaches into its neighbour. No axis: one run.
struct Geometry {
  std::int64_t run;
  std::int32_t axes;
  std::int64_t count[kMaxRank], stride[kMaxRank]; // bytes
};

struct FillParams {
  void* data;
  std::int32_t dtype, rank;
  std::int64_t shape[kMaxRank], strides[kMaxRank], elements;
  std::int32_t kind;                              // of contract/task.h's Distribution
  double low, high;
  std::uint64_t seed;
  std::uint32_t stream, call;
};

// 8-byte words [begin, end) of a region whose buffer of `bytes` starts at byte `start`. With `fill`, bytes that elements
// cover get the pattern; without, the others become canaries.
struct PatternParams {
  std::uint64_t* region;
  std::int64_t begin, end, start, bytes;
  Geometry geometry;
  std::uint64_t key, pattern;
  std::int32_t element, fill;
};

// Canaries of the same words: what differs, in bytes from the buffer's start, is reported and repaired.
struct Damage {
  std::int64_t first, bytes;                      // first: INT64_MAX when there is none
};
struct GuardParams {
  std::uint64_t* region;
  std::int64_t begin, end, start, bytes;
  Geometry geometry;
  std::uint64_t key;
  Damage* damage;                                 // two: before the buffer, from its start on
};

struct RestoreParams {
  unsigned char* to;
  const unsigned char* from;
  std::int64_t bytes;
  Geometry geometry;
};

// Adds to sum[0..1] a keyed hash of the bytes and their places.
struct HashParams {
  const unsigned char* data;
  std::int64_t bytes;
  std::uint64_t key;
  unsigned long long* sum;
};

// Adds to sum[0..3] hashes of the elements of rows [begin, end) and of their places, counted from `first`.
struct DigestParams {
  View view;
  std::int64_t begin, end, columns, first;
  unsigned long long* sum;
};

struct ScrubParams {
  std::uint64_t* data;
  std::int64_t words;
  std::uint64_t seed;
  unsigned long long* sink;                       // null: write, else read
};

struct BlockParams {
  volatile std::uint32_t* go;                     // host memory
  volatile std::uint32_t* gave_up;
  std::uint64_t limit_ns;
};

// Sides of a comparison: `got` without data is zeros; the expected side is `expected`, or where `reference` is not null
// that, dense, infinite where the output's `dtype` would be.
struct Pair {
  View got, expected;
  const double* reference;
  std::int64_t columns;
  std::int32_t dtype;
};

struct SumsPart {
  double error2, got2, expected2, worst_row, worst_bound, max_error, max_expected, max_got;
  std::int64_t special;
};
struct SumsParams {
  Pair pair;
  std::int64_t begin, end, pieces;                // rows; blocks of kPiece columns
  double scale, bound_floor, bound_limit;
  SumsPart* parts;                                // (end - begin) * pieces
};
struct JoinParams {
  SumsPart* parts;
  std::int64_t rows, pieces;
  SumsPart* out;                                  // join_rows: by row, may be `parts` when pieces is 1; join_region: one
};

struct OddCounts {
  unsigned long long not_written, non_finite, wrong, special;
  unsigned long long first_not_written, first_non_finite, first_wrong;   // (row - begin) * columns + column; ~0: none
  std::uint32_t varies, expected_varies;
};
struct OddParams {
  Pair pair;
  std::int64_t begin, end;
  double absolute, relative;
  std::int32_t finite_too, poison, element;
  std::uint64_t pattern;
  OddCounts* counts;
};

// got and expected of single elements.
struct ElementsParams {
  Pair pair;
  std::int64_t row[4], column[4];
  double* out;                                    // 4 pairs
};

// Sets *differs when an element does.
struct DifferParams {
  Pair pair;
  std::int64_t rows;
  std::uint32_t* differs;
};

// Rows [begin, end) of a dense reference: valid, the place of the first NaN goes to *first_nan by minimum; or cleared.
struct ReferenceParams {
  double* data;
  std::int64_t begin, end, columns;
  std::int32_t clear;
  unsigned long long* first_nan;
};

}  // namespace hone::cuda

#endif
