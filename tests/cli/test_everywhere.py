#!/usr/bin/env python3
"""Checks that hold on every system, including emulated ones: test_everywhere.py ORIEL TEST_DATA_DIR

The bundled model's greedy words equal its float64 reference, in a folder with spaces and non-ASCII letters in its name.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, DATA, ORIEL, check, run_tests

# As in the reference's file, where each stands in the chat format.
QUESTIONS = ("ability", "sum", "story")
TURN = re.compile(r"<\|im_start\|>user\n(.*)<\|im_end\|>\n<\|im_start\|>assistant\n")


def oriel(*args, cwd):
    done = subprocess.run([str(ORIEL), *map(str, args)], stdin=subprocess.DEVNULL, cwd=cwd,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def test_the_same_words_everywhere():
    golden = json.loads((DATA / "oriel-tiny-golden.json").read_text("utf-8"))
    cases = {c["name"]: c for f in golden["files"] if f["file"] == BUNDLED.name for c in f["cases"]}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ö r i e l 模型 "))
    try:
        model = folder / "my größtes 模 model.gguf"
        shutil.copy(BUNDLED, model)
        for name in QUESTIONS:
            question = TURN.fullmatch(cases[name]["prompt"])[1]
            want = cases[name]["greedy_text"].split("<|im_end|>")[0]
            ended = "<|im_end|>" in cases[name]["greedy_text"]
            tokens = len(cases[name]["greedy_ids"])
            code, out, err = oriel("run", model, "--prompt", question, "--tokens", tokens, "--greedy",
                                   "--device", "cpu", "--kv", "f16", "--json", cwd=folder)
            check(f"{name} is answered", code == 0, (code, out, err))
            got = json.loads(out)["text"] if code == 0 else ""
            check(f"{name}: the reference's words", got == want if ended else got.startswith(want),
                  (got, want))
        (folder / "frage ü.txt").write_text(cases["plain"]["prompt"], "utf-8")
        code, out, err = oriel("run", model.name, "--prompt-file", "frage ü.txt", "--raw", "--tokens", 24,
                               "--greedy", "--device", "cpu", "--kv", "f16", "--json", cwd=folder)
        check("a relative path and a prompt's file", code == 0, (code, out, err))
        got = json.loads(out)["token_ids"] if code == 0 else []
        check("plain text: the reference's words", got == cases["plain"]["greedy_ids"][:24], got)
        code, out, err = oriel("info", folder / "kein größtes 模.gguf", cwd=folder)
        check("a missing file is named", code == 1 and "kein größtes 模.gguf" in err, (code, out, err))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
