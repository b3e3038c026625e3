# Sets ORIEL_HIGHWAY_HEADERS to the folder with hwy/highway.h, or leaves it empty: then the CPU runs plain
# code. Only headers are used; nothing is linked.
set(ORIEL_HIGHWAY_HEADERS "")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64|aarch64|arm64|ARM64|wasm32)$")
  message(STATUS "no vector kernels for ${CMAKE_SYSTEM_PROCESSOR}: plain code on the CPU")
  return()
endif()
if(EMSCRIPTEN)
  # The headers of the building machine work too, but not the C library headers in the same folder.
  find_path(oriel_highway_here hwy/highway.h PATHS /usr/local/include /usr/include NO_CMAKE_FIND_ROOT_PATH)
  if(oriel_highway_here AND NOT ORIEL_HIGHWAY_INSTALLED)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/highway)
    file(CREATE_LINK ${oriel_highway_here}/hwy ${PROJECT_BINARY_DIR}/highway/hwy SYMBOLIC)
    set(ORIEL_HIGHWAY_INSTALLED ${PROJECT_BINARY_DIR}/highway)
  endif()
endif()
find_path(ORIEL_HIGHWAY_INSTALLED hwy/highway.h DOC "Highway's headers (package libhwy-dev)")
if(ORIEL_HIGHWAY_INSTALLED)
  set(ORIEL_HIGHWAY_HEADERS ${ORIEL_HIGHWAY_INSTALLED})
  return()
endif()
option(ORIEL_FETCH_HIGHWAY "Download Highway where it is not installed" OFF)
if(ORIEL_FETCH_HIGHWAY)
  include(FetchContent)
  if(POLICY CMP0135)
    cmake_policy(SET CMP0135 NEW)
  endif()
  # A folder without a CMakeLists.txt: nothing of Highway is to be built.
  FetchContent_Declare(highway URL https://github.com/google/highway/archive/refs/tags/1.0.3.tar.gz
                       URL_HASH SHA256=566fc77315878473d9a6bd815f7de78c73734acdcb745c3dde8579560ac5440e
                       SOURCE_SUBDIR hwy)
  FetchContent_MakeAvailable(highway)
  set(ORIEL_HIGHWAY_HEADERS ${highway_SOURCE_DIR})
  set(ORIEL_LICENCE_highway ${highway_SOURCE_DIR}/LICENSE)
else()
  message(STATUS "Highway was not found (package libhwy-dev, or -DORIEL_FETCH_HIGHWAY=ON): "
                 "plain code on the CPU")
endif()
