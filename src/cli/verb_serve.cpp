#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <malloc.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <toml++/toml.h>

#include "base/text.h"
#include "cli/verb.h"
#include "server/api.h"

namespace hone::cli {
namespace {

constexpr int kCompilersForGpus = 2;

struct Options {
  std::vector<int> gpus;
  std::string device = "cpu", host = "127.0.0.1", data, tokens, tls_cert, tls_key, blobs = "10GiB", drain = "60s";
  int port = 8000, keep_jobs = 10000;
  std::optional<int> compilers;
  std::size_t queue = 4096, queue_of_token = 1024;
  bool exec = false, quiet_log = false;
};

// Whether all that a name means here is this machine alone.
bool loopback(const std::string& host) {
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
  bool out = true;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family == AF_INET) out = out && ntohl(reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr.s_addr) >> 24 == 127;
    else out = out && each->ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(each->ai_addr)->sin6_addr);
  }
  ::freeaddrinfo(found);
  return out;
}

// Flags from a TOML file; those of the command line win. Kind usage, located in the file.
Result<> apply_config(const std::string& file, CLI::App& app) {
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    const bool missing = !fs::exists(file);
    return fail(make_error(ErrorKind::usage, "{}", missing ? "there is no such file" : error.description())
                    .at({file, missing ? 0 : static_cast<int>(error.source().begin.line), missing ? 0 : static_cast<int>(error.source().begin.column)}));
  }
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    const Place place = {file, static_cast<int>(value.source().begin.line), static_cast<int>(value.source().begin.column)};
    CLI::Option* option = name == "config" || name == "help" ? nullptr : app.get_option_no_throw("--" + name);
    if (option == nullptr)
      return fail(make_error(ErrorKind::usage, "`{}` is no flag of `hone serve`", name).at(place).with_hint("keys are flags without their dashes: port = 8000"));
    std::vector<std::string> words;
    const auto word = [&](const toml::node& node) {
      if (const auto text = node.value_exact<std::string>()) words.push_back(*text);
      else if (const auto number = node.value_exact<std::int64_t>()) words.push_back(std::to_string(*number));
      else if (const auto yes = node.value_exact<bool>()) words.emplace_back(*yes ? "true" : "false");
      else return false;
      return true;
    };
    bool fine = true;
    if (const toml::array* list = value.as_array()) {
      for (const toml::node& each : *list) fine = fine && word(each);
    } else {
      fine = word(value);
    }
    if (!fine || words.empty()) return fail(make_error(ErrorKind::usage, "`{}` takes a text, a whole number, true or false, or a list of them", name).at(place));
    if (option->count() > 0) continue;
    try {
      option->add_result(words);
      option->run_callback();
    } catch (const CLI::Error& error) {
      return fail(make_error(ErrorKind::usage, "{}", error.what()).at(place));
    }
  }
  return {};
}

// systemd's protocol: one datagram to the socket that it names.
void notify_manager(const std::string& text) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address = {};
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  (void)::sendto(fd, text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path)));
  ::close(fd);
}

