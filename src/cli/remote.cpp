#include "cli/remote.h"

#include <cstdlib>

namespace hone::cli {

Result<std::optional<client::ServiceClient>> find_service(const Global& global, const std::string& flag, const std::string& manifest) {
  const char* environment = std::getenv("HONE_URL");
  const std::string url = !flag.empty() ? flag : environment != nullptr && *environment != '\0' ? environment : manifest;
  if (url.empty() || url == "local") return std::optional<client::ServiceClient>();
  const char* token = std::getenv("HONE_TOKEN");
  HONE_TRY(auto service, client::ServiceClient::create({.url = url, .token = token != nullptr ? token : "", .progress = progress_printer(global), .cancel = &interrupted()}));
  return std::optional<client::ServiceClient>(std::move(service));
}

Result<client::ServiceClient> need_service(const Global& global, const std::string& flag) {
  HONE_TRY(auto service, find_service(global, flag));
  if (!service) return fail(make_error(ErrorKind::usage, "which service?").with_hint("give --remote URL, or set HONE_URL"));
  return *std::move(service);
}

}  // namespace hone::cli
