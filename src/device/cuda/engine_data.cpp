// What is done with data where they lie: DeviceData inside hone-gpu.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "device/cuda/engine.h"

namespace hone::cuda {
namespace {

constexpr unsigned long long kNone = ~0ull;

class Scratch {
 public:
  static Result<Scratch> create(std::size_t bytes) {
    Scratch out;
    HONE_CHECK(check(cu.allocate(&out.at_, std::max<std::size_t>(bytes, 8)), "allocating memory of the GPU"));
    return out;
  }
  Scratch(Scratch&& other) noexcept : at_(std::exchange(other.at_, 0)) {}
  ~Scratch() {
    if (at_ != 0) cu.free(at_);
  }
  template <class T>
  T* as() const { return reinterpret_cast<T*>(at_); }
  CUdeviceptr at() const { return at_; }

 private:
  Scratch() = default;
  CUdeviceptr at_ = 0;
};

template <class T>
Result<T> read_back(CUdeviceptr from) {
  T out;
  HONE_CHECK(check(cu.to_host(&out, from, sizeof out), "reading a result"));
  return out;
}

std::string hex(const std::array<unsigned long long, 4>& sum) { return fmt::format("{:016x}{:016x}{:016x}{:016x}", sum[0], sum[1], sum[2], sum[3]); }

Result<> digest(Context& context, const View& view, std::int64_t begin, std::int64_t end, std::int64_t first, CUdeviceptr into) {
  DigestParams params = {view, begin, end, view.shape[view.rank - 1], first, reinterpret_cast<unsigned long long*>(into)};
  return context.run("hone_digest", (end - begin) * params.columns, params);
}

// Dense row-major binary64 of the tensor's shape.
View dense_view(const TensorShape& tensor, double* data) {
  TensorShape shape = tensor;
  shape.dtype = DType::f64;
  std::int64_t stride = 1;
  for (std::size_t k = shape.shape.size(); k-- > 0;) {
    shape.strides[k] = stride;
    stride *= shape.shape[k];
  }
  return view_of(shape, reinterpret_cast<CUdeviceptr>(data));
}

}  // namespace

std::string Engine::where(const char* entry, const std::string& set) const {
  return fmt::format("{}: {} of workload {}{}", spec_.task_code, entry, spec_.workload.id, set.empty() ? "" : ", input set " + set);
}

std::vector<HostTensor> Engine::input_pointers() const {
  std::vector<HostTensor> out;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] != nullptr) out.push_back({spec_.workload.tensors[i], reinterpret_cast<std::byte*>(inputs_[i]->data())});
  return out;
}

Result<> Engine::run_task(TaskFrame& frame, TaskEntry entry, const char* what, const std::string& set) {
  frame.call().stream = context_.stream;
  HONE_CHECK(show_inputs());
  HONE_CHECK(frame.attach(spec_.workload, input_pointers()));
  HONE_CHECK(frame.run(entry, where(what, set)));
  if (const CUresult code = cu.synchronize(); code != kSuccess)
    return fail(ErrorKind::contract, "{}: {}", where(what, set), name_of_result(code));
  return {};
}

Result<> Engine::upload(std::size_t tensor, const std::byte* from) {
  if (tensor >= inputs_.size() || inputs_[tensor] == nullptr) return fail(ErrorKind::internal, "no such input");
  HONE_CHECK(inputs_[tensor]->memory().show());
  HONE_CHECK(check(cu.to_device(inputs_[tensor]->data(), from, inputs_[tensor]->bytes(), context_.stream), "writing an input"));
  return context_.finish();
}

Result<> Engine::download(std::size_t tensor, std::byte* to) {
  if (tensor >= inputs_.size() || inputs_[tensor] == nullptr) return fail(ErrorKind::internal, "no such input");
  HONE_CHECK(inputs_[tensor]->memory().show());
  return check(cu.to_host(to, inputs_[tensor]->data(), inputs_[tensor]->bytes()), "reading an input");
}

Result<> Engine::commit() {
  referred_ = false;
  return spec_.plain ? context_.finish() : remember_inputs();   // a hash would read what lies between rows
}

Result<> Engine::fill(const InputSet& set, std::uint64_t seed, std::uint32_t call) {
  HONE_CHECK(show_inputs());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr) continue;
    const TensorShape& tensor = spec_.workload.tensors[i];
    const auto found = set.inputs.find(tensor.name);
    if (found == set.inputs.end()) return fail(ErrorKind::internal, "input set {} lacks {}", set.name, tensor.name);
    const View view = view_of(tensor, inputs_[i]->data());
    FillParams params = {};
    params.data = reinterpret_cast<void*>(inputs_[i]->data());
    params.dtype = view.dtype;
    params.rank = view.rank;
    std::copy_n(view.shape, kMaxRank, params.shape);
    std::copy_n(view.strides, kMaxRank, params.strides);
    params.elements = tensor.elements();
    params.kind = static_cast<std::int32_t>(found->second.kind);
    params.low = found->second.low;
    params.high = found->second.high;
    params.seed = seed;
    params.stream = static_cast<std::uint32_t>(i);
    params.call = call;
    HONE_CHECK(context_.run("hone_fill", (params.elements + 3) / 4, params));
  }
  HONE_CHECK(context_.finish());
  if (task_inputs_ != nullptr) {
    TaskFrame frame(spec_.workload, set.name, seed, call);
    HONE_CHECK(run_task(frame, task_inputs_, "hone_inputs", set.name));
  }
  return commit();
}

