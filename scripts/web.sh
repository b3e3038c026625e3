#!/usr/bin/env bash
# docs/web.md: builds the npm package, with an addon for this system, and the page, and runs their tests in Node and in a headless browser.
#
#   scripts/web.sh [build | test]     default: both
#
# Installs Emscripten, Node and Chromium if missing (Debian 12, Ubuntu; about 1.5 GB). The package is
# build/web/oriel-VERSION.tgz, the page build/page.
#
# The last line is `N passed, N failed`, and `, N skipped` if tests were skipped. The exit code is 0 only if none failed
# and at least one passed.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"

part=${1:-all}
oriel_packages+='
web     emscripten              must  cmd:emcc
web     nodejs                  must  cmd:node
web     npm                     must  cmd:npm
web     chromium                may   cmd:chromium
'
oriel_install_packages build web || oriel_fail "packages are missing"
# Emscripten's own scripts look for Debian's packages, which a Node from elsewhere does not know.
export NODE_PATH=/usr/share/nodejs${NODE_PATH:+:$NODE_PATH}
cd "$oriel_root" || exit 1
mkdir -p build/web web/dist

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
if [[ $part != test ]]; then
  for preset in wasm wasm-threads; do
    oriel_logged cmake --preset "$preset" -DORIEL_WARNINGS_AS_ERRORS=ON "${launcher[@]}" || oriel_fail "configuring $preset failed"
    cmake --build "build/$preset" --target oriel_web || oriel_fail "building $preset failed"
    cp "build/$preset"/web/oriel*.js "build/$preset"/web/oriel*.wasm web/dist/
  done
  oriel_configure && cmake --build build/release --target oriel_node || oriel_fail "building the addon failed"
  prebuilds=web/prebuilds/$(node -p 'process.platform + "-" + process.arch')
  mkdir -p "$prebuilds" && cp build/release/web/native/oriel.node "$prebuilds/" || oriel_fail "the addon is not there"
  echo '{ "type": "commonjs" }' >web/dist/package.json
  node web/make.mjs worker || oriel_fail "making the worker failed"
  node web/make.mjs types || oriel_fail "making the option types failed"
  cp LICENSE build/wasm/THIRD_PARTY_NOTICES.txt web/
  oriel_complete_notices web/THIRD_PARTY_NOTICES.txt || oriel_fail "licences are missing: see above"
  (cd web && npm pack --silent --pack-destination ../build/web) || oriel_fail "npm pack failed"
  node web/make.mjs page || oriel_fail "the page is too large"
  cp LICENSE build/wasm/THIRD_PARTY_NOTICES.txt build/page/
fi
[[ $part == build ]] && exit 0

# The native program is the reference.
oriel_configure && cmake --build build/release --target oriel_cli || oriel_fail "building the program failed"
oriel_npm web build/web || oriel_say "npm could not fetch playwright-core and typescript"
report=build/web/tests.tap
node --test --test-reporter=tap web/test/ | tee "$report"
count() {
  local number
  number=$(sed -n "s/^# $1 //p" "$report" | tail -n 1)
  echo "${number:-0}"
}
passed=$(count pass) failed=$(($(count fail) + $(count cancelled))) skipped=$(count skipped)
echo "$passed passed, $failed failed$( ((skipped)) && echo ", $skipped skipped")"
((failed == 0 && passed > 0))
