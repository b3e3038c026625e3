"""Text, numbers, options and memory of a model, compared with the program's output."""

import array
import datetime
import errno
import functools
import importlib
import inspect
import logging
import math
import os
import pickle
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

from support import ON_CPU, TINY, needs_program, program

import oriel
from oriel import _arrays, _options

def ignored_warnings(test):
    """Ignores warnings, for example about templates without tools."""

    @functools.wraps(test)
    def run(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", oriel.OrielWarning)
            test(self)

    return run


FLAGS = ["--device", "cpu", "--memory", "16MB"]
TEXT = "Once upon a time there was a small cat. She liked warm milk, and she slept all day."


class Loaded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = oriel.Model(TINY, sessions=2, **dict(ON_CPU, memory="30MB"))

    @classmethod
    def tearDownClass(cls):
        cls.model.close()


class Text(Loaded):
    def test_ids_and_back(self):
        for text in (TEXT, "", "naïve 🙂 \0 end", "<|im_end|>"):
            self.assertEqual(self.model.detokenize(self.model.tokenize(text)), text)
        self.assertEqual(self.model.detokenize_bytes(self.model.tokenize(b"\xff\xfe")), b"\xff\xfe")
        (mark,) = self.model.tokenize("<|im_end|>", special=True)
        self.assertEqual(self.model.detokenize([mark]), "")
        self.assertEqual(self.model.detokenize([mark], special=True), "<|im_end|>")
        self.assertRaises(ValueError, self.model.detokenize, [1 << 40])
        self.assertRaises(oriel.ArgumentError, self.model.detokenize, [-5])
        self.assertRaises(TypeError, self.model.tokenize, 5)

    @needs_program
    def test_as_the_program(self):
        self.assertEqual(self.model.tokenize(TEXT), program("tokenize", TINY, stdin=TEXT)["ids"])
        messages = '[{"role": "user", "content": "Hello!"}]'
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "messages.json"
            path.write_text(messages)
            said = program("render", TINY, "--messages", path)
        self.assertEqual(self.model.render(messages), said["text"])
        self.assertEqual(self.model.render_tokens([{"role": "user", "content": "Hello!"}]), said["token_ids"])
        with self.model.session() as session:
            self.assertEqual(session.stats.chat_template, said["template"])

    def test_names_of_templates(self):
        with self.model.session(template="gemma3") as session:
            self.assertEqual(session.stats.chat_template, "gemma3")
        self.assertRaises(oriel.ArgumentError, self.model.session, template="nothing-known")


class Numbers(Loaded):
    @needs_program
    def test_scores_are_the_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "text"
            path.write_text(TEXT)
            said = program("eval", TINY, "--text", path, "--per-token", *FLAGS)
        with self.model.session() as session:
            score = session.score(TEXT)
            self.assertRaises(ValueError, session.score, "")
        self.assertEqual(len(score.nll), len(said["nll"]))
        for ours, theirs in zip(score.nll, said["nll"]):
            self.assertAlmostEqual(ours, theirs, places=4)
        self.assertAlmostEqual(score.perplexity, said["perplexity"], places=3)

    def test_without_numpy_the_same(self):
        with self.model.session() as session:
            score = session.score(TEXT).nll
            session.reset()
            rows = session.evaluate([5, 6, 7])
            with mock.patch.object(_arrays, "NUMPY", None):
                session.reset()
                for ours, other in zip(session.score(TEXT).nll, score):
                    self.assertAlmostEqual(ours, other, places=6)
                session.reset()
                plain = session.evaluate([5, 6, 7])
                self.assertIsInstance(plain[0], array.array)
                self.assertEqual([list(row) for row in plain], [[float(value) for value in row] for row in rows])
                self.assertEqual(list(session.logits()), list(plain[-1]))

    def test_logits_of_every_token_can_stop(self):
        seen = []
        with self.model.session() as session:
            session.append([5, 6, 7, 8], on_logits=lambda index, row: seen.append(index) or index < 1)
            self.assertEqual(seen, [0, 1])
            with self.assertRaises(ZeroDivisionError):
                session.append([5, 6], on_logits=lambda index, row: 1 / 0)
            self.assertRaises(TypeError, session.append, "text", on_logits=print)
            self.assertRaises(ValueError, session.score, [1, 1 << 20])

    @needs_program
    def test_vectors_are_the_programs(self):
        said = program("embed", TINY, "--device", "cpu", stdin=TEXT)
        vector = self.model.embed(TEXT)
        self.assertAlmostEqual(math.fsum(float(value) ** 2 for value in vector), 1, places=5)
        for ours, theirs in zip(vector, said["embedding"]):
            self.assertAlmostEqual(float(ours), theirs, places=5)
        self.assertNotAlmostEqual(float(sum(self.model.embed(TEXT, pooling="last") - vector)), 0, places=3)

    @unittest.skipUnless(_arrays.NUMPY, "numpy is not installed")
    def test_numpy_where_it_is(self):
        numpy = importlib.import_module("numpy")
        with self.model.session() as session:
            ids = numpy.array([5, 6, 7])
            table = session.evaluate(ids)
            self.assertEqual((table.shape, table.dtype), ((3, self.model.info.n_vocab), numpy.float32))
            table[0, 0] = 1  # its own memory
            self.assertEqual(self.model.detokenize(ids), self.model.detokenize([5, 6, 7]))


class Options(unittest.TestCase):
    def refused(self, kind, call, *lines):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(str(caught.exception), lines)

    def test_the_library_refuses_names_and_values(self):
        self.refused(oriel.ArgumentError, lambda: oriel.Model(TINY, memry="16MB"), "memry= is not known: did you mean memory=?")
        self.refused(oriel.ArgumentError, lambda: oriel.plan(TINY, kv="k2v2"),
                     'kv= cannot be "k2v2": give auto, f16, k8v8, k8v4 or k4v4')
        with oriel.Model(TINY, **ON_CPU) as model, model.session() as chat:
            for call, name in ((lambda: model.session(windw=1), "windw="), (lambda: model.render([], tols=[]), "tols="),
                               (lambda: chat.reply("x", temperatur=0).run(), "temperatur="),
                               (lambda: chat.reply("x", kv="f16").run(), "kv="),
                               (lambda: chat.reply("x", max_tokens=1.5).run(), "max_tokens="),
                               (lambda: chat.reply("x", max_tokens=True).run(), "max_tokens="),
                               (lambda: chat.reply("x", seed="x").run(), "seed="),
                               (lambda: chat.reply("x", temperature=float("nan")).run(), "temperature="),
                               (lambda: chat.reply("x", top_p=0).run(), "top_p=")):
                with self.subTest(name), self.assertRaisesRegex(oriel.ArgumentError, f"^{name} "):
                    call()
                self.assertEqual(chat.position, 0, "a refused reply adds no message")
            with self.assertRaisesRegex(oriel.StateError, "load it with constraints="):
                chat.reply("x", schema={}).run()
            self.assertRaises(oriel.ArgumentError, oriel.reply_many, [chat.reply("x", seed=-1)])
            self.assertEqual(chat.position, 0)
            self.assertTrue(chat.reply("x", max_tokens=2).text)

    def test_values_that_are_no_text(self):
        self.refused(oriel.ArgumentError, lambda: oriel.Model(TINY, system_prompt="a\0b"), "system_prompt= contains a NUL: remove it")
        with self.assertRaisesRegex(TypeError, "^schema= cannot be <class 'dict'>: "):
            _options.reply_options({"schema": dict})

    def test_python_values_become_texts(self):
        for name, value, texts in (
            ("temperature", 1e-7, ["0.0000001"]), ("temperature", 2, ["2"]), ("greedy", True, ["true"]), ("schema", True, ["true"]),
            ("schema", {"a": [1]}, ['{"a": [1]}']), ("tools", [{"a": 1}], ['[{"a": 1}]']), ("thinking", True, ["on"]),
            ("thinking", False, ["off"]), ("date", datetime.date(2026, 1, 2), ["20260102"]), ("window_shares", (1, 2), ["1,2"]),
            ("f16_layers", [True, False], ["1,0"]), ("stop", "a", ["a"]), ("stop", ["a", "b"], ["a", "b"]),
            ("session_windows", [], []), ("memory", "1MB", ["1MB"]), ("memory", 5, ["5"]), ("seed", None, []),
            ("cache_folder", Path("a"), ["a"]), ("logit_bias", {5: -1.5}, ["5:-1.5"]),
        ):
            held = _options.reply_options({name: value})
            made = [held.struct.settings[index] for index in range(held.struct.setting_count)]
            self.assertEqual([(item.name.decode(), item.value.decode()) for item in made], [(name, text) for text in texts])

    @ignored_warnings
    def test_every_option_reaches_the_library(self):
        """Each option of the table, with a value that is not the default, and read back where it can be."""
        rows = {row.name: row for row in oriel.options()}
        self.assertGreater(len(rows), 50)
        given = {scope: {row.name: another(row) for row in rows.values() if row.scope == scope and row.name not in NOT_TRIED}
                 for scope in ("load", "session", "reply")}
        self.assertLessEqual(set(NOT_TRIED), set(rows))
        for name, value in given["load"].items():
            with self.subTest(name):
                memory = {} if name == "memory" else {"memory": "64MB"}
                device = {} if name == "device" else {"device": "cpu"}
                with oriel.Model(TINY, **{**memory, **device, **NEEDS.get(name, {}), name: value}) as model:
                    if name in EFFECTS:
                        self.assertEqual(*EFFECTS[name](model, value))
                    else:
                        self.assertEqual(model.info.options[name], read_back(rows[name], value))
        with oriel.Model(TINY, constraints=True, **dict(ON_CPU, memory="40MB")) as model:
            for name, value in given["session"].items():
                with self.subTest(name), model.session(**{name: value}) as chat:
                    self.assertEqual(chat.stats.options[name], read_back(rows[name], value))
            for name, value in given["reply"].items():
                with self.subTest(name), model.session() as chat:
                    chat.reply("Hello!", **{"max_tokens": 2, **NEEDS.get(name, {}), name: value}).run()
                    row = rows[name]
                    if row.type in ("count", "number"):
                        with self.assertRaisesRegex(oriel.ArgumentError, f"^{name}= cannot be .*from .* to "):
                            chat.reply("Hello!", **{name: row.most * 2 + 1e19}).run()

    def test_folders_are_used(self):
        with oriel.Model(TINY, window=64, retrieval="1MB", retrieval_folder=Path("nowhere"), **ON_CPU) as model:
            with self.assertRaisesRegex(oriel.FileError, "nowhere"):
                model.session()

    def test_help_lists_the_options(self):
        for function, scope in ((oriel.Model, "load"), (oriel.plan, "load"), (oriel.Model.session, "session"),
                                (oriel.Session.reply, "reply"), (oriel.Session.generate, "reply")):
            names = [row.name for row in oriel.options() if row.scope == scope]
            self.assertLessEqual(set(names), set(inspect.signature(function).parameters))
            text = (function.__init__ if isinstance(function, type) else function).__doc__
            for name in names:
                self.assertIn(f"\n    {name}: ", text)

    def test_zero_means_zero(self):
        with oriel.Model(TINY, sinks=0, **ON_CPU) as model, model.session() as chat:
            self.assertEqual(model.plan.sink_tokens, 0)
            texts = {chat.generate("Once", temperature=0, max_tokens=5).text for _ in range(1)}
            chat.reset()
            texts.add(chat.generate("Once", greedy=True, max_tokens=5).text)
            self.assertEqual(len(texts), 1)

    def test_guesses_change_no_token(self):
        said = []
        for drafts in (0, 7):
            with oriel.Model(TINY, speculate=drafts, **ON_CPU) as model, model.session() as session:
                self.assertEqual(model.plan.draft_tokens, drafts)
                reply = session.generate("one two three one two three one two", greedy=True, max_tokens=40, draft="always")
                said.append(reply.text)
                self.assertLessEqual(reply.generation.tokens_accepted, reply.generation.tokens_drafted)
                self.assertEqual(session.stats.tokens_drafted, reply.generation.tokens_drafted)
                self.assertEqual(reply.generation.tokens_drafted > 0, drafts > 0)
        self.assertEqual(said[0], said[1])

    def test_draft_models(self):
        data = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "data")
        model, draft = (os.path.join(data, *name) for name in
                        (("models", "gemma4-e-q8_0.gguf"), ("drafts", "gemma4-e-assistant-f16.gguf")))
        written = []
        for guesses in (None, draft):
            with oriel.Model(model, draft_model=guesses, window=100, **ON_CPU) as loaded, loaded.session() as session:
                self.assertEqual(loaded.plan.draft_tokens, 3 if guesses else 0)
                self.assertEqual(loaded.plan.draft_weights_bytes > 0, guesses is not None)
                reply = session.generate("once more", greedy=True, max_tokens=20, draft="always")
                written.append(reply.text)
                self.assertEqual(reply.generation.tokens_drafted > 0, guesses is not None)
        self.assertEqual(*written)

    def test_none_is_the_default(self):
        every = {scope: dict.fromkeys(row.name for row in oriel.options() if row.scope == scope) for scope in ("load", "session", "reply")}
        with oriel.Model(TINY, **{**every["load"], **ON_CPU}) as model, model.session(**every["session"]) as chat:
            self.assertTrue(chat.reply("Hello!", **{**every["reply"], "max_tokens": 2}).text)
        self.assertEqual(oriel.plan(TINY, memory="16MB", device=None, kv=None), oriel.plan(TINY, memory="16MB"))

    def test_no_number_wraps(self):
        plan = oriel.plan(TINY, memory="16MB", device="cpu")
        for wrong in ((1 << 64) + 7, -1):
            for call in (lambda value: plan.predict(value), lambda value: plan.predict(0, value),
                         lambda value: oriel.plan(calibration=oriel.Calibration(windows=[(value, 0.1, [1])])),
                         lambda value: oriel.plan(calibration=oriel.Calibration(windows=[(64, 0.1, [value])]))):
                self.assertRaises(ValueError, call, wrong)
        for call in (lambda: oriel.plan(shape="llama-3.2-1b\0x", memory="1GB"), lambda: oriel.measure_speed(shape="a\0b")):
            self.refused(oriel.ArgumentError, call, "shape contains a NUL: remove it")

    def test_ids_are_whole_numbers(self):
        with oriel.Model(TINY, **ON_CPU) as model, model.session() as session:
            for call in (session.append, session.evaluate, session.score, model.detokenize):
                for wrong in (["301"], [300.9]):
                    self.assertRaises(TypeError, call, wrong)
            self.assertEqual(session.position, 0)

    def test_sizes(self):
        for text, value in (("300MB", 300_000_000), ("300MiB", 300 << 20), ("1.5GiB", 3 << 29), ("9000000", 9_000_000), (9 << 20, 9 << 20)):
            self.assertEqual(oriel.plan(TINY, memory=text).memory_bytes, value, text)
        for wrong in ("", "MB", "-1", "1.5", "300 XB", "1i", -3, 1.5, "lots"):
            self.assertRaises(oriel.ArgumentError, oriel.plan, TINY, memory=wrong)
        self.assertEqual([oriel.format_size(size) for size in (9, 1024, 10798096, 5 << 40)], ["9 B", "1.0 KiB", "10.3 MiB", "5.0 TiB"])