Result<Regions> Engine::regions() {
  const std::string none;
  TaskFrame frame(spec_.workload, none, 0, 0);
  frame.call().stream = context_.stream;
  HONE_CHECK(show_inputs());
  HONE_CHECK(frame.attach(spec_.workload, input_pointers()));
  return frame.regions(spec_.workload, task_regions_, where("hone_regions", none));
}

Result<double> Engine::refer() {
  if (referred_) return 0.0;
  if (task_oracle_ == nullptr) return fail(ErrorKind::contract, "the session has no task code with hone_oracle");
  const double start = now_s();
  const std::string none;
  TaskFrame frame(spec_.workload, none, 0, 0);
  for (std::size_t i = 0; i < reference_.size(); ++i) {
    const TensorShape& tensor = spec_.workload.tensors[i];
    if (tensor.role == TensorRole::input) continue;
    const std::size_t bytes = static_cast<std::size_t>(tensor.elements()) * sizeof(double);
    if (reference_[i] == nullptr) {
      HONE_TRY(Memory memory, Memory::create(context_, bytes, 1));
      reference_[i] = std::make_unique<Memory>(std::move(memory));
    }
    HONE_CHECK(reference_[i]->show());
    HONE_CHECK(check(cu.memset8(reference_[i]->address(), 0xff, bytes, context_.stream), "clearing the reference"));   // NaN
    frame.tensor(i).reference = reinterpret_cast<double*>(reference_[i]->address());
  }
  HONE_CHECK(context_.finish());
  HONE_CHECK(run_task(frame, task_oracle_, "hone_oracle", none));
  HONE_TRY(const Regions valid, regions());
  // Every valid element has a number; padding becomes zero.
  for (std::size_t i = 0; i < reference_.size(); ++i) {
    const TensorShape& tensor = spec_.workload.tensors[i];
    if (tensor.role == TensorRole::input) continue;
    HONE_CHECK(check(cu.memset8(scratch_, 0xff, 8, context_.stream), "looking at the reference"));
    ReferenceParams params = {reinterpret_cast<double*>(reference_[i]->address()), 0, 0, tensor.shape.back(), 0,
                              reinterpret_cast<unsigned long long*>(scratch_)};
    const auto over = [&](std::int64_t begin, std::int64_t end, bool clear) {
      params.begin = begin;
      params.end = end;
      params.clear = clear ? 1 : 0;
      return context_.run("hone_reference", (end - begin) * params.columns, params);
    };
    std::int64_t padding = 0;
    for (const Region& region : valid.at(tensor.name)) {
      HONE_CHECK(over(padding, region.begin, true));
      HONE_CHECK(over(region.begin, region.end, false));
      padding = region.end;
    }
    HONE_CHECK(over(padding, rows_of(tensor), true));
    HONE_CHECK(context_.finish());
    HONE_TRY(const auto first, read_back<unsigned long long>(scratch_));
    if (first != kNone) {
      const auto at = static_cast<std::int64_t>(first);
      return fail(ErrorKind::contract, "{}: {} row {} column {} was not filled in, or is NaN", where("hone_oracle", none), tensor.name,
                  at / params.columns, at % params.columns);
    }
  }
  referred_ = true;
  return now_s() - start;
}

Result<double*> Engine::reference_of(std::size_t tensor) {
  HONE_CHECK(refer());
  if (reference_[tensor] == nullptr) return fail(ErrorKind::internal, "{} is no output", spec_.workload.tensors[tensor].name);
  HONE_CHECK(reference_[tensor]->show());
  return reinterpret_cast<double*>(reference_[tensor]->address());
}

Result<> Engine::reference(std::size_t tensor, std::size_t begin, std::size_t count, std::byte* to) {
  if (tensor >= reference_.size() || static_cast<std::int64_t>(begin + count) > spec_.workload.tensors[tensor].elements())
    return fail(ErrorKind::internal, "no such part of a reference");
  HONE_TRY(double* data, reference_of(tensor));
  return check(cu.to_host(to, reinterpret_cast<CUdeviceptr>(data + begin), count * sizeof(double)), "reading the reference");
}

