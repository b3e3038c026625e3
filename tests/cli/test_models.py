#!/usr/bin/env python3
"""`oriel models` and the page that is made of it: test_models.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import re
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import DATA, check, has_fields, json_of, one_line_failure, run_tests, succeeds

ROOT = DATA.parent.parent
FIELDS = ["name", "architecture", "parameters", "file", "file_bytes", "memory_bytes_4096", "memory_bytes_32768",
          "license", "page"]


def oriel(*args, **options):
    return program.oriel("models", *args, **options)


def listed(*args):
    return json_of(f"models {' '.join(map(str, args))}", "models", *args)["models"]


def test_rows():
    models = listed()
    check("as many as were promised", len(models) >= 25, len(models))
    check("each once", len({m["file"] for m in models}) == len({m["name"] for m in models}) == len(models))
    # Rows of the table of architectures: row("llama", RopePairing::...
    runs = set(re.findall(r'^    row\("([^"]+)", RopePairing::',
                          (ROOT / "runtime/model/architecture.cpp").read_text("utf-8"), re.M))
    for model in models:
        has_fields(model["name"], model, " ".join(FIELDS))
        check(f"{model['name']}: its architecture runs", model["architecture"] in runs, model)
        check(f"{model['name']}: a page and a file on it", model["page"].startswith("https://")
              and model["file"].endswith(".gguf") and " " not in model["page"] + model["file"], model)
        check(f"{model['name']}: an SPDX identifier", re.fullmatch(r"[A-Za-z0-9.-]+", model["license"]), model)
        numbers = [model[name] for name in FIELDS if "bytes" in name]
        if model["file_bytes"] is None:
            check(f"{model['name']}: nothing is invented", set(numbers) == {None}, model)
            continue
        # From Q4_0 to Q8_0 with what embeddings have more.
        bits = 8 * model["file_bytes"] / model["parameters"]
        check(f"{model['name']}: a size of that many parameters", 4.4 < bits < 8.8, bits)
        held = model["file_bytes"] - model["on_file_bytes"]
        check(f"{model['name']}: more tokens take more memory",
              held < model["memory_bytes_4096"] < model["memory_bytes_32768"], model)
    known = [m["memory_bytes_4096"] for m in models if m["file_bytes"] is not None]
    check("in the order of memory", known == sorted(known))


def test_memory_is_that_of_the_shape_with_the_weights_of_the_file():
    for model in listed():
        if model["file_bytes"] is None:
            continue
        for tokens in (4096, 32768):
            plan = json_of(model["shape"], "plan", "--arch", model["shape"], "--memory", "1TiB", "--kv", "k8v4",
                           "--sinks", "4", "--window", tokens - 4)
            held = model["file_bytes"] - plan["on_file_bytes"]
            held += held // 36 if "_k_" in model["file"].lower() else 0
            want = plan["total_bytes"] - plan["weights_bytes"] + held
            check(f"{model['name']}: {tokens} tokens", model[f"memory_bytes_{tokens}"] == want, (want, model))


def test_the_page_has_the_same_table():
    printed = succeeds("the table", "models", "--markdown").out.decode("utf-8")
    page = (ROOT / "docs/reference/models.md").read_text("utf-8")
    check("docs/reference/models.md ends with what `oriel models --markdown` prints", page.endswith("\n\n" + printed), printed)


def test_words():
    text = succeeds("models", "models").out.decode("utf-8")
    check("within 80 columns", max(map(len, text.splitlines())) <= 80)
    for model in listed():
        lines = [line for line in text.splitlines() if line.startswith(model["id"] + " ")]
        check(f"{model['name']}: one line", len(lines) == 1, lines)
    check("nothing else but a note", len(text.splitlines()) <= len(listed()) + 10, text)
    one = succeeds("one", "models", "Gemma 4 E2B").out.decode("utf-8")
    for words in ("gemma-4-E2B-it-Q4_0.gguf", "2,841,481,184", "huggingface.co", "stay in the file", "Apache-2.0", "oriel chat"):
        check(f"one model: {words}", words in one, one)


def test_names():
    check("by a part", {"Gemma 4 E2B it", "Gemma 4 E4B it"} == {m["name"] for m in listed("gemma-4")})
    check("by the file", [m["name"] for m in listed("smollm3-q4_k_m.gguf")] == ["SmolLM3 3B"])
    check("by the architecture", len(listed("LLAMA")) > 5)
    check("a whole name goes before parts", [m["name"] for m in listed("qwen3-4b")] == ["Qwen3 4B Instruct 2507"])
    none = oriel("no-such-model")
    check("none", one_line_failure(none, 2) and none.out == b"" and b"`oriel models`" in none.err, none)
    for args in (["--markdown", "--json"], ["one", "two"], ["--no-such-option"]):
        check(f"wrong usage: {args}", one_line_failure(oriel(*args), 2))


def test_memory():
    fits = listed("--memory", "1GiB")
    check("those that fit", 5 < len(fits) < len(listed()) and all(
        m["memory_bytes_4096"] <= 1 << 30 for m in fits), fits)
    check("and no other", len(fits) == sum((m["memory_bytes_4096"] or 1 << 60) <= 1 << 30 for m in listed()))
    none = oriel("--memory", "1MiB")
    check("none fits", one_line_failure(none, 3) and none.out == b"", none)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
