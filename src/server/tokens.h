// Tokens: who may do what, and how much of it. The secret is shown once, when it is made; only its hash is kept.
#ifndef HONE_SERVER_TOKENS_H
#define HONE_SERVER_TOKENS_H

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone::server {

enum class Scope { submit, read, admin, exec };
std::string_view name_of(Scope scope);
// Kind usage, with the nearest name.
Result<Scope> scope_from(std::string_view name);

// What a token may use; 0: no limit.
struct Quotas {
  double requests_per_s = 0;               // a burst of two seconds' worth is let through
  std::size_t jobs = 0;                    // running at once
  std::uint64_t bytes = 0;                 // of blobs
  double device_s = 0;                     // of device time in a day
};
nlohmann::json to_json(const Quotas& quotas);
// "requests=20,jobs=4,bytes=1GiB,device=2h"; kind usage. Also reads what to_json gave.
Result<Quotas> parse_quotas(std::string_view text);
Quotas quotas_from(const nlohmann::json& json);

// A new token's secret: "hone_" and 43 characters, 256 random bits.
std::string new_secret();

// "bytes a second" and the like, as a bucket that fills by time.
class Bucket {
 public:
  Bucket(double rate, double burst) : rate_(rate), burst_(burst), level_(burst) {}
  // 0: taken. Else nothing is taken, and it is how many seconds to wait.
  double take(double now_s, double amount = 1);

 private:
  double rate_, burst_, level_;
  std::optional<double> seen_s_;
};

struct Token {
  std::string id, name, created, revoked;  // revoked: empty while it is good
  std::string hash;                        // sha256 of the secret
  std::vector<std::string> scopes;
  Quotas quotas;
};

// The tokens of one file (JSON, schema hone.tokens/1, mode 0600): a running server sees what
// `hone token` changes in it. Every method may be called by any thread.
class Tokens {
 public:
  // A file that is missing holds none. Kind contract when it is damaged, io when it cannot be read.
  static Result<std::unique_ptr<Tokens>> load(const fs::path& file);

  struct Made {
    Token token;
    std::string secret;
  };
  // Kind usage for a name that is not [A-Za-z0-9._-]{1,64}, conflict when it is taken.
  Result<Made> create(const std::string& name, const std::vector<Scope>& scopes, const Quotas& quotas);
  // Kind not_found when no good token has this name or id.
  Result<> revoke(const std::string& name_or_id);
  // In the order of making.
  std::vector<Token> list() const;
  bool empty() const;                      // none is good
  bool any() const;                        // revoked ones too

  // The good token with this secret; compared by hash, so that time tells nothing. None: unauthorized (401).
  std::optional<Token> find(std::string_view secret) const;
  // Reads the file again if it has changed; when it is damaged, what was known stays.
  Result<> refresh();

 private:
  explicit Tokens(fs::path file) : file_(std::move(file)) {}
  Result<std::vector<Token>> read() const;
  // `change` on what the file holds now, under its lock, then written.
  Result<> edit(const std::function<Result<>(std::vector<Token>&)>& change);
  void take(std::vector<Token> tokens);

  const fs::path file_;
  mutable std::shared_mutex mutex_;
  std::vector<Token> tokens_;
  std::map<std::string, std::size_t, std::less<>> by_hash_;   // of good ones
  std::pair<std::int64_t, std::uint64_t> seen_{-1, 0};        // of the file: time, inode
};

bool allows(const Token& token, Scope scope);

}  // namespace hone::server

#endif
