"""Types of tensors, which of them a matrix has in a file of a kind, and what fills them, for make_model.py."""
import numpy as np


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


def fill_bf16(rng, out, std):
    table = ((NORMAL_65536 * std).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
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
    "BF16": (30, 1, 2, fill_bf16),
}
FILE_TYPES = {"f16": ("F16", 1), "q4_0": ("Q4_0", 2), "q8_0": ("Q8_0", 7), "q4_k_m": ("Q4_K", 15)}
NEXT_TO = {"Q4_K": "Q5_0", "Q6_K": "Q8_0"}
KEPT = {"per_layer_model_proj.weight": "BF16"}  # quantisers keep the original type
MORE_BITS = ("attn_v.weight", "ffn_down.weight", "ffn_down_exps.weight")


def matrix_type(file_type, pure, shape, name, layer, cols):
    if name in KEPT:
        return KEPT[name]
    base = FILE_TYPES[file_type][0]
    kind = base
    if not pure and base not in ("F16", "Q8_0"):
        blocks = TYPES[base][1]
        first = shape.n_layers // 8
        more_bits = (layer < first or layer >= 7 * shape.n_layers // 8 or (layer - first) % 3 == 2)
        if name == "output.weight" or (shape.tied and name == "token_embd.weight"):
            kind = "Q8_0" if cols % blocks else "Q6_K"
        elif file_type == "q4_k_m" and name in MORE_BITS and more_bits:
            kind = "Q6_K"
    return NEXT_TO[kind] if cols % TYPES[kind][1] else kind

