# hone_room(NAME SOURCES ... ROOMS ... LIBRARIES ...): one static library a room. ROOMS lists the
# rooms below that it may include; CMake refuses a cycle, so arrows point down by construction.
set(HONE_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Wold-style-cast)
# GCC 12 warns of std::string's own code: https://gcc.gnu.org/PR105651
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND HONE_WARNINGS -Wno-restrict)
  if(HONE_PCH)   # the library's own code is no longer known to be a system header's
    list(APPEND HONE_WARNINGS -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()
if(HONE_WERROR)
  list(APPEND HONE_WARNINGS -Werror)
endif()

if(HONE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  find_program(HONE_LLD ld.lld)
endif()

function(hone_options target)
  target_compile_options(${target} PRIVATE ${HONE_WARNINGS})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  if(HONE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${HONE_SANITIZE})
    if(HONE_LLD)   # ten times as fast as ld where every object carries instrumentation
      target_link_options(${target} PUBLIC -fuse-ld=lld)
    endif()
  endif()
  if(HONE_FUZZ)
    target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# Rooms share one set of precompiled headers, tests another: a program's code is compiled with other
# flags than a library's.
if(HONE_PCH)
  set(HONE_HEADERS <algorithm> <filesystem> <functional> <map> <memory> <optional> <set> <string> <string_view> <vector>
      <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "int main() { return 0; }\n")
  add_library(hone_headers STATIC ${CMAKE_BINARY_DIR}/precompiled.cpp)
  hone_options(hone_headers)
  target_precompile_headers(hone_headers PRIVATE ${HONE_HEADERS})
  if(HONE_TESTS)
    add_executable(hone_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled.cpp)
    hone_options(hone_test_headers)
    target_link_libraries(hone_test_headers PRIVATE GTest::gtest GTest::gmock)
    target_precompile_headers(hone_test_headers PRIVATE ${HONE_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endif()
function(hone_precompiled target from)
  if(HONE_PCH)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

function(hone_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_library(hone_${name} STATIC ${arg_SOURCES})
  hone_options(hone_${name})
  list(TRANSFORM arg_ROOMS PREPEND hone_)
  target_link_libraries(hone_${name} PUBLIC ${arg_ROOMS} PRIVATE ${arg_LIBRARIES})
  hone_precompiled(hone_${name} hone_headers)
endfunction()

# hone_test(ROOM SOURCES ... LIBRARIES ...): one GoogleTest program a room, tests/<room>/.
function(hone_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_executable(test_${name} ${arg_SOURCES})
  hone_options(test_${name})
  list(TRANSFORM arg_ROOMS PREPEND hone_)
  target_link_libraries(test_${name} PRIVATE hone_testing ${arg_ROOMS} ${arg_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  hone_precompiled(test_${name} hone_test_headers)
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600
    ENVIRONMENT "HONE_SHARE=${HONE_SHARE};HONE_BIN=${CMAKE_BINARY_DIR}/bin/hone;HONE_SOURCE=${CMAKE_SOURCE_DIR}")
  # The helper programs are looked up in share/hone/libexec at run time.
  if(TARGET hone-jail)
    add_dependencies(test_${name} hone-jail)
  endif()
  if(TARGET hone-runner)
    add_dependencies(test_${name} hone-runner hone-gpu)
  endif()
  if(name IN_LIST HONE_THREADED)
    set_property(TEST ${name} PROPERTY LABELS tsan)
    add_dependencies(hone_tsan_tests test_${name})
  endif()
  # They wait for kernels, watchdogs and compilers: starved of cores they only take longer.
  if(name IN_LIST HONE_WHOLE_MACHINE)
    set_property(TEST ${name} PROPERTY PROCESSORS 2)
  endif()
endfunction()

# clang 14 cannot emit UBSan's check of function types for coroutines.
function(hone_coroutines)
  if(HONE_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -fno-sanitize=function)
  endif()
endfunction()
