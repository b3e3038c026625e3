#!/usr/bin/env bash
# Tests and measures a GPU in one run of about ten minutes: correctness, then speed, then profiles.
#
#   scripts/gpu_day.sh FOLDER [--build DIR] [--seconds N] [--dry GPU]
#
#   FOLDER     receives one text or JSON file a step, and steps.txt with their exit codes and times
#   --build    the build whose programs are run (build/release): targets oriel_cli, oriel_device_test and
#              oriel_profile_ops
#   --seconds  for all steps together (600): steps without time are skipped and reported
#   --dry GPU  on a driver that computes nothing (tests/compilers/gpu_compilers.py has their names), with small models:
#              a test of this script. Checks of numbers fail on it, and their exit codes do not count.
#
# The exit code is 1 if a step that has to work does not.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"

out='' build=$oriel_root/build/release budget=600 dry=''
while (($#)); do
  case $1 in
    --build) build=$2 && shift ;;
    --seconds) budget=$2 && shift ;;
    --dry) dry=$2 && shift ;;
    -*) oriel_say "unknown option $1" && exit 2 ;;
    *) out=$1 ;;
  esac
  shift
done
[[ -n $out ]] || { sed -n '2,16s/^# \{0,1\}//p' "$0" && exit 2; }
mkdir -p "$out/models" && out=$(cd "$out" && pwd) || exit 1
build=$(cd "$build" && pwd) || exit 1
python=$(for one in python3 /usr/bin/python3; do "$one" -c 'import numpy' 2>/dev/null && echo "$one" && break; done)
[[ -n $python ]] || { oriel_say "numpy is not installed (package python3-numpy)" && exit 1; }

with=()
if [[ -n $dry ]]; then
  # Prints what starts a program there: variables, then the loader.
  mapfile -t with < <("$python" "$oriel_root/tests/compilers/gpu_compilers.py" --start "$dry" "$oriel_root/build/compilers/root")
  ((${#with[@]})) || exit 1
fi
export XDG_CACHE_HOME=$out/cache
failed=0
: >"$out/steps.txt"

left() { echo $((budget - SECONDS)); }
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/steps.txt"; }
# step NAME SECONDS COMMAND...: keeps the output; at most the remaining time.
step() {
  local name=$1 most=$2 room code
  shift 2
  room=$(left)
  ((room >= 5)) || { say "$name: skipped, no time is left" && return; }
  timeout -s INT -k 5 "$((most < room ? most : room))" "$@" >"$out/$name.txt" 2>&1
  code=$?
  say "$name: exit code $code"
  [[ $name == numbers-* && -n $dry ]] || failed=$((failed + (code != 0)))
}
run() {
  local name=$1 most=$2 program=$3
  shift 3
  [[ -x $build/$program ]] || { say "$name: skipped, $program is not built" && return; }
  step "$name" "$most" "${with[@]}" "$build/$program" "$@"
}
model() {
  local shape=$1 type=$2 more=()
  [[ -z $dry ]] || more=(--layers 2 --vocab 4096)
  file=$out/models/$shape-$type.gguf
  [[ -f $file ]] || step "model-$shape" 120 "$python" "$oriel_root/scripts/make_model.py" "$shape" "$type" "$file" "${more[@]}"
}

tested=()
[[ -z $dry ]] || tested=(--device-test never)
say "start"
# Right or wrong. A report of the device goes with it.
run devices 20 apps/oriel devices --json
run numbers-doctor 150 apps/oriel doctor --device vulkan --json --report "$out/report.json"
run numbers-models 120 tests/bundle/oriel_device_test --device vulkan:0 --data "$build/device-bundle" --only models \
  --no-bench --out "$out/models.json"
# How fast: as users get it, then with what doctor chose; short, deep, in large batches.
shapes=(smollm2-135m llama-3.2-1b ministral-3-3b)
[[ -z $dry ]] || shapes=(smollm2-135m)
for shape in "${shapes[@]}"; do
  model "$shape" q4_0
  common=("$file" --device vulkan "${tested[@]}" --json --window 4096 --repeat 1)
  run "bench-$shape-unmeasured" 60 apps/oriel bench "${common[@]}" --prefill 512 --decode 128 --no-cache
  run "bench-$shape" 60 apps/oriel bench "${common[@]}" --prefill 512 --decode 128
  run "bench-$shape-batch512" 60 apps/oriel bench "${common[@]}" --prefill 512 --decode 8 --prefill-batch 512
  run "bench-$shape-deep" 60 apps/oriel bench "${common[@]}" --prefill 64 --decode 64 --depth 4000
  # Why: each kind of op alone, and every way to multiply.
  run "ops-$shape" 60 lab/oriel_profile_ops "$file" --device vulkan --window 4096 --depth 4000 --repeat 3
  for candidate in 1 2 3 4 5 6; do
    run "ops-$shape-vector$candidate" 15 lab/oriel_profile_ops "$file" --device vulkan --list decode --only matmul \
      --candidate "$candidate" --repeat 3
  done
done
rm -rf "$out/models" "$out/cache"
say "$failed failed"
exit $((failed != 0))
