"""The C API as ctypes sees it is the C API: layouts, constants and prototypes are a C compiler's."""

import ctypes
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import HERE, INCLUDE

from oriel import _abi, _about, _calls, _errors, _model, _options, _plan, _reply, _session, _stream

COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_compiler = unittest.skipUnless(COMPILER, "no C compiler is installed")
HEADERS = ("oriel.h", "advanced.h", "tools.h")
INCLUDES = "".join(f"#include <oriel/{name}>\n" for name in HEADERS)
TEXT = "".join((INCLUDE / "oriel" / name).read_text(encoding="utf-8") for name in HEADERS)

# Functions that the package does not call, and why.
LEFT_OUT = {
    "oriel_plan_file": "oriel_plan_describe has its numbers and more",
    "oriel_model_get_plan": "oriel_model_describe has it",
    "oriel_json_read": "Python reads JSON itself",
    "oriel_picture_rows": "for tests of encoders",
}
UNUSED_STRUCTS = {"oriel_allocator", "oriel_plan", "oriel_candidate", "oriel_json_item", "oriel_step_logits"}


def compiled(source, *flags, folder):
    path = Path(folder) / "layout.c"
    path.write_text(source, encoding="utf-8")
    program = Path(folder) / "layout"
    subprocess.run([COMPILER, "-std=c99", f"-I{INCLUDE}", *flags, str(path), "-o", str(program)], check=True, cwd=folder)
    return program


def values_in_c(expressions):
    prints = "".join(f'  printf("%lld\\n", (long long)({expression}));\n' for expression in expressions)
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(f"#include <stdio.h>\n{INCLUDES}int main(void) {{\n{prints}  return 0;\n}}\n", folder=folder)
        return [int(word) for word in subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()]


class Abi(unittest.TestCase):
    @needs_compiler
    def test_every_field_lies_where_a_c_compiler_puts_it(self):
        ours = {}
        for name, kind in _abi.STRUCTS.items():
            ours[f"sizeof({name})"] = ctypes.sizeof(kind)
            for field, _ in kind._fields_:
                place = getattr(kind, field)
                ours[f"offsetof({name}, {field})"] = place.offset
                ours[f"sizeof((({name} *)0)->{field})"] = place.size
        self.assertGreater(len(ours), 200)
        self.assertEqual(dict(zip(ours, values_in_c(ours))), ours)

    def test_no_field_of_c_is_missing(self):
        """Every field's name, in order."""
        text = re.sub(r"/\*.*?\*/", " ", TEXT, flags=re.S)
        bodies = dict(re.findall(r"struct (oriel_\w+) \{(.*?)\}", text, flags=re.S))
        self.assertEqual(set(bodies) - UNUSED_STRUCTS, set(_abi.STRUCTS))
        for name, kind in _abi.STRUCTS.items():
            fields = re.findall(r"(\w+)(?:\[\w+\])?\s*[,;]", bodies[name])
            self.assertEqual([field for field, _ in kind._fields_], fields, name)

    @needs_compiler
    def test_constants(self):
        names = [name for name in vars(_abi) if re.fullmatch(r"(LOG|TEXT|RENDER|SAVE|RESTORE|BACK|STOP)_[A-Z_]+", name)]
        names += ["READ_AGAIN", "RECOVER_IN_BATCHES", "EMBED_RAW", "EMBED_QUERY", "EMBED_DOCUMENT", "DEVICE_FORGET"]
        ours = {f"ORIEL_{name}": getattr(_abi, name) for name in names}
        for words, prefix in ((_options.POOLINGS, "POOLING"), (_model.TRIM_LEVELS, "TRIM"), (_about.CHECKS, "CHECK"),
                              (_plan.LIMITS, "LIMIT"), (_stream.PART_KINDS, "PART"), (_session.RESTORED_HOW, "RESTORED")):
            ours.update({f"ORIEL_{prefix}_{word.upper()}": value for value, word in enumerate(words)})
        ours.update({f"ORIEL_STOP_{word.upper().replace('STOP_', '')}": value for value, word in enumerate(_reply.STOP_REASONS)})
        ours.update({f"ORIEL_ERROR_{name}": kind.status for name, kind in zip(
            ("ARGUMENT", "IO", "FORMAT", "UNSUPPORTED", "MEMORY_BUDGET", "OUT_OF_MEMORY", "NO_DEVICE", "DEVICE", "TIMEOUT",
             "CANCELLED", "STATE", "CONTEXT", "TEXT", "SPEED", "BUFFER_TOO_SMALL"), _errors.CLASSES.values())})
        self.assertGreater(len(ours), 50)
        self.assertEqual(dict(zip(ours, values_in_c(ours))), ours)
        self.assertEqual(_abi.VERSION.split("."), re.findall(r"#define ORIEL_VERSION_(?:MAJOR|MINOR) (\d+)", TEXT))

    @needs_compiler
    def test_prototypes_are_those_that_a_compiler_reads(self):
        if "Free Software Foundation" not in subprocess.run([COMPILER, "--version"], capture_output=True, text=True).stdout:
            self.skipTest("only gcc writes prototypes")
        with tempfile.TemporaryDirectory() as folder:
            compiled(INCLUDES + "int main(void) { return 0; }\n", "-aux-info", "prototypes", folder=folder)
            text = (Path(folder) / "prototypes").read_text(encoding="utf-8")
        found = re.findall(r"extern (.*?)\b(oriel_\w+) \((.*)\);", text)
        kinds = {
            name: (sort(result), [] if arguments == "void" else [sort(item) for item in arguments.split(", ")])
            for result, name, arguments in found
        }
        declared = {
            name: (size(result), [size(item) for item in arguments])
            for name, (result, arguments) in _abi.FUNCTIONS.items()
        }
        self.assertEqual({name: kinds[name] for name in declared}, declared)
        self.assertEqual(set(kinds) - set(declared), set(LEFT_OUT))

    def test_the_library_has_every_function(self):
        for name in _abi.FUNCTIONS:
            self.assertTrue(hasattr(_calls.LIBRARY, name), name)

    def test_every_function_is_used(self):
        source = "".join(
            path.read_text(encoding="utf-8") for path in (HERE.parent / "oriel").glob("*.py") if path.name != "_abi.py"
        )
        self.assertEqual([name for name in _abi.FUNCTIONS if not re.search(rf"\b{name}\b", source)], [])


CALLBACKS = re.compile(r"oriel_\w+_fn")
BYTES = {"int": "4i", "oriel_status": "4i", "uint32_t": "4u", "uint64_t": "8u", "size_t": "8u", "float": "4f",
         "oriel_trim_level": "4i", "oriel_back": "4i", "oriel_pooling": "4i", "void": "0"}


def sort(text):
    """The size and kind of a C type."""
    text = text.replace("const", "").strip()
    if "*" in text or CALLBACKS.fullmatch(text):
        return "pointer"
    return BYTES[text]


def size(kind):
    """The same for ctypes."""
    if kind is None:
        return "0"
    if issubclass(kind, (ctypes.c_char_p, ctypes.c_void_p, ctypes._Pointer, ctypes._CFuncPtr)):
        return "pointer"
    letter = "f" if kind is ctypes.c_float else "i" if kind(-1).value < 0 else "u"
    return f"{ctypes.sizeof(kind)}{letter}"


if __name__ == "__main__":
    unittest.main()
