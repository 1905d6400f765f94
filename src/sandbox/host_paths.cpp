#include "sandbox/host_paths.h"

namespace hone {
namespace {

constexpr std::string_view kBefore = "=:,;@ '\"\n", kAfter = "/:,; '\"\n";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// `token` is what stands between the last separator and the path.
bool begins_path(std::string_view token) {
  if (token.empty()) return true;
  if (token.size() < 2 || token[0] != '-') return false;
  for (char c : token.substr(1))
    if (!is_letter(c)) return false;
  return true;
}

}  // namespace

std::string to_host_paths(std::string_view text, const std::vector<JailMount>& mounts) {
  std::string out;
  std::size_t token = 0;   // where the current one began
  for (std::size_t at = 0; at < text.size();) {
    const JailMount* found = nullptr;
    if (text[at] == '/' && begins_path(text.substr(token, at - token))) {
      for (const JailMount& mount : mounts) {
        const std::string& inside = mount.inside;
        if (text.substr(at, inside.size()) != inside) continue;
        const std::size_t end = at + inside.size();
        if (end < text.size() && kAfter.find(text[end]) == std::string_view::npos) continue;
        if (found == nullptr || inside.size() > found->inside.size()) found = &mount;
      }
    }
    if (found != nullptr) {
      out += found->host.string();
      at += found->inside.size();
      continue;   // the token goes on: what follows is the rest of the same path
    }
    if (kBefore.find(text[at]) != std::string_view::npos) token = at + 1;
    out += text[at++];
  }
  return out;
}

}  // namespace hone
