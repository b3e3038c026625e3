#!/usr/bin/env python3
"""The whole recipe of oriel-tiny, small: corpus, tokenizer, 20 steps, export, evaluation by oriel. And that of oriel-eyes.

    test_smoke.py PATH/oriel

Needs numpy and torch.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RECIPE = pathlib.Path(__file__).resolve().parents[1] / "oriel-tiny"
ORIEL = None
SIZE = [
    "--vocab",
    "320",
    "--dim",
    "64",
    "--layers",
    "2",
    "--heads",
    "2",
    "--kv-heads",
    "1",
    "--head-dim",
    "32",
    "--ffn",
    "96",
]


class Recipe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = pathlib.Path(cls.folder.name)
        cls.script(
            "make_corpus.py", "--train", "150", "--val", "30", "--processes", "1", "--out", "data"
        )
        cls.script(
            "tokenizer.py", "--data", "data", "--vocab", "320", "--out", "tokenizer.json"
        )
        cls.log = cls.train("run", 20)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def script(cls, name, *args):
        done = subprocess.run(
            [sys.executable, "-B", str(RECIPE / name), *args],
            cwd=cls.at,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{name}: {done.stdout}{done.stderr}")
        return done.stdout

    @classmethod
    def train(cls, out, steps, *more):
        return cls.script(
            "train.py",
            "--data",
            "data",
            "--out",
            out,
            "--batch-tokens",
            "2048",
            "--tokens",
            "200000",
            "--eval-steps",
            "10",
            "--stop-steps",
            str(steps),
            "--workers",
            "2",
            *SIZE,
            *more,
        )

    def weights(self, run):
        import torch

        return torch.load(self.at / run / "checkpoint.pt")["model"]

    def test_loss_falls(self):
        import csv
        import math

        with open(self.at / "run" / "log.csv", encoding="ascii") as f:
            rows = list(csv.DictReader(f))
        self.assertLess(float(rows[-1]["train_loss"]), math.log(320))

    def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(self):
        import torch

        self.train("parts", 8)
        self.train("parts", 20, "--resume")
        for (name, a), b in zip(self.weights("run").items(), self.weights("parts").values()):
            self.assertTrue(torch.equal(a, b), name)

    def test_exported_files_run_in_oriel(self):
        self.script("gguf.py", "--model", "run/model.pt", "--out", "smoke")
        for kind in ("f16", "q8_0", "q4_0"):
            info = json.loads(
                subprocess.run(
                    [ORIEL, "info", str(self.at / f"smoke-{kind}.gguf"), "--json"],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            self.assertEqual(
                (info["architecture"], info["n_layers"], info["n_vocab"]), ("llama", 2, 320)
            )

    def test_several_models_become_their_mean(self):
        import torch

        # (1 + 1 + 2 + 4) / 4 = 2, without rounding.
        run = torch.load(self.at / "run" / "model.pt")
        for factor in ("2", "4"):
            run["model"] = {name: 2 * weight for name, weight in run["model"].items()}
            torch.save(run, self.at / f"times{factor}.pt")
        export = lambda out, *models: self.script(
            "gguf.py", "--model", *models, "--out", out, "--types", "f16"
        )
        export("mean", "run/model.pt", "run/model.pt", "times2.pt", "times4.pt")
        export("twice", "times2.pt")
        got, want = ((self.at / f"{x}-f16.gguf").read_bytes() for x in ("mean", "twice"))
        self.assertTrue(got == want)

    def test_oriel_and_pytorch_compute_the_same_logits(self):
        self.script(
            "gguf.py", "--model", "run/model.pt", "--out", "logits", "--types", "f16"
        )
        sys.path.insert(0, str(RECIPE))
        sys.dont_write_bytecode = True
        import torch
        import evaluate
        from dialogue import render
        from tokenizer import Tokenizer

        tok = Tokenizer.load(str(self.at / "tokenizer.json"))
        ids = tok.encode(render("You are Oriel.", [{"user": "What is 2 + 3?"}]))
        (self.at / "ids.json").write_text(json.dumps({"ids": ids}), encoding="ascii")
        out = subprocess.run(
            [
                ORIEL,
                "eval",
                str(self.at / "logits-f16.gguf"),
                "--tokens-file",
                str(self.at / "ids.json"),
                "--device",
                "cpu",
                "--kv",
                "f16",
                "--json",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        with torch.no_grad():
            z = evaluate.Torch(str(self.at / "run" / "checkpoint.pt"), tok).model(
                torch.tensor([ids])
            )[0, -1]
        for token, logit in json.loads(out)["top"]:
            self.assertAlmostEqual(logit, float(z[token]), delta=0.02)

    def test_evaluation_runs_through_oriel(self):
        self.script(
            "gguf.py", "--model", "run/model.pt", "--out", "judged", "--types", "q8_0"
        )
        self.script(
            "evaluate.py",
            "--oriel",
            ORIEL,
            "--model",
            "judged-q8_0.gguf",
            "--data",
            "data",
            "--each",
            "1",
            "--only",
            "table",
            "--out",
            "results",
        )
        self.assertTrue((self.at / "results" / "misses.txt").exists())


class Eyes(unittest.TestCase):
    """oriel-eyes, trained for two seconds."""

    def test_oriel_and_pytorch_see_the_same(self):
        sys.path.insert(0, str(RECIPE.parent / "oriel-eyes"))
        sys.dont_write_bytecode = True
        import eyes
        import pictures
        import numpy as np
        import torch

        with tempfile.TemporaryDirectory() as folder:
            script = [sys.executable, "-B", RECIPE.parent / "oriel-eyes" / "eyes.py"]
            for args in (["train", "--out", ".", "--minutes", "0.03"], ["export", "--model", "model.pt", "--type", "f16"]):
                subprocess.run([*script, *args], cwd=folder, check=True, capture_output=True)
            model, tok = eyes.load(f"{folder}/model.pt")
            what, drawn = pictures.invent(pictures.Dice(5))
            picture = pictures.draw(what, drawn)
            pictures.write_png(f"{folder}/picture.png", picture)
            turn = (what, drawn), "What colour is it?", "red", "colour"
            ids, weights = eyes.encode(tok, [turn])
            ids = torch.tensor([ids[:weights.index(1)]])
            content = [{"type": "image", "path": f"{folder}/picture.png"}, {"type": "text", "text": turn[1]}]
            (pathlib.Path(folder) / "messages.json").write_text(json.dumps([{"role": "user", "content": content}]))
            told = subprocess.run(
                [ORIEL, "eval", "oriel-eyes.gguf", "--mmproj", "oriel-eyes-mmproj.gguf", "--messages", "messages.json",
                 "--logits-out", "logits.f32", "--device", "cpu", "--kv", "f16", "--json"],
                cwd=folder, check=True, capture_output=True, text=True).stdout
            got = np.fromfile(f"{folder}/logits.f32", np.float32)
        self.assertEqual(ids.shape[1], json.loads(told)["tokens"])
        with torch.no_grad():
            want = model.text.logits(model.hidden(ids, model.rows(torch.from_numpy(picture[None]))))[0, -1].numpy()
        self.assertLess(np.linalg.norm(got - want), 2e-3 * np.linalg.norm(want))

    def test_held_out_pictures_are_not_drawn_in_training(self):
        sys.path.insert(0, str(RECIPE.parent / "oriel-eyes"))
        import pictures

        for held_out in (False, True):
            dice = pictures.Dice(3, held_out)
            for _ in range(300):
                x, y = dice.place(0.1, 0.1)
                self.assertEqual(held_out, (3 * int(10 * x) + int(10 * y)) % 5 == 0)
                self.assertEqual(held_out, int(10 * dice.between(0, 1)) in (3, 7))


if __name__ == "__main__":
    ORIEL = sys.argv.pop(1)
    unittest.main()
