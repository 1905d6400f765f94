#include "inspect/inspect.h"

#include <algorithm>

#include "inspect/listing.h"
#include "program/symbol.h"
#include "toolchain/disassemble.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestPtx = std::size_t{64} << 20;
constexpr std::size_t kMostLines = 2000;
constexpr std::string_view kSources = "/hone/src/", kHeaders = "/hone/include/";

// The file as the candidate knows it: "kernel.cu", "<hone/ptx.cuh>", a toolkit's header by its name.
std::string readable_file(const std::string& file) {
  for (const std::string_view folder : {kSources, kHeaders}) {
    if (!file.starts_with(folder)) continue;
    const std::string rest = file.substr(folder.size());
    return folder == kHeaders ? "<" + rest + ">" : rest;
  }
  return "<" + fs::path(file).filename().string() + ">";
}

std::string source_line(const SourceTree& sources, const std::string& file, int number) {
  const auto found = sources.find(file);
  if (found == sources.end()) return {};
  std::string_view text = found->second;
  for (int i = 1; i < number; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, std::min<std::size_t>(text.find('\n'), 160));
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return std::string(text);
}

json lines_of(const KernelCode& code, const SourceTree& sources) {
  struct Line {
    std::string file;
    int line;
    std::size_t count;
  };
  std::vector<Line> all;
  for (const auto& [place, count] : code.lines) all.push_back({readable_file(place.first), place.second, count});
  std::stable_sort(all.begin(), all.end(), [](const Line& a, const Line& b) { return a.count > b.count; });
  if (all.size() > kMostLines) all.resize(kMostLines);
  json out = json::array();
  for (const Line& each : all)
    out.push_back({{"file", each.file},
                   {"line", each.line},
                   {"instructions", each.count},
                   {"text", source_line(sources, each.file, each.line)}});
  return out;
}

json mix_of(const KernelCode& code) {
  json out = json::object();
  for (std::size_t i = 0; i < kOpClasses; ++i) out[std::string(name_of(static_cast<OpClass>(i)))] = code.mix[i];
  return out;
}

// The kernels of this module that a launch names, by symbol.
std::vector<std::string> kernels_of(const Compiled& compiled, const ModuleKey& key) {
  std::vector<std::string> out;
  for (const auto& program : compiled.prepared.programs) {
    if (!program) continue;
    for (const KernelEntry& entry : std::get<Executable>(program->what).entry)
      if (!entry.symbol.empty() && std::find(out.begin(), out.end(), entry.symbol) == out.end() &&
          !compiled.launched_by(key, entry.symbol).empty())
        out.push_back(entry.symbol);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Adds what was counted to a module's facts.
Result<> look_into(json& module, const ModuleKey& key, const Artifact& artifact, const SourceTree& sources, const Compiled& compiled,
                   const InspectRequest& request, Bench bench, std::vector<std::string>& skipped) {
  const bool cuda = !artifact.ptx.empty();
  std::string ptx;
  if (cuda) {
    HONE_TRY(ptx, read_file(artifact.ptx, kLargestPtx));
  }
  auto code = disassemble(artifact, bench.sandbox);
  if (!code) {
    if (code.error().kind != ErrorKind::environment) return fail(code.error());
    const std::string why = fmt::format("{}: {}; {}", cuda ? "SASS" : "machine code", code.error().message, code.error().hint);
    if (std::find(skipped.begin(), skipped.end(), why) == skipped.end()) skipped.push_back(why);
  } else if (code->dropped_bytes > 0) {
    skipped.push_back(fmt::format("{}: {} bytes of the listing beyond 32 MiB", module_name(module), code->dropped_bytes));
  }
  const Listing listing = !cuda ? (code ? read_objdump(code->text) : Listing()) : code ? read_sass(code->text) : read_ptx(ptx);
  // cuobjdump tells no lines; the PTX does.
  const Listing lined = cuda && code && !code->lines ? read_ptx(ptx) : Listing();
  module["from"] = !cuda ? "x86" : code ? "sass" : "ptx";
  module["tool"] = code ? json(code->tool) : json();
  module["kernels"] = json::array();
  for (const std::string& symbol : kernels_of(compiled, key)) {
    const auto found = listing.find(symbol);
    if (found == listing.end()) continue;
    const auto other = lined.find(symbol);
    module["kernels"].push_back({{"symbol", symbol}, {"kernel", readable_symbol(symbol)}, {"workloads", compiled.launched_by(key, symbol)},
                                 {"instructions", found->second.instructions}, {"mix", mix_of(found->second)},
                                 {"lines", lines_of(other == lined.end() ? found->second : other->second, sources)}});
  }
  if (request.ptx && cuda) module["ptx"] = std::move(ptx);
  if (request.code && code) module["code"] = std::move(code->text);
  return {};
}

}  // namespace

Result<json> inspect_report(const Task& task, const Candidate& candidate, const Compiled& compiled,
                            const InspectRequest& request, Bench bench) {
  json report = compile_report(task, candidate, compiled, bench);
  report["schema"] = "hone.inspect/1";
  std::vector<std::string> skipped;
  SourceTree sources = candidate.sources;
  HONE_TRY(const fs::path share, share_dir());
  HONE_TRY(const SourceTree headers, read_tree(share / "include"));
  for (const auto& [name, bytes] : headers) sources["<" + name + ">"] = bytes;
  // Modules and facts are in the same order.
  auto module = report["modules"].begin();
  for (const auto& [key, artifact] : compiled.prepared.modules)
    HONE_CHECK(look_into(*module++, key, artifact, sources, compiled, request, bench, skipped));
  report["skipped"] = skipped;
  return report;
}

std::string inspect_text(const json& report, std::size_t lines) {
  std::string out = compile_text(report);
  for (const json& module : report.at("modules")) {
    const std::string from = module.value("from", "");
    const std::string tool = module.at("tool").is_string() ? fmt::format(" by {}", module["tool"].get<std::string>()) : "";
    for (const json& kernel : module.at("kernels")) {
      const auto total = kernel.at("instructions").get<std::size_t>();
      out += fmt::format("\n{} [{}]\n  {} instructions of {}{}\n ", kernel.at("kernel").get<std::string>(),
                         module_name(module), total, from, tool);
      for (std::size_t i = 0; i < kOpClasses; ++i) {
        const std::string name(name_of(static_cast<OpClass>(i)));
        if (const auto count = kernel.at("mix").value(name, std::size_t{0}); count > 0) out += fmt::format(" {} {}", name, count);
      }
      out += "\n";
      std::size_t shown = 0;
      for (const json& line : kernel.at("lines")) {
        if (shown++ == lines) break;
        out += fmt::format("  {:>6}  {}:{}  {}\n", line.at("instructions").get<std::size_t>(),
                           line.at("file").get<std::string>(), line.at("line").get<int>(),
                           line.at("text").get<std::string>());
      }
    }
  }
  for (const json& each : report.at("skipped")) out += fmt::format("\nskipped: {}\n", each.get<std::string>());
  return out;
}

}  // namespace hone
