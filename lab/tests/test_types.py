#!/usr/bin/env python3
"""Compares the files that scripts/make_types.py makes of the bundled model with the recipe's quantisation.  Needs numpy."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = ROOT / "lab" / "oriel-tiny"
MODEL = ROOT / "models" / "oriel-tiny" / "oriel-tiny-q8_0.gguf"
SCRIPT = ROOT / "scripts" / "make_types.py"
sys.path[:0] = [str(RECIPE), str(SCRIPT.parent)]
sys.dont_write_bytecode = True

import gguf  # noqa: E402
import make_types  # noqa: E402

FILE_TYPES = {"f16": 1, "q4_0": 2, "q8_0": 7}  # general.file_type, by the GGUF specification


def q8_0_blocks():
    """Blocks of every scale's kind: a zero block, peaks of either sign, equal peaks, smaller and random ones."""
    rng = np.random.default_rng(7)
    quants = rng.integers(-127, 128, (2000, 32)).astype(np.int8)
    quants[0] = 0
    quants[1, :2] = 127, -127
    quants[2, :2] = -127, 127
    quants[3:600] //= 3
    scales = (10 ** rng.uniform(-4, 1, len(quants))).astype(np.float16)
    scales[4] = 0
    scales[5] = 2 ** -24
    return np.concatenate([scales[:, None].view(np.uint8), quants.view(np.uint8)], 1)


class Blocks(unittest.TestCase):
    def expect(self, convert, kind):
        for block in q8_0_blocks():
            weights = gguf.dequantize(gguf.Q8_0, block.tobytes(), (32,))
            self.assertEqual(gguf.encode(kind, weights), convert(block.tobytes()), block)

    def test_f16_is_the_nearest_to_each_weight(self):
        self.expect(make_types.f16_of_q8_0, gguf.F16)

    def test_q4_0_is_that_of_the_rule(self):
        self.expect(make_types.q4_0_of_q8_0, gguf.Q4_0)


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([sys.executable, str(SCRIPT), str(MODEL), cls.folder.name, "f16", "q4_0"], check=True,
                       stdout=subprocess.DEVNULL)
        cls.source = gguf.read(MODEL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def expect(self, name, kind, unchanged):
        keys, tensors, kinds = gguf.read(f"{self.folder.name}/oriel-tiny-{name}.gguf")
        self.assertEqual({**self.source[0], "general.file_type": FILE_TYPES[name]}, keys)
        self.assertEqual(list(self.source[1]), list(tensors))
        for tensor, weights in self.source[1].items():
            was = self.source[2][tensor]
            if was == "F32" or tensor in unchanged:
                self.assertEqual(was, kinds[tensor])
            else:
                self.assertEqual(gguf.TYPE_NAME[kind], kinds[tensor])
                weights = gguf.dequantize(kind, gguf.encode(kind, weights), weights.shape)
            np.testing.assert_array_equal(weights, tensors[tensor], tensor)

    def test_f16(self):
        self.expect("f16", gguf.F16, ())

    def test_q4_0_keeps_the_embedding(self):
        self.expect("q4_0", gguf.Q4_0, ("token_embd.weight",))

    def test_a_file_that_is_no_q8_0_model_is_refused_in_one_line(self):
        text = pathlib.Path(self.folder.name) / "text-q8_0.gguf"
        text.write_text("no model")
        q4_0 = pathlib.Path(self.folder.name) / "copy-q8_0.gguf"
        q4_0.write_bytes((q4_0.parent / "oriel-tiny-q4_0.gguf").read_bytes())
        for path in (text, q4_0, "absent-q8_0.gguf", "other.gguf"):
            done = subprocess.run([sys.executable, str(SCRIPT), str(path), self.folder.name, "f16"],
                                  stderr=subprocess.PIPE, encoding="utf-8")
            self.assertEqual(1, done.returncode)
            self.assertRegex(done.stderr, r"^make_types\.py: [^\n]*: name a Q8_0 [^\n]*\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
