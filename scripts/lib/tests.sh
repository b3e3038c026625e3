# shellcheck shell=bash
# The last line of a test script: `N passed, N failed`, and `, N skipped` if tests were skipped. To be sourced after
# install.sh.
#
#   oriel_fail TEXT                             ends the script before any test ran
#   oriel_run_tests BUILD REPORT CTEST_ARG...   0 only if none failed and at least one passed

oriel_fail() {
  oriel_say "$1"
  echo "0 passed, 0 failed"
  exit 1
}

oriel_run_tests() {
  local build=$1 report=$2 ctest_code summary_code began=$SECONDS
  shift 2
  rm -f "$report"
  ctest --test-dir "$build" --output-on-failure --output-junit "$report" "$@"
  ctest_code=$?
  oriel_say "testing took $((SECONDS - began)) s"
  [[ -s $report ]] || oriel_fail "ctest wrote no report (exit code $ctest_code)"
  python3 "$oriel_root/scripts/lib/test_summary.py" "$report"
  summary_code=$?
  ((ctest_code == 0 && summary_code == 0))
}