# Options that the test of all options leaves out.
NOT_TRIED = {
    "draft_model": "needs a Gemma 4 and its assistant: test_draft_models",
    "prefix_file": "needs a snapshot: test_prefixes",
    "lora": "needs an adapter: test_adapters.cpp",
    "control_vector": "needs a control vector: test_adapters.cpp",
    "control_layers": "needs a control vector: test_adapters.cpp",
    "adapters": "needs an adapter: test_adapters.cpp",
    "calibration": "a file, or the word none: test_plan.py",
    "enable_features": "a CPU has no features",
    "disable_features": "a CPU has no features",
    "min_speed": "needs measured rates: test_plan.py",
    "retrieval_folder": "a folder that is not there is refused: test_folders_are_used",
    "mmproj": "needs an encoder: test_pictures.cpp",
    "image_tokens": "needs an encoder: test_pictures.cpp",
    "prepared_dir": "writes a file: test_prepared_weights.cpp",
}
# The other options that an option needs.
NEEDS = {
    "draft": {"greedy": True},
    "trigger": {"grammar": 'root ::= "yes"'},
    "retrieval_tokens": {"retrieval": "1MB", "retrieval_folder": tempfile.gettempdir()},
    "retrieval": {"retrieval_folder": tempfile.gettempdir()},
    "prefix_tokens": {"memory": "64MB"},
    "session_windows": {"sessions": 2},
    "f16_layers": {"kv": "k8v4"},
    "session_window": {"sessions": 2},
}


