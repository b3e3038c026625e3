#!/usr/bin/env bash
# Compiles the kernels for GPUs that this machine does not have: Mesa's drivers on an imitated kernel (Debian's
# mesa-drm-shim). No kernel runs. Prints one row per GPU and fails if a pipeline does not compile, or needs more memory
# or registers than tests/compilers/bounds.json records.
#
#   scripts/gpu_compilers.sh [--quick] [--gpu NAME]... [--record] [--worst N] [--tool FILE]
#
#   --quick   three GPUs and one model, for every change: well under two minutes
#   --record  writes the bounds anew
#   --worst   prints the N pipelines per GPU that use most memory
#   --drivers only prepares the drivers
#   --tool    oriel_compile_plan of a build; without it build/release is built
#
# ORIEL_NEWER_SUITE (testing) is the Debian release. It is unpacked below build/compilers, not installed. The exit code
# is 77 if it is not available.
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

tool='' drivers_only='' arguments=()
while (($#)); do
  case $1 in
    --tool) tool=$2 && shift ;;
    --drivers) drivers_only=1 ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
[[ $(uname -m) == x86_64 ]] || skip "only written for amd64"
folder=$oriel_root/build/compilers
mkdir -p "$folder" || exit 1
oriel_gpu_drivers "$folder/root" || skip "the drivers could not be had"
[[ -z $drivers_only ]] || exit 0
oriel_numpy=$(for python in python3 /usr/bin/python3; do "$python" -c 'import numpy' 2>/dev/null && echo "$python" && break; done)
[[ -n $oriel_numpy ]] || skip "numpy is not installed (package python3-numpy)"
if [[ -z $tool ]]; then
  oriel_install_packages build runtime test || skip "packages are missing"
  oriel_configure -DORIEL_BUILD_TESTS=ON && cmake --build "$oriel_root/build/release" --target oriel_compile_plan >&2 || exit 1
  tool=$oriel_root/build/release/tests/compilers/oriel_compile_plan
fi
exec "$oriel_numpy" "$oriel_root/tests/compilers/gpu_compilers.py" "$tool" "$folder/root" "$folder/models" "${arguments[@]}"
