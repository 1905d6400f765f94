#include "device/cuda/session.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "device/cuda/encode.h"

namespace hone::cuda {
namespace {

using nlohmann::json;

constexpr double kOpenTimeout = 120, kDataTimeout = 600, kCallExtra = 60, kLoadExtra = 10;

Error from_answer(const json& answer) {
  Error error;
  from_json(answer.at("error"), error);
  return error;
}

}  // namespace

Result<std::unique_ptr<Session>> CudaSession::open(const Setup& setup, const SessionSpec& spec) {
  std::unique_ptr<CudaSession> session(new CudaSession(setup, spec));
  HONE_CHECK(session->set_up());
  return std::unique_ptr<Session>(std::move(session));
}

CudaSession::~CudaSession() {
  end();
  if (transfer_ != nullptr) ::munmap(transfer_, transfer_bytes_);
  if (transfer_fd_ >= 0) ::close(transfer_fd_);
}

Result<> CudaSession::set_up() {
  for (const TensorShape& tensor : spec_.workload.tensors) {
    if (tensor.shape.size() != tensor.strides.size() || tensor.bytes() == 0)
      return fail(ErrorKind::contract, "workload {}: tensor {} is empty", spec_.workload.id, tensor.name);
    staged_.emplace_back();
    transfer_bytes_ = std::max(transfer_bytes_, tensor.bytes());
  }
  transfer_fd_ = ::memfd_create("hone-transfer", MFD_CLOEXEC);
  void* at = MAP_FAILED;
  if (transfer_fd_ >= 0 && ::ftruncate(transfer_fd_, static_cast<off_t>(transfer_bytes_)) == 0)
    at = ::mmap(nullptr, transfer_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, transfer_fd_, 0);
  if (at == MAP_FAILED) return fail(ErrorKind::environment, "no shared memory for a GPU's data: {}", std::strerror(errno));
  transfer_ = static_cast<std::byte*>(at);
  return start();
}

void CudaSession::end() {
  process_.reset();
  for (const auto& each : programs_)
    if (each != nullptr) each->called = false;
}

Result<> CudaSession::start() {
  HONE_TRY(process_, GpuProcess::start(setup_.libexec, transfer_fd_));
  HONE_CHECK(ask_running(open_request(setup_, spec_), kOpenTimeout));
  if (filled_) HONE_CHECK(ask_running(*filled_, kDataTimeout));
  else if (!committed_.empty()) HONE_CHECK(upload_committed());
  for (const auto& each : programs_) {
    if (each == nullptr || each->fault) continue;
    const auto loaded = ask_running(each->load, spec_.load_timeout_s + kLoadExtra, each.get());
    if (!loaded && process_ == nullptr) return fail(loaded.error());
    if (!loaded) each->fault = loaded.error();
  }
  return {};
}

// A program that costs the process while everything is started anew is out for good, so this ends.
Result<json> CudaSession::ask(const json& request, double timeout_s, Loaded* culprit) {
  for (std::size_t tries = 0; process_ == nullptr; ++tries) {
    if (auto started = start(); !started && (process_ != nullptr || tries > programs_.size())) {
      end();
      return fail(std::move(started).error());
    }
  }
  return ask_running(request, timeout_s, culprit);
}

Result<json> CudaSession::ask_running(const json& request, double timeout_s, Loaded* culprit) {
  const auto verb = request.at("do").get<std::string>();
  const double begin = now_s();
  const auto answer = process_->ask(request, timeout_s);
  seconds_[verb] += now_s() - begin;
  if (!answer) {
    end();
    Error error = make_error(culprit != nullptr ? ErrorKind::crash : ErrorKind::device, "the GPU's process ended, or did not answer, at `{}`{}", verb,
                             culprit != nullptr ? " of " + culprit->name : "");
    if (culprit != nullptr) culprit->fault = error;
    return fail(std::move(error));
  }
  if (answer->contains("dead")) end();
  if (answer->contains("error")) {
    Error error = from_answer(*answer);
    if (process_ == nullptr && culprit != nullptr) culprit->fault = error;
    return fail(std::move(error));
  }
  return answer->at("ok");
}

Result<CudaSession::Loaded*> CudaSession::find(ProgramId id) {
  if (id >= programs_.size() || programs_[id] == nullptr) return fail(ErrorKind::internal, "the device has no program {} loaded", id);
  return programs_[id].get();
}

Result<ProgramId> CudaSession::load_as(std::string name, json request) {
  const ProgramId id = programs_.size();
  auto loaded = std::make_unique<Loaded>();
  loaded->name = std::move(name);
  request["id"] = id;
  request["name"] = loaded->name;
  HONE_TRY(const json answer, ask(request, spec_.load_timeout_s + kLoadExtra, loaded.get()));
  if (answer.is_string()) answer.get_to(loaded->description);
  loaded->load = std::move(request);
  programs_.push_back(std::move(loaded));
  return id;
}

Result<ProgramId> CudaSession::load(const Executable& program) {
  return load_as(program.name, load_request(program));
}

Result<ProgramId> CudaSession::load(const NativeBaseline& baseline) {
  return load_as(baseline.name, {{"do", "load_native"}, {"path", baseline.path.string()}});
}

void CudaSession::unload(ProgramId id) {
  if (!find(id)) return;
  programs_[id].reset();
  if (process_ != nullptr) ask_running({{"do", "unload"}, {"id", id}}, kDataTimeout);
}

std::vector<HostTensor> CudaSession::inputs() {
  std::vector<HostTensor> out;
  for (std::size_t i = 0; i < staged_.size(); ++i) {
    const TensorShape& tensor = spec_.workload.tensors[i];
    if (tensor.role == TensorRole::output) continue;
    if (staged_[i].empty()) staged_[i].resize(tensor.bytes());
    if (!staged_fresh_ && filled_ && ask({{"do", "download"}, {"tensor", i}}, kDataTimeout)) std::memcpy(staged_[i].data(), transfer_, tensor.bytes());
    out.push_back({tensor, staged_[i].data()});
  }
  staged_fresh_ = true;
  return out;
}

Result<> CudaSession::upload_committed() {
  for (std::size_t i = 0; i < committed_.size(); ++i) {
    if (committed_[i].empty()) continue;
    std::memcpy(transfer_, committed_[i].data(), committed_[i].size());
    HONE_CHECK(ask_running({{"do", "upload"}, {"tensor", i}}, kDataTimeout));
  }
  HONE_CHECK(ask_running({{"do", "commit"}}, kDataTimeout));
  return {};
}

Result<> CudaSession::commit_inputs() {
  inputs();                                           // tensors that nobody has looked at are zeros, or what was filled
  committed_ = staged_;
  filled_.reset();
  if (process_ == nullptr) return start();
  return upload_committed();
}

Result<bool> CudaSession::inputs_intact() {
  // A process that is gone took the changed input with it; the next one has the right one.
  if (process_ == nullptr) return true;
  HONE_TRY(const json answer, ask({{"do", "intact"}}, kDataTimeout));
  return answer.get<bool>();
}

Result<CallResult> CudaSession::call(ProgramId id, const CallOptions& options) {
  HONE_TRY(Loaded* loaded, find(id));
  CallResult result;
  result.fault = loaded->fault;
  if (result.fault) return result;
  loaded->outputs.clear();
  loaded->called = false;
  const auto answer = ask({{"do", "call"}, {"id", id}, {"timed", options.timed}}, 2 * spec_.call_timeout_s + kCallExtra, loaded);
  if (!answer) {
    result.fault = loaded->fault;
    if (result.fault) return result;
    return fail(answer.error());
  }
  result.seconds = from_bits(answer->at("seconds"));
  answer->at("description").get_to(loaded->description);
  if (answer->contains("fault")) {
    Error fault;
    from_json(answer->at("fault"), fault);
    loaded->fault = std::move(fault);
    result.fault = loaded->fault;
    return result;
  }
  answer->at("poison").get_to(loaded->poison);
  loaded->called = true;
  if (answer->contains("sample")) note(answer->at("sample"));
  return result;
}

Result<std::size_t> CudaSession::tensor_index(const std::string& tensor) const {
  for (std::size_t i = 0; i < spec_.workload.tensors.size(); ++i)
    if (spec_.workload.tensors[i].name == tensor && spec_.workload.tensors[i].role != TensorRole::input) return i;
  return fail(ErrorKind::internal, "workload {} has no output or persistent tensor {}", spec_.workload.id, tensor);
}

Result<std::span<const std::byte>> CudaSession::output(ProgramId id, const std::string& tensor) {
  HONE_TRY(Loaded* loaded, find(id));
  HONE_TRY(const std::size_t index, tensor_index(tensor));
  HONE_CHECK(has_outputs({id, tensor, {}}));
  const auto found = loaded->outputs.find(index);
  if (found != loaded->outputs.end()) return std::span<const std::byte>(found->second);
  HONE_CHECK(ask({{"do", "output"}, {"id", id}, {"tensor", index}}, kDataTimeout));
  const auto& bytes = loaded->outputs[index] = {transfer_, transfer_ + spec_.workload.tensors[index].bytes()};
  return std::span<const std::byte>(bytes);
}

bool CudaSession::is_poison(ProgramId id, const std::string& tensor, std::size_t offset) {
  const auto loaded = find(id);
  const auto index = tensor_index(tensor);
  if (!loaded || !index) return false;
  const TensorShape& shape = spec_.workload.tensors[*index];
  const std::size_t element = size_of(shape.dtype);
  if (shape.role != TensorRole::output || offset + element > shape.bytes()) return false;
  const auto bytes = output(id, tensor);
  return bytes && std::memcmp(bytes->data() + offset, &(*loaded)->poison[*index], element) == 0;
}

Result<std::vector<GuardDamage>> CudaSession::guards(ProgramId id) {
  HONE_TRY(Loaded* loaded, find(id));
  if (loaded->fault) return fail(*loaded->fault);
  HONE_TRY(const json answer, ask({{"do", "guards"}, {"id", id}}, kDataTimeout));
  std::vector<GuardDamage> out;
  for (const json& each : answer)
    out.push_back({each.at(0).get<std::string>(), each.at(1).get<std::int64_t>(), each.at(2).get<std::int64_t>()});
  return out;
}

std::string CudaSession::describe(ProgramId id) {
  const auto loaded = find(id);
  return loaded ? (*loaded)->description : std::string();
}

json CudaSession::conditions() {
  json out = conditions_;
  out["seconds"] = seconds_;
  return out;
}

// Least and most of each number, every throttle reason that was ever there, how many samples.
void CudaSession::note(const json& sample) {
  if (sample.empty()) return;
  if (conditions_.is_null()) conditions_ = {{"samples", 0}, {"throttle", json::array()}};
  conditions_["samples"] = conditions_["samples"].get<int>() + 1;
  for (const auto& [key, value] : sample.items()) {
    if (key == "throttle") {
      for (const json& reason : value)
        if (std::find(conditions_["throttle"].begin(), conditions_["throttle"].end(), reason) == conditions_["throttle"].end())
          conditions_["throttle"].push_back(reason);
      continue;
    }
    json& range = conditions_[key];
    if (range.is_null()) range = {{"least", value}, {"most", value}};
    if (value < range["least"]) range["least"] = value;
    if (value > range["most"]) range["most"] = value;
  }
}

Result<> CudaSession::fill(const InputSet& set, std::uint64_t seed, std::uint32_t call) {
  filled_ = fill_request(set, seed, call);
  staged_fresh_ = false;
  committed_.clear();
  if (process_ == nullptr) return start();
  HONE_CHECK(ask_running(*filled_, kDataTimeout));
  return {};
}

Result<Regions> CudaSession::regions() {
  HONE_TRY(const json answer, ask({{"do", "regions"}}, kDataTimeout));
  Regions out;
  for (const auto& [tensor, list] : answer.items()) out[tensor] = regions_from(list);
  return out;
}

Result<double> CudaSession::refer() {
  HONE_TRY(const json answer, ask({{"do", "refer"}}, kDataTimeout));
  return from_bits(answer);
}

Result<> CudaSession::has_outputs(const Pairing& pairing) {
  for (const auto& id : {pairing.got, pairing.expected}) {
    if (!id) continue;
    HONE_TRY(Loaded* loaded, find(*id));
    if (loaded->fault) return fail(*loaded->fault);
    if (!loaded->called) return fail(ErrorKind::device, "the outputs of {} are gone with the GPU's process; call it again", loaded->name);
  }
  return {};
}

Result<std::vector<RegionSums>> CudaSession::sums(const Pairing& pairing, const std::vector<Region>& regions, const SumsRequest& request) {
  HONE_CHECK(has_outputs(pairing));
  HONE_TRY(const json answer, ask({{"do", "sums"},
                                   {"pairing", to_json(pairing)},
                                   {"regions", to_json(regions)},
                                   {"scale", bits_of(request.scale)},
                                   {"bound_floor", bits_of(request.bound_floor)},
                                   {"bound_limit", bits_of(request.bound_limit)}},
                                  kDataTimeout));
  std::vector<RegionSums> out;
  for (const json& each : answer) out.push_back(sums_from(each));
  return out;
}

Result<OddElements> CudaSession::odd(const Pairing& pairing, const Region& region, const Tolerance& tolerance) {
  HONE_CHECK(has_outputs(pairing));
  HONE_TRY(const json answer, ask({{"do", "odd"},
                                   {"pairing", to_json(pairing)},
                                   {"regions", to_json(std::vector<Region>{region})},
                                   {"absolute", bits_of(tolerance.absolute)},
                                   {"relative", bits_of(tolerance.relative)},
                                   {"finite_too", tolerance.finite_too},
                                   {"poison", tolerance.poison}},
                                  kDataTimeout));
  return odd_from(answer);
}

Result<bool> CudaSession::copies(ProgramId got, const std::string& tensor, const std::string& input) {
  HONE_CHECK(has_outputs({got, tensor, {}}));
  HONE_TRY(const json answer, ask({{"do", "copies"}, {"id", got}, {"tensor", tensor}, {"input", input}}, kDataTimeout));
  return answer.get<bool>();
}

Result<std::string> CudaSession::output_digest(ProgramId got, const std::string& tensor, const std::vector<Region>& regions) {
  HONE_CHECK(has_outputs({got, tensor, {}}));
  HONE_TRY(const json answer, ask({{"do", "digest"}, {"id", got}, {"tensor", tensor}, {"regions", to_json(regions)}}, kDataTimeout));
  return answer.get<std::string>();
}

Result<std::string> CudaSession::reference_digest(const std::string& tensor) {
  HONE_TRY(const json answer, ask({{"do", "reference_digest"}, {"tensor", tensor}}, kDataTimeout));
  return answer.get<std::string>();
}

// In pieces that the shared memory holds.
Result<Reference> CudaSession::reference() {
  Reference out;
  for (std::size_t i = 0; i < spec_.workload.tensors.size(); ++i) {
    const TensorShape& tensor = spec_.workload.tensors[i];
    if (tensor.role == TensorRole::input) continue;
    std::vector<double>& values = out[tensor.name];
    values.resize(static_cast<std::size_t>(tensor.elements()));
    const std::size_t piece = transfer_bytes_ / sizeof(double);
    for (std::size_t begin = 0; begin < values.size(); begin += piece) {
      const std::size_t count = std::min(piece, values.size() - begin);
      HONE_CHECK(ask({{"do", "reference"}, {"tensor", i}, {"begin", begin}, {"count", count}}, kDataTimeout));
      std::memcpy(values.data() + begin, transfer_, count * sizeof(double));
    }
  }
  return out;
}

}  // namespace hone::cuda
