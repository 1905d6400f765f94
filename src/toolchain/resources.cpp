#include "toolchain/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace hone {
namespace {

constexpr std::size_t kMostKernels = 4096, kMostWarnings = 64, kLongestWarning = 400;

// The fields of KernelResources that are numbers, by their name in JSON.
constexpr std::pair<const char*, std::uint32_t KernelResources::*> kFields[] = {
    {"registers", &KernelResources::registers},
    {"barriers", &KernelResources::barriers},
    {"spill_store_bytes", &KernelResources::spill_store_bytes},
    {"spill_load_bytes", &KernelResources::spill_load_bytes},
    {"stack_bytes", &KernelResources::stack_bytes},
    {"shared_bytes", &KernelResources::shared_bytes},
    {"constant_bytes", &KernelResources::constant_bytes},
    {"max_threads", &KernelResources::max_threads}};

// The number that stands right before `unit`; 0 when there is none.
std::uint32_t before(std::string_view line, std::string_view unit) {
  const std::size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::uint32_t value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

std::string_view quoted(std::string_view line) {
  const std::size_t open = line.find('\''), close = line.find('\'', open + 1);
  return open == std::string_view::npos || close == std::string_view::npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

}  // namespace

void to_json(nlohmann::json& out, const KernelResources& kernel) {
  out = {{"symbol", kernel.symbol}};
  for (const auto& [name, field] : kFields) out[name] = kernel.*field;
}

void from_json(const nlohmann::json& in, KernelResources& kernel) {
  in.at("symbol").get_to(kernel.symbol);
  for (const auto& [name, field] : kFields) in.at(name).get_to(kernel.*field);
}

AssemblerReport read_assembler_report(std::string_view text) {
  AssemblerReport out;
  bool of_entry = false;   // the properties that follow are the last kernel's, not a function's that it calls
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("ptxas ")) {
      const std::size_t colon = line.find(": ");
      if (colon == std::string_view::npos) continue;
      const std::string_view said = line.substr(colon + 2);
      if (said.starts_with("Compiling entry function")) {
        if (out.kernels.size() >= kMostKernels) break;
        out.kernels.emplace_back().symbol = quoted(said);
      } else if (constexpr std::string_view kProperties = "Function properties for "; said.starts_with(kProperties)) {
        of_entry = !out.kernels.empty() && said.substr(kProperties.size()) == out.kernels.back().symbol;
      } else if (said.starts_with("Used ") && !out.kernels.empty()) {
        KernelResources& kernel = out.kernels.back();
        kernel.registers = before(said, " registers");
        kernel.barriers = before(said, " barriers");
        kernel.shared_bytes = before(said, " bytes smem");
        kernel.stack_bytes = std::max(kernel.stack_bytes, before(said, " bytes cumulative stack size"));
      } else if ((line.starts_with("ptxas warning") || said.starts_with("(C7")) && out.warnings.size() < kMostWarnings) {
        out.warnings.emplace_back(said.substr(0, kLongestWarning));
      }
    } else if (of_entry && line.find("bytes stack frame") != std::string_view::npos) {
      KernelResources& kernel = out.kernels.back();
      kernel.stack_bytes = std::max(kernel.stack_bytes, before(line, " bytes stack frame"));
      kernel.spill_store_bytes = before(line, " bytes spill stores");
      kernel.spill_load_bytes = before(line, " bytes spill loads");
      of_entry = false;
    }
  }
  for (const KernelResources& kernel : out.kernels) {
    if (out.warnings.size() >= kMostWarnings) break;
    if (kernel.spill_store_bytes + kernel.spill_load_bytes > 0)
      out.warnings.push_back(fmt::format("{} spills registers: {} bytes stored, {} loaded a thread", kernel.symbol,
                                         kernel.spill_store_bytes, kernel.spill_load_bytes));
    else if (kernel.stack_bytes > 0)
      out.warnings.push_back(fmt::format("{} uses {} bytes of local memory a thread", kernel.symbol, kernel.stack_bytes));
  }
  return out;
}

}  // namespace hone
