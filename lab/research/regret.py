#!/usr/bin/env python3
"""Measures the loss of the budgeter's choices, next to all other choices that fit.

    python3 lab/research/regret.py build/release/apps/oriel MODEL IDS.json [--points 6] [ORIEL OPTIONS]

For memory sizes from the least that fits to a full f16 cache: the plan's pair of formats, and the loss of every pair,
each with its window, on IDS ({"ids": [...]}, longer than the windows).
Regret is the loss of the chosen pair minus the loss of the best pair, divided by the latter. Measured twice: with
published priors, and with the sidecar of `oriel calibrate` next to MODEL, if present (measure it on other text).
Needs only the standard library.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["ORIEL_CONFIG"] = ""  # ignore the user's config file


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("oriel")
    parser.add_argument("model")
    parser.add_argument("ids")
    parser.add_argument("--points", type=int, default=6)
    parser.add_argument("--max-tokens", default="1000000")
    options, more = parser.parse_known_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="oriel-regret-"))
    plain = folder / "model.gguf"  # the same file without a sidecar
    os.symlink(os.path.abspath(options.model), plain)
    sources = {"priors": plain}
    if os.path.exists(options.model + ".calibration.json"):
        sources["calibrated"] = options.model

    def ask(*arguments):
        done = subprocess.run([options.oriel, *map(str, arguments), "--json"], stdout=subprocess.PIPE)
        assert done.returncode in (0, 3), (arguments, done)
        return json.loads(done.stdout)

    def plan(model, memory):
        return ask("plan", model, "--memory", memory)

    kv = {("int4", "int4"): "k4v4", ("int8", "int4"): "k8v4", ("int8", "int8"): "k8v8",
          ("f16", "f16"): "f16"}
    measured = {}

    def loss(name, window, memory):
        if (name, window) not in measured:
            scored = ask("eval", plain, "--tokens-file", options.ids, "--nll", "--kv", name, "--window",
                         window, "--memory", "1GiB", "--max-tokens", options.max_tokens, *more)
            measured[name, window] = scored["nll_mean"]
        return measured[name, window]

    # The smallest size that all sources can meet.
    least = max(plan(model, 1)["minimum_bytes"] for model in sources.values())
    most = ask("plan", plain, "--memory", "1GiB", "--kv", "f16")["total_bytes"]
    print(f"{'memory':>10} | {'k4v4':>17} | {'k8v4':>17} | {'k8v8':>17} | {'f16':>17} |"
          + "".join(f"{name:>22}" for name in sources))
    worst = dict.fromkeys(sources, 0.0)
    for point in range(options.points):
        share = (point / (options.points - 1)) ** 2
        memory = int(least + share * (most - least))
        plans = {name: plan(model, memory) for name, model in sources.items()}
        cells, losses = [], {}
        for choice in plans["priors"]["choices"]:
            name = kv[choice["k_format"], choice["v_format"]]
            if choice["fits"]:
                losses[name] = loss(name, choice["window_tokens"], memory)
                cells.append(f"{choice['window_tokens']:>6} {losses[name]:>10.4f}")
            else:
                cells.append("-")
        best = min(losses.values())
        line = f"{memory:>10} | " + " | ".join(f"{cell:>17}" for cell in cells) + " |"
        for name, taken in plans.items():
            pair = kv[taken["k_format"], taken["v_format"]]
            regret = losses[pair] / best - 1
            worst[name] = max(worst[name], regret)
            line += f"{pair:>12} {100 * regret:>7.2f} %"
        print(line, flush=True)
    for name, regret in worst.items():
        print(f"worst by {name}: {100 * regret:.2f} %")
    return 0 if max(worst.values()) < 0.05 else 1


sys.exit(main())
