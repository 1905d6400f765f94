// An agent program under hone-keeper, watched line by line: bounded output, limits of time, the order of stopping.
#ifndef HONE_DRIVER_CHILD_H
#define HONE_DRIVER_CHILD_H

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "driver/driver.h"

namespace hone {

constexpr std::size_t kUnread = std::size_t{32} << 20;   // bytes that a program may leave unread; one that asks on is ended

// What a dialect does with what it hears. Called from the thread that runs the turn.
class Conversation {
 public:
  virtual ~Conversation() = default;
  // A line of standard output, without its end. False: no sign of life, such as a line about another try.
  virtual bool line(std::string_view text) = 0;
  // Text to write to the program, taken when it is there.
  virtual std::string to_send() { return {}; }
  virtual bool input_done() { return true; }   // standard input is closed when all of `to_send` is written
  // The turn is over though the program runs: its input is closed and it is ended when it does not go by itself.
  virtual bool over() { return false; }
  // Asks the program in its own way to stop; false: it knows none, and gets SIGINT at once.
  virtual bool ask_to_stop() { return false; }
  virtual bool stderr_is_life() const { return false; }
  // A program that was good by its closing event and then exits otherwise has failed all the same.
  virtual bool exit_counts() const { return true; }
};

struct ChildSpec {
  std::vector<std::string> argv;               // argv[0] a path, or found in the turn's PATH
  std::vector<std::string> env = {};           // NAME=value; the launcher's own environment and the turn's win over these
};

// What is known of the end, whatever the program claims.
struct ChildEnd {
  std::optional<TurnEnd> cut;                  // why it was ended; none: it ended by itself, or after it was over
  std::string cut_reason;
  std::optional<int> exit_code, signal;
  bool pressed = false;                        // signals were sent: exit code and signal tell nothing of the program
  int left_behind = 0;
  std::string err;                             // the last of standard error
  double wall_s = 0;
};

// Kinds environment (not found, not startable), sandbox_unavailable (confined, and this machine refuses).
Result<ChildEnd> run_child(const ChildSpec& spec, const Turn& turn, Conversation& conversation);

// The program's path by the PATH that it will see, or empty.
std::string find_agent_program(const std::string& name, const Turn& turn);

}  // namespace hone

#endif
