#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/fs.h"
#include "cli/page.h"
#include "cli/verb.h"

namespace hone::cli {
namespace {

Result<int> completion(const CLI::App& root, const Global& global, const std::string& shell, const std::string& folder) {
  const Page page = page_of(root);
  nlohmann::json out = {{"schema", "hone.completion/1"}, {"shell", shell}};
  if (shell != "man") {
    const std::string script = completion_script(page, shell);
    out["script"] = script;
    fmt::print("{}", global.json ? out.dump(2) + "\n" : script);
    return 0;
  }
  if (folder.empty()) return fail(ErrorKind::usage, "`hone completion man` needs a folder");
  HONE_CHECK(make_dirs(folder));
  for (const auto& [name, text] : man_pages(page, HONE_VERSION)) {
    HONE_CHECK(write_file_atomic(fs::path(folder) / name, text));
    out["files"].push_back((fs::path(folder) / name).string());
  }
  if (global.json) fmt::print("{}\n", out.dump(2));
  return 0;
}

}  // namespace

void define_completion(CLI::App& app, Invocation& invocation) {
  auto shell = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "which shell; man writes manual pages to FOLDER")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  app.add_option("FOLDER", *folder, "for man: where the pages go");
  app.callback([&app, &invocation, shell, folder] {
    invocation.action = [&app, &invocation, shell, folder] { return completion(*app.get_parent(), invocation.global, *shell, *folder); };
  });
}

}  // namespace hone::cli
