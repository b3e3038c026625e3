#!/usr/bin/env python3
"""Filling in the middle: test_fill_in.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import FIXED, SMALL, check, fails, json_of, oriel, run_tests, scratch, with_keys
from server import Server

BEFORE, BEHIND = "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"
MARKS = {"fim_pre": 11, "fim_suf": 12, "fim_mid": 13}


def ids_of(text):
    return json_of("ids", "tokenize", SMALL, stdin=text.encode())["ids"]


def expected(before=BEFORE, behind=BEHIND):
    bos = json_of("bos", "run", SMALL, "--prompt", "a", "--raw", "--tokens", "1", *FIXED)["prompt_token_ids"]
    bos = bos[:len(bos) - len(ids_of("a"))]
    return bos + [MARKS["fim_pre"]] + ids_of(before) + [MARKS["fim_suf"]] + ids_of(behind) + [MARKS["fim_mid"]]


def marked():
    model = with_keys(SMALL, {f"tokenizer.ggml.{name}_token_id": id for name, id in MARKS.items()})
    return model.rename(scratch / "coder.gguf")


def files():
    before, behind = scratch / "before.py", scratch / "behind.py"
    before.write_text(BEFORE)
    behind.write_text(BEHIND)
    return before, behind


def test_run():
    model, (before, behind) = marked(), files()
    fixed = ["--tokens", "12", "--greedy", *FIXED]
    got = json_of("a gap", "run", model, "--prefix", before, "--suffix", behind, *fixed)
    check("reads prefix, suffix and middle", got["prompt_token_ids"] == expected(), got)
    ids = scratch / "ids.json"
    ids.write_text(json.dumps({"ids": expected()}))
    same = json_of("the same ids", "run", model, "--tokens-file", ids, *fixed)
    check("and writes what follows", got["text"] == same["text"] and got["token_ids"] == same["token_ids"], (got, same))
    only = json_of("no prefix", "run", model, "--suffix", behind, *fixed)
    check("is an empty one", only["prompt_token_ids"] == expected(before=""), only)
    plain = fails("a model without the tokens", 1, "run", SMALL, "--prefix", before, *fixed)
    check("says so", b"fill in the middle" in plain.err, plain)
    both = oriel("run", model, "--prefix", before, "--prompt", "Hello", *fixed)
    check("a gap and a prompt", both.code == 2 and b"--prefix" in both.err, both)
    fails("no such file", 1, "run", model, "--prefix", scratch / "nowhere", *fixed)
    info = json_of("info", "info", model)
    check("info has the ids", [info[f"fill_{name}_id"] for name in ("prefix", "suffix", "middle")] == list(MARKS.values()), info)


def test_serve():
    if b"--queue" not in oriel("serve", "--help").out:
        print("skipped: this program was built without its server (libboost-dev)")
        return
    model, (before, behind) = marked(), files()
    text = json_of("run", "run", model, "--prefix", before, "--suffix", behind, "--tokens", "12", "--greedy", *FIXED)["text"]
    asked = {"input_prefix": BEFORE, "input_suffix": BEHIND, "n_predict": 12, "temperature": 0}
    with Server(model) as server:
        whole = server.post("/infill", asked)
        check("/infill", whole.status == 200 and whole.json["content"] == text and whole.json["stop"] is True
              and whole.json["tokens_evaluated"] == len(expected()), whole)
        stream = server.post("/infill", {**asked, "stream": True})
        events = [json.loads(line[6:]) for line in stream.body.decode().split("\n") if line.startswith("data: ")]
        check("streamed", "".join(event["content"] for event in events) == text and events[-1]["stop"] is True, stream)
        typed = server.post("/infill", {**asked, "input_prefix": BEFORE[:8], "prompt": BEFORE[8:]})
        check("a prompt stands before the gap", typed.json["content"] == text, typed)
        warmed = server.post("/infill", {**asked, "n_predict": 0})
        check("n_predict 0 only reads", warmed.json["content"] == "" and warmed.json["tokens_predicted"] == 0, warmed)
        extra = server.post("/infill", {**asked, "input_extra": [{"filename": "other.py", "text": "x = 1"}]})
        check("other files stand in front", extra.json["tokens_evaluated"] > len(expected()), extra)
        complete = server.complete(BEFORE, suffix=BEHIND, max_tokens=12)
        check("/v1/completions with a suffix", complete.json["choices"][0]["text"] == text, complete)
        ollama = server.post("/api/generate", {"model": "m", "prompt": BEFORE, "suffix": BEHIND, "stream": False,
                                               "options": {"temperature": 0, "num_predict": 12}})
        check("/api/generate with a suffix", ollama.json["response"] == text, ollama)
        for name, wrong, field in (("no list", {**asked, "input_extra": "x"}, "input_extra"),
                                   ("no text", {**asked, "input_prefix": 3}, "input_prefix")):
            reply = server.post("/infill", wrong)
            check(name, reply.status == 400 and reply.json["error"]["param"] == field, reply)
    with Server(SMALL) as server:
        reply = server.post("/infill", asked)
        check("a model without the tokens", reply.status == 400 and "fill in the middle" in reply.json["error"]["message"], reply)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
