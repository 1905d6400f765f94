#include "server/metrics.h"

#include <fmt/format.h>

#include <array>

namespace hone::server {
namespace {

constexpr std::array kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0};

std::string written(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    out += (out.empty() ? "" : ",") + name + "=\"";
    for (const char c : value) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n') out += "\\n";
      else out += c;
    }
    out += '"';
  }
  return out;
}

std::string braces(const std::string& labels, const std::string& more = "") {
  if (labels.empty() && more.empty()) return "";
  return "{" + labels + (labels.empty() || more.empty() ? "" : ",") + more + "}";
}

}  // namespace

void Metrics::describe(const std::string& name, const char* type, const char* help) {
  const std::lock_guard lock(mutex_);
  families_[name].type = type;
  families_[name].help = help;
}

void Metrics::add(const std::string& name, const Labels& labels, double amount) {
  const std::lock_guard lock(mutex_);
  families_[name].values[written(labels)] += amount;
}

void Metrics::set(const std::string& name, const Labels& labels, double value) {
  const std::lock_guard lock(mutex_);
  families_[name].values[written(labels)] = value;
}

void Metrics::observe(const std::string& name, const Labels& labels, double seconds) {
  const std::lock_guard lock(mutex_);
  Histogram& histogram = families_[name].histograms[written(labels)];
  histogram.below.resize(kBounds.size());
  for (std::size_t i = 0; i < kBounds.size(); ++i) histogram.below[i] += seconds <= kBounds[i] ? 1 : 0;
  ++histogram.count;
  histogram.sum += seconds;
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, family.help, name, family.type);
    for (const auto& [labels, value] : family.values) out += fmt::format("{}{} {}\n", name, braces(labels), value);
    for (const auto& [labels, histogram] : family.histograms) {
      for (std::size_t i = 0; i < kBounds.size(); ++i)
        out += fmt::format("{}_bucket{} {}\n", name, braces(labels, fmt::format("le=\"{}\"", kBounds[i])), histogram.below[i]);
      out += fmt::format("{}_bucket{} {}\n", name, braces(labels, "le=\"+Inf\""), histogram.count);
      out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, braces(labels), histogram.sum, name, braces(labels), histogram.count);
    }
  }
  return out;
}

}  // namespace hone::server
