#!/usr/bin/env bash
# Builds everything and runs every test.
#
#   scripts/test.sh [--all | --quick] [CTEST_ARGS...]         e.g. scripts/test.sh -R kv
#
# Without --all the Vulkan devices, which are software here, run the tests of their tiers (tests/support/tiers.h), and long
# tests, packages and some ways to build the library are not tried; the end of the output lists them. --quick runs the unit
# tests and those on the CPU. --all also builds and tests lab/ and contrib/.
#
# The last line is `N passed, N failed`, followed by `, N skipped` where tests were skipped. The exit
# code is 0 only if none failed and at least one passed.
set -uo pipefail
exec </dev/null

# shellcheck source=scripts/lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"

build=$oriel_root/build/release
report=$oriel_root/build/test-report.xml
all=OFF desktop=OFF
quick=()
case ${1:-} in
  --all) all=ON desktop=AUTO && shift && export ORIEL_TEST_ALL=1 ;;
  --quick) quick=(-R '^(unit|cpu)\.') && shift ;;
esac

oriel_install_packages build runtime test || oriel_fail "packages are missing"
installed=$SECONDS
mkdir -p "$oriel_root/build" || oriel_fail "cannot write to $oriel_root/build"

icd=
oriel_find_swiftshader
case $? in
  0) icd=$oriel_root/build/swiftshader/vk_swiftshader_icd.json ;;
  2) oriel_say "tests on SwiftShader will be skipped" ;;
  *) oriel_fail "the tests need SwiftShader, which this system offers" ;;
esac

oriel_configure -DORIEL_BUILD_TESTS=ON -DORIEL_WARNINGS_AS_ERRORS=ON -DORIEL_SWIFTSHADER_ICD="$icd" \
  -DORIEL_TEST_ALL=$all -DORIEL_BUILD_LAB=$all -DORIEL_DESKTOP=$desktop -DORIEL_UNITY=ON || oriel_fail "configuring failed"
# Files in the build folder and in test folders are the same for the compiler's cache.
CCACHE_BASEDIR=$build cmake --build "$build" || oriel_fail "building failed"
"$oriel_root/scripts/sizes.sh" "$build"  # for the log: the test `sizes` fails if one is too large

oriel_limit_s=720  # for an ordinary run on two cores, from nothing
[[ $all == ON ]] && oriel_limit_s=
oriel_say "packages took $installed s, building took $((SECONDS - installed)) s"

# Some tests wait more than they compute: at a terminal, for a server.
oriel_run_tests "$build" "$report" -j"$(($(nproc) + 4))" --timeout 900 "${quick[@]}" "$@"
