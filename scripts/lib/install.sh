# shellcheck shell=bash
# Installs packages and a software Vulkan driver for the scripts. To be sourced.
#
#   oriel_install_packages GROUP...   build, runtime, test, package, site or a target of cross.sh; installs missing ones
#   oriel_find_swiftshader            puts SwiftShader under build/swiftshader
#   oriel_lavapipe_manifest           prints the path of this system's lavapipe manifest
#   oriel_configure [CMAKE_ARG...]    the release preset in build/release
#   oriel_npm NAME FOLDER             installs scripts/npm/NAME there: versions and hashes are in its lock file
#   oriel_complete_notices FILE       fails if a THIRD_PARTY_NOTICES.txt lacks a licence, and names it
#   oriel_say TEXT                    one line for the person, on stderr
#   oriel_fail TEXT                   ends a test script before any test ran
#   oriel_run_tests BUILD REPORT CTEST_ARG...   0 only if none failed and at least one passed
#
# The last line of a test script is `N passed, N failed`, and `, N skipped` if tests were skipped. No other function reads
# stdin or prints anything else on stdout. Output of other programs goes to the file ORIEL_LOG if set,
# else to stderr.

# The scripts ignore the user's config file.
export ORIEL_CONFIG=

oriel_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# ccache gets the list of included files from the compiler, and runs no preprocessor before each compilation.
export CCACHE_DEPEND=1

oriel_say() {
  printf 'oriel: %s\n' "$*" >&2
}

# Runs a command with its output in the log (see above).
oriel_logged() {
  if [[ -n ${ORIEL_LOG:-} ]]; then
    "$@" </dev/null >>"$ORIEL_LOG" 2>&1
  else
    "$@" </dev/null >&2
  fi
}

# oriel_retry TRIES COMMAND...: until it succeeds, because package mirrors fail for a moment.
oriel_retry() {
  local tries=$1 attempt
  shift
  for ((attempt = 1; ; attempt++)); do
    "$@" && return 0
    ((attempt < tries)) || return 1
    sleep $((attempt * 5))
  done
}

# GROUP PACKAGE NEED PROBE. A package counts as present when its probe is found (cmd: a program,
# inc: a header, lib: a shared library, file: a path, may have wildcards) or dpkg knows it. Without
# a `must` package there is nothing to build; the others make it faster or the tests more complete.
oriel_packages='
build   g++                     must  cmd:g++
build   cmake                   must  cmd:cmake
build   ninja-build             must  cmd:ninja
build   ccache                  may   cmd:ccache
build   libvulkan-dev           must  inc:vulkan/vulkan.h
build   libcli11-dev            must  inc:CLI/CLI.hpp
build   libhwy-dev              may   inc:hwy/highway.h
build   nlohmann-json3-dev      must  inc:nlohmann/json.hpp
build   libedit-dev             may   inc:histedit.h
build   libboost-dev            may   inc:boost/beast/http/parser.hpp
build   python3                 must  cmd:python3
runtime libvulkan1              may   lib:libvulkan.so.1
runtime libedit2                may   lib:libedit.so.2
runtime libpng16-16             may   lib:libpng16.so.16
runtime libturbojpeg0           may   lib:libturbojpeg.so.0
runtime mesa-vulkan-drivers     may   file:/usr/share/vulkan/icd.d/lvp_icd*.json
test    libgtest-dev            must  inc:gtest/gtest.h
test    spirv-tools             may   cmd:spirv-dis
test    vulkan-validationlayers may   file:/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json
test    python3-numpy           may   file:/usr/lib/python3/dist-packages/numpy
test    python3-pip             may   cmd:pip3
test    python3-setuptools      may   file:/usr/lib/python3/dist-packages/setuptools
test    python3-wheel           may   file:/usr/lib/python3/dist-packages/wheel
test    python3-venv            may   file:/usr/lib/python3.*/ensurepip
test    mypy                    may   file:/usr/bin/mypy
test    python3-jsonschema      may   file:/usr/lib/python3/dist-packages/jsonschema
test    unicode-data            may   file:/usr/share/unicode/UnicodeData.txt
test    pkgconf                 may   cmd:pkg-config
test    clang-format-14         may   cmd:clang-format-14
test    clang-tidy-14           may   cmd:clang-tidy-14
test    openjdk-17-jdk-headless may   cmd:javac
package dpkg-dev                must  cmd:dpkg-shlibdeps
package file                    must  cmd:file
package gzip                    must  cmd:gzip
package unicode-data            must  file:/usr/share/doc/unicode-data/copyright
test    python3-markdown-it     may   file:/usr/lib/python3/dist-packages/markdown_it
site    python3-markdown-it     must  file:/usr/lib/python3/dist-packages/markdown_it
linux-aarch64 g++-aarch64-linux-gnu      must cmd:aarch64-linux-gnu-g++
linux-aarch64 qemu-user-static           must cmd:qemu-aarch64-static
linux-armhf   g++-arm-linux-gnueabihf    must cmd:arm-linux-gnueabihf-g++
linux-armhf   qemu-user-static           must cmd:qemu-arm-static
linux-riscv64 g++-riscv64-linux-gnu      must cmd:riscv64-linux-gnu-g++
linux-riscv64 qemu-user-static           must cmd:qemu-riscv64-static
windows-x64   g++-mingw-w64-x86-64-posix must cmd:x86_64-w64-mingw32-g++-posix
windows-x64   wine64                     must file:/usr/lib/wine/wine64
windows-x64   xvfb                       must cmd:Xvfb
'

