"""shaders/kernels_packed.cpp matches the shaders, has every kernel, and unpacks to the compiled code.

    test_kernels.py CMAKE [KERNELS_PACKED [SPIRV_DIS]] [UNITTEST_ARGS...]
"""
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import kernels

CMAKE = sys.argv.pop(1)
PACKED = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].endswith(".cpp") else kernels.TRACKED)
SPIRV_DIS = shutil.which(sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].endswith("spirv-dis") else "spirv-dis")
EVERY = 4  # of the modules: each takes four runs of SPIR-V's tools

TABLE = """
function(oriel_shader)
endfunction()
function(oriel_kernel)
  list(JOIN ARGN " " kernel)
  message("${kernel}")
endfunction()
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def table():
    """What shaders/variants.cmake lists."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "table.cmake")
        script.write_text(f"{TABLE}include({kernels.ROOT / 'shaders/variants.cmake'})\n")
        return run(CMAKE, "-P", script).stderr.splitlines()


class Kernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.packed = kernels.Packed(PACKED)

    def check_source(self, root, packed):
        return run(CMAKE, f"-DKERNELS={packed}", "-P", root / "cmake/shader_sources.cmake")

    def test_belong_to_the_shaders(self):
        checked = self.check_source(kernels.ROOT, PACKED)
        self.assertEqual(0, checked.returncode, checked.stderr)

    def test_a_changed_shader_is_found(self):
        for name in ("shaders/matmul_matrix.comp", "shaders/lib/weights.glsl", "shaders/shared/layout.h",
                     "shaders/variants.cmake", "cmake/renumber_spirv.py"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                for part in ("shaders", "cmake"):
                    shutil.copytree(kernels.ROOT / part, root / part)
                self.assertEqual(0, self.check_source(root, PACKED).returncode)
                with (root / name).open("a") as file:
                    file.write("\n")
                checked = self.check_source(root, PACKED)
                self.assertNotEqual(0, checked.returncode)
                self.assertIn("scripts/pack_kernels.sh", " ".join(checked.stderr.split()))

    def test_are_those_of_the_table(self):
        rows = [row.split() for row in table()]
        self.assertIn(["matmul_q4_0_matrix", "matmul_matrix", "4"], rows)
        forms = {name: (module, tuple(map(int, [*form, 0, 0, 0][:3]))) for name, module, *form in rows}
        self.assertEqual(forms, self.packed.kernels)

    def test_are_few_modules(self):
        self.assertLessEqual(len(self.packed.modules), 40)

    def test_are_spirv_1_3(self):
        for name, code in self.packed.modules.items():
            self.assertEqual([0x07230203, 0x00010300], kernels.words_of(code)[:2], name)

    def test_no_array_has_a_length_that_is_chosen_between_constants(self):
        # A driver of Adreno makes such arrays too short (ncnn#6972).
        for name, code in self.packed.modules.items():
            self.assertEqual([], kernels.chosen_lengths(kernels.words_of(code)), name)

    def test_a_length_that_is_chosen_is_found(self):
        instructions = [[52, 1, 10, 169, 2, 3, 4], [52, 1, 11, 132, 10, 5], [28, 12, 6, 11], [28, 13, 6, 5]]
        words = [0x07230203, 0x00010300, 0, 14, 0]
        for opcode, *operands in instructions:
            words += [(len(operands) + 1) << 16 | opcode, *operands]
        self.assertEqual([12], kernels.chosen_lengths(words))

    def test_packing_them_again_gives_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, code in self.packed.modules.items():
                (folder / f"{name}.spv").write_bytes(code)
            names = ";".join(self.packed.modules)
            files = ";".join(str(folder / f"{name}.spv") for name in self.packed.modules)
            packed = run(CMAKE, f"-DKERNELS={';'.join(table())}", f"-DNAMES={names}", f"-DSPIRV={files}", f"-DOUTPUT={folder / 'packed.cpp'}",
                         f"-DFOLDER={folder}", f"-DPYTHON={sys.executable}", "-P",
                         kernels.ROOT / "cmake/pack_shaders.cmake")
            self.assertEqual(0, packed.returncode, packed.stderr)
            self.assertEqual(vars(self.packed), vars(kernels.Packed(folder / "packed.cpp")))
        # The table has the instructions of these shaders. Modules with others are packed unchanged, which only costs bytes.
        self.assertGreaterEqual(len(self.packed.renumbered) * 10, len(self.packed.modules) * 9)


@unittest.skipUnless(SPIRV_DIS, "spirv-dis is not installed (package spirv-tools)")
class Renumbering(unittest.TestCase):
    """An independent disassembler sees the same instructions, with a one-to-one mapping of ids."""

    def tool(self, name, *arguments):
        done = run(pathlib.Path(SPIRV_DIS).with_name(f"spirv-{name}"), *arguments)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def disassembled(self, file):
        return self.tool("dis", "--raw-id", "--no-header", "--no-indent", file).splitlines()

    def shuffled(self, lines):
        """The module with other ids."""
        ids = sorted({int(number) for line in lines for number in re.findall(r"%(\d+)", line)})
        others = ids[:]
        random.Random(1).shuffle(others)
        to = dict(zip(ids, others))
        return "\n".join(re.sub(r"%(\d+)", lambda match: f"%{to[int(match[1])]}", line) for line in lines)

    def check_same(self, name, before, after):
        self.assertEqual(len(before), len(after), name)
        to, back = {}, {}
        for line, other in zip(before, after):
            ids, others = re.findall(r"%\d+", line), re.findall(r"%\d+", other)
            self.assertEqual(re.sub(r"%\d+", "%", line), re.sub(r"%\d+", "%", other), name)
            for old, new in zip(ids, others):
                self.assertEqual((new, old), (to.setdefault(old, new), back.setdefault(new, old)), name)

    def test_keeps_what_kernels_mean(self):
        packed = kernels.Packed(PACKED)
        known, renumbered = packed.modules, packed.renumbered
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "matrix").write_bytes(known["matmul_matrix"])
            if run(SPIRV_DIS, folder / "matrix").returncode != 0:
                print("without kernels for matrix units: spirv-dis is older than they (scripts/pack_kernels.sh tests all)")
                renumbered = [name for name in renumbered if not name.endswith("_matrix")]
            some = renumbered[::EVERY]
            before = {}
            for name in some:
                file = folder / f"{name}.spv"
                file.write_bytes(known[name])
                (folder / "text").write_text(self.shuffled(self.disassembled(file)))
                self.tool("as", "--target-env", "spv1.3", "--preserve-numeric-ids", folder / "text", "-o", file)
                before[name] = self.disassembled(file)
            done = run(sys.executable, kernels.ROOT / "cmake/renumber_spirv.py", folder / "out",
                       *(f"{name}={folder / name}.spv" for name in some))
            self.assertEqual(some, done.stdout.split(), done.stderr)
            for name in some:
                words = kernels.renumber_spirv.restored(kernels.words_of((folder / "out" / name).read_bytes()))
                file = folder / "restored.spv"
                file.write_bytes(kernels.code_of(words))
                self.tool("val", "--target-env", "vulkan1.1", file)
                self.check_same(name, before[name], self.disassembled(file))


if __name__ == "__main__":
    unittest.main(verbosity=2)
