#!/usr/bin/env bash
# Builds for another system and runs its tests here, in an emulator.
#
#   scripts/cross.sh TARGET [--all | CTEST_ARGS...]     e.g. scripts/cross.sh linux-aarch64 -R '^cpu'
#
# TARGET: linux-aarch64, linux-armhf, linux-riscv64 (qemu-user) or windows-x64 (wine). The target's libraries and
# lavapipe are unpacked below build/cross, not installed.
#
# On two cores it takes 15 to 40 minutes. With qemu the single tests on lavapipe would take hours, so they need --all.
# Without it, lavapipe runs the kernels without subgroups, some whole models in one process, and the device bundle. All
# other tests always run. CTEST_ARGS select other tests. ORIEL_CROSS_JOBS is the number of tests at a time (default: the
# number of processors). build/TARGET/device-TARGET.json is the device bundle's result, for tests/device/report.py.
#
# The last line is `N passed, N failed`, and `, N skipped` if tests were skipped. The exit code is 0 only if none failed
# and at least one passed.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"
# shellcheck source=scripts/lib/sysroot.sh
. "$here/lib/sysroot.sh"

target=${1:-}
shift || true
# Debian's name for the architecture, the release to take its files from ("": this system's), its qemu.
# Debian 12's lavapipe fails on 64-bit Arm (LLVM 15 cannot select an instruction); it has no RISC-V at all.
# On 32-bit Arm no software driver works in qemu: what lavapipe compiles calls the run-time library wrongly
# and ends in a crash (12 and 13), SwiftShader ends with an illegal instruction. On RISC-V LLVM 19 ends at the first
# kernel with f16 weights ("Do not know how to promote this operator's operand"). These two are tested on the CPU.
# Debian 13 signs return addresses on 64-bit Arm; computing Arm's signatures took qemu nine tenths of its time.
driver=mesa-vulkan-drivers
case $target in
  linux-aarch64) arch=arm64 suite=trixie qemu='aarch64-static -cpu max,pauth=off' ;;
  linux-armhf) arch=armhf suite='' qemu=arm-static driver='' ;;
  linux-riscv64) arch=riscv64 suite=trixie qemu=riscv64-static driver='' ;;
  windows-x64) arch='' ;;
  *) oriel_fail "cross.sh TARGET: linux-aarch64, linux-armhf, linux-riscv64 or windows-x64" ;;
esac

part=("$@")
[[ $# == 0 && -n $arch ]] && part=(-E '^lavapipe[.]')
[[ ${1:-} == --all ]] && part=("${@:2}")

cross=$oriel_root/build/cross/$target
headers=$oriel_root/build/cross/headers
prefix=$cross/prefix
build=$oriel_root/build/$target
report=$cross/test-report.xml

groups=(build "$target")
[[ $target == windows-x64 ]] && groups+=(runtime)
oriel_install_packages "${groups[@]}" || oriel_fail "packages are missing"
mkdir -p "$cross" || oriel_fail "cannot write to $cross"

# Headers and sources that are the same for every target.
oriel_unpack "$headers" libvulkan-dev libhwy-dev libcli11-dev nlohmann-json3-dev googletest ||
  oriel_fail "the tests' headers could not be had"

# How a program of the target is started: $cross/emulate PROGRAM ARGS...
icd=
if [[ -n $arch ]]; then
  # shellcheck disable=SC2086
  oriel_sysroot "$cross/sysroot" "$arch" "$suite" libstdc++6 libvulkan1 $driver ||
    oriel_fail "$arch libraries could not be had"
  # As the program sees it: qemu looks below the sysroot first.
  icd=$(compgen -G "$cross/sysroot/usr/share/vulkan/icd.d/lvp_icd*.json" | head -n 1)
  icd=${icd#"$cross/sysroot"}
  # Without optimisation lavapipe compiles kernels in two thirds of the time, which matters most here. Its cache
  # compiles each kernel once.
  cat >"$cross/emulate" <<SCRIPT
#!/bin/sh
GALLIVM_PERF=nopt MESA_SHADER_CACHE_DIR='$cross/kernels' exec qemu-$qemu -L '$cross/sysroot' "\$@"
SCRIPT
else
  icd=$(oriel_lavapipe_manifest)
  export WINEPREFIX=$cross/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' \
    VK_ICD_FILENAMES=$icd LIBGL_ALWAYS_SOFTWARE=1
  cat >"$cross/emulate" <<SCRIPT
#!/bin/sh
# Once in some thousand starts wine's server hangs up before the program has begun; then it is started again.
said=\$(mktemp)
trap 'rm -f "\$said"' EXIT
for attempt in 1 2 3; do
  LC_ALL=C.UTF-8 WINEPREFIX='$WINEPREFIX' WINEDEBUG=-all /usr/lib/wine/wine64 "\$@" 2>"\$said"
  code=\$?
  grep -q '^wine client error:0: recvmsg: Connection reset by peer' "\$said" || break
done
cat "\$said" >&2
exit \$code
SCRIPT
fi
chmod +x "$cross/emulate"

# wine's Vulkan wants a display. Its helpers outlive the program that started them and would hold on to a
# pipe, so they are started first, apart, and ended at the end.
if [[ $target == windows-x64 ]]; then
  rm -f "$cross/display"  # of a run before
  Xvfb -displayfd 3 -screen 0 640x480x24 3>"$cross/display" >/dev/null 2>&1 &
  xvfb=$!
  trap '/usr/lib/wine/wineserver64 -k >/dev/null 2>&1; kill "$xvfb" 2>/dev/null' EXIT
  for ((i = 0; i < 50; i++)); do
    [[ -s $cross/display ]] && break
    sleep 0.2
  done
  DISPLAY=:$(<"$cross/display")
  export DISPLAY
  /usr/lib/wine/wineserver64 -p >/dev/null 2>&1
  "$cross/emulate" wineboot -i >"$cross/wineboot.log" 2>&1
fi

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

if [[ ! -f $prefix/.complete ]]; then
  {
    oriel_logged cmake -S "$headers/usr/src/googletest" -B "$cross/googletest" -G Ninja \
      --toolchain "$oriel_root/toolchains/gnu.cmake" "-DORIEL_TARGET=$target" -DCMAKE_BUILD_TYPE=Release \
      -DBUILD_GMOCK=OFF "${launcher[@]}" "-DCMAKE_INSTALL_PREFIX=$prefix" &&
      oriel_logged cmake --build "$cross/googletest" -t install && : >"$prefix/.complete"
  } ||
    oriel_fail "GoogleTest could not be built"
fi

(cd "$oriel_root" && oriel_logged cmake --preset "$target" "${launcher[@]}" -DORIEL_BUILD_TESTS=ON \
  -DORIEL_WARNINGS_AS_ERRORS=ON "-DCMAKE_FIND_ROOT_PATH=$headers/usr;$prefix" \
  "-DCMAKE_CROSSCOMPILING_EMULATOR=$cross/emulate" "-DORIEL_LAVAPIPE_ICD=$icd") || oriel_fail "configuring failed"
cmake --build "$build" || oriel_fail "building failed"

# A driver in an emulator takes minutes to compile its kernels.
export ORIEL_TEST_PATIENCE=20
oriel_run_tests "$build" "$report" -j"${ORIEL_CROSS_JOBS:-$(nproc)}" --timeout 3600 "${part[@]}"
