#!/usr/bin/env python3
"""Predicted and measured speed: `oriel bench` at several depths, formats, models and devices.

    python3 lab/research/speed_check.py build/release/apps/oriel MODEL... [--devices cpu,vulkan] [--kv f16,k8v4]
                                   [--depths 64,256,1024,4000] [--repeat 5] [--decode 12]

Both figures are of the fastest run, because the prediction does not know the load from other programs.
Exits with 1 when a prediction of decoding is more than a quarter off. Needs only the standard library.
"""
import argparse
import json
import os
import subprocess
import sys

os.environ["ORIEL_CONFIG"] = ""  # ignore the user's config file


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("oriel")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--devices", default="cpu,vulkan")
    parser.add_argument("--kv", default="f16,k8v4")
    parser.add_argument("--depths", default="64,256,1024,4000")
    parser.add_argument("--repeat", default="5")
    parser.add_argument("--decode", default="12", help="more for small models, whose steps are short")
    options = parser.parse_args()
    print("| model | device | cache | depth | decode tok/s: predicted | measured | off | prefill: predicted |"
          " measured | off | limit |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    worst = 0
    for model in options.models:
        for device in options.devices.split(","):
            for kv in options.kv.split(","):
                for depth in map(int, options.depths.split(",")):
                    done = subprocess.run(
                        [options.oriel, "bench", model, "--device", device, "--kv", kv, "--depth", str(depth),
                         "--window", "4096", "--prefill", "16", "--decode", options.decode,
                         "--repeat", options.repeat, "--memory", "4GiB", "--json"], stdout=subprocess.PIPE, check=True)
                    result = json.loads(done.stdout)
                    row = [os.path.basename(model), device, kv, str(depth)]
                    for kind in ("decode", "prefill"):
                        predicted = result["predicted"][f"{kind}_tokens_per_s"]
                        measured = result["fastest"][f"{kind}_tokens_per_s"]
                        off = predicted / measured - 1
                        row += [f"{predicted:.1f}", f"{measured:.1f}", f"{100 * off:+.0f} %"]
                        if kind == "decode":
                            worst = max(worst, abs(off))
                    print("| " + " | ".join(row + [result["predicted"]["decode_limit"]]) + " |", flush=True)
    print(f"\nworst of decoding: {100 * worst:.0f} %")
    return 0 if worst <= 0.25 else 1


sys.exit(main())
