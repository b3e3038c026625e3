#!/usr/bin/env python3
"""Writes a GGUF file with random weights in the shape of a published model.

    python3 scripts/make_model.py llama-3.2-1b q4_0 OUT.gguf
    python3 scripts/make_model.py --list

For measuring: bytes, load time and speed depend on shapes, tensor types and the vocabulary's size,
and these match the published file; the generated text is noise. The weights are drawn
from --seed as blocks of quants, without quantisation, so making a file takes about as long as writing it.
They are scaled so that logits spread over a few units and the text does not repeat one token.
Vocabularies are made up as well: byte-level BPE (or SentencePiece) with merges, some of them real words.

TYPE is f16, q8_0, q4_0 or q4_k_m. As in published files, the embedding (which is also the output matrix) has more
bits than the rest, and rows that do not divide into blocks of 256 have the similar type with blocks of 32;
--pure keeps to one type instead. Needs numpy.
"""
import argparse
import math
import os
import struct
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("make_model.py: numpy is missing: install python3-numpy")

from lib.made_up_vocabulary import add_vocabulary
from lib.model_shapes import SHAPES, file_keys, tiny, with_layers, with_prediction, with_vocabulary
from lib.model_tensors import FILE_TYPES, TYPES, list_tensors

CHUNK_BYTES = 1 << 24  # size of one written piece
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
        elif kind.endswith("s"):
            number, code = FORMATS[kind[:-1]]
            data = np.asarray(value, code[0] + {"i": "i4", "f": "f4", "?": "u1"}[code[1]])
            self.parts += [struct.pack("<IIQ", TYPE_ARRAY, number, len(value)), data.tobytes()]
        else:
            number, code = FORMATS[kind]
            self.parts += [struct.pack("<I", number), struct.pack(code, value)]

# -- Tensors --------------------------------------------------------------------

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
    for name, (kind, value) in file_keys(shape).items():
        meta.add(f"{shape.arch}.{name}", kind, value)
    add_vocabulary(meta, shape.vocabulary, shape.n_vocab, pre, rng)
    return meta


def write_model(path, shape, file_type, pure, pre, seed, hollow=False):
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
            if hollow and tensor.values is None:
                out.truncate(out.seek(tensor.n_bytes + -tensor.n_bytes % ALIGNMENT, os.SEEK_CUR))
                continue
            write_tensor(out, tensor, [seed, number])
    os.replace(partial, path)


def main(words=None):
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
    parser.add_argument("--vocab", type=int, help="so many tokens (at least 1024) instead of all")
    parser.add_argument("--prediction", action="store_true", help="with a prediction block (Qwen 3.5)")
    parser.add_argument("--tiny", action="store_true", help="a few MB of the same kind, for tests")
    parser.add_argument("--hollow", action="store_true", help="no weights but a hole in the file: enough for plans")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(words)
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
        shape = with_layers(shape, args.layers)
    if args.vocab:
        shape = with_vocabulary(shape, args.vocab)
    if args.prediction:
        shape = with_prediction(shape)
    write_model(args.out, shape, args.type, args.pure, args.pre, args.seed, args.hollow)


if __name__ == "__main__":
    main()
