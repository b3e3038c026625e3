"""Text, numbers, options and memory of a model, beside what the program says of the same."""

import array
import importlib
import math
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import ON_CPU, TINY, needs_program, program

import oriel
from oriel import _options, _vectors

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
        self.assertEqual(self.model.chat_template(), said["template"])

    def test_chat_template_names(self):
        self.assertEqual(self.model.chat_template("gemma3"), "gemma3")
        self.assertRaises(ValueError, self.model.chat_template, "nothing-known")


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
            with mock.patch.object(_vectors, "NUMPY", None):
                session.reset()
                for ours, other in zip(session.score(TEXT).nll, score):
                    self.assertAlmostEqual(ours, other, places=6)
                session.reset()
                plain = session.evaluate([5, 6, 7])
                self.assertIsInstance(plain[0], array.array)
                self.assertEqual([list(row) for row in plain], [[float(value) for value in row] for row in rows])
                self.assertEqual(list(session.logits()), list(plain[-1]))

    def test_evaluate_can_stop(self):
        seen = []
        with self.model.session() as session:
            session.evaluate([5, 6, 7, 8], lambda index, row: seen.append(index) or index < 1)
            self.assertEqual(seen, [0, 1])
            with self.assertRaises(ZeroDivisionError):
                session.evaluate([5, 6], lambda index, row: 1 / 0)
            self.assertRaises(ValueError, session.score, [1, 1 << 20])

    @needs_program
    def test_vectors_are_the_programs(self):
        said = program("embed", TINY, "--device", "cpu", stdin=TEXT)
        vector = self.model.embed(TEXT)
        self.assertAlmostEqual(math.fsum(float(value) ** 2 for value in vector), 1, places=5)
        for ours, theirs in zip(vector, said["embedding"]):
            self.assertAlmostEqual(float(ours), theirs, places=5)
        self.assertNotAlmostEqual(float(sum(self.model.embed(TEXT, pooling="last") - vector)), 0, places=3)

    @unittest.skipUnless(_vectors.NUMPY, "numpy is not installed")
    def test_numpy_where_it_is(self):
        numpy = importlib.import_module("numpy")
        with self.model.session() as session:
            ids = numpy.array([5, 6, 7])
            table = session.evaluate(ids)
            self.assertEqual((table.shape, table.dtype), ((3, self.model.info.n_vocab), numpy.float32))
            table[0, 0] = 1  # its own memory
            self.assertEqual(self.model.detokenize(ids), self.model.detokenize([5, 6, 7]))


