// hone-gpu: the process that owns a context on a GPU, for one session. The judge's process never loads CUDA; when a
// kernel hangs or poisons the context, this process ends and takes both with it.
//
//   hone-gpu --info N     the GPU's description as JSON: {"ok": ...} or {"error": ...}
//   hone-gpu --serve      answers requests (encode.h) on descriptor 3; bulk data go through the memory of descriptor 4
//   hone-gpu --once FILE ANSWER   does the requests of a file, one a line, until one fails, for a tool that watches this
//                         process; ANSWER holds the last answer then
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/channel.h"
#include "base/fs.h"
#include "device/cuda/encode.h"
#include "device/cuda/engine.h"

namespace hone::cuda {
namespace {

using nlohmann::json;

class Server {
 public:
  // `abandoned`: nobody waits for an answer any more.
  Server(std::function<bool()> abandoned, std::byte* transfer) : abandoned_(std::move(abandoned)), transfer_(transfer) {}

  // With "dead" when the context is lost.
  json answer(const json& request) {
    bool dead = false;
    json answer;
    try {
      auto result = handle(request, dead);
      if (result) {
        answer["ok"] = *std::move(result);
      } else {
        answer["error"] = result.error();
        dead = dead || lost();
      }
    } catch (const std::exception& exception) {
      answer["error"] = make_error(ErrorKind::internal, "a request that hone-gpu cannot read: {}", exception.what());
    }
    if (dead) answer["dead"] = true;
    return answer;
  }

 private:
  static bool lost() {
    const CUresult code = cu.stream_query != nullptr ? cu.stream_query(nullptr) : kSuccess;
    return code != kSuccess && code != kNotReady;
  }

  Result<json> handle(const json& request, bool& dead) {
    const auto verb = request.at("do").get<std::string>();
    if (verb == "open") return open(request);
    if (engine_ == nullptr) return fail(ErrorKind::internal, "no session is open");
    if (verb == "call") return call(request, dead);
    if (verb == "watched") return watched(request, dead);
    using Handler = Result<json> (Server::*)(const json&);
    static const std::map<std::string, Handler> handlers = {
        {"load", &Server::load},     {"load_native", &Server::load_native}, {"unload", &Server::unload},
        {"upload", &Server::upload}, {"commit", &Server::commit},           {"download", &Server::download},
        {"intact", &Server::intact}, {"output", &Server::output},           {"guards", &Server::guards},
        {"fill", &Server::fill},     {"regions", &Server::regions},         {"refer", &Server::refer},
        {"sums", &Server::sums},     {"odd", &Server::odd},                 {"copies", &Server::copies},
        {"digest", &Server::digest}, {"reference_digest", &Server::reference_digest}, {"reference", &Server::reference}};
    const auto found = handlers.find(verb);
    if (found == handlers.end()) return fail(ErrorKind::internal, "hone-gpu does not know `{}`", verb);
    return (this->*found->second)(request);
  }

  static Result<json> done(Result<> result) {
    if (!result) return fail(std::move(result).error());
    return json(nullptr);
  }

  Result<json> open(const json& request) {
    HONE_CHECK(Driver::open());
    EngineSpec spec;
    spec.workload = workload_from(request.at("workload"));
    request.at("ordinal").get_to(spec.ordinal);
    request.at("helpers").get_to(spec.helpers);
    request.at("task_code").get_to(spec.task_code);
    request.at("memory_bytes").get_to(spec.memory_bytes);
    request.at("call_timeout_s").get_to(spec.call_timeout_s);
    spec.plain = request.value("plain", false);
    HONE_TRY(engine_, Engine::open(std::move(spec), abandoned_));
    return json(nullptr);
  }

  Result<json> load(const json& request) {
    HONE_TRY(Plan plan, plan_from_json(request.at("plan").dump()));
    return done(engine_->load(request.at("id").get<ProgramId>(), request.at("name").get<std::string>(), std::move(plan),
                              request.at("modules").get<std::vector<std::string>>(), request.at("symbols").get<std::vector<std::string>>()));
  }
  Result<json> load_native(const json& request) {
    const auto id = request.at("id").get<ProgramId>();
    HONE_CHECK(engine_->load_native(id, request.at("name").get<std::string>(), request.at("path").get<std::string>()));
    return json(engine_->describe(id));
  }
  Result<json> unload(const json& request) {
    engine_->unload(request.at("id").get<ProgramId>());
    return json(nullptr);
  }
  Result<json> upload(const json& request) { return done(engine_->upload(request.at("tensor").get<std::size_t>(), transfer_)); }
  Result<json> commit(const json&) { return done(engine_->commit()); }
  Result<json> download(const json& request) { return done(engine_->download(request.at("tensor").get<std::size_t>(), transfer_)); }
  Result<json> intact(const json&) {
    HONE_TRY(const bool intact, engine_->intact());
    return json(intact);
  }
  Result<json> output(const json& request) {
    return done(engine_->output(request.at("id").get<ProgramId>(), request.at("tensor").get<std::size_t>(), transfer_));
  }
  Result<json> guards(const json& request) {
    HONE_TRY(const auto damage, engine_->guards(request.at("id").get<ProgramId>()));
    json out = json::array();
    for (const GuardDamage& each : damage) out.push_back({each.buffer, each.first_byte, each.bytes});
    return out;
  }

  Result<json> call(const json& request, bool& dead) {
    const auto id = request.at("id").get<ProgramId>();
    const bool timed = request.at("timed").get<bool>();
    HONE_TRY(const CallResult result, engine_->call(id, timed));
    json out = {{"seconds", bits_of(result.seconds)}};
    if (result.fault) {
      out["fault"] = *result.fault;
      dead = result.fault->kind == ErrorKind::timeout || lost();
    }
    if (!dead) out["poison"] = engine_->poison(id);
    if (timed && !dead) out["sample"] = engine_->sample();
    out["description"] = engine_->describe(id);
    return out;
  }

