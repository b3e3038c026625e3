# Writes the option names as constants, for completion in editors. The library also accepts every name as text.
#
#   cmake -DLANGUAGE=java|swift -DTO=FILE [-DPROGRAM=oriel] [-DCXX=COMPILER] -P option_names.cmake
#
# The names come from `oriel options --json` of PROGRAM, or of a small program compiled with CXX from the same table.
# Without both, the file has no constants and CMake prints a warning.
cmake_minimum_required(VERSION 3.19)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)

set(json "{\"options\": []}")
if(PROGRAM)
  execute_process(COMMAND ${PROGRAM} options --json OUTPUT_VARIABLE json COMMAND_ERROR_IS_FATAL ANY)
else()
  find_program(CXX NAMES c++ clang++ g++)
  if(CXX)
    get_filename_component(folder ${TO} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    execute_process(COMMAND ${CXX} -std=c++17 -I${root} -I${root}/runtime -I${root}/runtime/include -o ${TO}.program
                            ${CMAKE_CURRENT_LIST_DIR}/print_options.cpp ${root}/runtime/options/option_table.cpp
                    COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${TO}.program OUTPUT_VARIABLE json COMMAND_ERROR_IS_FATAL ANY)
    file(REMOVE ${TO}.program)
  else()
    message(WARNING "options have no constants, as there is no C++ compiler for this machine: install one, or give "
                    "-DPROGRAM=FOLDER/oriel")
  endif()
endif()

# documentation(INDEX): what the table says of an option, in one line, as `text`; its `name` and `scope`.
macro(read_option index)
  foreach(field name scope type default help)
    string(JSON ${field} GET "${json}" options ${index} ${field})
  endforeach()
  set(text "${help}. ${type}")
  if(NOT default STREQUAL "")
    string(APPEND text ", by default ${default}")
  endif()
  string(APPEND text ".")
  string(JSON words ERROR_VARIABLE none LENGTH "${json}" options ${index} choices)
  if(NOT none)
    string(APPEND text " Words:")
    math(EXPR last_word "${words} - 1")
    foreach(i RANGE ${last_word})
      string(JSON word GET "${json}" options ${index} choices ${i})
      string(APPEND text " ${word}")
    endforeach()
    string(APPEND text ".")
  endif()
endmacro()

string(JSON count LENGTH "${json}" options)
set(load_options "")
set(session_options "")
set(reply_options "")
if(count GREATER 0)
  math(EXPR last "${count} - 1")
  foreach(at RANGE ${last})
    read_option(${at})
    if(LANGUAGE STREQUAL "java")
      string(TOUPPER ${name} constant)
      string(REPLACE "&" "&amp;" text "${text}")
      string(REPLACE "<" "&lt;" text "${text}")
      string(APPEND ${scope}_options "  /** ${text} */\n  public static final String ${constant} = \"${name}\";\n")
    else()
      string(REPLACE "_" ";" parts ${name})
      list(POP_FRONT parts constant)
      foreach(part IN LISTS parts)
        string(SUBSTRING ${part} 0 1 first)
        string(SUBSTRING ${part} 1 -1 rest)
        string(TOUPPER ${first} first)
        string(APPEND constant ${first}${rest})
      endforeach()
      string(APPEND ${scope}_options "  /// ${text}\n  public static var ${constant}: Self { \"${name}\" }\n")
    endif()
  endforeach()
endif()

set(note "Generated from `oriel options --json`.")
if(LANGUAGE STREQUAL "java")
  file(WRITE ${TO} "package dev.oriel;

/** Names of options. ${note} */
public final class OrielOption {
  private OrielOption() {}

  // ---- Of OrielOptions ----

${load_options}
  // ---- Of OrielSessionOptions ----

${session_options}
  // ---- Of OrielReplyOptions ----

${reply_options}}
")
else()
  file(WRITE ${TO} "// ${note}

extension OptionKey where Scope == LoadScope {
${load_options}}

extension OptionKey where Scope == SessionScope {
${session_options}}

extension OptionKey where Scope == ReplyScope {
${reply_options}}
")
endif()
