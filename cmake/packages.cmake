# `cpack` makes a .deb and a .tar.gz of the installed files. scripts/package.sh makes the released ones.
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
  # Dependencies of the linked libraries. The Vulkan loader and the line editor are opened at run time if present.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libvulkan1, libedit2")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "pkgconf | pkg-config, cmake")
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  # Read by cpack for each kind of package.
  set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/package_layout.cmake)
  file(WRITE ${CPACK_PROJECT_CONFIG_FILE}
       "if(CPACK_GENERATOR STREQUAL \"DEB\")\n  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)\nendif()\n")
  set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
  set(CPACK_ORIEL_SOURCE ${PROJECT_SOURCE_DIR})
endif()
include(CPack)
