#!/usr/bin/env python3
"""Writes a GGUF file with random weights in the shape of a published model.

    python3 scripts/make_model.py llama-3.2-1b q4_0 OUT.gguf
    python3 scripts/make_model.py --list

For measuring: bytes, load time and speed depend on shapes, tensor types and the vocabulary's size,
all of which are those of the published file; the text that comes out is noise. The weights are drawn
from --seed as blocks of quants, nothing is quantised, so a file takes about as long as writing it.
They are scaled so that logits spread over a few units and the text does not repeat one token.
Vocabularies are made up as well: byte-level BPE (or SentencePiece) with merges, some of them real words.

TYPE is f16, q8_0, q4_0 or q4_k_m. As in published files, the embedding (being the output matrix, too) has
more bits than the rest, and rows that do not divide into blocks of 256 have the type of 32 next to it;
--pure keeps to one type instead. Needs numpy.
"""
import argparse
import dataclasses
import math
import os
import struct
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("make_model.py: numpy is missing: install python3-numpy")

from lib.made_up_vocabulary import add_vocabulary
from lib.model_shapes import SHAPES, tiny

CHUNK_BYTES = 1 << 24  # what is made at a time
ALIGNMENT = 32

# -- GGUF metadata ------------------------------------------------------------

FORMATS = {"uint32": (4, "<I"), "int32": (5, "<i"), "float32": (6, "<f"), "bool": (7, "<?")}
TYPE_STRING, TYPE_ARRAY = 8, 9


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


class Metadata:
    def __init__(self):
        self.count = 0
        self.parts = []

    def add(self, key, kind, value):
        self.count += 1
        self.parts.append(string(key))
        if kind == "string":
            self.parts += [struct.pack("<I", TYPE_STRING), string(value)]
        elif kind == "strings":
            self.parts.append(struct.pack("<IIQ", TYPE_ARRAY, TYPE_STRING, len(value)))
            self.parts += [string(text) for text in value]
        elif kind in ("int32s", "float32s"):
            number, code = FORMATS[kind[:-1]]
            data = np.asarray(value, code[0] + {"i": "i4", "f": "f4"}[code[1]])
            self.parts += [struct.pack("<IIQ", TYPE_ARRAY, number, len(value)), data.tobytes()]
        else:
            number, code = FORMATS[kind]
            self.parts += [struct.pack("<I", number), struct.pack(code, value)]

# -- Tensor types -------------------------------------------------------------

def quantiles(count):
    """The standard normal distribution as `count` values of equal chance, of variance 1."""
    p = (np.arange(count) + 0.5) / count
    grid = np.linspace(-5, 5, 20001)
    mass = np.cumsum(np.exp(-grid * grid / 2))
    values = np.interp(p, mass / mass[-1], grid)
    return values / values.std()


NIBBLE_STD = 2.8
NIBBLES = np.clip(np.rint(8 + NIBBLE_STD * quantiles(16)), 0, 15).astype(np.uint8)
NIBBLE_PAIRS = (NIBBLES[None, :] | NIBBLES[:, None] << 4).reshape(-1).astype(np.uint8)
NIBBLE_STD = float((NIBBLES.astype(float) - 8).std())
INT8 = np.clip(np.rint(42 * quantiles(256)), -127, 127).astype(np.int8)
INT8_STD = float(INT8.astype(float).std())
NORMAL_65536 = quantiles(65536)


def random_bytes(rng, shape):
    return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def halves(rng, count, size, signs=True):
    """f16 scales around `size`, as bytes [count, 2]."""
    scale = rng.uniform(0.8, 1.2, count) * size
    if signs:
        scale *= rng.integers(0, 2, count) * 2 - 1
    return scale.astype(np.float16).view(np.uint8).reshape(-1, 2)


