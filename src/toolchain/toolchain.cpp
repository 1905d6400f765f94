#include "toolchain/toolchain.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "toolchain/cache.h"
#include "toolchain/compilers.h"
#include "toolchain/diagnostics.h"
#include "toolchain/kernel_name.h"

namespace hone {
namespace {

constexpr std::string_view kKeyVersion = "hone.artifact.key/1";   // a change of flags or layout below changes this
constexpr std::size_t kKeptOutput = std::size_t{256} << 10;
constexpr std::size_t kFlood = std::size_t{8} << 20;
constexpr std::size_t kLargestArtifact = std::size_t{256} << 20;

// Where a compile's folders lie for the compiler: in the jail, or on the host when the sandbox is off.
struct Layout {
  std::string src, include, out;
};

bool is_identifier(std::string_view name) {
  if (name.empty() || name.size() > 128 || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
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
  if (request.trusted) return {};
  if (!request.link.empty())
    return fail(ErrorKind::forbidden, "a candidate cannot link libraries ({})", request.link[0]);
  const auto& allowed = Toolchain::allowed_flags();
  for (const std::string& flag : request.flags)
    if (std::find(allowed.begin(), allowed.end(), flag) == allowed.end()) {
      const std::string near = nearest(flag, allowed);
      return fail(make_error(ErrorKind::forbidden, "compiler flag {} is not allowed", flag)
                      .with_hint(near.empty() ? "docs/candidate.md lists the allowed flags"
                                              : fmt::format("did you mean {}?", near)));
    }
  return {};
}

// The flags of the two steps. Linking is a step of its own, without the candidate's flags: g++ and
// clang++ answer -ffast-math and -Ofast at link time with crtfastmath.o, whose constructor turns
// on flush-to-zero for the process that loads the object, the runner: denormals would vanish for
// code that never asked for it.
std::vector<std::string> compile_flags(const CompileRequest& request, const Compiler& compiler) {
  std::vector<std::string> flags = {"-std=c++20", request.native ? "-O3" : "-O1"};
  if (request.native) flags.insert(flags.end(), {"-march=native", "-fno-semantic-interposition"});
  if (request.kind == ArtifactKind::shared_object) flags.insert(flags.end(), {"-g1", "-fPIC"});
  flags.insert(flags.end(), {"-pipe", "-ftemplate-depth=900"});
  if (compiler.is_clang())
    flags.insert(flags.end(), {"-fno-color-diagnostics", "-fno-caret-diagnostics", "-ferror-limit=20"});
  else
    flags.insert(flags.end(),
                 {"-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-fmax-errors=20", "-frandom-seed=hone"});
  for (const auto& [name, value] : request.defines) flags.push_back("-D" + name + "=" + value);
  flags.insert(flags.end(), request.flags.begin(), request.flags.end());
  return flags;
}

std::vector<std::string> link_flags(const CompileRequest& request) {
  // now: no lazy binding inside a timed call. defs: an undefined function is an error here, with its place.
  if (request.kind == ArtifactKind::executable) return {"-static", "-s"};
  std::vector<std::string> flags = {"-shared", "-static-libstdc++", "-static-libgcc", "-Wl,-z,defs,-z,now",
                                    "-Wl,--exclude-libs,ALL"};
  flags.insert(flags.end(), request.link.begin(), request.link.end());
  return flags;
}

// Takes the address of each kernel after the source, so that templates exist in the object.
std::string instantiating_source(const CompileRequest& request) {
  std::string text = fmt::format("#include \"{}\"\n#line 1 \"{}\"\n", request.entry, kKernelNames);
  for (std::size_t i = 0; i < request.instantiate.size(); ++i)
    text += fmt::format("[[gnu::used]] static auto* const hone_kernel_{} = &{};\n", i, request.instantiate[i]);
  return text;
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

struct StepResult {
  ProcessOutcome outcome;
  CompilerMessages messages;
};

// Why a step failed, when it did.
Result<> step_error(const StepResult& step, const CompileRequest& request, const fs::path& out) {
  const ProcessOutcome& outcome = step.outcome;
  const std::uint64_t dropped = outcome.out_dropped + outcome.err_dropped;
  const Place first = first_place(step.messages);
  if (outcome.flooded || dropped > kFlood) {
    Error error = make_error(ErrorKind::output_limit, "the compiler printed more than {} for {}",
                             format_bytes(kKeptOutput), request.entry);
    error.notes.push_back(fmt::format("truncated: {} bytes dropped", dropped));
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
  if (mentions(text, {"No space left on device", "Disk quota exceeded"}))
    return fail(io_error("write the compiler's output to", out, ENOSPC));
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

std::string hash_of(const SourceTree& sources) {
  FieldHash hash;
  for (const auto& [path, bytes] : sources) hash.add(path).add(bytes);
  return hash.hex();
}

const std::vector<std::string>& Toolchain::allowed_flags() {
  static const std::vector<std::string> flags = {"-O1",
                                                 "-O2",
                                                 "-O3",
                                                 "-Ofast",
                                                 "-ffast-math",
                                                 "-fno-fast-math",
                                                 "-fno-math-errno",
                                                 "-fno-trapping-math",
                                                 "-fno-signed-zeros",
                                                 "-fassociative-math",
                                                 "-freciprocal-math",
                                                 "-ffinite-math-only",
                                                 "-funsafe-math-optimizations",
                                                 "-ffp-contract=fast",
                                                 "-ffp-contract=off",
                                                 "-funroll-loops",
                                                 "-fno-unroll-loops",
                                                 "-ftree-vectorize",
                                                 "-fno-tree-vectorize",
                                                 "-fno-tree-slp-vectorize",
                                                 "-fvect-cost-model=unlimited",
                                                 "-fvect-cost-model=dynamic",
                                                 "-mprefer-vector-width=128",
                                                 "-mprefer-vector-width=256",
                                                 "-mprefer-vector-width=512",
                                                 "-mavx2",
                                                 "-mfma",
                                                 "-mno-avx512f",
                                                 "-fomit-frame-pointer",
                                                 "-fno-exceptions",
                                                 "-fno-rtti",
                                                 "-fstrict-aliasing",
                                                 "-fno-strict-aliasing",
                                                 "-fwrapv",
                                                 "-fno-schedule-insns",
                                                 "-fschedule-insns",
                                                 "-fno-schedule-insns2",
                                                 "-fno-ivopts",
                                                 "-fno-prefetch-loop-arrays",
                                                 "-fprefetch-loop-arrays",
                                                 "-finline-functions",
                                                 "-fno-inline",
                                                 "-falign-loops=32",
                                                 "-falign-loops=64",
                                                 "-fno-peel-loops",
                                                 "-fgcse-las",
                                                 "-fipa-pta",
                                                 "-Wall",
                                                 "-Wextra"};
  return flags;
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
  const std::vector<std::string> flags = compile_flags(request, compiler), linking = link_flags(request);
  const ArtifactCache cache(cache_);

  FieldHash hash;
  hash.add(kKeyVersion).add(compiler.identity).add(hash_of(headers)).add(hash_of(request.sources)).add(request.entry);
  // What was compiled without isolation is not served where isolation is asked for.
  hash.add(sandbox_->mode() == SandboxMode::on ? "jailed" : "open");
  hash.add(request.native ? native_target() : "portable")
      .add(request.kind == ArtifactKind::executable ? "executable" : "shared_object");
  for (const auto* list : {&flags, &linking, &request.instantiate}) {
    hash.add(std::to_string(list->size()));
    for (const std::string& each : *list) hash.add(each);
  }
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
  std::string unit = request.entry;
  if (!request.instantiate.empty()) {
    unit = std::string(kGenerated) + "instantiate.cpp";
    HONE_CHECK(write_scratch(src / unit, instantiating_source(request)));
  }
  const Layout inside = {"/hone/src", "/hone/include", "/hone/out"};
  const Layout at = jailed ? inside : Layout{src.string(), include_dir_.string(), out.string()};

  JailSpec jail;
  jail.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp", "HOME=/tmp", "SOURCE_DATE_EPOCH=0"};
  if (jailed) jail.mounts = {{src, at.src, false}, {include_dir_, at.include, false}, {out, at.out, true}};
  jail.cwd = at.src;
  jail.policy = SyscallPolicy::tools;
  jail.limits.memory_bytes = request.memory_bytes;
  jail.limits.file_bytes = kLargestArtifact;
  jail.limits.output_bytes = kKeptOutput;

  const double start = now_s();
  auto run_step = [&](std::vector<std::string> argv) -> Result<StepResult> {
    const double left = request.timeout_s - (now_s() - start);
    jail.limits.cpu_s = jail.limits.wall_s = std::max(left, 0.1);
    jail.argv = std::move(argv);
    HONE_TRY(ProcessOutcome outcome, sandbox_->run(jail));
    StepResult step{std::move(outcome), {}};
    step.messages = {step.outcome.err + step.outcome.out,
                     {at.src + "/", at.include + "/", at.out + "/"},
                     request.instantiate,
                     request.entry};
    HONE_CHECK(step_error(step, request, out));
    return step;
  };

  std::vector<std::string> argv = {compiler.info.path, "-c",      unit,  "-o",
                                   at.out + "/unit.o", "-MD",     "-MF", at.out + "/unit.d",
                                   "-I" + at.include,  "-iquote", at.src};
  if (!jailed)
    argv.insert(argv.end(), {"-ffile-prefix-map=" + at.src + "=" + inside.src,
                             "-ffile-prefix-map=" + at.include + "=" + inside.include});
  argv.insert(argv.end(), flags.begin(), flags.end());
  HONE_TRY(const StepResult compiled, run_step(argv));
  std::vector<std::string> link = {compiler.info.path, at.out + "/unit.o", "-o", at.out + "/artifact"};
  link.insert(link.end(), linking.begin(), linking.end());
  HONE_TRY(const StepResult linked, run_step(link));

  Artifact artifact;
  artifact.compiler = compiler.info.name + " " + compiler.info.version;
  artifact.command = argv;
  artifact.command.insert(artifact.command.end(), {"&&"});
  artifact.command.insert(artifact.command.end(), link.begin(), link.end());
  artifact.log = readable_log(compiled.messages) + readable_log(linked.messages);
  artifact.seconds = now_s() - start;
  std::error_code code;
  for (const char* file : {"artifact", "unit.d"})
    if (!fs::is_regular_file(fs::symlink_status(out / file, code)))
      return fail(
          make_error(ErrorKind::compile, "the compiler left no {} for {}", file, request.entry).at({request.entry}));
  HONE_TRY(const std::string bytes, read_file(out / "artifact", kLargestArtifact));
  HONE_TRY(const std::string dependencies, read_file(out / "unit.d", std::size_t{4} << 20));
  std::vector<std::string> system;
  for (std::string& header : system_headers(dependencies))
    if (!header.starts_with(at.src + "/") && !header.starts_with(at.include + "/") && !header.starts_with(at.out + "/"))
      system.push_back(std::move(header));
  return cache.publish(key, scratch, std::move(artifact), request.kind, bytes, system);
}

}  // namespace hone
