// Mode off: a program gets the paths of the machine where its spec says those of the jail.
#ifndef HONE_SANDBOX_HOST_PATHS_H
#define HONE_SANDBOX_HOST_PATHS_H

#include <string>
#include <string_view>
#include <vector>

#include "sandbox/sandbox.h"

namespace hone {

// Replaces each mount's `inside` by its host path where it begins a path: at the start, after one of
// "=:,;@ " or a quote, or right after an option's letters ("-I/in"); and ends a component. The longest
// mount wins; what was put in is not looked at again.
std::string to_host_paths(std::string_view text, const std::vector<JailMount>& mounts);

}  // namespace hone

#endif
