// A device of the service: its process, its state, and the thread that gives it jobs one at a time.
#ifndef HONE_SERVER_LANE_H
#define HONE_SERVER_LANE_H

#include "server/device_process.h"
#include "server/service.h"

namespace hone::server {

struct Service::Lane {
  const char* role = "device";             // or "compiler"
  std::size_t number = 0;
  std::vector<std::string> argv;
  std::unique_ptr<DeviceProcess> process;  // the lane's thread alone, as is the next
  double pinged_s = 0;
  // Below: under the service's mutex.
  std::string state = "starting", reason;
  pid_t pid = 0;                           // 0: no process
  nlohmann::json device;
  std::string job;
  double since_s = 0, life_s = 0, probed_s = 0;   // of the state; of the last sign of life; of the last probe that went well
  bool probing = false;
  int lost = 0;                            // in a row
  std::uint64_t replaced = 0;
  std::map<std::string, int> losses;       // of jobs that have cost processes
  std::thread thread;
};

}  // namespace hone::server

#endif
