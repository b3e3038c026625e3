# A shared library exports the functions of its headers and nothing else, not even instances of the C++ library's
# templates. The list is read from the headers, and each linker gets it in its own format.

# oriel_exports(NAME HEADER...): writes NAME.map (ELF), NAME.exports (macOS) and NAME.def (Windows).
function(oriel_exports name)
  set(functions "")
  foreach(header IN LISTS ARGN)
    get_filename_component(header ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../runtime/include/oriel/${header} ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    file(READ ${header} text)
    string(REGEX MATCHALL "\nORIEL_(TOOLS_)?API [^;(]*\\(" declarations "${text}")
    foreach(declaration IN LISTS declarations)
      string(REGEX MATCH "(oriel_[a-z0-9_]+)\\($" found "${declaration}")
      list(APPEND functions ${CMAKE_MATCH_1})
    endforeach()
  endforeach()
  list(SORT functions)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name})
  list(JOIN functions ";\n    " lines)
  file(CONFIGURE OUTPUT ${file}.map CONTENT "{\n  global:\n    ${lines};\n  local: *;\n};\n" @ONLY)
  list(JOIN functions "\n_" lines)
  file(CONFIGURE OUTPUT ${file}.exports CONTENT "_${lines}\n" @ONLY)
  list(JOIN functions "\n  " lines)
  file(CONFIGURE OUTPUT ${file}.def
       CONTENT "LIBRARY \"${name}-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}.dll\"\nEXPORTS\n  ${lines}\n" @ONLY)
endfunction()

# oriel_shared_library(TARGET NAME): files called NAME with a version, and exports from NAME's list.
function(oriel_shared_library target name)
  set(version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name})
  # Until 1.0 a new MINOR may change anything (docs/linking.md), so it is part of the soname.
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${version}
                                             LINKER_LANGUAGE CXX)
  if(WIN32)
    set_target_properties(${target} PROPERTIES PREFIX "" RUNTIME_OUTPUT_NAME ${name}-${version} ARCHIVE_OUTPUT_NAME ${name})
    target_sources(${target} PRIVATE ${file}.def)
    target_compile_definitions(${target} INTERFACE ORIEL_SHARED)
    oriel_import_library(${target} ${name})
    if(NOT MINGW AND TARGET ${name} AND NOT target STREQUAL name)
      set_target_properties(${name} PROPERTIES ARCHIVE_OUTPUT_NAME ${name}_static)  # next to the import library
                                                                                    # NAME.lib
    endif()
  elseif(APPLE)
    target_link_options(${target} PRIVATE "SHELL:-Xlinker -exported_symbols_list -Xlinker \"${file}.exports\"")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${file}.exports)
  else()
    # Paths may have spaces and commas.
    target_link_options(${target} PRIVATE "SHELL:-Xlinker \"--version-script=${file}.map\"" -Wl,--gc-sections)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${file}.map)
    oriel_pack_relocations(${target})
  endif()
endfunction()

# MinGW's linker writes libNAME.dll.a automatically. Microsoft's linker needs NAME.lib, which LLVM's tool writes. Users
# without LLVM make it from NAME.def, which is also installed: lib /def:NAME.def /machine:x64
function(oriel_import_library target name)
  find_program(ORIEL_DLLTOOL NAMES llvm-dlltool llvm-dlltool-14 DOC "LLVM's dlltool (package llvm or lld)")
  if(NOT MINGW OR NOT ORIEL_DLLTOOL)
    return()
  endif()
  set(machine i386:x86-64)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|ARM64|arm64)$")
    set(machine arm64)
  endif()
  set(library ${CMAKE_CURRENT_BINARY_DIR}/${name}.lib)
  add_custom_command(TARGET ${target} POST_BUILD
                     COMMAND ${ORIEL_DLLTOOL} -m ${machine} -d ${CMAKE_CURRENT_BINARY_DIR}/${name}.def -l ${library}
                     BYPRODUCTS ${library} VERBATIM)
endfunction()
