#include "device/known.h"

#include "base/text.h"

namespace hone {
namespace {

struct Known {
  const char* architecture;
  const char* model;
  std::int64_t multiprocessors, shared_kib, cluster, blocks;   // shared memory of a block; blocks a multiprocessor holds
  std::uint64_t l2_mib, memory_gib;
};

// Shared memory, blocks, threads and grids: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical
// Specifications per Compute Capability". A cluster of more than 8 blocks is not portable but allowed on both.
// Multiprocessors, cache and memory are the model's: a plan sees the first, and workspaces are held against half of the last.
constexpr Known kKnown[] = {{"sm_90a", "H200", 132, 227, 16, 32, 60, 139}, {"sm_100a", "B200", 148, 227, 16, 32, 126, 178}};

class KnownDevice final : public Device {
 public:
  explicit KnownDevice(const Known& known) {
    info_.name = "cuda";
    info_.model = known.model;
    info_.architecture = known.architecture;
    info_.workers = known.multiprocessors;
    info_.cache_bytes = known.l2_mib << 20;
    info_.memory_bytes = known.memory_gib << 30;
    info_.limits.max_grid = {0x7fffffff, 65535, 65535};
    info_.limits.max_block = {1024, 1024, 64};
    info_.limits.max_threads_per_block = 1024;
    info_.limits.max_cluster = known.cluster;
    info_.limits.max_shared_bytes = known.shared_kib << 10;
    info_.limits.max_workspace_bytes = static_cast<std::int64_t>(info_.memory_bytes / 2);
    info_.limits.max_resident_blocks = known.multiprocessors * known.blocks;
    info_.limits.tensor_maps = true;
  }
  const DeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<Session>> open(const SessionSpec&) override {
    return fail(ErrorKind::environment, "nothing can run: {} is only compiled for here", info_.architecture);
  }

 private:
  DeviceInfo info_;
};

}  // namespace

const std::vector<std::string>& known_architectures() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Known& each : kKnown) out.emplace_back(each.architecture);
    return out;
  }();
  return names;
}

Result<std::unique_ptr<Device>> make_known_device(const std::string& architecture) {
  for (const Known& each : kKnown)
    if (architecture == each.architecture) return std::unique_ptr<Device>(std::make_unique<KnownDevice>(each));
  const std::string near = nearest(architecture, known_architectures());
  return fail(
      make_error(ErrorKind::not_found, "the limits of architecture {} are not known without a device", architecture)
          .with_hint(near.empty() ? fmt::format("known are cpu, {}", fmt::join(known_architectures(), ", "))
                                  : fmt::format("did you mean {}?", near)));
}

}  // namespace hone
