#include "server/tokens.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

namespace hone::server {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "hone.tokens/1";
constexpr std::array kScopes = {Scope::submit, Scope::read, Scope::admin, Scope::exec};
constexpr double kBurstS = 2;

bool good_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

std::string_view name_of(Scope scope) {
  switch (scope) {
    case Scope::submit: return "submit";
    case Scope::read: return "read";
    case Scope::admin: return "admin";
    case Scope::exec: return "exec";
  }
  return "";
}

Result<Scope> scope_from(std::string_view name) {
  std::vector<std::string> known;
  for (const Scope scope : kScopes) {
    if (name == name_of(scope)) return scope;
    known.emplace_back(name_of(scope));
  }
  const std::string near = nearest(name, known);
  return fail(make_error(ErrorKind::usage, "there is no scope {}", name)
                  .with_hint(near.empty() ? "scopes are submit, read, admin and exec" : fmt::format("did you mean {}?", near)));
}

nlohmann::json to_json(const Quotas& quotas) {
  return {{"requests_per_s", quotas.requests_per_s}, {"jobs", quotas.jobs}, {"bytes", quotas.bytes}, {"device_s", quotas.device_s}};
}

Quotas quotas_from(const nlohmann::json& json) {
  return {json.value("requests_per_s", 0.0), json.value("jobs", std::size_t{0}), json.value("bytes", std::uint64_t{0}), json.value("device_s", 0.0)};
}

Result<Quotas> parse_quotas(std::string_view text) {
  Quotas out;
  HONE_TRY(const auto pairs, parse_pairs(text, {"requests", "jobs", "bytes", "device"}));
  for (const auto& [key, value] : pairs) {
    if (key == "requests" || key == "jobs") {
      HONE_TRY(const double number, parse_ratio(value));   // a number above 0
      if (key == "requests") out.requests_per_s = number;
      else if (number != static_cast<double>(static_cast<std::size_t>(number))) return fail(ErrorKind::usage, "jobs={}: a whole number of jobs", value);
      else out.jobs = static_cast<std::size_t>(number);
    } else if (key == "bytes") {
      HONE_TRY(out.bytes, parse_size(value));
    } else {
      HONE_TRY(out.device_s, parse_duration(value));
    }
  }
  return out;
}

std::string new_secret() {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<unsigned char, 33> random{};                  // 264 bits, of which 43 digits show 258
  std::size_t have = 0;
  while (have < random.size()) {
    const ssize_t got = ::getrandom(random.data() + have, random.size() - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  std::string out = "hone_";
  for (std::size_t digit = 0; digit < 43; ++digit) {
    const std::size_t bit = digit * 6;
    const unsigned pair = static_cast<unsigned>(random[bit / 8]) << 8 | (bit / 8 + 1 < random.size() ? random[bit / 8 + 1] : 0u);
    out += kDigits[pair >> (10 - bit % 8) & 63];
  }
  return out;
}

double Bucket::take(double now_s, double amount) {
  if (rate_ <= 0) return 0;
  if (seen_s_) level_ = std::min(burst_, level_ + std::max(0.0, now_s - *seen_s_) * rate_);
  seen_s_ = now_s;
  // What is more than a full bucket passes when it is full, and leaves a debt.
  if (const double needed = std::min(amount, burst_); level_ < needed) return (needed - level_) / rate_;
  level_ -= amount;
  return 0;
}

Result<std::unique_ptr<Tokens>> Tokens::load(const fs::path& file) {
  std::unique_ptr<Tokens> out(new Tokens(file));
  HONE_CHECK(out->refresh());
  return out;
}

Result<std::vector<Token>> Tokens::read() const {
  std::error_code code;
  if (!fs::exists(file_, code)) return std::vector<Token>();
  HONE_TRY(const std::string text, read_file(file_, std::size_t{64} << 20));
  std::vector<Token> out;
  try {
    const json body = json::parse(text);
    if (body.at("schema") != kSchema) throw std::invalid_argument("its schema is " + body.at("schema").dump());
    for (const json& each : body.at("tokens")) {
      Token token;
      token.id = each.at("id").get<std::string>();
      token.name = each.at("name").get<std::string>();
      token.created = each.at("created").get<std::string>();
      token.revoked = each.at("revoked").get<std::string>();
      token.hash = each.at("sha256").get<std::string>();
      token.scopes = each.at("scopes").get<std::vector<std::string>>();
      token.quotas = quotas_from(each.at("quotas"));
      out.push_back(std::move(token));
    }
  } catch (const std::exception& error) {
    return fail(make_error(ErrorKind::contract, "this is no file of tokens: {}", error.what())
                    .at({file_.string()})
                    .with_hint("`hone token create NAME --tokens FILE` makes one"));
  }
  return out;
}

Result<> Tokens::refresh() {
  struct stat info = {};
  std::pair<std::int64_t, std::uint64_t> now{0, 0};
  if (::stat(file_.c_str(), &info) == 0) now = {info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec, info.st_ino};
  {
    const std::shared_lock lock(mutex_);
    if (now == seen_) return {};
  }
  HONE_TRY(std::vector<Token> tokens, read());
  const std::unique_lock lock(mutex_);
  take(std::move(tokens));
  seen_ = now;
  return {};
}

void Tokens::take(std::vector<Token> tokens) {
  tokens_ = std::move(tokens);
  by_hash_.clear();
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    if (tokens_[i].revoked.empty()) by_hash_.emplace(tokens_[i].hash, i);
}

Result<> Tokens::edit(const std::function<Result<>(std::vector<Token>&)>& change) {
  if (file_.has_parent_path()) HONE_CHECK(make_dirs(file_.parent_path()));
  HONE_TRY(const FileLock alone, FileLock::acquire(file_.string() + ".lock"));
  HONE_TRY(std::vector<Token> tokens, read());
  HONE_CHECK(change(tokens));
  json body = {{"schema", kSchema}, {"tokens", json::array()}};
  for (const Token& each : tokens)
    body["tokens"].push_back({{"id", each.id}, {"name", each.name}, {"created", each.created}, {"revoked", each.revoked},
                              {"sha256", each.hash}, {"scopes", each.scopes}, {"quotas", to_json(each.quotas)}});
  HONE_CHECK(write_file_atomic(file_, body.dump(1) + "\n", 0600));
  return refresh();
}

Result<Tokens::Made> Tokens::create(const std::string& name, const std::vector<Scope>& scopes, const Quotas& quotas) {
  if (!good_name(name))
    return fail(make_error(ErrorKind::usage, "a token's name has 1 to 64 of the characters A-Z a-z 0-9 . _ -"));
  if (scopes.empty()) return fail(ErrorKind::usage, "a token without a scope may do nothing");
  Made made{{}, new_secret()};
  made.token.id = fmt::format("t-{:016x}", random_seed());
  made.token.name = name;
  made.token.hash = sha256(made.secret);
  made.token.created = utc_timestamp();
  for (const Scope scope : kScopes)
    if (std::find(scopes.begin(), scopes.end(), scope) != scopes.end()) made.token.scopes.emplace_back(name_of(scope));
  made.token.quotas = quotas;
  HONE_CHECK(edit([&](std::vector<Token>& tokens) -> Result<> {
    if (std::any_of(tokens.begin(), tokens.end(), [&](const Token& each) { return each.name == name && each.revoked.empty(); }))
      return fail(ErrorKind::conflict, "a token is called {} already", name);
    tokens.push_back(made.token);
    return {};
  }));
  return made;
}

Result<> Tokens::revoke(const std::string& name_or_id) {
  return edit([&](std::vector<Token>& tokens) -> Result<> {
    for (Token& each : tokens)
      if ((each.name == name_or_id || each.id == name_or_id) && each.revoked.empty()) {
        each.revoked = utc_timestamp();
        return {};
      }
    return fail(make_error(ErrorKind::not_found, "there is no token {} that is good", name_or_id).with_hint("`hone token list` shows them"));
  });
}

std::vector<Token> Tokens::list() const {
  const std::shared_lock lock(mutex_);
  return tokens_;
}

bool Tokens::empty() const {
  const std::shared_lock lock(mutex_);
  return by_hash_.empty();
}

bool Tokens::any() const {
  const std::shared_lock lock(mutex_);
  return !tokens_.empty();
}

std::optional<Token> Tokens::find(std::string_view secret) const {
  const std::shared_lock lock(mutex_);
  const auto found = by_hash_.find(sha256(secret));
  return found == by_hash_.end() ? std::nullopt : std::optional<Token>(tokens_[found->second]);
}

bool allows(const Token& token, Scope scope) {
  const auto has = [&](Scope which) { return std::find(token.scopes.begin(), token.scopes.end(), name_of(which)) != token.scopes.end(); };
  return has(scope) || (scope != Scope::exec && has(Scope::admin));
}

}  // namespace hone::server
