// Faults of a task's own code.
#ifndef HONE_CONTRACT_TASK_ERROR_H
#define HONE_CONTRACT_TASK_ERROR_H

#include <string_view>

#include "contract/task.h"

namespace hone {

// An error of `part` of the task ("task code", "baseline plain"), whose files lie in `folder`: kind
// contract, at the file's path, so that no candidate is blamed. Faults of the machine stay as they are.
Error error_of_task(const Task& task, std::string_view part, const fs::path& folder, Error error);

}  // namespace hone

#endif
