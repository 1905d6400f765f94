// A device process as the service sees it (server/work.h is its inside): started with a channel, ended with
// everything that it has started.
#ifndef HONE_SERVER_DEVICE_PROCESS_H
#define HONE_SERVER_DEVICE_PROCESS_H

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/channel.h"

namespace hone::server {

// Once, before the first: children whose parent dies become this process's, so that none is overlooked.
void adopt_orphans();

class DeviceProcess {
 public:
  // Runs `argv` with its end of the channel as descriptor 3 and waits for {"ready"}. Kind device when it does
  // not come in time; the process's own error when it says {"fatal"}. The process dies with the calling thread.
  static Result<std::unique_ptr<DeviceProcess>> start(const std::vector<std::string>& argv, double ready_s);
  ~DeviceProcess();                        // kills it and all that it left, and reaps them

  pid_t pid() const { return pid_; }
  const nlohmann::json& device() const { return device_; }
  bool send(const nlohmann::json& message) { return channel_.send(message); }
  Channel::Got receive(nlohmann::json& message, double timeout_s) { return channel_.receive(message, timeout_s); }

 private:
  DeviceProcess(pid_t pid, Channel channel) : pid_(pid), channel_(std::move(channel)) {}
  pid_t pid_;
  Channel channel_;
  nlohmann::json device_;
};

}  // namespace hone::server

#endif
