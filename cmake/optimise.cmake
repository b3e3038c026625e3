# Without a build type CMake asks for no optimisation, and a model runs 20 times slower. So Release is the default
# of a build of Oriel itself; in another project's, which decides that for itself, the library alone gets -O2
# (runtime/CMakeLists.txt). Flags that say how to optimise are left alone.
set(ORIEL_OPTIMISE OFF)
get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT multi_config AND NOT CMAKE_BUILD_TYPE AND NOT " ${CMAKE_CXX_FLAGS}" MATCHES " -O")
  if(PROJECT_IS_TOP_LEVEL)
    message(STATUS "No build type was given: Release")
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  else()
    message(STATUS "No build type was given: Oriel is compiled with -O2")
    set(ORIEL_OPTIMISE ON)
  endif()
endif()
