#include <algorithm>

#include "program/symbol.h"
#include "toolchain/elf_view.h"

namespace hone {
namespace {

constexpr std::size_t kMostSymbols = 200'000, kMostHeaders = 4096;

tl::unexpected<Error> broken(std::string_view why) {
  return fail(make_error(ErrorKind::kernel_name, "the compiled module is not a usable shared object: {}", why));
}

struct Segment {
  std::uint64_t begin, end;
};

}  // namespace

Result<std::vector<ElfFunction>> functions_of(std::string_view bytes) {
  const ElfView elf(bytes);
  Elf64_Ehdr header;
  if (!elf.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return broken("no ELF header");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN)
    return broken("not a 64-bit little-endian ET_DYN file");
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_phentsize != sizeof(Elf64_Phdr))
    return broken("unknown header sizes");
  if (header.e_shnum > kMostHeaders || header.e_phnum > kMostHeaders) return broken("too many headers");

  std::vector<Segment> code;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!elf.read(header.e_phoff + i * sizeof segment, segment)) return broken("the program headers are cut short");
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
        segment.p_vaddr + segment.p_memsz >= segment.p_vaddr)
      code.push_back({segment.p_vaddr, segment.p_vaddr + segment.p_memsz});
  }
  std::vector<ElfFunction> out;
  std::size_t seen = 0;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section, strings;
    if (!elf.read(header.e_shoff + i * sizeof section, section)) return broken("the section headers are cut short");
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    std::string_view table, names;
    if (section.sh_link >= header.e_shnum || !elf.read(header.e_shoff + section.sh_link * sizeof strings, strings))
      return broken("a symbol table has no names");
    if (!elf.range(section.sh_offset, section.sh_size, table) || !elf.range(strings.sh_offset, strings.sh_size, names))
      return broken("a symbol table is cut short");
    for (std::size_t at = 0; table.size() - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
      if (++seen > kMostSymbols) return broken("it holds too many symbols");
      Elf64_Sym symbol;
      std::memcpy(&symbol, table.data() + at, sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size())
        continue;
      const std::string_view name = ElfView::text(names, symbol.st_name);
      if (name.empty()) continue;
      if (std::none_of(code.begin(), code.end(), [&](const Segment& each) {
            return symbol.st_value >= each.begin && symbol.st_value < each.end;
          }))
        continue;
      out.push_back({name, symbol.st_value});
    }
  }
  auto order = [](const ElfFunction& each) { return std::pair(each.name, each.offset); };
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  out.erase(std::unique(out.begin(), out.end(), [&](const auto& a, const auto& b) { return order(a) == order(b); }),
            out.end());
  return out;
}

}  // namespace hone
