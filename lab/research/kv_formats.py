#!/usr/bin/env python3
"""Measures the loss from low-bit formats for keys and values, in numpy.

    python3 lab/research/kv_formats.py MODEL.gguf --ids FILE.json --tokens 1000

runs the model (arch llama or qwen2) over token ids with full attention in float64, once unchanged and once per row of
the table with the cached keys (after RoPE) and values rounded
through a format, and prints KL(reference || quantised) per token in nats, how often the
most likely token stays the same, and the change of the mean negative log likelihood.

FILE.json is a list of ids, a list of such lists, or an object with "chunks" or "ids"; each
list is one context of its own and is cut into pieces of --context tokens.
The formats, the method and the results: docs/decisions/014-cache-formats.md.

    --rows sides    K alone, then V alone, in every INT4 and INT8 format (default)
    --rows pairs    K and V together, the combinations worth choosing from
    --rows fewer    formats of three bits and of less than 4.5, and the chosen ones
    --rows FILE     a kv_quant file of reference data: prints its figure next to ours
    --rows K/V,...  named ones, such as int8+H/int4+H; "-" leaves a side alone
                    (with =, as in --rows=-/cubic-s16, where the first one does)

A format's name is followed by its rotation: nothing, +H (Walsh-Hadamard over the head),
+S (the same after fixed random signs), +H32 (Hadamard over each group of 32).  A "c" before
the rotation (+cH) first takes the head's mean off, measured on the text of --centre: of keys that
changes no attention, because all scores of a query shift alike.
"""
import argparse
import json
import struct

import numpy as np

GROUP = 32  # values that share a scale; a shorter head is one group

# -- GGUF ---------------------------------------------------------------------

# Levels of the IQ4_NL type of the GGUF format, in units of the block scale.
IQ4_NL = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], float)


def blocks(raw, size):
    """-> scales [n, 1] and the remaining bytes [n, size - 2] of blocks led by an f16 scale."""
    b = np.frombuffer(raw, np.uint8).reshape(-1, size)
    return b[:, :2].copy().view(np.float16).astype(float), b[:, 2:].copy()


def nibbles(b):
    return np.concatenate([b & 15, b >> 4], 1)


def from_q8_0(raw):
    scale, b = blocks(raw, 34)
    return scale * b.view(np.int8)


def from_q4_0(raw):
    scale, b = blocks(raw, 18)
    return scale * (nibbles(b) - 8.0)


def from_iq4_nl(raw):
    scale, b = blocks(raw, 18)
    return scale * IQ4_NL[nibbles(b)]


# GGUF tensor type -> (values per block, bytes per block, decoder)
TENSOR_TYPES = {
    0: (1, 4, lambda raw: np.frombuffer(raw, np.float32)),
    1: (1, 2, lambda raw: np.frombuffer(raw, np.float16)),
    2: (32, 18, from_q4_0),
    8: (32, 34, from_q8_0),
    20: (32, 18, from_iq4_nl),
}


