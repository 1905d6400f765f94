// What main sets up before a verb runs.
#ifndef HONE_CLI_STARTUP_H
#define HONE_CLI_STARTUP_H

#include "base/error.h"

namespace hone::cli {

// SIGINT and SIGTERM set interrupted() once, then end the process; SIGPIPE is ignored.
void catch_signals();
// HONE_WORKERS: 0 when unset. Kind usage on anything but 1 to 4096.
Result<int> workers_from(const char* text);

}  // namespace hone::cli

#endif
