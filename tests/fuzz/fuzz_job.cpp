// A job as the service takes it from a stranger: JSON, schema, candidate, request.
#include <cstdlib>

#include "base/fs.h"
#include "base/json.h"
#include "wire/wire.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::error_code code;
  const hone::fs::path build = hone::fs::read_symlink("/proc/self/exe", code).parent_path().parent_path().parent_path();
  ::setenv("HONE_SHARE", (build / "share/hone").c_str(), 0);
  if (!hone::share_dir()) std::abort();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto body = hone::parse_json({reinterpret_cast<const char*>(data), size});
  if (!body || !hone::wire::check_job(*body)) return 0;
  const nlohmann::json& request = (*body)["request"];
  if ((*body)["kind"] == "bench") (void)hone::wire::judge_request_from(request);
  if ((*body)["kind"] == "compile") (void)hone::wire::candidate_from_json(request["candidate"]);
  return 0;
}
