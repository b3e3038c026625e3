#!/usr/bin/env python3
"""LoRA adapters: test_adapters.py ORIEL_BINARY TEST_DATA_DIR"""

import base64
import json
import struct
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import FIXED, GOLDEN, check, fails, json_of, relative_l2, run_tests, scratch, succeeds
from server import Server

MODEL = GOLDEN / "models" / "llama-mha.gguf"
LORA = GOLDEN / "lora"
WHOLE = LORA / "llama-untied-f16.gguf"
SMALL = LORA / "bad" / "empty.gguf"  # changes nothing
RAW = ["--raw", "--prompt", "the cache", "--tokens", "12", "--greedy", *FIXED]


def ids(name, *args):
    return json_of(name, "run", MODEL, *RAW, *args)["token_ids"]


def test_run():
    plain = ids("alone")
    adapted = ids("adapted", "--lora", WHOLE)
    check("an adapter changes the text", plain != adapted, adapted)
    check("at scale 0 it does not", ids("scale 0", "--lora", f"{WHOLE}:0") == plain)
    check("an empty one does not", ids("empty", "--lora", SMALL) == plain)
    check("twice half is whole", ids("two files", "--lora", f"{WHOLE}:1", "--lora", SMALL) == adapted)


def test_eval():
    golden = json.loads((LORA / "llama-untied-f16.json").read_text())
    for prompt in golden["prompts"]:
        tokens, logits = scratch / "tokens.json", scratch / "logits"
        tokens.write_text(json.dumps({"ids": prompt["ids"]}))
        succeeds("eval", "eval", MODEL, "--tokens-file", tokens, "--logits-out", logits, "--lora", WHOLE, *FIXED)
        got = [value for value, in struct.iter_unpack("<f", logits.read_bytes())]
        want = [value for value, in struct.iter_unpack("<f", base64.b64decode(prompt["exact"]["logits_f32_b64"]))]
        check(f"float64's logits after {len(prompt['ids'])} tokens", relative_l2(got, want) < 2e-3)


def test_plan():
    plain = json_of("plan", "plan", MODEL, "--memory", "64MiB")
    plan = json_of("plan with an adapter", "plan", MODEL, "--memory", "64MiB", "--lora", WHOLE)
    check("no bytes without one", not plain.get("adapter_bytes"), plain)
    check("bytes of the matrices", plan["adapter_bytes"] > 170000, plan.get("adapter_bytes"))
    both = json_of("two", "plan", MODEL, "--memory", "64MiB", "--lora", WHOLE, "--lora", LORA / "alora-llama.gguf")
    check("of both", both["adapter_bytes"] > plan["adapter_bytes"], both["adapter_bytes"])
    shown = succeeds("for people", "plan", MODEL, "--memory", "64MiB", "--lora", WHOLE).out
    check("says so", b"adapter" in shown, shown)


def test_faulty_files():
    for case in json.loads((LORA / "bad" / "cases.json").read_text()):
        flag = "--control-vector" if case.get("control_vector") else "--lora"
        file = GOLDEN / case["file"]
        args = ["run", GOLDEN / case["model"], *RAW, flag, file]
        if case["may_run"]:
            continue
        told = fails(file.name, 1, *args)
        lines = told.err.decode().splitlines()
        check(f"{file.name}: one line", len(lines) == 1 and lines[0].startswith("oriel: "), told)
    told = fails("shapes", 1, "run", MODEL, *RAW, "--lora", LORA / "qwen3.gguf")
    check("another architecture is named", b"qwen3" in told.err and b"llama" in told.err, told)
    told = fails("a missing file", 1, "run", MODEL, *RAW, "--lora", "nowhere.gguf:0.5")
    check("is named without its scale", b"nowhere.gguf" in told.err and b"0.5" not in told.err, told)


def test_a_chat_at_a_terminal():
    if no_terminals():
        return
    replies = []
    for adapters in ([], ["--lora", f"{WHOLE}:0"], ["--lora", WHOLE]):
        chat = AtTerminal("chat", MODEL, "--template", "chatml", "--greedy", "--tokens", "8", *adapters, *FIXED,
                          columns=200, ORIEL_NO_SAVE="1")
        chat.until(chat.at_prompt)
        replies.append([chat.send(text).split("\n")[1] for text in ("the cache", "And?")])
        check("leaves", chat.close() == 0)
        chat.forget()
    check("a chat at scale 0 is the model's", replies[0] == replies[1], replies)
    check("an adapter changes it", replies[2] != replies[0], replies)


def test_server():
    ask = {"prompt": "the cache", "max_tokens": 12, "temperature": 0}
    with Server(MODEL, "--lora", WHOLE, "--lora", f"{SMALL}:0.5") as server:
        def text(**more):
            return server.post("/v1/completions", dict(ask, **more)).json["choices"][0]["text"]

        listed = server.get("/lora-adapters").json
        check("listed", [(one["id"], one["scale"]) for one in listed] == [(0, 1), (1, 0.5)], listed)
        adapted, plain = text(), text(lora=[])
        check("a request chooses", adapted != plain, (adapted, plain))
        check("by id and scale", text(lora=[{"id": 0, "scale": 1}]) == adapted)
        check("scale 0 is none", text(lora=[{"id": 0, "scale": 0}]) == plain)
        check("others keep theirs", text() == adapted)
        set_to = server.post("/lora-adapters", [{"id": 1, "scale": 2}])
        check("set", set_to.status == 200 and set_to.json == {"success": True}, set_to)
        listed = server.get("/lora-adapters").json
        check("those left out are off", [one["scale"] for one in listed] == [0, 2], listed)
        check("requests without lora follow", text() == plain)
        check("and those with it choose", text(lora=[{"id": 0, "scale": 1}]) == adapted)
        for name, body in (("an unknown id", [{"id": 2, "scale": 1}]), ("a number", 7),
                           ("no id", [{"scale": 1}]), ("a scale of text", [{"id": 0, "scale": "x"}])):
            refused = server.post("/lora-adapters", body)
            check(name, refused.status == 400 and "error" in refused.json, refused)
            refused = server.post("/v1/completions", dict(ask, lora=body))
            check(f"{name} in a request", refused.status == 400 and "error" in refused.json, refused)
        check("nothing changed", [one["scale"] for one in server.get("/lora-adapters").json] == [0, 2])


if __name__ == "__main__":
    if not MODEL.exists():
        print("skipped: no reference data here")
        sys.exit(77)
    sys.exit(run_tests(globals()))
