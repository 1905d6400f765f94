// Expected failure as a value: what went wrong, where, and what to do about it.
//
// The same object is printed on the terminal ("file:line:column: error(kind): message" and a hint),
// written as JSON, and decides the exit code. Exceptions do not cross a room's boundary.
#ifndef HONE_BASE_ERROR_H
#define HONE_BASE_ERROR_H

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace hone {

// name, exit code, what it means
#define HONE_ERROR_KINDS(X)                                                                 \
  X(usage, 2, "the command line is wrong")                                                  \
  X(not_found, 2, "a named thing does not exist")                                           \
  X(contract, 2, "a task, candidate or run file breaks its contract")                       \
  X(plan, 2, "the launch plan is invalid or could not be evaluated")                        \
  X(kernel_name, 2, "a kernel name resolves to no function, to several, or its arguments differ") \
  X(compile, 1, "the candidate does not compile")                                           \
  X(crash, 1, "the kernel died of a signal or a trap")                                      \
  X(illegal_address, 1, "the kernel accessed memory that it does not have")                 \
  X(misaligned_address, 1, "an access is not aligned to its size")                          \
  X(device_assert, 1, "an assertion in the kernel failed")                                  \
  X(timeout, 1, "the kernel did not end in time")                                           \
  X(out_of_memory, 1, "the memory limit was reached")                                       \
  X(output_limit, 1, "the output limit was reached")                                        \
  X(forbidden, 1, "the sandbox refused an operation")                                       \
  X(launch, 1, "the device refused a launch")                                               \
  X(wrong_result, 1, "an output differs from the reference by more than the gate")          \
  X(non_finite, 1, "an output holds NaN or Inf where the reference is finite")              \
  X(not_written, 1, "valid output elements were left unwritten")                            \
  X(out_of_bounds, 1, "memory around a buffer was overwritten")                             \
  X(input_modified, 1, "the kernel wrote to an input")                                      \
  X(late_work, 1, "work went on after the launch had returned")                             \
  X(environment, 3, "this machine lacks something")                                         \
  X(sandbox_unavailable, 3, "this machine refuses what the sandbox needs")                  \
  X(no_compiler, 3, "no suitable compiler")                                                 \
  X(io, 3, "a file or folder could not be read or written")                                 \
  X(device, 3, "the device or its process failed")                                          \
  X(conflict, 2, "it contradicts what is there already")                                    \
  X(unauthorized, 2, "the token is missing, unknown or not allowed to do this")             \
  X(unavailable, 3, "the service cannot take this now")                                     \
  X(quota, 3, "a quota of the token is used up")                                            \
  X(queue_timeout, 4, "the job waited longer than it wanted to")                            \
  X(cancelled, 4, "cancelled")                                                              \
  X(budget, 4, "a budget ended")                                                            \
  X(internal, 3, "a fault of Hone itself")

enum class ErrorKind {
#define HONE_KIND_ENUM(name, code, text) name,
  HONE_ERROR_KINDS(HONE_KIND_ENUM)
#undef HONE_KIND_ENUM
};

std::string_view name_of(ErrorKind kind);
int exit_code_of(ErrorKind kind);
// Inverse of name_of; `internal` for an unknown name.
ErrorKind error_kind_from(std::string_view name);

// Lines and columns count from 1; 0 means unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
};

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
  Place place = {};
  std::string hint = {};
  std::vector<std::string> notes = {};   // further lines: compiler output, related places

  Error&& at(Place where) && { place = std::move(where); return std::move(*this); }
  Error&& with_hint(std::string text) && { hint = std::move(text); return std::move(*this); }
  Error&& with_note(std::string text) && { notes.push_back(std::move(text)); return std::move(*this); }
};

// One line (place, kind, message) and, indented below it, hint and notes.
std::string to_text(const Error& error);
// kind, message, place {file, line, column} or null, hint or null, notes (when there are any).
void to_json(nlohmann::json& out, const Error& error);
void from_json(const nlohmann::json& in, Error& error);

template <class T = void>
using Result = tl::expected<T, Error>;

template <class... A>
Error make_error(ErrorKind kind, fmt::format_string<A...> format, A&&... args) {
  return Error{kind, fmt::format(format, std::forward<A>(args)...)};
}

// return fail(ErrorKind::io, "cannot read {}", path);
template <class... A>
tl::unexpected<Error> fail(ErrorKind kind, fmt::format_string<A...> format, A&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(format, std::forward<A>(args)...)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// HONE_TRY(auto text, read_file(path)): declares `text`, or returns the error from this function.
#define HONE_CONCAT_(a, b) a##b
#define HONE_CONCAT(a, b) HONE_CONCAT_(a, b)
#define HONE_TRY(declaration, ...) HONE_TRY_(HONE_CONCAT(hone_try_, __LINE__), declaration, __VA_ARGS__)
#define HONE_TRY_(result, declaration, ...)                                         \
  auto result = (__VA_ARGS__);                                                      \
  if (!result) return ::tl::unexpected<::hone::Error>(std::move(result).error());   \
  declaration = *std::move(result)
// For Result<void>.
#define HONE_CHECK(...)                                                             \
  do {                                                                              \
    if (auto hone_check_ = (__VA_ARGS__); !hone_check_)                             \
      return ::tl::unexpected<::hone::Error>(std::move(hone_check_).error());       \
  } while (false)

}  // namespace hone

#endif
