#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text.h"
#include "cli/page.h"

namespace hone::cli {
namespace {

constexpr Verb kVerbs[] = {
#define HONE_VERB_ROW(name, summary, example) {#name, summary, example, &define_##name},
    HONE_VERBS(HONE_VERB_ROW)
#undef HONE_VERB_ROW
};

// The command that the words so far have reached.
const CLI::App* reached(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

// Flags as typed: "--taks=x" is "--taks".
std::string flag_name(const std::string& word) { return word.substr(0, word.find('=')); }

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-' && word != "--"; }

std::string suggestion(const std::string& word, const std::vector<std::string>& known, const std::string& path) {
  const std::string near = nearest(word, known);
  return near.empty() ? fmt::format("see `{} --help`", path) : fmt::format("did you mean `{}`? see `{} --help`", near, path);
}

// CLI11's messages as one line in the house's form.
std::string tidy(std::string text) {
  text = text.substr(0, text.find('\n'));
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

Error explain(const CLI::App& app, const CLI::ParseError& error) {
  const Page page = page_of(*reached(app));
  const std::vector<std::string> left = app.remaining(true);
  if (const auto flag = std::find_if(left.begin(), left.end(), is_flag); flag != left.end()) {
    std::vector<std::string> known{"--help"};
    for (const auto* list : {&page.flags, &page.global})
      for (const PageOption& option : *list) known.insert(known.end(), option.names.begin(), option.names.end());
    return make_error(ErrorKind::usage, "unknown flag `{}` of `{}`", flag_name(*flag), page.path)
        .with_hint(suggestion(flag_name(*flag), known, page.path));
  }
  if (!page.commands.empty()) {
    std::vector<std::string> known;
    for (const Page& command : page.commands) known.push_back(command.name);
    if (left.empty())
      return make_error(ErrorKind::usage, "`{}` needs one of: {}", page.path, fmt::join(known, ", "))
          .with_hint(fmt::format("see `{} --help`", page.path));
    return make_error(ErrorKind::usage, "unknown {} `{}`", page.global.empty() ? "verb" : "command of `" + page.path + "`:", left.front())
        .with_hint(suggestion(left.front(), known, page.path));
  }
  if (!left.empty())
    return make_error(ErrorKind::usage, "`{}` takes no further argument: `{}`", page.path, left.front())
        .with_hint(fmt::format("see `{} --help`", page.path));
  return make_error(ErrorKind::usage, "`{}`: {}", page.path, tidy(error.what())).with_hint(fmt::format("see `{} --help`", page.path));
}

// An empty word is a shell variable that was not set: nobody means it.
void refuse_empty(CLI::App& app) {
  const CLI::Validator filled([](std::string& text) { return text.empty() ? std::string("the value is empty") : std::string(); }, "");
  for (CLI::Option* option : app.get_options([](CLI::Option* each) { return each->get_items_expected_max() > 0; })) option->check(filled);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) refuse_empty(*command);
}

}  // namespace

std::string seed_fault(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::string() : "`" + text + "` is not a whole number from 0 to 18446744073709551615";
}

CLI::App* add_command(CLI::App& verb, Invocation& invocation, const char* name, const char* summary, const char* example,
                      std::function<Result<int>()> action) {
  CLI::App* command = verb.add_subcommand(name, summary);
  command->footer(example);
  command->callback([&invocation, action = std::move(action)] { invocation.action = action; });
  return command;
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  return names;
}

std::unique_ptr<CLI::App> make_app(Invocation& invocation) {
  auto app = std::make_unique<CLI::App>("agents make compute kernels faster, and a claimed speedup can be trusted", "hone");
  app->formatter_fn([](const CLI::App* each, const std::string&, CLI::AppFormatMode) { return help_text(page_of(*each)); });
  app->set_help_flag("-h,--help", "this help");
  app->set_version_flag("--version", "hone " HONE_VERSION, "print the version");
  app->require_subcommand(1);
  app->fallthrough();   // flags of every verb are declared once, here, and may stand anywhere
  app->footer("hone doctor");
  Global& global = invocation.global;
  app->add_flag("--json", global.json, "print facts as one JSON object on standard output");
  app->add_flag("--quiet", global.quiet, "no progress on standard error");
  app->add_option("--sandbox", global.sandbox, "off: run candidates without isolation, at your own risk; receipts say so")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  for (const Verb& verb : kVerbs) {
    CLI::App* command = app->add_subcommand(verb.name, verb.summary);
    command->footer(verb.example);
    verb.define(*command, invocation);
  }
  CLI::App* worker = app->add_subcommand("worker", "a device process of `hone serve`")->group("");
  define_worker(*worker, invocation);
  refuse_empty(*app);
  return app;
}

Result<Outcome> parse(CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());   // what CLI11 wants
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", help_text(page_of(*reached(app))));
    return Outcome{true};
  } catch (const CLI::CallForVersion&) {
    fmt::print("{}\n", app.version());
    return Outcome{true};
  } catch (const CLI::ParseError& error) {
    return fail(explain(app, error));
  }
  return Outcome{};
}

}  // namespace hone::cli
