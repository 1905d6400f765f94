#include "server/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "testing/testing.h"

namespace hone::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobRequest request(const std::string& key = "", const std::string& token = "t") {
  JobRequest out;
  out.token = token;
  out.kind = "bench";
  out.key = key;
  out.body = {{"task", "softmax_f32"}};
  return out;
}

struct StoreTest : ::testing::Test {
  fs::path path = hone::testing::scratch("store") / "service.db";
  std::unique_ptr<Store> store = Store::open(path).value();
  void reopen() {
    store.reset();
    store = Store::open(path).value();
  }
  std::string accept(const JobRequest& what = request()) { return store->accept(what).value().job.id; }
};

TEST_F(StoreTest, AJobsWay) {
  const std::string id = accept();
  EXPECT_EQ(store->job(id)->state, JobState::queued);
  const auto lease = store->start(id, 0);
  HONE_ASSERT_OK(lease);
  EXPECT_EQ(store->job(id)->state, JobState::running);
  HONE_ASSERT_OK(store->add_event(id, "measuring", {{"workload", "small"}}));
  HONE_ASSERT_OK(store->finish(id, *lease, JobState::done, {{"passed", 4}}, 1.5));
  const Job job = store->job(id).value();
  EXPECT_EQ(job.state, JobState::done);
  EXPECT_EQ(job.result, nlohmann::json({{"passed", 4}}));
  EXPECT_EQ(job.ran_s, 1.5);
  EXPECT_EQ(job.request.body["task"], "softmax_f32");
  EXPECT_FALSE(job.ended.empty());
  std::vector<std::string> names;
  const auto events = store->events(id).value();
  for (const Event& event : events) names.push_back(event.name);
  EXPECT_THAT(names, ElementsAre("queued", "leased", "measuring", "done"));
  EXPECT_EQ(store->events(id, 3)->size(), 1u);
}

TEST_F(StoreTest, ALateFinisherChangesNothing) {
  const std::string id = accept();
  const std::int64_t first = store->start(id, 0).value();
  HONE_ASSERT_OK(store->requeue(id, first));
  const std::int64_t second = store->start(id, 0).value();
  EXPECT_GT(second, first);
  HONE_EXPECT_ERROR(store->finish(id, first, JobState::done, {{"late", true}}, 0), conflict);
  HONE_EXPECT_ERROR(store->requeue(id, first), conflict);
  HONE_ASSERT_OK(store->finish(id, second, JobState::done, {{"late", false}}, 0));
  HONE_EXPECT_ERROR(store->finish(id, second, JobState::cancelled, {{"late", true}}, 0), conflict);
  HONE_EXPECT_ERROR(store->start(id, 0), conflict);
  EXPECT_EQ(store->job(id)->result["late"], false);
  HONE_EXPECT_ERROR(store->start("j-none", 0), not_found);
}

TEST_F(StoreTest, AKeyMakesARetrySafe) {
  const auto first = store->accept(request("k"));
  const auto second = store->accept(request("k"));
  HONE_ASSERT_OK(first);
  HONE_ASSERT_OK(second);
  EXPECT_EQ(first->job.id, second->job.id);
  EXPECT_FALSE(first->repeated);
  EXPECT_TRUE(second->repeated);
  EXPECT_NE(accept(request("k", "another token")), first->job.id);
  JobRequest other = request("k");
  other.body["task"] = "rmsnorm_bf16";
  HONE_EXPECT_ERROR(store->accept(other), conflict);
  EXPECT_NE(accept(), accept()) << "no key: each is a job of its own";
}

TEST_F(StoreTest, WhatWasRunningIsQueuedAgainAfterARestart) {
  const std::string ran = accept(), waits = accept(), ended = accept();
  const std::int64_t lease = store->start(ran, 0).value();
  HONE_ASSERT_OK(store->finish(ended, store->start(ended, 0).value(), JobState::done, {}, 0));
  reopen();
  std::vector<std::string> ids;
  const auto queued = store->queued().value();
  for (const Job& job : queued) ids.push_back(job.id);
  EXPECT_THAT(ids, ElementsAre(ran, waits));
  HONE_EXPECT_ERROR(store->finish(ran, lease, JobState::done, {}, 0), conflict);
  EXPECT_EQ(store->job(ended)->state, JobState::done);
}

TEST_F(StoreTest, AJobThatNeverStartedCanEnd) {
  const std::string id = accept();
  HONE_ASSERT_OK(store->end_unstarted(id, JobState::cancelled, {{"error", "queue_timeout"}}, 0));
  EXPECT_EQ(store->job(id)->state, JobState::cancelled);
  HONE_EXPECT_ERROR(store->end_unstarted(id, JobState::done, {}, 0), conflict);
}

TEST_F(StoreTest, CancelIsAWishUntilTheJobEnds) {
  const std::string id = accept();
  EXPECT_TRUE(store->ask_cancel(id).value());
  EXPECT_TRUE(store->job(id)->cancel_asked);
  HONE_ASSERT_OK(store->end_unstarted(id, JobState::cancelled, {}, 0));
  EXPECT_FALSE(store->ask_cancel(id).value());
  HONE_EXPECT_ERROR(store->ask_cancel("j-none"), not_found);
}

TEST_F(StoreTest, ATokenSeesItsOwnJobs) {
  const std::string mine = accept(request("", "me")), yours = accept(request("", "you"));
  HONE_ASSERT_OK(store->job(mine, "me"));
  HONE_EXPECT_ERROR(store->job(yours, "me"), not_found);
  ASSERT_EQ(store->jobs("me", 10)->size(), 1u);
  const auto all = store->jobs({}, 10).value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, yours) << "the latest first";
  EXPECT_EQ(store->jobs({}, 10, all[0].number)->front().id, mine);
}

