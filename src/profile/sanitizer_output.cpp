#include "profile/sanitizer_output.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace hone {
namespace {

constexpr std::string_view kMark = "=========";
constexpr std::size_t kMostFindings = 1000, kMostParts = 16, kLongest = 2000;
constexpr std::string_view kRace = "race between ", kCaller = "called from";
// Words before a report, and how grave it is; empty: nothing to tell.
constexpr std::pair<std::string_view, std::string_view> kLevels[] = {{"Error: ", "error"},    {"ERROR: ", "error"}, {"Warning: ", "review"},
                                                                     {"WARNING: ", "review"}, {"WARN: ", "review"}, {"Info: ", ""},
                                                                     {"INFO: ", ""}};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// A number at the front, taken off.
std::optional<long> take_number(std::string_view& text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The same, of a count: "1,024".
std::optional<std::size_t> take_count(std::string_view& text) {
  std::string digits;
  std::size_t at = 0;
  for (; at < text.size() && (std::isdigit(static_cast<unsigned char>(text[at])) != 0 || (at > 0 && text[at] == ',')); ++at)
    if (text[at] != ',') digits += text[at];
  std::string_view rest = digits;
  const auto value = take_number(rest);
  if (!value || !rest.empty()) return std::nullopt;
  text.remove_prefix(at);
  return static_cast<std::size_t>(*value);
}

// What a name that the compiler wrote down is to the candidate.
std::string file_of(std::string_view file) {
  constexpr std::string_view kSources = "/hone/src/", kHeaders = "/hone/include/";
  if (file.starts_with(kSources)) return std::string(file.substr(kSources.size()));
  if (file.starts_with(kHeaders)) return "<" + std::string(file.substr(kHeaders.size())) + ">";
  return std::string(file);
}

constexpr std::string_view kTrouble[] = {"Sanitizer Error", "Device not supported", "Unable to", "before first instrumented",
                                         "timed-out",       "Could not connect"};

struct Location {
  std::string function, file;
  int line = 0;
};

// "FILE:LINE", or of older versions "FILE:LINE:FUNCTION".
bool read_file_and_line(std::string_view text, Location& out) {
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':', colon + 1)) {
    std::string_view rest = text.substr(colon + 1);
    const auto line = take_number(rest);
    if (!line || *line < 1 || *line > 100'000'000 || (!rest.empty() && rest.front() != ':')) continue;
    out.file = file_of(text.substr(0, colon));
    out.line = static_cast<int>(*line);
    if (!rest.empty() && out.function.empty()) out.function = std::string(rest.substr(1));
    return true;
  }
  return false;
}

// "void f<(int)3>(float *)+0x90 in kernel.cu:12", "f(int *)+0x90", "f():0x90 in kernel.cu:12", "0x90 in kernel.cu:12:f(int *)", "0x90 in f(int *)".
Location read_location(std::string_view text) {
  Location out;
  std::string_view name = text, rest;
  if (const std::size_t in = text.rfind(" in "); in != std::string_view::npos) {
    name = text.substr(0, in);
    rest = text.substr(in + 4);
  }
  const std::size_t offset = std::min(name.rfind("+0x"), name.rfind(":0x"));
  const bool named = !name.starts_with("0x");
  if (named) out.function = std::string(name.substr(0, offset));
  if (!rest.empty() && !read_file_and_line(rest, out)) {
    if (named)
      out.file = file_of(rest);
    else
      out.function = std::string(rest);
  }
  return out;
}

// "(1,2,3)" or "(1, 2, 3)" after a word.
std::optional<std::array<long, 3>> read_index(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  text = trim(text.substr(at + word.size()));
  std::array<long, 3> out = {};
  for (std::size_t i = 0; i < 3; ++i) {
    if (text.empty() || text.front() != (i == 0 ? '(' : ',')) return std::nullopt;
    text = trim(text.substr(1));
    const auto value = take_number(text);
    if (!value) return std::nullopt;
    out[i] = *value;
    text = trim(text);
  }
  return out;
}

