#include "base/json.h"

#include <set>
#include <string>
#include <vector>

namespace hone {
namespace {

struct Refused {
  std::string why;
};

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, JsonLimits limits) {
  using nlohmann::json;
  std::vector<std::set<std::string>> keys;
  std::size_t values = 0;
  const auto look = [&](int, json::parse_event_t event, json& parsed) {
    if (++values > limits.values) throw Refused{"it holds too many values"};
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        keys.emplace_back();
        if (keys.size() > limits.depth) throw Refused{"it is nested too deeply"};
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end: keys.pop_back(); break;
      case json::parse_event_t::key: {
        const std::string key = parsed.get<std::string>();
        if (!keys.back().insert(key).second) throw Refused{key.substr(0, 64) + " is there twice"};
        break;
      }
      case json::parse_event_t::value: break;
    }
    return true;
  };
  try {
    return json::parse(text, look);
  } catch (const Refused& refused) {
    return fail(ErrorKind::contract, "{}", refused.why);
  } catch (const json::exception& error) {
    std::string why = error.what();        // "[json.exception.parse_error.101] parse error at line 1, ..."
    if (const std::size_t end = why.find("] "); end != std::string::npos) why.erase(0, end + 2);
    return fail(ErrorKind::contract, "it is not valid JSON: {}", why.substr(0, 300));
  }
}

bool is_utf8(const std::string& bytes) {
  try {
    (void)nlohmann::json(bytes).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace hone
