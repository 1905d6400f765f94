#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "server/tokens.h"

namespace hone::cli {
namespace {

using nlohmann::json;
using namespace server;

struct Options {
  std::string name, tokens, quota;
  std::vector<std::string> scopes = {"submit", "read"};
};

fs::path file_of(const Options& options) { return options.tokens.empty() ? data_dir() / "service" / "tokens.json" : fs::absolute(options.tokens); }

json token_json(const Token& token) {
  return {{"id", token.id}, {"name", token.name}, {"scopes", token.scopes}, {"quotas", to_json(token.quotas)}, {"created", token.created},
          {"revoked", token.revoked.empty() ? json() : json(token.revoked)}};
}

Result<int> create(const Global& global, const Options& options) {
  std::vector<Scope> scopes;
  for (const std::string& name : options.scopes) {
    HONE_TRY(const Scope scope, scope_from(name));
    scopes.push_back(scope);
  }
  Quotas quotas;
  if (!options.quota.empty()) {
    HONE_TRY(quotas, parse_quotas(options.quota));
  }
  HONE_TRY(const auto tokens, Tokens::load(file_of(options)));
  HONE_TRY(const Tokens::Made made, tokens->create(options.name, scopes, quotas));
  if (global.json) {
    json out = token_json(made.token);
    out["schema"] = "hone.token/1";
    out["secret"] = made.secret;
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  fmt::print(stderr, "token {} ({}) in {}; its secret is shown this once:\n", made.token.name, fmt::join(made.token.scopes, ", "), file_of(options).string());
  fmt::print("{}\n", made.secret);
  return 0;
}

Result<int> list(const Global& global, const Options& options) {
  HONE_TRY(const auto tokens, Tokens::load(file_of(options)));
  json rows = json::array();
  for (const Token& each : tokens->list()) {
    rows.push_back(token_json(each));
    if (!global.json)
      fmt::print("{:<20} {} {:<26} {:<24} {}\n", each.name, each.created, fmt::format("{}", fmt::join(each.scopes, ",")), to_json(each.quotas).dump(),
                 each.revoked.empty() ? "good" : "revoked " + each.revoked);
  }
  if (global.json) fmt::print("{}\n", json{{"schema", "hone.token_list/1"}, {"tokens", std::move(rows)}}.dump(2));
  else if (rows.empty()) fmt::print("there is no token in {}\n", file_of(options).string());
  return 0;
}

Result<int> revoke(const Global& global, const Options& options) {
  HONE_TRY(const auto tokens, Tokens::load(file_of(options)));
  HONE_CHECK(tokens->revoke(options.name));
  if (global.json) fmt::print("{}\n", json{{"schema", "hone.token_revoke/1"}, {"name", options.name}}.dump(2));
  else fmt::print("revoked {}; a running service sees it within a second\n", options.name);
  return 0;
}

}  // namespace

void define_token(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.require_subcommand(1);
  auto command = [&](const char* name, const char* summary, const char* example, Result<int> (*action)(const Global&, const Options&)) {
    CLI::App* sub = add_command(app, invocation, name, summary, example, [&invocation, options, action] { return action(invocation.global, *options); });
    sub->add_option("--tokens", options->tokens, "the file (default: service/tokens.json in Hone's data folder)");
    return sub;
  };
  CLI::App* creating = command("create", "a new token; prints its secret, once", "hone token create ci --scope submit,read --quota jobs=4,device=2h", &create);
  creating->add_option("name", options->name, "what it is called")->required();
  creating->add_option("--scope", options->scopes, "submit, read, admin (everybody's jobs), exec")->delimiter(',')->take_all()->capture_default_str();
  creating->add_option("--quota", options->quota, "requests=20 a second, jobs=4 at once, bytes=1GiB of blobs, device=2h a day");
  command("list", "the tokens, without secrets", "hone token list", &list);
  command("revoke", "makes a token worthless", "hone token revoke ci", &revoke)->add_option("name", options->name, "its name or id")->required();
}

}  // namespace hone::cli
