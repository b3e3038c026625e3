#!/usr/bin/env bash
# Prints the sizes of a build's library and programs without symbols, and fails if one is over its limit.
#
#   scripts/sizes.sh [--library] [BUILD]    BUILD was built with CMAKE_BUILD_TYPE=Release; build/release without it
#
# With --library a program over its limit is reported without a failure. This script links the shared library from the
# static library's objects, which are compiled for both.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
library_only=0
[[ ${1:-} == --library ]] && library_only=1 && shift
build=${1:-$root/build/release}
# NFC takes 18,000 of it, the schemas that clients send 37,000, kernels of Q1_0, Q2_0 and NVFP4 and 47 architectures 55,000;
# packed relocations save 65,000.
library_limit=2060000
# Clients of Ollama, Anthropic, llama.cpp and Responses take 125,000 of it; Markdown, saved chats and repositories 110,000;
# several models, gaps and the config file 50,000; the library's new kernels and architectures 55,000.
program_limit=3445000

fail() {
  echo "sizes.sh: $1" >&2
  exit 1
}
# cached NAME: a variable of the build.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt" | head -n 1; }

[[ -f $build/CMakeCache.txt ]] || fail "$build is no build: cmake --preset release && cmake --build build/release"
[[ $(cached CMAKE_BUILD_TYPE) == Release ]] || fail "$build is not built as Release: sizes of others mean nothing"
compiler=$(sed -n 's/^set(CMAKE_CXX_COMPILER "\(.*\)")$/\1/p' "$build"/CMakeFiles/*/CMakeCXXCompiler.cmake | head -n 1)
strip=$(cached CMAKE_STRIP)
folder=$(mktemp -d) || fail "no temporary folder"
trap 'rm -rf "$folder"' EXIT

over=0
# row NAME FILE [LIMIT]
row() {
  local bytes note=
  bytes=$(wc -c <"$2") || fail "cannot read $2"
  if [[ -n ${3:-} ]]; then
    note="of $3"
    ((bytes <= $3)) || { note="OVER $3" && over=$((library_only && $3 == program_limit ? over : 1)); }
  fi
  printf '%-34s %9d bytes  %s\n' "$1" "$bytes" "$note"
}
# stripped NAME FILE [LIMIT]
stripped() {
  "$strip" -o "$folder/stripped" "$2" || fail "cannot strip $2"
  row "$1" "$folder/stripped" "${3:-}"
}

archive=$build/runtime/liboriel.a
shared=$build/runtime/liboriel.so
if [[ -f $archive ]]; then
  shared=$folder/liboriel.so
  packs=
  [[ $(cached ORIEL_PACK_RELOCATIONS) == ON && $(cached ORIEL_PACKS_RELOCATIONS) == 1 ]] && packs=-Wl,-z,pack-relative-relocs
  # shellcheck disable=SC2046,SC2086
  "$compiler" -shared $(cached CMAKE_CXX_FLAGS) -o "$shared" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
    "-Wl,--version-script=$build/runtime/oriel.map" -Wl,--gc-sections -Wl,-z,defs $packs -pthread -ldl ||
    fail "the shared library cannot be linked"
fi
[[ -f $shared ]] && stripped "shared library" "$shared" "$library_limit"
[[ -f $build/apps/examples/minimal ]] && stripped "minimal.c, all in one file" "$build/apps/examples/minimal"
[[ -f $build/apps/oriel ]] && stripped "oriel, the program" "$build/apps/oriel" "$program_limit"
while read -r aar; do
  row "$(basename "$aar")" "$aar"
done < <(find "$root/build/bindings" -name '*.aar' 2>/dev/null)
exit "$over"
