"""Error lines where an app would see nothing: structs without their size, loads without a log, unknown roles, messages with
parts that are not text."""

import ctypes
import json
import logging
import re
import unittest

from support import ON_CPU, ROOT, TINY

import oriel
from oriel import _abi
from oriel._errors import ArgumentError, BudgetError, FileError, StateError
from oriel._calls import LIBRARY

OF_MODEL = ("oriel_model_load", "oriel_plan_describe", "oriel_file_describe")


class Native:
    """Calls as C makes them, with the error lines."""

    def __init__(self):
        self.lines = []
        self.log = _abi.log_fn(lambda level, line, user: level == 0 and self.lines.append(line.decode()))

    def options(self):
        options = _abi.new(_abi.Options)
        options.device = b"cpu"
        options.memory_bytes = 16 << 20
        options.log = self.log
        return options

    def of_model(self, name, path, options):
        """The status of a call that takes a path and options."""
        path, at = str(path).encode(), ctypes.byref(options)
        if name == "oriel_model_load":
            return LIBRARY.oriel_model_load(path, at, ctypes.byref(ctypes.c_void_p()))
        room = 1 << 16
        return getattr(LIBRARY, name)(path, at, ctypes.create_string_buffer(room), room, ctypes.byref(ctypes.c_size_t()))


class Sizes(unittest.TestCase):
    """A struct_size that was forgotten."""

    def setUp(self):
        self.native = Native()

    def said(self, status, kind, size=0):
        self.assertEqual(status, ArgumentError.status)
        self.assertEqual(self.native.lines, [f"{kind}.struct_size is {size}: set it to sizeof({kind})"])
        self.native.lines.clear()

    def test_options(self):
        for name in OF_MODEL:
            options = self.native.options()
            options.struct_size = 0
            with self.subTest(name):
                self.said(self.native.of_model(name, TINY, options), "oriel_options")
        options = self.native.options()
        options.struct_size = 0
        at, needed = ctypes.byref(options), ctypes.byref(ctypes.c_size_t())
        self.said(LIBRARY.oriel_device_describe(at, 0, None, 0, needed), "oriel_options")
        self.said(LIBRARY.oriel_snapshot_describe(None, b"x", 1, at, None, 0, needed), "oriel_options")
        self.said(LIBRARY.oriel_shape_describe(b"llama-3.2-1b", at, None, 0, needed), "oriel_options")
        speed, result = _abi.new(_abi.Speed), _abi.new(_abi.SelfTestResult)
        self.said(LIBRARY.oriel_speed_measure(None, b"llama-3.2-1b", 0, at, ctypes.byref(speed)), "oriel_options")
        self.said(LIBRARY.oriel_self_test(at, None, None, None, ctypes.byref(result)), "oriel_options")

    def test_structs_in_options(self):
        for field, kind in (("calibration", _abi.Calibration), ("speed", _abi.Speed)):
            options = self.native.options()
            inner = kind()
            setattr(options, field, ctypes.pointer(inner))
            with self.subTest(field):
                status = self.native.of_model("oriel_plan_describe", TINY, options)
                self.assertEqual(status, ArgumentError.status)
                kind = f"oriel_{field}"
                self.assertIn(f"{kind}.struct_size is 0: set it to sizeof({kind})", self.native.lines[-1])

    def test_structs_of_calls_on_objects(self):
        def log(level, line):
            if level == logging.ERROR:
                self.native.lines.append(line)

        with oriel.Model(TINY, sessions=2, log=log, **dict(ON_CPU, memory="30MB")) as model, model.session() as chat:
            handle, loaded = chat._core.handle, model._core._handle
            made, needed = ctypes.c_void_p(), ctypes.c_size_t()
            at = ctypes.byref
            generation = _abi.new(_abi.Generation)
            no_token = _abi.token_fn()
            for name in ("oriel_chat_reply", "oriel_session_generate"):
                function = getattr(LIBRARY, name)
                self.said(function(handle, at(_abi.ReplyOptions()), no_token, None, at(generation)), "oriel_reply_options")
                self.said(function(handle, None, no_token, None, at(_abi.Generation())), "oriel_generation")
            self.said(LIBRARY.oriel_session_recover(handle, None, 0, None, None, at(_abi.Recovered())), "oriel_recovered")
            self.said(LIBRARY.oriel_session_create(loaded, at(_abi.SessionOptions()), at(made)), "oriel_session_options")
            self.said(LIBRARY.oriel_render(loaded, at(_abi.SessionOptions()), b"[]", 2, 0, None, 0, at(needed)),
                      "oriel_session_options")
            reply = _abi.Reply()
            reply.session = handle
            self.said(LIBRARY.oriel_reply_many(at(reply), 1), "oriel_reply")

    def test_fields_of_a_newer_version(self):
        class Newer(ctypes.Structure):
            _fields_ = [("options", _abi.Options), ("field", ctypes.c_uint64)]

        newer = Newer(self.native.options(), 1)
        newer.options.struct_size = ctypes.sizeof(newer)
        status = LIBRARY.oriel_model_load(str(TINY).encode(), ctypes.byref(newer.options), ctypes.byref(ctypes.c_void_p()))
        self.assertEqual(status, ArgumentError.status)
        self.assertIn("oriel_options has fields that this version of Oriel does not know", self.native.lines[0])


