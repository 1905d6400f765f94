// Devices that need not be here: what the plans and modules of a candidate are held against when it is compiled on a
// machine that lacks the GPU. Nothing can be run on them.
#ifndef HONE_DEVICE_KNOWN_H
#define HONE_DEVICE_KNOWN_H

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace hone {

// "sm_90a", "sm_100a": the architectures whose limits are known without a device.
const std::vector<std::string>& known_architectures();
// A device of that architecture, whose open() is an error of kind environment. Kind not_found: an unknown architecture.
Result<std::unique_ptr<Device>> make_known_device(const std::string& architecture);

}  // namespace hone

#endif
