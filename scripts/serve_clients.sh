#!/usr/bin/env bash
# `oriel serve` against published clients for JavaScript (openai, ai, @langchain/openai, llamaindex, @openai/agents,
# ollama, @anthropic-ai/sdk), and its page in a browser.
#
#   scripts/serve_clients.sh [ORIEL]     ORIEL: the program; default: builds the release preset and uses its program
#
# Installs Node.js and Chromium (about 300 MB) if missing. The clients want Node.js 20 or later. Packages (some 320 MB)
# and screenshots of the page are in build/serve_clients afterwards.
#
# The last line is `N passed, N failed`. The exit code is 0 only if none failed and at least one passed.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"

work=$oriel_root/build/serve_clients
oriel=${1:-}
oriel_packages+='
clients nodejs   must cmd:node
clients npm      must cmd:npm
clients chromium must cmd:chromium
'
oriel_install_packages clients || oriel_fail "packages are missing"
node -e 'process.exit(parseInt(process.versions.node) < 20)' || oriel_fail "the clients want Node.js 20 or later: install it"
mkdir -p "$work" || oriel_fail "cannot write to $work"
if [[ -z $oriel ]]; then
  oriel_install_packages build || oriel_fail "packages are missing"
  oriel_configure || oriel_fail "CMake failed"
  oriel_logged cmake --build "$oriel_root/build/release" --target oriel_cli || oriel_fail "the build failed"
  oriel=$oriel_root/build/release/apps/oriel
fi

oriel_npm clients "$work" || oriel_fail "npm could not install the clients"
cp "$oriel_root"/tests/serve/*.mjs "$work/" || oriel_fail "cannot write to $work"

servers=()
trap '((${#servers[@]})) && kill "${servers[@]}" 2>/dev/null' EXIT

# serve ARGS...: starts one, and sets url.
serve() {
  local said=$work/url-${#servers[@]}
  rm -f "$said"
  "$oriel" serve --port 0 --device cpu --memory 256MiB --window 1024 "$@" >"$said" &
  servers+=($!)
  for ((i = 0; i < 200; i++)); do
    [[ -s $said ]] && break
    sleep 0.1
  done
  url=$(<"$said")
  [[ -n $url ]] || oriel_fail "oriel serve did not start"
}

cat >"$work/tools.jinja" <<'JINJA'
{%- if tools %}{{ '<|im_start|>system\n<tool_call>{"name": ..., "arguments": ...}</tool_call>\n' }}
{%- for tool in tools %}{{ (tool | tojson) + '\n' }}{% endfor %}{{ '<|im_end|>\n' }}{% endif %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}{{ '<tool_call>' + (call.function | tojson) + '</tool_call>' }}{% endfor %}
{{- '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
JINJA
serve --api-key secret
export ORIEL_URL=$url
serve --api-key secret --template "$work/tools.jinja"
export ORIEL_TOOLS_URL=$url
serve
export ORIEL_PAGE_URL=$url ORIEL_PAGE=$oriel_root/docs/serve.md
ORIEL_NO_STOP=$(printf '<|im_end|><|endoftext|>' | "$oriel" tokenize --special --json |
  python3 -c 'import json, sys; print(json.dumps({str(i): -100 for i in json.load(sys.stdin)["ids"]}))')
ORIEL_PICTURES=$work
CHROMIUM=$(command -v chromium)
export ORIEL_NO_STOP ORIEL_PICTURES CHROMIUM

(cd "$work" && node --test --test-reporter=tap openai.test.mjs clients.test.mjs page.test.mjs) | tee "$work/report.tap"
passed=$(sed -n 's/^# pass //p' "$work/report.tap")
failed=$(sed -n 's/^# fail //p' "$work/report.tap")
echo "${passed:-0} passed, ${failed:-1} failed"
[[ ${failed:-1} == 0 && ${passed:-0} -gt 0 ]]
