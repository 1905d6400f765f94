// A small package index on loopback, which can be told to misbehave.
#ifndef HONE_TESTS_FAKE_INDEX_H
#define HONE_TESTS_FAKE_INDEX_H

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fs.h"

namespace hone::testing {

class FakeIndex {
 public:
  FakeIndex();
  ~FakeIndex();
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/simple"; }
  int port() const { return port_; }

  std::map<std::string, std::string> files;                 // by name; listed on the page of every project
  std::atomic<int> tear{0};                                 // so many answers with a file end in the middle
  std::atomic<std::size_t> tear_at{0};                      // after so many bytes; 0: half of what is asked for
  std::atomic<bool> ranges{true};                           // false: a range is ignored
  std::atomic<int> pause_us{0};                             // between pieces of 4 KiB
  std::atomic<bool> redirect{false};                        // files are elsewhere
  std::vector<std::string> asked() const;                   // "file bytes=N-" in order

 private:
  void serve();
  void answer(int connection);
  int socket_ = -1, port_ = 0;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::vector<std::thread> connections_;
  std::thread thread_;
};

// A zip archive with these files; a name that ends in "*" is executable and loses the star.
std::string zip_of(const std::map<std::string, std::string>& files);

}  // namespace hone::testing

#endif
