# Sets the compiler options of every target of the project.
function(oriel_warnings target)
  if(MSVC)  # clang-cl takes these, too
    # 4100: unused arguments; 4127: conditions that are constant in some builds; 4244, 4267: as -Wno-sign-conversion, no
    # narrower setting; 4324: padding for alignas; 4146: minus of an unsigned value; 4200: arrays at the end of a
    # struct.
    target_compile_options(${target} PRIVATE /W4 /wd4100 /wd4127 /wd4146 /wd4200 /wd4244 /wd4267 /wd4324 /utf-8
                                             $<$<BOOL:${ORIEL_WARNINGS_AS_ERRORS}>:/WX>)
    target_compile_definitions(${target} PRIVATE NOMINMAX _CRT_SECURE_NO_WARNINGS)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                           $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
  if(ORIEL_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # GCC's sanitizers insert code that GCC then warns about as uses of uninitialised values.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(MINGW)
    # C99's printf (%zu, %llu) instead of Windows' old printf, also if C headers come first.
    target_compile_definitions(${target} PRIVATE __USE_MINGW_ANSI_STDIO=1)
  endif()
endfunction()
