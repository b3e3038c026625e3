#!/usr/bin/env bash
# Makes the files of a release, in build/release-files or the given folder. It makes no tag and publishes nothing.
#
#   scripts/release.sh [FOLDER] [PART...]     default: all parts
#
#   source     oriel-VERSION.tar.gz: the tracked files of HEAD
#   packages   .deb, .tar.gz and the bundle of sources (scripts/package.sh)
#   wheel      the Python package. ORIEL_WHEEL_SUITE, a release of Debian (bullseye: glibc 2.31): built against its libraries
#              with clang, so that it runs on older systems
#   npm        the JavaScript package (scripts/web.sh)
#
# Every run ends with oriel-VERSION.spdx.json, a bill of materials in SPDX 2.3, and SHA256SUMS of all files in FOLDER.
set -euo pipefail
exec </dev/null

# shellcheck source=scripts/lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"
# shellcheck source=scripts/lib/sysroot.sh
. "$oriel_root/scripts/lib/sysroot.sh"

to=$(realpath -m "${1:-$oriel_root/build/release-files}")
(($#)) && shift
parts=("$@")
((${#parts[@]})) || parts=(source packages wheel npm)
version=$(sed -n 's/^project(oriel VERSION \([0-9.]*\).*/\1/p' "$oriel_root/CMakeLists.txt")
mkdir -p "$to"
cd "$oriel_root"

# Sets ORIEL_CMAKE_ARGS for the libraries of Debian's release $1. Highway and Vulkan are headers only: this system's.
oriel_build_against() {
  local root=$oriel_root/build/sysroot-$1 headers=$oriel_root/build/wheel-headers
  local -A gcc=([bullseye]=10 [bookworm]=12)
  oriel_sysroot "$root" amd64 "$1" libc6-dev "libstdc++-${gcc[$1]:-12}-dev" || return 1
  oriel_unpack "$headers" libhwy-dev libvulkan-dev || return 1
  export ORIEL_CMAKE_ARGS="-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_SYSROOT=$root \
    -DORIEL_HIGHWAY_INSTALLED=$headers/usr/include -DORIEL_VULKAN_HEADERS=$headers/usr/include ${ORIEL_CMAKE_ARGS:-}"
}

for part in "${parts[@]}"; do
  case $part in
    source) git archive --format=tar.gz --prefix="oriel-$version/" -o "$to/oriel-$version.tar.gz" HEAD ;;
    packages) scripts/package.sh "$to" >&2 ;;
    wheel)
      [[ -z ${ORIEL_WHEEL_SUITE:-} ]] || oriel_build_against "$ORIEL_WHEEL_SUITE"
      oriel_logged python3 -m pip wheel --no-build-isolation --no-deps -w "$to" ./python
      ;;
    npm)
      scripts/web.sh build >&2
      cp build/web/oriel-*.tgz "$to"
      ;;
    *)
      oriel_say "there is no part $part: give source, packages, wheel or npm"
      exit 2
      ;;
  esac
done

rm -f "$to/SHA256SUMS" "$to"/*.spdx.json
python3 scripts/lib/sbom.py "$to" "$to/oriel-$version.spdx.json"
(cd "$to" && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
ls -l "$to"
