# `cpack`: a .deb and a .tar.gz of what is installed. scripts/package.sh makes both as they are meant to be.
set(CPACK_PACKAGE_NAME oriel)
set(CPACK_PACKAGE_VENDOR "The Oriel authors")
set(CPACK_PACKAGE_CONTACT "Oriel maintainers <maintainers@oriel.example>" CACHE STRING "Who answers for the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "embedded, on-device LLM runtime inside a memory budget")
set(CPACK_PACKAGE_DESCRIPTION
"Runs language models in GGUF files on the CPU or a Vulkan device, inside a
memory budget that is planned before anything is loaded. The library for C and
C++ (static and shared, with its headers), the program oriel, and a small model
to begin with.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_SYSTEM_NAME)
if(WIN32)
  set(CPACK_GENERATOR ZIP)
else()
  set(CPACK_GENERATOR TGZ)
endif()
if(UNIX AND NOT APPLE)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  # What is linked; the loader of Vulkan and the line editor are opened where they are there.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libvulkan1, libedit2")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "pkgconf | pkg-config, cmake")
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_layout.cmake)
  set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
  set(CPACK_ORIEL_SOURCE ${PROJECT_SOURCE_DIR})
endif()
include(CPack)
