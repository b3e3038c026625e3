#!/usr/bin/env bash
# Runs the fuzzers of tests/fuzz, each for a time, or says which lines they reach.
#
#   scripts/fuzz.sh [--seconds N] [--coverage] [NAME...]     all targets, 60 seconds of a processor each, two at a time
#
# Installs clang, libFuzzer and LLVM's tools if they are missing (Debian 12, Ubuntu). Useful inputs stay in
# build/fuzz/corpus/NAME, where the next run continues. A find is made small and stored in build/fuzz/finds; the script
# prints how to replay it. --coverage does not search: it runs seeds, corpus, and mutations of them for N seconds (30)
# in a build that counts lines, and prints the share of lines that ran per folder.
#
# The last line is `N passed, N failed`: targets without and with a find. The exit code is 0 only if none failed and at
# least one passed.
set -uo pipefail
exec </dev/null

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/install.sh
. "$here/lib/install.sh"

seconds='' coverage=0 names=()
while (($#)); do
  case $1 in
    --seconds) seconds=${2:-} && shift ;;
    --coverage) coverage=1 ;;
    -*) oriel_fail "unknown option $1: the first lines of scripts/fuzz.sh say which there are" ;;
    *) names+=("$1") ;;
  esac
  shift
done
seconds=${seconds:-$((coverage ? 30 : 60))}
[[ $seconds =~ ^[0-9]+$ ]] || oriel_fail "--seconds takes a number"

oriel_packages+='
fuzz    clang                   must  cmd:clang++
fuzz    llvm                    must  cmd:llvm-cov
fuzz    libclang-rt-14-dev      may   file:/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a
fuzz    libgtest-dev            must  inc:gtest/gtest.h
'
oriel_install_packages build fuzz || oriel_fail "packages are missing"
cd "$oriel_root" || exit 1

if ((${#names[@]} == 0)); then
  for source in tests/fuzz/fuzz_*.cpp; do
    name=${source##*/fuzz_}
    names+=("${name%.cpp}")
  done
fi
for name in "${names[@]}"; do
  [[ -f tests/fuzz/fuzz_$name.cpp ]] || oriel_fail "there is no target $name in tests/fuzz"
done

# build PRESET TARGET...
build() {
  local launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  oriel_logged cmake --preset "$1" "${launcher[@]}" || oriel_fail "configuring $1 failed"
  cmake --build "build/$1" -j "${ORIEL_JOBS:-$(nproc)}" --target "${@:2}" >&2 || oriel_fail "building $1 failed"
}

# Lines of runtime/ and platform/ that ran, by folder; of some folders only the files that fuzzers are meant to reach.
report_coverage() {
  local out=build/coverage/fuzz replay=build/coverage/tests/oriel_fuzz_replay name
  rm -rf "$out" && mkdir -p "$out"
  local ended=0 failures=0
  for name in "${names[@]}"; do
    mkdir -p "build/fuzz/corpus/$name"
    if LLVM_PROFILE_FILE="$out/$name.profraw" "$replay" --target "$name" --find "$out/$name.find" \
      --seeds "build/fuzz/corpus/$name" --mutate "$seconds" >"$out/$name.log" 2>&1; then
      ((++ended))
    else
      ((++failures))
      oriel_say "$name failed: $out/$name.log, with the input $out/$name.find"
    fi
  done
  llvm-profdata merge -sparse "$out"/*.profraw -o "$out/all.profdata" || oriel_fail "no counts were written"
  llvm-cov export "$replay" -instr-profile="$out/all.profdata" -format=lcov \
    -ignore-filename-regex='/tests/|^/usr/' >"$out/lines.info" 2>/dev/null
  python3 scripts/lib/fuzz_coverage.py "$out/lines.info"
  echo "$ended passed, $failures failed"
  ((failures == 0 && ended > 0))
}

# processor_seconds PROCESS: its processor time so far.
processor_seconds() {
  local stat
  read -r stat 2>/dev/null <"/proc/$1/stat" || return
  read -ra stat <<<"${stat##*) }"  # from the third field on: its name may have spaces
  echo $(((stat[11] + stat[12]) / $(getconf CLK_TCK)))
}

# fuzz NAME: returns 0 when nothing was found.
fuzz() {
  local name=$1 program=build/fuzz/tests/oriel_fuzz_$1 corpus=build/fuzz/corpus/$1 finds=build/fuzz/finds/$1
  local log=build/fuzz/logs/$1.log dictionary=() find small
  mkdir -p "$corpus" "$finds" "build/fuzz/seeds/$name" build/fuzz/logs
  rm -f "build/fuzz/seeds/$name"/*
  "$program" --write-seeds "build/fuzz/seeds/$name" || return 1
  [[ -f tests/fuzz/dictionaries/$name ]] && dictionary=(-dict="tests/fuzz/dictionaries/$name")
  local before
  before=$(find "$finds" -type f | sort)
  # libFuzzer ends by the clock on the wall, which says little on a machine that has more to do.
  "$program" -timeout=90 -rss_limit_mb=1024 -malloc_limit_mb=512 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$finds/" "${dictionary[@]}" "$corpus" "build/fuzz/seeds/$name" >"$log" 2>&1 &
  local process=$! spent=0 code said
  while kill -0 "$process" 2>/dev/null; do
    spent=$(processor_seconds "$process" || echo "$spent")
    ((spent < seconds)) || kill -USR1 "$process" 2>/dev/null  # ends it and makes it write its counts
    sleep 1
  done
  wait "$process"
  code=$?
  said="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $spent s of a processor,"
  said+=" $(grep -ao 'cov: [0-9]*' "$log" | tail -n 1)"
  if ((code == 0)); then
    echo "$name: $said, nothing found"
    return 0
  fi
  find=$(comm -13 <(echo "$before") <(find "$finds" -type f | sort) | head -n 1)
  if [[ -z $find ]]; then
    echo "$name: ended with code $code and left no input: $log"
    return 1
  fi
  small=$finds/small-${find##*/}
  timeout 120 "$program" -minimize_crash=1 -max_total_time=60 -exact_artifact_path="$small" "$find" \
    >>"$log" 2>&1
  [[ -s $small ]] || cp "$find" "$small"
  echo "$name: $said, FOUND: $(grep -am 1 -E 'ERROR: |runtime error|^[^ ]+:[0-9]+: ' "$log")"
  echo "  replay it:  $program $small"
  echo "  keep it:    as WHAT_IT_WAS under $name in tests/fuzz/finds.json, in base64: base64 -w0 $small"
  return 1
}

if ((coverage)); then
  build coverage oriel_fuzz_replay
  report_coverage
  exit
fi

build fuzz "${names[@]/#/oriel_fuzz_}"
results=build/fuzz/results
rm -rf "$results" && mkdir -p "$results"
for name in "${names[@]}"; do
  while (($(jobs -rp | wc -l) >= ${ORIEL_JOBS:-2})); do
    wait -n
  done
  { fuzz "$name" && : >"$results/$name.passed"; } &
done
wait
passed=$(find "$results" -name '*.passed' | wc -l)
echo "$passed passed, $((${#names[@]} - passed)) failed"
((passed == ${#names[@]} && passed > 0))
