// Work that goes on while messages are read: measurements one after the other, everything else side by side.
#ifndef HONE_MCP_CALLS_H
#define HONE_MCP_CALLS_H

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hone::mcp {

class Calls {
 public:
  // What is left to say when a call is over. Its key is free by then: whoever hears the answer may use it again.
  using Reply = std::function<void()>;
  using Work = std::function<Reply(const std::atomic<bool>& cancel)>;

  Calls();
  ~Calls() { stop(); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // `key` names the call for `cancel`, and must be unique among those that wait or run. Work that was cancelled while it waited
  // still runs, with `cancel` true.
  enum class Started { yes, key_in_use, too_many };
  Started start(const std::string& key, bool measures, Work work);
  // False: no such call waits or runs.
  bool cancel(const std::string& key);
  // Cancels everything, waits for its end; nothing starts any more.
  void stop();

 private:
  struct Call {
    std::string key;
    Work work;
    std::atomic<bool> cancel{false};
  };
  struct Lane {
    std::deque<std::shared_ptr<Call>> waiting;
    std::condition_variable wake;
  };
  void serve(Lane& lane);

  std::mutex mutex_;
  Lane measuring_, looking_;
  std::map<std::string, std::shared_ptr<Call>> known_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace hone::mcp

#endif
