#!/usr/bin/env bash
# Makes the files of a release, in build/release-files or the given folder. It makes no tag and publishes nothing.
#
#   scripts/release.sh [FOLDER] [PART...]     default: all parts
#
#   source     oriel-VERSION.tar.gz: the tracked files of HEAD
#   packages   .deb, .tar.gz and the bundle of sources (scripts/package.sh)
#   wheel      the Python package
#   npm        the JavaScript package (scripts/web.sh)
#
# Every run ends with oriel-VERSION.spdx.json, a bill of materials in SPDX 2.3, and SHA256SUMS of all files in FOLDER.
set -euo pipefail
exec </dev/null

# shellcheck source=scripts/lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"

to=$(realpath -m "${1:-$oriel_root/build/release-files}")
(($#)) && shift
parts=("$@")
((${#parts[@]})) || parts=(source packages wheel npm)
version=$(sed -n 's/^project(oriel VERSION \([0-9.]*\).*/\1/p' "$oriel_root/CMakeLists.txt")
mkdir -p "$to"
cd "$oriel_root"

for part in "${parts[@]}"; do
  case $part in
    source) git archive --format=tar.gz --prefix="oriel-$version/" -o "$to/oriel-$version.tar.gz" HEAD ;;
    packages) scripts/package.sh "$to" >&2 ;;
    wheel) oriel_logged python3 -m pip wheel --no-build-isolation --no-deps -w "$to" ./python ;;
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
