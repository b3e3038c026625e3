#!/usr/bin/env bash
# Builds with sanitizers and runs the tests that need no software GPU under them.
#
#   scripts/sanitize.sh [asan | asan-clang | tsan | valgrind]...     default: all four
#
#   asan        addresses and undefined behaviour, gcc: unit tests, tests on the CPU, inputs of the fuzzers, short soak
#   asan-clang  the same, clang: other bytes are uninitialised, and it checks other things
#   tsan        data races: tests with several threads, including the server
#   valgrind    uses of uninitialised memory, in a build by clang: models of many families answer
#
# About 20 to 40 minutes each on two cores. Missing packages are installed (Debian 12, Ubuntu). The last line is `N
# passed, N failed`, a count of programs; each has a log in build/PRESET.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"

steps=("$@")
((${#steps[@]})) || steps=(asan asan-clang tsan valgrind)
oriel_packages+='
sanitize  clang               must  cmd:clang++
sanitize  libclang-rt-14-dev  may   file:/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-*.a
sanitize  valgrind            must  cmd:valgrind
'
oriel_install_packages build runtime test sanitize || oriel_fail "packages are missing"
cd "$oriel_root" || exit 1
# A report ends the program. malloc returns NULL if memory is short, as without sanitizers.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:abort_on_error=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
passed=0 failed=0

# build PRESET TARGET...
build() {
  local launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  oriel_logged cmake --preset "$1" "${launcher[@]}" -DORIEL_BUILD_LAB=ON && cmake --build "build/$1" --target "${@:2}" >&2
}
# step PRESET NAME COMMAND...: runs it and counts how it ended.
step() {
  local log=build/$1/$2.log
  if "${@:3}" >"$log" 2>&1; then
    ((++passed))
    echo "$1: $2: passed"
  else
    ((++failed))
    echo "$1: $2: FAILED: $log"
    grep -m 3 -E 'ERROR: |WARNING: ThreadSanitizer|runtime error|\[  FAILED  \]|^==[0-9]+== [A-Z]' "$log"
  fi
}
addresses() {
  if ! build "$1" oriel_unit_tests oriel_tests_cpu oriel_fuzz_replay oriel_soak; then
    echo "$1: FAILED to build" && ((++failed))
    return
  fi
  step "$1" unit "build/$1/tests/oriel_unit_tests" --gtest_brief=1
  step "$1" cpu "build/$1/tests/oriel_tests_cpu" --gtest_brief=1
  step "$1" fuzz_inputs "build/$1/tests/oriel_fuzz_replay"
  step "$1" soak "build/$1/lab/oriel_soak" --seconds 120
}
races() {
  if ! build tsan oriel_unit_tests oriel_tests_cpu oriel_soak oriel_cli; then
    echo "tsan: FAILED to build" && ((++failed))
    return
  fi
  step tsan unit build/tsan/tests/oriel_unit_tests --gtest_brief=1 --gtest_filter='*Pool*:*Thread*:*Share*:*Gate*:*Expert*:*Cache*'
  step tsan cpu build/tsan/tests/oriel_tests_cpu --gtest_brief=1 \
    --gtest_filter='*SeveralSessions*:*Stress*:*SideBySide*:*Cancel*:*Callbacks*:*Trim*:*OnFile*:*CpuExecutor*:*Recover*:*LostDevice*:*ThreadGaps*:Gate.*'
  step tsan soak build/tsan/lab/oriel_soak --seconds 120
  step tsan serve python3 tests/cli/test_serve_hostile.py build/tsan/apps/oriel tests/data
}
unset_memory() {
  if ! build clang oriel_cli; then
    echo "valgrind: FAILED to build" && ((++failed))
    return
  fi
  local model
  echo '{"ids": [5, 7, 9, 11, 40]}' >build/clang/ids.json
  for model in tests/data/models/*.gguf; do
    step clang "valgrind-$(basename "$model" .gguf)" valgrind --quiet --error-exitcode=9 --leak-check=no \
      build/clang/apps/oriel run "$model" --device cpu --tokens 6 --greedy --tokens-file build/clang/ids.json
  done
}

for name in "${steps[@]}"; do
  case $name in
    asan | asan-clang) addresses "$name" ;;
    tsan) races ;;
    valgrind) unset_memory ;;
    *) oriel_fail "there is no step $name: the first lines of scripts/sanitize.sh say which there are" ;;
  esac
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
