// Adding a toolkit from a small index on loopback: what breaks, what is refused, what survives kill -9.
#include "supply/add.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/hash.h"
#include "base/process.h"
#include "fake_index.h"
#include "supply/unpack.h"
#include "testing/command.h"
#include "testing/testing.h"
#include "toolchain/compilers.h"
#include "toolchain/headers.h"
#include "toolchain/toolchain.h"

namespace hone::testing {
namespace {

std::string noise(std::size_t bytes, unsigned seed) {
  std::mt19937 generator(seed);
  std::string out(bytes, '\0');
  for (char& c : out) c = static_cast<char>(generator());
  return out;
}

class Adding : public ::testing::Test {
 protected:
  void SetUp() override {
    toolchains_ = scratch("toolchains");
    serve("tool_a-1.whl", {{"pack/bin/nvcc*", "#!/bin/sh\necho one\n"}, {"tool_a-1.dist-info/licenses/License.txt", "terms"}, {"tool_a-1.dist-info/RECORD", "x"}});
    serve("tool_b-1.whl", {{"pack/lib/big", noise(400'000, 1)}, {"other/left_out", "x"}});
    toolkit_ = {"small", "1", "terms", "http://terms", {}, "pack/", "bin/nvcc", 1'000'000};
    pin();
  }
  void serve(const std::string& name, const std::map<std::string, std::string>& files) { index_.files[name] = zip_of(files); }
  void pin() {
    toolkit_.wheels.clear();
    for (const auto& [name, bytes] : index_.files) toolkit_.wheels.push_back({name.substr(0, name.find('-')), name, bytes.size(), sha256(bytes)});
  }
  AddOptions options() const {
    AddOptions out;
    out.index = index_.url();
    out.toolchains = toolchains_;
    out.idle_s = 2;
    out.pause_s = 0.02;
    return out;
  }
  Result<Added> add() const { return add_toolkit(toolkit_, options()); }

  // What a person would find: nothing, or a whole toolkit.
  void expect_nothing_or_whole() const {
    const fs::path root = toolchains_ / "small";
    if (!fs::exists(root)) return;
    EXPECT_TRUE(is_added(toolkit_, toolchains_));
    EXPECT_EQ(fs::file_size(root / "lib/big"), 400'000u);
  }
  void expect_whole() const {
    EXPECT_TRUE(is_added(toolkit_, toolchains_));
    const fs::path root = toolchains_ / "small";
    EXPECT_EQ(*read_file(root / "bin/nvcc"), "#!/bin/sh\necho one\n");
    EXPECT_EQ(::access((root / "bin/nvcc").c_str(), X_OK), 0);
    EXPECT_EQ(sha256(*read_file(root / "lib/big")), sha256(noise(400'000, 1)));
    EXPECT_EQ(*read_file(root / "licenses/tool_a/License.txt"), "terms");
    EXPECT_FALSE(fs::exists(root / "other"));
    EXPECT_FALSE(fs::exists(toolchains_ / ".small")) << "downloads are gone";
  }

  FakeIndex index_;
  fs::path toolchains_;
  Toolkit toolkit_;
};

// Headers keep their place below the root, which has a name with the version.
TEST_F(Adding, HeadersGoWhereCompilersLookForThem) {
  index_.files.clear();
  serve("tool_a-1.whl", {{"pack/include/one/a.cuh", "a"}, {"pack/left_out.py", "x"}, {"tool_a-1.dist-info/licenses/License.txt", "terms"}});
  toolkit_.folder = toolkit_.below = "pack/include/";
  toolkit_.proof = "pack/include/one/a.cuh";
  toolkit_.root = "small-1";
  pin();
  const auto added = add();
  HONE_ASSERT_OK(added);
  EXPECT_EQ(added->root, toolchains_ / "small-1");
  EXPECT_EQ(*read_file(added->root / "pack/include/one/a.cuh"), "a");
  EXPECT_EQ(*read_file(added->root / "licenses/tool_a/License.txt"), "terms");
  EXPECT_FALSE(fs::exists(added->root / "pack/left_out.py"));
  EXPECT_TRUE(add()->was_there);
}

// What is fetched is what a task's compile looks for.
TEST(Toolkits, DeepgemmLandsWhereItsHeadersAreLookedFor) {
  const Toolkit& toolkit = deepgemm_toolkit();
  const HeaderPackage& package = *find_header_package("deepgemm");
  EXPECT_EQ(toolchains_dir() / toolkit.root_name(), place_of(package));
  EXPECT_TRUE(toolkit.proof.starts_with(toolkit.below));
  EXPECT_EQ(find_toolkit("deepgemm"), &toolkit);
  EXPECT_EQ(find_toolkit("cuda"), &cuda_toolkit());
  EXPECT_EQ(find_toolkit("gcc"), nullptr);
}

TEST_F(Adding, MakesTheWholeAndDoesNothingTheSecondTime) {
  const auto added = add();
  HONE_ASSERT_OK(added);
  EXPECT_FALSE(added->was_there);
  EXPECT_EQ(added->root, toolchains_ / "small");
  expect_whole();
  const std::size_t asked = index_.asked().size();
  const auto again = add();
  HONE_ASSERT_OK(again);
  EXPECT_TRUE(again->was_there);
  EXPECT_EQ(index_.asked().size(), asked) << "nothing was fetched";
}

TEST_F(Adding, GoesOnWhereAConnectionBroke) {
  index_.tear = 3;
  HONE_ASSERT_OK(add());
  expect_whole();
  std::size_t resumed = 0;
  for (const std::string& each : index_.asked()) resumed += each.find("bytes=") != std::string::npos ? 1 : 0;
  EXPECT_EQ(resumed, 3u);
}

TEST_F(Adding, AServerWithoutRangesIsAskedFromTheStart) {
  index_.tear = 1;
  index_.ranges = false;
  HONE_ASSERT_OK(add());
  expect_whole();
}

TEST_F(Adding, FollowsARedirect) {
  index_.redirect = true;
  HONE_ASSERT_OK(add());
  expect_whole();
}

TEST_F(Adding, StoppedItKeepsWhatCame) {
  index_.tear = 1000;
  index_.tear_at = 1;                          // headway, a byte at a time
  std::atomic<bool> cancel{false};
  AddOptions watched = options();
  watched.cancel = &cancel;
  int lines = 0;
  watched.progress = [&](const std::string&) { cancel = ++lines > 8; };
  HONE_EXPECT_ERROR(add_toolkit(toolkit_, watched), cancelled);
  EXPECT_GT(fs::file_size(toolchains_ / ".small/tool_a-1.whl.part"), 2u);
  EXPECT_FALSE(fs::exists(toolchains_ / "small"));
  index_.tear = 0;
  HONE_ASSERT_OK(add());
  expect_whole();
}

TEST_F(Adding, WhatIsThereNeedsNoNetwork) {
  for (const auto& [name, bytes] : index_.files) {
    HONE_ASSERT_OK(make_dirs(toolchains_ / ".small"));
    HONE_ASSERT_OK(write_file_atomic(toolchains_ / ".small" / name, bytes));
  }
  AddOptions offline = options();
  offline.index = "http://127.0.0.1:1/simple";
  HONE_ASSERT_OK(add_toolkit(toolkit_, offline));
  expect_whole();
}

TEST_F(Adding, GivesUpOnALineThatGivesNothing) {
  index_.tear = 1000;
  index_.files["tool_a-1.whl"].resize(1);      // half of it is nothing
  HONE_EXPECT_ERROR(add(), unavailable);
}

TEST_F(Adding, OtherBytesAreRefused) {
  toolkit_.wheels[1].sha256[0] = toolkit_.wheels[1].sha256[0] == '0' ? '1' : '0';
  const auto refused = add();
  HONE_EXPECT_ERROR(refused, environment);
  EXPECT_NE(refused.error().message.find("tool_b-1.whl"), std::string::npos);
  EXPECT_NE(refused.error().message.find("SHA-256"), std::string::npos);
  EXPECT_FALSE(fs::exists(toolchains_ / "small"));
  EXPECT_FALSE(fs::exists(toolchains_ / ".small/tool_b-1.whl.part")) << "what is wrong is not gone on with";
  pin();
  HONE_ASSERT_OK(add());
  expect_whole();
}

TEST_F(Adding, AnotherLengthIsRefused) {
  toolkit_.wheels[1].bytes -= 1;
  HONE_EXPECT_ERROR(add(), environment);
  toolkit_.wheels[1].bytes += 2;
  HONE_EXPECT_ERROR(add(), unavailable);
}

TEST_F(Adding, AnIndexWithoutTheFileOrWithoutAnybodyIsSaid) {
  Toolkit other = toolkit_;
  other.wheels[0].file = "tool_a-2.whl";
  HONE_EXPECT_ERROR(add_toolkit(other, options()), not_found);
  AddOptions nobody = options();
  nobody.index = "http://127.0.0.1:1/simple";
  const auto offline = add_toolkit(toolkit_, nobody);
  HONE_EXPECT_ERROR(offline, unavailable);
  EXPECT_NE(offline.error().hint.find("HONE_INDEX"), std::string::npos) << offline.error().hint;
  nobody.index = "pypi";
  HONE_EXPECT_ERROR(add_toolkit(toolkit_, nobody), usage);
}

TEST_F(Adding, AnOlderToolkitStaysUntilTheNewOneIsWhole) {
  HONE_ASSERT_OK(add());
  Toolkit newer = toolkit_;
  newer.version = "2";
  newer.wheels[1].sha256 = std::string(64, '0');
  HONE_EXPECT_ERROR(add_toolkit(newer, options()), environment);
  EXPECT_TRUE(is_added(toolkit_, toolchains_));
  newer.wheels = toolkit_.wheels;
  HONE_ASSERT_OK(add_toolkit(newer, options()));
  EXPECT_TRUE(is_added(newer, toolchains_));
  EXPECT_FALSE(fs::exists(toolchains_ / ".small"));
}

TEST_F(Adding, ArchivesThatLeaveTheirFolderAreRefused) {
  for (const char* name : {"pack/../../../escaped", "pack//etc/escaped", "pack/a\\..\\b"}) {
    const fs::path archive = scratch("hostile") / "evil-1.whl", into = scratch("into");
    HONE_ASSERT_OK(write_file_atomic(archive, zip_of({{name, "x"}})));
    HONE_EXPECT_ERROR(unpack_wheel(archive, "pack/", "", into, nullptr), environment);
  }
  const fs::path broken = scratch("hostile") / "broken-1.whl";
  std::string bytes = index_.files["tool_b-1.whl"];
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  HONE_ASSERT_OK(write_file_atomic(broken, bytes));
  HONE_EXPECT_ERROR(unpack_wheel(broken, "pack/", "", scratch("into"), nullptr), environment);
  HONE_ASSERT_OK(write_file_atomic(broken, "no zip"));
  HONE_EXPECT_ERROR(unpack_wheel(broken, "pack/", "", scratch("into"), nullptr), environment);
}

TEST_F(Adding, KilledAtAnyPointThereIsNothingOrTheWhole) {
  index_.pause_us = 300;                       // some 30 ms of download
  std::mt19937 generator(7);
  int killed = 0;
  for (int i = 0; i < 25; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(add().has_value() ? 0 : 1);
    ::usleep(1000 * static_cast<useconds_t>(generator() % 80));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    expect_nothing_or_whole();
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      (void)remove_tree(toolchains_ / "small");
    }
  }
  EXPECT_GT(killed, 5) << "else this test shows nothing";
  index_.pause_us = 0;
  HONE_ASSERT_OK(add());
  expect_whole();
}

// ---- the command

TEST_F(Adding, TheCommandShowsTheLicenceFirstAndRefusesAForeignIndex) {
  CommandOptions fresh;
  fresh.home = scratch("home");
  fresh.env["HONE_INDEX"] = index_.url();
  const CommandResult result = run_hone({"toolchain", "add", "cuda"}, fresh);
  EXPECT_EQ(result.exit, 2) << result.err;
  const std::size_t licence = result.err.find("https://docs.nvidia.com/cuda/eula/"), error = result.err.find("error(not_found)");
  EXPECT_LT(licence, error) << result.err;
  EXPECT_NE(error, std::string::npos) << result.err;
}

TEST_F(Adding, TheCommandSurvivesAFullDisk) {
  ProcessSpec spec;
  spec.argv = {"unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=3m none \"$0\" && exec \"$1\" toolchain add cuda --index \"$2\"", toolchains_.string(),
               hone_binary().string(), index_.url()};
  spec.env = {"PATH=/usr/bin:/bin", "HONE_HOME=" + toolchains_.string()};
  const auto outcome = run_process(spec);
  HONE_ASSERT_OK(outcome);
  if (outcome->err.find("unshare") != std::string::npos || outcome->err.find("mount:") != std::string::npos) {
    GTEST_SKIP() << "no mounts here: " << outcome->err;
  }
  EXPECT_EQ(outcome->exit_code, 3) << outcome->err;
  EXPECT_NE(outcome->err.find("error(io)"), std::string::npos) << outcome->err;
  EXPECT_NE(outcome->err.find("HONE_HOME"), std::string::npos) << outcome->err;
}

TEST_F(Adding, AFullDiskInTheMiddleLeavesNothingBehindThatCounts) {
  // The check beforehand cannot see it: the disk fills while the file is written.
  const pid_t child = ::fork();
  if (child == 0) {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGXFSZ, &ignore, nullptr);
    const rlimit small{200'000, 200'000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const auto added = add();
    ::_exit(!added && added.error().kind == ErrorKind::io ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "kind io";
  EXPECT_FALSE(fs::exists(toolchains_ / "small"));
  HONE_ASSERT_OK(add());
  expect_whole();
  std::size_t resumed = 0;
  for (const std::string& each : index_.asked()) resumed += each == "tool_b-1.whl bytes=200000-" ? 1 : 0;
  EXPECT_EQ(resumed, 1u) << "what came was kept";
}

TEST_F(Adding, NvccIsFoundThereAndHoneCudaWins) {
  const fs::path home = scratch("home"), root = home / "data/hone/toolchains/cuda";
  HONE_ASSERT_OK(make_dirs(root / "bin"));
  HONE_ASSERT_OK(write_file_atomic(root / "bin/nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 99.1, V99.1.2'\n", 0755));
  const auto row = [&](const std::map<std::string, std::string>& env) {
    CommandOptions options;
    options.home = home;
    options.env = env;
    const CommandResult result = run_hone({"toolchain", "list", "--json"}, options);
    EXPECT_EQ(result.exit, 0) << result.err;
    const nlohmann::json listed = nlohmann::json::parse(result.out);
    for (const nlohmann::json& each : listed["tools"])
      if (each["version"] == "99.1.2") return each;
    return nlohmann::json();
  };
  const nlohmann::json added = row({}), named = row({{"HONE_CUDA", root.string()}});
  EXPECT_EQ(added["source"], "hone toolchain add cuda");
  EXPECT_EQ(added["used"], !fs::exists("/usr/local/cuda/bin/nvcc") && !fs::exists("/usr/bin/nvcc") && !fs::exists("/usr/local/bin/nvcc"));
  EXPECT_EQ(named["source"], "HONE_CUDA");
  EXPECT_EQ(named["used"], true);
}

}  // namespace
}  // namespace hone::testing
