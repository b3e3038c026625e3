# Extra files of the Debian packages. cpack runs this script after the installation into its folder.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
set(documents ${share}/doc/oriel)
file(REMOVE ${documents}/LICENSE)
file(WRITE ${documents}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: oriel

Files: *
Copyright: 2026 The Oriel authors
License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
Comment: The weights of the bundled model are described in oriel-tiny.md.
")
file(WRITE ${documents}/changelog.Debian
"oriel (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}. What changed is said in the project's CHANGELOG.md.

 -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000
")
# One package contains both kinds of library, the program and the model, because users who link Oriel need them
# together.
file(WRITE ${share}/lintian/overrides/oriel
"oriel: package-name-doesnt-match-sonames liboriel-tools0.1 liboriel0.1
oriel: link-to-shared-library-in-wrong-package *
oriel: maintscript-calls-ldconfig *
oriel: initial-upload-closes-no-bugs *
")
find_program(GZIP gzip REQUIRED)
file(GLOB pages ${share}/man/man1/*.1)
execute_process(COMMAND ${GZIP} -9n ${pages} ${documents}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
