#!/usr/bin/env bash
# scripts/gpu_day.sh, dried: test_gpu_day.sh BUILD. The exit code is 77 if the drivers cannot be had.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
"$root/scripts/gpu_compilers.sh" --drivers || exit
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
"$root/scripts/gpu_day.sh" "$out" --build "$1" --seconds 240 --dry navi31
code=$?
for step in devices bench-smollm2-135m-unmeasured bench-smollm2-135m bench-smollm2-135m-batch512 bench-smollm2-135m-deep; do
  grep -q " $step: exit code 0$" "$out/steps.txt" || { echo "FAILED: $step" && cat "$out/$step.txt" && code=1; }
done
# A program without results is reported as a failure, and the report is still written.
grep -q ' numbers-doctor: exit code [1-9]' "$out/steps.txt" && grep -q '"limits"' "$out/report.json" || code=1
grep -q 'NAVI31' "$out/devices.txt" && grep -q 'decode_tokens_per_s' "$out/bench-smollm2-135m.txt" || code=1
exit "$code"
