#include "cli/page.h"

#include <CLI/CLI.hpp>

namespace hone::cli {
namespace {

// CLI11 describes a set of allowed values as "TEXT:{on,off}".
void read_type(const CLI::Option& option, PageOption& out) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.rfind('}');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    for (const std::string& each : CLI::detail::split(type.substr(open + 1, close - open - 1), ',')) out.choices.push_back(each);
    out.value = fmt::format("{}", fmt::join(out.choices, "|"));
    return;
  }
  out.value = type.substr(0, type.find_first_of(": "));
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

PageOption option_of(const CLI::Option& option) {
  PageOption out;
  out.text = option.get_description();
  out.required = option.get_required();
  out.repeatable = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (out.names.empty() && option.get_positional()) {
    read_type(option, out);
    if (out.choices.empty()) out.value = upper(option.get_name(true));
  } else if (option.get_items_expected_max() > 0) {
    read_type(option, out);
    out.fallback = option.get_default_str();
  }
  return out;
}

bool hidden(const CLI::App& app) { return app.get_group().empty() || app.get_name().empty(); }

std::vector<PageOption> flags_of(const CLI::App& app) {
  std::vector<PageOption> out;
  for (const CLI::Option* option : app.get_options())
    if (option->nonpositional() && !option->get_group().empty()) out.push_back(option_of(*option));
  return out;
}

std::string wrap(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out, line;
  for (const std::string& word : CLI::detail::split(text, ' ')) {
    if (word.empty()) continue;
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      out += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line;
}

constexpr std::size_t kColumn = 26;

std::string row(const std::string& left, const std::string& text) {
  std::string out = "  " + left;
  if (out.size() + 2 > kColumn) out += "\n" + std::string(kColumn, ' ');
  else out += std::string(kColumn - out.size(), ' ');
  out += wrap(text, kColumn, 100);
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out + "\n";
}

std::string rows_of(const std::string& title, const std::vector<PageOption>& options) {
  if (options.empty()) return {};
  std::string out = "\n" + title + ":\n";
  for (const PageOption& option : options) {
    std::string left = fmt::format("{}", fmt::join(option.names, ", "));
    if (!option.value.empty()) left += (left.empty() ? "" : " ") + option.value;
    std::string text = option.text;
    if (!option.fallback.empty()) text += " (default: " + option.fallback + ")";
    if (option.required && !option.names.empty()) text += " (needed)";
    if (option.repeatable && !option.names.empty()) text += " (may be repeated)";
    out += row(left, text);
  }
  return out;
}

}  // namespace

Page page_of(const CLI::App& app) {
  Page page;
  page.name = app.get_name();
  page.path = page.name;
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) {
    root = root->get_parent();
    page.path = root->get_name() + " " + page.path;
  }
  page.summary = app.get_description();
  page.example = app.get_footer();
  for (const CLI::Option* option : app.get_options())
    if (!option->nonpositional() && !option->get_group().empty()) page.positionals.push_back(option_of(*option));
  page.flags = flags_of(app);
  if (root != &app)
    for (PageOption& option : flags_of(*root))
      if (option.names.back() != "--help" && option.names.back() != "--version") page.global.push_back(std::move(option));
  for (const CLI::App* command : app.get_subcommands(std::function<bool(const CLI::App*)>{}))
    if (!hidden(*command)) page.commands.push_back(page_of(*command));
  return page;
}

std::string help_text(const Page& page) {
  std::string out = page.path + ": " + page.summary + "\n\nUsage: " + page.path;
  for (const PageOption& positional : page.positionals) {
    const std::string value = positional.value + (positional.repeatable ? "..." : "");
    out += positional.required ? " " + value : " [" + value + "]";
  }
  if (!page.commands.empty()) out += page.global.empty() ? " VERB" : " COMMAND";
  out += " [flags]\n";
  out += rows_of("Arguments", page.positionals);
  if (!page.commands.empty()) {
    out += page.global.empty() ? "\nVerbs:\n" : "\nCommands:\n";
    for (const Page& command : page.commands) out += row(command.name, command.summary);
  }
  out += rows_of("Flags", page.flags);
  out += rows_of("Flags of every verb", page.global);
  if (!page.example.empty()) out += "\nExample:\n  " + page.example + "\n";
  if (page.global.empty())
    out += "\nExit codes: 0 every workload passes, or done; 1 a workload failed; 2 usage or contract error;\n"
           "3 environment (no compiler, no sandbox, no GPU); 4 cancelled or out of budget.\n";
  return out;
}

}  // namespace hone::cli
