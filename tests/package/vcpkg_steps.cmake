# The functions of vcpkg that packaging/vcpkg/oriel/portfile.cmake calls, by CMake alone:
#   cmake -D PORT_DIR=FOLDER -D TO=PREFIX -D WORK=FOLDER -D "FEATURES=vulkan" -P vcpkg_steps.cmake
cmake_minimum_required(VERSION 3.22)
set(PORT oriel)
set(CURRENT_PORT_DIR ${PORT_DIR})
set(CURRENT_PACKAGES_DIR ${TO})

function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  set(options)
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    if(feature IN_LIST FEATURES)
      list(APPEND options -D${option}=ON)
    else()
      list(APPEND options -D${option}=OFF)
    endif()
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${WORK} -D CMAKE_BUILD_TYPE=Release
                          -D CMAKE_INSTALL_PREFIX=${TO} -D CMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS}
                  COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK} --target install --parallel COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  if(NOT EXISTS ${TO}/${arg_CONFIG_PATH}/oriel-config.cmake)
    message(FATAL_ERROR "there is no CMake package in ${arg_CONFIG_PATH}")
  endif()
endfunction()

function(vcpkg_fixup_pkgconfig)
  if(NOT EXISTS ${TO}/lib/pkgconfig/oriel.pc)
    message(FATAL_ERROR "there is no oriel.pc")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY ${arg_FILE_LIST} DESTINATION ${TO}/share/${PORT})
endfunction()

include(${PORT_DIR}/portfile.cmake)
