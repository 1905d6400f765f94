#include "base/yaml.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <charconv>
#include <optional>
#include <sstream>

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;      // of a document
constexpr std::size_t kMaxExpanded = std::size_t{8} << 20;   // rough bytes in memory, aliases expanded
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kNodeCost = 32;

// Thrown by the event handler through the parser, and caught in parse_yaml.
struct Stop {
  Error error;
};

Error&& locate(Error&& error, const std::string& file, int line, int column) {
  return std::move(error).at({file, line, column});
}

// Well-formed UTF-8 (RFC 3629) without control characters other than tab and line ends.
Result<> check_text(std::string_view text, const std::string& file) {
  int line = 1, column = 1;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    std::size_t length = 1;
    bool good = lead >= 0x20 || lead == '\t' || lead == '\n' || lead == '\r';
    if (lead >= 0x80) {
      length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
      good = lead >= 0xc2 && lead <= 0xf4 && i + length <= text.size();
      std::uint32_t code = lead & (0xffu >> (length + 1));
      for (std::size_t k = 1; good && k < length; ++k) {
        const auto next = static_cast<unsigned char>(text[i + k]);
        good = (next & 0xc0u) == 0x80u;
        code = code << 6 | (next & 0x3fu);
      }
      const std::uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
      good = good && code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    }
    if (!good)
      return fail(locate(make_error(ErrorKind::contract, "byte 0x{:02x} is not part of UTF-8 text", lead), file, line, column)
                      .with_hint("save the file as UTF-8"));
    ++column;
    if (lead == '\n') {
      ++line;
      column = 1;
    }
    i += length;
  }
  return {};
}

std::string escape(const std::string& key) {
  std::string out;
  for (char c : key) {
    if (c == '~') out += "~0";
    else if (c == '/') out += "~1";
    else out += c;
  }
  return out;
}

// YAML 1.2 core schema, section 10.3.2. Nullopt: a string.
std::optional<json> plain_scalar(const std::string& text, std::string& problem) {
  const auto is = [&](std::initializer_list<std::string_view> words) {
    for (std::string_view each : words)
      if (text == each) return true;
    return false;
  };
  if (is({"", "~", "null", "Null", "NULL"})) return json(nullptr);
  if (is({"true", "True", "TRUE"})) return json(true);
  if (is({"false", "False", "FALSE"})) return json(false);

  const bool negative = text[0] == '-';
  const std::size_t sign = negative || text[0] == '+' ? 1 : 0;
  std::string_view digits = std::string_view(text).substr(sign);
  if (digits == ".inf" || digits == ".Inf" || digits == ".INF" || text == ".nan" || text == ".NaN" || text == ".NAN") {
    problem = "infinite and not-a-number values are not allowed";
    return std::nullopt;
  }
  int base = 10;
  if (sign == 0 && (digits.starts_with("0x") || digits.starts_with("0o"))) {
    base = digits[1] == 'x' ? 16 : 8;
    digits.remove_prefix(2);
  }
  const char* const end = digits.data() + digits.size();
  std::uint64_t magnitude = 0;
  const auto whole = std::from_chars(digits.data(), end, magnitude, base);
  if (!digits.empty() && whole.ptr == end && digits[0] != '-') {
    const std::uint64_t limit = std::uint64_t{1} << 63;
    if (whole.ec != std::errc() || (negative && magnitude > limit)) {
      problem = "a whole number that does not fit in 64 bits";
      return std::nullopt;
    }
    if (negative) return json(static_cast<std::int64_t>(~magnitude + 1));
    if (magnitude < limit) return json(static_cast<std::int64_t>(magnitude));
    return json(magnitude);
  }
  const bool starts = !digits.empty() && (digits[0] == '.' ? digits.size() > 1 && digits[1] >= '0' && digits[1] <= '9'
                                                            : digits[0] >= '0' && digits[0] <= '9');
  if (base != 10 || !starts) return std::nullopt;
  double real = 0;
  const auto float_end = std::from_chars(digits.data(), end, real);
  if (float_end.ptr != end) return std::nullopt;
  if (float_end.ec != std::errc()) {
    problem = "a number beyond the range of float64";
    return std::nullopt;
  }
  return json(negative ? -real : real);
}

