// The server with tools of the test's own, in memory.
#include "mcp/server.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>

namespace hone::mcp {
namespace {

using nlohmann::json;

class McpServer : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.version = "1.2.3";
    options.instructions = "read this";
    const json input = {{"type", "object"}, {"properties", {{"n", {{"type", "integer"}}}}}, {"required", {"n"}}, {"additionalProperties", false}};
    const json output = {{"type", "object"}};
    options.tools.push_back({"double", "Double", "twice n", input, output, false, false, [](const Call& call) -> Result<Answer> {
                               const int n = call.arguments["n"];
                               if (n < 0) return fail(make_error(ErrorKind::usage, "n is negative").with_hint("give another"));
                               if (n == 0) throw std::runtime_error("zero");
                               call.progress("half way");
                               call.progress("nearly");
                               return Answer{"done", {{"twice", 2 * n}}};
                             }});
    options.tools.push_back({"wait", "Wait", "until cancelled", {{"type", "object"}}, output, true, false, [this](const Call& call) -> Result<Answer> {
                               waiting_.set_value();
                               while (!call.cancel.load()) std::this_thread::yield();
                               return Answer{"cancelled", json::object()};
                             }});
    options.resources.push_back({"hone://x", "x", "X", "a text", "text/plain", [] { return Result<std::string>("words"); }});
    options.send = [this](const json& message) {
      const std::lock_guard lock(mutex_);
      sent_.push_back(message);
      arrived_.notify_all();
    };
    server_ = std::make_unique<Server>(std::move(options));
  }
  // The answer to a request, which is sent with `id`.
  json ask(const std::string& method, json params = json::object(), const json& id = 1) {
    server_->receive(json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}}.dump());
    return answer_to(id);
  }
  json answer_to(const json& id) {
    std::unique_lock lock(mutex_);
    json found;
    arrived_.wait(lock, [&] {
      for (auto each = sent_.begin(); each != sent_.end(); ++each)
        if (each->contains("id") && (*each)["id"] == id) {
          found = *each;
          sent_.erase(each);
          return true;
        }
      return false;
    });
    return found;
  }
  std::vector<json> notifications() {
    const std::lock_guard lock(mutex_);
    std::vector<json> out;
    for (const json& each : sent_)
      if (!each.contains("id")) out.push_back(each);
    return out;
  }
  static json stateless(json params = json::object(), const std::string& version = "2026-07-28") {
    params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", version}, {"io.modelcontextprotocol/clientCapabilities", json::object()}};
    return params;
  }
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<json> sent_;
  std::promise<void> waiting_;
  std::unique_ptr<Server> server_;
};

TEST_F(McpServer, AnswersTheVersionThatWasAskedForOrItsNewest) {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
    EXPECT_EQ(ask("initialize", {{"protocolVersion", version}})["result"]["protocolVersion"], version);
  EXPECT_EQ(ask("initialize", {{"protocolVersion", "2099-01-01"}})["result"]["protocolVersion"], "2025-11-25");
  const json result = ask("initialize", {{"protocolVersion", "2025-06-18"}})["result"];
  EXPECT_EQ(result["serverInfo"]["version"], "1.2.3");
  EXPECT_EQ(result["instructions"], "read this");
  EXPECT_TRUE(result["capabilities"].contains("tools"));
  EXPECT_FALSE(result.contains("resultType")) << "that is of another protocol";
  EXPECT_EQ(ask("initialize")["error"]["code"], kInvalidParams);
}

TEST_F(McpServer, StatelessRequestsNeedNoHandshake) {
  const json found = ask("server/discover", stateless())["result"];
  EXPECT_EQ(found["supportedVersions"], json({"2026-07-28"}));
  EXPECT_EQ(found["resultType"], "complete");
  EXPECT_EQ(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "hone");
  EXPECT_TRUE(found["ttlMs"].is_number_integer());
  EXPECT_EQ(ask("tools/list", stateless())["result"]["cacheScope"], "private");
  const json refused = ask("tools/list", stateless(json::object(), "2031-01-01"))["error"];
  EXPECT_EQ(refused["code"], kUnsupportedVersion);
  EXPECT_EQ(refused["data"]["supported"], json({"2026-07-28"}));
  EXPECT_EQ(refused["data"]["requested"], "2031-01-01");
  EXPECT_EQ(ask("server/discover")["error"]["code"], kInvalidParams);
  EXPECT_EQ(ask("tools/list", {{"_meta", {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}}}})["error"]["code"], kInvalidParams) << "capabilities are missing";
  EXPECT_EQ(ask("tools/call", stateless({{"name", "double"}, {"arguments", {{"n", 4}}}}))["result"]["structuredContent"]["twice"], 8);
}

