"""Pictures of simple shapes and digits, and questions about them with their answers."""
import math
import struct
import zlib

import numpy as np

SIDE = 64  # of the encoder's pictures, in pixels

# ---- Pictures ------------------------------------------------------------------------------------

# Degrees of hue, saturation, value: the least and the most.
COLOURS = {
    "red": ((-8, 8), (0.75, 1), (0.7, 1)),
    "orange": ((22, 36), (0.8, 1), (0.85, 1)),
    "yellow": ((50, 62), (0.7, 1), (0.85, 1)),
    "green": ((95, 145), (0.55, 1), (0.4, 0.9)),
    "blue": ((205, 245), (0.6, 1), (0.5, 1)),
    "purple": ((270, 300), (0.5, 1), (0.45, 0.9)),
    "white": ((0, 360), (0, 0.06), (0.93, 1)),
    "grey": ((0, 360), (0, 0.08), (0.4, 0.65)),
    "black": ((0, 360), (0, 0.3), (0, 0.12)),
}
GROUNDS = ("white",) * 4 + ("black",) * 2 + ("grey",)
ALIKE = ({"yellow", "white"},)


class Dice:
    """Choices of one split. Training never draws the sizes, shades and places that held-out pictures have."""

    def __init__(self, seed, held_out=False):
        self.rng, self.held_out, self.grounds = np.random.default_rng(seed), held_out, GROUNDS

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def free(self, low, high):
        """The same in both splits."""
        return self.rng.uniform(low, high)

    def between(self, low, high):
        """The range has ten parts, of which two are held out."""
        part = self.pick((3, 7) if self.held_out else (0, 1, 2, 4, 5, 6, 8, 9))
        return low + (high - low) * (part + self.rng.random()) / 10

    def place(self, margin_x, margin_y):
        """A point whose cell of a 10 x 10 grid is in this split: each fifth is held out."""
        while True:
            x, y = self.free(margin_x, 1 - margin_x), self.free(margin_y, 1 - margin_y)
            if ((3 * int(10 * x) + int(10 * y)) % 5 == 0) == self.held_out:
                return x, y


def shade(dice, name):
    hue, saturation, value = (dice.between(*span) for span in COLOURS[name])
    # Each of red, green and blue falls by value * saturation with its distance in hue.
    k = (np.array([5, 3, 1]) + hue / 60) % 6
    return value * (1 - saturation * np.clip(np.minimum(k, 4 - k), 0, 1))


def polygon(x, y, corners, inner=None):
    """Distance to a regular polygon of radius 1, or to a star whose inner corners have another radius."""
    step = math.pi / corners
    angle = np.abs((np.arctan2(x, -y) + step) % (2 * step) - step)
    a, b = np.hypot(x, y) * np.cos(angle), np.hypot(x, y) * np.sin(angle)
    r = inner if inner else math.cos(step)  # from the outer corner (1, 0) to the inner one
    dx, dy = r * math.cos(step) - 1, r * math.sin(step)
    return ((a - 1) * dy - b * dx) / math.hypot(dx, dy)


# Distances to the edge, below 0 inside. The shapes fill the square from -1 to 1; y goes down.
SHAPES = {
    "circle": lambda x, y: np.hypot(x, y) - 1,
    "square": lambda x, y: np.maximum(np.abs(x), np.abs(y)) - 0.85,
    "triangle": lambda x, y: polygon(x, y - 0.15, 3),
    "star": lambda x, y: polygon(x, y, 5, 0.42),
    "cross": lambda x, y: np.maximum(np.maximum(np.abs(x), np.abs(y)) - 0.95, np.minimum(np.abs(x), np.abs(y)) - 0.3),
    "ring": lambda x, y: np.abs(np.hypot(x, y) - 0.75) - 0.25,
}


def arc(cx, cy, rx, ry, begin, end, steps=8):
    angles = [math.radians(begin + (end - begin) * i / steps) for i in range(steps + 1)]
    return [(cx + rx * math.cos(a), cy + ry * math.sin(a)) for a in angles]


