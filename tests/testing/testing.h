// Shared by all tests: folders, skipping, and results that must hold.
#ifndef HONE_TESTS_TESTING_H
#define HONE_TESTS_TESTING_H

#include <string>

#include "base/error.h"
#include "base/fs.h"

namespace hone::testing {

fs::path source_dir();     // the checkout
fs::path hone_binary();    // the built command
// A scratch folder for this test, removed at the end of the process.
fs::path scratch(const std::string& name);

// The value, or a test failure that prints the error.
#define HONE_ASSERT_OK(result) ASSERT_TRUE((result).has_value()) << ::hone::to_text((result).error())
#define HONE_EXPECT_ERROR(result, expected_kind)                                                            \
  do {                                                                                                      \
    const auto& hone_result_ = (result);                                                                    \
    EXPECT_FALSE(hone_result_.has_value()) << "expected an error of kind " #expected_kind;                  \
    if (!hone_result_.has_value()) {                                                                        \
      EXPECT_EQ(::hone::name_of(hone_result_.error().kind), #expected_kind) << ::hone::to_text(hone_result_.error()); \
    }                                                                                                       \
  } while (false)

}  // namespace hone::testing

#endif