Result<Pair> Engine::pair_of(const Pairing& pairing, std::size_t tensor) {
  const TensorShape& shape = spec_.workload.tensors[tensor];
  const auto output = [&](ProgramId id) -> Result<CUdeviceptr> {
    HONE_TRY(Program* program, find(id));
    if (program->tensors[tensor] == nullptr) return fail(ErrorKind::internal, "{} is no output", shape.name);
    HONE_CHECK(program->tensors[tensor]->memory().show());
    return program->tensors[tensor]->data();
  };
  Pair out = {};
  out.columns = shape.shape.back();
  out.dtype = static_cast<std::int32_t>(shape.dtype);
  out.got = view_of(shape, 0);
  if (pairing.got) {
    HONE_TRY(const CUdeviceptr data, output(*pairing.got));
    out.got.data = reinterpret_cast<const void*>(data);
  }
  out.expected = out.got;
  if (pairing.expected) {
    HONE_TRY(const CUdeviceptr data, output(*pairing.expected));
    out.expected.data = reinterpret_cast<const void*>(data);
  } else {
    HONE_TRY(out.reference, reference_of(tensor));
  }
  return out;
}

Result<std::vector<RegionSums>> Engine::sums(const Pairing& pairing, const std::vector<Region>& regions, const SumsRequest& request) {
  HONE_TRY(const std::size_t tensor, tensor_index(pairing.tensor));
  SumsParams params = {};
  HONE_TRY(params.pair, pair_of(pairing, tensor));
  params.pieces = (params.pair.columns + kPiece - 1) / kPiece;
  params.scale = request.scale;
  params.bound_floor = request.bound_floor;
  params.bound_limit = request.bound_limit;
  const std::int64_t rows = rows_of(spec_.workload.tensors[tensor]);
  std::int64_t most = 0;
  for (const Region& region : regions) {
    if (region.begin < 0 || region.begin >= region.end || region.end > rows) return fail(ErrorKind::internal, "region {} has no rows", region.name);
    most = std::max(most, region.end - region.begin);
  }
  HONE_TRY(const Scratch parts, Scratch::create(static_cast<std::size_t>(most * params.pieces) * sizeof(SumsPart)));
  HONE_TRY(const Scratch joined, Scratch::create(static_cast<std::size_t>(most) * sizeof(SumsPart)));
  HONE_TRY(const Scratch out, Scratch::create(regions.size() * sizeof(SumsPart)));
  params.parts = parts.as<SumsPart>();
  for (std::size_t i = 0; i < regions.size(); ++i) {
    params.begin = regions[i].begin;
    params.end = regions[i].end;
    const std::int64_t count = params.end - params.begin;
    HONE_CHECK(context_.run("hone_sums", count * params.pieces * kThreads, params));   // a block an item
    JoinParams join = {params.parts, count, params.pieces, joined.as<SumsPart>()};
    HONE_CHECK(context_.run("hone_join_rows", count, join));
    join = {joined.as<SumsPart>(), count, 1, out.as<SumsPart>() + i};
    HONE_CHECK(context_.run("hone_join_region", 1, join));
  }
  HONE_CHECK(context_.finish());
  std::vector<SumsPart> found(regions.size());
  HONE_CHECK(check(cu.to_host(found.data(), out.at(), found.size() * sizeof(SumsPart)), "reading sums"));
  std::vector<RegionSums> answer;
  for (const SumsPart& each : found)
    answer.push_back({each.error2, each.got2, each.expected2, each.worst_row, each.worst_bound, each.max_error, each.max_expected, each.max_got, each.special});
  return answer;
}

