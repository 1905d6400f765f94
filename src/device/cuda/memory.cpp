#include "device/cuda/memory.h"

#include <algorithm>
#include <utility>

#include "base/fs.h"
#include "base/text.h"

namespace hone::cuda {
namespace {

constexpr std::size_t kGuard = std::size_t{64} << 10;
constexpr std::int64_t kMostBlocks = 1 << 16;
constexpr std::size_t kPrintfBytes = std::size_t{64} << 10;

constexpr int kPlainTries = 8;

Error no_memory(CUresult code, std::size_t bytes) {
  if (code != kOutOfMemory) return cuda_error(code, "allocating memory of the GPU");
  std::size_t free = 0, total = 0;
  cu.memory_info(&free, &total);
  return make_error(ErrorKind::out_of_memory, "{} of GPU memory are wanted, {} are free", format_bytes(bytes), format_bytes(free))
      .with_hint("smaller workloads, or a GPU that nobody else uses");
}

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Result<Context> Context::open(int ordinal, const std::string& cubin) {
  Context out;
  HONE_CHECK(check(cu.device_get(&out.device, ordinal), "opening the GPU"));
  if (out.attribute(kVirtualMemory) == 0)
    return fail(ErrorKind::environment, "the GPU has no virtual memory management, which keeps programs apart from one another's data");
  CUcontext context = nullptr;
  cu.primary_flags(out.device, kKeepLocalMemory);
  HONE_CHECK(check(cu.primary_retain(&context, out.device), "opening a context on the GPU"));
  HONE_CHECK(check(cu.set_current(context), "opening a context on the GPU"));
  HONE_CHECK(check(cu.set_limit(kLimitPrintf, kPrintfBytes), "limiting the device's printf buffer"));
  HONE_CHECK(check(cu.stream_create(&out.stream, 1 /* CU_STREAM_NON_BLOCKING */), "making a stream"));
  out.multiprocessors = out.attribute(kMultiprocessors);
  out.l2_bytes = static_cast<std::size_t>(out.attribute(kL2Bytes));
  AllocationProperties properties;
  properties.location.id = out.device;
  HONE_CHECK(check(cu.granularity(&out.granularity, &properties, 1 /* recommended */), "asking for the memory's granularity"));
  HONE_TRY(const std::string bytes, read_file(cubin));
  if (const CUresult code = cu.module_load(&out.helpers, bytes.c_str()); code != kSuccess)
    return fail(ErrorKind::environment, "the device's helpers do not load: {}", name_of_result(code));
  return out;
}

int Context::attribute(int which) const {
  int value = 0;
  cu.device_attribute(&value, which, device);
  return value;
}

Result<> Context::launch(const char* kernel, std::int64_t work, const void* params, int threads) {
  if (work <= 0) return {};
  CUfunction function = nullptr;
  HONE_CHECK(check(cu.module_function(&function, helpers, kernel), kernel));
  LaunchConfig config = {};
  config.grid[0] = static_cast<unsigned>(std::clamp<std::int64_t>((work + threads - 1) / threads, 1, kMostBlocks));
  config.grid[1] = config.grid[2] = config.block[1] = config.block[2] = 1;
  config.block[0] = static_cast<unsigned>(threads);
  config.stream = stream;
  void* arguments[] = {const_cast<void*>(params)};
  return check(cu.launch(&config, function, arguments, nullptr), kernel);
}

Result<> Context::finish() const { return check(cu.synchronize(), "waiting for the GPU"); }

Result<Memory> Memory::create(const Context& context, std::size_t bytes, std::size_t addresses) {
  Memory out;
  out.device_ = context.device;
  out.bytes_ = round_up(std::max<std::size_t>(bytes, 1), context.granularity);
  AllocationProperties properties;
  properties.location.id = context.device;
  if (const CUresult code = cu.memory_create(&out.handle_, out.bytes_, &properties, 0); code != kSuccess)
    return fail(no_memory(code, out.bytes_));
  for (std::size_t i = 0; i < addresses; ++i) {
    CUdeviceptr at = 0;
    HONE_CHECK(check(cu.address_reserve(&at, out.bytes_, 0, 0, 0), "reserving addresses of the GPU"));
    out.addresses_.push_back(at);
  }
  HONE_CHECK(out.show());
  return out;
}

// The driver aligns small allocations to 512 bytes. Where more is wanted, the next one may be: those that do not fit are
// kept until then. An allocation with room in front would be as good for programs, but not for who looks for underruns.
Result<Memory> Memory::create_plain(std::size_t bytes, std::size_t alignment) {
  Memory out;
  out.plain_ = out.shown_ = true;
  out.bytes_ = std::max<std::size_t>(bytes, 1);
  std::vector<CUdeviceptr> unfit;
  Result<> made;
  for (int i = 0; out.addresses_.empty() && made; ++i) {
    CUdeviceptr at = 0;
    if (const CUresult code = cu.allocate(&at, out.bytes_); code != kSuccess) made = fail(no_memory(code, out.bytes_));
    else if (at % alignment == 0) out.addresses_.push_back(at);
    else unfit.push_back(at);
    if (i == kPlainTries && made && out.addresses_.empty())
      made = fail(ErrorKind::device, "the GPU gives no memory that is aligned to {} bytes", alignment);
  }
  for (const CUdeviceptr at : unfit) cu.free(at);
  if (!made) return fail(std::move(made).error());
  return out;
}

Memory::~Memory() {
  if (plain_) {
    for (const CUdeviceptr at : addresses_) cu.free(at);
    return;
  }
  hide();
  for (const CUdeviceptr at : addresses_) cu.address_free(at, bytes_);
  if (handle_ != 0) cu.memory_release(handle_);
}

void Memory::swap(Memory& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(addresses_, other.addresses_);
  std::swap(current_, other.current_);
  std::swap(bytes_, other.bytes_);
  std::swap(shown_, other.shown_);
  std::swap(plain_, other.plain_);
  std::swap(device_, other.device_);
}

Result<> Memory::show() {
  if (shown_ || addresses_.empty()) return {};
  HONE_CHECK(check(cu.map(address(), bytes_, 0, handle_, 0), "mapping memory of the GPU"));
  shown_ = true;
  AccessDescription access;
  access.location.id = device_;
  return check(cu.set_access(address(), bytes_, &access, 1), "mapping memory of the GPU");
}

Result<> Memory::hide() {
  if (!shown_ || plain_) return {};
  shown_ = false;
  return check(cu.unmap(address(), bytes_), "unmapping memory of the GPU");
}

Result<> Memory::move() {
  if (addresses_.size() > 1) {
    HONE_CHECK(hide());
    current_ = (current_ + 1) % addresses_.size();
  }
  return show();
}

Geometry geometry_of(const TensorShape& shape) {
  struct Axis {
    std::int64_t count, stride;
  };
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < shape.shape.size(); ++i)
    if (shape.shape[i] != 1) axes.push_back({shape.shape[i], shape.strides[i]});
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  const auto element = static_cast<std::int64_t>(size_of(shape.dtype));
  Geometry everything = {};
  everything.run = static_cast<std::int64_t>(shape.bytes());
  // From the inside out: as long as the axes are dense, they are one run.
  std::int64_t dense = 1;
  std::size_t first = 0;
  for (; first < axes.size() && axes[first].stride == dense; ++first) dense *= axes[first].count;
  Geometry out = {};
  out.run = dense * element;
  std::int64_t extent = dense;
  for (std::size_t i = first; i < axes.size(); ++i) {
    if (axes[i].stride < extent) return everything;
    extent += axes[i].stride * (axes[i].count - 1);
  }
  for (std::size_t i = axes.size(); i-- > first;) {
    out.count[out.axes] = axes[i].count;
    out.stride[out.axes++] = axes[i].stride * element;
  }
  return out;
}

View view_of(const TensorShape& shape, CUdeviceptr data) {
  View out = {};
  out.data = reinterpret_cast<const void*>(data);
  out.dtype = static_cast<std::int32_t>(shape.dtype);
  out.rank = static_cast<std::int32_t>(shape.shape.size());
  std::copy(shape.shape.begin(), shape.shape.end(), out.shape);
  std::copy(shape.strides.begin(), shape.strides.end(), out.strides);
  return out;
}

Result<Buffer> Buffer::create(Context& context, std::string name, std::size_t bytes, std::size_t alignment,
                              const TensorShape* shape, std::uint64_t key, std::size_t addresses) {
  Buffer out;
  out.name_ = std::move(name);
  out.bytes_ = bytes;
  out.start_ = round_up(kGuard, std::max<std::size_t>(alignment, 256));
  out.key_ = key;
  out.geometry_.run = static_cast<std::int64_t>(bytes);
  if (shape != nullptr) out.geometry_ = geometry_of(*shape);
  auto memory = Memory::create(context, out.start_ + round_up(bytes, 8) + kGuard, addresses);
  if (!memory) {
    memory.error().message = out.name_ + ": " + memory.error().message;
    return fail(std::move(memory).error());
  }
  out.memory_ = *std::move(memory);
  for (const auto& words : out.guarded()) {
    const PatternParams params = out.pattern_params(words);
    HONE_CHECK(context.run("hone_pattern", words[1] - words[0], params));
  }
  return out;
}

Result<Buffer> Buffer::create_plain(std::string name, std::size_t bytes, std::size_t alignment, const TensorShape* shape) {
  Buffer out;
  out.name_ = std::move(name);
  out.bytes_ = bytes;
  out.geometry_.run = static_cast<std::int64_t>(bytes);
  if (shape != nullptr) out.geometry_ = geometry_of(*shape);
  HONE_TRY(out.memory_, Memory::create_plain(bytes, alignment));
  return out;
}

std::vector<std::array<std::int64_t, 2>> Buffer::guarded() const {
  const auto end = static_cast<std::int64_t>(memory_.bytes() / 8), first = static_cast<std::int64_t>(start_ / 8),
             last = static_cast<std::int64_t>((start_ + bytes_) / 8);
  if (geometry_.axes > 0) return {{0, end}};
  return {{0, first}, {last, end}};
}

PatternParams Buffer::pattern_params(const std::array<std::int64_t, 2>& words) const {
  PatternParams out = {};
  out.region = reinterpret_cast<std::uint64_t*>(memory_.address());
  out.begin = words[0];
  out.end = words[1];
  out.start = static_cast<std::int64_t>(start_);
  out.bytes = static_cast<std::int64_t>(bytes_);
  out.geometry = geometry_;
  out.key = key_;
  out.element = 1;
  return out;
}

Result<> Buffer::fill(Context& context, std::uint64_t pattern, std::size_t element) {
  std::uint64_t repeated = 0;
  for (std::size_t i = 0; i < 8; ++i) repeated |= (pattern >> (8 * (i % element)) & 0xffu) << (8 * i);
  PatternParams params = pattern_params({static_cast<std::int64_t>(start_ / 8), static_cast<std::int64_t>((start_ + bytes_ + 7) / 8)});
  params.pattern = repeated;
  params.element = static_cast<std::int32_t>(element);
  params.fill = 1;
  return context.run("hone_pattern", params.end - params.begin, params);
}

Result<> Buffer::copy_from(Context& context, CUdeviceptr from) {
  if (geometry_.axes == 0) return check(cu.copy(data(), from, bytes_, context.stream), "restoring a tensor");
  RestoreParams params = {reinterpret_cast<unsigned char*>(data()), reinterpret_cast<const unsigned char*>(from),
                          static_cast<std::int64_t>(bytes_), geometry_};
  return context.run("hone_restore", params.bytes / 8 + 1, params);
}

Result<> Buffer::guard(Context& context, CUdeviceptr report) {
  for (const auto& words : guarded()) {
    GuardParams params = {};
    params.region = reinterpret_cast<std::uint64_t*>(memory_.address());
    params.begin = words[0];
    params.end = words[1];
    params.start = static_cast<std::int64_t>(start_);
    params.bytes = static_cast<std::int64_t>(bytes_);
    params.geometry = geometry_;
    params.key = key_;
    params.damage = reinterpret_cast<Damage*>(report);
    HONE_CHECK(context.run("hone_guard", words[1] - words[0], params));
  }
  return {};
}

}  // namespace hone::cuda
