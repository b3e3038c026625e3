# oriel_batches(TARGET): files of one folder with the same options are compiled as one, FILES_IN_A_BATCH at a time. CMake's
# own unity builds leave out every file that has options, and most of the library's have (-Os).
set(ORIEL_FILES_IN_A_BATCH 12)
# Files that are compiled alone:
# - the vector kernels, which include themselves
# - os/, whose files set C library macros before the headers
# - files with the same local names as another file, or with types of their own that have members
# - the pretokenizers, because the compiler would inline more in a larger file
set(ORIEL_BATCHES_EXCLUDE
    "/platform/cpu/|/os/|/text/pretokenizer|kernels_packed|/grammar/(regex_reader|token_trie)\\.|/model/unsupported\\.|/plan/repack_blocks\\.\
|/tools/speed\\.|/vulkan/(matmul_choices|pipelines|verdict)\\.")

function(oriel_write_batch target files name options)
  set(text "")
  foreach(file IN LISTS files)
    file(RELATIVE_PATH file ${PROJECT_SOURCE_DIR} ${file})
    string(APPEND text "#include \"${file}\"\n")
  endforeach()
  set(batch ${CMAKE_CURRENT_BINARY_DIR}/batches/${name}.cpp)
  file(CONFIGURE OUTPUT ${batch} CONTENT "${text}" @ONLY)
  set_source_files_properties(${batch} PROPERTIES COMPILE_OPTIONS "${options}")
  target_sources(${target} PRIVATE ${batch})
  set_source_files_properties(${files} PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

function(oriel_batches target)
  get_target_property(sources ${target} SOURCES)
  set(keys "")
  foreach(source IN LISTS sources)
    get_filename_component(source ${source} ABSOLUTE)
    if(source MATCHES "${ORIEL_BATCHES_EXCLUDE}" OR NOT source MATCHES "\\.cpp$")
      continue()
    endif()
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    string(MD5 hash "${options}")
    string(SUBSTRING ${hash} 0 4 hash)
    set(key ${folder}_${hash})
    list(APPEND keys ${key})
    list(APPEND files_${key} ${source})
    if(options)
      set(options_${key} "${options}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES keys)
  foreach(key IN LISTS keys)
    set(number 0)
    list(LENGTH files_${key} left)
    while(left GREATER 1)
      list(SUBLIST files_${key} 0 ${ORIEL_FILES_IN_A_BATCH} files)
      list(REMOVE_ITEM files_${key} ${files})
      oriel_write_batch(${target} "${files}" ${key}_${number} "${options_${key}}")
      math(EXPR number "${number} + 1")
      list(LENGTH files_${key} left)
    endwhile()
  endforeach()
endfunction()
