#include "judge/host_data.h"

#include <algorithm>

#include "base/clock.h"
#include "base/hash.h"
#include "judge/compare.h"

namespace hone {

Result<> HostData::fill(const InputSet& set, std::uint64_t seed, std::uint32_t call) {
  HONE_CHECK(code_.fill(workload_, set, seed, call, session_.inputs()));
  return commit();
}

Result<> HostData::commit() {
  reference_.reset();
  return session_.commit_inputs();
}

Result<double> HostData::refer() {
  if (reference_) return 0.0;
  const double start = now_s();
  HONE_TRY(Reference reference, code_.oracle(workload_, session_.inputs()));
  for (const TensorShape& shape : workload_.tensors) {
    if (shape.role == TensorRole::input) continue;
    const auto found = reference.find(shape.name);
    if (found == reference.end() || found->second.size() != static_cast<std::size_t>(shape.elements()))
      return fail(ErrorKind::contract, "the oracle gives no complete reference for {} of workload {}", shape.name, workload_.id);
  }
  reference_ = std::move(reference);
  return now_s() - start;
}

Result<Reference> HostData::reference() {
  HONE_CHECK(refer());
  return *reference_;
}

Result<const TensorShape*> HostData::shape_of(const std::string& tensor) const {
  for (const TensorShape& shape : workload_.tensors)
    if (shape.name == tensor) return &shape;
  return fail(ErrorKind::internal, "workload {} has no tensor {}", workload_.id, tensor);
}

Result<std::span<const std::byte>> HostData::output(ProgramId id, const TensorShape& shape) {
  HONE_TRY(const auto bytes, session_.output(id, shape.name));
  if (bytes.size() < shape.bytes())
    return fail(ErrorKind::device, "output {} has {} bytes instead of {}", shape.name, bytes.size(), shape.bytes());
  return bytes;
}

template <class F>
auto HostData::with(const Pairing& pairing, F&& f) -> decltype(f(std::declval<HostPair&>())) {
  HONE_TRY(const TensorShape* shape, shape_of(pairing.tensor));
  std::vector<double> zeros;
  std::optional<Rows> got, expected;
  if (pairing.got) {
    HONE_TRY(const auto bytes, output(*pairing.got, *shape));
    got.emplace(*shape, bytes);
  } else {
    zeros.resize(static_cast<std::size_t>(shape->elements()));
    got.emplace(*shape, std::span<const double>(zeros));
  }
  if (pairing.expected) {
    HONE_TRY(const auto bytes, output(*pairing.expected, *shape));
    expected.emplace(*shape, bytes);
  } else {
    HONE_CHECK(refer());
    expected.emplace(*shape, std::span<const double>(reference_->at(shape->name)));
  }
  HostPair pair(*got, *expected, [&](std::size_t offset) { return session_.is_poison(*pairing.got, shape->name, offset); });
  return f(pair);
}

Result<std::vector<RegionSums>> HostData::sums(const Pairing& pairing, const std::vector<Region>& regions, const SumsRequest& request) {
  return with(pairing, [&](HostPair& pair) { return pair.sums(regions, request); });
}

Result<OddElements> HostData::odd(const Pairing& pairing, const Region& region, const Tolerance& tolerance) {
  return with(pairing, [&](HostPair& pair) { return pair.odd(region, tolerance); });
}

Result<bool> HostData::copies(ProgramId got, const std::string& tensor, const std::string& input) {
  HONE_TRY(const TensorShape* shape, shape_of(tensor));
  HONE_TRY(const auto bytes, output(got, *shape));
  HONE_CHECK(refer());
  const Rows left(*shape, bytes), right(*shape, std::span<const double>(reference_->at(tensor)));
  const auto equal = [columns = static_cast<std::size_t>(left.columns())](const Rows& one, const Rows& other) {
    std::vector<double> a(columns), b(columns);
    for (std::int64_t row = 0; row < one.rows(); ++row) {
      one.read(row, a.data());
      other.read(row, b.data());
      if (a != b) return false;
    }
    return true;
  };
  for (const HostTensor& each : session_.inputs()) {
    if (each.shape.name != input) continue;
    const Rows given(each.shape, std::span<const std::byte>(each.data, each.shape.bytes()));
    return equal(left, given) && !equal(right, given);
  }
  return false;
}

Result<std::string> HostData::output_digest(ProgramId got, const std::string& tensor, const std::vector<Region>& regions) {
  HONE_TRY(const TensorShape* shape, shape_of(tensor));
  HONE_TRY(const auto bytes, output(got, *shape));
  const Rows rows(*shape, bytes);
  const std::size_t size = size_of(shape->dtype);
  std::string valid;
  for (const Region& region : regions)
    for (std::int64_t row = region.begin; row < region.end; ++row)
      for (std::int64_t column = 0; column < rows.columns(); ++column)
        valid.append(reinterpret_cast<const char*>(bytes.data() + rows.offset(row, column)), size);
  return sha256(valid);
}

Result<std::string> HostData::reference_digest(const std::string& tensor) {
  HONE_CHECK(refer());
  const std::vector<double>& values = reference_->at(tensor);
  return sha256(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)));
}

}  // namespace hone
