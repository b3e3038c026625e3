#!/usr/bin/env python3
"""The plots of docs/memory.md: window and expected loss against memory, from `oriel plan`.

    python3 lab/research/budget_plots.py build/release/apps/oriel [--out docs] [--points 64] [SHAPE...]

Writes budget-SHAPE.svg for each shape (`oriel plan --list` names them). Needs only the standard library.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

os.environ["ORIEL_CONFIG"] = ""  # ignore the user's config file


SHAPES = ["llama-3.2-1b", "qwen3-0.6b", "gemma-3-1b"]
# As in the drawings of the program.
COLOURS = {"f16": "#d55e00", "K8V8": "#0072b2", "K8V4": "#009e73", "K4V4": "#cc79a7"}
NAMES = {("f16", "f16"): "f16", ("int8", "int8"): "K8V8", ("int8", "int4"): "K8V4", ("int4", "int4"): "K4V4"}
WIDTH, LEFT, RIGHT = 480, 62, 14
PANELS = {"window": (58, 150), "loss": (252, 150)}  # top and height
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #24292f } .quiet { fill: #57606a }
.title { font-weight: 600; font-size: 13px } .page { fill: #ffffff } .grid { stroke: #e2e5e9 } .axis { stroke: #8a929b }
@media (prefers-color-scheme: dark) {
text { fill: #e3e6ea } .quiet { fill: #9aa4b0 } .page { fill: #14171b } .grid { stroke: #2c3238 } }
</style>"""


def ask(oriel, shape, size):
    done = subprocess.run([oriel, "plan", "--arch", shape, "--memory", str(int(size)), "--window", "max", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode not in (0, 3):
        sys.exit(f"{oriel} cannot plan for {shape}")
    return json.loads(done.stdout)


def points(oriel, shape, count):
    """Plans from the least memory to three times as much, closest to each other at the least, where most happens. They
    end early where more memory changes nothing."""
    least = ask(oriel, shape, 1 << 20)["minimum_bytes"]
    found = []
    for i in range(count):
        size = least + (2 * least * 0.001 ** (1 - i / (count - 1)) if i else 0)
        plan = ask(oriel, shape, size)
        found.append({"bytes": size, "window": plan["window_tokens"], "loss": plan["predicted"]["loss_nats"],
                      "format": NAMES[plan["k_format"], plan["v_format"]]})
        if len(found) > 3 and found[-1]["window"] == found[-4]["window"] and found[-1]["format"] == "f16":
            break
    return found


class Panel:
    """Both axes logarithmic."""

    def __init__(self, top, height, x_range, y_range):
        self.top, self.height = top, height
        self.x = [math.log(v) for v in x_range]
        self.y = [math.log(v) for v in y_range]

    def at(self, x, y):
        across = (math.log(x) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log(y) - self.y[0]) / (self.y[1] - self.y[0])
        return (round(LEFT + across * (WIDTH - LEFT - RIGHT), 1), round(self.top + (1 - up) * self.height, 1))


def decades(low, high):
    """Round numbers between: 1, 2 and 5 times powers of ten."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0 ** e for e in exponents for step in (1, 2, 5) if low <= step * 10.0 ** e <= high]


def text(x, y, words, anchor="start", kind=""):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{kind}">{words}</text>'


def line(a, b, kind, more=""):
    return f'<line x1="{a[0]}" y1="{a[1]}" x2="{b[0]}" y2="{b[1]}" class="{kind}" {more}/>'


def memory_ticks(low, high):
    """MiB, some six of them, at the least distance that is a power of two."""
    step = 1 << 20
    while (high - low) / step > 7:
        step *= 2
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def draw_panel(panel, found, key, ticks, label, caption):
    low, high = found[0]["bytes"], found[-1]["bytes"]
    out = [text(LEFT, panel.top - 10, caption, kind="quiet")]
    for tick in ticks:
        at = panel.at(low, tick)
        out.append(line(at, (WIDTH - RIGHT, at[1]), "grid"))
        out.append(text(LEFT - 6, at[1] + 4, label(tick), "end", "quiet"))
    bottom = panel.top + panel.height
    for tick in memory_ticks(low, high):
        x = panel.at(tick, found[0][key])[0]
        out.append(line((x, panel.top), (x, bottom), "grid"))
        if x < WIDTH - RIGHT - 10:
            out.append(text(x, bottom + 17, f"{tick >> 20:,}", "middle", "quiet"))
    out.append(line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis"))
    # One stroke for each stretch of one format, up to the first point of the next.
    for a, b in zip(found, found[1:]):
        out.append(line(panel.at(a["bytes"], a[key]), panel.at(b["bytes"], b[key]), "",
                        f'stroke="{COLOURS[a["format"]]}" stroke-width="3" stroke-linecap="round"'))
    return out


def padded(values):
    low, high = min(values), max(values)
    return (low / 1.15, high * 1.15)


def result(shape, found):
    """A summary of the plot, in a line."""
    first, last = found[0], found[-1]
    sizes = [f"{round(point['bytes'] / (1 << 20)):,} MiB" for point in (first, last)]
    return f"{shape}: {first['window']:,} tokens in {sizes[0]}, {last['window']:,} in {sizes[1]}"


def drawing(shape, found):
    x_range = (found[0]["bytes"], found[-1]["bytes"])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="640" viewBox="0 0 {WIDTH} 448" role="img">',
           f"<title>Window and expected loss of {shape} against memory</title>", STYLE,
           f'<rect width="{WIDTH}" height="448" class="page"/>',
           text(16, 24, result(shape, found), kind="title")]
    for key, label, caption in (
            ("window", lambda v: f"{v:,.0f}", "window, tokens (weights in Q4_0)"),
            ("loss", lambda v: f"{v:g}", "expected loss, nats a token (0.01: the right token is 1 % less likely)")):
        values = [point[key] for point in found]
        panel = Panel(*PANELS[key], x_range, padded(values))
        out += draw_panel(panel, found, key, decades(*padded(values)), label, caption)
    out.append(text(WIDTH - RIGHT, 440, "memory, MiB", "end", "quiet"))
    x = LEFT
    for name in [name for name in COLOURS if any(point["format"] == name for point in found)]:
        out.append(line((x, 436), (x + 18, 436), "", f'stroke="{COLOURS[name]}" stroke-width="3"'))
        out.append(text(x + 24, 440, name))
        x += 76
    return "\n".join(out + ["</svg>\n"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("oriel")
    parser.add_argument("shapes", nargs="*", default=SHAPES)
    parser.add_argument("--out", default="docs")
    parser.add_argument("--points", type=int, default=64)
    options = parser.parse_args()
    for shape in options.shapes:
        found = points(options.oriel, shape, options.points)
        path = pathlib.Path(options.out) / f"budget-{shape}.svg"
        path.write_text(drawing(shape, found), encoding="utf-8")
        first, last = found[0], found[-1]
        print(f"{path}: {first['window']} to {last['window']} tokens, {first['loss']:.4f} to {last['loss']:.4f} nats")


main()
