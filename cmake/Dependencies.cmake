# Every third-party library, from Debian packages (scripts/packages.txt); nothing is downloaded.
# Static libraries where the package ships one: a release build is copied, not installed.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)

function(hone_import name header)
  cmake_parse_arguments(arg "" "" "ARCHIVES" ${ARGN})
  add_library(hone::${name} INTERFACE IMPORTED GLOBAL)
  find_path(HONE_${name}_INCLUDE ${header} REQUIRED)
  foreach(archive ${arg_ARCHIVES})
    find_library(HONE_${archive}_LIBRARY NAMES lib${archive}.a ${archive} REQUIRED)
    target_link_libraries(hone::${name} INTERFACE ${HONE_${archive}_LIBRARY})
  endforeach()
endfunction()

hone_import(expected tl/expected.hpp)
hone_import(mustache kainjow/mustache.hpp)
hone_import(valijson valijson/validator.hpp)
hone_import(yaml yaml-cpp/yaml.h ARCHIVES yaml-cpp)
hone_import(crypto openssl/evp.h ARCHIVES crypto)
hone_import(seccomp seccomp.h ARCHIVES seccomp)
hone_import(ffi ffi.h ARCHIVES ffi)
target_compile_definitions(hone::yaml INTERFACE YAML_CPP_STATIC_DEFINE)

find_path(HONE_fmt_INCLUDE fmt/format-inl.h REQUIRED)
add_library(hone_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
target_compile_features(hone_fmt PUBLIC cxx_std_20)
add_library(hone::fmt ALIAS hone_fmt)

if(HONE_TESTS)
  find_package(GTest REQUIRED)
  find_library(HONE_rapidcheck_LIBRARY NAMES librapidcheck.a rapidcheck REQUIRED)
endif()
