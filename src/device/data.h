// What the judge does with data where a device keeps it, besides calling programs: fills inputs, has the task's
// oracle answer, forms sums and counts over outputs. Gates, tolerances and verdicts are the judge's; what stands here
// is what must be computed beside the data, since it is too large to be carried elsewhere.
#ifndef HONE_DEVICE_DATA_H
#define HONE_DEVICE_DATA_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/task.h"

namespace hone {

using ProgramId = std::size_t;

// What a program's output is held against: the oracle's answer, or another program's output on the same data.
// Of no program: zeros, as if a program had written nothing else.
struct Pairing {
  std::optional<ProgramId> got = {};
  std::string tensor = {};
  std::optional<ProgramId> expected = {};    // none: the oracle
};

// x: got, y: expected, both divided by `scale` so that squares neither overflow nor vanish; d = x - y. Elements where
// either side is not finite are counted in `special` and in no sum. An expected value that the tensor's dtype rounds
// to infinity is infinite.
struct RegionSums {
  double error2 = 0, got2 = 0, expected2 = 0;                     // sums of d^2, x^2, y^2
  double worst_row = 0;                                           // largest sqrt(sum d^2 / sum y^2) of a row
  double worst_bound = 0;                                         // largest |d * scale| / (floor + limit * |y * scale|)
  double max_error = 0, max_expected = 0, max_got = 0;            // of |d|, |y|, |x|
  std::int64_t special = 0;
};
struct SumsRequest {
  double scale = 1;
  double bound_floor = 0, bound_limit = 0;                        // both 0: worst_bound is not formed
};

// An element is odd when |x - y| > max(2^-6 |y|, absolute + relative |y|), or when one side is not finite and the
// other is not the same (NaN for NaN, infinity of the same sign).
struct Tolerance {
  double absolute = 0, relative = 0;
  bool finite_too = true;                                         // false: only elements that are not finite are held
  bool poison = false;                                            // odd elements that hold the poison are told apart
};
struct OddElement {
  std::int64_t row = 0, column = 0;                               // of the tensor; leading dimensions flattened
  double got = 0, expected = 0;
};
struct OddElements {
  std::int64_t not_written = 0, non_finite = 0, wrong = 0;        // poison; not finite where y is; any other
  std::int64_t special = 0;                                       // of `wrong`: one side is not finite
  std::optional<OddElement> first_not_written, first_non_finite, first_wrong;   // in row-major order
  bool constant = true, expected_constant = true;                 // all elements equal the region's first
  double first_got = 0, first_expected = 0;                       // the region's first element
};

class DeviceData {
 public:
  virtual ~DeviceData() = default;

  // Fills every input and persistent tensor: the set's distributions, then the task's hone_inputs. It is what programs
  // see from the next call on.
  virtual Result<> fill(const InputSet& set, std::uint64_t seed, std::uint32_t call) = 0;
  // Makes what was changed through Session::inputs() what programs see; the oracle answers anew.
  virtual Result<> commit() = 0;
  virtual Result<Regions> regions() = 0;
  // Has the oracle answer for the data of the last fill, unless it has. Seconds that it took this time.
  virtual Result<double> refer() = 0;

  // The oracle's whole answer, for mutants of it.
  virtual Result<Reference> reference() = 0;

  // By region, none of them empty. The oracle is asked if the pairing needs it.
  virtual Result<std::vector<RegionSums>> sums(const Pairing& pairing, const std::vector<Region>& regions,
                                               const SumsRequest& request) = 0;
  virtual Result<OddElements> odd(const Pairing& pairing, const Region& region, const Tolerance& tolerance) = 0;
  // Whether the program's output equals this input everywhere while the oracle's answer does not. Equal shapes.
  virtual Result<bool> copies(ProgramId got, const std::string& tensor, const std::string& input) = 0;
  // Of the bytes of these regions' elements of one output after the last call; of the oracle's answer there (float64).
  virtual Result<std::string> output_digest(ProgramId got, const std::string& tensor, const std::vector<Region>& regions) = 0;
  virtual Result<std::string> reference_digest(const std::string& tensor) = 0;
};

}  // namespace hone

#endif
