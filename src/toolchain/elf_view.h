// Bounds-checked reading of an ELF file's bytes, which are hostile input: nothing is allocated by a
// size that the file claims, and nothing outside the bytes is read.
#ifndef HONE_TOOLCHAIN_ELF_VIEW_H
#define HONE_TOOLCHAIN_ELF_VIEW_H

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace hone {

inline constexpr std::size_t kLongestSymbol = 4096;

class ElfView {
 public:
  explicit ElfView(std::string_view bytes) : bytes_(bytes) {}

  // A copy of the T at `offset`; false when it lies outside.
  template <class T>
  bool read(std::uint64_t offset, T& out) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return false;
    std::memcpy(&out, bytes_.data() + offset, sizeof(T));
    return true;
  }
  bool range(std::uint64_t offset, std::uint64_t size, std::string_view& out) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return false;
    out = bytes_.substr(offset, size);
    return true;
  }
  // The file header, when the bytes begin like a 64-bit little-endian file with section headers of the usual size.
  std::optional<Elf64_Ehdr> header() const {
    Elf64_Ehdr out;
    if (!read(0, out) || std::memcmp(out.e_ident, ELFMAG, SELFMAG) != 0 || out.e_ident[EI_CLASS] != ELFCLASS64 ||
        out.e_ident[EI_DATA] != ELFDATA2LSB || out.e_shentsize != sizeof(Elf64_Shdr))
      return std::nullopt;
    return out;
  }
  bool section(const Elf64_Ehdr& header, std::uint64_t index, Elf64_Shdr& out) const {
    return index < header.e_shnum && header.e_shoff <= bytes_.size() && read(header.e_shoff + index * sizeof out, out);
  }
  // The text at `offset` of a string table, up to its zero; empty when there is none.
  static std::string_view text(std::string_view table, std::uint64_t offset) {
    if (offset >= table.size()) return {};
    const std::string_view rest = table.substr(offset, kLongestSymbol);
    const std::size_t end = rest.find('\0');
    return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
  }

 private:
  std::string_view bytes_;
};

}  // namespace hone

#endif
