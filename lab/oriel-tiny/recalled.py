"""Measures, through Oriel, how well this model recalls facts from many windows ago.

    python3 recalled.py --oriel PATH/oriel --model ../../models/oriel-tiny/oriel-tiny-q8_0.gguf

The user tells facts in the wordings of checks.py, which training does not have. A number of tokens of other talk
follows. Then the script asks for each fact.  "gone": evicted turns are lost.  "kept": --recall.
"again": evicted turns are lost, and the app repeats the turn with the fact before the question; a real app would have to
find that turn first.  "nearby":
the fact is a few tokens before the question.  Greedy, on the CPU.  docs/decisions/017-retrieval.md has the table.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import checks
from phrases import Rng
from tokenizer import Tokenizer


def messages(check, again):
    out = [{"role": "system", "content": check.system}] if check.system else []
    turns = list(check.turns) + ([check.turns[0]] if again else [])
    for user, assistant in turns:
        out += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
    return out + [{"role": "user", "content": check.question}]


def answer(a, check, extra, again=False):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump(messages(check, again), f)
        f.flush()
        done = subprocess.run(
            [a.oriel, "run", a.model, "--messages", f.name, "--tokens", "60", "--greedy", "--json"]
            + ["--device", "cpu", "--window", str(a.window), "--kv", a.kv, *extra],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        sys.exit(done.stderr)
    out = json.loads(done.stdout)
    return checks.passed(check, out["text"])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--oriel", required=True)
    ap.add_argument("--model", required=True)
    ap.add_argument("--window", type=int, default=252)
    ap.add_argument("--kv", default="k8v4")
    ap.add_argument("--windows", type=float, nargs="+", default=[0.25, 2, 5, 10, 20])
    ap.add_argument("--each", type=int, default=40)
    ap.add_argument("--seed", default="recalled")
    a = ap.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    tok = Tokenizer.load(os.path.join(here, "tokenizer.json"))
    print("| told so many windows ago | gone | kept | again |\n|---|---|---|---|", flush=True)
    for n in a.windows:
        asked = [checks.recall(Rng(f"{a.seed}-{n}-{i}"), tok, int(n * a.window)) for i in range(a.each)]
        row = [
            sum(answer(a, c, []) for c in asked),
            sum(answer(a, c, ["--recall", "64MB"]) for c in asked),
            sum(answer(a, c, [], again=True) for c in asked),
        ]
        print(f"| {n:g} | " + " | ".join(f"{k} of {a.each}" for k in row) + " |", flush=True)


if __name__ == "__main__":
    main()