# Texts and lists of a load, which the model does not keep. Their effect, and the value of it.
EFFECTS = {
    "system_prompt": lambda model, value: (model.info.prefix.tokens, len(model.render_tokens(
        [{"role": "system", "content": value}], add_generation_prompt=False, bos=True))),
    "session_windows": lambda model, value: (model.plan.session_windows, value),
    "window_shares": lambda model, value: (model.plan.window_shares, value),
    "f16_layers": lambda model, value: ([int(layer.k_format == "f16") for layer in model.info.layers], value),
}


def another(row):
    """A value of an option that is not its default."""
    known = {"cache_folder": tempfile.gettempdir(), "system_prompt": "Be brief.",
             "window_shares": [0, 128, 0, 0, 0, 128], "f16_layers": [1, 0, 0, 0, 0, 0], "session_windows": [64, 128],
             "window": 200, "session_window": 64, "memory": "32MB", "retrieval": "1MB", "prepared_bytes": "1MB", "transcript": "64KB", "device": "cpu",
             "template": "chatml", "tools": [{"name": "a", "parameters": {}}], "documents": [{"text": "a"}],
             "template_variables": {"a": 1}, "schema": {"type": "boolean"}, "grammar": 'root ::= "yes" | "no"', "trigger": "yes",
             "stop": ["a", "b"], "logit_bias": {5: 1.5}, "sinks": 8, "date": 20250101}
    if row.name in known:
        return known[row.name]
    if row.type == "choice":
        return next(word for word in reversed(row.choices) if word != row.default)
    if row.type == "flag":
        return True
    return min(max(row.least, 2), row.most) if row.type == "count" else min(max(row.least, 0.5), row.most)


