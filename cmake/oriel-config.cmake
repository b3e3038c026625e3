# What find_package(oriel) reads where Oriel is installed.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/oriel-targets.cmake)