class WithoutALog(unittest.TestCase):
    """oriel_options.error_line"""

    def setUp(self):
        self.native = Native()
        self.buffer = ctypes.create_string_buffer(b"from before", 1024)
        self.options = self.native.options()
        self.options.error_line = ctypes.addressof(self.buffer)
        self.options.error_line_bytes = len(self.buffer)

    def test_it_is_the_line_of_the_log(self):
        for has_log in (True, False):
            if not has_log:
                self.options.log = _abi.log_fn()
            for name in OF_MODEL:
                with self.subTest(name, has_log=has_log):
                    self.native.lines.clear()
                    self.assertEqual(self.native.of_model(name, "missing.gguf", self.options), FileError.status)
                    line = self.buffer.value.decode()
                    self.assertIn("missing.gguf", line)
                    self.assertEqual(self.native.lines, [line] if has_log else [])

    def test_a_budget(self):
        self.options.memory_bytes = 64
        self.assertEqual(self.native.of_model("oriel_model_load", TINY, self.options), BudgetError.status)
        self.assertEqual([self.buffer.value.decode()], self.native.lines)

    def test_a_prefix_that_the_new_model_refuses(self):
        """Its own log has the line."""
        self.options.log = _abi.log_fn()
        self.options.settings = ctypes.pointer(_abi.Setting(b"prefix_file", b"missing.prefix"))
        self.options.setting_count = 1
        self.assertNotEqual(self.native.of_model("oriel_model_load", TINY, self.options), 0)
        self.assertIn("missing.prefix", self.buffer.value.decode())

    def test_success_leaves_it_empty(self):
        for name in OF_MODEL[1:]:
            self.buffer.value = b"from before"
            self.assertEqual(self.native.of_model(name, TINY, self.options), 0)
            self.assertEqual(self.buffer.value, b"")

    def test_it_is_not_used_after_the_call(self):
        model, session = ctypes.c_void_p(), ctypes.c_void_p()
        at = ctypes.byref
        self.assertEqual(LIBRARY.oriel_model_load(str(TINY).encode(), at(self.options), at(model)), 0)
        self.assertEqual(LIBRARY.oriel_session_create(model, None, at(session)), 0)
        self.buffer.value = b"the app's again"
        self.assertEqual(LIBRARY.oriel_chat_reply(session, None, _abi.token_fn(), None, None), StateError.status)
        self.assertEqual(LIBRARY.oriel_session_create(model, None, at(ctypes.c_void_p())), StateError.status)
        self.assertEqual(self.buffer.value, b"the app's again")
        LIBRARY.oriel_session_destroy(session)
        LIBRARY.oriel_model_free(model)

    def test_it_is_cut_between_characters(self):
        path = "ä" * 40
        for room in range(1, 12):
            self.options.error_line_bytes = room
            self.buffer.value = b"x" * 100
            self.assertEqual(self.native.of_model("oriel_model_load", path, self.options), FileError.status)
            self.assertLess(len(self.buffer.value), room)
            self.buffer.value.decode("utf-8")
            self.assertEqual(self.buffer.raw[room:20], b"x" * (20 - room))


