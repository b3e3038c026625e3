# THIRD_PARTY_NOTICES.txt: owners and licences of the code in a package. The licence texts come from the packages of
# that code.
#
#   oriel_notices(FILE COMPONENT...)                    for CMakeLists.txt
#   cmake -P cmake/notices.cmake FILE COMPONENT...      for scripts
#
# A component has a name, a licence, an owner, an address and the source of its licence text: a Debian package, or a
# file given as ORIEL_LICENCE_component. If the text is missing, the notice says so, and scripts that make packages fail
# (oriel_complete_notices in scripts/lib/install.sh).
set(oriel_notice_highway "Highway|Apache-2.0|Google LLC|https://github.com/google/highway|libhwy-dev")
set(oriel_notice_unicode "Unicode data files|Unicode-DFS|Unicode, Inc.|https://www.unicode.org/license.txt|unicode-data")
set(oriel_notice_vulkan "Vulkan headers|Apache-2.0|The Khronos Group Inc.|https://github.com/KhronosGroup/Vulkan-Headers|libvulkan-dev")
set(oriel_notice_cli11 "CLI11|BSD-3-Clause|University of Cincinnati, developed by Henry Schreiner|https://github.com/CLIUtils/CLI11|libcli11-dev")
set(oriel_notice_json "JSON for Modern C++|MIT|Niels Lohmann|https://github.com/nlohmann/json|nlohmann-json3-dev")
set(oriel_notice_boost "Boost|BSL-1.0|Vinnie Falco (Beast) and the Boost authors|https://www.boost.org|libboost1.*-dev")
set(oriel_notice_sdl "SDL 2|Zlib|Sam Lantinga|https://www.libsdl.org|libsdl2-dev")
set(oriel_notice_imgui "Dear ImGui|MIT|Omar Cornut|https://github.com/ocornut/imgui|libimgui-dev")
set(oriel_notice_stb "stb|MIT or public domain|Sean Barrett|https://github.com/nothings/stb|libstb-dev")
set(oriel_notice_icu "ICU|Unicode-DFS|Unicode, Inc.|https://icu.unicode.org|libicu-dev")
set(oriel_notice_emscripten "Emscripten with musl, compiler-rt and libc++|MIT, Apache-2.0 with LLVM exceptions|the Emscripten, musl and LLVM authors|https://emscripten.org|emscripten")

# The paragraph of a Debian copyright file to use, for files that also have other licences: Boost's 2 MB name the author
# of each file, and ICU's has the licence of the packaging scripts.
set(oriel_paragraph_boost "BSL-1.0")
set(oriel_paragraph_icu "MIT")  # Debian's name for the Unicode licence

# The licence text in *out; empty if this machine does not have it.
function(oriel_licence component package out)
  set(text "")
  file(GLOB found /usr/share/doc/${package}/copyright)
  if(ORIEL_LICENCE_${component})
    set(found ${ORIEL_LICENCE_${component}})
  endif()
  foreach(file IN LISTS found)
    if(NOT text AND EXISTS ${file})
      file(READ ${file} text)
    endif()
  endforeach()
  if(oriel_paragraph_${component} AND text MATCHES "\n(License: ${oriel_paragraph_${component}}\n( [^\n]+\n)+)")
    set(text "${CMAKE_MATCH_1}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(oriel_notices file)
  set(all "Oriel is licensed under the Apache License, version 2.0. It has these parts, which are others':\n")
  foreach(component IN LISTS ARGN)
    if(NOT DEFINED oriel_notice_${component})
      message(FATAL_ERROR "there is no component ${component}: see cmake/notices.cmake")
    endif()
    string(REPLACE "|" ";" row "${oriel_notice_${component}}")
    list(GET row 0 title)
    list(GET row 1 licence)
    list(GET row 2 holder)
    list(GET row 3 address)
    list(GET row 4 package)
    oriel_licence(${component} "${package}" text)
    if(text STREQUAL "")
      set(text "NOT HERE: the text is at the address above. To have it here install ${package}, or give \
ORIEL_LICENCE_${component}.\n")
    endif()
    string(REPEAT "=" 80 line)
    string(APPEND all "\n${line}\n${title} (${licence})\nCopyright: ${holder}\n${address}\n${line}\n\n${text}")
  endforeach()
  file(WRITE ${file} "${all}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(words "")
  math(EXPR last "${CMAKE_ARGC} - 1")
  foreach(i RANGE ${last})
    list(APPEND words "${CMAKE_ARGV${i}}")
  endforeach()
  list(FIND words -P at)
  math(EXPR first "${at} + 2")
  list(SUBLIST words ${first} -1 words)
  oriel_notices(${words})
endif()
