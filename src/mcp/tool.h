// What a tool is to the server: schemas, and a function that may take long.
#ifndef HONE_MCP_TOOL_H
#define HONE_MCP_TOOL_H

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace hone::mcp {

struct Call {
  const nlohmann::json& arguments;         // obey the tool's input schema
  const std::function<void(const std::string& line)>& progress;
  const std::atomic<bool>& cancel;
};

// What the model reads. Clients show one of the two, so each says everything that matters.
struct Answer {
  std::string text;
  nlohmann::json facts;                    // an object that obeys the output schema
};

struct Tool {
  std::string name, title, description;
  nlohmann::json input, output;            // JSON schemas of objects
  bool measures = false;                   // needs the device: one at a time
  bool changes = false;                    // writes to the run's record
  std::function<Result<Answer>(const Call&)> call;
  std::function<void()> stop = {};         // the server ends: what goes on between calls is cancelled, not waited for
};

// At most this much of an answer reaches the model, so that clients with small limits show it whole.
constexpr std::size_t kLongestText = 4000, kLongestFacts = 5000;
// `text` cut between UTF-8 characters, with a word that it was.
std::string shortened(const std::string& text, std::size_t limit_bytes);
// Texts and lists cut until the value fits; "cut": true says so. The value stays an object with the same members.
nlohmann::json shrunk(nlohmann::json facts, std::size_t limit_bytes);

// The result of tools/call.
nlohmann::json result_of(const Answer& answer);
nlohmann::json result_of(const Error& error);
// As tools/list shows it.
nlohmann::json listing_of(const Tool& tool);

}  // namespace hone::mcp

#endif
