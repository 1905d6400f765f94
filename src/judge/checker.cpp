#include "judge/checker.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"

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
  reference_.reset();
  regions_.reset();
  HONE_CHECK(code_.fill(workload_, *data.set, data.seed, data.call, session_.inputs()));
  return session_.commit_inputs();
}

Result<const Reference*> Checker::reference() {
  if (!reference_) {
    const double start = now_s();
    HONE_TRY(Reference reference, code_.oracle(workload_, session_.inputs()));
    for (const TensorShape* shape : results()) {
      const auto found = reference.find(shape->name);
      if (found == reference.end() || found->second.size() != static_cast<std::size_t>(shape->elements()))
        return fail(ErrorKind::contract, "task {}: the oracle gives no complete reference for {}", task_.name, shape->name);
    }
    reference_ = std::move(reference);
    oracle_s_ = now_s() - start;
  }
  return &*reference_;
}

Result<const Regions*> Checker::regions() {
  if (!regions_) {
    HONE_TRY(Regions regions, code_.regions(workload_, session_.inputs()));
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

Result<std::optional<Error>> Checker::equal_to_an_input(ProgramId id, const TensorShape& shape, const Rows& reference) {
  HONE_TRY(const auto bytes, session_.output(id, shape.name));
  const Rows got(shape, bytes);
  const auto equal = [columns = static_cast<std::size_t>(got.columns())](const Rows& left, const Rows& right) {
    std::vector<double> a(columns), b(columns);
    for (std::int64_t row = 0; row < left.rows(); ++row) {
      left.read(row, a.data());
      right.read(row, b.data());
      if (a != b) return false;
    }
    return true;
  };
  for (const HostTensor& input : session_.inputs()) {
    if (input.shape.role != TensorRole::input || input.shape.shape != shape.shape) continue;
    const Rows given(input.shape, std::span<const std::byte>(input.data, input.shape.bytes()));
    if (equal(got, given) && !equal(reference, given))
      return make_error(ErrorKind::wrong_result, "{}: a trivial output: it equals the input {}", shape.name, input.shape.name);
  }
  return std::optional<Error>{};
}

Result<std::optional<Refusal>> Checker::check(ProgramId id, const CallResult& call) {
  if (auto refusal = fault_of(call)) return refusal;
  HONE_TRY(const Reference* reference, this->reference());
  HONE_TRY(const Regions* regions, this->regions());
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
    HONE_TRY(const auto bytes, session_.output(id, shape->name));
    if (bytes.size() < shape->bytes()) return fail(ErrorKind::device, "output {} has {} bytes instead of {}", shape->name, bytes.size(), shape->bytes());
    PoisonTest poison;
    if (shape->role == TensorRole::output)
      poison = [&, name = shape->name](std::size_t offset) { return session_.is_poison(id, name, offset); };
    const Rows right(*shape, reference->at(shape->name));
    const Comparison comparison = compare(*gate, *shape, valid(*regions, *shape), Rows(*shape, bytes), right, poison);
    if (!(comparison.value * worst_limit_ <= worst_value_ * comparison.limit) || worst_limit_ == 0) {
      worst_value_ = comparison.value;
      worst_limit_ = comparison.limit;
    }
    std::optional<Error> error = comparison.error();
    if (shape->role == TensorRole::output && !comparison.not_written) {
      HONE_TRY(auto trivial, equal_to_an_input(id, *shape, right));
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
  HONE_TRY(const Regions* regions, this->regions());
  for (const TensorShape* shape : results()) {
    const Gate* gate = gate_of(shape->name);
    if (gate == nullptr) continue;
    HONE_TRY(const auto got, session_.output(id, shape->name));
    HONE_TRY(const auto expected, session_.output(baseline, shape->name));
    if (got.size() < shape->bytes() || expected.size() < shape->bytes())
      return fail(ErrorKind::device, "output {} is shorter than its {} bytes", shape->name, shape->bytes());
    const Comparison comparison =
        compare(between_outputs(*gate), *shape, valid(*regions, *shape), Rows(*shape, got), Rows(*shape, expected));
    if (!comparison.passed()) {
      auto error = comparison.error();
      error->notes.push_back("on " + data_.text);
      return Refusal{Verdict::fail, std::move(*error)};
    }
  }
  return std::optional<Refusal>{};
}

Result<std::vector<Comparison>> Checker::compare_zeros() {
  HONE_TRY(const Reference* reference, this->reference());
  HONE_TRY(const Regions* regions, this->regions());
  std::vector<Comparison> out;
  for (const TensorShape* shape : results()) {
    const Gate* gate = gate_of(shape->name);
    if (gate == nullptr) continue;
    const std::vector<double> zeros(static_cast<std::size_t>(shape->elements()));
    out.push_back(compare(*gate, *shape, valid(*regions, *shape), Rows(*shape, zeros), Rows(*shape, reference->at(shape->name))));
  }
  return out;
}

Result<std::string> Checker::valid_bytes(ProgramId id) {
  HONE_TRY(const Regions* regions, this->regions());
  std::string out;
  for (const TensorShape* shape : results()) {
    HONE_TRY(const auto bytes, session_.output(id, shape->name));
    const Rows rows(*shape, bytes);
    std::vector<Region> own = valid(*regions, *shape);
    if (own.empty()) own = {{"all", 0, rows.rows()}};
    const std::size_t size = size_of(shape->dtype);
    for (const Region& region : own)
      for (std::int64_t row = region.begin; row < region.end; ++row)
        for (std::int64_t column = 0; column < rows.columns(); ++column)
          out.append(reinterpret_cast<const char*>(bytes.data() + rows.offset(row, column)), size);
  }
  return out;
}

}  // namespace hone