class Options(unittest.TestCase):
    def test_zero_is_what_it_says(self):
        made = _options.generate_options(temperature=0, top_k=0, min_p=0, seed=0).struct
        self.assertEqual((made.greedy, made.top_k, made.min_p), (1, 0xFFFFFFFF, -1))
        self.assertNotEqual(made.seed, 0)
        made = _options.model_options(sinks=0, checkpoints=0).struct
        self.assertEqual((made.sink_tokens, made.checkpoints), (0xFFFFFFFF, 0xFFFFFFFF))
        with oriel.Model(TINY, sinks=0, **ON_CPU) as model:
            self.assertEqual(model.plan.sink_tokens, 0)

    def test_guesses_change_no_token(self):
        said = []
        for drafts in (0, 7):
            with oriel.Model(TINY, draft_tokens=drafts, **ON_CPU) as model, model.session() as session:
                self.assertEqual(model.plan.draft_tokens, drafts)
                reply = session.generate("one two three one two three one two", greedy=True, max_tokens=40, draft="always")
                said.append(reply.text)
                self.assertLessEqual(reply.generation.tokens_accepted, reply.generation.tokens_drafted)
                self.assertEqual(session.stats.tokens_drafted, reply.generation.tokens_drafted)
                self.assertEqual(reply.generation.tokens_drafted > 0, drafts > 0)
        self.assertEqual(said[0], said[1])
        with self.assertRaises(ValueError):
            _options.generate_options(draft="sometimes")

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

    def test_wrong_values_are_refused_before_anything_happens(self):
        for wrong in ({"max_tokens": 0}, {"top_p": 0}, {"top_p": float("nan")}, {"seed": -1}, {"tool_choice": "any"},
                      {"stop": ["a\0b"]}, {"repeat_penalty": 0}, {"logprobs": 21}, {"logit_bias": {-1: 1}}):
            with self.assertRaises(ValueError, msg=wrong):
                _options.generate_options(**wrong)
        for wrong in ({"memory": "lots"}, {"memory": 0}, {"kv": "k2v2"}, {"device": "gpu"}, {"device": "cpu:1"},
                      {"window": 0}, {"sessions": 65}, {"on_file": "some"}):
            with self.assertRaises(ValueError, msg=wrong):
                _options.model_options(**wrong)
        for wrong in ({"max_tokens": 1.5}, {"seed": "x"}, {"max_tokens": True}):
            with self.assertRaises(TypeError, msg=wrong):
                _options.generate_options(**wrong)
        with self.assertRaises(TypeError):
            oriel.Model(TINY, memry="1MB")
        with self.assertRaises(TypeError):
            _options.model_options(window="most")

    def test_what_float32_takes_for_zero_is_not_the_default(self):
        made = _options.generate_options(temperature=1e-60, top_p=1e-60, min_p=1e-60, repeat_penalty=1e-60).struct
        self.assertEqual((made.greedy, made.temperature), (1, 0))
        for value in (made.top_p, made.min_p, made.repeat_penalty):
            self.assertTrue(0 < value < 1e-40, value)
        made = _options.generate_options(temperature=1e-30).struct
        self.assertTrue(made.greedy == 0 and made.temperature > 0)

    def test_none_is_the_default(self):
        nothing = ("stop", "presence_penalty", "frequency_penalty", "min_tokens", "tool_choice", "draft")
        chosen = ("kv", "state_format", "on_file", "device_test", "activation_bits", "window_shares", "sessions", "draft_tokens")
        with oriel.Model(TINY, **dict.fromkeys(chosen), **ON_CPU) as model:
            with model.session(first_position=None) as chat:
                self.assertTrue(chat.reply("Hello!", max_tokens=2, seed=1, **dict.fromkeys(nothing)).text)
                self.assertTrue(chat.generate(max_tokens=2, seed=1, **dict.fromkeys(nothing[:4])).text)
        self.assertEqual(oriel.plan(TINY, memory="16MB", device=None, kv=None), oriel.plan(TINY, memory="16MB"))

    def test_no_number_wraps(self):
        plan = oriel.plan(TINY, memory="16MB", device="cpu")
        for wrong in ((1 << 32) + 7, -1):
            for call in (lambda value: plan.predict(value), lambda value: plan.predict(0, value),
                         lambda value: _options.model_options(calibration=oriel.Calibration(windows=[(value, 0.1, [1])])),
                         lambda value: _options.model_options(calibration=oriel.Calibration(windows=[(64, 0.1, [value])]))):
                self.assertRaises(ValueError, call, wrong)
        for call in (lambda: oriel.plan(arch="llama-3.2-1b\0x", memory="1GB"), lambda: oriel.measure_speed(arch="a\0b")):
            with self.assertRaisesRegex(ValueError, "arch has no NUL"):
                call()

    def test_ids_are_whole_numbers(self):
        with oriel.Model(TINY, **ON_CPU) as model, model.session() as session:
            for call in (session.append, session.evaluate, session.score, model.detokenize):
                for wrong in (["301"], [300.9]):
                    self.assertRaises(TypeError, call, wrong)
            self.assertEqual(session.position, 0)

    def test_sizes(self):
        for text, value in (("300MB", 300_000_000), ("300MiB", 300 << 20), ("1.5GiB", 3 << 29), (" 2 k ", 2048), ("7", 7), (9, 9)):
            self.assertEqual(oriel.parse_size(text), value, text)
        for wrong in ("", "MB", "-1", "1.5", "300 XB", "1i", "0", 0, -3):
            self.assertRaises(ValueError, oriel.parse_size, wrong)
        self.assertRaises(TypeError, oriel.parse_size, 1.5)
        self.assertRaises(ValueError, oriel.parse_size, 1 << 64)
        self.assertEqual(oriel.parse_size((1 << 64) - 1), (1 << 64) - 1)
        self.assertEqual([oriel.format_size(size) for size in (9, 1024, 10798096, 5 << 40)], ["9 B", "1.0 KiB", "10.3 MiB", "5.0 TiB"])

    def test_every_keyword_reaches_its_struct(self):
        """What the public calls take is what the builders take."""
        import inspect

        def names(function):
            return {name for name, item in inspect.signature(function).parameters.items() if item.kind is item.KEYWORD_ONLY}

        self.assertEqual(names(oriel.Model.__init__), names(_options.model_options) - {"measure_again"})
        self.assertEqual(names(oriel.Session.reply), names(_options.generate_options))
        self.assertEqual(names(oriel.Session.generate) - {"special", "bos"}, names(_options.generate_options) - {"tool_choice"})
        both = names(_options.chat_options) | names(_options.session_options)
        self.assertEqual(names(oriel.Model.session) - {"system", "messages"}, both)
        self.assertLessEqual(names(oriel.plan) - {"arch", "weights"}, names(_options.model_options))


