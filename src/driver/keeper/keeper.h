// hone-keeper: starts one program in a PID namespace of its own and ends with it everything that it started.
//
//   hone-keeper STATUS_FD [--confined] [--write PATH]... [--hide PATH]... -- PROGRAM [ARGUMENT]...
//
// STATUS_FD gets lines: "namespace" or "subreaper: WHY", then "error STAGE: WHY" or "ended exit|signal N left M", where M
// counts processes that outlived the program and were ended. Where a PID namespace is refused the keeper is a subreaper and
// ends the orphans one by one. SIGINT, SIGTERM and SIGHUP go on to the program alone; SIGUSR1 ends everything at once.
// When the keeper's parent dies, all of it dies.
//
// --confined: a mount namespace in which only the paths of --write may be written, and those of --hide are empty, with a /dev
// of its own; no new privileges, and as root none that could undo any of this. Refused, never left out, where the machine
// does not allow it.
#ifndef HONE_DRIVER_KEEPER_KEEPER_H
#define HONE_DRIVER_KEEPER_KEEPER_H

#include <string>
#include <vector>

namespace hone::keeper {

struct View {
  bool confined = false;
  std::vector<std::string> writable, hidden;
};
// Within a fresh mount namespace: its own /proc, and the view where confined. Empty: done; else what failed and why.
std::string set_up_view(const View& view);
// In the process that becomes the confined program. The same answer.
std::string give_up_privileges();

}  // namespace hone::keeper

#endif
