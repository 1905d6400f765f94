#include "sandbox/host_paths.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

const std::vector<JailMount> kMounts = {{"/cache/a", "/in"}, {"/cache/b", "/in/deep"}, {"/in", "/out"}};

std::string host(const char* text) { return to_host_paths(text, kMounts); }

TEST(HostPaths, WholePathsAndTheirChildren) {
  EXPECT_EQ(host("/in"), "/cache/a");
  EXPECT_EQ(host("/in/kernel.cpp"), "/cache/a/kernel.cpp");
  EXPECT_EQ(host("/in/deep/x"), "/cache/b/x");
  EXPECT_EQ(host("/in/deeper"), "/cache/a/deeper");
}

TEST(HostPaths, WhatWasPutInIsNotReplacedAgain) { EXPECT_EQ(host("/out/x"), "/in/x"); }

TEST(HostPaths, BehindOptionsAndSeparators) {
  EXPECT_EQ(host("-I/in"), "-I/cache/a");
  EXPECT_EQ(host("-isystem/in/deep"), "-isystem/cache/b");
  EXPECT_EQ(host("--out=/out/k.so"), "--out=/in/k.so");
  EXPECT_EQ(host("PATH=/usr/bin:/in:/out"), "PATH=/usr/bin:/cache/a:/in");
  EXPECT_EQ(host("-Wl,-rpath,/in"), "-Wl,-rpath,/cache/a");
  EXPECT_EQ(host("-ffile-prefix-map=/in=/src"), "-ffile-prefix-map=/in=/src");
  EXPECT_EQ(host("@/in/args"), "@/cache/a/args");
}

TEST(HostPaths, OtherTextStays) {
  for (const char* text : {"", "/", "/inner", "/usr/in", "in", "a/in", "x=/usr/in/x", "-I/usr/in", "-DA=1/in"})
    EXPECT_EQ(host(text), text);
}

}  // namespace
}  // namespace hone
