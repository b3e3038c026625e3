"""Writes runtime/api/struct_fields.h, the end offsets of the app's struct fields: python3 scripts/struct_fields.py

The library compares an app's struct_size with this list. --check only compares the file with the headers.
"""

import re
import sys
from pathlib import Path
from typing import Dict, List

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ("oriel.h", "advanced.h", "tools.h")
TARGET = ROOT / "runtime" / "api" / "struct_fields.h"

BEGINNING = """\
// The end offset of each field of the app's structs. Written by scripts/struct_fields.py from the headers: do not edit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oriel/advanced.h"
#include "oriel/tools.h"

// clang-format off
// NOLINTBEGIN(bugprone-sizeof-expression): sizes of pointers are intended
namespace oriel_internal {

template <typename T>
struct FieldEnds;

#define ORIEL_END(type, field) static_cast<uint16_t>(offsetof(type, field) + sizeof(type::field))
"""

ENDING = """
#undef ORIEL_END

}  // namespace oriel_internal
// NOLINTEND(bugprone-sizeof-expression)
// clang-format on
"""


def structs(text: str) -> Dict[str, List[str]]:
    """The fields of each struct that starts with struct_size."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    found = {}
    for name, body in re.findall(r"\bstruct (oriel_\w+) \{(.*?)\}", text, flags=re.S):
        # The last word of each declarator: "uint32_t passed, failed", "char name[64]", "const char *text".
        fields = re.findall(r"(\w+)(?:\[\w+\])?\s*[,;]", body)
        if fields and fields[0] == "struct_size":
            found[name] = fields
    return found


def struct_fields(include: Path) -> str:
    parts = [BEGINNING]
    for name, fields in structs("\n".join((include / header).read_text("utf-8") for header in HEADERS)).items():
        ends = "\n".join(f"      ORIEL_END({name}, {field})," for field in fields)
        parts.append(
            f"\ntemplate <>\nstruct FieldEnds<{name}> {{\n  static constexpr uint16_t list[] = {{\n{ends}\n  }};\n}};\n"
        )
    return "".join([*parts, ENDING])


def main() -> int:
    text = struct_fields(ROOT / "runtime" / "include" / "oriel")
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != text:
        sys.stderr.write("runtime/api/struct_fields.h is not what the headers say: run scripts/struct_fields.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