def read_back(row, value):
    """The text of a value in force."""
    if row.type == "bytes":
        return str(oriel.plan(memory=value).memory_bytes)
    held = _options.reply_options({row.name: value})
    return held.struct.settings[0].value.decode()


class Errors(unittest.TestCase):
    def test_a_missing_file_is_a_file_not_found_error(self):
        for call in (lambda: oriel.Model("nowhere.gguf"), lambda: oriel.plan("nowhere.gguf"), lambda: oriel.inspect("nowhere.gguf")):
            with self.assertRaises(FileNotFoundError) as caught:
                call()
            self.assertIsInstance(caught.exception, oriel.FileError)
            self.assertEqual((errno.ENOENT, "nowhere.gguf"), (caught.exception.errno, caught.exception.filename))
            self.assertIn("nowhere.gguf", str(caught.exception))
            self.assertEqual(str(caught.exception), str(pickle.loads(pickle.dumps(caught.exception))))

    def test_a_warning_is_one_of_python_unless_a_log_takes_it(self):
        text = "a window beyond the training"
        options = dict(ON_CPU, memory="200MB", window=20000)
        with self.assertWarns(oriel.OrielWarning, msg=text):
            oriel.Model(TINY, **options).close()
        lines = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            oriel.Model(TINY, log=lambda level, line: lines.append((level, line)), **options).close()
        self.assertTrue(any(level == logging.WARNING for level, _ in lines))

    def test_pull_runs_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "oriel")
            with open(program, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\nif [ "$6" = nobody ]; then echo "oriel: no model of the name is listed: see" >&2; exit 2; fi\n'
                           'echo "{\\"path\\": \\"$*\\"}"\n')
            os.chmod(program, 0o700)
            with mock.patch.dict(os.environ, {"ORIEL_PROGRAM": program}):
                self.assertEqual("pull --json --to here -- smollm2-135m", oriel.pull("smollm2-135m", to="here"))
                with self.assertRaisesRegex(oriel.ArgumentError, "^no model of the name"):
                    oriel.pull("nobody", to="x")
            with mock.patch.dict(os.environ, {"PATH": folder + "/none", "ORIEL_PROGRAM": ""}):
                self.assertRaises(oriel.UnsupportedError, oriel.pull, "x")


