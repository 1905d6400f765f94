// What a person says to a run's launcher, and what it says of itself.
#ifndef HONE_CLI_PERSON_H
#define HONE_CLI_PERSON_H

#include <nlohmann/json.hpp>
#include <string>

#include "cli/verb.h"
#include "run/launcher.h"

namespace hone::cli {

// hone.live/1, or null when no launcher answers.
nlohmann::json live_of(const Run& run);
// The launcher's answer. Kind unavailable when none works on the run: nothing is there to be stopped or paused.
Result<nlohmann::json> need_launcher(const Run& run, const nlohmann::json& request);

// Kind forbidden inside an agent's turn: this is a person's to say.
Result<> check_person();

// NAME=value of each name. Values come from this process's environment, never from the command line, where every user of
// the machine sees them. Kind usage.
Result<std::vector<std::string>> passed_on(const std::vector<std::string>& names);

}  // namespace hone::cli

#endif
