#!/usr/bin/env python3
"""One file, one plan: `oriel plan`, what other commands load, and the C API: test_plans_agree.py ORIEL DATA PLANS"""

import json
import math
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import (BUNDLED, CPU, DATA, SMALL, check, environment, fails, json_of, oriel, run_tests, scratch,
                     succeeds, write_ids)

PLANS = sys.argv[3:]  # the program, in an emulator where it needs one
LOADED = re.compile(r"loaded on .*: (\d+) of (\d+) bytes for a window of (\d+) tokens and (\d+) sinks, "
                    r"(\d+) tokens at a time")


def library(model, memory, *calibration):
    done = subprocess.run([*PLANS, str(model), str(memory), *map(str, calibration)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment(), timeout=600)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.decode()


def same(ours, theirs):
    """Every field that the C program prints; the loss as far as JSON gives it."""
    theirs = {**theirs, **{k: theirs["predicted"][k] for k in ("calibrated", "loss_nats")}}
    return all(math.isclose(v, theirs[k], rel_tol=1e-5) if k == "loss_nats" else v == theirs[k]
               for k, v in ours.items())


def agree(name, model, memory, calibrated, *calibration):
    got = library(model, memory, *calibration)
    option = ["--calibration", calibration[0] or "none"] if calibration else []
    told = oriel("plan", model, "--memory", memory, "--json", *option).json
    if check(f"{name}: the library plans", isinstance(got, dict), got):
        check(f"{name}: as the program does", same(got["planned"], told), (got, told))
        check(f"{name}: and loads what it planned", got["loaded"] == (got["planned"] if told["fits"] else None), got)
        check(f"{name}: {'with' if calibrated else 'without'} measurements",
              got["planned"]["calibrated"] == calibrated, got)
    return got


def sidecar_for(model, **constants):
    """Written as by `oriel calibrate`; another test checks that it is read."""
    data = model.read_bytes()
    value = 0xcbf29ce484222325
    for byte in data[:1 << 20] + data[-min(len(data), 1 << 20):]:
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return {"format": "oriel calibration", "version": 1, "model": {"file_bytes": len(data), "hash": f"{value:016x}"},
            "constants": {"forget_scale": 0.001, "forget_power": 0.5, "keys_int8": 9, "keys_int4": 9,
                          "values_int8": 9, "values_int4": 9, "kl_limit": None, **constants},
            "layers": [], "measured": {"tokens": 1, "forgetting": [[], {}, {"a": [1, {"b": None}]}]}}


def copy_with_sidecar(name, text):
    model = scratch / name / "model.gguf"
    model.parent.mkdir()
    shutil.copy(SMALL, model)
    sidecar = model.with_name("model.gguf.calibration.json")
    sidecar.write_text(text)
    return model, sidecar


def test_every_model():
    models = sorted((DATA / "models").glob("*.gguf"))
    check("there are models", len(models) > 10, models)
    for model in models:
        told = oriel("plan", model, "--memory", "1GiB", "--json").json
        # Between the least and enough for everything, so that something is chosen.
        middle = (told["minimum_bytes"] + told["total_bytes"]) // 2
        agree(f"{model.name} in {middle} bytes", model, middle, False)
    agree("too little memory", SMALL, 100000, False)
    agree("the bundled model", BUNDLED, 10800000, True)
    agree("the bundled model with priors", BUNDLED, 10800000, False, "")


def test_with_sidecar():
    model, sidecar = copy_with_sidecar("measured", json.dumps(sidecar_for(SMALL)))
    tight = json_of("a tight plan", "plan", model, "--memory", "64MiB", "--calibration", "none")["minimum_bytes"] + 20000
    fine = agree("rounding is dear", model, tight, True)
    check("f16 is chosen", fine["planned"]["k_format"] == "f16", fine)
    priors = agree("priors by choice", model, tight, False, "")
    check("they choose otherwise", priors["planned"]["k_format"] != "f16", priors)
    elsewhere = scratch / "elsewhere.json"
    sidecar.rename(elsewhere)
    agree("no sidecar", model, tight, False)
    named = agree("a named one", model, tight, True, elsewhere)
    check("means the same", named["planned"] == fine["planned"], named)


def test_sidecars_that_are_not_used():
    good = sidecar_for(SMALL)
    text = json.dumps(good, indent=2)
    for name, broken in {
        "cut off": text[:len(text) // 2],
        "of another model": json.dumps({**good, "model": {**good["model"], "hash": "0" * 16}}),
        "of another size": json.dumps({**good, "model": {**good["model"], "file_bytes": 1}}),
        "of a model that could not be read": json.dumps({**good, "model": None}),
        "of another version": json.dumps({**good, "version": 2}),
        "with too many layers": json.dumps({**good, "layers": [dict.fromkeys(
            ("keys_int8", "keys_int4", "values_int8", "values_int4"), 1)] * 3}),
        "nested too deep": text.replace("1,", "[" * 100000 + "]" * 100000 + ",", 1),
        "with a huge number": text.replace("9", "9" * 100000 + "e999999999", 1),
        "empty": "",
        "NULs": "\0" * 5000,
    }.items():
        model, sidecar = copy_with_sidecar(name, broken)
        got = agree(f"a sidecar {name}", model, 1640000, False)
        check(f"a sidecar {name} is a warning of plan and load",
              isinstance(got, dict) and got["warnings"] == 2, got)
        warned = oriel("plan", model, "--memory", "1640000", "--verbose")
        check(f"a sidecar {name}: the program warns once", warned.code == 0
              and warned.err.count(b"warning: ") == 1 and b"calibrat" in warned.err, warned)
        failed = fails(f"by name, a sidecar {name} is an error", 1, "plan", model, "--memory", "64MiB",
                       "--calibration", sidecar)
        check(f"a sidecar {name} is named", sidecar.name.encode() in failed.err, failed)
        check(f"a sidecar {name} is an error of the library's", "calibrat" in library(model, 64 << 20, sidecar))
    fails("a calibration that is not there", 1, "plan", SMALL, "--calibration", scratch / "none.json")
    fails("nor for a load", 1, "run", SMALL, "--prompt", "a", *CPU, "--calibration", scratch / "none.json")
    fails("a shape has none", 2, "plan", "--arch", "smollm2-135m", "--memory", "1GiB", "--calibration", scratch)
    succeeds("a shape takes none", "plan", "--arch", "smollm2-135m", "--memory", "1GiB", "--calibration", "none")
    fails("an empty name is no file", 2, "plan", SMALL, "--calibration", "")


def loads_of(name, result):
    rows = [tuple(map(int, m.groups())) for m in LOADED.finditer(result.err.decode())]
    check(f"{name} loads", result.code == 0 and rows, result)
    return rows


def test_what_commands_load():
    model, _ = copy_with_sidecar("loaded", json.dumps(sidecar_for(SMALL, keys_int8=1e-5, values_int4=1e-5)))
    ids = write_ids(list(range(20)))
    least = json_of("the least", "plan", model, "--memory", "64MiB")["minimum_bytes"]
    for i, options in enumerate((["--memory", least], ["--memory", least + 30000],
                                 ["--memory", "16MiB", "--kv", "K8V4", "--sinks", "0"],
                                 ["--memory", "16MiB", "--window", "100", "--sinks", "9"],
                                 ["--memory", least + 99999, "--min-window", "200", "--calibration", "none"],
                                 ["--memory", "16MiB", "--threads", "1"])):
        plan = json_of(f"plan {options}", "plan", model, *options)
        want = tuple(plan[f] for f in ("total_bytes", "memory_bytes", "window_tokens", "sink_tokens",
                                       "chunk_tokens"))
        loading = [model, *options, *CPU, "--verbose"]
        for name, args, stdin in (
                ("run", ["--prompt", "a", "--tokens", "1"], b""),
                ("eval", ["--tokens-file", ids], b""),
                ("bench", ["--prefill", "2", "--decode", "2", "--repeat", "1"], b""),
                ("chat", ["--template", "chatml", "--tokens", "1"], b"")):
            if name == "bench" and i != 1:
                continue  # measures the device, each time
            result = oriel(name, *loading, *args, stdin=stdin)
            rows = loads_of(f"{name} {options}", result)
            check(f"{name} {options} loads what plan says", set(rows) == {want}, (rows, want))
    # A chat pins its system message as sinks.
    system = ["--system", "You answer in one word, always.", "--template", "chatml"]
    chat = oriel("chat", model, "--memory", "16MiB", *CPU, "--verbose", *system)
    (total, memory, window, sinks, chunk), = loads_of("a chat with a system message", chat)
    plan = json_of("plan of its sinks", "plan", model, "--memory", "16MiB", "--sinks", sinks)
    check("a pinned message is planned for as so many sinks", sinks > 4 and (total, memory, window, chunk)
          == tuple(plan[f] for f in ("total_bytes", "memory_bytes", "window_tokens", "chunk_tokens")),
          (chat, plan))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
