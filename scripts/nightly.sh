#!/usr/bin/env bash
# Runs the tests that take too long for every change, one part after the other.
#
#   scripts/nightly.sh [PART...]     default: all parts, about 12 hours on two cores
#
#   all        scripts/test.sh --all: every test on every device, lab/ and contrib/
#   sanitize   scripts/sanitize.sh: addresses, undefined behaviour, races, uninitialised memory
#   hostile    scripts/hostile.sh: mutants of models, changing files, stopped processes
#   faults     scripts/faults.sh: every call that can fail, failed
#   fuzz       scripts/fuzz.sh, half an hour per target; then line coverage
#   soak       an hour of random conversations on the CPU, on lavapipe and on SwiftShader
#   tidy       scripts/tidy.sh: including the program and the vector kernels
#   compilers  scripts/gpu_compilers.sh: kernels through the compilers of seven GPUs
#   cross      scripts/cross.sh: other processors and systems, in emulators
#   package    scripts/package.sh, web.sh, desktop.sh, serve_clients.sh: tests of the packages
#
# Each part has a log in build/nightly. The last line is `N passed, N failed`, a count of commands.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"
cd "$oriel_root" || exit 1
logs=build/nightly
mkdir -p "$logs"
passed=0 failed=0

# part NAME COMMAND...
part() {
  local begin=$SECONDS
  if "${@:2}" >"$logs/$1.log" 2>&1; then
    ((++passed))
    echo "$1: passed, $((SECONDS - begin)) s: $(tail -n 1 "$logs/$1.log")"
  else
    ((++failed))
    echo "$1: FAILED, $((SECONDS - begin)) s: $(tail -n 1 "$logs/$1.log") ($logs/$1.log)"
  fi
}
soak() {
  local soak=build/release/lab/oriel_soak layer=build/release/tests/faults/layer icd
  oriel_configure -DORIEL_BUILD_TESTS=ON -DORIEL_BUILD_LAB=ON && cmake --build build/release --target oriel_soak oriel_fault_layer >&2 ||
    oriel_fail "building failed"
  part soak-cpu "$soak" --seconds 3600 --seed "$RANDOM"
  for icd in /usr/share/vulkan/icd.d/lvp_icd*.json build/swiftshader/vk_swiftshader_icd.json; do
    [[ -f $icd ]] && part "soak-$(basename "$icd" .json)" "$soak" --seconds 3600 --seed "$RANDOM" \
      --device "vulkan=$(realpath "$icd")" --layer "$layer"
  done
}

parts=("$@")
((${#parts[@]})) || parts=(all sanitize hostile faults fuzz soak tidy compilers cross package)
for name in "${parts[@]}"; do
  case $name in
    all) part all scripts/test.sh --all ;;
    sanitize) part sanitize scripts/sanitize.sh ;;
    hostile) part hostile scripts/hostile.sh ;;
    faults) part faults scripts/faults.sh ;;
    fuzz) part fuzz scripts/fuzz.sh --seconds 1800 && part coverage scripts/fuzz.sh --coverage ;;
    soak) soak ;;
    tidy) part tidy scripts/tidy.sh ;;
    compilers) part compilers scripts/gpu_compilers.sh ;;
    cross)
      for target in linux-aarch64 linux-armhf linux-riscv64 windows-x64; do
        part "cross-$target" scripts/cross.sh "$target"
      done
      ;;
    package)
      for script in package web desktop serve_clients; do
        part "$script" "scripts/$script.sh"
      done
      ;;
    *) oriel_fail "there is no part $name: the first lines of scripts/nightly.sh say which there are" ;;
  esac
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
