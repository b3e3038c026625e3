#!/usr/bin/env bash
# Fails every call of Vulkan, every allocation and every call of the operating system once (docs/reference/faults.md), on the CPU,
# lavapipe and, if available, a sample on SwiftShader. Installs its dependencies, writes the page's tables and ends with
# a line "N passed, N failed".
set -uo pipefail
# shellcheck source=lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"

oriel_install_packages build runtime test || oriel_fail "packages are missing"
oriel_configure -DORIEL_BUILD_TESTS=ON || oriel_fail "CMake failed"
build=$oriel_root/build/release
oriel_logged cmake --build "$build" --target oriel_fault_matrix oriel_fault_layer || oriel_fail "the build failed"

models=$oriel_root/tests/data/models
layer=$build/tests/faults/layer
jobs=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 results=()

# run NAME OPTION...: one matrix; adds to the totals.
run() {
  local name=$1 last
  shift
  echo "== $name"
  "$build/tests/faults/oriel_fault_matrix" --jobs "$jobs" --results "$work/$name" "$@" | tee "$work/log"
  last=$(tail -n 1 "$work/log")
  if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    results+=("$work/$name")
  else
    failed=$((failed + 1))
  fi
}

run cpu --device cpu --model "$models/llama-f32.gguf"
run on-file --device cpu --model "$models/lfm2moe-q4_0.gguf" --on-file
run recall --device cpu --model "$models/llama-f32.gguf" --recall --only recall:
lavapipe=$(oriel_lavapipe_manifest)
if [[ -n $lavapipe ]]; then
  run recall-lavapipe --device "vulkan=$lavapipe" --layer "$layer" --model "$models/llama-q4_0.gguf" --recall \
    --only recall: --kinds v
  run lavapipe --device "vulkan=$lavapipe" --layer "$layer" --model "$models/llama-q4_0.gguf"
else
  oriel_say "no lavapipe: the tables stay as they are (package mesa-vulkan-drivers)"
fi
if oriel_find_swiftshader; then
  run swiftshader --device "vulkan=$oriel_root/build/swiftshader/vk_swiftshader_icd.json" --layer "$layer" \
    --model "$models/llama-q4_0.gguf" --kinds vml --take 60
  if [[ -n $lavapipe ]]; then
    run other-devices --device "vulkan=$lavapipe:$oriel_root/build/swiftshader/vk_swiftshader_icd.json" --layer "$layer" \
      --model "$models/llama-q4_0.gguf" --kinds l --only "other devices"
  fi
fi
if ((failed == 0)) && [[ -n $lavapipe ]]; then
  python3 "$oriel_root/tests/faults/page.py" "${results[@]}" --write || failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
