"""Rewrites SPIR-V so that variants of a kernel look alike to a compressor: a tenth of the size when packed.

    renumber_spirv.py OUTPUT_FOLDER NAME=FILE...

Writes OUTPUT_FOLDER/NAME for each, as many words as FILE has, and prints the names of those that are rewritten. The
others are copied: they have instructions that are not in the table below.

Two steps. First ids are numbered anew, which changes no meaning: what is declared once for a module (types, constants,
variables) has the same number in all modules where it is declared alike, and what functions define is numbered in its
order. Then, from the first function on, the numbers of the second kind are written as distances: a result as RESULT +
its distance from the result before, another id as OTHER + its distance back from the latest result. The library undoes
the second step (platform/vulkan/shader_table.cpp).
"""

import collections
import pathlib
import struct
import sys

RESULT = 0x80000000
OTHER = 0x40000000
REACH = 0x8000  # distances are shorter
HEADER_WORDS = 5

NAME, EXT_IMPORT, ENTRY_POINT, DECORATE, MEMBER_DECORATE, FUNCTION = 5, 11, 15, 71, 72, 54
SPEC_CONSTANT_OP, COMPOSITE_EXTRACT, COMPOSITE_INSERT, SHUFFLE = 52, 81, 82, 79
SWITCH = 251
ALIGNED = 2

# The operands of instructions: t the type of the result, r the result, i an id, l a literal, m memory operands. A star
# repeats the letter before it. From the SPIR-V specification, section 3.
OPERANDS = {
    10: "l*", 11: "rl*", 14: "ll", 16: "il*", 17: "l", 71: "ill*", 72: "illl*",
    19: "r", 20: "r", 21: "rll", 22: "rl", 23: "ril", 24: "ril", 25: "ril*", 28: "rii", 29: "ri", 30: "ri*",
    32: "rli", 33: "ri*",
    41: "tr", 42: "tr", 43: "trl*", 44: "tri*", 46: "tr", 48: "tr", 49: "tr", 50: "trl*", 51: "tri*", 52: "trli*",
    54: "trli", 55: "tr", 56: "", 57: "tri*", 59: "trl", 61: "trim", 62: "iim", 65: "tri*", 77: "trii",
    79: "triil*", 80: "tri*", 81: "tril*", 82: "triil*", 98: "tri*",
    12: "trili*", 224: "iii",
    245: "tri*", 246: "iil", 247: "il", 248: "r", 249: "i", 250: "iiil*", 252: "", 253: "", 254: "i", 255: "",
    4450: "triil",
    4456: "riiiii", 4457: "triiim", 4458: "iiiim", 4459: "triii",  # matrix units
}
# Arithmetic, comparisons, conversions, atomics, group operations: a result of ids.
for code in (*range(109, 152), *range(154, 192), *range(194, 206), *range(227, 243), 333, 334, 335, 336, 337, 345):
    OPERANDS[code] = "tri*"
for code in range(349, 365):  # OpGroupNonUniformIAdd and the like
    OPERANDS[code] = "trili*"


class Unknown(Exception):
    """Something whose operands are not known."""


def string_words(words):
    for count, word in enumerate(words, 1):
        if not all(word >> shift & 0xFF for shift in (0, 8, 16, 24)):
            return count
    raise Unknown("a string without an end")


def memory_operands(words):
    """A mask, an alignment if the mask says so, and ids of scopes."""
    literals = 0 if not words else 2 if words[0] & ALIGNED else 1
    return "l" * literals + "i" * (len(words) - literals)


def check(code, operands):
    if code == EXT_IMPORT and struct.pack(f"<{len(operands) - 1}I", *operands[1:]).rstrip(b"\0") != b"GLSL.std.450":
        raise Unknown("another set of instructions")
    if code == SPEC_CONSTANT_OP and operands[2] in (COMPOSITE_EXTRACT, COMPOSITE_INSERT, SHUFFLE):
        raise Unknown("literals in a constant's operation")


