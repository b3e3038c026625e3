# A program outside the build tree finds the installed library, links it and gets a reply.
file(REMOVE_RECURSE ${TO})
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
