// Where an agent works: the run, or a task outside of one, and where the whole of long answers is put for it.
#ifndef HONE_MCP_WORKPLACE_H
#define HONE_MCP_WORKPLACE_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mcp/command.h"
#include "run/run.h"

namespace hone::mcp {

// Full answers as files that the agent may read: RUN/worktree/.hone, which git does not see; outside a run, mcp in the cache
// folder. The oldest go.
class Shelf {
 public:
  explicit Shelf(fs::path folder) : folder_(std::move(folder)) {}
  // The file's absolute path. Any thread.
  Result<std::string> put(const std::string& name, const std::string& ending, const std::string& text) const;

 private:
  fs::path folder_;
};

struct Workplace {
  std::optional<Run> run;
  Command command;                       // this program, in the worktree
  Shelf shelf;
  std::vector<std::string> verbs;        // that this program has

  bool has(const std::string& verb) const;
  // VERB and what says where: --run of the run, else --task when `arguments` name one.
  std::vector<std::string> line(const std::string& verb, const nlohmann::json& arguments) const;
  // Puts `whole` on the shelf and its path into facts["full"]; null where that failed, which is no reason to lose the answer.
  void keep(nlohmann::json& facts, const std::string& name, const nlohmann::json& whole) const;
};

}  // namespace hone::mcp

#endif
