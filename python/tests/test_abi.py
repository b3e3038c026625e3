"""The C API as ctypes sees it is the C API: its text against the headers, its layouts against a C compiler."""

import ctypes
import dataclasses
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import HERE, INCLUDE

sys.path.insert(0, str(HERE.parent))
import make_abi  # noqa: E402
from oriel import _abi, _library, _plan, _results  # noqa: E402

COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_compiler = unittest.skipUnless(COMPILER, "no C compiler is installed")
INCLUDES = "".join(f"#include <oriel/{name}>\n" for name in make_abi.HEADERS)


def structs():
    return {
        name: kind
        for name, kind in vars(_abi).items()
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure
    }


def compiled(source, *flags, folder):
    path = Path(folder) / "layout.c"
    path.write_text(source, encoding="utf-8")
    program = Path(folder) / "layout"
    subprocess.run([COMPILER, "-std=c99", f"-I{INCLUDE}", *flags, str(path), "-o", str(program)], check=True, cwd=folder)
    return program


class Abi(unittest.TestCase):
    def test_the_file_is_what_the_headers_become(self):
        written = (HERE.parent / "oriel" / "_abi.py").read_text(encoding="utf-8")
        self.assertEqual(written, make_abi.make_abi(INCLUDE / "oriel"), "run python3 python/make_abi.py")
        fields = (INCLUDE.parent / "api" / "struct_fields.h").read_text(encoding="utf-8")
        self.assertEqual(fields, make_abi.make_struct_fields(INCLUDE / "oriel"), "run python3 python/make_abi.py")

    @needs_compiler
    def test_every_field_lies_where_a_c_compiler_puts_it(self):
        lines, expected = [], []
        for name, kind in structs().items():
            if name == "oriel_step_cost_groups":  # has no name in C
                group = "((oriel_step_cost *)0)->groups[0]"
                lines += [f"(size_t)sizeof({group})"]
                expected += [(name, ctypes.sizeof(kind))]
                continue
            lines += [f"sizeof({name})"]
            expected += [(name, ctypes.sizeof(kind))]
            for field in kind._fields_:
                lines += [f"offsetof({name}, {field[0]})", f"sizeof((({name} *)0)->{field[0]})"]
                place = getattr(kind, field[0])
                expected += [(f"{name}.{field[0]} at", place.offset), (f"{name}.{field[0]} bytes", place.size)]
        prints = "".join(f'  printf("%zu\\n", {line});\n' for line in lines)
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(f"#include <stdio.h>\n{INCLUDES}int main(void) {{\n{prints}  return 0;\n}}\n", folder=folder)
            said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
        self.assertGreater(len(expected), 400)
        self.assertEqual([(name, int(value)) for (name, _), value in zip(expected, said)], expected)

    @needs_compiler
    def test_no_field_of_c_is_missing(self):
        """A struct initialised with as many values as there are fields: one more is an error."""
        text = "".join((INCLUDE / "oriel" / name).read_text(encoding="utf-8") for name in make_abi.HEADERS)
        named = set(re.findall(r"typedef struct (\w+) \{|^struct (\w+) \{", text, flags=re.M))
        self.assertEqual({a or b for a, b in named} | {"oriel_step_cost_groups"}, set(structs()))
        for name, kind in structs().items():
            # Nothing but padding at the end: no field is behind the last one.
            last = getattr(kind, kind._fields_[-1][0])
            slack = ctypes.sizeof(kind) - last.offset - last.size
            self.assertLess(slack, ctypes.alignment(kind), name)

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
        self.assertEqual(kinds, declared)

    def test_the_library_has_every_function(self):
        for name in _abi.FUNCTIONS:
            self.assertTrue(hasattr(_library.LIBRARY, name), name)

    def test_every_function_is_used(self):
        """What the package does not call, and why."""
        left_out = {
            "oriel_device_list": "device_list_with is it with more",
            "oriel_json_read": "Python reads JSON itself",
            "oriel_render": "messages go as JSON",
            "oriel_render_tokens": "messages go as JSON",
            "oriel_session_restore": "restore_as is it with more",
            "oriel_session_restore_file": "restore_file_as is it with more",
            "oriel_session_save_file": "save_file_as is it with more",
        }
        source = "".join(
            path.read_text(encoding="utf-8") for path in (HERE.parent / "oriel").glob("*.py") if path.name != "_abi.py"
        )
        unused = {name for name in _abi.FUNCTIONS if not re.search(rf"\b{name}\b", source)}
        self.assertEqual(unused, set(left_out))

    def test_results_have_every_field(self):
        inner = {"struct_size", "group_count", "choice_count", "missing_count", "tensor_type_count", "reserved", "reserved_draft",
                 "reserved_recall"}
        pairs = {
            "oriel_model_info": _results.ModelInfo, "oriel_file_info": _results.FileInfo, "oriel_stats": _results.Stats,
            "oriel_view": _results.View, "oriel_generation": _results.Generation, "oriel_mark": _results.Mark,
            "oriel_prefix_info": _results.PrefixInfo, "oriel_transcript_info": _results.TranscriptInfo,
            "oriel_snapshot_info": _results.SnapshotInfo, "oriel_restored": _results.Restored,
            "oriel_recovered": _results.Recovered,
            "oriel_resident": _results.Resident, "oriel_step_cost": _results.StepCost, "oriel_plan": _plan.Plan,
            "oriel_plan_choice": _results.PlanChoice, "oriel_layer_group": _results.LayerGroup,
            "oriel_prediction": _results.Prediction, "oriel_shape_info": _results.ShapeInfo,
            "oriel_check": _results.Check, "oriel_tensor_type": _results.TensorType,
        }
        for name, kind in pairs.items():
            fields = {field[0] for field in getattr(_abi, name)._fields_} - inner
            ours = {field.name for field in dataclasses.fields(kind)} - {"title", "window_given", "_struct"}
            self.assertEqual(ours, fields, name)


FUNCTION_TYPES = ("oriel_log_fn", "oriel_progress_fn", "oriel_token_fn", "oriel_part_fn", "oriel_logits_fn",
                  "oriel_check_fn", "oriel_candidate_fn", "oriel_json_fn")
BYTES = {"int": "4i", "oriel_status": "4i", "uint32_t": "4u", "uint64_t": "8u", "size_t": "8u", "float": "4f",
         "oriel_trim_level": "4i", "oriel_weight_format": "4i", "void": "0"}


def sort(text):
    """Of a C type: how many bytes of what kind go over."""
    text = text.replace("const", "").strip()
    if "*" in text or text in FUNCTION_TYPES:
        return "pointer"
    return BYTES[text]


def size(kind):
    """The same of ctypes."""
    if kind is None:
        return "0"
    if issubclass(kind, (ctypes.c_char_p, ctypes.c_void_p, ctypes._Pointer, ctypes._CFuncPtr)):
        return "pointer"
    letter = "f" if kind is ctypes.c_float else "i" if kind(-1).value < 0 else "u"
    return f"{ctypes.sizeof(kind)}{letter}"


if __name__ == "__main__":
    unittest.main()
