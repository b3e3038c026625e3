#!/usr/bin/env python3
"""Writes the test model llama-f32.gguf in other tensor types, as llama.cpp's tool writes them, bit for bit.

    python3 scripts/make_test_models.py LLAMA-F32.gguf FOLDER

writes FOLDER/llama-TYPE.gguf for each TYPE of TYPES, checks its SHA-256 and fails if it differs. Matrices change their
type; vectors stay F32. Arithmetic is that of float: array("f") rounds each result.
"""
import array
import hashlib
import os
import struct
import sys

sys.dont_write_bytecode = True
from make_types import F32, Reader  # noqa: E402

FILE_TYPE = b"general.file_type"
HALF_UP = 0.5


def floats(values):
    """The values, each rounded to the nearest float."""
    return array.array("f", values)


def one(value):
    return floats([value])[0]


def f16(values):
    return struct.pack(f"<{len(values)}e", *values)


def bf16(values):
    """The upper halves of the floats, to nearest, ties to even."""
    words = array.array("I", floats(values).tobytes())
    return array.array("H", ((word + 0x7FFF + (word >> 16 & 1)) >> 16 for word in words)).tobytes()


def nibbles(codes):
    """Byte j holds the low four bits of codes j and j + 16."""
    return bytes(codes[j] & 15 | (codes[j + 16] & 15) << 4 for j in range(16))


def fifth_bits(codes):
    return struct.pack("<I", sum((code >> 4 & 1) << j for j, code in enumerate(codes)))


def symmetric(block, bits):
    """Scale and codes: the first of the largest weights becomes -2^(bits - 1) steps."""
    half = 1 << (bits - 1)
    peak = max(block, key=abs)
    scale = one(peak / -half)
    inverse = one(1 / scale) if scale else 0.0
    steps = floats(x + half + HALF_UP for x in floats(x * inverse for x in block))
    return scale, [min(2 * half - 1, int(step)) for step in steps]


def affine(block, bits):
    """Scale, minimum and codes: the smallest weight is 0, the largest 2^bits - 1."""
    least, most = min(block), max(block)
    scale = one(one(most - least) / ((1 << bits) - 1))
    inverse = one(1 / scale) if scale else 0.0
    scaled = floats(x * inverse for x in floats(x - least for x in block))
    return scale, least, [min((1 << bits) - 1, int(step)) for step in floats(x + HALF_UP for x in scaled)]


def q4_1(block):
    scale, least, codes = affine(block, 4)
    return f16((scale, least)) + nibbles(codes)


def q5_0(block):
    scale, codes = symmetric(block, 5)
    return f16((scale,)) + fifth_bits(codes) + nibbles(codes)


def q5_1(block):
    scale, least, codes = affine(block, 5)
    return f16((scale, least)) + fifth_bits(codes) + nibbles(codes)


# Type: its number, general.file_type, values of a block, the block's bytes, SHA-256 of the file.
TYPES = {
    "f16": (1, 1, 256, f16, "c9811aba21a0cf445e2d9807cea2674de68b271b265e703c649c755711955909"),
    "bf16": (30, 32, 256, bf16, "2ac458b38b2c8616773972cd317b4a041ecaffdaa5c8987749634fb185b702a8"),
    "q4_1": (3, 3, 32, q4_1, "6015a69a2b54c1724bab85a8c7efa1b2df5783744d1d966a66bba3078785e5b7"),
    "q5_0": (6, 8, 32, q5_0, "aeece2827eaf428ff730b26819b9aafcd4778cad2733844892ad9d4772cb586d"),
    "q5_1": (7, 9, 32, q5_1, "64cb02bdc4739cad7a20b402c03bf43021d78eec97ea0bb6f3de0a6da9574e27"),
}


def order(name):
    """Tensors without a layer first, then layer by layer, each by name."""
    parts = name.split(".")
    return (int(parts[1]) if parts[0] == "blk" else -1, name)


def pair(key, value):
    return struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, value)


def metadata(model, file_type):
    """The model's, with the file type at the end, as the tool writes it."""
    begin, end = model.metadata
    old = model.file_type_at - len(pair(FILE_TYPE, 0)) + 4
    rest = model.data[begin:old] + model.data[model.file_type_at + 4:end]
    return rest + pair(b"general.quantization_version", 2) + pair(FILE_TYPE, file_type)


def converted(model, number, file_type, block_values, block_bytes):
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(model.tensors), model.n_keys + 1) + metadata(model, file_type)
    body = b""
    for tensor in sorted(model.tensors, key=lambda tensor: order(tensor.name)):
        kind, data = tensor.kind, tensor.data
        if len(tensor.dims) > 1:
            values = array.array("f", data)
            kind = number
            data = b"".join(block_bytes(values[at:at + block_values]) for at in range(0, len(values), block_values))
        name = tensor.name.encode()
        head += struct.pack("<Q", len(name)) + name
        head += struct.pack(f"<I{len(tensor.dims)}QIQ", len(tensor.dims), *tensor.dims, kind, len(body))
        body += data + bytes(-len(data) % 32)
    return head + bytes(-len(head) % 32) + body


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: make_test_models.py LLAMA-F32.gguf FOLDER")
    model = Reader(sys.argv[1])
    if any(tensor.kind != F32 for tensor in model.tensors):
        sys.exit(f"make_test_models.py: {sys.argv[1]} has tensors that are not F32")
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, (*how, expected) in TYPES.items():
        data = converted(model, *how)
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            sys.exit(f"make_test_models.py: llama-{name}.gguf has the SHA-256 {found}, not {expected}")
        path = os.path.join(sys.argv[2], f"llama-{name}.gguf")
        with open(path + ".part", "wb") as out:
            out.write(data)
        os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