class Life(unittest.TestCase):
    def test_the_bundled_model_needs_no_path(self):
        with oriel.Model(**ON_CPU) as model:
            self.assertEqual(model.info.name, "Oriel Tiny")
            self.assertIn("oriel-tiny", repr(model))
            with model.session():
                self.assertEqual(model.info.resident.total_bytes, model.plan.total_bytes)
            self.assertEqual(len(model.info.layers), model.info.n_layers)
            self.assertEqual(model.info.prefix.tokens, 0)
            self.assertEqual(model.last_error, "")

    def test_errors_say_what_to_do(self):
        for arguments, kind in (
            (("nowhere.gguf",), oriel.FileError), ((__file__,), oriel.FormatError),
            ((TINY, {"memory": "1MB"}), oriel.BudgetError), ((TINY, {"disable_features": "x"}), oriel.ArgumentError),
            ((TINY, {"prefix_file": "nowhere"}), oriel.FileError),
        ):
            options = arguments[1] if len(arguments) > 1 else {}
            with self.assertRaises(kind) as caught:
                oriel.Model(arguments[0], device="cpu", **options)
            self.assertRegex(str(caught.exception), r"\w: \w")
            self.assertIsInstance(caught.exception, oriel.Error)
            self.assertEqual(caught.exception.status, kind.status)
        self.assertTrue(issubclass(oriel.FileError, OSError) and issubclass(oriel.OutOfMemoryError, MemoryError))

    def test_closed_things_say_so(self):
        model = oriel.Model(TINY, **ON_CPU)
        chat = model.session()
        reply = chat.reply("Hello!")
        next(reply)
        model.close()
        self.assertTrue(model.closed and chat.closed and reply.finished)
        for call in (lambda: chat.add("user", "x"), lambda: chat.stats, lambda: model.info, model.session,
                     lambda: model.__enter__(), lambda: chat.reply("x").text):
            with self.assertRaisesRegex(oriel.StateError, "closed"):
                call()
        for thing in (model, chat):
            self.assertIn("closed", repr(thing))
            thing.close()
        chat.cancel()

    def test_a_session_keeps_its_model(self):
        chat = oriel.Model(TINY, **ON_CPU).session()
        self.assertTrue(chat.reply("Hello!", max_tokens=2).text)
        chat.close()

    def test_as_many_sessions_as_were_asked_for(self):
        with oriel.Model(TINY, **ON_CPU) as model, model.session():
            with self.assertRaises(oriel.StateError):
                model.session()
            self.assertIn("session", model.last_error)

    def test_a_session_that_cannot_begin_is_gone(self):
        with oriel.Model(TINY, window=16, **ON_CPU) as model:
            with self.assertRaises(oriel.Error):
                model.session(messages=[{"role": "user"}, 5])
            model.session().close()

    def test_progress_can_stop(self):
        with self.assertRaises(oriel.Cancelled):
            oriel.Model(TINY, progress=lambda done, total: False, **ON_CPU)
        with self.assertRaises(ZeroDivisionError):
            oriel.Model(TINY, progress=lambda done, total: 1 / 0, **ON_CPU)
        seen = []
        with oriel.Model(TINY, progress=lambda done, total: seen.append((done, total)), **ON_CPU) as model:
            self.assertEqual(*seen[-1])
            seen.clear()
            with model.session(progress=lambda done, total: seen.append((done, total))) as chat:
                chat.append(TEXT)
                self.assertEqual(*seen[-1])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder, oriel.Model(TINY, **ON_CPU) as model, model.session() as chat:
            path = Path(folder) / "käse.oriel"
            chat.reply("Hello!", seed=1).run()
            chat.save_file(path)
            self.assertEqual(oriel.inspect_snapshot(path).position, chat.position)
            with self.assertRaises(oriel.FileError):
                chat.save_file(path, new_only=True)
            position = chat.position
            chat.reset()
            self.assertEqual(chat.restore(str(path), exact=True).tokens_held, position)

    def test_memory_given_back(self):
        with tempfile.TemporaryDirectory() as folder, oriel.Model(TINY, **ON_CPU) as model, model.session() as chat:
            chat.reply("Hello!", seed=1).run()
            for wrong in (("weights", folder), ("cache",)):
                with self.assertRaisesRegex(ValueError, 'folder= belongs to the level "cache"'):
                    model.trim(*wrong)
            for level in ("scratch", "weights", "cache"):
                model.trim(level, folder if level == "cache" else None)
                self.assertEqual(model.info.resident.level, level)
                self.assertLess(model.info.resident.total_bytes, model.plan.total_bytes)
            with self.assertRaises(oriel.StateError):
                chat.reply("x").run()
            model.resume()
            model.pause()
            self.assertTrue(model.info.resident.paused)
            model.resume(lambda done, total: None)
            self.assertTrue(chat.reply("Tell me a story.", max_tokens=5).text)
            next(reply := chat.reply("Go on."))
            with self.assertRaisesRegex(oriel.StateError, "reading"):
                model.pause()
            reply.close()

    def test_prefixes(self):
        with oriel.Model(TINY, system_prompt="You are brief.", sessions=2, **dict(ON_CPU, memory="30MB")) as model:
            self.assertGreater(model.info.prefix.tokens, 3)
            with model.session() as chat:
                self.assertEqual(chat.position, model.info.prefix.tokens)
        with oriel.Model(TINY, prefix_tokens=30, **ON_CPU) as model:
            with model.session() as chat:
                chat.append("Once upon a time")
                chat.make_prefix()
                self.assertEqual(model.info.prefix.tokens, chat.position)
            model.clear_prefix()
            self.assertEqual(model.info.prefix.tokens, 0)

    def test_inspect_and_devices(self):
        info = oriel.inspect()
        self.assertEqual((info.architecture, info.runs, info.missing), ("llama", True, []))
        self.assertEqual(sum(info.tensor_types.values()), info.tensor_count)
        self.assertEqual(oriel.devices()[-1].kind, "cpu")

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_fork_of_the_process_has_no_model(self):
        with oriel.Model(TINY, **ON_CPU) as model, model.session() as chat:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    chat.stats
                except oriel.StateError as error:
                    code = 0 if "process" in str(error) else 2
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue(chat.reply("Hello!", max_tokens=2).text)


if __name__ == "__main__":
    unittest.main()
