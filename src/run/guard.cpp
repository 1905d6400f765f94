#include "run/guard.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr int kLinks = 40;               // as the kernel allows

template <class... A>
tl::unexpected<Error> deny(fmt::format_string<A...> format, A&&... args) {
  return fail(make_error(ErrorKind::forbidden, format, std::forward<A>(args)...));
}

bool inside(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

const std::string* text_in(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? &found->get_ref<const std::string&>() : nullptr;
}

// A simple command: its words, quotes taken off, and the words that output is redirected to.
struct Command {
  std::vector<std::string> words, targets;
};

// What a shell would run, as far as it can be seen without running it.
std::vector<Command> commands_of(const std::string& line) {
  std::vector<Command> all(1);
  std::string word;
  bool in_word = false, target = false;
  char quote = 0;
  const auto end_word = [&] {
    if (in_word) (target ? all.back().targets : all.back().words).push_back(word);
    if (in_word) target = false;
    word.clear();
    in_word = false;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      else if (c == '\\' && quote == '"' && i + 1 < line.size()) word += line[++i];
      else word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      in_word = true;
    } else if (c == '>') {
      if (in_word && !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char d) { return std::isdigit(d) != 0; })) word.clear(), in_word = false;
      end_word();
      target = true;
      if (i + 1 < line.size() && (line[i + 1] == '>' || line[i + 1] == '|')) ++i;
    } else if (c == ';' || c == '|' || c == '&' || c == '\n' || c == '(' || c == ')' || c == '`' || c == '{' || c == '}') {
      if (target && c == '&') {              // 2>&1
        target = false;
        continue;
      }
      end_word();
      target = false;
      all.emplace_back();
    } else if (c == ' ' || c == '\t' || c == '<') {
      end_word();
    } else {
      word += c;
      in_word = true;
    }
  }
  end_word();
  return all;
}

// A word, and the pieces of it that may be paths: --out=X, of=X, open("X").
std::vector<std::string> paths_in(const std::string& word) {
  std::vector<std::string> out{word};
  std::string piece;
  for (const char c : word + " ") {
    if (std::string_view("=,:()'\"<>[] \t\n;").find(c) == std::string_view::npos) {
      piece += c;
      continue;
    }
    if (!piece.empty() && piece != word) out.push_back(piece);
    piece.clear();
  }
  return out;
}

const std::set<std::string, std::less<>>& readers() {
  static const std::set<std::string, std::less<>> all{"cat",  "head", "tail", "less", "more", "ls",   "grep", "rg",   "wc",  "jq",        "stat", "file", "diff", "cmp",
                                                      "hone", "find",   // hone's verbs keep to the record's rules
                                                      "sort", "uniq", "cut",  "nl",   "tac",  "echo", "cd",  "sha256sum", "test", "[",    "printf", "sed",
                                                      "awk",  "tree", "du",   "pwd",  "od",   "xxd", "column", "basename", "dirname", "realpath", "readlink"};
  return all;
}

bool writes(const Command& command) {
  if (command.words.empty()) return false;
  std::size_t first = 0;
  while (first + 1 < command.words.size() && command.words[first].find('=') != std::string::npos) ++first;   // X=1 cat ...
  const std::string name = fs::path(command.words[first]).filename().string();
  if (readers().count(name) == 0) return true;
  const auto has = [&](std::string_view flag) {
    return std::any_of(command.words.begin(), command.words.end(), [&](const std::string& word) { return word == flag || (flag.size() == 2 && word.starts_with(flag)); });
  };
  if (name == "sed")
    return has("--in-place") ||
           std::any_of(command.words.begin(), command.words.end(), [](const std::string& word) { return word.size() > 1 && word[0] == '-' && word[1] != '-' && word.find('i') != std::string::npos; });
  if (name == "find") return has("-delete") || has("-exec") || has("-execdir") || has("-ok") || has("-fprint") || has("-fls");
  if (name == "awk") return std::any_of(command.words.begin(), command.words.end(), [](const std::string& word) { return word.find('>') != std::string::npos || word.find("system") != std::string::npos; });
  if (name == "sort") return has("-o") || has("--output");
  return false;
}

