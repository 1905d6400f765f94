// A run's report: what was tried, what was retained, how the best came about. Each statement names its row of the ledger.
#ifndef HONE_RUN_REPORT_H
#define HONE_RUN_REPORT_H

#include <nlohmann/json.hpp>
#include <string>

#include "run/summary.h"

namespace hone {

nlohmann::json report_json(const Summary& summary);     // hone.report/1
std::string report_markdown(const Summary& summary);
// One page without anything from elsewhere: the curve drawn in it, rows linked.
std::string report_html(const Summary& summary);
// The best speedup so far over the run's time, as a picture that stands alone.
std::string curve_svg(const Summary& summary);

}  // namespace hone

#endif
