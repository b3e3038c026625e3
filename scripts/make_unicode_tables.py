#!/usr/bin/env python3
"""Writes runtime/text/unicode_tables.cpp and normal_tables.cpp from the Unicode Character Database.

usage: scripts/make_unicode_tables.py [FOLDER]

FOLDER holds UnicodeData.txt, PropList.txt, Scripts.txt and DerivedNormalizationProps.txt (the package unicode-data
puts them in
/usr/share/unicode). The result is committed: building Oriel needs neither this script nor the data.

One class of four bits per code point, in a three-stage table: blocks of 16 code points and rows of 32 blocks; equal
blocks are stored once. White space is the property White_Space, which contains every separator (Z*), so it
takes the separators' place among the general categories.

For NFC: canonical decompositions in steps of two code points, with separate tables for 16-bit code points and for CJK
compatibility ideographs; the order of the pairs that compose again, combining classes, and other code points that NFC may change.
"""

import re
import sys
from pathlib import Path

CODE_POINTS = 0x110000
BLOCK = 16
ROW = 32
# Must match the order of CharClass in runtime/text/unicode.h.
(OTHER, UPPER, LOWER, TITLE, MODIFIER, LETTER, MARK, DIGIT, NUMBER, PUNCTUATION, SYMBOL,
 SPACE) = range(12)
EXACT = {"Lu": UPPER, "Ll": LOWER, "Lt": TITLE, "Lm": MODIFIER, "Lo": LETTER, "Nd": DIGIT}
BY_GROUP = {"M": MARK, "N": NUMBER, "P": PUNCTUATION, "S": SYMBOL, "Z": SPACE, "C": OTHER}


def read_classes(folder):
    classes = bytearray(CODE_POINTS)
    first = None
    for line in (folder / "UnicodeData.txt").read_text(encoding="utf-8").splitlines():
        fields = line.split(";")
        code, name, category = int(fields[0], 16), fields[1], fields[2]
        begin = code
        if name.endswith(", First>"):
            first = code
            continue
        if name.endswith(", Last>"):
            begin = first
        kind = EXACT.get(category, BY_GROUP.get(category[0]))
        for point in range(begin, code + 1):
            classes[point] = kind
    separators = {p for p in range(CODE_POINTS) if classes[p] == SPACE}
    spaces = set()
    properties = (folder / "PropList.txt").read_text(encoding="utf-8")
    space_line = re.compile(r"^([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*; White_Space\b", re.M)
    for match in space_line.finditer(properties):
        spaces.update(range(int(match[1], 16), int(match[2] or match[1], 16) + 1))
    if not separators <= spaces:
        sys.exit("a separator is not white space any more: give them classes of their own")
    for point in spaces:
        classes[point] = SPACE
    version = re.match(r"# PropList-([0-9.]+)\.txt", properties)[1]
    return classes, version


def read_spacing_marks(folder):
    """Marks that take room of their own (Mc) or enclose others (Me), as ranges."""
    return ranges_of({int(fields[0], 16)
                      for fields in (line.split(";") for line in (folder / "UnicodeData.txt").read_text(
                          encoding="utf-8").splitlines()) if fields[2] in ("Mc", "Me")})


def read_script(folder, name):
    """Ranges of code points, joined where they touch."""
    text = (folder / "Scripts.txt").read_text(encoding="utf-8")
    line = re.compile(rf"^([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*; {name}\b", re.M)
    ranges = []
    for first, last in sorted((int(m[1], 16), int(m[2] or m[1], 16)) for m in line.finditer(text)):
        if ranges and ranges[-1][1] + 1 == first:
            ranges[-1][1] = last
        else:
            ranges.append([first, last])
    return ranges


