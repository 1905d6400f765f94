// What is right for one workload's data: holds a program's last call against the oracle's answer, or against another
// program's call on the same data, by the gates of the contract.
#ifndef HONE_JUDGE_CHECKER_H
#define HONE_JUDGE_CHECKER_H

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/task.h"
#include "device/data.h"
#include "device/device.h"
#include "judge/compare.h"
#include "judge/report.h"

namespace hone {

struct DataSet {
  const InputSet* set = nullptr;
  std::uint64_t seed = 0;
  std::uint32_t call = 0;
  std::string text;                  // for messages: "input set random, seed 1 of 2"
};

// Why a workload does not pass.
struct Refusal {
  Verdict verdict = Verdict::fail;
  Error error;
};

// FAIL for what a program did wrong, ERROR when it could not be run to its end.
Verdict verdict_of(ErrorKind kind);

// The regions of one tensor; none: all of it.
std::vector<Region> valid(const Regions& regions, const TensorShape& shape);

class Checker {
 public:
  Checker(const Task& task, const Workload& workload, DeviceData& data, Session& session)
      : task_(task), workload_(workload), device_data_(data), session_(session) {}

  // Makes this data what programs see from the next call on.
  Result<> fill(const DataSet& data);
  const DataSet& data() const { return data_; }

  // Everything about the program's last call: its fault, every output and persistent tensor against
  // the oracle, guards, inputs. Empty: all is well. A Result error is not the program's fault.
  Result<std::optional<Refusal>> check(ProgramId id, const CallResult& call);
  // Off the clock, after a timed round: against the baseline's outputs on the same data.
  Result<std::optional<Refusal>> check_between(ProgramId id, ProgramId baseline);
  // The fault alone, as a refusal.
  std::optional<Refusal> fault_of(const CallResult& call) const;

  // What an output that is zero everywhere scores on this data: it must be refused.
  Result<std::vector<Comparison>> compare_zeros();
  Result<const Regions*> regions();

  // Of the valid rows of all outputs after the last call, and of the oracle's answer: do they follow the input?
  Result<std::string> output_digest(ProgramId id);
  Result<std::string> reference_digest();

  double worst_value() const { return worst_value_; }   // of checked candidates, nearest to or beyond its limit
  double worst_limit() const { return worst_limit_; }
  void forget_worst() { worst_value_ = worst_limit_ = 0; }
  double oracle_s() const { return oracle_s_; }          // of the last oracle call
  const std::vector<const TensorShape*>& results();      // outputs and persistent tensors

 private:
  const Gate* gate_of(const std::string& tensor) const;
  Result<Comparison> compare_on_device(const Gate& gate, const TensorShape& shape, const Pairing& pairing, bool poison);
  // A trivial output, unless the reference itself is that input.
  Result<std::optional<Error>> equal_to_an_input(ProgramId id, const TensorShape& shape);
  Result<> refer();

  const Task& task_;
  const Workload& workload_;
  DeviceData& device_data_;
  Session& session_;
  DataSet data_;
  std::optional<Regions> regions_;
  std::vector<const TensorShape*> results_;
  double worst_value_ = 0, worst_limit_ = 0, oracle_s_ = 0;
};

}  // namespace hone

#endif
