#include "toolchain/cache.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "base/hash.h"
#include "toolchain_fixture.h"

namespace hone::testing {
namespace {

class Cache : public ToolchainTest {
 protected:
  static CompileRequest small(int value = 1) { return request(fmt::format("int f() {{ return {}; }}\n", value)); }
};

TEST_F(Cache, TheSecondCompileIsAHitAndEveryInputChangesTheKey) {
  const auto first = toolchain_->compile(small());
  HONE_ASSERT_OK(first);
  const auto again = toolchain_->compile(small());
  HONE_ASSERT_OK(again);
  EXPECT_FALSE(first->cached);
  EXPECT_TRUE(again->cached);
  EXPECT_EQ(first->path, again->path);
  EXPECT_EQ(first->sha256, again->sha256);
  EXPECT_EQ(first->command, again->command);
  EXPECT_EQ(sha256(*read_file(first->path)), first->sha256);
  struct stat info = {};
  ASSERT_EQ(::stat(first->path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0222u, 0u) << "an artifact is read-only";

  std::set<std::string> keys = {first->key};
  auto expect_new = [&](const CompileRequest& changed, const char* what) {
    const auto artifact = toolchain_->compile(changed);
    HONE_ASSERT_OK(artifact);
    EXPECT_FALSE(artifact->cached) << what;
    EXPECT_TRUE(keys.insert(artifact->key).second) << what;
  };
  expect_new(small(2), "source");
  CompileRequest changed = small();
  changed.defines = {{"X", "1"}};
  expect_new(changed, "define");
  changed = small();
  changed.flags = {"-funroll-loops"};
  expect_new(changed, "flag");
  changed = small();
  changed.instantiate = {"f"};
  expect_new(changed, "instantiate");
  changed = small();
  changed.native = false;
  expect_new(changed, "target");
  changed = small();
  changed.sources["unused.h"] = "";
  expect_new(changed, "another file");
  if (Toolchain::compilers().size() > 1) {
    changed = small();
    changed.compiler = Toolchain::compilers()[1].name;
    expect_new(changed, "compiler");
  }

  const fs::path headers = scratch("include");
  fs::copy(fs::canonical(include_), headers, fs::copy_options::recursive);
  std::ofstream(headers / "hone/types.h", std::ios::app) << "\n";
  const auto other = Toolchain::create(*sandbox_, cache_, headers);
  HONE_ASSERT_OK(other);
  const auto artifact = other->compile(small());
  HONE_ASSERT_OK(artifact);
  EXPECT_TRUE(keys.insert(artifact->key).second) << "Hone's headers";
}

TEST_F(Cache, ADamagedEntryIsMadeAgain) {
  const auto good = toolchain_->compile(small());
  HONE_ASSERT_OK(good);
  const fs::path meta = good->path.parent_path() / "meta.json";
  const std::string bytes = *read_file(good->path), facts = *read_file(meta);
  std::string flipped = bytes;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
  const std::vector<std::pair<fs::path, std::string>> damages = {{good->path, flipped},
                                                                 {good->path, bytes.substr(0, bytes.size() / 2)},
                                                                 {good->path, ""},
                                                                 {meta, facts.substr(0, facts.size() / 2)},
                                                                 {meta, "[]"},
                                                                 {meta, "{\"schema\": 5}"},
                                                                 {meta, "{\"schema\": \"hone.artifact/1\"}"},
                                                                 {meta, ""}};
  for (const auto& [path, damage] : damages) {
    HONE_ASSERT_OK(write_file_atomic(path, damage));
    const auto again = toolchain_->compile(small());
    HONE_ASSERT_OK(again);
    EXPECT_FALSE(again->cached);
    EXPECT_EQ(sha256(*read_file(again->path)), again->sha256);
    EXPECT_EQ(again->sha256, good->sha256) << "a compile is reproducible";
  }
  fs::remove(good->path);
  const auto gone = toolchain_->compile(small());
  HONE_ASSERT_OK(gone);
  EXPECT_FALSE(gone->cached);
  EXPECT_TRUE(toolchain_->compile(small())->cached);
}

TEST_F(Cache, AFailedCompileIsNotKept) {
  const CompileRequest bad = request("int f() { return x; }\n");
  for (int i = 0; i < 2; ++i) HONE_EXPECT_ERROR(toolchain_->compile(bad), compile);
  EXPECT_EQ(left_in("artifacts"), 0u);
  EXPECT_EQ(left_in("scratch"), 0u);
}

TEST_F(Cache, OneCompileOfAKeyAtATimeOverThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> compiled{0}, failed{0};
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      const auto artifact = toolchain_->compile(small());
      if (!artifact) ++failed;
      else if (!artifact->cached) ++compiled;
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(compiled, 1);
}

// A child process that runs `work` and ends with its answer.
pid_t child(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(work());
  return pid;
}

int end_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(Cache, OneCompileOfAKeyAtATimeOverProcesses) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(child([&] {
      const auto artifact = toolchain_->compile(small());
      return !artifact ? 2 : artifact->cached ? 0 : 1;
    }));
  int compiled = 0;
  for (const pid_t pid : children) {
    const int code = end_of(pid);
    EXPECT_TRUE(code == 0 || code == 1) << code;
    compiled += code;
  }
  EXPECT_EQ(compiled, 1);
}

// C26: a compiling process is killed at a random moment, again and again.
TEST_F(Cache, KillsLeaveNothingThatIsEverServed) {
  std::mt19937 random(26);
  for (int round = 0; round < 12; ++round) {
    const CompileRequest wanted = small(round);
    const pid_t victim = child([&] { return toolchain_->compile(wanted) ? 0 : 2; });
    const pid_t waiting = round % 3 == 0 ? child([&] { return toolchain_->compile(wanted) ? 0 : 2; }) : -1;
    ::usleep(std::uniform_int_distribution<unsigned>(0, 250'000)(random));
    ::kill(victim, SIGKILL);
    (void)end_of(victim);
    const auto artifact = toolchain_->compile(wanted);
    HONE_ASSERT_OK(artifact);
    EXPECT_EQ(sha256(*read_file(artifact->path)), artifact->sha256);
    if (waiting > 0) {
      EXPECT_EQ(end_of(waiting), 0);
    }
  }
  HONE_ASSERT_OK(toolchain_->compile(small(1000)));   // sweeps what the last victim left
  EXPECT_EQ(left_in("scratch"), 0u);
}

TEST_F(Cache, ScratchOfALivingCompileIsNotSwept) {
  const ArtifactCache cache(cache_);
  const std::string key(64, 'a');
  const auto lock = cache.lock(key);
  HONE_ASSERT_OK(lock);
  const auto folder = cache.scratch(key);
  HONE_ASSERT_OK(folder);
  cache.sweep(std::string(64, 'b'));
  EXPECT_TRUE(fs::exists(*folder));
  cache.sweep(key);
  EXPECT_FALSE(fs::exists(*folder));
}

// C26, edit during a compile: what is hashed are the bytes in memory, whatever becomes of the files.
TEST_F(Cache, AnEditAfterTheReadIsANewKey) {
  const fs::path folder = scratch("edited");
  HONE_ASSERT_OK(write_file_atomic(folder / "kernel.cpp", "#include \"value.h\"\nint f() { return kValue; }\n"));
  HONE_ASSERT_OK(write_file_atomic(folder / "value.h", "constexpr int kValue = 1;\n"));
  CompileRequest before = request("");
  before.sources = *read_tree(folder);
  HONE_ASSERT_OK(write_file_atomic(folder / "value.h", "constexpr int kValue = 2;\n"));
  const auto first = toolchain_->compile(before);
  HONE_ASSERT_OK(first);
  CompileRequest after = before;
  after.sources = *read_tree(folder);
  EXPECT_NE(hash_of(before.sources), hash_of(after.sources));
  const auto second = toolchain_->compile(after);
  HONE_ASSERT_OK(second);
  EXPECT_FALSE(second->cached);
  EXPECT_NE(first->sha256, second->sha256);
}

TEST_F(Cache, AChangedSystemHeaderMakesAnEntryStale) {
  const ArtifactCache cache(cache_);
  const fs::path header = scratch("system") / "vendor.h";
  HONE_ASSERT_OK(write_file_atomic(header, "one"));
  const std::string key(64, 'c');
  const auto folder = cache.scratch(key);
  HONE_ASSERT_OK(folder);
  HONE_ASSERT_OK(cache.publish(key, *folder, {}, {ArtifactKind::shared_object, "bytes", {}}, {header.string()}));
  ASSERT_TRUE(cache.find(key).has_value());
  HONE_ASSERT_OK(write_file_atomic(header, "other"));
  EXPECT_FALSE(cache.find(key).has_value());
}

TEST(SystemHeaders, AreTheAbsolutePathsOfADependencyFile) {
  EXPECT_EQ(system_headers("/hone/out/unit.o: kernel.cpp /usr/include/a.h \\\n /usr/include/with\\ blank.h\n"),
            (std::vector<std::string>{"/usr/include/a.h", "/usr/include/with blank.h"}));
  EXPECT_TRUE(system_headers("").empty());
  EXPECT_TRUE(system_headers("\\").empty());
  EXPECT_LE(system_headers([] {
              std::string many = "x:";
              for (int i = 0; i < 9000; ++i) many += " /a";
              return many;
            }())
                .size(),
            4096u);
}

// Room for mounts of one's own, with or without privileges.
bool own_mounts() {
  const auto write = [](const char* path, const std::string& text) { std::ofstream(path) << text; };
  const auto uid = ::getuid();
  const auto gid = ::getgid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    write("/proc/self/setgroups", "deny");
    write("/proc/self/uid_map", fmt::format("0 {} 1", uid));
    write("/proc/self/gid_map", fmt::format("0 {} 1", gid));
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// A cache on a full and on a read-only disk, in a mount namespace of a child.
int compile_on(const Toolchain& toolchain, const CompileRequest& wanted, const fs::path& cache, const char* options,
               bool read_only) {
  if (!own_mounts()) return 77;
  if (::mount("tmpfs", cache.c_str(), "tmpfs", read_only ? MS_RDONLY : 0, options) != 0) return 77;
  const auto artifact = toolchain.compile(wanted);
  if (artifact) return 1;
  // This cache is a folder of the temp folder, which TMPDIR moves.
  const Error& error = artifact.error();
  if (error.kind != ErrorKind::io || !error.place.file.starts_with(cache.string()) || error.hint.find("TMPDIR") == std::string::npos) {
    std::cerr << to_text(artifact.error()) << "\n";
    return 2;
  }
  return 0;
}

TEST_F(Cache, AFullAndAReadOnlyDiskAreErrorsWithAHint) {
  // Full while the sources are written, while the compiler writes, and from the start.
  for (const auto& [options, read_only] : {std::pair("size=16k", false), {"size=40k", false}, {"size=16k", true}}) {
    const int code = end_of(child([&, options = options, read_only = read_only] {
      return compile_on(*toolchain_, request("const char kBig[60000] = {1};\nconst char* f() { return kBig; }\n"),
                        cache_, options, read_only);
    }));
    if (code == 77) {
      GTEST_SKIP() << "this user cannot mount a file system";
    }
    EXPECT_EQ(code, 0) << options << (read_only ? " read-only" : "");
  }
}

}  // namespace
}  // namespace hone::testing