  Result<json> fill(const json& request) {
    return done(engine_->fill(input_set_from(request.at("set")), request.at("seed").get<std::uint64_t>(), request.at("call").get<std::uint32_t>()));
  }
  Result<json> regions(const json&) {
    HONE_TRY(const Regions regions, engine_->regions());
    json out = json::object();
    for (const auto& [tensor, list] : regions) out[tensor] = to_json(list);
    return out;
  }
  Result<json> refer(const json&) {
    HONE_TRY(const double seconds, engine_->refer());
    return json(bits_of(seconds));
  }
  Result<json> sums(const json& request) {
    const SumsRequest how{from_bits(request.at("scale")), from_bits(request.at("bound_floor")), from_bits(request.at("bound_limit"))};
    HONE_TRY(const auto sums, engine_->sums(pairing_from(request.at("pairing")), regions_from(request.at("regions")), how));
    json out = json::array();
    for (const RegionSums& each : sums) out.push_back(to_json(each));
    return out;
  }
  Result<json> odd(const json& request) {
    const Tolerance tolerance{from_bits(request.at("absolute")), from_bits(request.at("relative")), request.at("finite_too").get<bool>(),
                              request.at("poison").get<bool>()};
    HONE_TRY(const OddElements odd, engine_->odd(pairing_from(request.at("pairing")), regions_from(request.at("regions")).at(0), tolerance));
    return to_json(odd);
  }
  Result<json> copies(const json& request) {
    HONE_TRY(const bool copies, engine_->copies(request.at("id").get<ProgramId>(), request.at("tensor").get<std::string>(), request.at("input").get<std::string>()));
    return json(copies);
  }
  Result<json> digest(const json& request) {
    HONE_TRY(std::string text, engine_->output_digest(request.at("id").get<ProgramId>(), request.at("tensor").get<std::string>(), regions_from(request.at("regions"))));
    return json(std::move(text));
  }
  Result<json> reference(const json& request) {
    return done(engine_->reference(request.at("tensor").get<std::size_t>(), request.at("begin").get<std::size_t>(),
                                   request.at("count").get<std::size_t>(), transfer_));
  }
  Result<json> reference_digest(const json& request) {
    HONE_TRY(std::string text, engine_->reference_digest(request.at("tensor").get<std::string>()));
    return json(std::move(text));
  }

  Result<json> watched(const json& request, bool& dead) {
    auto result = engine_->watched(request.at("id").get<ProgramId>(), request.at("rehearsals").get<int>());
    dead = !result && result.error().kind == ErrorKind::timeout;   // it may run for ever
    return done(std::move(result));
  }

  const std::function<bool()> abandoned_;
  std::byte* transfer_;
  std::unique_ptr<Engine> engine_;
};

int print_info(int ordinal) {
  json answer;
  const auto info = [&]() -> Result<DeviceInfo> {
    HONE_CHECK(Driver::open());
    return describe_gpu(ordinal);
  }();
  if (info) answer["ok"] = to_json(*info);
  else answer["error"] = info.error();
  std::puts(answer.dump().c_str());
  return 0;
}

// Until the judge is gone, or the context is. Ends the process as it is: tearing down what a kernel uses that never
// ends would wait for it.
[[noreturn]] void serve() {
  struct stat status = {};
  std::byte* transfer = nullptr;
  if (::fstat(kTransferFd, &status) == 0 && status.st_size > 0) {
    void* at = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, kTransferFd, 0);
    if (at != MAP_FAILED) transfer = static_cast<std::byte*>(at);
  }
  Channel channel(kChannelFd);
  const auto abandoned = [&channel] {
    pollfd wait = {channel.fd(), POLLIN, 0};
    return ::poll(&wait, 1, 0) > 0 && (wait.revents & POLLHUP) != 0;
  };
  Server server(abandoned, transfer);
  for (json request; channel.receive(request, -1) == Channel::Got::message;) {
    const json answer = server.answer(request);
    if (!channel.send(answer) || answer.contains("dead")) break;
  }
  ::_exit(0);
}

// Ends as programs do, so that the tool sees the end; but not when the context is lost, as above.
int once(const char* requests, const char* answer_file) {
  json answer;
  {
    Server server([] { return false; }, nullptr);
    const auto text = read_file(requests);
    if (!text) answer["error"] = text.error();
    for (std::size_t begin = 0; text && begin < text->size() && !answer.contains("error");) {
      const std::size_t end = std::min(text->find('\n', begin), text->size());
      answer = server.answer(json::parse(std::string_view(*text).substr(begin, end - begin), nullptr, false));
      begin = end + 1;
    }
    if (!write_file_atomic(answer_file, answer.dump(-1, ' ', false, json::error_handler_t::replace)) || answer.contains("dead")) ::_exit(1);
  }
  return answer.contains("error") ? 1 : 0;
}

}  // namespace
}  // namespace hone::cuda

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "--info" && argc == 3) return hone::cuda::print_info(std::atoi(argv[2]));
  const bool once = verb == "--once" && argc == 4;
  if (verb != "--serve" && !once) {
    std::fputs("hone-gpu is started by hone\n", stderr);
    return 2;
  }
  // What kernels and libraries print goes nowhere.
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2}) ::dup2(nowhere, fd);
  if (once) return hone::cuda::once(argv[2], argv[3]);
  hone::cuda::serve();
}
