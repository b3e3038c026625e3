# A build without the tests and the program has the target device-bundle, and needs no GoogleTest for it.
file(REMOVE_RECURSE ${TO})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${TO} -G ${GENERATOR} -C ${SETTINGS}
                        -D ORIEL_BUILD_CLI=OFF -D ORIEL_VULKAN=OFF -D ORIEL_CPU_SIMD=OFF
                COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${TO}/CMakeCache.txt looked_for REGEX "^GTest_DIR")
execute_process(COMMAND ${CMAKE_COMMAND} --build ${TO} --target help
                OUTPUT_VARIABLE targets COMMAND_ERROR_IS_FATAL ANY)
if(looked_for OR NOT targets MATCHES "device-bundle")
  message(FATAL_ERROR "no device bundle without the tests: ${looked_for}\n${targets}")
endif()
