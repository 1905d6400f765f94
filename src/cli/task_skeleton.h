// A working task to start from: what `hone task new` writes.
#ifndef HONE_CLI_TASK_SKELETON_H
#define HONE_CLI_TASK_SKELETON_H

#include <map>
#include <string>

namespace hone::cli {

// Files by path below the task's folder. It passes `hone task check` as it is.
const std::map<std::string, std::string>& task_skeleton();

}  // namespace hone::cli

#endif
