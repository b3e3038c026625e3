#!/usr/bin/env python3
"""Checks the promises of docs/pictures.md: test_pictures.py ORIEL_BINARY TEST_DATA_DIR"""

import base64
import json
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import (CPU, HYBRID, SMALL, check, fails, floats, has_fields, json_of, oriel, relative_l2, run_tests,
                     scratch, succeeds)

VISION = HYBRID.parent.parent / "vision"
ENCODER = VISION / "mmproj-gemma4v.gguf"
MODEL = VISION / "gemma4.gguf"


def test_rows():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    golden = json.loads((VISION / "images-gemma4v.json").read_text())
    out = scratch / "rows.f32"
    for image in golden["images"][:5]:
        picture = VISION.parent / image["file"]
        told = json_of("rows", "eval", MODEL, "--mmproj", ENCODER, "--image", picture, "--image-rows-out", out, *CPU)
        has_fields("rows", told, "rows width")
        rule = image["rules"]["reference"]
        check("rows: how many", told == {"rows": rule["n_rows"], "width": 64}, told)
        error = relative_l2(floats(base64.b64decode(rule["rows_f32_b64"])), floats(out.read_bytes()))
        check("rows: near float64", error <= 2e-3, error)
    few = json_of("fewer rows", "eval", MODEL, "--mmproj", ENCODER, "--image", VISION / "img-vga.png",
                  "--image-tokens", "70", "--image-rows-out", out, *CPU)
    check("a budget is kept", 0 < few["rows"] <= 70, few)
    told = succeeds("as text", "eval", MODEL, "--mmproj", ENCODER, "--image", VISION / "img-dot.png",
                    "--image-rows-out", out, *CPU)
    check("as text", told.out == b"rows         256\nwidth        64\n", told)


def message_of(*parts):
    name = scratch / "messages.json"
    name.write_text(json.dumps([{"role": "user", "content": list(parts)}]))
    return name


def test_messages():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    out = scratch / "logits.f32"
    for name in ("gemma4v", "qwen3vl-deepstack", "lfm2", "idefics3"):
        golden = json.loads((VISION / f"chat-{name}.json").read_text())
        model, encoder = VISION.parent / golden["text_model"], VISION.parent / golden["mmproj"]
        case = golden["cases"][0]
        want = case["variants"]["reference"]
        parts = [{**part, "path": str(VISION.parent / part["path"])} if part["type"] == "image" else part
                 for part in case["messages"][0]["content"]]
        urls = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(
            open(part["path"], "rb").read()).decode()}} if part["type"] == "image" else part for part in parts]
        for given in (parts, urls):
            told = json_of("messages", "eval", model, "--mmproj", encoder, "--messages", message_of(*given),
                           "--logits-out", out, "--window", "1024", *CPU)
            has_fields("messages", told, "tokens rows top")
            check("messages: rows and tokens", told["rows"] <= want["n_rows"] == told["tokens"], told)
            error = relative_l2(floats(base64.b64decode(want["exact"]["logits_f32_b64"])), floats(out.read_bytes()))
            check("messages: near float64", error <= 2e-3, error)
    picture = VISION / "img-tiny.png"
    told = json_of("run", "run", MODEL, "--mmproj", ENCODER, "--image", picture, "--prompt", "What?", "--tokens", "4", *CPU)
    check("run: rows are -1", told["prompt_token_ids"].count(-1) > 100, told)
    fails("no eyes", 1, "run", SMALL, "--image", picture, "--prompt", "What?", "--tokens", "4", *CPU)
    web = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    fails("an address", 1, "eval", MODEL, "--mmproj", ENCODER, "--messages", message_of(web), *CPU)


def test_bad_input():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    out = scratch / "none.f32"
    cut = scratch / "cut.png"
    cut.write_bytes((VISION / "img-vga.png").read_bytes()[:700])
    image = ["--image", VISION / "img-vga.png"]
    rows = ["--image-rows-out", out]
    fails("no encoder", 1, "eval", MODEL, *image, *rows, *CPU)
    for half in (image, rows):
        told = oriel("eval", MODEL, "--mmproj", ENCODER, *half, *CPU)
        check("a picture and a place for its rows go together", told.code == 2 and b" requires --image" in told.err, told)
    fails("a cut picture", 1, "eval", MODEL, "--mmproj", ENCODER, "--image", cut, *rows, *CPU)
    fails("the encoder of another model", 1, "eval", SMALL, "--mmproj", ENCODER, *image, *rows, *CPU)
    fails("a model is no encoder", 1, "eval", MODEL, "--mmproj", MODEL, *image, *rows, *CPU)
    fails("too narrow", 1, "eval", MODEL, "--mmproj", ENCODER, "--image", VISION / "img-ribbon.png", *rows, *CPU)
    check("and nothing is written", not out.exists())


def test_plan():
    if not VISION.exists():
        return print(f"skipped: {VISION} is not there")
    memory = ["--memory", "60MB", "--window", "256"]
    without = json_of("a plan", "plan", MODEL, *memory)
    check("no encoder", without["image_bytes"] == 0 and without["image_tokens"] == 0, without)
    before = 0
    for tokens in (70, 280, 560):
        plan = json_of("a plan", "plan", MODEL, "--mmproj", ENCODER, "--image-tokens", tokens, *memory)
        # The rest: the rows of a prefill batch, and their kernels.
        rest = plan["total_bytes"] - without["total_bytes"] - plan["image_bytes"]
        check("the encoder is in the total", plan["image_tokens"] == tokens and 0 <= rest <= 65536, plan)
        check("more tokens take more memory", plan["image_bytes"] > before, plan)
        before = plan["image_bytes"]
    told = succeeds("in the picture", "plan", MODEL, "--mmproj", ENCODER, *memory)
    check("has a line", b"  of host, for pictures of up to 280 tokens\n" in told.out, told)
    fails("tokens without an encoder", 2, "plan", MODEL, "--image-tokens", "70", *memory)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
