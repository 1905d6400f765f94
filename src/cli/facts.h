// What `hone doctor` looks at: one fact a row. Gathering changes nothing on the machine.
#ifndef HONE_CLI_FACTS_H
#define HONE_CLI_FACTS_H

#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace hone::cli {

struct Fact {
  enum class State { ok, note, missing };
  std::string id;            // stable: "g++", "sandbox", "cuda_driver"
  State state = State::ok;   // note: works, but something is worth knowing
  std::string value;         // what is there: "12.2.0 (/usr/bin/g++)"
  std::string cost = {};     // what the lack costs
  std::string mend = {};     // how to mend it
  bool needed = false;       // the CPU path does not work without it
};
std::string_view name_of(Fact::State state);   // ok, note, missing

struct FactGroup {
  std::string title;
  std::vector<Fact> facts;
};

FactGroup machine_facts(int workers);          // CPU, caches, governor, memory, disk, environment variables
FactGroup tool_facts(const Sandbox* sandbox);  // compilers, sandbox, git, addr2line, libraries; null: no installation
FactGroup gpu_facts();                         // toolkit, driver, GPUs, NVML, profilers

// The first version-like word ("12.2.0") that `program --version` prints, or empty.
std::string version_of(const std::string& program);

}  // namespace hone::cli

#endif