Result<OddElements> Engine::odd(const Pairing& pairing, const Region& region, const Tolerance& tolerance) {
  HONE_TRY(const std::size_t tensor, tensor_index(pairing.tensor));
  const TensorShape& shape = spec_.workload.tensors[tensor];
  OddParams params = {};
  HONE_TRY(params.pair, pair_of(pairing, tensor));
  params.begin = region.begin;
  params.end = region.end;
  if (region.begin < 0 || region.begin >= region.end || region.end > rows_of(shape)) return fail(ErrorKind::internal, "region {} has no rows", region.name);
  params.absolute = tolerance.absolute;
  params.relative = tolerance.relative;
  params.finite_too = tolerance.finite_too ? 1 : 0;
  params.element = static_cast<std::int32_t>(size_of(shape.dtype));
  if (pairing.got && shape.role == TensorRole::output) {
    params.poison = tolerance.poison ? 1 : 0;
    params.pattern = poison(*pairing.got)[tensor];
  }
  OddCounts counts = {};
  counts.first_not_written = counts.first_non_finite = counts.first_wrong = kNone;
  HONE_CHECK(check(cu.to_device(scratch_, &counts, sizeof counts, context_.stream), "comparing"));
  params.counts = reinterpret_cast<OddCounts*>(scratch_);
  HONE_CHECK(context_.run("hone_odd", (params.end - params.begin) * params.pair.columns, params));
  HONE_CHECK(context_.finish());
  HONE_TRY(counts, read_back<OddCounts>(scratch_));

  ElementsParams elements = {};
  elements.pair = params.pair;
  const unsigned long long firsts[4] = {counts.first_not_written, counts.first_non_finite, counts.first_wrong, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto at = static_cast<std::int64_t>(firsts[i] == kNone ? 0 : firsts[i]);
    elements.row[i] = region.begin + at / params.pair.columns;
    elements.column[i] = at % params.pair.columns;
  }
  elements.out = reinterpret_cast<double*>(scratch_);
  HONE_CHECK(context_.run("hone_elements", 4, elements));
  HONE_CHECK(context_.finish());
  HONE_TRY(const auto values, read_back<std::array<double, 8>>(scratch_));

  OddElements out;
  out.not_written = static_cast<std::int64_t>(counts.not_written);
  out.non_finite = static_cast<std::int64_t>(counts.non_finite);
  out.wrong = static_cast<std::int64_t>(counts.wrong);
  out.special = static_cast<std::int64_t>(counts.special);
  std::size_t i = 0;
  for (std::optional<OddElement>* each : {&out.first_not_written, &out.first_non_finite, &out.first_wrong}) {
    if (firsts[i] != kNone) *each = OddElement{elements.row[i], elements.column[i], values[2 * i], values[2 * i + 1]};
    ++i;
  }
  out.constant = counts.varies == 0;
  out.expected_constant = counts.expected_varies == 0;
  out.first_got = values[6];
  out.first_expected = values[7];
  return out;
}

Result<bool> Engine::copies(ProgramId got, const std::string& tensor, const std::string& input) {
  HONE_TRY(const std::size_t output, tensor_index(tensor));
  HONE_TRY(const std::size_t given, tensor_index(input));
  if (inputs_[given] == nullptr) return fail(ErrorKind::internal, "{} is no input", input);
  HONE_CHECK(show_inputs());
  DifferParams params = {};
  HONE_TRY(const Pair pair, pair_of({got, tensor, std::nullopt}, output));
  params.rows = rows_of(spec_.workload.tensors[output]);
  params.differs = reinterpret_cast<std::uint32_t*>(scratch_);
  const auto differ = [&](const Pair& sides) -> Result<bool> {
    params.pair = sides;
    HONE_CHECK(check(cu.memset8(scratch_, 0, 4, context_.stream), "comparing"));
    HONE_CHECK(context_.run("hone_differ", params.rows * params.pair.columns, params));
    HONE_CHECK(context_.finish());
    HONE_TRY(const auto differs, read_back<std::uint32_t>(scratch_));
    return differs != 0;
  };
  Pair sides = pair;
  sides.reference = nullptr;
  sides.expected = view_of(spec_.workload.tensors[given], inputs_[given]->data());
  HONE_TRY(const bool output_differs, differ(sides));
  if (output_differs) return false;
  sides.reference = pair.reference;
  sides.got = sides.expected;
  return differ(sides);
}

Result<std::string> Engine::output_digest(ProgramId got, const std::string& tensor, const std::vector<Region>& regions) {
  HONE_TRY(const std::size_t index, tensor_index(tensor));
  HONE_TRY(Program* program, find(got));
  if (program->tensors[index] == nullptr) return fail(ErrorKind::internal, "{} is no output", tensor);
  HONE_CHECK(program->tensors[index]->memory().show());
  const View view = view_of(spec_.workload.tensors[index], program->tensors[index]->data());
  HONE_CHECK(check(cu.memset8(scratch_, 0, 32, context_.stream), "hashing"));
  std::int64_t first = 0;
  for (const Region& region : regions) {
    HONE_CHECK(digest(context_, view, region.begin, region.end, first, scratch_));
    first += (region.end - region.begin) * view.shape[view.rank - 1];
  }
  HONE_CHECK(context_.finish());
  HONE_TRY(const auto sum, read_back<std::array<unsigned long long, 4>>(scratch_));
  return hex(sum);
}

Result<std::string> Engine::reference_digest(const std::string& tensor) {
  HONE_TRY(const std::size_t index, tensor_index(tensor));
  HONE_TRY(double* data, reference_of(index));
  const TensorShape& shape = spec_.workload.tensors[index];
  HONE_CHECK(check(cu.memset8(scratch_, 0, 32, context_.stream), "hashing"));
  HONE_CHECK(digest(context_, dense_view(shape, data), 0, rows_of(shape), 0, scratch_));
  HONE_CHECK(context_.finish());
  HONE_TRY(const auto sum, read_back<std::array<unsigned long long, 4>>(scratch_));
  return hex(sum);
}

}  // namespace hone::cuda