// Builds the JSON value from parse events. Open collections are on a stack.
class Builder : public YAML::EventHandler {
 public:
  Builder(YamlDocument& document, const std::string& file) : document_(document), file_(file) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // An empty value is marked at whatever follows it; its key is the better place.
    const bool below_key = !stack_.empty() && stack_.back().value.is_object() && stack_.back().has_key;
    add(below_key ? key_mark_ : mark, anchor, nullptr, kNodeCost);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) stop(mark, make_error(ErrorKind::contract, "an alias inside the value that it names"));
    if (wants_key()) stop(mark, make_error(ErrorKind::contract, "an alias where a key is needed"));
    const Anchored value = found->second;
    add(mark, 0, value.value, value.cost);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override {
    const std::size_t cost = kNodeCost + text.size();
    if (wants_key()) {
      if (tag == "?" && text == "<<") stop(mark, make_error(ErrorKind::contract, "merge keys (<<) are not supported"));
      Open& map = stack_.back();
      if (map.value.contains(text)) stop(mark, make_error(ErrorKind::contract, "the key \"{}\" occurs twice", text));
      spend(mark, cost);
      map.key = text;
      map.has_key = true;
      key_mark_ = mark;
      return;
    }
    static const std::string standard = "tag:yaml.org,2002:";
    if (tag == "!" || tag == standard + "str") return add(mark, anchor, text, cost);
    if (tag != "?" && !tag.empty()) stop(mark, make_error(ErrorKind::contract, "the tag {} is not supported", tag));
    std::string problem;
    std::optional<json> value = plain_scalar(text, problem);
    if (!problem.empty()) stop(mark, make_error(ErrorKind::contract, "{}: {}", text, problem).with_hint("put text in quotes"));
    add(mark, anchor, value ? *std::move(value) : json(text), cost);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, anchor, json::array(), style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value style) override {
    open(mark, anchor, json::object(), style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Anchored {
    json value;
    std::size_t cost;
  };
  struct Open {
    json value;
    std::string pointer, key;
    bool has_key = false;
    YAML::anchor_t anchor = 0;
    std::size_t spent_before = 0;
  };

  [[noreturn]] void stop(const YAML::Mark& mark, Error error) const {
    throw Stop{locate(std::move(error), file_, mark.line + 1, mark.column + 1)};
  }

  bool wants_key() const { return !stack_.empty() && stack_.back().value.is_object() && !stack_.back().has_key; }

  void spend(const YAML::Mark& mark, std::size_t cost) {
    spent_ += cost;
    if (spent_ > kMaxExpanded) stop(mark, make_error(ErrorKind::contract, "the document is too large once its aliases are expanded"));
  }

  // The pointer of the value that comes next.
  std::string next_pointer() const {
    if (stack_.empty()) return "";
    const Open& top = stack_.back();
    return top.pointer + "/" + (top.value.is_array() ? std::to_string(top.value.size()) : escape(top.key));
  }

  void note_place(const YAML::Mark& mark) { document_.places[next_pointer()] = {file_, mark.line + 1, mark.column + 1}; }

  void add(const YAML::Mark& mark, YAML::anchor_t anchor, json value, std::size_t cost) {
    if (wants_key()) stop(mark, make_error(ErrorKind::contract, "a key must be text"));
    spend(mark, cost);
    note_place(mark);
    if (anchor != 0) {
      spend(mark, cost);
      anchors_[anchor] = {value, cost};
    }
    attach(std::move(value));
  }

  void attach(json value) {
    if (stack_.empty()) {
      document_.value = std::move(value);
      return;
    }
    Open& top = stack_.back();
    if (top.value.is_array()) {
      top.value.push_back(std::move(value));
    } else {
      top.value[top.key] = std::move(value);
      top.has_key = false;
    }
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, json empty, YAML::EmitterStyle::value style) {
    if (wants_key()) stop(mark, make_error(ErrorKind::contract, "a key must be text"));
    if (stack_.size() >= kMaxDepth) stop(mark, make_error(ErrorKind::contract, "nested more than {} deep", kMaxDepth));
    spend(mark, kNodeCost);
    // A block of lines below a key begins at its first element; its key is where a reader looks.
    const bool below_key = style == YAML::EmitterStyle::Block && !stack_.empty() && stack_.back().value.is_object();
    note_place(below_key ? key_mark_ : mark);
    Open next;
    next.value = std::move(empty);
    next.pointer = next_pointer();
    next.anchor = anchor;
    next.spent_before = spent_ - kNodeCost;
    last_open_ = mark;
    stack_.push_back(std::move(next));
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    if (done.anchor != 0) {
      const std::size_t cost = spent_ - done.spent_before;
      spend(last_open_, cost);
      anchors_[done.anchor] = {done.value, cost};
    }
    attach(std::move(done.value));
  }

  YamlDocument& document_;
  const std::string& file_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t spent_ = 0;
  YAML::Mark key_mark_, last_open_;
};

// Only used to see that nothing follows the first document.
class Ignore : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { place = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  YAML::Mark place;
};

}  // namespace

Place YamlDocument::place_of(std::string pointer) const {
  while (true) {
    const auto found = places.find(pointer);
    if (found != places.end()) return found->second;
    const std::size_t slash = pointer.rfind('/');
    if (slash == std::string::npos) return {file, 0, 0};
    pointer.resize(slash);
  }
}

Result<YamlDocument> parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kMaxBytes)
    return fail(make_error(ErrorKind::contract, "{} bytes are more than the {} that a document may have", text.size(), kMaxBytes)
                    .at({file, 0, 0}));
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  HONE_CHECK(check_text(text, file));
  YamlDocument document;
  document.file = file;
  document.places[""] = {file, 1, 1};
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(document, file);
    Ignore rest;
    if (parser.HandleNextDocument(builder) && parser.HandleNextDocument(rest))
      return fail(locate(make_error(ErrorKind::contract, "a second document in one file"), file, rest.place.line + 1,
                         rest.place.column + 1));
  } catch (Stop& stop) {
    return fail(std::move(stop.error));
  } catch (const YAML::Exception& exception) {
    const bool known = !exception.mark.is_null();
    return fail(locate(make_error(ErrorKind::contract, "not YAML: {}", exception.msg), file,
                       known ? exception.mark.line + 1 : 0, known ? exception.mark.column + 1 : 0));
  } catch (const std::exception& exception) {
    return fail(locate(make_error(ErrorKind::contract, "not YAML: {}", exception.what()), file, 0, 0));
  }
  return document;
}

}  // namespace hone
