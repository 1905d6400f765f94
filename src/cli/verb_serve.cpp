#include <CLI/CLI.hpp>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

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

bool loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

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
  app.set_config("--config", "", "flags from a TOML file: port = 8000");
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
  app.add_option("--keep-jobs", options->keep_jobs, "ended jobs to keep")->check(CLI::Range(1, 10000000))->capture_default_str();
  app.add_option("--blobs", options->blobs, "size of the blob store")->capture_default_str();
  app.add_option("--drain", options->drain, "how long running jobs may go on after SIGTERM")->capture_default_str();
  app.callback([&invocation, options] {
    invocation.action = [&invocation, options] { return serve(invocation.global, *options); };
  });
}

}  // namespace hone::cli