class Gguf:
    """A trusted GGUF v3 file: `meta` {key: value} and `tensors` {name: float64 array}."""
    SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = 4
        version, n_tensors, n_meta = self.take("I"), self.take("Q"), self.take("Q")
        if self.data[:4] != b"GGUF" or version != 3:
            raise SystemExit(f"{path} is not a GGUF v3 file")
        self.meta = {}
        for _ in range(n_meta):
            key = self.text()
            self.meta[key] = self.value(self.take("I"))
        infos = []
        for _ in range(n_tensors):
            name = self.text()
            shape = [self.take("Q") for _ in range(self.take("I"))][::-1]
            infos.append((name, shape, self.take("I"), self.take("Q")))
        align = self.meta.get("general.alignment", 32)
        base = -(-self.at // align) * align
        self.tensors = {}
        for name, shape, kind, offset in infos:
            if kind not in TENSOR_TYPES:
                raise SystemExit(f"{name} has tensor type {kind}: this script reads {list(TENSOR_TYPES)}")
            per_block, size, decode = TENSOR_TYPES[kind]
            n_bytes = int(np.prod(shape)) // per_block * size
            raw = self.data[base + offset:base + offset + n_bytes]
            self.tensors[name] = decode(raw).astype(float).reshape(shape)

    def take(self, code):
        v, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return v

    def text(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            item, n = self.take("I"), self.take("Q")
            return [self.value(item) for _ in range(n)]
        return self.take(self.SCALARS[kind])


# -- the model ----------------------------------------------------------------


class Model:

    def __init__(self, path):
        file = Gguf(path)
        self.w, arch = file.tensors, file.meta["general.architecture"]
        if arch not in ("llama", "qwen2"):
            raise SystemExit(f"arch {arch}: only llama and qwen2 are written out here")
        m = lambda key, *default: file.meta.get(f"{arch}.{key}", *default)
        self.layers, self.heads = m("block_count"), m("attention.head_count")
        self.kv_heads = m("attention.head_count_kv", self.heads)
        self.head_dim = m("attention.key_length", m("embedding_length") // self.heads)
        self.eps = m("attention.layer_norm_rms_epsilon")
        self.freq = m("rope.freq_base", 10000.0)**(-np.arange(0, self.head_dim, 2) / self.head_dim)
        self.halves = arch == "qwen2"  # RoPE pairs (i, i + d/2), else (2i, 2i + 1)

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.w[name + ".weight"]

    def rope(self, x, position):
        """x [tokens, heads, head_dim]"""
        angle = position[:, None, None] * self.freq
        c, s = np.cos(angle), np.sin(angle)
        half = self.head_dim // 2
        first, second = slice(0, None, 2), slice(1, None, 2)
        if self.halves:
            first, second = slice(0, half), slice(half, None)
        out = np.empty_like(x)
        out[..., first] = x[..., first] * c - x[..., second] * s
        out[..., second] = x[..., first] * s + x[..., second] * c
        return out

    def __call__(self, chunks, store_k=None, store_v=None):
        """-> logits [all tokens, vocabulary].  store_k and store_v map [tokens, kv heads,
        head_dim], the tokens' positions and the layer to the values read from the cache."""
        ids = np.concatenate(chunks)
        position = np.concatenate([np.arange(len(c)) for c in chunks])
        ends = np.cumsum([len(c) for c in chunks])
        x = self.w["token_embd.weight"][ids]
        for i in range(self.layers):
            b = f"blk.{i}."
            y = self.norm(x, b + "attn_norm")
            split = lambda z: z.reshape(len(ids), -1, self.head_dim)
            q = self.rope(split(self.linear(y, b + "attn_q")), position)
            k = self.rope(split(self.linear(y, b + "attn_k")), position)
            v = split(self.linear(y, b + "attn_v"))
            k = store_k(k, position, i) if store_k else k
            v = store_v(v, position, i) if store_v else v
            out = np.concatenate([self.attend(q[e - len(c):e], k[e - len(c):e], v[e - len(c):e])
                                  for c, e in zip(chunks, ends)])
            x = x + self.linear(out, b + "attn_output")
            y = self.norm(x, b + "ffn_norm")
            gate = self.linear(y, b + "ffn_gate")
            x = x + self.linear(gate / (1 + np.exp(-gate)) * self.linear(y, b + "ffn_up"), b + "ffn_down")
        head = self.w.get("output.weight", self.w["token_embd.weight"])
        return self.norm(x, "output_norm") @ head.T

    def attend(self, q, k, v):
        """Causal attention of one context: [tokens, heads, head_dim] -> [tokens, heads * head_dim]"""
        n, share = len(q), self.heads // self.kv_heads
        future = np.triu(np.full((n, n), -np.inf), 1)
        out = np.empty_like(q)
        for h in range(self.heads):
            s = q[:, h] @ k[:, h // share].T / np.sqrt(self.head_dim) + future
            e = np.exp(s - s.max(-1, keepdims=True))
            out[:, h] = e @ v[:, h // share] / e.sum(-1, keepdims=True)
        return out.reshape(n, -1)


# -- rotations ----------------------------------------------------------------


def hadamard(n):
    """The normalised Walsh-Hadamard matrix in Sylvester order: symmetric, its own inverse."""
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    if len(h) != n:
        raise SystemExit(f"head_dim {n} is not a power of two: no Hadamard rotation")
    return h / np.sqrt(n)


def rotation(name, d):
    """An orthogonal matrix R; x @ R is stored."""
    if name == "":
        return np.eye(d)
    if name == "H":
        return hadamard(d)
    if name == "S":
        return np.random.RandomState(1).choice([-1.0, 1.0], d)[:, None] * hadamard(d)
    if name == "H32":
        return np.kron(np.eye(max(d // 32, 1)), hadamard(min(d, 32)))
    raise SystemExit(f"no rotation called {name}")


# -- formats ------------------------------------------------------------------


def f16(x):
    return x.astype(np.float16).astype(float)


def bf16(x):
    """Rounds to the nearest bfloat16, ties to even."""
    u = x.astype(np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(float)


def e4m3(x):
    """Rounds to a byte of sign, four bits of exponent and three of mantissa: (8 + m) * 2^(e - 13),
    from 2^-10 to 60, and the smallest of these where x is smaller."""
    mantissa, exponent = np.frexp(np.clip(np.abs(x), 2.0**-10, 60))
    return np.copysign(np.ldexp(np.rint(mantissa * 16) / 16, exponent), x)


def nearest(x, levels):
    """The nearest of the sorted levels."""
    step = np.diff(levels)
    if np.ptp(step) < 1e-12 * step[0]:
        return np.clip(np.rint((x - levels[0]) / step[0]), 0, len(levels) - 1) * step[0] + levels[0]
    return levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, x)]


def scaled(levels, ratios, weight=None, refit=0, round_scale=f16):
    """Scale times a value of `levels`.  The scale is the group's signed extreme (the first value
    of the largest magnitude) times the member of `ratios` with the least squared error;
    `refit` times, the least-squares scale for the levels found is tried as well."""
    levels = np.asarray(levels, float)

    def quantise(x):
        w = 1.0 if weight is None else weight(x)
        extreme = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)
        best_level, best_scale = np.zeros_like(x), np.zeros_like(extreme)
        least = np.full(len(x), np.inf)

        def attempt(scale):
            scale = round_scale(scale)
            level = nearest(x / np.where(scale == 0, 1, scale), levels)
            error = (w * (x - scale * level)**2).sum(1)
            better = error < least
            best_level[better], best_scale[better] = level[better], scale[better]
            least[better] = error[better]

        for r in ratios:
            attempt(extreme * r)
        for _ in range(refit):
            square = (w * best_level**2).sum(1, keepdims=True)
            attempt((w * x * best_level).sum(1, keepdims=True) / np.where(square == 0, 1, square))
        return best_scale * best_level

    return quantise


def scale_and_min(x):
    """15 steps from the smallest to the largest value, both parameters in f16: 5 bits."""
    low, high = x.min(1, keepdims=True), x.max(1, keepdims=True)
    scale, low = f16((high - low) / 15), f16(low)
    return scale * np.clip(np.rint((x - low) / np.where(scale == 0, 1, scale)), 0, 15) + low


def gaussian_levels(group=0, sides=1):
    """Sixteen levels by Lloyd's iterations on Gaussian samples: of the Gaussian itself
    (group 0), or of groups of that size scaled by their signed extreme to 1.  With
    sides = 1 they are made symmetric."""
    x = np.random.RandomState(0).randn(1 << 12, 32)
    if group:
        x = x.reshape(-1, group)
        extreme = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)
        x, weight = x / extreme, extreme**2 + 0 * x
    else:
        weight = np.ones_like(x)
    x, weight = x.ravel(), weight.ravel()
    if sides == 1:  # symmetric
        x, weight = np.concatenate([x, -x]), np.concatenate([weight, weight])
    levels = np.linspace(np.quantile(x, 0.02), np.quantile(x, 0.98), 16)
    for _ in range(200):
        q = np.searchsorted((levels[1:] + levels[:-1]) / 2, x)
        levels = np.bincount(q, weight * x, 16) / np.bincount(q, weight, 16)
    return (levels - levels[::-1]) / 2 if sides == 1 else levels


def cubic_levels():
    """t + t^3 / 128 for t = code - 7.875: close to the best sixteen levels for groups of a
    Gaussian under a searched scale, exact in float32 and free of a table."""
    t = np.arange(16) - 7.875
    return t + t**3 / 128


# The scale candidates of the chosen INT4 (cubic-s16), as factors of a group's signed extreme:
# the best sixteen multiples of 5/2048, found greedily on Gaussian groups of 8, 16 and 32.
CUBIC_RATIOS = np.array([-270, -220, -215, -210, -205, -185, -180, -175, -170, -165, -160,
                         195, 200, 205, 210, 255]) / 2048
# The same by a rule instead of a table.
REGULAR_RATIOS = np.concatenate([-np.arange(20, 28), np.arange(23, 31)]) / 256

def cubic3_levels():
    """t + t^3 / 32 for t = code - 3.75: the same for eight levels."""
    t = np.arange(8) - 3.75
    return t + t**3 / 32


# Picked like CUBIC_RATIOS out of the multiples of 10/2048; the first eight were the best eight.
CUBIC3_RATIOS = np.array([-400, -380, -370, -360, -340, -320, 410, 460,
                          -420, -390, -350, -330, -300, 380, 430, 490]) / 2048
# Eight levels by Lloyd's iterations on groups of 32 Gaussians with their scales searched.
LLOYD3 = [-3.8268, -2.2959, -1.3271, -0.5313, 0.2246, 1.021, 1.9463, 3.1732]

# The levels of the NF4 type of QLoRA (Dettmers et al. 2023).
NF4 = [-1.0, -0.69619, -0.52507, -0.39492, -0.28444, -0.18477, -0.09105, 0.0,
       0.07958, 0.16093, 0.24611, 0.33792, 0.44071, 0.56262, 0.72296, 1.0]


def candidates(inner, outer, n):
    return 1 / np.linspace(inner, outer, n)


def build_formats():
    """-> {name: (bits of a code, bits of a group's parameters, quantiser, values in a group)}"""
    int8, int4, half = np.arange(-127, 128), np.arange(-8, 8), np.arange(-8, 8) + 0.5
    sym = np.arange(-7, 8)
    gauss = gaussian_levels()
    gauss /= gauss[-1]
    cubic = cubic_levels()
    extreme32 = gaussian_levels(32, 2)
    both = lambda r: np.concatenate([r, -r])
    fine = candidates(5.5, 9, 57)
    square = lambda x: x * x
    ggml = lambda x: np.abs(x) + np.sqrt((x * x).mean(1, keepdims=True))
    four = {
        "q4_0": scaled(int4, [-1 / 8]),
        "q4_1": scale_and_min,
        "amax7": scaled(sym, [1 / 7]),
        "half": scaled(half, [1 / 7.5]),
        "nf4": scaled(NF4, [1]),
        "iq4nl": scaled(IQ4_NL, [-1 / 127]),
        "gauss": scaled(gauss, [1]),
        "ext32": scaled(extreme32, [1]),
        "sym-s16": scaled(sym, candidates(6, 8.5, 16)),
        "int4-s8": scaled(int4, -candidates(6.5, 8.25, 8)),
        "int4-s16": scaled(int4, -candidates(6, 8.5, 16)),
        "int4-b8": scaled(int4, both(candidates(6.5, 8, 4))),
        "int4-b16": scaled(int4, both(candidates(6, 8.5, 8))),
        "int4-b16r": scaled(int4, both(candidates(6, 8.5, 8)), refit=1),
        "int4-b16w": scaled(int4, both(candidates(6, 8.5, 8)), square),
        "int4-b16g": scaled(int4, both(candidates(6, 8.5, 8)), ggml),
        "int4-oracle": scaled(int4, both(fine), refit=2),
        "half-s4": scaled(half, candidates(6.5, 8, 4)),
        "half-s8": scaled(half, candidates(6, 8, 8)),
        "half-s16": scaled(half, candidates(5.5, 8.5, 16)),
        "half-oracle": scaled(half, fine, refit=2),
        "nf4-b16": scaled(NF4, both(np.linspace(0.75, 1.2, 8))),
        "iq4nl-s8": scaled(IQ4_NL, -np.linspace(0.75, 1.2, 8) / 127),
        "iq4nl-b8": scaled(IQ4_NL, both(np.linspace(0.8, 1.15, 4) / 127)),
        "iq4nl-b16": scaled(IQ4_NL, both(np.linspace(0.75, 1.2, 8) / 127)),
        "iq4nl-oracle": scaled(IQ4_NL, both(np.linspace(0.6, 1.4, 57) / 127), refit=2),
        "gauss-s8": scaled(gauss, np.linspace(0.8, 1.3, 8)),
        "gauss-s16": scaled(gauss, np.linspace(0.7, 1.4, 16)),
        "gauss-oracle": scaled(gauss, np.linspace(0.5, 1.8, 99), refit=2),
        "cubic": scaled(cubic, 1 / cubic[:1]),
        "cubic-r8": scaled(cubic, REGULAR_RATIOS[::2]),
        "cubic-r16": scaled(cubic, REGULAR_RATIOS),
        "cubic-s16": scaled(cubic, CUBIC_RATIOS),
        "cubic-r16r": scaled(cubic, REGULAR_RATIOS, refit=1),
        "cubic-oracle": scaled(cubic, both(np.arange(100, 280, 3) / 2048), refit=2),
        "cubic-r16-bf16": scaled(cubic, REGULAR_RATIOS, round_scale=bf16),
        "int4-b16-bf16": scaled(int4, both(candidates(6, 8.5, 8)), round_scale=bf16),
    }
    eight = {
        "int8": scaled(int8, [1 / 127]),
        "int8-s16": scaled(int8, candidates(122, 129.5, 16)),
        "int8-bf16": scaled(int8, [1 / 127], round_scale=bf16),
    }
    cubic3, int3 = cubic3_levels(), np.arange(-4, 4)
    wide = np.concatenate([-np.arange(200, 500, 10), np.arange(240, 640, 10)]) / 2048
    three = {
        "q3_0": scaled(int3, [-1 / 4]),
        "int3-b16": scaled(int3, both(candidates(2.6, 4.4, 8))),
        "lloyd3": scaled(LLOYD3, both(np.linspace(0.55, 1.3, 8) / 3.5)),
        "cubic3": scaled(cubic3, 1 / cubic3[:1]),
        "cubic3-s8": scaled(cubic3, CUBIC3_RATIOS[:8]),
        "cubic3-s16": scaled(cubic3, CUBIC3_RATIOS),
        "cubic3-s16r": scaled(cubic3, CUBIC3_RATIOS, refit=1),
        "cubic3-oracle": scaled(cubic3, wide, refit=2),
    }
    formats = {k: (4, 32 if k == "q4_1" else 16, f, GROUP) for k, f in four.items()}
    formats.update({k: (8, 16, f, GROUP) for k, f in eight.items()})
    formats.update({k: (3, 16, f, GROUP) for k, f in three.items()})
    # A quarter of a bit less: scales of a byte, or groups twice as large.
    formats["cubic3-s16-e8"] = (3, 8, scaled(cubic3, CUBIC3_RATIOS, round_scale=e4m3), GROUP)
    formats["cubic-s16-e8"] = (4, 8, scaled(cubic, CUBIC_RATIOS, round_scale=e4m3), GROUP)
    formats["cubic3-s16-g64"] = (3, 16, three["cubic3-s16"], 64)
    formats["cubic-s16-g64"] = (4, 16, four["cubic-s16"], 64)
    formats["f16"] = (16, 0, f16, GROUP)
    return formats


FORMATS = build_formats()


def bits(name, head_dim):
    code, parameters, _, group = FORMATS[name.split("+")[0]]
    return code + parameters / min(group, head_dim)


def store(name, head_dim, sinks, means=None):
    """-> store_k or store_v of Model for "format+rotation"; None for "-".
    means: [kv heads, head_dim] of each layer, which "+c" takes off."""
    if name == "-":
        return None
    base, _, turn = name.partition("+")
    centred = turn.startswith("c")
    if centred and means is None:
        raise SystemExit(f"{name} takes means off: --centre names the text to measure them on")
    r = rotation(turn[centred:], head_dim)
    _, _, quantise, group = FORMATS[base]

    def through(x, position, layer):
        mean = f16(means[layer]) if centred else 0.0
        y = (x - mean) @ r
        z = quantise(y.reshape(-1, min(group, head_dim))).reshape(y.shape)
        z = np.where((position < sinks)[:, None, None], f16(y), z)
        return z @ r.T + mean

    return through


def side_means(model, chunks):
    """-> what cached keys and values are on average, each {layer: [kv heads, head_dim]}."""
    means = {}, {}

    def note(side):
        def through(x, position, layer):
            means[side][layer] = x.mean(0)
            return x
        return through

    model(chunks, note(0), note(1))
    return means


# -- the comparison -----------------------------------------------------------


def log_softmax(z):
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


class Comparison:

    def __init__(self, model, chunks, means=(None, None)):
        self.model, self.chunks, self.means = model, chunks, means
        self.reference = log_softmax(model(chunks))
        self.p, self.top = np.exp(self.reference), self.reference.argmax(-1)
        ids = np.concatenate(chunks)
        last = np.cumsum([len(c) for c in chunks]) - 1
        self.at = np.setdiff1d(np.arange(len(ids)), last)  # tokens with a successor
        self.next = ids[self.at + 1]

    def nll(self, logp):
        return -logp[self.at, self.next].mean()

    def __call__(self, k, v, sinks):
        """-> mean KL, its standard error, top-1 agreement, change of the mean NLL"""
        d = self.model.head_dim
        stores = store(k, d, sinks, self.means[0]), store(v, d, sinks, self.means[1])
        logp = log_softmax(self.model(self.chunks, *stores))
        kl = (self.p * (self.reference - logp)).sum(-1)
        return (kl.mean(), kl.std() / np.sqrt(len(kl)), (logp.argmax(-1) == self.top).mean(),
                self.nll(logp) - self.nll(self.reference))


def read_chunks(path, context, tokens):
    with open(path) as f:
        data = json.load(f)
    if isinstance(data, dict):
        data = data.get("chunks") or [data["ids"]]
    if not isinstance(data[0], list):
        data = [data]
    pieces = [np.array(ids[i:i + context]) for ids in data for i in range(0, len(ids), context)]
    out = []
    for piece in pieces:
        piece = piece[:tokens - sum(len(c) for c in out)]
        if len(piece) > 1:
            out.append(piece)
    return out


def sides_rows(head_dim):
    turns = ["", "+H", "+S"] + (["+H32"] if head_dim > 32 else [])
    names = [n + t for n, f in FORMATS.items() for t in turns if f[0] in (4, 8) and f[3] == GROUP]
    return [(n, "-") for n in names] + [("-", n) for n in names]


def pairs_rows():
    rows = []
    for k, v in (("int8", "int8"), ("int8", "q4_0"), ("int8", "int4-s16"), ("int8", "iq4nl-b16"),
                 ("int8", "cubic-s16"), ("q4_0", "q4_0"), ("q4_1", "q4_1"), ("int4-s16", "int4-s16"),
                 ("iq4nl-b16", "iq4nl-b16"), ("cubic-s16", "cubic-s16")):
        rows += [(k + tk, v + tv) for tk in ("", "+H") for tv in ("", "+H")]
    return rows


def fewer_rows():
    """Three bits on one side, then both sides, then with scales of a byte and with larger groups."""
    three = [n for n, f in FORMATS.items() if f[0] == 3]
    rows = [(n + "+H", "-") for n in three] + [("-", n) for n in three]
    rows += [("cubic-s16+H", "-")] + [("-", "cubic-s16" + t) for t in ("", "+H", "+S")]
    rows += [("-", "cubic3-s16" + t) for t in ("+H", "+S")]
    k8, k4, k3 = "int8+H", "cubic-s16+H", "cubic3-s16+H"
    v8, v4, v3 = "int8", "cubic-s16", "cubic3-s16"
    rows += [(k8, v8), (k8, v4), (k8, v3), (k4, v4), (k4, v4 + "+H"), (k4, v3), (k4, v3 + "+H"),
             (k3, v4), (k3, v3), (k3, v3 + "+H")]
    slim = lambda n, how: n.replace("-s16", "-s16-" + how)
    return rows + [(slim(k, how), slim(v, how)) for how in ("e8", "g64")
                   for k, v in ((k8, v4), (k8, v3), (k4, v4), (k4, v3), (k3, v3))]


def golden_rows(path):
    """Rows of a kv_quant file in our names, with the reference's mean KL."""
    names = {"f16": "f16", "q8": "int8", "q4": "q4_0", "q4m": "q4_1"}
    with open(path) as f:
        rows = json.load(f)["rows"]
    turn = lambda r, side: names[r[side]] + ("+H" if r["rotation"] and r[side] != "f16" else "")
    return [(turn(r, "k"), turn(r, "v"), r["kl_mean"]) for r in rows
            if r["k_domain"] == "post-rope" and r["group"] in ("head", "g32")]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("--ids", required=True)
    ap.add_argument("--tokens", type=int, default=1000)
    ap.add_argument("--context", type=int, default=1000)
    ap.add_argument("--rows", default="sides")
    ap.add_argument("--sinks", type=int, default=4, help="first tokens of a context, kept in f16")
    ap.add_argument("--centre", help="ids of another text, whose means +c takes off")
    ap.add_argument("--json", help="append the rows to this file, one object per line")
    a = ap.parse_args()
    model = Model(a.model)
    chunks = read_chunks(a.ids, a.context, a.tokens)
    means = (None, None)
    if a.centre:
        means = side_means(model, read_chunks(a.centre, a.context, a.tokens))
    compare = Comparison(model, chunks, means)
    golden = {}
    if a.rows == "sides":
        rows = sides_rows(model.head_dim)
    elif a.rows in ("pairs", "fewer"):
        rows = pairs_rows() if a.rows == "pairs" else fewer_rows()
    elif a.rows.endswith(".json"):
        golden = {(k, v): kl for k, v, kl in golden_rows(a.rows)}
        rows = list(golden)
    else:
        rows = [tuple(r.split("/")) for r in a.rows.split(",")]
    print(f"{sum(map(len, chunks))} tokens in {len(chunks)} contexts, head_dim {model.head_dim}, "
          f"sinks {a.sinks}, mean NLL {compare.nll(compare.reference):.4f}\n")
    print("| K | V | bits K | bits V | mean KL | +- | top-1 | dNLL |" + (" reference KL |" if golden else ""))
    print("| --- | --- | --- | --- | --- | --- | --- | --- |" + (" --- |" if golden else ""))
    for k, v in rows:
        kl, error, top, delta = compare(k, v, a.sinks)
        size = [f"{bits(n, model.head_dim):.2f}" if n != "-" else "-" for n in (k, v)]
        more = f" {golden[k, v]:.5f} |" if golden else ""
        print(f"| {k} | {v} | {size[0]} | {size[1]} | {kl:.5f} | {error:.5f} | {top:.3f} | "
              f"{delta:+.4f} |{more}", flush=True)
        if a.json:
            with open(a.json, "a") as f:
                row = dict(model=a.model, tokens=a.tokens, sinks=a.sinks, k=k, v=v, kl=kl,
                           error=error, top1=top, dnll=delta)
                f.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
