#include "device/cpu_subject.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/hash.h"
#include "base/process.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

constexpr const char* kContractKernels = R"(
#include <hone/kernel.h>
using hone::Block;
using std::int64_t;
static int64_t number(const Block& b) {
  return b.index.x + int64_t{b.grid.x} * (b.index.y + int64_t{b.grid.y} * b.index.z);
}
static int64_t blocks(const Block& b) { return int64_t{b.grid.x} * b.grid.y * b.grid.z; }
extern "C" {
void scale(const Block& b, const float* x, float* y, int64_t n) {
  for (int64_t i = number(b); i < n; i += blocks(b)) y[i] = 2 * x[i];
}
void copy(const Block& b, const float* x, float* y, int64_t n) {
  for (int64_t i = number(b); i < n; i += blocks(b)) y[i] = x[i];
}
void add_into(const Block&, const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] += x[i]; }
void half(const Block&, float* y, int64_t n) { for (int64_t i = 0; i < n / 2; ++i) y[i] = 1; }
void overrun(const Block&, float* y, int64_t n) { for (int64_t i = 0; i <= n; ++i) y[i] = 1; }
void nothing(const Block&) {}
void crash(const Block&) { *reinterpret_cast<volatile int*>(0) = 1; }
}
)";

}  // namespace

std::unique_ptr<CpuSubject> CpuSubject::make(SandboxMode mode, int workers) {
  const auto share = share_dir();
  if (!share) return nullptr;
  auto sandbox = Sandbox::create(mode, *share / "libexec");
  if (!sandbox) {
    std::printf("%s\n", to_text(sandbox.error()).c_str());
    return nullptr;
  }
  if (!sandbox->status().available) return nullptr;
  std::unique_ptr<CpuSubject> subject(new CpuSubject(*std::move(sandbox)));
  CpuDeviceOptions options;
  options.workers = workers;
  auto device = make_cpu_device(subject->sandbox_, *share / "libexec", options);
  if (!device) {
    std::printf("%s\n", to_text(device.error()).c_str());
    return nullptr;
  }
  subject->device_ = *std::move(device);
  return subject;
}

Result<fs::path> CpuSubject::compile(const std::string& source, const std::vector<std::string>& flags) {
  static const fs::path folder = scratch("objects");
  static std::map<std::string, fs::path> done;
  const std::string key = sha256(source);
  if (done.count(key) != 0) return done[key];
  const fs::path place = folder / key.substr(0, 16);
  HONE_CHECK(make_dirs(place));
  HONE_CHECK(write_file_atomic(place / "kernel.cpp", source));
  ProcessSpec spec;
  spec.argv = {
      "g++", "-std=c++20", "-O1",       "-g1", "-fPIC", "-shared", "-w", "-I", (source_dir() / "include").string(),
      "-o",  "kernel.so",  "kernel.cpp"};
  spec.argv.insert(spec.argv.end(), flags.begin(), flags.end());
  spec.env = {std::string("PATH=") + std::getenv("PATH"), "TMPDIR=" + place.string()};
  spec.cwd = place;
  HONE_TRY(const ProcessOutcome outcome, run_process(spec));
  if (!outcome.ok()) return fail(ErrorKind::compile, "{}", outcome.err);
  return done[key] = place / "kernel.so";
}

Result<Executable> CpuSubject::program(const std::string& name, Plan plan) {
  return program(name, std::move(plan), kContractKernels);
}

Result<Executable> CpuSubject::program(const std::string& name, Plan plan, const std::string& source) {
  HONE_TRY(const fs::path object, compile(source));
  ProcessSpec spec;
  spec.argv = {"nm", "-D", "--defined-only", object.string()};
  HONE_TRY(const ProcessOutcome outcome, run_process(spec));
  std::map<std::string, std::uint64_t> symbols;
  std::istringstream lines(outcome.out);
  for (std::string address, type, symbol; lines >> address >> type >> symbol;)
    symbols[symbol] = std::strtoull(address.c_str(), nullptr, 16);
  Executable executable;
  executable.name = name;
  executable.modules = {{object}};
  for (const PlanStep& step : plan.launches) {
    const auto* launch = std::get_if<PlanLaunch>(&step);
    if (launch != nullptr && symbols.count(launch->kernel) == 0)
      return fail(ErrorKind::kernel_name, "no kernel {}", launch->kernel);
    executable.entry.push_back(launch == nullptr ? KernelEntry{} : KernelEntry{symbols[launch->kernel], {}});
  }
  executable.plan = std::move(plan);
  return executable;
}

}  // namespace hone::testing
