# hone_room(NAME SOURCES ... ROOMS ... LIBRARIES ...): one static library a room. ROOMS lists the
# rooms below that it may include; CMake refuses a cycle, so arrows point down by construction.
set(HONE_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Wold-style-cast)
if(HONE_WERROR)
  list(APPEND HONE_WARNINGS -Werror)
endif()

function(hone_options target)
  target_compile_options(${target} PRIVATE ${HONE_WARNINGS})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  if(HONE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${HONE_SANITIZE})
  endif()
  if(HONE_FUZZ)
    target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

function(hone_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_library(hone_${name} STATIC ${arg_SOURCES})
  hone_options(hone_${name})
  list(TRANSFORM arg_ROOMS PREPEND hone_)
  target_link_libraries(hone_${name} PUBLIC ${arg_ROOMS} PRIVATE ${arg_LIBRARIES})
endfunction()

# hone_test(ROOM SOURCES ... LIBRARIES ...): one GoogleTest program a room, tests/<room>/.
function(hone_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_executable(test_${name} ${arg_SOURCES})
  hone_options(test_${name})
  list(TRANSFORM arg_ROOMS PREPEND hone_)
  target_link_libraries(test_${name} PRIVATE hone_testing ${arg_ROOMS} ${arg_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 SKIP_REGULAR_EXPRESSION "^skipped: "
    ENVIRONMENT "HONE_SHARE=${HONE_SHARE};HONE_BIN=${CMAKE_BINARY_DIR}/bin/hone;HONE_SOURCE=${CMAKE_SOURCE_DIR}")
endfunction()
