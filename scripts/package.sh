#!/usr/bin/env bash
# Makes the packages for this system, in build/package or the given folder:
#
#   oriel_VERSION_ARCH.deb                  library (static and shared), headers, program, model, manual, completions
#   oriel-VERSION-linux-ARCH.tar.gz         the same in a folder that works in any place
#   oriel-bundle-VERSION.tar.gz             sources and compiled kernels, for projects without CMake
#
#   scripts/package.sh [FOLDER]
set -euo pipefail

# shellcheck source=scripts/lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"

to=$(realpath -m "${1:-$oriel_root/build/package}")
build=$oriel_root/build/package-build
oriel_install_packages build package || { oriel_say "packages are missing"; exit 1; }
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
mkdir -p "$to"

# package GENERATOR LIBDIR: the same compiled files, installed in another place.
package() {
  oriel_logged cmake -S "$oriel_root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DORIEL_BOTH_LIBRARIES=ON -DORIEL_DESKTOP=OFF \
    "-DCMAKE_INSTALL_LIBDIR=$2" "${launcher[@]}"
  oriel_logged cmake --build "$build"
  (cd "$build" && oriel_logged cpack -G "$1" -B "$to")
}
package TGZ lib
oriel_complete_notices "$build/THIRD_PARTY_NOTICES.txt"
package DEB "lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)"
oriel_logged cmake --build "$build" --target source-bundle
oriel_complete_notices "$build/oriel-bundle/THIRD_PARTY_NOTICES.txt"
cp "$build"/oriel-bundle-*.tar.gz "$to"
rm -rf "$to/_CPack_Packages"
ls -l "$to"
