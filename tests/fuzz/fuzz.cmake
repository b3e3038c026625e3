# Fuzz targets, README.md: a libFuzzer program each with ORIEL_FUZZ, and one program that replays them all.
set(fuzz ${CMAKE_CURRENT_LIST_DIR})
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${fuzz}/fuzz_*.cpp)
file(GLOB fuzz_common CONFIGURE_DEPENDS ${fuzz}/*.cpp)
list(REMOVE_ITEM fuzz_common ${fuzz_targets} ${fuzz}/engine.cpp ${fuzz}/replay.cpp)
oriel_test_program(oriel_fuzz_common OBJECT ${fuzz_common})

# oriel_fuzz_needs(NAME LIBRARY...): what a target links beside the library.
function(oriel_fuzz_needs name)
  set_property(GLOBAL PROPERTY oriel_fuzz_needs_${name} ${ARGN})
endfunction()

set(replayed "")
foreach(source IN LISTS fuzz_targets)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "^fuzz_" "" name ${name})
  get_property(needs GLOBAL PROPERTY oriel_fuzz_needs_${name})
  list(APPEND replayed ${needs})
  if(ORIEL_FUZZ)
    oriel_test_program(oriel_fuzz_${name} "" ${source} ${fuzz}/engine.cpp)
    target_link_libraries(oriel_fuzz_${name} PRIVATE oriel_fuzz_common ${needs})
    target_link_options(oriel_fuzz_${name} PRIVATE -fsanitize=fuzzer)
    list(APPEND fuzzers oriel_fuzz_${name})
  endif()
endforeach()
if(ORIEL_FUZZ)
  add_custom_target(oriel_fuzz DEPENDS ${fuzzers})
  # Nothing to find by way of what kernels compare, which is most of what a model's tokens take.
  file(GLOB fuzz_kernels ${PROJECT_SOURCE_DIR}/runtime/exec/reference_*.cpp
       ${PROJECT_SOURCE_DIR}/runtime/kv/kv_side.cpp ${PROJECT_SOURCE_DIR}/runtime/kv/quantise.cpp)
  set_property(SOURCE ${fuzz_kernels} TARGET_DIRECTORY oriel
               APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
endif()

oriel_test_program(oriel_fuzz_replay "" ${fuzz_targets} ${fuzz}/replay.cpp)
target_link_libraries(oriel_fuzz_replay PRIVATE oriel_fuzz_common ${replayed})
gtest_discover_tests(oriel_fuzz_replay TEST_PREFIX fuzz. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120)
