#include "profile/finding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

namespace hone {
namespace {

using nlohmann::json;

std::string place_text(const json& at) {
  const std::string file = at.value("file", json()).is_string() ? at["file"].get<std::string>() : "";
  if (file.empty()) return {};
  return at.at("line").is_number() ? fmt::format("{}:{}", file, at["line"].get<int>()) : file;
}

bool same(const Finding& a, const Finding& b) {
  const auto places = [](const Finding& each) {
    std::vector<std::tuple<std::string, std::string, std::string, int>> out;
    for (const RelatedPlace& place : each.related) out.emplace_back(place.what, place.function, place.file, place.line);
    return out;
  };
  return std::tie(a.tool, a.severity, a.message, a.kernel, a.file, a.line) ==
             std::tie(b.tool, b.severity, b.message, b.kernel, b.file, b.line) &&
         places(a) == places(b);
}

}  // namespace

void to_json(json& out, const Finding& finding) {
  const auto text = [](const std::string& word) { return word.empty() ? json() : json(word); };
  const auto number = [](int line) { return line == 0 ? json() : json(line); };
  out = {{"tool", finding.tool},
         {"kind", finding.kind},
         {"severity", finding.severity},
         {"message", finding.message},
         {"kernel", text(finding.kernel)},
         {"file", text(finding.file)},
         {"line", number(finding.line)},
         {"block", nullptr},
         {"thread", nullptr},
         {"details", finding.details},
         {"related", json::array()},
         {"count", finding.count}};
  if (finding.block) out["block"] = *finding.block;
  if (finding.thread) out["thread"] = *finding.thread;
  for (const RelatedPlace& each : finding.related)
    out["related"].push_back(
        {{"what", each.what}, {"function", text(each.function)}, {"file", text(each.file)}, {"line", number(each.line)}});
}

std::string finding_text(const json& finding) {
  const std::string place = place_text(finding);
  std::string out = fmt::format("{}{}{}({}): {}", place, place.empty() ? "" : ": ", finding.at("severity").get<std::string>(),
                                finding.at("kind").get<std::string>(), finding.at("message").get<std::string>());
  const auto index = [](const json& at) { return fmt::format("({})", fmt::join(at.get<std::vector<long>>(), ", ")); };
  std::vector<std::string> where;
  if (finding.at("kernel").is_string()) where.push_back(finding["kernel"].get<std::string>());
  if (finding.at("block").is_array()) where.push_back("block " + index(finding["block"]));
  if (finding.at("thread").is_array()) where.push_back("thread " + index(finding["thread"]));
  if (const auto count = finding.value("count", std::size_t{1}); count > 1) where.push_back(fmt::format("{} times", count));
  if (!where.empty()) out += fmt::format("\n  {}", fmt::join(where, ", "));
  for (const json& each : finding.at("details")) out += "\n  " + each.get<std::string>();
  for (const json& each : finding.at("related")) {
    const std::string function = each.at("function").is_string() ? each["function"].get<std::string>() : "", at = place_text(each);
    out += fmt::format("\n  {} {}{}{}", each.at("what").get<std::string>(), function, at.empty() || function.empty() ? "" : " at ", at);
  }
  return out + "\n";
}

std::vector<Finding> merged(std::vector<Finding> findings) {
  std::vector<Finding> out;
  for (Finding& each : findings) {
    const auto known = std::find_if(out.begin(), out.end(), [&](const Finding& other) { return same(each, other); });
    if (known == out.end())
      out.push_back(std::move(each));
    else
      known->count += each.count;
  }
  return out;
}

}  // namespace hone