oriel_probe() {
  local name=${1#*:}
  case $1 in
    cmd:*) command -v "$name" >/dev/null ;;
    inc:*) [[ -e /usr/include/$name || -e /usr/local/include/$name ]] ;;
    lib:*) compgen -G "/usr/lib/*/$name" >/dev/null || compgen -G "/usr/lib*/$name" >/dev/null ;;
    file:*) compgen -G "$name" >/dev/null ;;
  esac
}

# Sets missing=(PACKAGE...) and needed=(required ones) for the groups given.
oriel_list_missing() {
  local group package need probe
  missing=() needed=()
  while read -r group package need probe; do
    [[ -n $group && " $* " == *" $group "* ]] || continue
    oriel_probe "$probe" && continue
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] && continue
    missing+=("$package")
    [[ $need == must ]] && needed+=("$package")
  done <<<"$oriel_packages"
  return 0
}

# Sets as_root to the prefix that runs a command as root, () for root itself. Fails if there is no such prefix.
oriel_become_root() {
  as_root=()
  [[ $EUID == 0 ]] && return 0
  command -v sudo >/dev/null || return 1
  if sudo -n true 2>/dev/null </dev/null; then
    as_root=(sudo -n)
  elif [[ -t 2 && -z ${CI:-} ]]; then
    as_root=(sudo) # asks for the password on the terminal
  else
    return 1
  fi
}

oriel_apt() {
  oriel_logged "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o DPkg::Lock::Timeout=120 "$@"
}

# An update may fail for an unrelated source and still bring the package lists, so only the result of the install
# counts.
oriel_apt_install() {
  oriel_apt update || true
  oriel_apt install --no-install-recommends "$@"
}

