#include "mcp/message.h"

#include <gtest/gtest.h>

namespace hone::mcp {
namespace {

TEST(Message, KindsAreToldApart) {
  const Message request = parse_message(R"({"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":1}})");
  EXPECT_EQ(request.kind, Message::Kind::request);
  EXPECT_EQ(request.id, "a");
  EXPECT_EQ(request.params["x"], 1);
  EXPECT_EQ(parse_message(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").kind, Message::Kind::notification);
  EXPECT_EQ(parse_message(R"({"jsonrpc":"2.0","id":9,"result":{}})").kind, Message::Kind::response);
  EXPECT_EQ(parse_message(R"({"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}})").kind, Message::Kind::response);
}

TEST(Message, FaultsHaveTheCodeAndTheIdWhereItIsKnown) {
  const auto fault = [](const char* line) {
    const Message message = parse_message(line);
    EXPECT_EQ(message.kind, Message::Kind::fault) << line;
    return std::pair(message.fault.code, message.id.dump());
  };
  EXPECT_EQ(fault("{"), std::pair(kParseError, std::string("null")));
  EXPECT_EQ(fault("\xff"), std::pair(kParseError, std::string("null")));
  EXPECT_EQ(fault(R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})").first, kParseError);
  EXPECT_EQ(fault("[]"), std::pair(kInvalidRequest, std::string("null")));
  EXPECT_EQ(fault("3").first, kInvalidRequest);
  EXPECT_EQ(fault(R"({"id":5,"method":"ping"})"), std::pair(kInvalidRequest, std::string("5")));
  EXPECT_EQ(fault(R"({"jsonrpc":"1.0","id":5,"method":"ping"})"), std::pair(kInvalidRequest, std::string("5")));
  EXPECT_EQ(fault(R"({"jsonrpc":"2.0","id":5})"), std::pair(kInvalidRequest, std::string("5")));
  EXPECT_EQ(fault(R"({"jsonrpc":"2.0","id":5,"method":7})"), std::pair(kInvalidRequest, std::string("5")));
  for (const char* id : {"null", "1.5", "true", "[]", "{}"})
    EXPECT_EQ(fault((std::string(R"({"jsonrpc":"2.0","method":"ping","id":)") + id + "}").c_str()), std::pair(kInvalidRequest, std::string("null"))) << id;
  EXPECT_EQ(fault(R"({"jsonrpc":"2.0","id":"x","method":"ping","params":[1]})"), std::pair(kInvalidParams, std::string("\"x\"")));
}

TEST(Message, ALineIsOneLineWhateverItHolds) {
  const std::string line = to_line(result_message(1, {{"text", "two\nlines \xff and\r more\x01"}}));
  for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  EXPECT_TRUE(nlohmann::json::accept(line));
}

}  // namespace
}  // namespace hone::mcp
