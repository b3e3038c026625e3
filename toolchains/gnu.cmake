# The common part of the files for GNU cross compilers: they set CMAKE_SYSTEM_NAME, CMAKE_SYSTEM_PROCESSOR
# and oriel_triple, the prefix of the compiler's programs.
set(CMAKE_C_COMPILER ${oriel_triple}-gcc${oriel_suffix})
set(CMAKE_CXX_COMPILER ${oriel_triple}-g++${oriel_suffix})
# Programs are the building machine's, headers and libraries never: those belong to another system.
# -DCMAKE_FIND_ROOT_PATH=FOLDERS says where else to look (each like a /usr).
if(NOT CMAKE_FIND_ROOT_PATH)
  set(CMAKE_FIND_ROOT_PATH /usr/${oriel_triple})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
