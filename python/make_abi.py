"""Writes oriel/_abi.py and runtime/api/struct_fields.h from the C headers: python3 python/make_abi.py

Structs, enumerations, callbacks and functions become what ctypes needs, so that no line of that file is typed by
hand. tests/test_abi.py compares the file with the headers, and its layouts and prototypes with a C compiler's.
The headers keep to a plain style; what this reader does not understand it refuses.
"""

import re
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

HERE = Path(__file__).resolve().parent
HEADERS = ("oriel.h", "sessions.h", "tools.h")
OPAQUE = ("oriel_model", "oriel_session")

SCALARS = {
    "void": "None",
    "int": "c_int",
    "float": "c_float",
    "double": "c_double",
    "size_t": "c_size_t",
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "uint8_t": "c_uint8",
    "uint32_t": "c_uint32",
    "uint64_t": "c_uint64",
}


class Variable(NamedTuple):
    """`type` without const and stars, `stars` of them; `length` of an array, as ctypes multiplies it."""

    type: str
    stars: int
    name: str
    length: Optional[str]
    is_const: bool


class Header(NamedTuple):
    constants: List[Tuple[str, str]]
    enums: List[Tuple[str, List[Tuple[str, str]]]]
    structs: Dict[str, List[Variable]]
    callbacks: Dict[str, Tuple[Variable, List[Variable]]]
    functions: Dict[str, Tuple[Variable, List[Variable]]]


