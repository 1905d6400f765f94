// Which service a verb talks to: --remote, HONE_URL, the run's manifest, in this order; its token from HONE_TOKEN.
// HONE_PATIENCE: for how long a service that does not answer is tried again (120 s).
#ifndef HONE_CLI_REMOTE_H
#define HONE_CLI_REMOTE_H

#include <optional>

#include "cli/verb.h"
#include "client/service_client.h"

namespace hone::cli {

// nullopt: none is named, the work is done here. `flag`: of --remote, may be empty, "local" means none.
Result<std::optional<client::ServiceClient>> find_service(const Global& global, const std::string& flag, const std::string& manifest = {});
// The same when one is needed. Kind usage when none is named.
Result<client::ServiceClient> need_service(const Global& global, const std::string& flag);

// What a job that is no judgement has given, as text: a command's output, candidates that do not compile.
void print_result(const nlohmann::json& result);

}  // namespace hone::cli

#endif
