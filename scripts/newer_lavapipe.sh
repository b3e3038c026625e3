#!/usr/bin/env bash
# Runs the tests of kernels, the self-test, and logits and greedy texts of a dozen kinds of model on the lavapipe of a newer
# Debian: it has matrix units (VK_KHR_cooperative_matrix); lavapipe in Debian 12 and 13 does not.
#
#   scripts/newer_lavapipe.sh [GTEST_FILTER]
#
# ORIEL_NEWER_SUITE (testing) is the release. It is unpacked below build/newer, not installed. The tests are those of
# build/release, with the newer libraries. The exit code is 0 only if all tests pass and matrix units were tested; 77 if
# the release is not available.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"
# shellcheck source=scripts/lib/sysroot.sh
. "$here/lib/sysroot.sh"

skip() {
  oriel_say "skipped: $1"
  exit 77
}

give_up() {
  oriel_say "$1"
  exit 1
}

filter='Device/Matmul*:MatmulChoice*:SelfTest.passes*:Device/Kernels.*:OrielTiny.*'
for model in llama_f16 llama_q4_k_m gemma2 gemma4_e lfm2 deepseek2 qwen3moe qwen35 granitehybrid falcon_h1 stories260K; do
  filter+=:Models/ModelLogits.*/$model
done
filter=${1:-$filter}
newer=$oriel_root/build/newer
root=$newer/sysroot
[[ $(uname -m) == x86_64 ]] || skip "only written for amd64"
oriel_install_packages build runtime test || skip "packages are missing"
mkdir -p "$newer/bin"
oriel_sysroot "$root" amd64 "${ORIEL_NEWER_SUITE:-testing}" libstdc++6 libvulkan1 mesa-vulkan-drivers \
  vulkan-validationlayers || skip "a newer release could not be had"
oriel_sysroot_programs "$newer/bin" "$root" ld-linux-x86-64.so.2 || exit 1

oriel_configure -DORIEL_BUILD_TESTS=ON &&
  cmake --build "$oriel_root/build/release" --target oriel_tests_lavapipe >&2 || exit 1
ORIEL_TEST_ICD=$(compgen -G "$root/usr/share/vulkan/icd.d/lvp_icd*.json" | head -n 1)
export ORIEL_TEST_ICD

# Compiling kernels with matrix units at the first dispatch takes this driver minutes.
export ORIEL_TEST_PATIENCE=20
tests=("$newer/bin/with" "$oriel_root/build/release/tests/oriel_tests_lavapipe")
"${tests[@]}" '--gtest_filter=MatmulChoiceOf.matrix_units_keep*' ||
  give_up "the matrix units fail, or this lavapipe has none"
"${tests[@]}" "--gtest_filter=$filter" || exit 1
# The validation layer of that release. Its settings are newer than the file that oriel_tests_validation writes.
log=$newer/validation.log
VK_LAYER_PATH=$root/usr/share/vulkan/explicit_layer.d VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation \
  VK_LAYER_VALIDATE_SYNC=1 VK_LOADER_DEBUG=layer "${tests[@]}" \
  '--gtest_filter=Device/Matmul.staged*:SelfTest.passes*' >"$log" 2>&1
code=$?
grep -v '^\[Vulkan Loader\]' "$log"
grep -q 'Insert instance layer.*VK_LAYER_KHRONOS_validation' "$log" ||
  give_up "the validation layer was not loaded"
grep -qE 'VUID-|SYNC-HAZARD' "$log" && code=1
exit "$code"
