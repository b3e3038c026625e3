#!/usr/bin/env bash
# Compiles the Swift package and the Kotlin functions for phones on this machine, and runs their tests here. Code for
# Apple's frameworks or Android, with the samples, is compiled against declarations (tests/swift, tests/jni).
#
#   scripts/bindings.sh
#
# The compilers are Debian 13's for Swift and the npm package kotlin-compiler, which includes coroutines (600 MB and 90
# MB to fetch, 2.6 GB unpacked); the headers of React Native's sample are in its npm package (24 MB). They are unpacked below build/bindings, not installed. Swift's compiler runs in its own
# root folder, which needs root rights or user namespaces. A missing compiler is skipped with the reason.
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

bindings=$oriel_root/build/bindings
report=$bindings/test-report.xml
oriel_install_packages build test || oriel_fail "packages are missing"
mkdir -p "$bindings" || oriel_fail "cannot write to $bindings"

options=("-DORIEL_SWIFTC=" "-DORIEL_KOTLIN=" "-DORIEL_JSI=")

root=$bindings/swift
if [[ $(uname -m) != x86_64 ]]; then
  oriel_say "Swift is skipped: only written for amd64"
elif oriel_sysroot "$root" amd64 trixie swiftlang gcc libc6-dev libstdc++-14-dev; then
  for folder in bin lib64; do
    [[ -e $root/$folder ]] || ln -s "usr/$folder" "$root/$folder"
  done
  mkdir -p "$root"/{dev,proc,tmp} "$root$oriel_root"
  namespace=(unshare --mount)
  ((EUID == 0)) || namespace+=(--map-root-user)
  cat >"$bindings/with_swift" <<SCRIPT
#!/bin/sh
# Runs PROGRAM ARGS... in Swift's root, which has this folder at the same path.
exec ${namespace[*]} sh -c '
  for folder in /dev /proc "$oriel_root"; do
    mount --rbind "\$folder" "$root\$folder" || exit 1
  done
  exec env -i PATH=/usr/bin HOME=/tmp /usr/sbin/chroot "$root" "\$@"' sh "\$@"
SCRIPT
  chmod +x "$bindings/with_swift"
  if "$bindings/with_swift" /usr/libexec/swift/bin/swiftc --version >&2; then
    options+=("-DORIEL_SWIFTC=/usr/libexec/swift/bin/swiftc" "-DORIEL_SWIFT_RUN=$bindings/with_swift")
  else
    oriel_say "Swift is skipped: its compiler does not start"
  fi
else
  oriel_say "Swift is skipped: its compiler could not be had"
fi

kotlin=$bindings/kotlin
if command -v npm >/dev/null && mkdir -p "$kotlin" && oriel_npm kotlin "$kotlin"; then
  options+=("-DORIEL_KOTLIN=$kotlin/node_modules/kotlin-compiler/lib")
else
  oriel_say "Kotlin is skipped: its compiler could not be had with npm"
fi

# Two folders of headers, of 3800 files. Its dependencies are not installed.
jsi=$bindings/react-native
package=react-native-0.76.5
if [[ -d $jsi/package/ReactCommon/jsi ]] || {
  command -v npm >/dev/null && mkdir -p "$jsi" &&
    (cd "$jsi" && oriel_retry 3 oriel_logged npm pack "${package%-*}@${package##*-}" &&
      echo "be687f5995f60ed535b05784fec6356dd1bfc78e371402747c78072edf6ad41c  $package.tgz" | oriel_logged sha256sum -c &&
      oriel_logged tar xzf $package.tgz package/ReactCommon/callinvoker package/ReactCommon/jsi)
}; then
  options+=("-DORIEL_JSI=$jsi/package/ReactCommon")
else
  oriel_say "React Native is skipped: its headers could not be had with npm"
fi

# Removes the build of a checkout that was moved.
grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$oriel_root" "$bindings/build/CMakeCache.txt" || rm -rf "$bindings/build"
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
(cd "$oriel_root" && oriel_logged cmake --preset release -B "$bindings/build" "${launcher[@]}" \
  -DORIEL_BUILD_TESTS=ON -DORIEL_UNITY=ON -DORIEL_WARNINGS_AS_ERRORS=ON "${options[@]}") || oriel_fail "configuring failed"
targets=(oriel_cli)
for target in oriel_jni oriel_jni_classes oriel_kotlin_classes oriel_swift_tests; do
  ninja -C "$bindings/build" -t query "$target" >/dev/null 2>&1 && targets+=("$target")
done
cmake --build "$bindings/build" --target "${targets[@]}" || oriel_fail "building failed"

oriel_run_tests "$bindings/build" "$report" -j2 --timeout 300 -R '^(jni|swift|docs[.]react_native)'
