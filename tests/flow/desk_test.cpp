#include "flow/desk.h"

#include <gtest/gtest.h>

#include <thread>

#include "flow/listener.h"
#include "flow/turnstile.h"
#include "run/fake_run.h"
#include "run/launcher.h"
#include "run/safe.h"
#include "testing/testing.h"

namespace hone {
namespace {

TEST(Notes, OneFieldALine) {
  EXPECT_EQ(field_of_notes("# Mine\n- **Family:** tiled loads  \nfamily: another\nidea: y", "family"), "tiled loads");
  EXPECT_EQ(field_of_notes("Idea: wider\n", "idea"), "wider");
  EXPECT_EQ(field_of_notes("", "idea"), "");
  EXPECT_EQ(field_of_notes("idea:", "idea"), "");
}

TEST(Turnstile, KeepsTheOrderAndLetsThoseGoWhoLeave) {
  Turnstile line;
  std::vector<int> order;
  std::mutex mutex;
  std::vector<std::thread> threads;
  {
    const auto first = line.enter({});
    for (int i = 0; i < 5; ++i) {
      threads.emplace_back([&, i] {
        const auto pass = line.enter([&] { return i == 2; });
        const std::lock_guard held(mutex);
        if (pass) order.push_back(i);
      });
      while (line.depth() < i + 2 && i != 2 && line.depth() < 2 + i - (i > 2 ? 1 : 0)) std::this_thread::yield();
      if (i == 2) threads.back().join();
    }
    while (line.depth() < 5) std::this_thread::yield();
  }
  for (std::thread& each : threads)
    if (each.joinable()) each.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 3, 4}));
  EXPECT_EQ(line.depth(), 0);
}

TEST(AskLauncher, NobodyListensOrAKilledOneDid) {
  const hone::Run run = testing::fake_run("nobody");
  auto answer = ask_launcher(run, {{"do", "status"}});
  HONE_ASSERT_OK(answer);
  EXPECT_FALSE(answer->has_value());
  const auto fd = listen_as_launcher(run);
  HONE_ASSERT_OK(fd);
  ::close(*fd);                                     // the socket's file stays, as after kill -9
  ASSERT_TRUE(fs::exists(run.root / "launcher.sock"));
  answer = ask_launcher(run, {{"do", "status"}});
  HONE_ASSERT_OK(answer);
  EXPECT_FALSE(answer->has_value());
}

TEST(AskLauncher, APathLongerThanAnAddressProgressAndErrors) {
  hone::Run run = testing::fake_run("long");
  run.root = run.root / std::string(90, 'a') / std::string(90, 'b');
  fs::create_directories(run.root);
  const auto listener = Listener::start(run, [](const nlohmann::json& request, const Caller& caller) -> Result<nlohmann::json> {
    EXPECT_TRUE(caller.of_turn);                    // it is this very process
    caller.progress("half way");
    if (request["do"] == "fail") return fail(make_error(ErrorKind::budget, "spent").with_hint("stop"));
    return nlohmann::json{{"got", request["do"]}};
  });
  HONE_ASSERT_OK(listener);
  std::vector<std::string> lines;
  const auto answer = ask_launcher(run, {{"do", "x"}}, [&](const std::string& line) { lines.push_back(line); });
  HONE_ASSERT_OK(answer);
  EXPECT_EQ((**answer)["got"], "x");
  EXPECT_EQ(lines, (std::vector<std::string>{"half way"}));
  HONE_EXPECT_ERROR(ask_launcher(run, {{"do", "fail"}}), budget);
  HONE_EXPECT_ERROR(ask_launcher(run, {{"do", std::string(kLongestRequest + 10, 'x')}}), usage);
}

TEST(StartedHere, ThisProcessAndItsChildrenAndNoOthers) {
  EXPECT_TRUE(started_here(::getpid()));
  EXPECT_FALSE(started_here(::getppid()));
  EXPECT_FALSE(started_here(1));
  EXPECT_TRUE(started_here(0));                     // of another namespace: not known, so not trusted
}

TEST(Safe, PutsBackWhatWasChangedRemovedOrReplaced) {
  const fs::path folder = testing::scratch("safe");
  for (const char* each : {"a", "b", "c", "d"}) (void)write_file_atomic(folder / each, each);
  auto safe = Safe::create();
  HONE_ASSERT_OK(safe);
  HONE_ASSERT_OK(safe->keep_folder(folder));
  EXPECT_TRUE(safe->mend()->empty());
  (void)write_file_atomic(folder / "a", "x");
  fs::remove(folder / "b");
  fs::remove(folder / "c");
  fs::create_directories(folder / "c/deep");
  const auto time = fs::last_write_time(folder / "d");
  (void)write_file_atomic(folder / "d", "D");
  fs::last_write_time(folder / "d", time);          // same size, same time
  EXPECT_EQ(safe->mend()->size(), 4u);
  for (const char* each : {"a", "b", "c", "d"}) EXPECT_EQ(*read_file(folder / each), each);
  EXPECT_TRUE(safe->mend()->empty());
}

}  // namespace
}  // namespace hone