# Fails only when a package without which nothing can be built is still missing. Packages that may be
# missing are tried ORIEL_OPTIONAL_TRIES times.
oriel_install_packages() {
  local missing needed as_root tries=5
  oriel_list_missing "$@"
  ((${#missing[@]})) || return 0
  ((${#needed[@]})) || tries=${ORIEL_OPTIONAL_TRIES:-5}
  if ! command -v apt-get >/dev/null; then
    oriel_say "this system has no apt; please install the equivalents of: ${missing[*]}"
  elif ! oriel_become_root; then
    oriel_say "cannot install without root; please run: apt-get install ${missing[*]}"
  else
    oriel_retry "$tries" oriel_apt_install "${missing[@]}" ||
      oriel_say "apt-get could not install: ${missing[*]}"
    oriel_list_missing "$@"
  fi
  ((${#needed[@]} == 0))
}

oriel_complete_notices() {
  ! grep -H '^NOT HERE:' "$1" >&2
}

# No script of a package is run.
oriel_npm() {
  local lock=$oriel_root/scripts/npm/$1/package-lock.json folder=$2
  cmp -s "$lock" "$folder/node_modules/.complete" && return 0
  cp "$oriel_root/scripts/npm/$1/"package*.json "$folder/" &&
    (cd "$folder" && oriel_retry 3 oriel_logged npm ci --no-audit --no-fund --ignore-scripts) &&
    cp "$lock" "$folder/node_modules/.complete"
}

# Fetches the package that holds SwiftShader into directory $1 and takes the library out of it.
oriel_fetch_swiftshader() {
  local stage=$1
  rm -rf "${stage:?}"/*
  (cd "$stage" && oriel_logged apt-get -q download chromium-common) || {
    # The package lists may be older than the mirror.
    local as_root
    oriel_become_root && { oriel_apt update || true; }
    return 1
  }
  oriel_logged dpkg-deb -x "$stage"/chromium-common_*.deb "$stage/files" &&
    [[ -n $(find "$stage/files" -name libvk_swiftshader.so) ]] &&
    [[ -n $(find "$stage/files" -name vk_swiftshader_icd.json) ]]
}

# SwiftShader, a Vulkan driver that runs on the CPU, comes inside Debian's chromium-common. Afterwards
# build/swiftshader/vk_swiftshader_icd.json is a driver manifest for the Vulkan loader.
# Returns 0 if it is there, 1 if it could not be had although this system offers it, 2 if this
# system does not offer it. The reason is printed.
oriel_find_swiftshader() {
  local target=$oriel_root/build/swiftshader stage id
  if [[ -s $target/libvk_swiftshader.so && -s $target/vk_swiftshader_icd.json ]]; then
    return 0
  fi
  # shellcheck disable=SC1091
  id=$(. /etc/os-release 2>/dev/null && echo "${ID:-}")
  if [[ $id != debian ]]; then
    oriel_say "no SwiftShader: only Debian packages it (in chromium-common); this is ${id:-unknown}"
    return 2
  fi
  mkdir -p "$target"
  stage=$(mktemp -d "$oriel_root/build/swiftshader-XXXXXX") || return 1
  if ! oriel_retry 5 oriel_fetch_swiftshader "$stage"; then
    rm -rf "$stage"
    oriel_say "could not get SwiftShader out of the package chromium-common: check the network"
    return 1
  fi
  find "$stage/files" -name libvk_swiftshader.so -exec mv {} "$target/" \;
  # The manifest is written last: it tells that the rest is complete. Its path is relative to itself.
  sed 's|"library_path" *: *"[^"]*"|"library_path": "./libvk_swiftshader.so"|' \
    "$(find "$stage/files" -name vk_swiftshader_icd.json)" >"$stage/icd.json"
  mv "$stage/icd.json" "$target/vk_swiftshader_icd.json"
  rm -rf "$stage"
  if LC_ALL=C ldd "$target/libvk_swiftshader.so" 2>/dev/null | grep 'not found' >&2; then
    oriel_say "SwiftShader needs the libraries above; please install them"
    return 1
  fi
}

# A system may have lavapipe for several processors.
oriel_lavapipe_manifest() {
  local icds=/usr/share/vulkan/icd.d
  { compgen -G "$icds/lvp_icd*$(uname -m)*.json" || compgen -G "$icds/lvp_icd*.json"; } | head -n 1
}

# Configures build/release. A build folder that was moved or copied here is started afresh, because
# CMake refuses it.
oriel_configure() {
  local cache=$oriel_root/build/release/CMakeCache.txt launcher=()
  if [[ -f $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$oriel_root" "$cache"; then
    rm -rf "$oriel_root/build/release"
  fi
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  (cd "$oriel_root" && oriel_logged cmake --preset release "${launcher[@]}" "$@")
}

oriel_fail() {
  oriel_say "$1"
  echo "0 passed, 0 failed"
  exit 1
}

oriel_run_tests() {
  local build=$1 report=$2 ctest_code summary_code began=$SECONDS
  shift 2
  rm -f "$report"
  ctest --test-dir "$build" --output-on-failure --output-junit "$report" "$@"
  ctest_code=$?
  oriel_say "testing took $((SECONDS - began)) s, everything $SECONDS s${oriel_limit_s:+; the limit on two cores is $oriel_limit_s s}"
  [[ -s $report ]] || oriel_fail "ctest wrote no report (exit code $ctest_code)"
  python3 "$oriel_root/scripts/lib/test_summary.py" "$report"
  summary_code=$?
  ((ctest_code == 0 && summary_code == 0))
}
