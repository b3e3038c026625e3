#!/usr/bin/env bash
# Installs what Oriel needs, builds Oriel and runs it.
#
#   scripts/demo.sh [COMMAND] [ARGS...]     the arguments of oriel; `chat` without a command
#
# The bundled model is the default. The build's output goes to build/demo.log.
# The first build takes one to two minutes on two cores.
set -uo pipefail

# Oriel gets our stdin, whole; nothing before it may read a byte. A closed one becomes an empty one.
{ exec 9<&0; } 2>/dev/null || exec 9</dev/null
exec </dev/null

# shellcheck source=scripts/lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"

if (($# == 0)) || [[ $1 == -* && $1 != --version ]]; then
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

# Ninja reconfigures automatically when a CMakeLists.txt changes, but not when the presets change.
is_configured() {
  local build=$oriel_root/build/release
  [[ $build/build.ninja -nt $oriel_root/CMakePresets.json ]] &&
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$oriel_root" "$build/CMakeCache.txt"
}

# Runs the build. Ninja's [STEP/STEPS] goes to the terminal, and all of its output to the log.
build() {
  local line
  cmake --build "$oriel_root/build/release" --target oriel_cli 2>&1 | while IFS= read -r line; do
    printf '%s\n' "$line" >>"$ORIEL_LOG"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] && progress "Building: step ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} ..."
  done
  return "${PIPESTATUS[0]}"
}

begin=$SECONDS
progress "Checking what is installed ..."
# After a first build, a missing optional package must not delay the start.
is_configured 2>/dev/null && ORIEL_OPTIONAL_TRIES=1
oriel_install_packages build runtime || fail "packages are missing"
installed=$SECONDS
is_first=false
progress "Building ..."
if ! is_configured 2>/dev/null; then
  is_first=true
  # As scripts/test.sh has it, so that it need not compile the same again.
  oriel_configure -DORIEL_UNITY=ON -DORIEL_WARNINGS_AS_ERRORS=ON || fail "configuring failed"
fi
# Another compiler may warn of something.
build || { oriel_configure -DORIEL_WARNINGS_AS_ERRORS=OFF && build; } || fail "building failed"
progress
$is_first && oriel_say "packages took $((installed - begin)) s, building took $((SECONDS - installed)) s"

exec "$oriel_root/build/release/apps/oriel" "$@" <&9 9<&-
