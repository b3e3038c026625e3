# Fuzz targets, README.md: a libFuzzer program each with ORIEL_FUZZ, and one program that replays them all.
set(fuzz ${CMAKE_CURRENT_LIST_DIR})
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${fuzz}/fuzz_*.cpp)
file(GLOB fuzz_common CONFIGURE_DEPENDS ${fuzz}/*.cpp)
list(REMOVE_ITEM fuzz_common ${fuzz_targets} ${fuzz}/engine.cpp ${fuzz}/replay.cpp)
oriel_test_program(oriel_fuzz_common OBJECT ${fuzz_common})

# oriel_fuzz_needs(NAME LIBRARY...): libraries that a target links in addition.
function(oriel_fuzz_needs name)
  set_property(GLOBAL PROPERTY oriel_fuzz_needs_${name} ${ARGN})
endfunction()

# The program's readers: of JSON and, if the server is built, of requests.
set(program ${PROJECT_SOURCE_DIR}/apps/oriel)
add_library(oriel_fuzz_program STATIC EXCLUDE_FROM_ALL
    ${program}/output.cpp ${program}/sizes.cpp ${program}/system.cpp ${program}/reply/json_input.cpp
    ${program}/reply/messages.cpp ${program}/reply/reply_parts.cpp ${program}/terminal/reply_view.cpp
    ${program}/terminal/interrupt.cpp ${program}/terminal/terminal.cpp)
target_include_directories(oriel_fuzz_program PUBLIC ${program})
target_link_libraries(oriel_fuzz_program PUBLIC oriel_tools nlohmann_json::nlohmann_json)
oriel_warnings(oriel_fuzz_program)
target_compile_options(oriel_fuzz_program PRIVATE $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU,Clang>>:-O1>)
set_target_properties(oriel_fuzz_program PROPERTIES UNITY_BUILD ${ORIEL_UNITY} UNITY_BUILD_BATCH_SIZE 0)
oriel_fuzz_needs(cli_json oriel_fuzz_program)
if(WIN32)
  target_link_libraries(oriel_fuzz_program PUBLIC psapi shell32)
else()
  find_path(ORIEL_BOOST boost/beast/http/parser.hpp DOC "Boost.Beast's headers (libboost-dev)")
endif()
find_path(ORIEL_CLI11 CLI/CLI.hpp DOC "CLI11 headers (libcli11-dev)")
if(ORIEL_CLI11 AND NOT EMSCRIPTEN)
  target_sources(oriel_fuzz_program PRIVATE
    ${program}/sizes.cpp ${program}/setting_flags.cpp ${program}/settings.cpp ${program}/chat/chat_settings.cpp
    ${program}/chat/saved_chats.cpp ${program}/reply/batch_lines.cpp ${program}/reply/reply_options.cpp)
  target_include_directories(oriel_fuzz_program SYSTEM PRIVATE ${ORIEL_CLI11})
  oriel_fuzz_needs(batch oriel_fuzz_program)
else()
  list(FILTER fuzz_targets EXCLUDE REGEX "/fuzz_batch\\.cpp$")
  oriel_absent_device(fuzz.batch "CLI11 is not installed (package libcli11-dev)")
endif()
if(ORIEL_BOOST AND NOT WIN32 AND NOT EMSCRIPTEN)
  target_sources(oriel_fuzz_program PRIVATE
    ${program}/pictures.cpp ${program}/pictures/message_pictures.cpp ${program}/serve/anthropic.cpp
    ${program}/serve/api_error.cpp ${program}/serve/http_message.cpp
    ${program}/serve/http_server.cpp ${program}/serve/block_writer.cpp ${program}/serve/message.cpp
    ${program}/serve/ollama.cpp ${program}/serve/openai_requests.cpp ${program}/serve/request_fields.cpp
    ${program}/serve/routes.cpp)
  target_include_directories(oriel_fuzz_program SYSTEM PRIVATE ${ORIEL_BOOST})
  oriel_fuzz_needs(server oriel_fuzz_program)
else()
  list(FILTER fuzz_targets EXCLUDE REGEX "/fuzz_server\\.cpp$")
  oriel_absent_device(fuzz.server "Boost.Beast is not installed (package libboost-dev), or this is Windows")
endif()

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
  # Kernels get no coverage counters: their comparisons guide nothing, and take most of the time of a model's tokens.
  file(GLOB fuzz_kernels ${PROJECT_SOURCE_DIR}/runtime/exec/reference_*.cpp
       ${PROJECT_SOURCE_DIR}/runtime/kv/kv_side.cpp ${PROJECT_SOURCE_DIR}/runtime/kv/quantise.cpp)
  set_property(SOURCE ${fuzz_kernels} TARGET_DIRECTORY oriel
               APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
endif()

oriel_test_program(oriel_fuzz_replay "" ${fuzz_targets} ${fuzz}/replay.cpp)
target_link_libraries(oriel_fuzz_replay PRIVATE oriel_fuzz_common ${replayed})
add_test(NAME fuzz COMMAND oriel_fuzz_replay)
oriel_long_tests(fuzz PROGRAMS oriel_fuzz_replay oriel_fuzz_common)