TEST_F(StoreTest, BlobsBelongToTokensAndLiveAsLongAsTheirJobs) {
  const std::string blob(64, 'a'), other(64, 'b');
  HONE_ASSERT_OK(store->own_blob(blob, 100, "t"));
  HONE_ASSERT_OK(store->own_blob(other, 50, "u"));
  EXPECT_TRUE(store->may_read_blob(blob, "t").value());
  EXPECT_FALSE(store->may_read_blob(blob, "u").value());
  EXPECT_EQ(store->blob_bytes().value(), 150u);
  EXPECT_EQ(store->blob_bytes("t").value(), 100u);
  JobRequest needs = request();
  needs.blobs = {other};
  HONE_EXPECT_ERROR(store->accept(needs), not_found);
  EXPECT_TRUE(store->jobs({}, 10)->empty()) << "what is refused leaves nothing";
  needs.blobs = {blob};
  const std::string id = accept(needs);
  EXPECT_THAT(store->job(id)->request.blobs, ElementsAre(blob));
  EXPECT_THAT(store->collect_blobs(0).value(), ElementsAre(other));
  HONE_ASSERT_OK(store->finish(id, store->start(id, 0).value(), JobState::done, {}, 0));
  EXPECT_TRUE(store->collect_blobs(100)->empty());
  EXPECT_THAT(store->collect_blobs(99).value(), ElementsAre(blob));
  EXPECT_FALSE(store->may_read_blob(blob, "t").value());
}

TEST_F(StoreTest, OldJobsAreDropped) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(accept());
  for (int i = 0; i < 4; ++i) HONE_ASSERT_OK(store->finish(ids[static_cast<std::size_t>(i)], store->start(ids[static_cast<std::size_t>(i)], 0).value(), JobState::done, {}, 0));
  EXPECT_EQ(store->drop_old_jobs(1).value(), 3u);
  HONE_EXPECT_ERROR(store->job(ids[0]), not_found);
  HONE_ASSERT_OK(store->job(ids[3]));
  HONE_ASSERT_OK(store->job(ids[4]));
  EXPECT_TRUE(store->events(ids[0])->empty());
}

TEST_F(StoreTest, ManyCallersAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const std::string id = accept(request(fmt::format("{}", i), fmt::format("t{}", t % 4)));
        const auto lease = store->start(id, 0);
        if (lease) EXPECT_TRUE(store->finish(id, *lease, JobState::done, {}, 0));
        else ++refused;
      }
    });
  for (std::thread& thread : threads) thread.join();
  const auto jobs = store->jobs({}, 1000).value();
  EXPECT_EQ(jobs.size(), 100u) << "two threads share each key";
  EXPECT_EQ(refused, 100);
  for (const Job& job : jobs) EXPECT_EQ(job.state, JobState::done);
  EXPECT_EQ(store->check().value(), "ok");
}

TEST_F(StoreTest, TextThatIsNoUtf8DoesNotHurt) {
  JobRequest odd = request();
  odd.body["name"] = "\xff\xfe";
  const std::string id = accept(odd);
  EXPECT_FALSE(store->job(id)->request.body.is_discarded());
}

TEST(StoreOpen, NoDatabase) {
  const fs::path folder = hone::testing::scratch("store-open");
  std::ofstream(folder / "service.db") << std::string(4096, 'x');
  const auto store = Store::open(folder / "service.db");
  HONE_EXPECT_ERROR(store, contract);
  EXPECT_EQ(store.error().place.file, (folder / "service.db").string());
  std::ofstream(folder / "file") << "x";
  HONE_EXPECT_ERROR(Store::open(folder / "file" / "service.db"), io);
}

// kill -9 at random moments: what was answered is there, once; the database stays whole.
TEST(StoreKill, WhatWasAnsweredIsKept) {
  const fs::path path = hone::testing::scratch("store-kill") / "service.db";
  std::set<std::string> accepted, finished;
  for (int round = 0; round < 10; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(pipe_ends[0]);
      const auto store = Store::open(path);
      const auto say = [&](char what, const std::string& id) {
        const std::string line = what + id + "\n";
        return ::write(pipe_ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size());
      };
      for (bool ok = store.has_value(); ok;) {
        const auto job = (*store)->accept(request());
        ok = job && say('a', job->job.id);
        if (!ok) break;
        const auto lease = (*store)->start(job->job.id, 0);
        ok = lease && (*store)->finish(job->job.id, *lease, JobState::done, {}, 0) && say('f', job->job.id);
      }
      ::_exit(1);
    }
    ::close(pipe_ends[1]);
    std::string text;
    char buffer[4096];
    ssize_t got = ::read(pipe_ends[0], buffer, sizeof buffer);   // it has begun
    ASSERT_GT(got, 0);
    text.append(buffer, static_cast<std::size_t>(got));
    ::usleep(static_cast<useconds_t>(1000 * round + 137 * round * round));
    ::kill(child, SIGKILL);
    while ((got = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(got));
    ::close(pipe_ends[0]);
    ::waitpid(child, nullptr, 0);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) (line[0] == 'a' ? accepted : finished).insert(line.substr(1));
  }
  const auto store = Store::open(path);
  HONE_ASSERT_OK(store);
  EXPECT_EQ((*store)->check().value(), "ok");
  for (const std::string& id : accepted) HONE_ASSERT_OK((*store)->job(id));
  for (const std::string& id : finished) EXPECT_EQ((*store)->job(id)->state, JobState::done);
  EXPECT_GE(accepted.size(), 10u);
}

}  // namespace
}  // namespace hone::server