def fill_f16(rng, out, std):
    table = (NORMAL_65536 * std).astype(np.float16)
    out[:] = table[rng.integers(0, 65536, out.size // 2, np.uint16)].view(np.uint8).reshape(out.shape)


def fill_q8_0(rng, out, std):
    out[:, :2] = halves(rng, len(out), std / INT8_STD)
    out[:, 2:] = INT8[random_bytes(rng, (len(out), 32))].view(np.uint8)


def fill_q4_0(rng, out, std):
    out[:, :2] = halves(rng, len(out), std / NIBBLE_STD)
    out[:, 2:] = NIBBLE_PAIRS[random_bytes(rng, (len(out), 16))]


def fill_q5_0(rng, out, std):
    out[:, :2] = halves(rng, len(out), std / 9.2)
    out[:, 2:] = random_bytes(rng, (len(out), 20))


def fill_q4_k(rng, out, std):
    """Eight groups of 32, each with a 6-bit scale and minimum; minimum = 8 scales centres the quants."""
    scale = rng.integers(40, 63, (4096, 8))
    least = scale + rng.integers(-1, 2, scale.shape)
    packed = np.concatenate([scale[:, :4] | scale[:, 4:] >> 4 << 6, least[:, :4] | least[:, 4:] >> 4 << 6,
                             scale[:, 4:] & 15 | (least[:, 4:] & 15) << 4], 1).astype(np.uint8)
    size = halves(rng, len(out), std / (51 * NIBBLE_STD), signs=False)
    out[:, :2] = size
    out[:, 2:4] = (size.view(np.float16) * np.float16(8)).view(np.uint8)
    out[:, 4:16] = packed[rng.integers(0, 4096, len(out))]
    out[:, 16:] = NIBBLE_PAIRS[random_bytes(rng, (len(out), 128))]


def fill_q6_k(rng, out, std):
    """Sixteen groups of 16, each with an 8-bit scale; six random bits have a deviation of 18.5."""
    scales = rng.integers(64, 128, (len(out), 16)) * (rng.integers(0, 2, (len(out), 16)) * 2 - 1)
    out[:, :192] = random_bytes(rng, (len(out), 192))
    out[:, 192:208] = scales.astype(np.int8).view(np.uint8)
    out[:, 208:] = halves(rng, len(out), std / (96 * 18.5))


# name: number in the file, values and bytes of a block, filler
TYPES = {
    "F32": (0, 1, 4, None),
    "F16": (1, 1, 2, fill_f16),
    "Q4_0": (2, 32, 18, fill_q4_0),
    "Q5_0": (6, 32, 22, fill_q5_0),
    "Q8_0": (8, 32, 34, fill_q8_0),
    "Q4_K": (12, 256, 144, fill_q4_k),
    "Q6_K": (14, 256, 210, fill_q6_k),
}
FILE_TYPES = {"f16": ("F16", 1), "q4_0": ("Q4_0", 2), "q8_0": ("Q8_0", 7), "q4_k_m": ("Q4_K", 15)}
NEXT_TO = {"Q4_K": "Q5_0", "Q6_K": "Q8_0"}


def matrix_type(file_type, pure, shape, name, layer, cols):
    base = FILE_TYPES[file_type][0]
    kind = base
    if not pure and base not in ("F16", "Q8_0"):
        blocks = TYPES[base][1]
        first = shape.n_layers // 8
        more_bits = (layer < first or layer >= 7 * shape.n_layers // 8 or (layer - first) % 3 == 2)
        if name == "output.weight" or (shape.tied and name == "token_embd.weight"):
            kind = "Q8_0" if cols % blocks else "Q6_K"
        elif file_type == "q4_k_m" and name in ("attn_v.weight", "ffn_down.weight") and more_bits:
            kind = "Q6_K"
    return NEXT_TO[kind] if cols % TYPES[kind][1] else kind

# -- Tensors ------------------------------------------------------------------

@dataclasses.dataclass
class Tensor:
    name: str
    kind: str
    dims: tuple  # row length first
    std: float = 0.0
    values: object = None  # F32 only: all of them

    @property
    def n_bytes(self):
        _, values, size, _ = TYPES[self.kind]
        return math.prod(self.dims) // values * size


def llama3_factors(head_dim, theta, factor, low=1.0, high=4.0, trained=8192):
    """What Llama 3.x divides its frequencies by: long waves by `factor`, short ones by 1."""
    wave = 2 * np.pi * theta ** (np.arange(0, head_dim, 2) / head_dim)
    blend = np.clip((trained / wave - low) / (high - low), 0, 1)
    return (1 / ((1 - blend) / factor + blend)).astype(np.float32)


def key_bias(rng, shape, layer):
    """Biases of Qwen2.5: far beyond everything else in a few channels of the first and last layer."""
    bias = rng.normal(0, 2, shape.n_kv_heads * shape.head_dim)
    if layer in (0, shape.n_layers - 1):
        bias[rng.choice(bias.size, 6, replace=False)] = rng.choice([-1, 1], 6) * rng.uniform(150, 350, 6)
    return bias


def list_tensors(shape, file_type, pure, rng):
    tensors = []
    embd, ff, query = shape.n_embd, shape.n_ff, shape.n_heads * shape.head_dim
    keys = shape.n_kv_heads * shape.head_dim
    # What each half of a layer adds to the residual stream: enough in all to drown the token's own
    # embedding, which would else be its own successor.
    branch = math.sqrt(3 / shape.n_layers)
    # Gemma scales embeddings by sqrt(width) and norms what is added; others norm that alone.
    gemma = shape.arch in ("gemma2", "gemma3")
    post_norms_only = shape.arch in ("exaone4", "olmo2")
    post_norm = 2.5 * math.sqrt(embd / (2 * shape.n_layers)) if gemma else branch
    # Multipliers are made up for where they apply.
    scale = {"embedding_scale": 1.0, "residual_scale": 1.0, "logit_scale": 1.0,
             "attention.scale": 1 / math.sqrt(shape.head_dim), **shape.scales}
    branch /= scale["residual_scale"]
    query_gain = 1.5 / math.sqrt(scale["attention.scale"] * math.sqrt(shape.head_dim))

    def matrix(name, cols, rows, gain, layer=None):
        full = name if layer is None else f"blk.{layer}.{name}"
        kind = matrix_type(file_type, pure, shape, name, layer or 0, cols)
        tensors.append(Tensor(full, kind, (cols, rows), gain / math.sqrt(cols)))

    def vector(name, values, layer=None):
        full = name if layer is None else f"blk.{layer}.{name}"
        values = np.asarray(values, np.float32)
        tensors.append(Tensor(full, "F32", values.shape, values=values))

    def norm(name, size, layer=None, gain=1.0):
        vector(name, gain * rng.uniform(0.8, 1.2, size), layer)

    matrix("token_embd.weight", embd, shape.n_vocab, 2.5 / scale["embedding_scale"])
    if shape.llama3_factor:
        vector("rope_freqs.weight", llama3_factors(shape.head_dim, shape.theta, shape.llama3_factor))
    if shape.extra.get("rope.scaling.type") == ("string", "longrope"):
        for length in ("long", "short"):
            vector(f"rope_factors_{length}.weight", np.linspace(1, 30, shape.head_dim // 2))
    for layer in range(shape.n_layers):
        if not post_norms_only:
            norm("attn_norm.weight", embd, layer)
        if shape.attends(layer):
            matrix("attn_q.weight", embd, query, query_gain, layer)
            matrix("attn_k.weight", embd, keys, query_gain, layer)
            matrix("attn_v.weight", embd, keys, 1.5, layer)
            matrix("attn_output.weight", query, embd, branch, layer)
        else:
            matrix("shortconv.in_proj.weight", embd, 3 * embd, 1.5, layer)
            taps = rng.normal(0, 0.6, 3 * embd).astype(np.float32)
            tensors.append(Tensor(f"blk.{layer}.shortconv.conv.weight", "F32", (3, embd), values=taps))
            matrix("shortconv.out_proj.weight", embd, embd, branch / 2, layer)
        if shape.arch == "qwen2":
            vector("attn_q.bias", rng.normal(0, 1, query), layer)
            vector("attn_k.bias", key_bias(rng, shape, layer), layer)
            vector("attn_v.bias", rng.normal(0, 0.1, keys), layer)
        if shape.arch in ("qwen3", "gemma3", "hunyuan-dense", "exaone4", "lfm2") and shape.attends(layer):
            norm("attn_q_norm.weight", shape.head_dim, layer, 1.5)
            norm("attn_k_norm.weight", shape.head_dim, layer, 1.5)
        if shape.arch == "olmo2":
            norm("attn_q_norm.weight", query, layer, 1.5)
            norm("attn_k_norm.weight", keys, layer, 1.5)
        if gemma or post_norms_only:
            norm("post_attention_norm.weight", embd, layer, post_norm)
        if not post_norms_only:
            norm("ffn_norm.weight", embd, layer)
        matrix("ffn_gate.weight", embd, ff, 1.0, layer)
        matrix("ffn_up.weight", embd, ff, 1.0, layer)
        matrix("ffn_down.weight", ff, embd, branch / 0.6, layer)
        if gemma or post_norms_only:
            norm("post_ffw_norm.weight", embd, layer, post_norm)
    norm("token_embd_norm.weight" if shape.arch == "lfm2" else "output_norm.weight", embd,
         gain=scale["logit_scale"] * (scale["embedding_scale"] if shape.tied else 1))
    if not shape.tied:
        matrix("output.weight", embd, shape.n_vocab, 2.5)
    return tensors


def write_tensor(out, tensor, seed):
    _, block_values, block_bytes, fill = TYPES[tensor.kind]
    if tensor.values is not None:
        out.write(tensor.values.astype("<f4").tobytes())
    else:
        rng = np.random.Generator(np.random.SFC64(seed))
        blocks = math.prod(tensor.dims) // block_values
        step = max(1, CHUNK_BYTES // block_bytes)
        for begin in range(0, blocks, step):
            chunk = np.empty((min(step, blocks - begin), block_bytes), np.uint8)
            fill(rng, chunk, tensor.std)
            out.write(chunk)
    out.write(bytes(-tensor.n_bytes % ALIGNMENT))

# -- The file -----------------------------------------------------------------

def metadata(shape, file_type, pre, rng):
    meta = Metadata()
    meta.add("general.architecture", "string", shape.arch)
    meta.add("general.type", "string", "model")
    meta.add("general.name", "string", f"{shape.name} shape, random weights")
    meta.add("general.license", "string", "cc0-1.0")
    meta.add("general.file_type", "uint32", FILE_TYPES[file_type][1])
    meta.add("general.quantization_version", "uint32", 2)
    counts = {"block_count": shape.n_layers, "context_length": shape.context,
              "embedding_length": shape.n_embd, "feed_forward_length": shape.n_ff,
              "attention.head_count": shape.n_heads}
    if shape.kv_list:
        meta.add(f"{shape.arch}.attention.head_count_kv", "int32s", shape.kv_heads_by_layer())
    else:
        counts["attention.head_count_kv"] = shape.n_kv_heads
    if shape.says_head_dim:
        counts.update({"attention.key_length": shape.head_dim,
                       "attention.value_length": shape.head_dim})
    if shape.arch == "llama":
        counts.update({"vocab_size": shape.n_vocab, "rope.dimension_count": shape.head_dim})
    if shape.local_window:
        counts["attention.sliding_window"] = shape.local_window
    for name, value in counts.items():
        meta.add(f"{shape.arch}.{name}", "uint32", value)
    meta.add(f"{shape.arch}.rope.freq_base", "float32", shape.theta)
    meta.add(f"{shape.arch}.attention.layer_norm_rms_epsilon", "float32", shape.epsilon)
    for name, value in shape.scales.items():
        meta.add(f"{shape.arch}.{name}", "float32", value)
    for name, (kind, value) in shape.extra.items():
        meta.add(f"{shape.arch}.{name}", kind, value)
    add_vocabulary(meta, shape.vocabulary, shape.n_vocab, pre, rng)
    return meta


def write_model(path, shape, file_type, pure, pre, seed):
    rng = np.random.default_rng(seed)
    meta = metadata(shape, file_type, pre, rng)
    tensors = list_tensors(shape, file_type, pure, rng)
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), meta.count), *meta.parts]
    offset = 0
    for tensor in tensors:
        head += [string(tensor.name), struct.pack("<I", len(tensor.dims)),
                 struct.pack(f"<{len(tensor.dims)}Q", *tensor.dims),
                 struct.pack("<IQ", TYPES[tensor.kind][0], offset)]
        offset += tensor.n_bytes + -tensor.n_bytes % ALIGNMENT
    head = b"".join(head)
    partial = f"{path}.part"
    with open(partial, "wb") as out:
        out.write(head + bytes(-len(head) % ALIGNMENT))
        for number, tensor in enumerate(tensors):
            write_tensor(out, tensor, [seed, number])
    os.replace(partial, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", metavar="SHAPE", nargs="?", help="see --list")
    parser.add_argument("type", metavar="TYPE", nargs="?", choices=FILE_TYPES,
                        help="f16, q8_0, q4_0 or q4_k_m")
    parser.add_argument("out", metavar="OUT.gguf", nargs="?")
    parser.add_argument("--list", action="store_true", help="print the shapes")
    parser.add_argument("--pure", action="store_true", help="one type for every matrix")
    parser.add_argument("--pre", help="the pre-tokenizer to name instead of the family's own")
    parser.add_argument("--layers", type=int, help="so many layers instead of all")
    parser.add_argument("--tiny", action="store_true", help="a few MB of the same kind, for tests")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.list:
        for shape in SHAPES:
            print(f"{shape.name.lower():16} {shape.arch:13} {shape.n_layers} layers, width {shape.n_embd}, "
                  f"heads {shape.n_heads}:{shape.n_kv_heads} of {shape.head_dim}, {shape.n_vocab} tokens")
        return
    if args.out is None:
        parser.error("SHAPE, TYPE and OUT.gguf are needed")
    shapes = {shape.name.lower(): shape for shape in SHAPES}
    if args.shape.lower() not in shapes:
        parser.error(f"no shape {args.shape}: it is one of {', '.join(shapes)}")
    shape = shapes[args.shape.lower()]
    if args.tiny:
        shape = tiny(shape)
    if args.layers:
        shape = dataclasses.replace(shape, n_layers=args.layers)
    write_model(args.out, shape, args.type, args.pure, args.pre, args.seed)


if __name__ == "__main__":
    main()
