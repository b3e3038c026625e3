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


class Packed:
    """A kernels_packed.cpp: `modules` {name: SPIR-V}, `renumbered` names of some of them, `kernels` {name: (module, form)}."""

    def __init__(self, path):
        text = pathlib.Path(path).read_text(encoding="ascii")
        blocks = [lzma.decompress(bytes.fromhex(re.sub(r"0x|[,\s]", "", listing)))
                  for listing in re.findall(r"uint8_t kBlock\d+\[\] = \{\n([^}]*)\}", text)]
        self.modules, self.renumbered = {}, []
        for block, begin, size, is_renumbered, name in re.findall(
                r"\{(\d+), (\d+), (\d+), (true|false)\},  // (\w+)", text):
            code = blocks[int(block)][int(begin):int(begin) + int(size)]
            if is_renumbered == "true":
                code = code_of(renumber_spirv.restored(words_of(code)))
                self.renumbered.append(name)
            self.modules[name] = code
        names = list(self.modules)
        self.kernels = {name: (names[int(module)], tuple(map(int, form.split(", "))))
                        for module, form, name in re.findall(r"\{\d+, (\d+), \{([\d, ]+)\}\},  // (\w+)", text)}


def chosen_lengths(words):
    """Ids of array types whose length depends on an OpSelect of specialisation constants. Excludes the constants of a
    kernel's form, which drivers do not see (platform/vulkan/shader_table.cpp)."""
    decorate, spec_id, first_form = 71, 1, 8
    constant, constants, spec_constant_op, type_array, select, header_words = 43, (41, 42), 52, 28, 169, 5
    chosen, arrays, known, at = set(), [], set(), header_words
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        operands = words[at + 1:at + length]
        if opcode == decorate and operands[1] == spec_id and operands[2] >= first_form:
            known.add(operands[0])
        elif opcode == constant or opcode in constants:
            known.add(operands[1])
        elif opcode == spec_constant_op and known.issuperset(operands[3:]):
            known.add(operands[1])
        elif opcode == spec_constant_op and (operands[2] == select or chosen.intersection(operands[3:])):
            chosen.add(operands[1])
        elif opcode == type_array and operands[2] in chosen:
            arrays.append(operands[0])
        at += length
    return arrays
