#include "server/tokens.h"

#include <gtest/gtest.h>

#include <set>

#include "base/hash.h"
#include "testing/testing.h"

namespace hone::server {
namespace {

struct TokensTest : ::testing::Test {
  fs::path file = hone::testing::scratch("tokens") / "tokens.json";
  std::unique_ptr<Tokens> tokens = Tokens::load(file).value();
};

TEST_F(TokensTest, TheSecretIsKnownAndNotKept) {
  EXPECT_TRUE(tokens->empty());
  const auto made = tokens->create("ci", {Scope::submit, Scope::read}, {});
  HONE_ASSERT_OK(made);
  EXPECT_FALSE(tokens->empty());
  ASSERT_TRUE(tokens->find(made->secret));
  EXPECT_EQ(tokens->find(made->secret)->name, "ci");
  EXPECT_FALSE(tokens->find(made->secret + "x"));
  EXPECT_FALSE(tokens->find(""));
  EXPECT_FALSE(tokens->find(made->token.hash)) << "what the file holds opens nothing";
  for (const auto& each : fs::directory_iterator(file.parent_path()))
    EXPECT_EQ(read_file(each.path()).value().find(made->secret), std::string::npos) << each.path();
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(TokensTest, ARevokedTokenIsNoneAlsoAfterARestart) {
  const auto made = tokens->create("old", {Scope::read}, {});
  HONE_ASSERT_OK(made);
  HONE_ASSERT_OK(tokens->revoke("old"));
  EXPECT_FALSE(tokens->find(made->secret));
  HONE_EXPECT_ERROR(tokens->revoke("old"), not_found);
  HONE_EXPECT_ERROR(tokens->revoke("never"), not_found);
  EXPECT_FALSE(Tokens::load(file).value()->find(made->secret));
  EXPECT_TRUE(Tokens::load(file).value()->empty());
}

TEST_F(TokensTest, QuotasAndScopesSurviveARestart) {
  const auto made = tokens->create("t", {Scope::submit}, Quotas{20, 4, 1 << 20, 7200});
  HONE_ASSERT_OK(made);
  const auto again = Tokens::load(file).value()->find(made->secret);
  ASSERT_TRUE(again);
  const Quotas& quotas = again->quotas;
  EXPECT_EQ(quotas.requests_per_s, 20);
  EXPECT_EQ(quotas.jobs, 4u);
  EXPECT_EQ(quotas.bytes, 1u << 20);
  EXPECT_EQ(quotas.device_s, 7200);
  EXPECT_TRUE(allows(*again, Scope::submit));
  EXPECT_FALSE(allows(*again, Scope::read));
  EXPECT_FALSE(allows(*again, Scope::admin));
}

TEST_F(TokensTest, AnAdministratorMayDoAllButRunCommands) {
  const auto made = tokens->create("root", {Scope::admin}, {});
  HONE_ASSERT_OK(made);
  EXPECT_TRUE(allows(made->token, Scope::submit));
  EXPECT_TRUE(allows(made->token, Scope::read));
  EXPECT_FALSE(allows(made->token, Scope::exec));
}

TEST_F(TokensTest, NamesAreTakenOnceAndPlain) {
  HONE_ASSERT_OK(tokens->create("same", {Scope::read}, {}));
  HONE_EXPECT_ERROR(tokens->create("same", {Scope::read}, {}), conflict);
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a\nb"), std::string("\xff"), std::string(65, 'a')})
    HONE_EXPECT_ERROR(tokens->create(name, {Scope::read}, {}), usage);
  HONE_EXPECT_ERROR(tokens->create("none", {}, {}), usage);
}

TEST_F(TokensTest, AnotherProcessesChangesAreSeen) {
  const auto server = Tokens::load(file).value();
  const auto made = tokens->create("late", {Scope::read}, {});
  HONE_ASSERT_OK(made);
  HONE_ASSERT_OK(server->refresh());
  EXPECT_TRUE(server->find(made->secret));
  HONE_ASSERT_OK(tokens->revoke("late"));
  HONE_ASSERT_OK(server->refresh());
  EXPECT_FALSE(server->find(made->secret));
  HONE_ASSERT_OK(tokens->create("late", {Scope::read}, {}));   // the name is free again
}

TEST_F(TokensTest, ADamagedFileIsSaidAndWhatWasKnownStays) {
  const auto made = tokens->create("t", {Scope::read}, {});
  HONE_ASSERT_OK(made);
  HONE_ASSERT_OK(write_file_atomic(file, "{\"schema\": \"hone.tokens/1\", \"tokens\": [{}]}"));
  HONE_EXPECT_ERROR(tokens->refresh(), contract);
  EXPECT_TRUE(tokens->find(made->secret));
  HONE_EXPECT_ERROR(Tokens::load(file), contract);
}

TEST(Token, SecretsDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string secret = new_secret();
    EXPECT_EQ(secret.size(), 48u);
    EXPECT_TRUE(seen.insert(secret).second);
  }
}

TEST(Token, ScopesByName) {
  EXPECT_EQ(scope_from("exec").value(), Scope::exec);
  const auto wrong = scope_from("submitt");
  HONE_EXPECT_ERROR(wrong, usage);
  EXPECT_EQ(wrong.error().hint, "did you mean submit?");
}

TEST(Token, QuotasAsPeopleWriteThem) {
  const auto quotas = parse_quotas("requests=20,jobs=4,bytes=1GiB,device=2h");
  HONE_ASSERT_OK(quotas);
  EXPECT_EQ(quotas->bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(quotas->device_s, 7200);
  HONE_EXPECT_ERROR(parse_quotas("jobs=1.5"), usage);
  HONE_EXPECT_ERROR(parse_quotas("jobs=-1"), usage);
  HONE_EXPECT_ERROR(parse_quotas("cores=1"), usage);
}

TEST(Token, ABucketFillsByTime) {
  Bucket bucket(10, 20);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(bucket.take(100), 0);
  EXPECT_NEAR(bucket.take(100), 0.1, 1e-9);
  EXPECT_EQ(bucket.take(100.125), 0);
  const double wait_s = bucket.take(100.125);
  EXPECT_GT(wait_s, 0);
  EXPECT_EQ(bucket.take(50), wait_s) << "a clock that goes back gives nothing";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(bucket.take(1000), 0) << "no more than a full bucket";
  EXPECT_GT(bucket.take(1000), 0);
  Bucket none(0, 0);
  EXPECT_EQ(none.take(0, 1e9), 0);
}

TEST(Token, WhatIsLargerThanABucketPassesWhenItIsFull) {
  Bucket bucket(10, 20);
  EXPECT_EQ(bucket.take(0, 100), 0);
  EXPECT_NEAR(bucket.take(0, 1), 8.1, 1e-9);
}

}  // namespace
}  // namespace hone::server
