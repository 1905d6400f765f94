#include "cli/remote.h"

#include <cstdlib>

#include "base/text.h"
#include "inspect/inspect.h"
#include "profile/profile.h"
#include "profile/sanitize.h"
#include "run/run.h"

namespace hone::cli {

Result<std::optional<client::ServiceClient>> find_service(const Global& global, const std::string& flag, const std::string& manifest) {
  const char* environment = std::getenv("HONE_URL");
  const std::string url = !flag.empty() ? flag : environment != nullptr && *environment != '\0' ? environment : manifest;
  if (url.empty() || url == "local") return std::optional<client::ServiceClient>();
  const char* token = std::getenv("HONE_TOKEN");
  client::ClientOptions options{.url = url, .token = token != nullptr ? token : "", .progress = progress_printer(global), .cancel = &interrupted()};
  if (const char* patience = std::getenv("HONE_PATIENCE"); patience != nullptr && *patience != '\0') {
    HONE_TRY(options.patience_s, parse_duration(patience));
  }
  HONE_TRY(auto service, client::ServiceClient::create(std::move(options)));
  return std::optional<client::ServiceClient>(std::move(service));
}

Result<client::ServiceClient> need_service(const Global& global, const std::string& flag) {
  const auto here = find_run_here();       // a damaged run is none: the service may be named otherwise
  HONE_TRY(auto service, find_service(global, flag, here && *here ? (*here)->manifest.remote : ""));
  if (!service) return fail(make_error(ErrorKind::usage, "which service?").with_hint("give --remote URL, or set HONE_URL"));
  return *std::move(service);
}

void print_result(const nlohmann::json& result) {
  if (!result.is_object() || result.contains("report")) return;
  fmt::print("{}", result.value("stdout", ""));
  fmt::print(stderr, "{}", result.value("stderr", ""));
  if (const int signal = result.value("signal", 0); signal != 0) fmt::print(stderr, "ended by signal {}\n", signal);
  const std::string schema = result.value("schema", "");
  if (schema == "hone.compile/1") fmt::print("{}", compile_text(result));
  if (schema == "hone.inspect/1") fmt::print("{}", inspect_text(result));
  if (schema == "hone.profile/1") fmt::print("{}", profile_text(result));
  if (schema == "hone.sanitize/1") fmt::print("{}", sanitize_text(result));
}

}  // namespace hone::cli
