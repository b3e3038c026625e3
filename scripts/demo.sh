#!/usr/bin/env bash
# Builds Oriel, with what it needs, and runs it.
#
#   scripts/demo.sh [COMMAND] [ARGS...]     the arguments of oriel; `chat` when no command is given
#
# The bundled model is used where no other is named. The build's output goes to build/demo.log.
set -uo pipefail

# Oriel gets our stdin, whole; nothing before it may read a byte. A closed one becomes an empty one.
{ exec 9<&0; } 2>/dev/null || exec 9</dev/null
exec </dev/null

# shellcheck source=scripts/lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"

if (($# == 0)) || [[ $1 == -* ]]; then
  set -- chat "$@"
fi

mkdir -p "$oriel_root/build" || exit 1
ORIEL_LOG=$oriel_root/build/demo.log
: >"$ORIEL_LOG" || exit 1

progress() {
  [[ -t 2 ]] && printf '\r\033[K%s' "$*" >&2
  return 0
}

fail() {
  progress
  tail -n 30 "$ORIEL_LOG" >&2
  oriel_say "$1 (all of it: build/demo.log)"
  exit 1
}

# Ninja reconfigures by itself when a CMakeLists.txt changes, but does not know of the presets.
is_configured() {
  local build=$oriel_root/build/release
  [[ $build/build.ninja -nt $oriel_root/CMakePresets.json ]] &&
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$oriel_root" "$build/CMakeCache.txt"
}

progress "Checking what is installed ..."
# Once it is built, a package it can do without must not hold up the start.
is_configured 2>/dev/null && ORIEL_OPTIONAL_TRIES=1
oriel_install_packages build runtime || fail "packages are missing"
progress "Building (a minute or two the first time) ..."
# shellcheck disable=SC2119 # the arguments are for oriel, not for CMake
is_configured 2>/dev/null || oriel_configure || fail "configuring failed"
oriel_logged cmake --build "$oriel_root/build/release" --target oriel_cli || fail "building failed"
progress

exec "$oriel_root/build/release/apps/oriel" "$@" <&9 9<&-