Result<> guard_shell(const fs::path& root, const fs::path& start, const std::string& line) {
  fs::path cwd = start;
  const auto in_record = [&](const std::string& word) -> Result<bool> {
    for (const std::string& piece : paths_in(word)) {
      HONE_TRY(const fs::path path, written_path(piece, cwd));
      // The folder of the run itself counts when it is named: `rm -rf ..`.
      if (inside(path, root) && !inside(path, root / "worktree")) return true;
      if (inside(root, path) && path != "/" && piece.find('/') != std::string::npos && piece != "/") return true;
    }
    return false;
  };
  for (const Command& command : commands_of(line)) {
    for (const std::string& target : command.targets) {
      HONE_TRY(const bool hit, in_record(target));
      if (hit) return deny("the command writes to {}, which belongs to the run's record", target);
    }
    if (command.words.size() >= 2 && command.words[0] == "cd") {
      HONE_TRY(cwd, written_path(command.words[1], cwd));
      continue;
    }
    if (!writes(command)) continue;
    // A relative name from a folder of the record touches it as well: `cd .. && rm ledger.jsonl` is seen by its path.
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      HONE_TRY(const bool hit, in_record(command.words[i]));
      if (hit) return deny("`{}` may change {}, which belongs to the run's record", command.words[0], command.words[i]);
    }
  }
  return {};
}

}  // namespace

Result<fs::path> written_path(const fs::path& path, const fs::path& cwd) {
  if (!cwd.is_absolute()) return fail(ErrorKind::usage, "the working folder must be an absolute path");
  std::deque<fs::path> left;
  for (const fs::path& part : cwd / path) left.push_back(part);
  fs::path at = "/";
  int links = 0;
  while (!left.empty()) {
    const fs::path part = left.front();
    left.pop_front();
    if (part.empty() || part == "." || part == "/") continue;
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    std::error_code code;
    const fs::path next = at / part;
    if (!fs::is_symlink(fs::symlink_status(next, code))) {
      at = next;
      continue;
    }
    if (++links > kLinks) return fail(ErrorKind::usage, "{} follows too many links", path.string());
    const fs::path to = fs::read_symlink(next, code);
    if (code) return fail(ErrorKind::usage, "the link {} cannot be read", next.string());
    if (to.is_absolute()) at = "/";
    std::size_t place = 0;
    for (const fs::path& piece : to) left.insert(left.begin() + static_cast<std::ptrdiff_t>(place++), piece);
  }
  return at;
}

Result<> guard_tool(const fs::path& root_given, const json& input) {
  const std::string* tool = text_in(input, "tool_name");
  const std::string* cwd = text_in(input, "cwd");
  if (tool == nullptr) return deny("the hook's input names no tool");
  if (cwd == nullptr || cwd->empty() || cwd->front() != '/') return deny("the hook's input names no working folder");
  const json arguments = input.value("tool_input", json());
  HONE_TRY(const fs::path root, written_path(root_given, "/"));
  Result<> outcome;
  if (*tool == "Edit" || *tool == "Write" || *tool == "MultiEdit" || *tool == "NotebookEdit") {
    const std::string* file = text_in(arguments, *tool == "NotebookEdit" ? "notebook_path" : "file_path");
    if (file == nullptr || file->empty()) return deny("{} names no file", *tool);
    const auto path = written_path(*file, *cwd);
    if (!path) return deny("{}", path.error().message);
    if (!inside(*path, root / "worktree") || *path == root / "worktree")
      return deny("{} lies outside the worktree: write below {}", path->string(), (root / "worktree").string());
    if (inside(*path, root / "worktree/.git")) return deny("{} belongs to git", path->string());
  } else if (*tool == "Bash") {
    const std::string* line = text_in(arguments, "command");
    if (line == nullptr) return deny("Bash has no command");
    outcome = guard_shell(root, *cwd, *line);
  }
  if (!outcome && outcome.error().kind != ErrorKind::forbidden) return deny("{}", outcome.error().message);
  return outcome;
}

Result<> guard_hook(const fs::path& root, std::string_view text) {
  const auto input = parse_json(text);
  if (!input) return deny("the hook's input cannot be read: {}", input.error().message);
  return guard_tool(root, *input);
}

}  // namespace hone
