// Small candidates for softmax_f32, written into scratch folders.
#ifndef HONE_TESTS_E2E_CANDIDATE_H
#define HONE_TESTS_E2E_CANDIDATE_H

#include <map>
#include <string>

#include "base/fs.h"

namespace hone::testing {

// `body` is what one block does with its row: x and y point at it, n is its length.
std::string kernel(const std::string& body);
// The one launch that fits it; `launch` replaces the text between "plan.module(...), " and the end.
std::string plan(const std::string& launch = R"("softmax", {problem.axis("M")}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N")))");
extern const char* const kHonest;   // a right body

// A folder with these files; kernel.cpp and plan.cpp are honest unless given.
fs::path candidate(const std::string& name, std::map<std::string, std::string> files = {});

}  // namespace hone::testing

#endif