class Life(unittest.TestCase):
    def test_the_bundled_model_needs_no_path(self):
        with oriel.Model(**ON_CPU) as model:
            self.assertEqual(model.info.name, "Oriel Tiny")
            self.assertIn("oriel-tiny", repr(model))
            with model.session():
                self.assertEqual(model.resident.total_bytes, model.plan.total_bytes)
            self.assertEqual(len(model.layer_formats), model.info.n_layers)
            self.assertEqual(model.prefix.tokens, 0)
            self.assertEqual(model.last_error, "")

    def test_errors_say_what_to_do(self):
        for arguments, kind in (
            (("nowhere.gguf",), oriel.FileError), ((__file__,), oriel.FormatError),
            ((TINY, {"memory": "1MB"}), oriel.BudgetError), ((TINY, {"disabled_features": "x"}), oriel.ArgumentError),
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
            self.assertEqual(chat.restore_file(str(path), exact=True).tokens_held, position)

    def test_memory_given_back(self):
        with tempfile.TemporaryDirectory() as folder, oriel.Model(TINY, **ON_CPU) as model, model.session() as chat:
            chat.reply("Hello!", seed=1).run()
            for wrong in (("weights", folder), ("cache",)):
                with self.assertRaisesRegex(ValueError, 'folder is for the level "cache" alone'):
                    model.trim(*wrong)
            for level in ("scratch", "weights", "cache"):
                model.trim(level, folder if level == "cache" else None)
                self.assertEqual(model.resident.level, level)
                self.assertLess(model.resident.total_bytes, model.plan.total_bytes)
            with self.assertRaises(oriel.StateError):
                chat.reply("x").run()
            model.resume()
            model.pause()
            self.assertTrue(model.resident.paused)
            model.resume(lambda done, total: None)
            self.assertTrue(chat.reply("Tell me a story.", max_tokens=5).text)
            next(reply := chat.reply("Go on."))
            with self.assertRaisesRegex(oriel.StateError, "reading"):
                model.pause()
            reply.close()

    def test_prefixes(self):
        with oriel.Model(TINY, system_prompt="You are brief.", sessions=2, **dict(ON_CPU, memory="30MB")) as model:
            self.assertGreater(model.prefix.tokens, 3)
            with model.session() as chat:
                self.assertEqual(chat.position, model.prefix.tokens)
        with oriel.Model(TINY, prefix_tokens=30, **ON_CPU) as model:
            with model.session() as chat:
                chat.append("Once upon a time")
                chat.make_prefix()
                self.assertEqual(model.prefix.tokens, chat.position)
            model.clear_prefix()
            self.assertEqual(model.prefix.tokens, 0)

    def test_inspect_and_devices(self):
        info = oriel.inspect()
        self.assertEqual((info.architecture, info.runs, info.missing), ("llama", True, ()))
        self.assertEqual(sum(kind.tensors for kind in info.tensor_types), info.tensor_count)
        self.assertEqual(oriel.devices()[-1].device_kind, "cpu")

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
