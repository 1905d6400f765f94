#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/process.h"
#include "base/text.h"
#include "cli/facts.h"
#include "cli/verb.h"
#include "supply/add.h"
#include "toolchain/compilers.h"
#include "toolchain/headers.h"

namespace hone::cli {
namespace {

using nlohmann::json;

struct Row {
  std::string name, version, path, purpose, source;
  bool used = true;                  // false: another of its name comes first
};

Row disassembler(const std::string& name, const fs::path& path, const std::string& purpose) {
  return {name, path.empty() ? "" : version_of(path.string()), path.string(), purpose, ""};
}

std::vector<Row> rows() {
  std::vector<Row> out;
  const auto known = [&](const char* name, const std::vector<CompilerInfo>& found, const std::string& purpose) {
    const std::size_t before = out.size();
    for (const CompilerInfo& each : found)
      if (each.name == name) out.push_back({each.name, each.version, each.path, purpose, each.source, out.size() == before});
    if (out.size() == before) out.push_back({name, "", "", purpose, ""});
  };
  const std::vector<CompilerInfo> host = Toolchain::compilers(), cuda = Toolchain::cuda_compilers();
  known("g++", host, "candidates, plans and tasks; nvcc's host compiler");
  known("clang++", host, "candidates that ask for it");
  known("nvcc", cuda, "CUDA candidates and tasks");
  out.push_back(disassembler("nvdisasm", find_cuda_program("nvdisasm"), "SASS and its source lines in `hone inspect`"));
  out.push_back(disassembler("cuobjdump", find_cuda_program("cuobjdump"), "SASS in `hone inspect` without nvdisasm"));
  for (const HeaderPackage& package : header_packages()) {
    const auto include = find_headers(package);
    out.push_back({std::string(package.name), include ? version_of(package, *include) : "", include ? include->string() : "", "a baseline of grouped_gemm_fp8", ""});
  }
  out.push_back(disassembler("objdump", find_program("objdump"), "machine code of CPU candidates in `hone inspect`"));
  return out;
}

std::string mend_of(const std::string& name) {
  if (name == "nvcc" || name == "nvdisasm" || name == "cuobjdump") return "hone toolchain add cuda";
  if (const HeaderPackage* package = find_header_package(name)) return named_place(*package) ? find_headers(*package).error().hint : "hone toolchain add " + name;
  return "apt-get install " + (name == "clang++" ? std::string("clang") : name == "objdump" ? std::string("binutils") : name);
}

Result<int> list(const Global& global) {
  json all = json::array();
  for (const Row& row : rows()) {
    const auto text = [](const std::string& value) { return value.empty() ? json() : json(value); };
    all.push_back({{"name", row.name},
                   {"version", text(row.version)},
                   {"path", text(row.path)},
                   {"for", row.purpose},
                   {"source", text(row.path.empty() ? "" : row.source)},
                   {"found", !row.path.empty()},
                   {"used", !row.path.empty() && row.used},
                   {"mend", row.path.empty() ? json(mend_of(row.name)) : json()}});
    if (global.json) continue;
    if (row.path.empty()) fmt::print("{:<10} {:<10} {}; mend: {}\n", row.name, "missing", row.purpose, mend_of(row.name));
    else
      fmt::print("{:<10} {:<10} {}{}: {}\n", row.name, row.version, row.path,
                 row.source.empty() ? "" : " (" + row.source + ")",
                 row.used ? row.purpose : "found later than the one above");
  }
  if (global.json)
    fmt::print("{}\n", json{{"schema", "hone.toolchain/1"}, {"tools", std::move(all)}}.dump(
                           2, ' ', false, json::error_handler_t::replace));
  return 0;
}

// What compilers and tasks take now, which another place may come before: nvcc, or a header package.
struct InUse {
  std::string path, source;
  fs::path root;
};

std::optional<InUse> in_use(const Toolkit& toolkit) {
  if (const HeaderPackage* package = find_header_package(toolkit.name)) {
    const auto include = find_headers(*package);
    if (!include) return std::nullopt;
    const auto named = named_place(*package);
    return InUse{include->string(), std::string(named ? package->variable : "added"), fs::weakly_canonical(named.value_or(place_of(*package)))};
  }
  const auto found = Toolchain::compiler("nvcc");
  if (!found) return std::nullopt;
  return InUse{found->path, found->source, found->root};
}

Result<int> add(const Global& global, const std::string& name, const std::string& flag) {
  const Toolkit& toolkit = *find_toolkit(name);
#if !defined(__x86_64__)
  return fail(make_error(ErrorKind::environment, "{} is only pinned for x86-64", toolkit.name)
                  .with_hint(toolkit.variable + " can name the root of an installed one"));
#endif
  const char* environment = std::getenv("HONE_INDEX");
  AddOptions options;
  options.index = !flag.empty() ? flag : environment != nullptr && *environment != '\0' ? environment : kDefaultIndex;
  options.toolchains = toolchains_dir();
  options.progress = progress_printer(global);
  options.cancel = &interrupted();
  // Said before anything is fetched, even with --quiet: it is no progress.
  if (!is_added(toolkit, options.toolchains))
    fmt::print(
        stderr,
        "{} {} is not part of Hone. It comes under: {}\n  {}\nBy using it you accept that. {} to fetch from {}\n",
        toolkit.name, toolkit.version, toolkit.licence, toolkit.licence_url, format_bytes(toolkit.download_bytes()),
        options.index);
  const auto made = add_toolkit(toolkit, options);
  if (!made && made.error().kind == ErrorKind::cancelled)
    return fail(Error(made.error()).with_hint("`hone toolchain add " + toolkit.name + "` goes on from here"));
  HONE_TRY(const Added added, made);
  end_progress();
  const auto used = in_use(toolkit);
  const bool other = used && used->root != fs::weakly_canonical(added.root);
  if (global.json) {
    json out = {{"schema", "hone.toolchain_add/1"},   {"name", toolkit.name},
                {"version", toolkit.version},         {"root", added.root.string()},
                {"was_there", added.was_there},       {"licence", toolkit.licence},
                {"licence_url", toolkit.licence_url}, {"licences", (added.root / "licenses").string()}, {"in_use", used ? json(used->path) : json()}};
    fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{} {} {} {}\n", toolkit.name, toolkit.version, added.was_there ? "is already in" : "is in", added.root.string());
  fmt::print("its licences: {}\n", (added.root / "licenses").string());
  if (other)
    fmt::print("in use is {} ({}); {}={} takes the new one\n", used->path, used->source, toolkit.variable, added.root.string());
  return 0;
}

}  // namespace

void define_toolchain(CLI::App& app, Invocation& invocation) {
  app.require_subcommand(1);
  add_command(app, invocation, "list", "every compiler that is found, and for what", "hone toolchain list",
              [&invocation] { return list(invocation.global); });
  struct Options {
    std::string name, index;
  };
  auto options = std::make_shared<Options>();
  std::vector<std::string> names;
  for (const Toolkit* each : toolkits()) names.push_back(each->name);
  CLI::App* adding = add_command(app, invocation, "add", "fetch a compiler or a baseline's headers into Hone's data folder", "hone toolchain add cuda",
                                 [&invocation, options] { return add(invocation.global, options->name, options->index); });
  adding->add_option("name", options->name, "what to fetch: cuda (NVIDIA's nvcc with what it needs, 128 MiB) or deepgemm (headers of the FP8 baseline, 5 MiB)")
      ->required()
      ->check(CLI::IsMember(names));
  adding->add_option("--index", options->index,
                     "package index (PEP 503) to fetch from (default: HONE_INDEX, then https://pypi.org/simple)");
}

}  // namespace hone::cli
