#!/usr/bin/env python3
"""Writes a model in other tensor types.

    python3 scripts/make_types.py MODEL-q8_0.gguf FOLDER TYPE...

writes FOLDER/MODEL-TYPE.gguf for each TYPE:

    f16     Q8_0 tensors become F16: each weight, dequantised, rounded to the nearest f16
    q4_0    Q8_0 tensors become Q4_0, quantised by the rule of the GGUF format; the embedding and the
            output matrix stay Q8_0

Metadata does not change, except `general.file_type`. MODEL-q8_0.gguf must be a trusted file.

    python3 scripts/make_types.py LLAMA-F32.gguf FOLDER tests

writes the test model in the types of TESTED, FOLDER/llama-TYPE.gguf, as llama.cpp's tool writes them, bit for bit: it
checks the SHA-256 of each and fails if it differs. Matrices change their type; vectors stay F32. Arithmetic is that of
float: array("f") rounds each result.
"""
import argparse
import array
import hashlib
import math
import os
import struct
import sys

F32, F16, Q4_0, Q8_0 = 0, 1, 2, 8  # tensor types; FILE_TYPES: what general.file_type says of such a file
FILE_TYPES = {"f16": (F16, 1), "q4_0": (Q4_0, 2)}
BLOCKS = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34)}  # values and bytes of a block
KEEP_Q8_0 = {Q4_0: ("token_embd.weight", "output.weight")}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9

# -- Blocks ---------------------------------------------------------------------

MAGNITUDES = bytes(min(q, 256 - q) for q in range(256))  # of an int8
SIGNED = tuple(q - 256 if q > 127 else q for q in range(256))


def f16_of_q8_0(block):
    scale, *quants = struct.unpack("<e32b", block)
    return struct.pack("<32e", *[scale * q for q in quants])


def codes_of_peak(peak):
    """int8 -> 4-bit code, where the block's largest weight is `peak` steps.

    The rule is code = min(15, floor(x / d + 8.5)) with d = -max / 8. The scale cancels: x / d = -8 q / peak.
    """
    return bytes(min(15, max(0, (17 * peak - 16 * q) // (2 * peak))) for q in SIGNED)


CODES = {peak: codes_of_peak(peak) for peak in range(-128, 128) if peak != 0}


def q4_0_of_q8_0(block):
    """The first of the largest weights gives the scale; byte j holds weights j and j + 16."""
    scale, = struct.unpack_from("<e", block)
    quants = block[2:]
    magnitudes = quants.translate(MAGNITUDES)
    peak = SIGNED[quants[magnitudes.index(max(magnitudes))]] if scale != 0 else 0
    codes = quants.translate(CODES[peak]) if peak != 0 else bytes([8]) * 32
    low, high = int.from_bytes(codes[:16], "little"), int.from_bytes(codes[16:], "little")
    return struct.pack("<e", scale * peak / -8) + (low | high << 4).to_bytes(16, "little")


CONVERT = {F16: f16_of_q8_0, Q4_0: q4_0_of_q8_0}

# -- The file -------------------------------------------------------------------


class Tensor:
    def __init__(self, name, dims, kind, data):
        self.name, self.dims, self.kind, self.data = name, dims, kind, data

    def as_kind(self, kind):
        if self.kind != Q8_0 or self.name in KEEP_Q8_0.get(kind, ()):
            return self
        convert = CONVERT[kind]
        blocks = (self.data[at:at + 34] for at in range(0, len(self.data), 34))
        return Tensor(self.name, self.dims, kind, b"".join(map(convert, blocks)))


class Reader:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = 4
        self.alignment, self.file_type_at = 32, None
        if self.data[:4] != b"GGUF" or self.take("I") != 3:
            raise ValueError("not a GGUF file of version 3")
        n_tensors, self.n_keys = self.take("Q"), self.take("Q")
        begin = self.at
        for _ in range(self.n_keys):
            self.skip_pair()
        self.metadata = begin, self.at
        infos = [(self.string(), [self.take("Q") for _ in range(self.take("I"))], self.take("I"), self.take("Q"))
                 for _ in range(n_tensors)]
        base = -(-self.at // self.alignment) * self.alignment
        self.tensors = [self.tensor(base, *info) for info in infos]

    def take(self, code):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def skip_value(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            item, n = self.take("I"), self.take("Q")
            for _ in range(n):
                self.skip_value(item)
        else:
            self.take(SCALARS[kind])

    def skip_pair(self):
        key, kind = self.string(), self.take("I")
        if key == "general.file_type":
            self.file_type_at = self.at
        elif key == "general.alignment":
            self.alignment, = struct.unpack_from("<I", self.data, self.at)
        self.skip_value(kind)

    def tensor(self, base, name, dims, kind, offset):
        if kind not in (F32, Q8_0):
            raise ValueError(f"{name} is neither Q8_0 nor F32")
        values, size = BLOCKS[kind]
        begin = base + offset
        return Tensor(name, dims, kind, self.data[begin:begin + math.prod(dims) // values * size])

    def metadata_as(self, file_type):
        begin, end = self.metadata
        data = bytearray(self.data[begin:end])
        if self.file_type_at is not None:
            struct.pack_into("<I", data, self.file_type_at - begin, file_type)
        return data


def write(path, model, type_name):
    kind, file_type = FILE_TYPES[type_name]
    tensors = [tensor.as_kind(kind) for tensor in model.tensors]
    pad = lambda n: bytes(-n % model.alignment)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), model.n_keys) + model.metadata_as(file_type)
    offset = 0
    for tensor in tensors:
        name = tensor.name.encode()
        head += struct.pack("<Q", len(name)) + name
        head += struct.pack(f"<I{len(tensor.dims)}QIQ", len(tensor.dims), *tensor.dims, tensor.kind, offset)
        offset += len(tensor.data) + len(pad(len(tensor.data)))
    partial = f"{path}.part"
    with open(partial, "wb") as out:
        out.write(head + pad(len(head)))
        for tensor in tensors:
            out.write(tensor.data + pad(len(tensor.data)))
    os.replace(partial, path)

# -- The test model ----------------------------------------------------------------

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
TESTED = {
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


def write_tested(path, folder):
    model = Reader(path)
    if any(tensor.kind != F32 for tensor in model.tensors):
        sys.exit(f"make_types.py: {path} has tensors that are not F32")
    os.makedirs(folder, exist_ok=True)
    for name, (*how, expected) in TESTED.items():
        data = converted(model, *how)
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            sys.exit(f"make_types.py: llama-{name}.gguf has the SHA-256 {found}, not {expected}")
        target = os.path.join(folder, f"llama-{name}.gguf")
        with open(target + ".part", "wb") as out:
            out.write(data)
        os.replace(target + ".part", target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("types", metavar="TYPE", nargs="+", choices=[*FILE_TYPES, "tests"], help="f16, q4_0 or tests")
    args = parser.parse_args()
    if "tests" in args.types:
        write_tested(args.model, args.folder)
        return
    ending = "-q8_0.gguf"
    name = os.path.basename(args.model)
    if not name.endswith(ending):
        sys.exit(f"make_types.py: {args.model} does not end in {ending}: name a Q8_0 model that does")
    try:
        model = Reader(args.model)
    except (OSError, ValueError, struct.error) as error:
        sys.exit(f"make_types.py: cannot use {args.model} ({error}): name a Q8_0 GGUF file")
    os.makedirs(args.folder, exist_ok=True)
    for type_name in args.types:
        path = os.path.join(args.folder, f"{name[:-len(ending)]}-{type_name}.gguf")
        write(path, model, type_name)
        print(path)


if __name__ == "__main__":
    main()
