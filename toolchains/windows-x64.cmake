# Windows on x86-64. Compiler: mingw-w64's GCC with POSIX threads (package g++-mingw-w64-x86-64-posix on
# Debian and Ubuntu; on others set oriel_suffix to "" where the plain name has them). Everything is linked
# statically, so that a program is one file. Runs under wine: scripts/cross.sh windows-x64.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(oriel_triple x86_64-w64-mingw32)
if(NOT DEFINED oriel_suffix)
  set(oriel_suffix -posix)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/gnu.cmake)
set(CMAKE_RC_COMPILER ${oriel_triple}-windres)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
