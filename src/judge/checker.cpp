#include "judge/checker.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hone {
namespace {

// Guard bytes in the contract's terms: past which row's end, or outside the buffer.
std::string guard_text(const GuardDamage& damage, const Workload& workload) {
  std::string text = fmt::format("{}: {} guard bytes overwritten, first at byte {}", damage.buffer, damage.bytes, damage.first_byte);
  if (damage.first_byte < 0) return text + " (before its start)";
  for (const TensorShape& shape : workload.tensors) {
    if (shape.name != damage.buffer) continue;
    const auto size = static_cast<std::int64_t>(size_of(shape.dtype));
    const std::int64_t element = damage.first_byte / size;
    text += fmt::format(" = element {}", element);
    if (shape.shape.size() < 2 || element >= shape.span_elements()) return text + " (past its end)";
    const std::int64_t pitch = shape.strides[shape.strides.size() - 2];
    if (pitch > 0) text += fmt::format(" (between rows: row {}, offset {}; a row has {} elements, the pitch is {})",
                                       element / pitch, element % pitch, shape.shape.back(), pitch);
  }
  return text;
}

// Where the device keeps them.
class OnDevice final : public Pair {
 public:
  OnDevice(DeviceData& data, const Pairing& pairing) : data_(data), pairing_(pairing) {}
  Result<std::vector<RegionSums>> sums(const std::vector<Region>& regions, const SumsRequest& request) override {
    return data_.sums(pairing_, regions, request);
  }
  Result<OddElements> odd(const Region& region, const Tolerance& tolerance) override { return data_.odd(pairing_, region, tolerance); }

 private:
  DeviceData& data_;
  const Pairing& pairing_;
};

}  // namespace

std::vector<Region> valid(const Regions& regions, const TensorShape& shape) {
  const auto found = regions.find(shape.name);
  return found == regions.end() ? std::vector<Region>{} : found->second;
}

Verdict verdict_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::wrong_result:
    case ErrorKind::non_finite:
    case ErrorKind::not_written:
    case ErrorKind::out_of_bounds:
    case ErrorKind::input_modified:
    case ErrorKind::late_work: return Verdict::fail;
    default: return Verdict::error;
  }
}

const std::vector<const TensorShape*>& Checker::results() {
  if (results_.empty())
    for (const TensorShape& shape : workload_.tensors)
      if (shape.role != TensorRole::input) results_.push_back(&shape);
  return results_;
}

const Gate* Checker::gate_of(const std::string& tensor) const {
  const auto found = task_.gates.find(tensor);
  return found == task_.gates.end() ? nullptr : &found->second;
}

Result<> Checker::fill(const DataSet& data) {
  data_ = data;
  regions_.reset();
  return device_data_.fill(*data.set, data.seed, data.call);
}

Result<> Checker::refer() {
  HONE_TRY(const double seconds, device_data_.refer());
  if (seconds > 0) oracle_s_ = seconds;
  return {};
}

Result<const Regions*> Checker::regions() {
  if (!regions_) {
    HONE_TRY(Regions regions, device_data_.regions());
    for (const TensorShape* shape : results()) {
      const std::int64_t rows = Rows(*shape, std::span<const double>{}).rows();
      for (const Region& region : regions[shape->name])
        if (region.begin < 0 || region.end > rows || region.begin > region.end)
          return fail(ErrorKind::contract, "task {}: region {} of {} is [{}, {}), but there are {} rows", task_.name,
                      region.name, shape->name, region.begin, region.end, rows);
    }
    regions_ = std::move(regions);
  }
  return &*regions_;
}

std::optional<Refusal> Checker::fault_of(const CallResult& call) const {
  if (!call.fault) return std::nullopt;
  Refusal refusal{verdict_of(call.fault->kind), *call.fault};
  refusal.error.notes.push_back("on " + data_.text);
  return refusal;
}

Result<Comparison> Checker::compare_on_device(const Gate& gate, const TensorShape& shape, const Pairing& pairing, bool poison) {
  HONE_TRY(const Regions* regions, this->regions());
  OnDevice pair(device_data_, pairing);
  return compare(gate, shape, valid(*regions, shape), pair, poison);
}

Result<std::optional<Error>> Checker::equal_to_an_input(ProgramId id, const TensorShape& shape) {
  for (const TensorShape& input : workload_.tensors) {
    if (input.role != TensorRole::input || input.shape != shape.shape) continue;
    HONE_TRY(const bool copied, device_data_.copies(id, shape.name, input.name));
    if (copied) return make_error(ErrorKind::wrong_result, "{}: a trivial output: it equals the input {}", shape.name, input.name);
  }
  return std::optional<Error>{};
}

