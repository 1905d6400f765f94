// Man pages (roff, man(7) macros) from the command table.
#include "cli/page.h"

namespace hone::cli {
namespace {

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += std::string("\\&") + c;
    else out += c;
  }
  return out;
}

std::string options(const std::string& title, const std::vector<PageOption>& list) {
  if (list.empty()) return {};
  std::string out = ".SH " + title + "\n";
  for (const PageOption& option : list) {
    out += ".TP\n";
    std::vector<std::string> names;
    for (const std::string& name : option.names) names.push_back("\\fB" + roff(name) + "\\fR");
    out += fmt::format("{}", fmt::join(names, ", "));
    if (!option.value.empty()) out += (names.empty() ? "\\fI" : " \\fI") + roff(option.value) + "\\fR";
    out += "\n" + roff(option.text);
    if (!option.fallback.empty()) out += roff(" (default: " + option.fallback + ")");
    out += "\n";
  }
  return out;
}

void add(const Page& page, const std::string& version, std::map<std::string, std::string>& out) {
  std::string file = page.path;
  for (char& c : file) c = c == ' ' ? '-' : c;
  std::string upper = file;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  std::string text = fmt::format(".TH {} 1 \"\" \"hone {}\" \"Hone manual\"\n", roff(upper), roff(version));
  text += ".SH NAME\n" + roff(file) + " \\- " + roff(page.summary) + "\n.SH SYNOPSIS\n\\fB" + roff(page.path) + "\\fR";
  for (const PageOption& each : page.positionals) {
    const std::string value = "\\fI" + roff(each.value + (each.repeatable ? "..." : "")) + "\\fR";
    text += each.required ? " " + value : " [" + value + "]";
  }
  if (!page.commands.empty()) text += page.global.empty() ? " \\fIVERB\\fR" : " \\fICOMMAND\\fR";
  text += " [flags]\n";
  text += options("ARGUMENTS", page.positionals);
  if (!page.commands.empty()) {
    text += page.global.empty() ? ".SH VERBS\n" : ".SH COMMANDS\n";
    for (const Page& command : page.commands) text += ".TP\n\\fB" + roff(command.name) + "\\fR\n" + roff(command.summary) + "\n";
  }
  text += options("FLAGS", page.flags);
  text += options("FLAGS OF EVERY VERB", page.global);
  if (!page.example.empty()) text += ".SH EXAMPLE\n.nf\n" + roff(page.example) + "\n.fi\n";
  text += ".SH EXIT STATUS\n"
          "0 every workload passes, or done; 1 a workload failed; 2 usage or contract error;\n"
          "3 environment (no compiler, no sandbox, no GPU); 4 cancelled or out of budget.\n";
  text += ".SH ENVIRONMENT\n"
          ".TP\n\\fBHONE_HOME\\fR\nfolder for data, caches and configuration, instead of the XDG folders\n"
          ".TP\n\\fBHONE_SHARE\\fR\nfolder with tasks, kernels, headers and helper programs, instead of share/hone beside the binary\n"
          ".TP\n\\fBHONE_WORKERS\\fR\nworker threads of the CPU device, instead of cores less one\n"
          ".TP\n\\fBHONE_CUDA\\fR\nroot of the CUDA toolkit, before /usr/local/cuda, PATH and what hone toolchain add has fetched\n"
          ".TP\n\\fBHONE_INDEX\\fR\npackage index that hone toolchain add fetches from\n"
          ".TP\n\\fBNO_COLOR\\fR\nno colour on the terminal\n";
  if (!page.global.empty()) text += ".SH SEE ALSO\n\\fBhone\\fR(1)\n";
  out.emplace(file + ".1", std::move(text));
  for (const Page& command : page.commands) add(command, version, out);
}

}  // namespace

std::map<std::string, std::string> man_pages(const Page& root, const std::string& version) {
  std::map<std::string, std::string> out;
  add(root, version, out);
  return out;
}

}  // namespace hone::cli