# Two hands: lines as one writes them, and the seven bars of a pocket calculator. Width -0.6 to 0.6, height -1 to 1.
WRITTEN = {
    "0": [arc(0, 0, 0.6, 1, 0, 360, 14)],
    "1": [[(-0.35, -0.6), (0.05, -1), (0.05, 1)]],
    "2": [arc(0, -0.45, 0.55, 0.55, 180, 380, 8) + [(-0.6, 1), (0.6, 1)]],
    "3": [arc(-0.05, -0.5, 0.55, 0.5, 200, 450, 8), arc(-0.05, 0.5, 0.62, 0.5, 270, 520, 8)],
    "4": [[(0.25, 1), (0.25, -1), (-0.6, 0.4), (0.6, 0.4)]],
    "5": [[(0.5, -1), (-0.45, -1), (-0.5, -0.1)], arc(-0.05, 0.35, 0.6, 0.62, 225, 510, 9)],
    "6": [arc(0.1, 0.3, 0.72, 1.3, 285, 180, 5), arc(0, 0.4, 0.6, 0.6, 0, 360, 10)],
    "7": [[(-0.6, -1), (0.6, -1), (-0.15, 1)]],
    "8": [arc(0, -0.5, 0.48, 0.5, 0, 360, 10), arc(0, 0.5, 0.6, 0.5, 0, 360, 10)],
    "9": [arc(0, -0.4, 0.6, 0.6, 0, 360, 10), arc(-0.1, -0.3, 0.7, 1.3, 0, 100, 5)],
}
BARS = {"a": ((-0.6, -1), (0.6, -1)), "b": ((0.6, -1), (0.6, 0)), "c": ((0.6, 0), (0.6, 1)), "d": ((-0.6, 1), (0.6, 1)),
        "e": ((-0.6, 0), (-0.6, 1)), "f": ((-0.6, -1), (-0.6, 0)), "g": ((-0.6, 0), (0.6, 0))}
LIT = dict(zip("0123456789", "abcdef bc abged abgcd fgbc afgcd afgedc abc abcdefg abcdfg".split()))
PARTS = {hand: {digit: np.array([(*a, *b) for line in of(digit) for a, b in zip(line, line[1:])]) for digit in LIT}
         for hand, of in (("written", WRITTEN.get), ("bars", lambda digit: [BARS[bar] for bar in LIT[digit]]))}


