// A flow over a fake run: an evaluator that reads a candidate's speedup in its source, and agents that are functions.
#ifndef HONE_TESTS_FLOW_FAKE_FLOW_H
#define HONE_TESTS_FLOW_FAKE_FLOW_H

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "flow/flow.h"
#include "run/frontier.h"
#include "run/launcher.h"
#include "run/progress.h"

namespace hone::testing {

// "// speedup 1.5" in kernel.cpp passes with that; "// wrong" fails; "// slow" waits to be cancelled; "// machine" is a
// fault of the machine. A tuner's candidate is as fast as its parameter A says: 1 + A/10.
class SourceEvaluator : public Evaluator {
 public:
  Result<Report> evaluate(const Evaluation& evaluation) override;
  void prepare(const std::vector<Candidate>&) override {}
  std::vector<std::string> judged() const;       // sha256 of full and quick looks, in order
  int most_at_once() const { return most_; }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> judged_;
  std::atomic<int> now_ = 0, most_ = 0;
};

// What an agent's program does in a turn, with what it may do itself.
class Hands {
 public:
  Hands(const hone::Run& in, const Turn& of) : run(in), turn(of) {}
  // A candidate of this source in scratch, and its bench. The answer as the launcher gives it.
  Result<nlohmann::json> bench(const std::string& name, const std::string& source) const;
  fs::path write(const std::string& name, const std::string& source) const;
  Result<nlohmann::json> ask(nlohmann::json request) const;
  bool cancelled() const { return turn.cancel != nullptr && turn.cancel->load(); }
  void wait_for_the_end() const;                 // as a program that never ends by itself
  const hone::Run& run;
  const Turn& turn;
};
using Script = std::function<TurnResult(const Hands& hands)>;

TurnResult said_done();
TurnResult said_failed(const std::string& reason);

class FlowTest : public ::testing::Test {
 protected:
  FlowTest();
  // Agents by their program's name: `command:NAME`.
  std::map<std::string, Script> scripts;
  FlowOptions options(const std::string& flow, const std::vector<std::string>& agents, const std::string& budget);
  Result<FlowEnd> work(const FlowOptions& options);
  std::vector<LedgerRow> rows() const;
  RunProgress progress() const { return progress_of(rows()); }
  std::vector<FrontierEntry> frontier() const { return frontier_of(rows()); }
  std::vector<std::string> roles() const;        // of the turns, in order

  hone::Run run;
  SourceEvaluator evaluator;
};

}  // namespace hone::testing

#endif
