#!/usr/bin/env python3
"""scripts/make_model.py writes models that run: test_make_model.py ORIEL_BINARY TEST_DATA_DIR

What is in a file is asked of the program; the published
numbers stand here.
"""

import array
import json
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import DATA, ORIEL, PATIENCE, check, environment, run_tests, scratch

SCRIPT = DATA.parent.parent / "scripts" / "make_model.py"


def oriel(*args, text=None):
    done = subprocess.run([str(ORIEL), *map(str, args), "--json"], input=text, encoding="utf-8",
                          env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240 * PATIENCE)
    check(args[0], done.returncode == 0, done)
    return json.loads(done.stdout or "{}")


def make(*args):
    path = scratch / "model.gguf"
    done = subprocess.run([sys.executable, str(SCRIPT), *args[:2], str(path), *args[2:]],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240 * PATIENCE)
    check("make " + " ".join(args), done.returncode == 0, done)
    return path


def test_a_full_size_file_has_the_published_numbers():
    info = oriel("info", make("smollm2-135m", "q4_0"))
    want = {"architecture": "llama", "n_layers": 30, "n_heads": 9, "n_kv_heads": 3, "head_dim": 64,
            "n_embd": 576, "n_ff": 1536, "n_vocab": 49152, "context_train": 8192,
            "parameters": 134515008, "tokenizer": "bpe (smollm)", "chat_template": "chatml",
            "bos_id": 1, "eos_id": 2, "add_bos": False,
            "tensor_types": {"Q8_0": 1, "F32": 61, "Q4_0": 210}}
    check("as published", {key: info.get(key) for key in want} == want, info)


def runs(*how):
    model = make(*how, "--tiny")
    text = "The house was small, and they said:\n\n    return 42\tna\u00efve \u4e2d\u6587"
    ids = oriel("tokenize", model, text=text)["ids"]
    check("text comes back", oriel("tokenize", model, "--decode", *ids)["text"] == text, ids)
    word = "the" if how[0] == "tinyllama-1.1b" else " the"  # the space comes with the tokenizer there
    check("a common word is one token", len(oriel("tokenize", model, text=word)["ids"]) == 1)

    cpu = ["--device", "cpu", "--memory", "64MiB", "--kv", "f16"]
    logits = scratch / "logits"
    (scratch / "ids").write_text(json.dumps({"ids": list(range(300, 340))}))
    oriel("eval", model, "--tokens-file", scratch / "ids", "--logits-out", logits, *cpu)
    values = array.array("f", logits.read_bytes())
    deviation = statistics.pstdev(values)
    check("logits spread sanely", 0.5 < deviation < 10 and len(values) == 2048, deviation)

    words = oriel("run", model, "--raw", "--prompt", text, "--tokens", "24", "--greedy", "--ignore-stop",
                  *cpu)["token_ids"]
    check("the output varies", len(words) == 24 and len(set(words)) > 6, words)


def test_every_shape_and_type_runs():
    for kind in ("q4_0", "q8_0", "f16"):
        runs("smollm2-135m", kind, "--pure")
    for shape in ("qwen2.5-0.5b", "qwen3-0.6b", "llama-3.2-1b", "tinyllama-1.1b", "gemma-3-270m"):
        runs(shape, "q4_0", "--pure")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
