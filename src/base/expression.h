// Integer expressions of contracts and candidates: shapes ("G * ceil_div(M, 8)"), work counts, and
// constraints ("MR * NR <= 12 && K % KC == 0").
//
// C's precedence; + - * / % (division rounds toward zero), comparisons, && || !, parentheses, the
// functions min max ceil_div align_up sum count, and `and or not` as words. Comparisons give 0 or 1.
// A name is an integer or a list of integers. Operators, ceil_div and align_up take lists element by
// element ("sum(align_up(rows, 8))"); sum, count, min and max make a number of them, and the whole
// expression must be a number. The right side of && and || is skipped when it does not matter.
#ifndef HONE_BASE_EXPRESSION_H
#define HONE_BASE_EXPRESSION_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

using ExpressionValues = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

// Errors (kind contract) name the expression and the column: syntax, unknown name, division by
// zero, overflow of 64 bits, a list where a number is needed. Depth is limited.
Result<std::int64_t> evaluate(std::string_view expression, const ExpressionValues& values);
// The names that an expression mentions, in order of first use.
Result<std::vector<std::string>> names_in(std::string_view expression);

}  // namespace hone

#endif