TEST_F(McpServer, ASubscriptionIsAcknowledgedAndEndsWithTheServer) {
  server_->receive(json{{"jsonrpc", "2.0"}, {"id", "sub"}, {"method", "subscriptions/listen"}, {"params", stateless({{"notifications", {{"toolsListChanged", true}}}})}}.dump());
  ASSERT_EQ(notifications().size(), 1u);
  EXPECT_EQ(notifications()[0]["method"], "notifications/subscriptions/acknowledged");
  EXPECT_EQ(notifications()[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
  server_->stop();
  EXPECT_EQ(answer_to("sub")["result"]["resultType"], "complete");
}

TEST_F(McpServer, ToolsAnswerAndFail) {
  const json good = ask("tools/call", {{"name", "double"}, {"arguments", {{"n", 3}}}, {"_meta", {{"progressToken", "p"}}}})["result"];
  EXPECT_EQ(good["structuredContent"]["twice"], 6);
  EXPECT_EQ(good["isError"], false);
  const auto progress = notifications();
  ASSERT_EQ(progress.size(), 2u);
  EXPECT_EQ(progress[0]["params"]["progressToken"], "p");
  EXPECT_LT(progress[0]["params"]["progress"], progress[1]["params"]["progress"]);
  const json bad = ask("tools/call", {{"name", "double"}, {"arguments", {{"n", -1}}}})["result"];
  EXPECT_EQ(bad["isError"], true);
  EXPECT_EQ(bad["structuredContent"]["error"]["hint"], "give another");
  EXPECT_EQ(ask("tools/call", {{"name", "double"}, {"arguments", {{"n", 0}}}})["result"]["structuredContent"]["error"]["kind"], "internal");
  // What the model wrote wrongly it is told as a result; what the client did, as an error.
  for (const json& arguments : {json::object(), json{{"n", "three"}}, json{{"n", 1}, {"m", 2}}})
    EXPECT_EQ(ask("tools/call", {{"name", "double"}, {"arguments", arguments}})["result"]["isError"], true) << arguments.dump();
  EXPECT_EQ(ask("tools/call", {{"name", "double"}, {"arguments", json::array()}})["error"]["code"], kInvalidParams);
  EXPECT_EQ(ask("tools/call")["error"]["code"], kInvalidParams);
  const json unknown = ask("tools/call", {{"name", "doubel"}})["error"];
  EXPECT_EQ(unknown["code"], kInvalidParams);
  EXPECT_NE(unknown["message"].get<std::string>().find("double"), std::string::npos);
}

TEST_F(McpServer, PingAndCancelAreHeardWhileAToolWorks) {
  server_->receive(R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}})");
  waiting_.get_future().wait();
  EXPECT_EQ(ask("ping", json::object(), "p")["result"], json::object());
  EXPECT_EQ(ask("tools/call", {{"name", "double"}, {"arguments", {{"n", 1}}}}, 7)["error"]["code"], kInvalidRequest) << "the id is in use";
  server_->receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}})");   // another id: text, not a number
  server_->receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}})");
  server_->stop();
  const std::lock_guard lock(mutex_);
  for (const json& each : sent_) EXPECT_NE(each.value("id", json()), 7) << "a cancelled call is not answered";
}

TEST_F(McpServer, ResourcesAreListedAndRead) {
  EXPECT_EQ(ask("resources/list")["result"]["resources"][0]["uri"], "hone://x");
  EXPECT_EQ(ask("resources/read", {{"uri", "hone://x"}})["result"]["contents"][0]["text"], "words");
  EXPECT_EQ(ask("resources/read", {{"uri", "file:///etc/passwd"}})["error"]["code"], kResourceNotFound);
  EXPECT_EQ(ask("resources/read", stateless({{"uri", "hone://y"}}))["error"]["code"], kInvalidParams);
  EXPECT_EQ(ask("resources/templates/list")["result"]["resourceTemplates"], json::array());
}

TEST_F(McpServer, NonsenseIsRefusedAndSurvived) {
  server_->receive("{");
  EXPECT_EQ(answer_to(json())["error"]["code"], kParseError);
  server_->too_long();
  EXPECT_EQ(answer_to(json())["error"]["code"], kParseError);
  EXPECT_EQ(ask("tools/lists")["error"]["code"], kMethodNotFound);
  server_->receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":[1]}}})");
  server_->receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled"})");
  server_->receive(R"({"jsonrpc":"2.0","id":99,"result":{}})");
  server_->receive("   ");
  EXPECT_EQ(ask("ping")["result"], json::object());
  EXPECT_TRUE(notifications().empty());
}

}  // namespace
}  // namespace hone::mcp
