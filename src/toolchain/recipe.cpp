#include "toolchain/recipe.h"

#include <algorithm>

#include "base/text.h"
#include "toolchain/diagnostics.h"

namespace hone {
namespace {

using Words = std::vector<std::string>;

void append(Words& to, const Words& words) { to.insert(to.end(), words.begin(), words.end()); }

constexpr std::string_view kAssembler = "-Xptxas=";

// `pattern` ends in "=N" where any number of up to three digits is meant.
bool fits(std::string_view pattern, std::string_view flag) {
  if (!pattern.ends_with("=N")) return pattern == flag;
  const std::string_view head = pattern.substr(0, pattern.size() - 1);
  if (!flag.starts_with(head)) return false;
  flag.remove_prefix(head.size());
  return !flag.empty() && flag.size() <= 3 && std::all_of(flag.begin(), flag.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Linking is a step of its own, without the candidate's flags: g++ and clang++ answer -ffast-math and
// -Ofast at link time with crtfastmath.o, whose constructor turns on flush-to-zero for the process
// that loads the object, the runner: denormals would vanish for code that never asked for it.
Recipe host_recipe(const CompileRequest& request, const Compiler& compiler, const Layout& at) {
  Words compile = {compiler.info.path, "-c",      unit_of(request), "-o",
                   at.out + "/unit.o", "-MD",     "-MF",            at.out + "/unit.d",
                   "-I" + at.include,  "-iquote", at.src};
  for (const std::string& folder : at.includes) append(compile, {"-isystem", folder});
  if (!at.jailed) append(compile, {"-ffile-prefix-map=" + at.src + "=/hone/src", "-ffile-prefix-map=" + at.include + "=/hone/include"});
  append(compile, {"-std=c++20", request.native ? "-O3" : "-O1"});
  if (request.native) append(compile, {"-march=native", "-fno-semantic-interposition"});
  // DWARF 4: of version 5 binutils 2.40 reads the unit's own name for a file that the unit includes.
  if (request.kind == ArtifactKind::shared_object) append(compile, {"-g1", "-gdwarf-4", "-fPIC"});
  append(compile, {"-pipe", "-ftemplate-depth=900"});
  if (compiler.is_clang()) append(compile, {"-fno-color-diagnostics", "-fno-caret-diagnostics", "-ferror-limit=20"});
  else append(compile, {"-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-fmax-errors=20", "-frandom-seed=hone"});
  for (const auto& [name, value] : request.defines) compile.push_back("-D" + name + "=" + value);
  append(compile, request.flags);

  Words link = {compiler.info.path, at.out + "/unit.o", "-o", at.out + "/artifact"};
  // now: no lazy binding inside a timed call. defs: an undefined function is an error here, with its place.
  if (request.kind == ArtifactKind::executable) append(link, {"-static", "-s"});
  else append(link, {"-shared", "-static-libstdc++", "-static-libgcc", "-Wl,-z,defs,-z,now", "-Wl,--exclude-libs,ALL"});
  append(link, request.link);
  return {{compile, link}, false};
}

// "sm_90a" as nvcc names the virtual architecture: "compute_90a".
std::string virtual_architecture(const std::string& architecture) { return "compute_" + architecture.substr(3); }

Words cuda_front_end(const CompileRequest& request, const Layout& at) {
  Words words = {at.toolkit + "/bin/nvcc", "-ccbin", "/usr/bin/g++", unit_of(request), "-MD", "-MF", at.out + "/unit.d",
                 "-I" + at.include, "-Xcompiler=-fno-diagnostics-show-caret,-iquote," + at.src, "-std=c++20", "-O3", "-lineinfo"};
  for (const std::string& folder : at.includes) append(words, {"-isystem", folder});
  for (const auto& [name, value] : request.defines) words.push_back("-D" + name + "=" + value);
  return words;
}

// Device code alone: the front end makes PTX, ptxas the cubin from those very bytes. No host code of
// the source is compiled, let alone run.
Recipe cubin_recipe(const CompileRequest& request, const Layout& at) {
  Words front = cuda_front_end(request, at);
  append(front, {"-ptx", "-arch=" + virtual_architecture(request.architecture), "-o", at.out + "/unit.ptx"});
  Words assemble = {at.toolkit + "/bin/ptxas", "-v", "-O3", "-lineinfo", "-arch=" + request.architecture};
  for (const std::string& flag : request.flags) {
    if (flag.starts_with(kAssembler)) {
      assemble.push_back(flag.substr(kAssembler.size()));
      continue;
    }
    front.push_back(flag);
    if (flag.starts_with("-maxrregcount=") || flag.starts_with("--fmad=")) assemble.push_back(flag);
  }
  append(assemble, {at.out + "/unit.ptx", "-o", at.out + "/artifact"});
  return {{front, assemble}, true};
}

// Trusted code with kernels of its own: an ordinary shared object. The run time is linked in where the
// toolkit has it as an archive, so that only the driver is needed to load the object.
Recipe cuda_object_recipe(const CompileRequest& request, const Compiler& compiler, const Layout& at) {
  const std::string target = "-gencode=arch=" + virtual_architecture(request.architecture) + ",code=" + request.architecture;
  Words compile = cuda_front_end(request, at);
  append(compile, {"-c", target, "-Xcompiler=-fPIC", "-o", at.out + "/unit.o"});
  append(compile, request.flags);
  Words link = {at.toolkit + "/bin/nvcc", "-ccbin", "/usr/bin/g++", at.out + "/unit.o", "-shared", target,
                compiler.static_runtime ? "--cudart=static" : "--cudart=shared", "-Xcompiler=-static-libstdc++,-static-libgcc",
                "-Xlinker=-z,defs,-z,now,--exclude-libs,ALL", "-o", at.out + "/artifact"};
  append(link, request.link);
  return {{compile, link}, false};
}

const Words& host_flags() {
  static const Words flags = {"-O1",
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

const Words& cuda_flags() {
  static const Words flags = {"--use_fast_math",
                              "--fmad=true",
                              "--fmad=false",
                              "-ftz=true",
                              "-ftz=false",
                              "-prec-div=true",
                              "-prec-div=false",
                              "-prec-sqrt=true",
                              "-prec-sqrt=false",
                              "-maxrregcount=N",
                              "--expt-relaxed-constexpr",
                              "--extended-lambda",
                              "--extra-device-vectorization",
                              "--restrict",
                              "-Xcicc=-O0",
                              "-Xcicc=-O1",
                              "-Xcicc=-O2",
                              "-Xcicc=-O3",
                              "-Xptxas=-O0",
                              "-Xptxas=-O1",
                              "-Xptxas=-O2",
                              "-Xptxas=-O3",
                              "-Xptxas=-dlcm=ca",
                              "-Xptxas=-dlcm=cg",
                              "-Xptxas=-dlcm=cs",
                              "-Xptxas=-dlcm=cv",
                              "-Xptxas=-dscm=wb",
                              "-Xptxas=-dscm=cg",
                              "-Xptxas=-dscm=cs",
                              "-Xptxas=-dscm=wt",
                              "-Xptxas=--allow-expensive-optimizations=true",
                              "-Xptxas=--allow-expensive-optimizations=false",
                              "-Xptxas=--disable-optimizer-constants",
                              "-Xptxas=--dont-merge-basicblocks",
                              "-Xptxas=--optimize-float-atomics",
                              "-Xptxas=--register-usage-level=N",
                              "-Xptxas=--warn-on-double-precision-use"};
  return flags;
}

}  // namespace

Recipe recipe_of(const CompileRequest& request, const Compiler& compiler, const Layout& layout) {
  if (!compiler.is_nvcc()) return host_recipe(request, compiler, layout);
  return request.kind == ArtifactKind::cubin ? cubin_recipe(request, layout) : cuda_object_recipe(request, compiler, layout);
}

std::string unit_of(const CompileRequest& request) {
  if (request.instantiate.empty()) return request.entry;
  return std::string(kGenerated) + (request.compiler == "nvcc" ? "instantiate.cu" : "instantiate.cpp");
}

std::string instantiating_source(const CompileRequest& request) {
  std::string text = fmt::format("#include \"{}\"\n#line 1 \"{}\"\n", request.entry, kKernelNames);
  for (std::size_t i = 0; i < request.instantiate.size(); ++i)
    text += fmt::format("[[gnu::used]] static auto* const hone_kernel_{} = &{};\n", i, request.instantiate[i]);
  return text;
}

Result<> check_flag(std::string_view compiler, const std::string& flag) {
  const Words& allowed = Toolchain::allowed_flags(compiler);
  if (std::any_of(allowed.begin(), allowed.end(), [&](const std::string& each) { return fits(each, flag); })) return {};
  const std::string near = nearest(flag, allowed);
  return fail(make_error(ErrorKind::forbidden, "compiler flag {} is not allowed", flag)
                  .with_hint(near.empty() ? "docs/candidate.md lists the allowed flags" : fmt::format("did you mean {}?", near)));
}

const std::vector<std::string>& Toolchain::allowed_flags(std::string_view compiler) {
  return compiler == "nvcc" ? cuda_flags() : host_flags();
}

}  // namespace hone
