# Packs relocations as bits instead of 24 bytes each, if the linker and the C library of the build support it. This
# makes the library 65 KB smaller. Programs linked this way need glibc 2.36 or newer; -DORIEL_PACK_RELOCATIONS=OFF is
# for older systems.
option(ORIEL_PACK_RELOCATIONS "Packed relocations in shared libraries and programs (Release; needs glibc 2.36)" ON)
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
check_cxx_source_compiles("#include <features.h>
  #if !__GLIBC_PREREQ(2, 36)
  #error older
  #endif
  int main() { return 0; }" ORIEL_PACKS_RELOCATIONS FAIL_REGEX "ignored|unknown|unrecognized")
unset(CMAKE_REQUIRED_LINK_OPTIONS)

function(oriel_pack_relocations target)
  if(ORIEL_PACK_RELOCATIONS AND ORIEL_PACKS_RELOCATIONS)
    target_link_options(${target} PRIVATE $<$<CONFIG:Release>:-Wl,-z,pack-relative-relocs>)
  endif()
endfunction()
