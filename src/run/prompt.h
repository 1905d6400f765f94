// PROMPT.md and the worktree's docs, rendered from share/hone/prompts/*.mustache.
#ifndef HONE_RUN_PROMPT_H
#define HONE_RUN_PROMPT_H

#include <string>

#include "base/error.h"
#include "contract/task.h"
#include "run/manifest.h"

namespace hone {

Result<std::string> render_prompt(const Task& task, const Manifest& manifest);

}  // namespace hone

#endif
