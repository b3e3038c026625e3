#!/usr/bin/env bash
# Runs the program and an app on malformed model files, on files that change during reading, and next to stopped
# processes that hold locks. Each must end soon, with success or a one-line error, and within a memory bound.
#
#   scripts/hostile.sh [--mutants N] [--changes N] [--seed N] [--release]
#
# Defaults: 10,000 mutants and 100 changes, any seed, AddressSanitizer and UBSan.
#
# tests/hostile/hostile.py describes the measurements, and has more options. Missing packages are installed (Debian 12,
# Ubuntu). Failures are kept in build/PRESET/hostile-finds. The last line is `N passed, N failed`.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"

preset=asan options=()
while (($#)); do
  case $1 in
    --release) preset=release ;;
    *) options+=("$1") ;;
  esac
  shift
done
oriel_install_packages build runtime test || oriel_fail "packages are missing"
cd "$oriel_root" || exit 1
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
oriel_logged cmake --preset "$preset" -DORIEL_BUILD_TESTS=ON "${launcher[@]}" &&
  cmake --build "build/$preset" -j "${ORIEL_JOBS:-$(nproc)}" --target oriel_cli oriel_hostile_models >&2 ||
  oriel_fail "building failed"
cd "build/$preset" || exit 1
exec python3 "$oriel_root/tests/hostile/hostile.py" apps/oriel tests/hostile/oriel_hostile_models "${options[@]}"
