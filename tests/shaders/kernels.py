"""Reads kernels_packed.cpp."""
import lzma
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import renumber_spirv  # noqa: E402  # pylint: disable=wrong-import-position

TRACKED = ROOT / "shaders/kernels_packed.cpp"


def words_of(code):
    return list(struct.unpack(f"<{len(code) // 4}I", code))


def code_of(words):
    return struct.pack(f"<{len(words)}I", *words)


def read(path):
    """{name: SPIR-V} of a kernels_packed.cpp, and the names of renumbered ones."""
    text = pathlib.Path(path).read_text(encoding="ascii")
    blocks = [lzma.decompress(bytes.fromhex(re.sub(r"0x|[,\s]", "", listing)))
              for listing in re.findall(r"uint8_t kBlock\d+\[\] = \{\n([^}]*)\}", text)]
    kernels, renumbered = {}, []
    for name, block, begin, size, is_renumbered in re.findall(r'\{"(\w+)", (\d+), (\d+), (\d+), (true|false)\}', text):
        code = blocks[int(block)][int(begin):int(begin) + int(size)]
        if is_renumbered == "true":
            code = code_of(renumber_spirv.restored(words_of(code)))
            renumbered.append(name)
        kernels[name] = code
    return kernels, renumbered


def chosen_lengths(words):
    """Ids of array types whose length depends on an OpSelect of specialisation constants."""
    spec_constant_op, type_array, select, header_words = 52, 28, 169, 5
    chosen, arrays, at = set(), [], header_words
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        operands = words[at + 1:at + length]
        if opcode == spec_constant_op and (operands[2] == select or chosen.intersection(operands[3:])):
            chosen.add(operands[1])
        elif opcode == type_array and operands[2] in chosen:
            arrays.append(operands[0])
        at += length
    return arrays
