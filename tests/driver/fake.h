// Agent programs of a few lines of shell, and a turn with one of them.
#ifndef HONE_TESTS_DRIVER_FAKE_H
#define HONE_TESTS_DRIVER_FAKE_H

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "driver/driver.h"
#include "testing/testing.h"

namespace hone::testing {

struct Fake {
  fs::path folder;
  Turn turn;
  std::vector<AgentEvent> events;

  explicit Fake(const std::string& name) : folder(scratch("driver-" + name)) {
    turn.prompt = "the prompt\n";
    turn.cwd = folder / "work";
    fs::create_directories(turn.cwd);
    fs::create_directories(folder / "bin");
    turn.log = folder / "log";
    turn.env = {"PATH=" + (folder / "bin").string() + ":/usr/bin:/bin"};
    turn.limits = {.wall_s = 30, .silence_s = 20, .stop_s = 0.3};
    turn.on_event = [this](const AgentEvent& event) { events.push_back(event); };
  }
  // A shell script in the program's PATH.
  fs::path program(const std::string& name, const std::string& script) const {
    const fs::path path = folder / "bin" / name;
    EXPECT_TRUE(write_file_atomic(path, "#!/bin/bash\n" + script + "\n", 0755));
    return path;
  }
  TurnResult run(const std::string& spec_text) {
    const auto spec = parse_agent_spec(spec_text);
    EXPECT_TRUE(spec) << to_text(spec.error());
    const auto driver = make_driver(*spec);
    EXPECT_TRUE(driver);
    auto done = (*driver)->run(turn);
    if (!done) throw std::runtime_error(to_text(done.error()));
    return *done;
  }
  TurnResult command(const std::string& script) { return run("command:" + program("agent", script).string()); }
  std::string said(EventKind kind) const {
    std::string out;
    for (const AgentEvent& each : events)
      if (each.kind == kind) out += each.tool + "|" + each.text + "\n";
    return out;
  }
};

}  // namespace hone::testing

#endif
