// A device without hardware for unit tests: programs are scripted functions, time is arithmetic.
//
// Scripts are found by the program's name (Executable::name, NativeBaseline::name). Noise comes from
// a seeded generator and the device's clock moves only with calls, so that a test of budgets, stopping
// and decisions gives the same answer on every machine.
#ifndef HONE_TESTS_JUDGE_FAKE_DEVICE_H
#define HONE_TESTS_JUDGE_FAKE_DEVICE_H

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "device/device.h"

namespace hone::testing {

// What a scripted program sees of one call.
struct FakeCall {
  const Workload* workload = nullptr;
  const std::vector<HostTensor>* inputs = nullptr;           // inputs as committed
  std::map<std::string, std::vector<std::byte>>* own = nullptr;   // this program's outputs and persistent tensors
  std::uint64_t number = 1;                                  // calls since this program was loaded
  bool timed = false;
  double seconds = 0;                                        // drawn from the noise model; may be changed
  double extra_cpu_s = 0;
  std::optional<Error> fault;

  template <class T> const T* in(const std::string& name) const {
    for (const HostTensor& tensor : *inputs)
      if (tensor.shape.name == name) return reinterpret_cast<const T*>(tensor.data);
    return nullptr;
  }
  template <class T> T* out(const std::string& name) const { return reinterpret_cast<T*>(own->at(name).data()); }
};

// seconds * exp(process + jitter * normal), and with probability `tail` more on top of it: an
// exponentially distributed delay of mean `tail_scale` times `seconds`.
struct FakeTime {
  double seconds = 1e-3;
  double jitter = 0;             // standard deviation of log(time) from call to call
  double process_sigma = 0;      // the same from one load to the next
  double tail = 0, tail_scale = 0;
};

struct FakeProgram {
  FakeTime time;
  std::function<void(FakeCall&)> run;       // none: outputs stay as poisoned
  std::vector<GuardDamage> damage;          // what guards() reports
  bool modifies_inputs = false;             // what inputs_intact() reports after a call
  std::string describe;
  std::optional<Error> load_error;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(std::uint64_t seed = 1);

  // Each distinct name that is loaded must have been scripted, else load fails with kind device.
  void script(const std::string& name, FakeProgram program) { programs_[name] = std::move(program); }
  DeviceInfo& change_info() { return info_; }
  double clock() const { return clock_; }             // seconds that all calls took so far
  void advance(double seconds) { clock_ += seconds; }
  // Wall time of a call beside its launches (cache flush, poisoning); default 1 ms.
  void set_call_overhead(double seconds) { overhead_ = seconds; }
  // What each session sees, in the order they are opened; the last one for all that follow.
  void set_conditions(std::vector<nlohmann::json> conditions) { conditions_ = std::move(conditions); }

  // By how much of ln(time) the program that is loaded first is slower.
  void set_first_load_penalty(double penalty) { first_load_ = penalty; }

  struct Event {
    std::string what;                                 // open, load, unload, call, timed
    std::string program;
  };
  const std::vector<Event>& events() const { return events_; }
  std::size_t count(const std::string& what, const std::string& program = {}) const;

  const DeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<Session>> open(const SessionSpec& spec) override;

 private:
  friend class FakeSession;
  DeviceInfo info_;
  std::map<std::string, FakeProgram> programs_;
  std::vector<Event> events_;
  std::mt19937_64 noise_;
  double clock_ = 0, overhead_ = 1e-3, first_load_ = 0;
  std::vector<nlohmann::json> conditions_;
};

}  // namespace hone::testing

#endif