def digit_distance(x, y, hand, digit, stroke):
    x1, y1, x2, y2 = (v[:, None, None] for v in PARTS[hand][digit].T)
    dx, dy = x2 - x1, y2 - y1
    t = np.clip(((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy), 0, 1)
    return np.hypot(x - x1 - t * dx, y - y1 - t * dy).min(0) - stroke


def invent(dice):
    """The content of a picture: facts for the questions, and shapes to draw."""
    while True:
        colour, ground = dice.pick(list(COLOURS)), dice.pick(dice.grounds)
        if colour != ground and {colour, ground} not in ALIKE:
            break
    kind = dice.pick(("one",) * 4 + ("some",) * 3 + ("digit",) * 3)
    what = {"colour": colour, "ground": ground, "count": 1, "digit": None, "kind": kind}
    stretch = dice.free(0.85, 1.18)
    drawn = {"ink": shade(dice, colour), "paper": shade(dice, ground), "blur": dice.free(0.1, 1.2), "noise": dice.pick((0, 0, 4)),
             "stretch": stretch, "slant": 0}
    if kind == "digit":
        what["shape"], what["digit"] = "digit", dice.pick(list(LIT))
        size = dice.between(0.25, 0.4)
        items = [(*dice.place(0.75 * size, 1.05 * size), size, dice.free(-0.08, 0.08))]
        drawn.update(hand=dice.pick(("written", "bars")), stroke=dice.free(0.14, 0.24), slant=dice.free(-0.15, 0.15))
    else:
        what["shape"] = dice.pick(list(SHAPES))
        if kind == "some":
            what["count"] = dice.pick((2, 3, 4))
        size = dice.between(0.17, 0.42) if kind == "one" else dice.between(0.11, 0.15)
        items, tries = [], 0
        while len(items) < what["count"]:
            tries += 1
            if tries % 50 == 0:  # no room for the rest
                items, size = [], 0.95 * size
            x, y = dice.place(size * 1.1, size * 1.1)
            if all(math.hypot(x - other[0], y - other[1]) > 2.4 * size for other in items):
                items.append((x, y, size * dice.free(0.95, 1.05), dice.free(-0.25, 0.25)))
    return what, {**drawn, "items": items, "seed": int(dice.rng.integers(1 << 30))}


def draw(what, drawn, width=SIDE, height=SIDE):
    """uint8 [height][width][3]"""
    across, down = (np.arange(width) + 0.5) / width, ((np.arange(height) + 0.5) / height)[:, None]
    inside = np.zeros((height, width))
    for x, y, size, turn in drawn["items"]:
        u, v = (across - x) / size * drawn["stretch"], (down - y) / size / drawn["stretch"]
        u, v = u * math.cos(turn) + v * math.sin(turn), v * math.cos(turn) - u * math.sin(turn)
        if what["kind"] == "digit":
            edge = digit_distance(u + drawn["slant"] * v, v, drawn["hand"], what["digit"], drawn["stroke"])
        else:
            edge = SHAPES[what["shape"]](u, v)
        inside = np.maximum(inside, np.clip(0.5 - edge * size * min(width, height) / drawn["blur"], 0, 1))
    picture = 255 * (drawn["paper"] + inside[..., None] * (drawn["ink"] - drawn["paper"]))
    picture += np.random.default_rng(drawn["seed"]).normal(0, drawn["noise"], picture.shape)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)


def write_png(path, picture):
    height, width, _ = picture.shape
    lines = b"".join(b"\0" + line.tobytes() for line in picture)
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks))


# ---- Questions -----------------------------------------------------------------------------------

ASKED = {
    "colour": ("What colour?", "Which colour?", "What colour is it?", "What colour is this?", "Which colour is it?", "What color is it?",
               "What colour do you see?"),
    "shape": ("What shape?", "Which shape?", "What shape is it?", "What shape is this?", "Which shape is it?", "Which shape do you see?"),
    "count": ("How many?", "How many are there?", "How many do you see?", "How many shapes are there?", "How many shapes do you see?"),
    "digit": ("Which digit?", "What digit?", "Which digit is it?", "What digit is this?", "Which number is it?", "What number is this?"),
    "ground": ("What colour is the background?", "Which colour is the background?", "And the background?"),
    "all": ("What is this?", "What is it?", "What do you see?", "What is in the picture?", "Describe the picture."),
}
BLIND = "I see no picture."


def answer(what, asked):
    if asked == "digit":
        return what["digit"] or "no digit"
    if asked == "all":
        if what["digit"]:
            return f"the digit {what['digit']} in {what['colour']}"
        first = what["colour"][0] in "aeiou"
        plural = "crosses" if what["shape"] == "cross" else what["shape"] + "s"
        return (f"{'an' if first else 'a'} {what['colour']} {what['shape']}" if what["count"] == 1
                else f"{what['count']} {what['colour']} {plural}")
    return str(what[asked])


def dialogue(dice, pictures=1):
    """Turns (picture or None, question, answer, its kind). Some of those about one picture have none."""
    if pictures == 1 and dice.chance(0.04):
        return [(None, dice.pick(ASKED[dice.pick(list(ASKED))]), BLIND, "blind")]
    turns = []
    for _ in range(pictures):
        what, drawn = invent(dice)
        kinds = [kind for kind in ASKED if what["digit"] or kind != "digit" or dice.chance(0.1)]
        dice.rng.shuffle(kinds)
        for i, kind in enumerate(kinds[: dice.pick((2, 3, 4))]):
            turns.append(((what, drawn) if i == 0 else None, dice.pick(ASKED[kind]), answer(what, kind), kind))
    return turns
