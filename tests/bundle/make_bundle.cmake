# Writes the device bundle: program, models, references and manifest.json with the SHA-256 of every file.
#   cmake -D FROM=SOURCE -D PYTHON=FILE -D TO=FOLDER -D PROGRAM=FILE -D SYSTEM=NAME -D PROCESSOR=NAME -D EMULATOR=LIST -P ...
file(REMOVE_RECURSE "${TO}")
file(COPY "${PROGRAM}" DESTINATION "${TO}")
foreach(part models logits.json streaming oriel-tiny-golden.json)
  file(COPY "${FROM}/tests/data/${part}" DESTINATION "${TO}")
endforeach()
file(COPY "${FROM}/models/oriel-tiny/oriel-tiny-q8_0.gguf" DESTINATION "${TO}/models")
execute_process(
  COMMAND "${PYTHON}" "${FROM}/scripts/make_types.py" "${FROM}/tests/data/models/llama-f32.gguf" "${TO}/models" tests
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the test models cannot be made with Python \"${PYTHON}\": ${failed}")
endif()

string(REPLACE "[" "[[]" here "${TO}")  # a bracket in the path must not be a pattern
file(GLOB_RECURSE files RELATIVE "${TO}" "${here}/*")
list(SORT files)
if(NOT files)
  message(FATAL_ERROR "No file was found in ${TO}: is its path one that CMake can list?")
endif()
set(entries "")
foreach(file ${files})
  file(SHA256 "${TO}/${file}" hash)
  string(APPEND entries "${comma}\n  \"${file}\": \"${hash}\"")
  set(comma ",")
endforeach()
string(REPLACE "\\" "\\\\" EMULATOR "${EMULATOR}")
string(REPLACE "\"" "\\\"" EMULATOR "${EMULATOR}")
string(REPLACE ";" "\", \"" EMULATOR "${EMULATOR}")
if(EMULATOR)
  set(EMULATOR "\"${EMULATOR}\"")
endif()
get_filename_component(program "${PROGRAM}" NAME)
file(WRITE "${TO}/manifest.json" "{
 \"program\": \"${program}\",
 \"system\": \"${SYSTEM}\",
 \"processor\": \"${PROCESSOR}\",
 \"emulator\": [${EMULATOR}],
 \"files\": {${entries}
 }
}
")
message(STATUS "Device bundle: ${TO}")
