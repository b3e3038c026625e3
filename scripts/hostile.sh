#!/usr/bin/env bash
# Files from strangers, files that change while they are read, and processes that stand still with a lock: given to the
# program and to an app in processes of their own, which end with success or one line, soon, and within bounds of memory.
#
#   scripts/hostile.sh [--mutants N] [--changes N] [--seed N] [--release]     10,000 and 100, any seed, AddressSanitizer and UBSan
#
# tests/hostile/hostile.py says what is measured, and takes some more options. What is missing is installed (Debian 12,
# Ubuntu). What fails is kept in build/PRESET/hostile-finds. The last line is `N passed, N failed`.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"
# shellcheck source=scripts/lib/tests.sh
. "$here/lib/tests.sh"

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
