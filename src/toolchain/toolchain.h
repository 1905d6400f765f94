// Compilers for candidates and trusted task code, behind a content-addressed cache.
//
// The cache key covers every byte that the result depends on: sources, macros, flags, the
// compiler's version and its target (for -march=native the CPU's, for nvcc the architecture), Hone's
// public headers. An entry
// appears by rename, whole and verified; a killed process leaves at most a scratch folder, which
// the next one sweeps. One compile of a key runs at a time, across processes.
#ifndef HONE_TOOLCHAIN_TOOLCHAIN_H
#define HONE_TOOLCHAIN_TOOLCHAIN_H

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fs.h"
#include "sandbox/sandbox.h"
#include "toolchain/resources.h"

namespace hone {

// File contents by relative path: the very bytes that are hashed, compiled and named in a receipt.
using SourceTree = std::map<std::string, std::string>;
std::string hash_of(const SourceTree& sources);

// cubin: device code of a .cu file, with the PTX that it was made from. nvcc only.
enum class ArtifactKind { shared_object, executable, cubin };
std::string_view name_of(ArtifactKind kind);

struct CompileRequest {
  SourceTree sources;
  std::string entry;                                        // "kernel.cpp"
  std::vector<std::pair<std::string, std::string>> defines; // -Dname=value
  std::vector<std::string> instantiate;  // template-ids whose address is taken after the source: "gemm<3, 4>"
  std::string compiler = "g++";                             // g++, clang++ or nvcc
  std::string architecture;                                 // nvcc: "sm_90a"
  std::vector<std::string> flags;                           // checked against the allow-list, unless trusted
  std::vector<std::string> link;                            // trusted only: "-ldnnl"
  std::vector<fs::path> includes;                           // trusted only: further folders of headers, absolute
  ArtifactKind kind = ArtifactKind::shared_object;
  bool native = true;                                       // -O3 -march=native; else -O1 and portable
  bool trusted = false;                                     // task code: any flag, headers of the system
  double timeout_s = 60;
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
};

struct Artifact {
  fs::path path;              // in the cache; read-only, never changes
  std::string sha256;         // of the bytes at path
  std::string key;
  std::string compiler;       // "g++ 12.2.0"
  std::vector<std::string> command;   // as run, inside the jail
  std::string log;            // the compiler's warnings
  fs::path ptx;               // cubin: the PTX that it was made from, beside it
  std::vector<KernelResources> resources;   // cubin: of each kernel
  std::vector<std::string> warnings;        // cubin: spills, local memory, what the assembler warns of
  double seconds = 0;         // of the compile itself
  bool cached = false;        // this call compiled nothing
};

struct CompilerInfo {
  std::string name, path, version;
  std::string root = {};      // nvcc: the toolkit's, links resolved
  std::string source = {};    // where it was found: "system", "HONE_CUDA", ...
};

// Where `hone toolchain add` puts toolkits, each by its name: <toolchains_dir()>/cuda/bin/nvcc.
fs::path toolchains_dir();

class Toolchain {
 public:
  static Result<Toolchain> create(const Sandbox& sandbox, const fs::path& cache, const fs::path& include_dir);

  // Errors: compile (located at the first error, compiler output in the notes, paths as the
  // candidate knows them), timeout, out_of_memory, output_limit, forbidden (a flag or include that
  // is not allowed), no_compiler, io (disk full).
  Result<Artifact> compile(const CompileRequest& request) const;

  static std::vector<CompilerInfo> compilers();   // of host code, those that are there
  static std::vector<CompilerInfo> cuda_compilers();   // every nvcc that is found, the one in use first
  // g++, clang++ or nvcc. Kind no_compiler.
  static Result<CompilerInfo> compiler(const std::string& name);
  // For candidates. An entry that ends in "=N" stands for a number.
  static const std::vector<std::string>& allowed_flags(std::string_view compiler);

 private:
  Toolchain(const Sandbox& sandbox, fs::path cache, fs::path include_dir)
      : sandbox_(&sandbox), cache_(std::move(cache)), include_dir_(std::move(include_dir)) {}
  const Sandbox* sandbox_;
  fs::path cache_, include_dir_;
};

}  // namespace hone

#endif
