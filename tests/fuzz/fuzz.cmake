# Fuzz targets, README.md: a libFuzzer program each with ORIEL_FUZZ, and one program that replays them all.
set(fuzz ${CMAKE_CURRENT_LIST_DIR})
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${fuzz}/fuzz_*.cpp)

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
    oriel_test_program(oriel_fuzz_${name} "" ${source} ${fuzz}/fuzz.cpp ${fuzz}/engine.cpp)
    target_link_libraries(oriel_fuzz_${name} PRIVATE ${needs})
    target_link_options(oriel_fuzz_${name} PRIVATE -fsanitize=fuzzer)
    list(APPEND fuzzers oriel_fuzz_${name})
  endif()
endforeach()
if(ORIEL_FUZZ)
  add_custom_target(oriel_fuzz DEPENDS ${fuzzers})
endif()

oriel_test_program(oriel_fuzz_replay "" ${fuzz_targets} ${fuzz}/fuzz.cpp ${fuzz}/replay.cpp)
target_link_libraries(oriel_fuzz_replay PRIVATE ${replayed})
gtest_discover_tests(oriel_fuzz_replay TEST_PREFIX fuzz. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120)
