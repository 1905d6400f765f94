// The server on this process's standard input and output: every byte that leaves on standard output is of a message, whatever
// else in the process prints.
#ifndef HONE_MCP_STDIO_H
#define HONE_MCP_STDIO_H

#include <atomic>

#include "base/error.h"
#include "mcp/server.h"

namespace hone::mcp {

// Until standard input ends, `stop` turns true or nobody reads any more; then what runs is cancelled and waited for. `options.send`
// is set here. Kind environment when standard output cannot be taken over.
Result<> serve_stdio(ServerOptions options, const std::atomic<bool>& stop);

}  // namespace hone::mcp

#endif
