#include "base/error.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hone {
namespace {

TEST(Error, TextNamesPlaceKindAndHint) {
  const Error error = make_error(ErrorKind::compile, "no {}", "x").at({"kernel.cpp", 3, 7}).with_hint("declare x").with_note("int y = x;");
  EXPECT_EQ(to_text(error), "kernel.cpp:3:7: error(compile): no x\n  hint: declare x\n  int y = x;");
}

TEST(Error, JsonRoundTrip) {
  const Error error = make_error(ErrorKind::plan, "zero grid").at({"plan.cpp", 2, 0}).with_hint("h");
  const Error back = nlohmann::json(error).get<Error>();
  EXPECT_EQ(to_text(back), to_text(error));
}

TEST(Error, EveryKindHasNameAndExitCode) {
#define HONE_KIND_CHECK(name, code, text)                        \
  EXPECT_EQ(error_kind_from(#name), ErrorKind::name);            \
  EXPECT_EQ(exit_code_of(ErrorKind::name), code);
  HONE_ERROR_KINDS(HONE_KIND_CHECK)
#undef HONE_KIND_CHECK
}

TEST(Error, TryReturnsTheError) {
  auto inner = [](bool good) -> Result<int> {
    if (!good) return fail(ErrorKind::io, "bad");
    return 4;
  };
  auto outer = [&](bool good) -> Result<int> {
    HONE_TRY(const int value, inner(good));
    return value + 1;
  };
  EXPECT_EQ(outer(true).value(), 5);
  EXPECT_EQ(outer(false).error().message, "bad");
}

}  // namespace
}  // namespace hone
