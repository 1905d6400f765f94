#include "toolchain/cubin.h"

#include <algorithm>
#include <optional>

#include "toolchain/elf_view.h"

namespace hone {
namespace {

constexpr std::size_t kMostSymbols = 20'000, kMostParameters = 256;
constexpr std::uint16_t kMachine = 190;         // EM_CUDA
constexpr unsigned char kEntry = 0x10;          // st_other: a kernel, no device function

// An attribute is {format, number, 16-bit value}; with format kSized the value counts the bytes that follow.
constexpr unsigned char kSized = 4;
enum Attribute : unsigned char { kMaxThreads = 0x05, kRequiredThreads = 0x10, kParameter = 0x17, kParameterBytes = 0x19 };

tl::unexpected<Error> broken(std::string_view why) {
  return fail(make_error(ErrorKind::kernel_name, "the compiled module is not a usable cubin: {}", why));
}

template <class T>
T at(std::string_view bytes, std::size_t offset) {
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

std::uint32_t threads(std::string_view payload) {
  if (payload.size() < 12) return 0;
  std::uint64_t product = 1;
  for (const std::size_t i : {0u, 4u, 8u}) product *= std::min<std::uint32_t>(at<std::uint32_t>(payload, i), 4096);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(product, 4096));
}

// Reads `.nv.info.<kernel>`; false when it is malformed.
bool read_attributes(std::string_view info, CubinKernel& kernel) {
  std::vector<std::optional<CubinParameter>> parameters;
  while (info.size() >= 4) {
    const auto format = static_cast<unsigned char>(info[0]), attribute = static_cast<unsigned char>(info[1]);
    const auto value = at<std::uint16_t>(info, 2);
    info.remove_prefix(4);
    if (format != kSized) {
      if (attribute == kParameterBytes) kernel.parameter_bytes = value;
      continue;
    }
    if (value > info.size()) return false;
    const std::string_view payload = info.substr(0, value);
    info.remove_prefix(value);
    if (attribute == kMaxThreads || attribute == kRequiredThreads) kernel.max_threads = threads(payload);
    if (attribute != kParameter) continue;
    // {index, ordinal and offset, size in the upper 14 bits}
    if (payload.size() < 12) return false;
    const auto ordinal = at<std::uint16_t>(payload, 4);
    if (ordinal >= kMostParameters) return false;
    if (parameters.size() <= ordinal) parameters.resize(ordinal + 1u);
    parameters[ordinal] = CubinParameter{at<std::uint16_t>(payload, 6), at<std::uint32_t>(payload, 8) >> 18};
  }
  for (const auto& each : parameters) {
    if (!each) return false;
    kernel.parameters.push_back(*each);
  }
  return info.empty();
}

}  // namespace

bool is_cubin(std::string_view bytes) {
  const auto header = ElfView(bytes).header();
  return header && header->e_machine == kMachine;
}

Result<std::vector<CubinKernel>> kernels_of_cubin(std::string_view bytes) {
  const ElfView elf(bytes);
  const auto header = elf.header();
  if (!header || header->e_machine != kMachine) return broken("no 64-bit CUDA file");
  Elf64_Shdr names_header;
  std::string_view section_names;
  if (!elf.section(*header, header->e_shstrndx, names_header) ||
      !elf.range(names_header.sh_offset, names_header.sh_size, section_names))
    return broken("its sections have no names");

  struct Facts {
    std::string_view kernel;
    std::string_view info;
    std::uint32_t constant = 0;
  };
  std::vector<Facts> facts;
  std::vector<CubinKernel> kernels;
  std::size_t seen = 0;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    Elf64_Shdr section;
    if (!elf.section(*header, i, section)) return broken("the section headers are cut short");
    constexpr std::string_view kInfo = ".nv.info.", kConstant = ".nv.constant0.";
    const std::string_view name = ElfView::text(section_names, section.sh_name);
    if (name.starts_with(kInfo)) {
      Facts fact{name.substr(kInfo.size()), {}};
      if (!elf.range(section.sh_offset, section.sh_size, fact.info)) return broken("a kernel's facts are cut short");
      facts.push_back(fact);
    } else if (name.starts_with(kConstant)) {
      facts.push_back({name.substr(kConstant.size()), {}, static_cast<std::uint32_t>(std::min<std::uint64_t>(section.sh_size, 1u << 20))});
    }
    if (section.sh_type != SHT_SYMTAB) continue;
    Elf64_Shdr strings;
    std::string_view table, names;
    if (!elf.section(*header, section.sh_link, strings) || !elf.range(section.sh_offset, section.sh_size, table) ||
        !elf.range(strings.sh_offset, strings.sh_size, names))
      return broken("a symbol table is cut short");
    for (; table.size() >= sizeof(Elf64_Sym); table.remove_prefix(sizeof(Elf64_Sym))) {
      if (++seen > kMostSymbols) return broken("it holds too many symbols");
      const auto symbol = at<Elf64_Sym>(table, 0);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & kEntry) == 0 || symbol.st_shndx == SHN_UNDEF) continue;
      const std::string_view text = ElfView::text(names, symbol.st_name);
      if (!text.empty()) kernels.push_back({text, {}});
    }
  }
  std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.symbol < b.symbol; });
  kernels.erase(std::unique(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.symbol == b.symbol; }),
                kernels.end());
  for (const Facts& fact : facts) {
    const auto kernel = std::lower_bound(kernels.begin(), kernels.end(), fact.kernel,
                                         [](const CubinKernel& each, std::string_view symbol) { return each.symbol < symbol; });
    if (kernel == kernels.end() || kernel->symbol != fact.kernel) continue;   // a device function's
    if (fact.info.empty()) kernel->constant_bytes = std::max(kernel->constant_bytes, fact.constant);
    else if (!kernel->parameters.empty() || !read_attributes(fact.info, *kernel)) return broken("a kernel's facts make no sense");
  }
  return kernels;
}

}  // namespace hone