def plain(text: str) -> str:
    """Without comments, what only C++ sees, and directives that say nothing about the interface."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", " ", text, flags=re.S)
    text = re.sub(r"^#if defined.*?^#endif", " ", text, flags=re.S | re.M)
    return re.sub(r"\bORIEL(_TOOLS)?_API\b", " ", text)


def variable(text: str) -> Variable:
    match = re.fullmatch(r"(.*?)(\w+)\s*((?:\[\w+\])*)", text.strip(), flags=re.S)
    if not match:
        raise SyntaxError(f"not a declaration: {text!r}")
    before, name, brackets = match.groups()
    # C names the outer dimension first, ctypes multiplies by it last.
    length = " * ".join(reversed(re.findall(r"\w+", brackets))) or None
    if not before.strip():  # a type alone, as in (void)
        before, name = name, ""
    words = before.replace("*", " * ").replace("const", " ").split()
    base = [word for word in words if word != "*"]
    if len(base) != 1:
        raise SyntaxError(f"not a type: {before!r}")
    return Variable(base[0], words.count("*"), name, length, before.split()[0] == "const")


def variables(text: str) -> List[Variable]:
    found = [variable(part) for part in text.split(",")]
    return [] if found == [Variable("void", 0, "", None, False)] else found


def fields(text: str, owner: str, structs: Dict[str, List[Variable]]) -> List[Variable]:
    found: List[Variable] = []
    inner = re.compile(r"struct\s*\{(.*?)\}\s*(\w+)\[(\w+)\];", flags=re.S)
    while True:
        match = inner.search(text)
        if not match:
            break
        name = f"{owner}_{match.group(2)}"
        structs[name] = fields(match.group(1), name, structs)
        text = text[: match.start()] + f"{name} {match.group(2)}[{match.group(3)}];" + text[match.end() :]
    for line in text.split(";"):
        if not line.strip():
            continue
        pointer = re.fullmatch(r"\s*(\w+)\s*(\**)\(\*(\w+)\)\((.*)\)\s*", line, flags=re.S)
        if pointer:  # oriel_allocator's: no callback of Python's serves it
            found.append(Variable("void", 1, pointer.group(3), None, False))
            continue
        stop = re.fullmatch(r"\s*const char \*const \*(\w+)\s*", line)
        if stop:
            found.append(Variable("char", 2, stop.group(1), None, True))
            continue
        first, *more = line.split(",")
        head = variable(first)
        found.append(head)
        found += [head._replace(name=name.strip()) for name in more]
    return found


def read(text: str) -> Header:
    header = Header([], [], {}, {}, {})
    for name, value in re.findall(r"^#define (ORIEL_\w+) (\d+)u?\s*$", plain(text), flags=re.M):
        header.constants.append((name, value))
    text = re.sub(r"^#.*$", "", plain(text), flags=re.M)
    for name, body in re.findall(r"typedef enum (\w+) \{(.*?)\}", text, flags=re.S):
        header.enums.append((name, re.findall(r"(\w+)\s*=\s*(\d+)", body)))
    text = re.sub(r"typedef enum \w+ \{.*?\} \w+;", "", text, flags=re.S)
    at_struct = re.compile(r"(?:typedef )?struct (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}\s*\w*\s*;")
    for match in at_struct.finditer(text):
        members = fields(match.group(2), match.group(1), header.structs)
        header.structs[match.group(1)] = members
    text = at_struct.sub("", text)
    text = re.sub(r"typedef struct \w+ \w+;", "", text)
    for result, name, arguments in re.findall(r"typedef (\w+) \(\*(\w+)\)\((.*?)\);", text, flags=re.S):
        header.callbacks[name] = (variable(result + " " + name), variables(arguments))
    text = re.sub(r"typedef \w+ \(\*\w+\)\(.*?\);", "", text, flags=re.S)
    for result, name, arguments in re.findall(r"([\w ]+?[\s*]+)(oriel_\w+)\(([^()]*)\);", text):
        header.functions[name] = (variable(result + " " + name), variables(arguments))
    return header


class Writer:
    def __init__(self, header: Header) -> None:
        self.header = header
        self.enums = {name for name, _ in header.enums}

    def ctype(self, item: Variable, text_is_counted: bool = False) -> str:
        """Texts that end in NUL are bytes; memory that is counted or written to is an address."""
        if item.stars == 0:
            if item.type in self.enums:
                kind = "c_int"
            elif item.type in SCALARS:
                kind = SCALARS[item.type]
            elif item.type == "char":
                kind = "c_char"
            elif item.type in self.header.callbacks or item.type in self.header.structs:
                kind = item.type
            else:
                raise SyntaxError(f"unknown type {item.type}")
            return kind if item.length is None else f"{kind} * {item.length}"
        if item.type == "char" and item.stars == 2:
            return "POINTER(c_char_p)"
        if item.type == "char":
            return "c_char_p" if item.is_const and not text_is_counted else "c_void_p"
        if item.type == "void" or (item.type in OPAQUE and item.stars == 1):
            return "c_void_p"
        if item.type in OPAQUE:
            return "POINTER(c_void_p)"
        inner = self.ctype(item._replace(stars=item.stars - 1))
        return f"POINTER({inner})"

    def hint(self, kind: str) -> str:
        if " * " in kind or kind.startswith("POINTER") or kind in self.header.callbacks:
            return "Any"
        if kind in ("c_float", "c_double"):
            return "float"
        if kind == "c_char_p":
            return "Optional[bytes]"
        if kind == "c_void_p":
            return "Optional[int]"
        return kind if kind in self.header.structs else "int"

    def struct_fields(self, members: List[Variable]) -> List[Tuple[str, str]]:
        names = {member.name for member in members}
        return [(member.name, self.ctype(member, member.name + "_bytes" in names)) for member in members]

    def ordered(self) -> List[str]:
        """Structs behind those that they hold by value."""
        done: List[str] = []

        def visit(name: str) -> None:
            if name not in done:
                for member in self.header.structs[name]:
                    if member.stars == 0 and member.type in self.header.structs:
                        visit(member.type)
                done.append(name)

        for name in self.header.structs:
            visit(name)
        return done

    def lines(self) -> List[str]:
        out = [
            '"""The C API as ctypes sees it. Written by make_abi.py from the headers: do not edit."""',
            "",
            "from ctypes import (",
            "    CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t,",
            "    c_uint8, c_uint32, c_uint64, c_void_p,",
            ")",
            "from enum import IntEnum",
            "from typing import Any, Dict, List, Optional, Tuple",
            "",
        ]
        out += [f"{name} = {value}" for name, value in self.header.constants]
        for name, members in self.header.enums:
            out += ["", "", f"class {name}(IntEnum):"]
            out += [f"    {member} = {value}" for member, value in members]
        for name in self.header.structs:
            out += ["", "", f"class {name}(Structure):"]
            out += [f"    {field}: {self.hint(kind)}" for field, kind in self.struct_fields(self.header.structs[name])]
        out += ["", ""]
        for name, (result, arguments) in self.header.callbacks.items():
            kinds = [self.ctype(result)] + [self.ctype(item) for item in arguments]
            out.append(f"{name}: Any = CFUNCTYPE({', '.join(kinds)})")
        out.append("")
        for name in self.ordered():
            out.append(f"{name}._fields_ = [")
            out += [f'    ("{field}", {kind}),' for field, kind in self.struct_fields(self.header.structs[name])]
            out.append("]")
        out += ["", "# What each returns, and its arguments.", "FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {"]
        for name, (result, arguments) in self.header.functions.items():
            listed = ", ".join(self.ctype(item) for item in arguments)
            out.append(f'    "{name}": ({self.ctype(result)}, [{listed}]),')
        return out + ["}"]


def read_all(include: Path) -> Header:
    return read("\n".join((include / name).read_text(encoding="utf-8") for name in HEADERS))


def make_abi(include: Path) -> str:
    return "\n".join(Writer(read_all(include)).lines()) + "\n"


def make_struct_fields(include: Path) -> str:
    """Where fields end, for the library: a struct_size of the app's ends there."""
    out = [
        "// Where the fields of the app's structs end. Written by python/make_abi.py from the headers: do not edit.",
        "#pragma once",
        "",
        "#include <cstddef>",
        "#include <cstdint>",
        "",
        '#include "oriel/sessions.h"',
        '#include "oriel/tools.h"',
        "",
        "// clang-format off",
        "// NOLINTBEGIN(bugprone-sizeof-expression): sizes of pointers are what is meant",
        "namespace oriel_internal {",
        "",
        "template <typename T>",
        "struct FieldEnds;",
        "",
        "#define ORIEL_END(type, field) static_cast<uint16_t>(offsetof(type, field) + sizeof(type::field))",
    ]
    for name, members in read_all(include).structs.items():
        if members[0].name != "struct_size":
            continue
        out += ["", "template <>", f"struct FieldEnds<{name}> {{", "  static constexpr uint16_t list[] = {"]
        out += [f"      ORIEL_END({name}, {member.name})," for member in members]
        out += ["  };", "};"]
    return "\n".join([*out, "", "#undef ORIEL_END", "", "}  // namespace oriel_internal",
                      "// NOLINTEND(bugprone-sizeof-expression)", "// clang-format on", ""])


if __name__ == "__main__":
    headers = HERE.parent / "runtime" / "include" / "oriel"
    for target, text in (
        (HERE / "oriel" / "_abi.py", make_abi(headers)),
        (HERE.parent / "runtime" / "api" / "struct_fields.h", make_struct_fields(headers)),
    ):
        target.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{target}\n")
