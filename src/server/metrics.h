// Counters, gauges and histograms in Prometheus' text format (version 0.0.4). Names and units by its conventions:
// base units, `_total` for what only grows.
#ifndef HONE_SERVER_METRICS_H
#define HONE_SERVER_METRICS_H

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hone::server {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Metrics {
 public:
  // Once each, before its first value.
  void describe(const std::string& name, const char* type, const char* help);
  void add(const std::string& name, const Labels& labels = {}, double amount = 1);
  void set(const std::string& name, const Labels& labels, double value);
  // Seconds, into buckets from 1 ms to 1 h.
  void observe(const std::string& name, const Labels& labels, double seconds);
  std::string text() const;

 private:
  struct Histogram {
    std::vector<std::uint64_t> below;
    std::uint64_t count = 0;
    double sum = 0;
  };
  struct Family {
    std::string type, help;
    std::map<std::string, double> values;            // by labels as written
    std::map<std::string, Histogram> histograms;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Family> families_;
};

}  // namespace hone::server

#endif