Result<std::optional<Refusal>> Checker::check(ProgramId id, const CallResult& call) {
  if (auto refusal = fault_of(call)) return refusal;
  HONE_CHECK(refer());
  std::optional<Error> refused;
  const auto refuse = [&](Error error) {
    if (refused) refused->notes.push_back(std::move(error.message));
    else refused = std::move(error);
  };

  HONE_TRY(const std::vector<GuardDamage> damage, session_.guards(id));
  if (!damage.empty()) {
    Error error = make_error(ErrorKind::out_of_bounds, "{}", guard_text(damage.front(), workload_));
    for (std::size_t i = 1; i < std::min<std::size_t>(damage.size(), 8); ++i) error.notes.push_back(guard_text(damage[i], workload_));
    refuse(std::move(error));
  }
  HONE_TRY(const bool intact, session_.inputs_intact());
  if (!intact) refuse(make_error(ErrorKind::input_modified, "an input has other bytes after the call than before it"));

  for (const TensorShape* shape : results()) {
    const Gate* gate = gate_of(shape->name);
    if (gate == nullptr) continue;
    HONE_TRY(const Comparison comparison, compare_on_device(*gate, *shape, {.got = id, .tensor = shape->name}, shape->role == TensorRole::output));
    if (!(comparison.value * worst_limit_ <= worst_value_ * comparison.limit) || worst_limit_ == 0) {
      worst_value_ = comparison.value;
      worst_limit_ = comparison.limit;
    }
    std::optional<Error> error = comparison.error();
    if (shape->role == TensorRole::output && !comparison.not_written) {
      HONE_TRY(auto trivial, equal_to_an_input(id, *shape));
      if (!trivial && comparison.constant && !comparison.reference_constant && comparison.elements > 1)
        trivial = make_error(ErrorKind::wrong_result, "{}: a trivial output: all {} valid elements are equal, the reference's are not",
                             shape->name, comparison.elements);
      if (trivial && error) error->notes.push_back(trivial->message);
      else if (trivial) error = std::move(trivial);
    }
    if (!error) continue;
    if (damage.empty()) {
      refuse(std::move(*error));
    } else {
      // Both facts in one line: what was stored past the rows is missing inside them.
      refused->message += "; and " + error->message;
      for (auto& note : error->notes) refused->notes.push_back(std::move(note));
    }
  }
  if (!refused) return std::optional<Refusal>{};
  refused->notes.push_back("on " + data_.text);
  return Refusal{verdict_of(refused->kind), std::move(*refused)};
}

Result<std::optional<Refusal>> Checker::check_between(ProgramId id, ProgramId baseline) {
  for (const TensorShape* shape : results()) {
    const Gate* gate = gate_of(shape->name);
    if (gate == nullptr) continue;
    HONE_TRY(const Comparison comparison, compare_on_device(between_outputs(*gate), *shape, {id, shape->name, baseline}, false));
    if (!comparison.passed()) {
      auto error = comparison.error();
      error->notes.push_back("on " + data_.text);
      return Refusal{Verdict::fail, std::move(*error)};
    }
  }
  return std::optional<Refusal>{};
}

Result<std::vector<Comparison>> Checker::compare_zeros() {
  HONE_CHECK(refer());
  std::vector<Comparison> out;
  for (const TensorShape* shape : results()) {
    const Gate* gate = gate_of(shape->name);
    if (gate == nullptr) continue;
    HONE_TRY(Comparison comparison, compare_on_device(*gate, *shape, {.tensor = shape->name}, false));
    out.push_back(std::move(comparison));
  }
  return out;
}

Result<std::string> Checker::output_digest(ProgramId id) {
  HONE_TRY(const Regions* regions, this->regions());
  std::string out;
  for (const TensorShape* shape : results()) {
    std::vector<Region> own = valid(*regions, *shape);
    if (own.empty()) own = {{"all", 0, Rows(*shape, std::span<const double>{}).rows()}};
    HONE_TRY(const std::string digest, device_data_.output_digest(id, shape->name, own));
    out += digest;
  }
  return out;
}

Result<std::string> Checker::reference_digest() {
  HONE_CHECK(refer());
  std::string out;
  for (const TensorShape* shape : results()) {
    HONE_TRY(const std::string digest, device_data_.reference_digest(shape->name));
    out += digest;
  }
  return out;
}

}  // namespace hone