def read_normal(folder):
    """Canonical decompositions, combining classes, and which code points NFC may change or leaves out."""
    decompositions, classes = {}, {}
    for line in (folder / "UnicodeData.txt").read_text(encoding="utf-8").splitlines():
        fields = line.split(";")
        if fields[3] != "0":
            classes[int(fields[0], 16)] = int(fields[3])
        if fields[5] and not fields[5].startswith("<"):
            decompositions[int(fields[0], 16)] = [int(part, 16) for part in fields[5].split()]
    text = (folder / "DerivedNormalizationProps.txt").read_text(encoding="utf-8")

    def points(of):
        found = re.finditer(rf"^([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*; {of}\b", text, re.M)
        return {p for m in found for p in range(int(m[1], 16), int(m[2] or m[1], 16) + 1)}

    changed = points("NFC_QC; [NM]") | set(classes)
    return decompositions, classes, changed, points("Full_Composition_Exclusion")


def ranges_of(points, value=lambda point: None):
    """[first, last, value] of points that follow each other with the same value."""
    ranges = []
    for point in sorted(points):
        if ranges and ranges[-1][1] + 1 == point and ranges[-1][2] == value(point):
            ranges[-1][1] = point
        else:
            ranges.append([point, point, value(point)])
    return ranges


def write_normal(folder, version, target):
    decompositions, classes, changed, excluded = read_normal(folder)
    # Two blocks of ideographs have one other ideograph each: their low 16 bits, and which lie in plane 2.
    ideographs = [(0xF900, 0xFADA), (0x2F800, 0x2FA1E)]
    singles, plane_2 = [], []
    for first, end in ideographs:
        for code in range(first, end):
            only = decompositions.pop(code, [0])[0]
            if only >> 16 not in (0, 2):
                sys.exit("an ideograph is in another plane: the table has no place for it")
            singles.append(only & 0xFFFF)
            if only >> 16:
                plane_2.append(len(singles) - 1)
    masks = [0] * ((len(singles) + 7) // 8)
    for number in plane_2:
        masks[number // 8] |= 1 << number % 8
    steps = [(code, *(parts + [0])[:2]) for code, parts in sorted(decompositions.items())]
    narrow = [step for step in steps if max(step) < 0x10000]
    wide = [step for step in steps if max(step) >= 0x10000]
    # Steps that compose again come first.
    composing = sorted({step[2] for step in narrow if step[0] not in excluded})
    others = sorted({step[2] for step in narrow if step[0] in excluded})
    seconds = composing + others
    if len(seconds) > 256:
        sys.exit("more than 256 second code points: their numbers need 16 bits")
    numbers = [seconds.index(step[2], len(composing) if step[0] in excluded else 0) for step in narrow]
    wide.sort(key=lambda step: (step[0] in excluded, step[0]))
    if wide != sorted(wide):
        sys.exit("wide steps that compose do not come first: mark them")
    wide_composing = len([step for step in wide if step[0] not in excluded])
    combining = ranges_of(classes, classes.get)
    others = ranges_of(changed - set(classes))

    def hexes(values):
        return rows([f"0x{value:X}" for value in values], 100)

    target.write_text(
        f"""// Written by scripts/make_unicode_tables.py; do not edit.
// From the Unicode Character Database {version}.
// clang-format off
#include "text/normalise.h"

namespace oriel_internal {{

const uint16_t kDecomposed[] = {{
{hexes([step[0] for step in narrow])}
}};
const uint16_t kDecomposedFirst[] = {{
{hexes([step[1] for step in narrow])}
}};
const uint8_t kDecomposedSecond[] = {{
{rows(numbers, 100)}
}};
const uint16_t kSeconds[] = {{
{hexes(seconds)}
}};
const uint32_t kComposingSecondCount = {len(composing)};
const uint32_t kDecomposedCount = {len(narrow)};

const WideDecomposition kWideDecompositions[] = {{
{rows(["{%s}" % ", ".join(f"0x{part:X}" for part in step) for step in wide], 100)}
}};
const uint32_t kWideDecompositionCount = {len(wide)};
const uint32_t kWideCompositionCount = {wide_composing};

const uint16_t kIdeographs[] = {{
{hexes(singles)}
}};
const uint8_t kIdeographsOfPlane2[] = {{
{rows(masks, 100)}
}};

const uint32_t kCombining[] = {{
{hexes([first << 8 | kind for first, _, kind in combining])}
}};
const uint8_t kCombiningCounts[] = {{
{rows([last - first + 1 for first, last, _ in combining], 100)}
}};
const uint32_t kCombiningRangeCount = {len(combining)};

const CodePointRange kOthersChangedByNfc[] = {{
{rows(["{0x%X, 0x%X}" % tuple(one[:2]) for one in others], 100)}
}};
const uint32_t kOthersChangedByNfcCount = {len(others)};

}}  // namespace oriel_internal
""",
        encoding="utf-8",
    )
    return (5 * len(narrow) + 2 * len(seconds) + 12 * len(wide) + 2 * len(singles) + len(masks) +
            5 * len(combining) + 8 * len(others))


def rows(values, width):
    lines = []
    line = "   "
    for value in values:
        text = f" {value},"
        if len(line) + len(text) > width:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join(lines + [line])


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")
    classes, version = read_classes(folder)
    blocks, block_rows, index = {}, {}, []
    for begin in range(0, CODE_POINTS, BLOCK * ROW):
        row = tuple(blocks.setdefault(bytes(classes[at : at + BLOCK]), len(blocks))
                    for at in range(begin, begin + BLOCK * ROW, BLOCK))
        index.append(block_rows.setdefault(row, len(block_rows)))
    # The tail in which every row is the same one is not stored.
    while len(index) > 1 and index[-1] == index[-2]:
        index.pop()
    if len(block_rows) > 256:
        sys.exit("more than 256 different rows: the index needs 16 bits")
    packed = []
    for block in blocks:
        packed += [block[i] | block[i + 1] << 4 for i in range(0, BLOCK, 2)]
    marks = [f"0x{first << 8 | (last + 1 - first):X}" for first, last, _ in read_spacing_marks(folder)]
    han = ["{%s}" % ", ".join(f"0x{point:X}" for point in one) for one in read_script(folder, "Han")]
    target = Path(__file__).resolve().parent.parent / "runtime/text/unicode_tables.cpp"
    target.write_text(
        f"""// Written by scripts/make_unicode_tables.py; do not edit.
// From the Unicode Character Database {version}.
// clang-format off
#include "text/unicode.h"

namespace oriel_internal {{

// Number of the row that holds code points [512 * i, 512 * (i + 1)); the last entry stands for
// all that follow.
const uint8_t kUnicodeRowIndex[] = {{
{rows(index, 100)}
}};
const uint32_t kUnicodeRowIndexSize = {len(index)};

// {len(block_rows)} rows of 32 numbers of blocks.
const uint16_t kUnicodeRows[] = {{
{rows([number for row in block_rows for number in row], 100)}
}};

// {len(blocks)} blocks of 16 code points, two CharClass values a byte, the even code point in the
// low half.
const uint8_t kUnicodeBlocks[] = {{
{rows(packed, 100)}
}};

// The script Han.
const CodePointRange kHanRanges[] = {{
{rows(han, 100)}
}};
const uint32_t kHanRangeCount = {len(han)};

// Marks that are not Mn: first << 8 | how many.
const uint32_t kSpacingMarks[] = {{
{rows(marks, 100)}
}};
const uint32_t kSpacingMarkCount = {len(marks)};

}}  // namespace oriel_internal
""",
        encoding="utf-8",
    )
    normal = write_normal(folder, version, target.with_name("normal_tables.cpp"))
    print(f"Unicode {version}: {len(blocks)} blocks, {len(index) + 2 * ROW * len(block_rows) + len(packed)} bytes; NFC {normal} bytes")


if __name__ == "__main__":
    main()
