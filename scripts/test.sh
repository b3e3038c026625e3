#!/usr/bin/env bash
# Builds everything and runs every test.
#
#   scripts/test.sh [--all] [CTEST_ARGS...]         e.g. scripts/test.sh -R kv
#
# Without --all SwiftShader, the slower of the two Vulkan devices, is left out of what depends on the host alone.
#
# The last line is `N passed, N failed`, followed by `, N skipped` where tests were skipped. The exit
# code is 0 only if none failed and at least one passed.
set -uo pipefail
exec </dev/null

# shellcheck source=scripts/lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"

build=$oriel_root/build/release
report=$oriel_root/build/test-report.xml
all=OFF
if [[ ${1:-} == --all ]]; then
  all=ON
  shift
fi

# Ends before any test ran.
fail() {
  oriel_say "$1"
  echo "0 passed, 0 failed"
  exit 1
}

oriel_install_packages build runtime test || fail "packages are missing"
mkdir -p "$oriel_root/build" || fail "cannot write to $oriel_root/build"

icd=
oriel_find_swiftshader
case $? in
  0) icd=$oriel_root/build/swiftshader/vk_swiftshader_icd.json ;;
  2) oriel_say "tests on SwiftShader will be skipped" ;;
  *) fail "the tests need SwiftShader, which this system offers" ;;
esac

oriel_configure -DORIEL_BUILD_TESTS=ON -DORIEL_WARNINGS_AS_ERRORS=ON -DORIEL_SWIFTSHADER_ICD="$icd" \
  -DORIEL_TEST_ALL=$all || fail "configuring failed"
cmake --build "$build" || fail "building failed"

rm -f "$report"
ctest --test-dir "$build" -j2 --output-on-failure --timeout 300 --output-junit "$report" "$@"
ctest_code=$?

[[ -s $report ]] || fail "ctest wrote no report (exit code $ctest_code)"
python3 "$oriel_root/scripts/lib/test_summary.py" "$report"
summary_code=$?
((ctest_code == 0 && summary_code == 0))
