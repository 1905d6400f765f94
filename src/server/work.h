// The device process: it owns a device and does one job at a time for the service that started it. Every
// candidate's code runs in its jails, none in it; when it dies, so do they.
//
// It reads {"job", "kind", "request"}, {"cancel": job}, {"ping": n}, {"probe": n}, and writes {"ready": device},
// {"job", "event", "data"}, {"done": job, "result" or "error"}, {"pong": n}, {"probed": n, "error"}.
#ifndef HONE_SERVER_WORK_H
#define HONE_SERVER_WORK_H

#include "base/channel.h"
#include "judge/judge.h"

namespace hone::server {

// What the service says of a device.
nlohmann::json device_json(const DeviceInfo& info, const Sandbox& sandbox);

// Runs until the channel is closed or SIGTERM comes. `exec`: jobs of kind exec are allowed.
void work(Channel& channel, Bench bench, bool exec);

}  // namespace hone::server

#endif
