#include "mcp/resources.h"

#include "mcp/tool.h"
#include "run/report.h"
#include "run/summary.h"

namespace hone::mcp {
namespace {

constexpr std::size_t kLongest = std::size_t{256} << 10;

Result<std::string> text_of(const fs::path& file) {
  HONE_TRY(const std::string text, read_file(file, std::size_t{16} << 20));
  return shortened(text, kLongest);
}

Resource file_resource(std::string uri, std::string name, std::string title, std::string description, fs::path file) {
  return {std::move(uri), std::move(name), std::move(title), std::move(description), "text/markdown", [file = std::move(file)] { return text_of(file); }};
}

// The first line of a skill is its title, the line after the heading what it is good for.
std::string heading(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  return line.starts_with("# ") ? line.substr(2) : line;
}

void add_skills(std::vector<Resource>& all, const fs::path& folder) {
  std::error_code code;
  std::map<std::string, fs::path> files;
  for (auto each = fs::directory_iterator(folder, code); !code && each != fs::directory_iterator(); each.increment(code))
    if (each->path().extension() == ".md") files[each->path().stem().string()] = each->path();
  for (const auto& [name, path] : files) {
    const auto text = text_of(path);
    if (text) all.push_back(file_resource("hone://skills/" + name, name, heading(*text), "a skill: how to go about it", path));
  }
}

}  // namespace

std::vector<Resource> make_resources(const Workplace& place) {
  std::vector<Resource> all;
  if (place.run) {
    const Run& run = *place.run;
    all.push_back(file_resource("hone://run/prompt", "PROMPT.md", "The assignment", "task, gates, how to work, what ends the run", run.root / "PROMPT.md"));
    all.push_back({"hone://run/brief", "brief", "The brief", "what the run has reached and what to do next, as of now", "text/markdown", [run]() -> Result<std::string> {
                     std::error_code code;
                     if (fs::is_regular_file(run.root / "brief.md", code)) return text_of(run.root / "brief.md");
                     HONE_TRY(const Summary summary, summarize(run));
                     return shortened(status_text(summary), kLongest);
                   }});
    all.push_back({"hone://run/report", "report", "The report", "every experiment with its row", "text/markdown", [run]() -> Result<std::string> {
                     HONE_TRY(const Summary summary, summarize(run));
                     return shortened(report_markdown(summary), kLongest);
                   }});
  }
  if (const auto share = share_dir()) {
    all.push_back(file_resource("hone://docs/candidate", "candidate.md", "How a candidate is written", "the manual", *share / "docs/candidate.md"));
    add_skills(all, *share / "prompts/skills");
  }
  return all;
}

}  // namespace hone::mcp
