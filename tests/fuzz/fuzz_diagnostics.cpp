// Compiler output, in which a candidate writes what it likes: it becomes a compile error of bounded
// size with a place, or none.
#include <cstdlib>

#include "toolchain/diagnostics.h"
#include "toolchain/resources.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // As PTX too: what ptxas complains of is the candidate's text.
  const hone::CompilerMessages messages = {text, {"/tmp/build/"}, {"scale<4>", "scale<8>"}, "kernel.cpp", text};
  (void)hone::read_assembler_report(text);
  const hone::Error error = hone::compile_error(messages);
  if (error.kind != hone::ErrorKind::compile && error.kind != hone::ErrorKind::kernel_name) std::abort();
  if (error.message.empty() || error.message.size() > 16 * 1024) std::abort();
  std::size_t notes = 0;
  for (const std::string& note : error.notes) notes += note.size();
  if (notes > 16 * 1024) std::abort();
  const hone::Place place = hone::first_place(messages);
  if (place.line < 0 || place.column < 0) std::abort();
  if (hone::readable_log(messages).size() > 9 * 1024) std::abort();
  return 0;
}
