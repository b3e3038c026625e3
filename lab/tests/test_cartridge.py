#!/usr/bin/env python3
"""Tests of the training of prefixes.  Needs numpy."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = ROOT / "lab" / "oriel-tiny"
DATA = ROOT / "tests" / "data" / "prefix"
MODEL = ROOT / "models" / "oriel-tiny" / "oriel-tiny-q8_0.gguf"
sys.path.insert(0, str(RECIPE))
sys.dont_write_bytecode = True

import cartridge  # noqa: E402
import gguf  # noqa: E402
from cartridge import PrefixModel, softmax  # noqa: E402
from reference import Reference  # noqa: E402

TEXT = "<|im_start|>user\nMia lives in Oslo. Ben is a baker.<|im_end|>\n<|im_start|>assistant\n"


class Gradients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = PrefixModel(MODEL, np.float64)
        cls.tok = cls.model.tokenizer()
        cls.ids = cls.tok.encode(TEXT)

    def test_the_model_is_that_of_the_independent_reference(self):
        want = Reference(MODEL)(self.ids)
        states, _, _ = self.model.forward(np.asarray([self.ids]), self.model.empty())
        np.testing.assert_allclose(self.model.logits(states[0]), want, atol=1e-11)

    def test_a_text_read_as_a_prefix_is_that_text(self):
        want = Reference(MODEL)(self.ids)[9:]
        prefix = self.model.read(self.ids[:9])
        states, _, _ = self.model.forward(np.asarray([self.ids[9:]]), prefix)
        np.testing.assert_allclose(self.model.logits(states[0]), want, atol=1e-11)

    def test_padding_behind_a_text_changes_nothing(self):
        prefix = self.model.read(self.ids[:5])
        short, long = self.ids[5:12], self.ids[8:20]
        both, _, _ = self.model.forward(np.asarray([short + [0] * 5, long]), prefix)
        for row, ids in zip(both, (short, long)):
            alone, _, _ = self.model.forward(np.asarray([ids]), prefix)
            np.testing.assert_allclose(row[: len(ids)], alone[0], atol=1e-11)

    def test_gradients_are_what_small_changes_make_of_the_loss(self):
        page = self.model.read(self.ids)
        examples = [cartridge.Example(self.model, self.tok, page, q) for q in ("Who is Ben?", "Mia's town?")]
        rng = np.random.default_rng(1)
        prefix = [side[:, :, :6] + rng.normal(0, 0.1, side[:, :, :6].shape) for side in page]
        _, grads = cartridge.loss_of(self.model, prefix, examples)
        for side, grad in zip(prefix, grads):
            for layer in (0, self.model.layers // 2, self.model.layers - 1):
                at = (layer,) + tuple(rng.integers(n) for n in side.shape[1:])
                kept, losses = side[at], []
                for step in (1e-5, -1e-5):
                    side[at] = kept + step
                    losses.append(cartridge.loss_of(self.model, prefix, examples, False)[0])
                side[at] = kept
                self.assertAlmostEqual((losses[0] - losses[1]) / 2e-5, grad[at], delta=1e-8 + 1e-4 * abs(grad[at]))


class Training(unittest.TestCase):
    def test_steps_bring_the_prefix_nearer_to_the_page_and_keep_its_first_token(self):
        model = PrefixModel(MODEL)
        tok = model.tokenizer()
        ids = cartridge.page_ids(tok, "Mia lives in Oslo. Ben is a baker.")
        page = model.read(ids)
        examples = [cartridge.Example(model, tok, page, q) for q in ("What is Ben's job?",)]
        prefix = [side[:, :, :4].copy() for side in page]
        before, _ = cartridge.loss_of(model, prefix, examples, False)
        first = [side[:, :, 0].copy() for side in prefix]
        cartridge.train(model, prefix, examples, 16, 1, 0.06, 1, say=lambda *_, **__: None)
        after, _ = cartridge.loss_of(model, prefix, examples, False)
        self.assertLess(after, 0.3 * before)
        for side, kept in zip(prefix, first):
            np.testing.assert_array_equal(side[:, :, 0], kept)

        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/prefix.gguf"
            cartridge.write(path, model, prefix, ids)
            meta, tensors, kinds = gguf.read(path)
        self.assertEqual(meta["oriel.prefix.tokens"], 4)
        self.assertEqual(meta["oriel.prefix.text_tokens"], ids)
        self.assertEqual(set(kinds.values()), {"F16"})
        for i in range(model.layers):
            for name, side in zip("kv", prefix):
                np.testing.assert_array_equal(tensors[f"prefix.{name}.{i}"], cartridge.rounded(side[i]))

    def test_the_distance_of_a_prediction_from_itself_is_none(self):
        model = PrefixModel(MODEL)
        tok = model.tokenizer()
        page = model.read(cartridge.page_ids(tok, "Ben is a baker."))
        loss, grads = cartridge.loss_of(model, page, [cartridge.Example(model, tok, page, "Who is Ben?")])
        self.assertAlmostEqual(loss, 0, delta=1e-5)
        self.assertLess(max(abs(g).max() for g in grads), 1e-4)
        self.assertAlmostEqual(softmax(np.zeros(4))[0], 0.25)


class Page(unittest.TestCase):
    def test_page_and_questions_are_made_by_the_script_and_none_is_both_studied_and_tested(self):
        with tempfile.TemporaryDirectory() as folder:
            script = [sys.executable, "-B", str(RECIPE / "cartridge.py"), "page", "--out", folder]
            subprocess.run(script, cwd=RECIPE, check=True)
            made = {p.name: p.read_text(encoding="utf-8") for p in pathlib.Path(folder).iterdir()}
        for name in ("page.txt", "test.json"):
            self.assertEqual(made[name], (DATA / name).read_text(encoding="utf-8"), name)
        studied = made["study.txt"].split("\n")
        self.assertGreater(len(studied), 400)
        for question in studied:
            self.assertNotIn(f'"{question}"', made["test.json"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