// " [16 hazards]" at the end, taken off.
std::size_t take_hazards(std::string_view& text) {
  const std::size_t at = text.rfind(" [");
  if (at == std::string_view::npos || text.find("hazard", at) == std::string_view::npos) return 0;
  std::string_view digits = text.substr(at + 2);
  const auto count = take_count(digits);
  text = text.substr(0, at);
  return count.value_or(0);
}

std::string kind_of(const std::string& tool, std::string_view message) {
  const auto has = [&](std::string_view word) { return message.find(word) != std::string_view::npos; };
  if (has("hazard") || has("Race reported")) return "race";
  if (has("ninitialized")) return "uninitialised";
  if (tool == "synccheck" || has("Barrier error")) return "barrier";
  if (has("isaligned")) return "misaligned";
  if (has("nvalid __")) return "out_of_bounds";
  return "fault";
}

class Reader {
 public:
  explicit Reader(std::string tool) : tool_(std::move(tool)) {}

  void line(std::string_view text) {
    if (!text.starts_with(kMark)) return;
    text = text.substr(kMark.size(), kLongest);
    const bool detail = text.starts_with("  ");
    text = trim(text);
    if (text.empty() || text == "COMPUTE-SANITIZER") return close();
    if (detail) {
      if (open_) add(text);
      return;
    }
    close();
    head(text);
  }

  SanitizerLog finish() {
    close();
    out_.findings = merged(std::move(out_.findings));
    return std::move(out_);
  }

 private:
  void close() {
    if (open_ && sure_ && out_.findings.size() < kMostFindings) {
      if (hazards_ > 0) current_.count = hazards_;
      // The outermost frame is the kernel, what was inlined into it a detail.
      const auto& frames = current_.related;
      const auto outermost = std::find_if(frames.rbegin(), frames.rend(),
                                          [](const RelatedPlace& each) { return each.what == kCaller && !each.function.empty(); });
      if (outermost != frames.rend() && outermost->function != current_.kernel) {
        current_.details.insert(current_.details.begin(), "in " + current_.kernel);
        current_.kernel = outermost->function;
      }
      out_.findings.push_back(std::move(current_));
    }
    open_ = false;
  }

  void head(std::string_view text) {
    constexpr std::string_view kErrors = "ERROR SUMMARY: ", kRaces = "RACECHECK SUMMARY: ";
    for (const std::string_view summary : {kErrors, kRaces}) {
      if (!text.starts_with(summary)) continue;
      std::string_view rest = text.substr(summary.size());
      if (const auto count = take_count(rest); count && !out_.errors) out_.errors = count;
      return;
    }
    // Of the programming interface: Hone's own calls. Their outcome is told by the process itself.
    if (text.starts_with("Program hit ") || text.starts_with("LEAK SUMMARY")) return;
    std::string severity = "error";
    for (const auto& [word, level] : kLevels)
      if (text.starts_with(word)) {
        severity = level;
        text.remove_prefix(word.size());
      }
    const bool race = text.starts_with("Race reported between") || text.find("hazard detected") != std::string_view::npos;
    // The tool's own trouble; that the process ended with an error is told by its answer.
    const bool trouble = std::any_of(std::begin(kTrouble), std::end(kTrouble),
                                     [&](std::string_view words) { return text.find(words) != std::string_view::npos; });
    if (trouble && out_.fault.empty()) out_.fault = std::string(text);
    if (trouble || severity.empty()) return;
    current_ = {};
    current_.tool = tool_;
    current_.severity = severity;
    hazards_ = 0;
    open_ = true;
    // Other words are a finding when a place or a thread follows.
    sure_ = race || text.starts_with("Invalid __") || text.starts_with("Uninitialized __") || text.starts_with("Barrier error") ||
            text.starts_with("Deadlock ");
    constexpr std::string_view kBetween = "Race reported between ";
    if (text.starts_with(kBetween)) {
      // Newer versions put the second access on a line of its own.
      std::string_view first = text.substr(kBetween.size()), second;
      if (const std::size_t also = first.find(" and ", first.find(" access at ")); also != std::string_view::npos) {
        second = first.substr(also + 1);
        first = first.substr(0, also);
      }
      access(first);
      if (!second.empty()) access(second.substr(4));
    } else {
      current_.message = std::string(text);
      while (!current_.message.empty() &&
             (current_.message.back() == '.' || current_.message.back() == ':' || current_.message.back() == ' '))
        current_.message.pop_back();
      current_.block = read_index(text, "in block ");
      if (const std::size_t at = text.rfind(" at "); text.starts_with("Deadlock ") && at != std::string_view::npos)
        place(read_location(text.substr(at + 4)));
    }
    current_.kind = kind_of(tool_, text);
  }

