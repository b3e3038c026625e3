#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for eval and calibrate:
test_eval.py ORIEL_BINARY TEST_DATA_DIR
"""

import base64
import json
import math
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import (BUNDLED, CPU, DATA, EXACT, FIXED, HYBRID, ORIEL, PATIENCE, SMALL, check, fails, floats,
                     has_fields, is_svg, json_of, oriel, relative_l2, run_tests, scratch, succeeds,
                     write_ids)

FORMATS = ["f16", "k8v8", "k8v4", "k4v4"]


def story_ids(count):
    """Ids that the bundled model finds likely: its own reply."""
    made = json_of("the bundled model talks", "run", BUNDLED, "--prompt", "Tell me a long story.",
                   "--tokens", count, "--seed", 3, "--memory", "64MiB", "--kv", "f16", *CPU)
    return made["prompt_token_ids"] + made["token_ids"]


# ---- eval --------------------------------------------------------------------------------------


def test_eval():
    golden = json.loads((DATA / "logits.json").read_text())["models"]["llama-f32"]
    out = scratch / "logits.bin"
    for prompt in golden["prompts"]:
        ids = prompt["ids"]
        want = floats(base64.b64decode(prompt["exact"]["logits_f32_b64"]))
        got = json_of("eval", "eval", EXACT, "--tokens-file", write_ids(ids), "--logits-out", out,
                      *FIXED)
        has_fields("eval", got, "tokens top window_used evicted")
        check("eval: one float for each token of the vocabulary",
              out.stat().st_size == 4 * len(want), out.stat())
        logits = floats(out.read_bytes())
        check("eval: equal to the reference", relative_l2(logits, want) < 2e-3,
              relative_l2(logits, want))
        order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:10]
        check("eval: top ten", [t[0] for t in got["top"]] == order
              and all(abs(t[1] - logits[t[0]]) < 1e-4 for t in got["top"]), (got["top"], order))
        check("eval: counts", got["tokens"] == len(ids) and "nll_mean" not in got, got)

        every = json_of("eval --nll --all-logits", "eval", EXACT, "--tokens-file", "-", "--nll",
                        "--per-token", "--all-logits", "--logits-out", out, *FIXED,
                        stdin=json.dumps({"ids": ids}).encode())
        rows = floats(out.read_bytes())
        n_vocab = len(want)
        check("eval: all logits", len(rows) == n_vocab * len(ids)
              and relative_l2(rows[-n_vocab:], want) < 2e-3, len(rows))
        nll = []
        for i, token in enumerate(ids[1:]):
            row = rows[i * n_vocab:(i + 1) * n_vocab]
            most = max(row)
            nll.append(most + math.log(sum(math.exp(x - most) for x in row)) - row[token])
        check("eval: the score of each token",
              len(every["nll"]) == len(nll)
              and all(abs(a - b) < 1e-4 for a, b in zip(every["nll"], nll)), (every, nll))
        if nll:
            mean = sum(nll) / len(nll)
            check("eval: mean and perplexity", abs(every["nll_mean"] - mean) < 1e-4
                  and abs(every["perplexity"] / math.exp(mean) - 1) < 1e-3, every)

    text = scratch / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 8)
    scored = json_of("eval --text", "eval", BUNDLED, "--text", text, "--window", "40", *FIXED)
    check("eval --text is always scored, past the window, too",
          scored["nll_mean"] > 0 and scored["evicted"] > 0 and scored["tokens"] > 44, scored)
    check("eval --max-tokens", json_of("eval --max-tokens", "eval", BUNDLED, "--text", "-",
                                       "--max-tokens", "7", *FIXED,
                                       stdin=text.read_bytes())["tokens"] == 7)
    # Words of many bytes, so that the first piece that is read ends within one.
    text.write_text("".join(f"{n} café-größer-{'ß' * (n % 5)} " for n in range(250)))
    rest = ["--text", text, "--per-token", *FIXED]
    first = json_of("eval of a text's beginning", "eval", BUNDLED, *rest, "--max-tokens", "100")
    whole = json_of("eval of all of it", "eval", BUNDLED, *rest)
    check("eval: the first tokens are those of the whole text",
          whole["tokens"] > 1500 and first["nll"] == whole["nll"][:99], (whole["tokens"], first["tokens"]))
    endless = subprocess.Popen(["yes", "on and on"], stdout=subprocess.PIPE)
    some = subprocess.run([ORIEL, "eval", BUNDLED, "--text", "-", "--max-tokens", "50", "--json", *FIXED],
                          stdin=endless.stdout, capture_output=True, timeout=60 * PATIENCE)
    endless.kill()
    endless.communicate()
    check("eval: no more is read than is wanted", some.returncode == 0 and json.loads(some.stdout)["tokens"] == 50,
          some)
    succeeds("eval for people", "eval", SMALL, "--tokens-file", write_ids([1, 2, 3]), "--nll", *FIXED)
    broken = scratch / "broken.gguf"
    broken.write_bytes(EXACT.read_bytes()[:-4] + bytes.fromhex("0000c07f"))  # a weight: NaN
    got = json_of("eval of a broken model", "eval", broken, "--tokens-file", write_ids([1, 2, 3]),
                  "--nll", *FIXED)
    check("eval: logits that are no numbers have no score", got["nll_mean"] is None, got)
    fails("eval of an id that is none", 1, "eval", SMALL, "--tokens-file", write_ids([1, 99999]),
          *FIXED)
    fails("eval of no ids", 1, "eval", SMALL, "--tokens-file", write_ids([]), *FIXED)
    fails("eval of a missing file", 1, "eval", SMALL, "--tokens-file", scratch / "none.json", *FIXED)


def test_width_of_activations():
    """`eval` and `embed` use 16 bits, whatever the width of chats."""
    ids = write_ids(list(range(3, 40)))
    low = DATA / "models/llama-q4_0.gguf"
    got = {bits: json_of(f"eval with {bits}", "eval", low, "--tokens-file", ids, "--nll", *FIXED,
                         *(["--activations", bits] if bits else []))["nll_mean"]
           for bits in ("", "16", "8")}
    check("eval: 16 bits unless 8 are asked for", got[""] == got["16"] != got["8"], got)
    got = {bits: succeeds(f"embed with {bits}", "embed", low, *FIXED, *(["--activations", bits] if bits else []),
                          stdin=b"Some words\n").out for bits in ("", "16", "8")}
    check("embed: 16 bits unless 8 are asked for", got[""] == got["16"] != got["8"], got)
    check("plan: a width that is asked for is the plan's", all(
        json_of("plan", "plan", low, "--activations", bits)["activation_bits"] == int(bits) for bits in ("8", "16")))


# ---- eval --against -------------------------------------------------------------------------------


def test_divergence():
    count = 240 if PATIENCE == 1 else 90  # an emulator reads some ten of them a second, eighteen times over
    ids = write_ids((story_ids(count // 2) * 3)[:count], "story.json")
    base = ["eval", BUNDLED, "--tokens-file", ids, "--against", "F16", "--memory", "64MiB", *CPU]
    seen = {}
    for kv in FORMATS:
        seen[kv] = got = json_of(f"{kv} against f16", *base, "--kv", kv)
        has_fields(kv, got, "tokens kl_mean kl_max top1_agreement nll_mean perplexity "
                            "reference_nll_mean reference_perplexity k_format v_format "
                            "window_tokens sink_tokens top")
        check(f"{kv}: the numbers can be", got["tokens"] == count
              and 0 <= got["kl_mean"] <= got["kl_max"] and 0 <= got["top1_agreement"] <= 1, got)
    same = seen["f16"]
    check("f16 does not differ from f16", same["kl_mean"] == 0 and same["kl_max"] == 0
          and same["top1_agreement"] == 1 and same["nll_mean"] == same["reference_nll_mean"], same)
    check("K8V8 is close to f16", 0 < seen["k8v8"]["kl_mean"] < 0.01
          and seen["k8v8"]["top1_agreement"] > 0.9, seen["k8v8"])
    check("K4V4 is not far from f16", seen["k4v4"]["kl_mean"] < 0.2, seen["k4v4"])
    check("fewer bits differ more", seen["k8v8"]["kl_mean"] < seen["k8v4"]["kl_mean"]
          and seen["k8v8"]["kl_mean"] < seen["k4v4"]["kl_mean"], seen)
    check("the reference is the same for all",
          len({got["reference_nll_mean"] for got in seen.values()}) == 1, seen)
    check("formats are named", [seen["k8v4"]["k_format"], seen["k8v4"]["v_format"]]
          == ["int8", "int4"], seen["k8v4"])

    small = json_of("a window shorter than the text", *base, "--kv", "k8v8", "--window", "50")
    check("both have that window", small["window_tokens"] == 50
          and small["reference_nll_mean"] != same["nll_mean"], small)
    alone = json_of("f16 with that window alone", "eval", BUNDLED, "--tokens-file", ids, "--nll",
                    "--kv", "f16", "--window", "50", "--memory", "64MiB", *CPU)
    # Not to the bit: the two cut the text into chunks at other places.
    check("it scores as the reference did",
          abs(alone["nll_mean"] - small["reference_nll_mean"]) < 1e-4,
          (alone, small))
    # --memory caps the model under test alone.
    tight = json_of("a plan", "plan", BUNDLED, "--memory", "64MiB", "--kv", "k8v8")["total_bytes"]
    json_of("the reference may take more", *[a for a in base if a != "64MiB" and a != "--memory"],
            "--kv", "k8v8", "--memory", tight)

    said = succeeds("in words", *base, "--kv", "k8v8").out.decode()
    check("it says the divergence", "KL" in said and "against f16" in said, said)
    one = json_of("one token", *base, "--max-tokens", "1")
    check("has nothing to score", one["nll_mean"] is None and one["reference_nll_mean"] is None
          and one["tokens"] == 1, one)
    fails("only f16 is a reference", 2, "eval", SMALL, "--tokens-file", ids, "--against", "k8v8")
    fails("an id outside the vocabulary", 1, "eval", SMALL, "--tokens-file",
          write_ids([1, 99999999], "outside.json"), "--against", "f16", *CPU)


# ---- Formats of states ----------------------------------------------------------------------------


def test_states():
    if not HYBRID.exists():
        return print(f"skipped: {HYBRID} is not there")
    ids = write_ids([(i * i + 7 * i) % 300 for i in range(280)], "states.json")
    before = 0
    for state in ("f32", "f16", "int8"):
        got = json_of(f"states in {state}", "eval", HYBRID, "--tokens-file", ids, "--against", "f16",
                      "--state", state.upper(), *FIXED)
        check(f"{state}: is named", got["state_format"] == state, got)
        check(f"{state}: fewer bytes cost more", got["kl_mean"] == 0 if state == "f32"
              else 2 * before < got["kl_mean"] < 0.05, (before, got))
        before = got["kl_mean"]
    said = succeeds("in words", "eval", HYBRID, "--tokens-file", ids, "--against", "f16", "--state", "f16", *FIXED)
    check("names the format", b"states f16" in said.out, said)
    none = json_of("a model without states", "eval", SMALL, "--tokens-file", ids, "--max-tokens", "20",
                   "--against", "f16", "--state", "int8", *FIXED)
    check("has no format of states", none["state_format"] is None and none["kl_mean"] == 0, none)
    fails("a format that is none", 2, "eval", HYBRID, "--tokens-file", ids, "--state", "q8")

    other = scratch / "states.calibration.json"
    done = json_of("calibrate", "calibrate", HYBRID, "--tokens-file", ids, "--out", other, "--whole-model", *CPU)
    constants = done["constants"]
    check("states have their constants", 0 < constants["state_f16"] < constants["state_int8"] < 0.1, constants)
    check("and rows", [f["state_format"] for f in done["measured"]["formats"]] == ["f32"] * 4 + ["f16", "int8"], done)
    tight = ["plan", HYBRID, "--window", "300", "--calibration", other]
    loose = json_of("a plan with room", *tight, "--memory", "64MiB")
    check("takes f32", loose["state_format"] == "f32", loose)
    least = json_of("the least", *tight, "--memory", "64MiB", "--kv", "f16", "--state", "f32")["minimum_bytes"]
    check("f16 where f32 does not fit", json_of("a plan in less", *tight, "--kv", "f16", "--memory", least - 1)
          ["state_format"] == "f16")
    written = json.loads(other.read_text())
    written["constants"]["state_f16"] = 0.5
    other.write_text(json.dumps(written))
    check("not where it failed", oriel(*tight, "--kv", "f16", "--memory", least - 1).code == 3)


# ---- Pictures -------------------------------------------------------------------------------------


def test_picture():
    ids = write_ids([i % 200 for i in range(150)], "walk.json")
    path = scratch / "cache.svg"
    base = ["eval", SMALL, "--tokens-file", ids, "--memory", "64MiB", "--window", "40", *CPU]
    succeeds("a picture", *base, "--kv", "k8v4", "--picture", path)
    check("is SVG", is_svg(path))
    text = path.read_text()
    check("that tells what is where", all(word in text for word in ["sinks", "forgotten", "seen",
                                                                    "int8", "int4"]), text[:600])
    fails("a picture that cannot be written", 1, *base, "--picture", scratch / "no" / "cache.svg")


# ---- calibrate ------------------------------------------------------------------------------------


def test_calibrate():
    model = scratch / "model.gguf"
    shutil.copy(SMALL, model)
    ids = write_ids([(i * i + 7 * i) % 200 for i in range(400 if PATIENCE == 1 else 300)], "many.json")
    plan = ["plan", model, "--memory", "64MiB"]
    before = json_of("a plan before", *plan)
    check("follows published priors", before["predicted"]["calibrated"] is False, before)
    done = json_of("calibrate", "calibrate", model, "--tokens-file", ids, *CPU)
    sidecar = scratch / "model.gguf.calibration.json"
    check("names its sidecar", done["sidecar"] == str(sidecar) and sidecar.exists(), done)
    constants = done["constants"]
    has_fields("constants", constants,
               "forget_scale forget_power keys_int8 keys_int4 values_int8 values_int4")
    check("fewer bits cost more", 0 < constants["keys_int8"] < constants["keys_int4"]
          and 0 < constants["values_int8"] < constants["values_int4"], constants)
    written = json.loads(sidecar.read_text())
    check("the sidecar has a version and the constants", written["version"] == 1
          and written["constants"] == constants and len(written["measured"]["formats"]) == 4, written)
    layers = written["layers"]
    check("each layer has its share", len(layers) == 2 and all(
        layer["keys_int4"] > 0 and layer["values_int4"] > 0 for layer in layers), layers)
    whole = sum(layer["keys_int8"] for layer in layers)
    check("of int8, too", abs(whole / constants["keys_int8"] - 1) < 1e-9, layers)
    after = json_of("a plan after", *plan)
    check("follows the measurements", after["predicted"]["calibrated"] is True, after)
    check("and says so", "measurements of this model" in
          succeeds("in words", *plan, "--explain").out.decode())
    json_of("a load takes them, too", "eval", model, "--tokens-file", ids, "--max-tokens", "5",
            "--memory", "64MiB", *CPU)

    def info_agrees(name, wanted):
        here = json_of(f"info {name}", "info", model, "--memory", wanted["memory_bytes"])["here"]
        check(f"info tells what plan does {name}", here and all(wanted[f] == here[f] for f in here),
              (here, wanted))

    windows = written["windows"]
    check("windows by layer were measured, and those of all layers alike", windows == done["windows"]
          and any(any(entry["shares"]) for entry in windows)
          and {"window_tokens", "loss_nats", "shares"} == set(windows[0])
          and all(len(entry["shares"]) == 2 and 1 <= entry["window_tokens"] <= 512 for entry in windows)
          and len([entry for entry in windows if not any(entry["shares"])]) >= 3, windows)
    for entry in windows:  # the second layer alone needs to look back
        entry["loss_nats"] = 0.0 if entry["shares"] == [8, 0] else 1.0
    windows.append({"window_tokens": 480, "loss_nats": 0.0, "shares": [8, 0]})
    sidecar.write_text(json.dumps(written))
    shared_out = ["plan", model, "--memory", str(before["minimum_bytes"] + 20000)]
    by_layer = json_of("a plan that shares the window out", *shared_out)
    written["windows"] = None
    one = scratch / "one-window.json"
    one.write_text(json.dumps(written))
    alike = json_of("a plan without", *shared_out, "--calibration", one)
    groups = by_layer["groups"]
    check("has a group of layers for each length", [group["kind"] for group in groups] == ["session"] * 2
          and groups[0]["window_tokens"] == by_layer["window_tokens"]
          and groups[1]["window_tokens"] == (by_layer["window_tokens"] + 31) // 32, by_layer)
    check("remembers more in the layer that needs it, in the same bytes", all(
        choice["window_tokens"] >= min(500, 1.5 * other["window_tokens"]) for choice, other in
        zip(by_layer["choices"], alike["choices"]) if choice["shortest_window_tokens"] < choice["window_tokens"])
          and by_layer["total_bytes"] <= by_layer["memory_bytes"], (by_layer, alike))
    check("says so", "lets 1 layer see only" in succeeds("in words", *shared_out, "--explain").out.decode())
    asked = json_of("a window that was asked for", *shared_out, "--window", "100")
    check("is that of all layers", len(asked["groups"]) == 1, asked)
    # The measurement decides.
    written["constants"].update(keys_int8=9, keys_int4=9, values_int8=9, values_int4=9,
                                forget_scale=0.001, forget_power=0.5)
    sidecar.write_text(json.dumps(written))
    tight = ["plan", model, "--memory", str(before["minimum_bytes"] + 20000)]
    fine = json_of("a plan where rounding is dear", *tight)
    check("keeps f16", [fine["k_format"], fine["v_format"]] == ["f16", "f16"], fine)
    info_agrees("where rounding is dear", fine)
    least = json_of("the least for a window", *plan, "--min-window", "400")["minimum_bytes"]
    options = [model, "--memory", least, "--min-window", "400"]
    usual = json_of("a plan in the least", "plan", *options)
    chat = oriel("chat", *options, "--template", "qwen2.5", "--tokens", "2", "--json", *CPU, stdin=b"Hi\n")
    check("a chat in the least has no room for the format's own system text, and does without", chat.code == 0
          and chat.json["window_capacity"] == usual["window_tokens"] + usual["sink_tokens"], (chat, usual))
    written["constants"].update(keys_int8=1e-9, keys_int4=1e-9, values_int8=1e-9, values_int4=1e-9,
                                forget_scale=100)
    sidecar.write_text(json.dumps(written))
    coarse = json_of("a plan where forgetting is dear", *tight)
    check("takes the longest window", coarse["k_format"] == "int4"
          and coarse["window_tokens"] > fine["window_tokens"], (coarse, fine))
    info_agrees("where forgetting is dear", coarse)
    bench = json_of("bench of it", "bench", *tight[1:], *CPU, "--prefill", "8", "--decode", "4",
                    "--repeat", "1")["predicted"]
    check("bench expects what plan does", (bench["loss_nats"], bench["calibrated"])
          == (coarse["predicted"]["loss_nats"], True), (bench, coarse["predicted"]))

    written["constants"].update(keys_int4=0.5, kl_limit=0.1)
    sidecar.write_text(json.dumps(written))
    gated = json_of("a plan where int4 keys failed", *tight)
    check("they are not chosen, however dear forgetting is", gated["k_format"] != "int4"
          and [c["refused"] for c in gated["choices"]][0] == "quality", gated)
    check("and the plan says so", b"failed the calibration" in succeeds("in words", *tight, "--explain").out)
    forced = json_of("unless asked for", *tight, "--kv", "k4v4")
    check("then they are", forced["k_format"] == "int4", forced)
    written["constants"].update(keys_int4=1e-9)

    good = dict(written)
    for name, broken in {
        "not JSON": "{",
        "another version": json.dumps({**good, "version": 2}),
        "another model": json.dumps({**good, "model": {**good["model"], "hash": "0" * 16}}),
        "a negative constant": json.dumps({**good, "constants": {"keys_int8": -1}}),
        "a constant that is no number": json.dumps({**good, "constants": {"keys_int8": "x"}}),
        "no constants": json.dumps({**good, "constants": None}),
        "not an object": "[1]",
        "layers that are no list": json.dumps({**good, "layers": 3}),
        "a layer without numbers": json.dumps({**good, "layers": [{}, {}]}),
    }.items():
        sidecar.write_text(broken)
        got = json_of(f"a sidecar with {name} is not used", *plan)
        check(f"{name}: priors", got["predicted"]["calibrated"] is False, got["predicted"])
    warned = oriel(*plan, "--verbose")
    check("--verbose warns of it", b"calibration" in warned.err and warned.code == 0, warned)

    other = scratch / "elsewhere.json"
    sidecar.unlink()
    succeeds("calibrate to another file", "calibrate", model, "--tokens-file", ids, "--out", other,
             *CPU)
    check("writes that one only", other.exists() and not sidecar.exists())
    text = scratch / "text.txt"
    text.write_text("A fox saw a hedgehog in the garden. " * 60)
    succeeds("calibrate with a text", "calibrate", model, "--text", text, "--out", other, "--min-window", "16", *CPU)
    fails("too little text", 1, "calibrate", model, "--tokens-file", write_ids([1] * 100), *CPU)
    fails("no text", 2, "calibrate", model, *CPU)
    fails("a place that cannot be written", 1, "calibrate", model, "--tokens-file", ids, "--out",
          scratch / "no" / "x.json", *CPU)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
