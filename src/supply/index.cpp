#include "supply/index.h"

#include "base/fs.h"

namespace hone {

Result<client::Url> resolve_link(const client::Url& base, std::string_view reference) {
  reference = reference.substr(0, reference.find('#'));
  if (reference.starts_with("http://") || reference.starts_with("https://")) return client::parse_url(std::string(reference));
  if (reference.starts_with("//")) return client::parse_url((base.tls ? "https:" : "http:") + std::string(reference));
  client::Url out = base;
  const std::string folder = base.path.substr(0, base.path.rfind('/') + 1);
  const std::string path = reference.starts_with('/') ? std::string(reference) : folder + std::string(reference);
  out.path = fs::path("/" + path).lexically_normal().string();
  while (out.path.starts_with("//")) out.path.erase(0, 1);
  return out;
}

Result<client::Url> find_in_page(std::string_view html, const client::Url& page, const std::string& file) {
  constexpr std::string_view kLink = "href=\"";
  for (std::size_t at = 0; (at = html.find(kLink, at)) != std::string_view::npos;) {
    at += kLink.size();
    const std::size_t end = html.find('"', at);
    if (end == std::string_view::npos) break;
    const std::string_view link = html.substr(at, end - at), plain = link.substr(0, link.find('#'));
    if (plain.substr(plain.rfind('/') + 1) == file) return resolve_link(page, link);
  }
  return fail(ErrorKind::not_found, "{} has no file {}", client::to_text(page), file);
}

}  // namespace hone