  // "Write access at LOCATION [n hazards]": the first is the finding's own place.
  void access(std::string_view text) {
    hazards_ += take_hazards(text);
    const std::size_t at = text.find(" at ");
    if (at == std::string_view::npos) return;
    const std::string what(text.substr(0, at));
    Location place = read_location(text.substr(at + 4));
    if (current_.file.empty() && current_.kernel.empty()) {
      if (current_.message.empty()) current_.message = std::string(kRace) + what;
      current_.kernel = place.function;
      current_.file = place.file;
      current_.line = place.line;
      return;
    }
    if (current_.message.starts_with(kRace) && current_.related.size() < kMostParts) current_.message += " and " + what;
    if (current_.related.size() < kMostParts) current_.related.push_back({what, place.function, place.file, place.line});
  }

  void place(Location at) {
    sure_ = true;
    current_.kernel = std::move(at.function);
    current_.file = std::move(at.file);
    current_.line = at.line;
  }

  void add(std::string_view text) {
    constexpr std::string_view kFrame = "Device Frame:";
    if (text.starts_with("Saved host backtrace") || text.starts_with("Host Frame")) return;
    if (text.starts_with("and ") && text.find(" access at ") != std::string_view::npos) return access(text.substr(4));
    if (text.starts_with("at ")) {
      place(read_location(text.substr(3)));
      return;
    }
    if (text.starts_with("by thread ")) {
      sure_ = true;
      current_.thread = read_index(text, "by thread ");
      current_.block = read_index(text, "in block ");
      return;
    }
    if (text.starts_with(kFrame)) {
      Location place = read_location(trim(text.substr(kFrame.size())));
      // The outermost one is the kernel; a frame that repeats the place itself says nothing.
      const bool repeats = place.function == current_.kernel && place.line == current_.line;
      if (!repeats && current_.related.size() < kMostParts)
        current_.related.push_back({std::string(kCaller), place.function, place.file, place.line});
      return;
    }
    // A hazard by itself: "Write Thread (3, 0, 0) at LOCATION".
    if (const std::size_t thread = text.find(" Thread ("); thread != std::string_view::npos) {
      const auto index = read_index(text, " Thread ");
      const std::size_t at = text.find(" at ");
      if (index && at != std::string_view::npos) {
        const std::string what = std::string(text.substr(0, thread)) + " access";
        if (!current_.thread) current_.thread = index;
        return access(what + std::string(text.substr(at)));
      }
    }
    if (current_.details.size() < kMostParts) current_.details.emplace_back(text);
    if (text.find("is misaligned") != std::string_view::npos) current_.kind = "misaligned";
  }

  const std::string tool_;
  SanitizerLog out_;
  Finding current_;
  std::size_t hazards_ = 0;
  bool open_ = false, sure_ = false;
};

}  // namespace

SanitizerLog read_sanitizer_log(const std::string& tool, std::string_view text) {
  Reader reader(tool);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

}  // namespace hone
