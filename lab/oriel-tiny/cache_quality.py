"""Measures the loss from cache formats and short windows for this model, with Oriel.

    python3 cache_quality.py --oriel PATH/oriel --model ../../models/oriel-tiny/oriel-tiny-q8_0.gguf \\
        --table cache.md --plot cache.svg --ids ids.json

For windows of 128 to 1024 tokens and each cache format: the divergence KL(f16 || format) at the same window on
held-out conversations longer than any window, and the share of facts recalled after a given number of tokens
(checks.py; the same questions in every cell).
Greedy, on the CPU.  Needs only the standard library.
"""
import argparse
import json
import math
import tempfile

import checks
from dialogue import Dialogue, encode_dialogue
from evaluate import Oriel
from make_corpus import plan_memory_long, plan_small, plan_story
from phrases import Rng
from tokenizer import Tokenizer

WINDOWS = (128, 256, 512, 1024)
FORMATS = ("f16", "k8v8", "k8v4", "k4v4")
DISTANCES = (60, 180, 380, 780)  # tokens between a fact and the question, for each window


def conversation(tok, rng, tokens):
    """Ids of one held-out conversation of at least `tokens` tokens."""
    d, ids = Dialogue(rng, True), []
    while len(ids) < tokens:
        rng.choice([plan_memory_long, plan_small, plan_story])(d)
        ids, _ = encode_dialogue(tok, {"system": d.system, "turns": d.turns}, 10**9)
    return ids[:tokens]


def divergence(oriel, window, kv, chunks):
    """-> mean KL in nats, share of tokens whose likeliest successor stays the same."""
    kl = same = 0.0
    for ids in chunks:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump({"ids": ids}, f)
            f.flush()
            out = json.loads(
                oriel.run(
                    ["eval", oriel.model, "--tokens-file", f.name, "--against", "f16"]
                    + ["--window", str(window), "--kv", kv]
                )
            )
        kl += out["kl_mean"] / len(chunks)
        same += out["top1_agreement"] / len(chunks)
    return kl, same


def recalled(program, model, window, kv, asked):
    oriel = Oriel(program, model, ["--window", str(window), "--kv", kv])
    return sum(checks.passed(c, oriel.answer(c.system, c.turns, c.question, 90)) for c in asked)


def table(rows, each):
    head = ["window", "keys, values", "KL", "likeliest token the same"]
    head += [f"recall at {d}" for d in DISTANCES]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in rows:
        cells = [str(r["window"]), r["kv"].upper() if r["kv"] != "f16" else "f16"]
        cells += ["0", "100 %"] if r["kv"] == "f16" else [f"{r['kl']:.5f}", f"{r['same']:.1%}"]
        cells += [f"{h / each:.0%}" for h in r["recall"]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# -- the plot -----------------------------------------------------------------

COLOURS = {"f16": "#444", "k8v8": "#1b7f4b", "k8v4": "#1f5fa8", "k4v4": "#c2571a"}
WIDTH, HEIGHT, LEFT, TOP = 330, 220, 60, 40


def text(x, y, words, anchor="middle", colour="#222", size=12):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size}">{words}</text>'
    )


def panel(x0, title, ticks, lines):
    """`ticks`: label and height of 0 to 1; `lines`: colour and heights, a line per window."""
    out = [text(x0 + WIDTH / 2, TOP - 16, title, size=14)]
    for label, h in ticks:
        y = TOP + HEIGHT * (1 - h)
        out.append(f'<line x1="{x0}" x2="{x0 + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(text(x0 - 6, y + 4, label, "end"))
    xs = [x0 + WIDTH * (i + 0.5) / len(WINDOWS) for i in range(len(WINDOWS))]
    for x, w in zip(xs, WINDOWS):
        out.append(text(x, TOP + HEIGHT + 18, str(w)))
    out.append(text(x0 + WIDTH / 2, TOP + HEIGHT + 38, "window, tokens"))
    for colour, heights in lines:
        points = [(x, TOP + HEIGHT * (1 - h)) for x, h in zip(xs, heights)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return out


def plot(rows, each):
    of = {(r["window"], r["kv"]): r for r in rows}
    lowest, highest = -5, 0  # powers of ten
    height = lambda kl: (math.log10(max(kl, 10**lowest)) - lowest) / (highest - lowest)
    cells = lambda kv, fn: (COLOURS[kv], [fn(of[w, kv], i) for i, w in enumerate(WINDOWS)])
    second = LEFT + WIDTH + 80
    powers = [(f"{10.0 ** p:g}", (p - lowest) / (highest - lowest)) for p in range(lowest, 1)]
    shares = [(f"{s} %", s / 100) for s in range(0, 101, 20)]
    out = panel(
        LEFT,
        "KL(f16 || format), nats a token",
        powers,
        [cells(kv, lambda r, i: height(r["kl"])) for kv in FORMATS[1:]],
    )
    out += panel(
        second,
        "recall of a fact told 3/4 of the window ago",
        shares,
        [cells(kv, lambda r, i: r["recall"][i] / each) for kv in FORMATS],
    )
    for i, kv in enumerate(FORMATS):
        out.append(text(LEFT + i * 90, TOP + HEIGHT + 62, kv, "start", COLOURS[kv], 14))
    size = f'width="{second + WIDTH + 20}" height="{TOP + HEIGHT + 75}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n"
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--oriel", required=True, help="the oriel program")
    ap.add_argument("--model", required=True)
    ap.add_argument("--tokenizer", default="tokenizer.json")
    ap.add_argument("--tokens", type=int, default=3000, help="of each of four conversations")
    ap.add_argument("--each", type=int, default=40, help="questions of each distance")
    ap.add_argument("--table", required=True)
    ap.add_argument("--plot", required=True)
    ap.add_argument("--ids", help="writes another conversation, for oriel calibrate --tokens-file")
    a = ap.parse_args()
    tok = Tokenizer.load(a.tokenizer)
    if a.ids:
        with open(a.ids, "w", encoding="ascii") as f:
            json.dump({"ids": conversation(tok, Rng("calibration"), 4 * a.tokens)}, f)
    chunks = [conversation(tok, Rng(f"cache-{i}"), a.tokens) for i in range(4)]
    asked = {
        d: [checks.recall(Rng(f"cache-{d}-{i}"), tok, d) for i in range(a.each)] for d in DISTANCES
    }
    rows = []
    for w in WINDOWS:
        for kv in FORMATS:
            kl, same = (0.0, 1.0)
            if kv != "f16":
                kl, same = divergence(Oriel(a.oriel, a.model), w, kv, chunks)
            recall = [recalled(a.oriel, a.model, w, kv, asked[d]) for d in DISTANCES]
            rows.append({"window": w, "kv": kv, "kl": kl, "same": same, "recall": recall})
            print(json.dumps(rows[-1]), flush=True)
    with open(a.table, "w", encoding="utf-8") as f:
        f.write(table(rows, a.each))
    with open(a.plot, "w", encoding="utf-8") as f:
        f.write(plot(rows, a.each))


if __name__ == "__main__":
    main()