class Messages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lines = []
        cls.model = oriel.Model(TINY, sessions=2, log=cls.log, **dict(ON_CPU, memory="30MB"))

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    @classmethod
    def log(cls, level, line):
        if level == logging.WARNING and "role" in line:
            cls.lines.append(line)

    def setUp(self):
        self.lines.clear()

    NAMING = ("{% for m in messages %}{% if m.role == 'user' %}<|u|>{{ m.content }}{% elif m.role == \"assistant\" %}<|a|>"
              "{{ m.content }}{% elif m['role'] == 'developer' %}<|d|>{{ m.content }}{% endif %}{% endfor %}<|a|>")
    GENERIC = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
               "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")

    def test_a_role_that_the_template_does_not_name(self):
        for template in (self.GENERIC, None):
            self.lines.clear()
            with self.subTest(template), self.model.session(template=template) as chat:
                chat.add("asistant", "Hello!")
                self.assertEqual(len(self.lines), 1, self.lines)
                self.assertIn('"asistant"', self.lines[0])
                chat.add([{"role": "user", "content": "Hi"}, {"role": "developer", "content": "Be brief."}])
                self.assertEqual(len(self.lines), 2, self.lines)
                self.assertTrue(self.lines[1].startswith('message 2 has the role "developer"'), self.lines)
        self.lines.clear()
        with self.model.session(template="chatml") as chat:
            chat.add("asistant", "Hello!")
        self.assertEqual(len(self.lines), 1, self.lines)

    def test_roles_that_it_names(self):
        for template in (self.NAMING, self.GENERIC, "chatml", None):
            with self.model.session(template=template) as chat:
                chat.add("user", "Hi")
                chat.add("assistant", "Hi")
                if template == self.NAMING:
                    chat.add({"role": "developer", "content": "Be brief."})
        self.assertEqual(self.lines, [])

    def test_rendering_says_which_message_is_left_out(self):
        messages = [{"role": "user", "content": "Hi"}, {"role": "asistant", "content": "Hello!"}]
        text = self.model.render(messages, template=self.NAMING)
        self.assertNotIn("Hello!", text)
        self.assertEqual([line.split(",")[0] for line in self.lines],
                         ["the chat template leaves out message 2",
                          'message 2 has the role "asistant"'])
        self.lines.clear()
        self.model.render(messages[:1] + [{"role": "assistant", "content": "Hello!"}], template=self.NAMING)
        self.assertEqual(self.lines, [])

    PARTS = {
        "image_url": "images", "input_image": "images", "image": "images", "input_audio": "sounds", "audio": "sounds",
        "video": "videos", "video_url": "videos", "file": "files", "input_file": "files",
    }

    def test_parts_that_are_no_text(self):
        for kind, what in self.PARTS.items():
            for part in ({"type": kind, kind: {"url": "data:,x"}}, {kind: "x"}):
                content = [{"type": "text", "text": "What is this?"}, part]
                refused = "the model has no eyes" if what == "images" else f"{what} are not supported"
                wanted = f'{refused}.*"{kind}"'
                for template in (None, self.GENERIC, "chatml"):
                    with self.subTest(kind, template=template), self.model.session(template=template) as chat:
                        for message in ({"role": "user", "content": content}, {"role": "user", "content": part}):
                            with self.assertRaisesRegex(oriel.UnsupportedError, wanted):
                                chat.add(message)
                            with self.assertRaisesRegex(oriel.UnsupportedError, wanted):
                                chat.reply([message], max_tokens=1).run()
                            self.assertEqual(chat.position, 0)
                            with self.assertRaisesRegex(oriel.UnsupportedError, wanted):
                                self.model.render([message], template=template)


class Mistakes(unittest.TestCase):
    """tests/data/mistakes.json, which web/test/calls.test.mjs has, too."""

    def make(self, case):
        options = case.get("options", {})
        load = dict(ON_CPU, memory="30MB")
        if case["call"] == "load":
            return oriel.Model(case.get("path", TINY), **dict(load, **options))
        with oriel.Model(TINY, **load, **case.get("load", {})) as model:
            if case["call"] == "session" and not case.get("many"):
                return model.session(**options)
            with model.session() as chat:
                if case.get("many"):
                    return model.session()
                if case["call"] == "embed":
                    return chat.embed("word " * case["words"])
                if case["call"] == "back":
                    return chat.go_back(**{name: case[name] for name in ("turns", "mark") if name in case})
                return chat.reply(case.get("message", "Hello!"), **options).text

    def test_each_says_what_to_do_as_python_writes_it(self):
        cases = json.loads((ROOT / "tests/data/mistakes.json").read_text(encoding="utf-8"))["cases"]
        self.assertGreater(len(cases), 20)
        for case in cases:
            with self.subTest(case):
                with self.assertRaises(oriel.Error) as caught:
                    self.make(case)
                self.assertRegex(str(caught.exception), "^" + re.sub(r"<(\w+)>", r"\1=", case["line"]) + "$")
                self.assertEqual(caught.exception.status, case["status"])

    def test_a_name_in_place_of_a_path(self):
        for name in ("qwen3-0.6b", "Qwen/Qwen2.5-0.5B-Instruct-GGUF", "https://example.org/model.gguf"):
            with self.assertRaisesRegex(FileNotFoundError, rf": it is not there, check the path, or fetch a model with oriel.pull\('{name}'\)$"):
                oriel.Model(name)


if __name__ == "__main__":
    unittest.main()