def roles(code, operands):
    """A letter for each operand."""
    if code == ENTRY_POINT:
        name = string_words(operands[2:])
        return "li" + "l" * name + "i" * (len(operands) - 2 - name)
    if code == SWITCH:  # the selector, the default, then a number and a label for each case
        return "ii" + "li" * (len(operands) // 2 - 1)
    if code not in OPERANDS:
        raise Unknown(f"instruction {code}")
    check(code, operands)
    pattern = OPERANDS[code]
    if pattern.endswith("m"):
        return pattern[:-1] + memory_operands(operands[len(pattern) - 1:])
    if pattern.endswith("*"):
        return (pattern[:-2] + pattern[-2] * len(operands))[:len(operands)]
    if len(pattern) != len(operands) and not (code == 59 and len(operands) == 4):
        raise Unknown(f"operands of instruction {code}")
    return (pattern + "i")[:len(operands)]


def parse(words):
    """[(code, operands, roles)] of a module."""
    instructions = []
    at = HEADER_WORDS
    while at < len(words):
        length = words[at] >> 16
        if length == 0 or at + length > len(words):
            raise Unknown("an instruction's length")
        operands = words[at + 1:at + length]
        code = words[at] & 0xFFFF
        instructions.append((code, operands, roles(code, operands)))
        at += length
    return instructions


def first_function(instructions):
    return next(i for i, (code, _, _) in enumerate(instructions) if code == FUNCTION)


def number_declarations(instructions, numbers):
    """{id: number} of declarations outside functions. New declarations are added to `numbers`."""
    decorations = collections.defaultdict(list)
    for code, operands, _ in instructions:
        if code in (DECORATE, MEMBER_DECORATE):
            decorations[operands[0]].append((code, *operands[1:]))
    numbered = {}
    taken = set()
    for code, operands, letters in instructions[:first_function(instructions)]:
        if "r" not in letters:
            continue
        result = operands[letters.index("r")]
        like = tuple(numbered[word] if letter in "ti" else word
                     for letter, word in zip(letters, operands) if letter != "r")
        key = (code, like, tuple(sorted(decorations[result])))
        alike = 0
        while numbers.setdefault((key, alike), len(numbers) + 1) in taken:
            alike += 1
        numbered[result] = numbers[key, alike]
        taken.add(numbered[result])
    return numbered


def number_results(instructions, numbered, first):
    """Adds what functions define; gives the first number that is free back."""
    for _, operands, letters in instructions[first_function(instructions):]:
        if "r" in letters:
            numbered[operands[letters.index("r")]] = first
            first += 1
    return first


def renumbered(words, instructions, numbered, bound):
    out = [*words[:3], bound, *words[4:HEADER_WORDS]]
    for code, operands, letters in instructions:
        out.append(len(operands) + 1 << 16 | code)
        out += [word if letter == "l" else numbered[word] for letter, word in zip(letters, operands)]
    return out


def distances(words, instructions, first):
    out = words[:]
    at = HEADER_WORDS
    latest = 0
    begin = first_function(instructions)
    for i, (_, operands, letters) in enumerate(instructions):
        for k, letter in enumerate(letters if i >= begin else "", at + 1):
            if letter == "r":
                out[k] = RESULT + words[k] - latest
                latest = words[k]
            elif letter != "l" and words[k] >= first:
                out[k] = OTHER + latest - words[k]
        at += len(operands) + 1
    return out


def restored(words):
    """The words that the library restores."""
    out = words[:]
    at = HEADER_WORDS
    latest = 0
    inside = False
    while at < len(out):
        inside = inside or out[at] & 0xFFFF == FUNCTION
        length = out[at] >> 16
        for k in range(at + 1, at + length if inside else at):
            if 0 < out[k] - RESULT < REACH:
                latest += out[k] - RESULT
                out[k] = latest
            elif abs(out[k] - OTHER) < REACH:
                out[k] = latest - (out[k] - OTHER)
        at += length
    return out


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    modules = {}
    for argument in sys.argv[2:]:
        name, file = argument.split("=", 1)
        code = pathlib.Path(file).read_bytes()
        modules[name] = list(struct.unpack(f"<{len(code) // 4}I", code))

    numbers = {}
    parsed = {}
    for name, words in modules.items():
        try:
            instructions = parse(words)
            parsed[name] = instructions, number_declarations(instructions, numbers)
        except (Unknown, KeyError, StopIteration) as why:
            print(f"{name} is packed as it is: {why}", file=sys.stderr)

    first = len(numbers) + 1
    for name, words in modules.items():
        out = words
        if name in parsed:
            instructions, numbered = parsed[name]
            bound = number_results(instructions, numbered, first)
            plain = renumbered(words, instructions, numbered, bound)
            far = distances(plain, instructions, first)
            if restored(far) == plain and bound < REACH:
                out = far
                print(name)
        (folder / name).write_bytes(struct.pack(f"<{len(out)}I", *out))


if __name__ == "__main__":
    main()
