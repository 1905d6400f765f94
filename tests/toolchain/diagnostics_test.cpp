#include "toolchain/diagnostics.h"

#include "text_cases.h"
#include "toolchain/kernel_name.h"

namespace hone::testing {
namespace {

// The PTX that ptxas complains of in the cases.
const char* const kPtx = R"(.visible .entry _Z1fPf(
)
	mov.u32 %r1, 0;
	.loc	1 12 3, function_name $L__info_string0, inlined_at 1 20 1
	foo.u32 %r1;
	.file	1 "/hone/src/tile.cuh"
)";

CompilerMessages messages_of(std::string text) {
  return {std::move(text), {"/hone/src/", "/hone/include/", "/hone/out/"}, {"gemm<64>", "scale<2>"}, "kernel.cpp", kPtx};
}

TEST(Diagnostics, TextCases) {
  replay(source_dir() / "tests/cases/toolchain/diagnostics.txt",
         [](const std::string&, const std::string& input) { return to_text(compile_error(messages_of(input))); });
}

TEST(Diagnostics, NotesAreBounded) {
  std::string text = "kernel.cpp:1:1: error: first\n";
  for (int i = 0; i < 5000; ++i) text += fmt::format("kernel.cpp:{}:1: error: {}\n", i + 2, std::string(2000, 'x'));
  const Error error = compile_error(messages_of(text));
  EXPECT_LE(error.notes.size(), 21u);
  std::size_t bytes = 0;
  for (const std::string& note : error.notes) bytes += note.size();
  EXPECT_LE(bytes, 8192u + 64);
  EXPECT_NE(error.notes.back().find("more lines"), std::string::npos);
  EXPECT_LE(readable_log(messages_of(text)).size(), 8192u + 512);
}

TEST(Diagnostics, NothingOfACandidateReachesATerminalAsACommand) {
  const Error error = compile_error(messages_of("kernel.cpp:1:2: error: #error \x1b[2J\x07 text \xff\n"));
  EXPECT_EQ(error.message.find('\x1b'), std::string::npos);
  EXPECT_EQ(error.message.find('\x07'), std::string::npos);
  const Error named = compile_error(messages_of("\x1b[2J.cpp:1:2: error: a file name of #line\n"));
  EXPECT_EQ(named.place.file, "?[2J.cpp");
}

TEST(KernelName, Cases) {
  for (const char* good : {"scale", "gemm<64>", "gemm<3, 4>", "tile::gemm<128, float, true>", "f<-1>", "f<(Mode)1>",
                           "f<std::pair<int, int> >", "a::b<1>::c<2>", "f<const float*>", "::g", "f<>"})
    EXPECT_TRUE(check_kernel_name(good).has_value()) << good;
  for (const char* bad : {"",
                          " ",
                          "1abc",
                          "f<",
                          "f>",
                          "f<1",
                          "f<1>>",
                          "f<(1>",
                          "f(1)",
                          "f;g",
                          "f\"x\"",
                          "f<'a'>",
                          "f<1> g",
                          "f g",
                          "a:b",
                          "a::",
                          "f<1;2>",
                          "f{}",
                          "f<1>\n#include \"x\"",
                          "f\\",
                          "f,g",
                          "-f",
                          "*f",
                          "f<1)>",
                          "<1>"})
    EXPECT_FALSE(check_kernel_name(bad).has_value()) << bad;
  EXPECT_FALSE(check_kernel_name(std::string(513, 'a')).has_value());
  const KernelName name = split_kernel_name(" tile::gemm< 3, std::pair<int, long>,(Mode)1 > ");
  EXPECT_EQ(name.qualified, "tile::gemm");
  EXPECT_EQ(name.arguments, (std::vector<std::string>{"3", "std::pair<int, long>", "(Mode)1"}));
}

}  // namespace
}  // namespace hone::testing
