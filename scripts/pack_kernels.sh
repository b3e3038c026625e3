#!/usr/bin/env bash
# Makes shaders/kernels_packed.cpp, which every build uses, from the shaders. Run it after each change of a shader.
#
#   scripts/pack_kernels.sh
#
# Compiles with glslangValidator and spirv-val of Debian 13, unpacked below build/kernels: Debian 12's do not know
# GL_KHR_cooperative_matrix. ORIEL_SHADER_SUITE names another release. Only the packages of a build are installed.
# Afterwards a build with -DORIEL_COMPILE_SHADERS=ON uses the same programs. The exit code is 77 if they are not
# available.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"
# shellcheck source=scripts/lib/sysroot.sh
. "$here/lib/sysroot.sh"

folder=$oriel_root/build/kernels
kernels=shaders/kernels_packed.cpp
case $(uname -m) in
  x86_64) arch=amd64 loader=ld-linux-x86-64.so.2 ;;
  aarch64) arch=arm64 loader=ld-linux-aarch64.so.1 ;;
  *) oriel_say "only written for x86-64 and 64-bit Arm" && exit 77 ;;
esac
oriel_install_packages build || exit 77
mkdir -p "$folder/bin" || exit 1
oriel_sysroot "$folder/sysroot" "$arch" "${ORIEL_SHADER_SUITE:-trixie}" glslang-tools spirv-tools || exit 77
oriel_sysroot_programs "$folder/bin" "$folder/sysroot" "$loader" glslangValidator spirv-val spirv-dis spirv-as ||
  exit 1

(cd "$oriel_root" && cmake --preset release -B "$folder/build" -DORIEL_COMPILE_SHADERS=ON -DORIEL_BUILD_CLI=OFF \
  -DORIEL_GLSLANG="$folder/bin/glslangValidator" -DORIEL_SPIRV_VAL="$folder/bin/spirv-val") >/dev/null || exit 1
cmake --build "$folder/build" --target oriel_kernels || exit 1
python3 "$oriel_root/tests/shaders/test_kernels.py" "$(command -v cmake)" "$folder/build/runtime/kernels_packed.cpp" \
  "$folder/bin/spirv-dis" || exit 1
cp "$folder/build/runtime/kernels_packed.cpp" "$oriel_root/$kernels" || exit 1
oriel_say "$kernels: $(wc -c <"$oriel_root/$kernels") bytes"