Result<int> serve(const Global& global, const Options& options) {
  for (std::size_t i = 0; i < options.gpus.size(); ++i)
    if (std::find(options.gpus.begin(), options.gpus.begin() + static_cast<std::ptrdiff_t>(i), options.gpus[i]) != options.gpus.begin() + static_cast<std::ptrdiff_t>(i))
      return fail(ErrorKind::usage, "--gpus names GPU {} twice", options.gpus[i]);
  if (options.tls_cert.empty() != options.tls_key.empty())
    return fail(ErrorKind::usage, "--tls-cert and --tls-key belong together");
  if (!loopback(options.host) && global.sandbox == "off")
    return fail(make_error(ErrorKind::usage, "--sandbox=off is for loopback only: it would give this machine to whoever can reach {}", options.host));
  server::ServiceOptions service_options;
  service_options.data = options.data.empty() ? data_dir() / "service" : fs::absolute(options.data);
  service_options.tokens = options.tokens.empty() ? service_options.data / "tokens.json" : fs::absolute(options.tokens);
  service_options.version = HONE_VERSION;
  service_options.exec = options.exec;
  service_options.guarded = !loopback(options.host);
  service_options.keep_jobs = static_cast<std::size_t>(options.keep_jobs);
  service_options.queue.jobs = options.queue;
  service_options.queue.jobs_of_token = options.queue_of_token;
  HONE_TRY(service_options.blob_bytes, parse_size(options.blobs));
  HONE_TRY(const double drain_s, parse_duration(options.drain));
  HONE_TRY(const auto tokens, server::Tokens::load(service_options.tokens));
  if (!loopback(options.host) && tokens->empty())
    return fail(make_error(ErrorKind::usage, "{} can be reached from elsewhere, and there is no token", options.host)
                    .at({service_options.tokens.string()})
                    .with_hint("make one with `hone token create NAME --tokens " + service_options.tokens.string() + "`, or listen on 127.0.0.1"));
  HONE_CHECK(make_dirs(service_options.data));
  // Other people's sources and results lie in it.
  std::error_code unchanged;
  fs::permissions(service_options.data, fs::perms::owner_all, unchanged);
  auto lock = FileLock::try_acquire(service_options.data / "lock");
  if (!lock && lock.error().message == "busy")
    return fail(make_error(ErrorKind::usage, "another `hone serve` uses this data").at({service_options.data.string()}).with_hint("--data takes another folder"));
  if (!lock) return fail(std::move(lock).error());

  // A large request's memory goes back to the system at once instead of to one of sixteen threads' arenas.
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 256 * 1024);

  std::error_code code;
  std::vector<std::string> worker = {fs::read_symlink("/proc/self/exe", code).string(), "worker", "--sandbox", global.sandbox};
  if (options.exec) worker.emplace_back("--exec");
  if (options.gpus.empty()) service_options.devices = {worker};
  for (const int gpu : options.gpus) {
    std::vector<std::string> own = worker;
    own.insert(own.end(), {"--gpu", std::to_string(gpu)});
    service_options.devices.push_back(std::move(own));
  }
  service_options.compilers = static_cast<std::size_t>(options.compilers.value_or(options.gpus.empty() ? 0 : kCompilersForGpus));
  server::Log log(options.quiet_log || global.quiet);
  HONE_CHECK(log.open_audit(service_options.data / "audit.jsonl"));
  HONE_TRY(const auto service, server::Service::open(service_options, log));
  server::HttpOptions http;
  http.host = options.host;
  http.port = static_cast<unsigned short>(options.port);
  http.tls_cert = options.tls_cert;
  http.tls_key = options.tls_key;
  HONE_TRY(const auto front, server::HttpServer::start(http, server::make_api(*service, log)));
  service->on_change([&front = *front](const std::string& job) { front.notify(job); });
  const std::string host = options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  const std::string url = fmt::format("{}://{}:{}", options.tls_cert.empty() ? "http" : "https", host, front->port());
  if (global.json) fmt::print("{}\n", nlohmann::json{{"schema", "hone.serve/1"}, {"url", url}, {"pid", ::getpid()}}.dump());
  else fmt::print("serving on {}\n", url);
  std::fflush(stdout);
  notify_manager("READY=1\nSTATUS=" + url);
  while (!interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  notify_manager("STOPPING=1");
  log.info("draining", {{"at_most_s", drain_s}});
  service->drain(drain_s);
  front->stop_accepting();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));   // answers on their way
  service->on_change({});
  return 0;
}

}  // namespace

void define_serve(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  auto config = std::make_shared<std::string>();
  app.add_option("--config", *config, "flags from a TOML file: port = 8000; the command line's own win");
  CLI::Option* device = app.add_option("--device", options->device, "what is served: cpu")->check(CLI::IsMember({"cpu"}))->capture_default_str();
  app.add_option("--gpus", options->gpus, "or these GPUs, by number: 0,1")->delimiter(',')->check(CLI::Range(0, 255))->excludes(device);
  app.add_option("--host", options->host, "address to listen on; others than loopback want tokens")->capture_default_str();
  app.add_option("--port", options->port, "0: any free one")->check(CLI::Range(0, 65535))->capture_default_str();
  app.add_option("--data", options->data, "folder of jobs, blobs and audit log (default: service in Hone's data folder)");
  app.add_option("--tokens", options->tokens, "file of tokens, made by `hone token` (default: tokens.json in --data)");
  app.add_option("--tls-cert", options->tls_cert, "PEM file of the certificate chain");
  app.add_option("--tls-key", options->tls_key, "PEM file of its private key");
  app.add_flag("--exec", options->exec, "allow jobs of kind exec to tokens with the scope exec");
  app.add_option("--compilers", options->compilers, "processes that compile ahead of a device's turn; 0: while it has the device (default: 2 beside GPUs; 0 for the CPU, which they would disturb)")
      ->check(CLI::Range(0, 64));
  app.add_option("--queue", options->queue, "jobs that may wait")->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--queue-of-token", options->queue_of_token, "jobs of one token that may wait")->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--keep-jobs", options->keep_jobs, "ended jobs of each token to keep")->check(CLI::Range(1, 10000000))->capture_default_str();
  app.add_option("--blobs", options->blobs, "size of the blob store")->capture_default_str();
  app.add_option("--drain", options->drain, "how long running jobs may go on after SIGTERM")->capture_default_str();
  app.callback([&invocation, &app, options, config] {
    invocation.action = [&invocation, &app, options, config]() -> Result<int> {
      if (!config->empty()) HONE_CHECK(apply_config(*config, app));
      return serve(invocation.global, *options);
    };
  });
}

}  // namespace hone::cli
