"""Plots the window that fits, and the loss that it is expected to cost, against memory.

    python3 window_against_memory.py [MODEL or SHAPE] [FILE]

MODEL is a GGUF file (default: the bundled model), SHAPE the name of a published model (oriel.shapes()). FILE ends in .svg,
or, with matplotlib installed, in what that can write. Default: window_against_memory.svg.
"""

import importlib
import math
import os
import sys
from typing import List, Optional, Tuple

import oriel

COLOURS = {"f16": "#d55e00", "k8v8": "#0072b2", "k8v4": "#009e73", "k4v4": "#cc79a7"}


def plans_of(model: Optional[str], points: int = 40) -> List[oriel.Plan]:
    """From the least memory to where more gains nothing, in equal ratios."""
    known = {shape.name for shape in oriel.shapes()}

    def planned(memory: int) -> oriel.Plan:
        return oriel.plan(shape=model, memory=memory) if model in known else oriel.plan(model, memory=memory)

    least = planned(1 << 20)
    first: int = least.minimum_bytes or least.total_bytes
    last = max(planned(1 << 46).total_bytes, first + (1 << 16))
    memories = [int(math.exp(math.log(first) + index * math.log(last / first) / (points - 1))) + 1 for index in range(points)]
    return [plan for plan in map(planned, memories) if plan.planned_fits]


def draw_with_matplotlib(plans: List[oriel.Plan], path: str) -> bool:
    try:
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return False
    pyplot.switch_backend("Agg")

    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(8, 6))
    memories = [plan.total_bytes / 1e6 for plan in plans]
    colours = [COLOURS.get(plan.kv, "#888888") for plan in plans]
    above.plot(memories, [plan.window_tokens for plan in plans], color="#bbbbbb", zorder=1)
    above.scatter(memories, [plan.window_tokens for plan in plans], c=colours, zorder=2)
    below.plot(memories, [plan.loss_nats for plan in plans], color="#bbbbbb", zorder=1)
    below.scatter(memories, [plan.loss_nats for plan in plans], c=colours, zorder=2)
    above.set_ylabel("window, tokens")
    below.set_ylabel("expected loss, nats a token")
    below.set_xlabel("memory, MB")
    for name in dict.fromkeys(plan.kv for plan in plans):
        above.scatter([], [], color=COLOURS.get(name, "#888888"), label=name)
    above.legend(title="cache")
    above.set_title(plans[0].title)
    figure.tight_layout()
    figure.savefig(path)
    return True


def ticks(first: float, last: float) -> List[float]:
    """At most seven round numbers between the two."""
    rough = max((last - first) / 6, 1e-12)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [index * step for index in range(math.ceil(first / step), math.floor(last / step) + 1)]


def panel(plans: List[oriel.Plan], values: List[float], top: float, title: str, last: bool) -> List[str]:
    left, width, height = 80.0, 540.0, 190.0
    first_mb, last_mb = plans[0].total_bytes / 1e6, plans[-1].total_bytes / 1e6
    largest = max(values) or 1

    def at(memory: float, value: float) -> Tuple[float, float]:
        return left + (memory - first_mb) / ((last_mb - first_mb) or 1) * width, top + height - value / largest * height

    out = [f'<text x="{left}" y="{top - 10}" font-weight="bold">{title}</text>']
    for value in ticks(0, largest):
        y = at(first_mb, value)[1]
        out.append(f'<path d="M{left} {y:.1f}h{width}" stroke="#e6e6e6"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{round(value, 9):,}</text>'.replace(".0<", "<"))
    for memory in ticks(first_mb, last_mb) if last else []:
        x = at(memory, 0)[0]
        label = f"{round(memory, 9):,}".replace(".0", "") if memory.is_integer() else f"{round(memory, 9)}"
        out.append(f'<text x="{x:.1f}" y="{top + height + 20}" text-anchor="middle">{label}</text>')
    points = [at(plan.total_bytes / 1e6, value) for plan, value in zip(plans, values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    out.append(f'<polyline points="{line}" fill="none" stroke="#bbb"/>')
    for plan, (x, y) in zip(plans, points):
        tip = f"{oriel.format_size(plan.total_bytes)}: {plan.window_tokens} tokens in {plan.kv}, {plan.loss_nats:.4f} nats"
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS.get(plan.kv, "#888")}"><title>{tip}</title></circle>')
    return out


def draw_svg(plans: List[oriel.Plan], path: str) -> None:
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="660" height="560" font-family="sans-serif" font-size="12">']
    out.append('<rect width="660" height="560" fill="white"/>')
    out.append(f'<text x="80" y="24" font-size="15">{plans[0].title}</text>')
    for index, name in enumerate(dict.fromkeys(plan.kv for plan in plans)):
        out.append(f'<circle cx="{400 + index * 60}" cy="20" r="5" fill="{COLOURS.get(name, "#888")}"/>')
        out.append(f'<text x="{410 + index * 60}" y="24">{name}</text>')
    out += panel(plans, [plan.window_tokens for plan in plans], 60, "window, tokens", False)
    out += panel(plans, [plan.loss_nats for plan in plans], 300, "expected loss, nats a token", True)
    out.append('<text x="350" y="540" text-anchor="middle">memory, MB</text></svg>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def main() -> None:
    model = sys.argv[1] if len(sys.argv) > 1 else None
    path = sys.argv[2] if len(sys.argv) > 2 else "window_against_memory.svg"
    plans = plans_of(model)
    if not draw_with_matplotlib(plans, path):
        if os.path.splitext(path)[1].lower() != ".svg":
            sys.exit(f"{path} needs matplotlib (python3-matplotlib): install it, or give a name that ends in .svg")
        draw_svg(plans, path)
    print(f"{path}: {len(plans)} plans from {oriel.format_size(plans[0].total_bytes)} to {oriel.format_size(plans[-1].total_bytes)}")


if __name__ == "__main__":
    try:
        main()
    except (oriel.Error, ValueError) as error:
        sys.exit(f"window_against_memory.py: {error}")
