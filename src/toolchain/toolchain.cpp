#include "toolchain/toolchain.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "toolchain/cache.h"
#include "toolchain/compilers.h"
#include "toolchain/cubin.h"
#include "toolchain/diagnostics.h"
#include "toolchain/kernel_name.h"
#include "toolchain/recipe.h"

namespace hone {
namespace {

constexpr std::string_view kKeyVersion = "hone.artifact.key/2";   // a change of flags or layout below changes this
constexpr std::size_t kKeptOutput = std::size_t{256} << 10;
constexpr std::size_t kFlood = std::size_t{8} << 20;
constexpr std::uintmax_t kRoom = std::uintmax_t{64} << 20;   // a disk with this much left is not full
constexpr std::size_t kLargestArtifact = std::size_t{256} << 20;

bool is_identifier(std::string_view name) {
  if (name.empty() || name.size() > 128 || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_architecture(std::string_view name) {
  if (!name.starts_with("sm_") || name.size() > 8) return false;
  name.remove_prefix(3);
  if (name.ends_with('a') || name.ends_with('f')) name.remove_suffix(1);
  return name.size() >= 2 && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<> check_request(const CompileRequest& request) {
  for (const auto& [path, bytes] : request.sources)
    if (path.empty() || path.starts_with('/') || fs::path(path).lexically_normal().generic_string() != path ||
        path.starts_with(".."))
      return fail(ErrorKind::contract, "source file name `{}` is not a plain relative path", path);
  if (!request.sources.contains(request.entry))
    return fail(ErrorKind::not_found, "{} is not among the sources", request.entry);
  for (const auto& [name, value] : request.defines) {
    if (!is_identifier(name)) return fail(ErrorKind::contract, "macro name `{}` is not an identifier", name);
    if (value.size() > 1024 ||
        std::any_of(value.begin(), value.end(), [](char c) { return c == '\n' || c == '\0' || c == '\r'; }))
      return fail(ErrorKind::contract, "the value of macro {} is too long or holds a line break", name);
  }
  for (const std::string& kernel : request.instantiate) HONE_CHECK(check_kernel_name(kernel));
  const bool cuda = request.compiler == "nvcc";
  if (cuda && !is_architecture(request.architecture))
    return fail(make_error(ErrorKind::contract, "`{}` is no GPU architecture", request.architecture).with_hint("name one such as sm_90a"));
  // What nvcc makes of a candidate's host code would run beside the device: device code only.
  const bool cubin = request.kind == ArtifactKind::cubin;
  if (cuda ? request.kind == ArtifactKind::executable || (!request.trusted && !cubin) : cubin)
    return fail(ErrorKind::internal, "{} does not make such an artifact of {}", request.compiler, request.entry);
  if (request.trusted) return {};
  if (!request.link.empty())
    return fail(ErrorKind::forbidden, "a candidate cannot link libraries ({})", request.link[0]);
  if (!request.includes.empty())
    return fail(ErrorKind::forbidden, "a candidate cannot include headers of {}", request.includes[0].string());
  for (const std::string& flag : request.flags) HONE_CHECK(check_flag(request.compiler, flag));
  return {};
}

bool mentions(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// A scratch file: no sync, a crash leaves nothing that anybody reads.
Result<> write_scratch(const fs::path& path, std::string_view bytes) {
  HONE_CHECK(make_dirs(path.parent_path()));
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  return fail(io_error("write", path, errno != 0 ? errno : EIO));
}

// PTX names source files by absolute paths, and nvcc has no -ffile-prefix-map.
Result<> rename_folder(const fs::path& file, const std::string& from, const std::string& to) {
  HONE_TRY(std::string text, read_file(file, kLargestArtifact));
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return write_scratch(file, text);
}

struct StepResult {
  ProcessOutcome outcome;
  CompilerMessages messages;
};

// Why a step failed, when it did.
Result<> step_error(const StepResult& step, const CompileRequest& request, const fs::path& out) {
  const ProcessOutcome& outcome = step.outcome;
  const Place first = first_place(step.messages);
  if (outcome.flooded) {
    Error error = make_error(ErrorKind::output_limit, "the compiler printed more than {} for {}",
                             format_bytes(kKeptOutput), request.entry);
    error.notes.push_back(fmt::format("truncated: {} bytes dropped", outcome.out_dropped + outcome.err_dropped));
    return fail(std::move(error).at(first).with_hint("remove the messages; the first one is at the place given"));
  }
  if (outcome.cancelled) return fail(ErrorKind::cancelled, "compiling {} was cancelled", request.entry);
  const std::string_view text = step.messages.text;
  if (outcome.timed_out || outcome.signal == SIGXCPU || mentions(text, {"CPU time limit exceeded"}))
    return fail(make_error(ErrorKind::timeout, "compiling {} took longer than {}", request.entry,
                           format_duration(request.timeout_s))
                    .at({request.entry})
                    .with_hint("fewer template instantiations or less unrolling compile faster"));
  if (outcome.ok()) return {};
  if (mentions(text, {"No space left on device", "Disk quota exceeded"})) {
    // A jail's /tmp is small: there it is the source that grew, and no disk is full.
    std::error_code code;
    if (const fs::space_info space = fs::space(out, code); !code && space.available > kRoom)
      return fail(make_error(ErrorKind::output_limit, "the compiler's temporary files for {} are too large", request.entry)
                      .at({request.entry})
                      .with_hint("the source grows too much when macros are expanded"));
    return fail(io_error("write the compiler's output to", out, ENOSPC));
  }
  if (mentions(text, {"out of memory", "virtual memory exhausted", "Cannot allocate memory", "std::bad_alloc",
                      "Killed signal terminated program"}) ||
      outcome.signal == SIGKILL)
    return fail(make_error(ErrorKind::out_of_memory, "the compiler reached the memory limit of {} on {}",
                           format_bytes(request.memory_bytes), request.entry)
                    .at({request.entry}));
  if (mentions(text, {"File size limit exceeded"}) || outcome.signal == SIGXFSZ)
    return fail(make_error(ErrorKind::output_limit, "the compiler's output for {} is too large", request.entry)
                    .at({request.entry}));
  Error error = compile_error(step.messages);
  if (outcome.signal != 0) error.notes.push_back(fmt::format("the compiler died of signal {}", outcome.signal));
  return fail(std::move(error));
}

}  // namespace

std::string_view name_of(ArtifactKind kind) {
  return std::array<std::string_view, 3>{"shared_object", "executable", "cubin"}[static_cast<std::size_t>(kind)];
}

std::string hash_of(const SourceTree& sources) {
  FieldHash hash;
  for (const auto& [path, bytes] : sources) hash.add(path).add(bytes);
  return hash.hex();
}

Result<Toolchain> Toolchain::create(const Sandbox& sandbox, const fs::path& cache, const fs::path& include_dir) {
  std::error_code code;
  const fs::path include = fs::canonical(include_dir, code);  // a build tree's is a link, which a jail would not follow
  if (code || !fs::exists(include / "hone/kernel.h", code))
    return fail(
        make_error(ErrorKind::environment, "Hone's headers are missing: no hone/kernel.h in {}", include_dir.string())
            .with_hint("copy share/hone together with the binary, or set HONE_SHARE"));
  HONE_CHECK(make_dirs(cache));
  return Toolchain(sandbox, fs::absolute(cache, code), include);
}

Result<Artifact> Toolchain::compile(const CompileRequest& request) const {
  HONE_CHECK(check_request(request));
  HONE_TRY(const Compiler compiler, find_compiler(request.compiler));
  HONE_TRY(const SourceTree headers, read_tree(include_dir_));
  const ArtifactCache cache(cache_);
  // What the compiler is told in a jail: outside one only folders differ.
  Layout inside = {"/hone/src", "/hone/include", "/hone/out", compiler.in_system() ? compiler.info.root : "/hone/cuda", true};
  for (std::size_t i = 0; i < request.includes.size(); ++i) inside.includes.push_back(fmt::format("/hone/headers/{}", i));

  FieldHash hash;
  hash.add(kKeyVersion).add(compiler.identity).add(hash_of(headers)).add(hash_of(request.sources)).add(request.entry);
  // What was compiled without isolation is not served where isolation is asked for.
  hash.add(sandbox_->mode() == SandboxMode::on ? "jailed" : "open");
  hash.add(request.native && !compiler.is_nvcc() ? native_target() : "portable").add(name_of(request.kind));
  auto add_all = [&](const std::vector<std::string>& list) {
    hash.add(std::to_string(list.size()));
    for (const std::string& each : list) hash.add(each);
  };
  add_all(request.instantiate);
  for (const fs::path& folder : request.includes) hash.add(folder.string());   // each entry knows the files that it read
  for (const auto& step : recipe_of(request, compiler, inside).steps) add_all(step);
  const std::string key = hash.hex();

  if (auto hit = cache.find(key)) return *std::move(hit);
  HONE_TRY(const FileLock lock, cache.lock(key));
  if (auto hit = cache.find(key)) return *std::move(hit);   // another one has compiled it meanwhile
  cache.sweep(key);
  HONE_TRY(const fs::path scratch, cache.scratch(key));
  const struct Remover {
    const fs::path& path;
    ~Remover() { (void)remove_tree(path); }
  } remover{scratch};

  const bool jailed = sandbox_->mode() == SandboxMode::on;
  const fs::path src = scratch / "src", out = scratch / "out";
  for (const auto& [path, bytes] : request.sources) HONE_CHECK(write_scratch(src / path, bytes));
  HONE_CHECK(make_dirs(out));
  if (!request.instantiate.empty()) HONE_CHECK(write_scratch(src / unit_of(request), instantiating_source(request)));
  Layout at = inside;
  if (!jailed) {
    at = {src.string(), include_dir_.string(), out.string(), compiler.info.root, false};
    for (const fs::path& folder : request.includes) at.includes.push_back(folder.string());
  }

  JailSpec jail;
  jail.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp", "HOME=/tmp", "SOURCE_DATE_EPOCH=0"};
  if (jailed) jail.mounts = {{src, at.src, false}, {include_dir_, at.include, false}, {out, at.out, true}};
  if (jailed && !compiler.in_system()) jail.mounts.push_back({compiler.info.root, at.toolkit, false});
  for (std::size_t i = 0; jailed && i < request.includes.size(); ++i) jail.mounts.push_back({request.includes[i], at.includes[i], false});
  jail.cwd = at.src;
  jail.policy = SyscallPolicy::tools;
  jail.limits.memory_bytes = request.memory_bytes;
  jail.limits.file_bytes = kLargestArtifact;
  jail.limits.output_bytes = kKeptOutput;
  jail.limits.flood_bytes = kFlood;

  const double start = now_s();
  auto run_step = [&](const std::vector<std::string>& argv) -> Result<StepResult> {
    const double left = request.timeout_s - (now_s() - start);
    jail.limits.cpu_s = jail.limits.wall_s = std::max(left, 0.1);
    jail.argv = argv;
    HONE_TRY(ProcessOutcome outcome, sandbox_->run(jail));
    StepResult step{std::move(outcome), {}};
    step.messages = {step.outcome.err + step.outcome.out,
                     {at.src + "/", at.include + "/", at.out + "/"},
                     request.instantiate,
                     request.entry,
                     {}};
    // The assembler's messages name lines of PTX, which name lines of the source.
    if (!step.outcome.ok() && request.kind == ArtifactKind::cubin)
      if (auto ptx = read_file(out / "unit.ptx", kLargestArtifact)) step.messages.ptx = *std::move(ptx);
    HONE_CHECK(step_error(step, request, out));
    if (!jailed && request.kind == ArtifactKind::cubin) HONE_CHECK(rename_folder(out / "unit.ptx", at.src, inside.src));
    return step;
  };

  Artifact artifact;
  artifact.compiler = compiler.info.name + " " + compiler.info.version;
  const Recipe recipe = recipe_of(request, compiler, at);
  for (const std::vector<std::string>& argv : recipe.steps) {
    const bool assembles = recipe.assembles && &argv == &recipe.steps.back();
    if (assembles && jailed) {
      // ptxas writes the time of every source file that it can see into the line table.
      std::erase_if(jail.mounts, [&](const JailMount& each) {
        return each.inside == at.src || each.inside == at.include || each.inside.starts_with("/hone/headers/");
      });
      jail.cwd = at.out;
    }
    if (!artifact.command.empty()) artifact.command.emplace_back("&&");
    artifact.command.insert(artifact.command.end(), argv.begin(), argv.end());
    HONE_TRY(const StepResult step, run_step(argv));
    if (assembles) {
      AssemblerReport report = read_assembler_report(step.messages.text);
      artifact.resources = std::move(report.kernels);
      artifact.warnings = std::move(report.warnings);
    } else {
      artifact.log += readable_log(step.messages);
    }
  }
  artifact.seconds = now_s() - start;
  std::error_code code;
  for (const char* file : {"artifact", "unit.d"})
    if (!fs::is_regular_file(fs::symlink_status(out / file, code)))
      return fail(
          make_error(ErrorKind::compile, "the compiler left no {} for {}", file, request.entry).at({request.entry}));
  HONE_TRY(const std::string bytes, read_file(out / "artifact", kLargestArtifact));
  HONE_TRY(const std::string dependencies, read_file(out / "unit.d", std::size_t{4} << 20));
  std::string ptx;
  if (request.kind == ArtifactKind::cubin) {
    HONE_TRY(ptx, read_file(out / "unit.ptx", kLargestArtifact));
    HONE_TRY(const auto kernels, kernels_of_cubin(bytes));
    for (KernelResources& each : artifact.resources)
      for (const CubinKernel& kernel : kernels)
        if (kernel.symbol == each.symbol) {
          each.constant_bytes = kernel.constant_bytes;
          each.max_threads = kernel.max_threads;
        }
  }
  std::vector<std::string> system;
  for (std::string& header : system_headers(dependencies)) {
    if (header.starts_with(at.src + "/") || header.starts_with(at.include + "/") || header.starts_with(at.out + "/")) continue;
    if (header.starts_with(at.toolkit + "/") && compiler.is_nvcc()) header.replace(0, at.toolkit.size(), compiler.info.root);
    for (std::size_t i = 0; i < at.includes.size(); ++i)
      if (header.starts_with(at.includes[i] + "/")) header.replace(0, at.includes[i].size(), request.includes[i].string());
    system.push_back(std::move(header));
  }
  return cache.publish(key, scratch, std::move(artifact), {request.kind, bytes, ptx}, system);
}

}  // namespace hone
