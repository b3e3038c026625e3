# Builds of their own, with this build's settings: NAME says which.
file(REMOVE_RECURSE ${TO})
if(NAME STREQUAL "find_package")
  # A program outside the build tree finds the installed library, links it and gets a reply.
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${TO}/prefix
                  COMMAND_ERROR_IS_FATAL ANY)
  # For another system packages are looked for below the roots only.
  file(APPEND ${TO}/settings.cmake "include(${SETTINGS})
  if(CMAKE_FIND_ROOT_PATH)
    set(CMAKE_FIND_ROOT_PATH \"\${CMAKE_FIND_ROOT_PATH};${TO}/prefix\" CACHE STRING \"\" FORCE)
  endif()\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${TO}/build
                          -G ${GENERATOR} -C ${TO}/settings.cmake -D CMAKE_PREFIX_PATH=${TO}/prefix
                          -D MODEL=${SOURCE}/tests/data/models/llama-q8_0.gguf
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${TO}/build COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${TO}/build --output-on-failure
                          --no-tests=error
                  COMMAND_ERROR_IS_FATAL ANY)
elseif(NAME STREQUAL "device_bundle")
  # A build without the tests and the program has the target device-bundle, and needs no GoogleTest for it.
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${TO} -G ${GENERATOR} -C ${SETTINGS}
                          -D ORIEL_BUILD_CLI=OFF -D ORIEL_VULKAN=OFF -D ORIEL_CPU_SIMD=OFF
                  COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${TO}/CMakeCache.txt looked_for REGEX "^GTest_DIR")
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${TO} --target help
                  OUTPUT_VARIABLE targets COMMAND_ERROR_IS_FATAL ANY)
  if(looked_for OR NOT targets MATCHES "device-bundle")
    message(FATAL_ERROR "no device bundle without the tests: ${looked_for}\n${targets}")
  endif()
endif()
