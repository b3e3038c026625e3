"""The programs of apps/examples say what they should: test_examples.py MODEL FOLDER [EMULATOR...]"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MODEL, FOLDER, EMULATOR = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]


def run(name, *args, say=""):
    done = subprocess.run([*EMULATOR, FOLDER / name, *args], input=say, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


class Examples(unittest.TestCase):
    def test_the_short_ones_answer(self):
        for name, args in (("minimal", ["What is your name?"]), ("hello", []), ("hello_cpp", [])):
            code, out, err = run(name, MODEL, *args)
            self.assertEqual((0, ""), (code, err))
            self.assertRegex(out, r"[A-Za-z]{2,}")  # it is sampled

    def test_each_of_several_conversations_is_its_own(self):
        alone = [run("conversations", MODEL, say=lines)[1] for lines in
                 ("ann My name is Ann.\n\nann What is my name?\n", "bob What is your name?\n")]
        both = run("conversations", MODEL, say="ann My name is Ann.\nbob What is your name?\n\nann What is my name?\n")
        self.assertEqual((0, ""), (both[0], both[2]))
        self.assertEqual(sorted("".join(alone).splitlines()), sorted(both[1].splitlines()))
        self.assertEqual(["ann", "bob", "ann"], [line.split(":")[0] for line in both[1].splitlines()])

    def test_a_fifth_guest_is_refused_with_the_reason(self):
        code, _, err = run("conversations", MODEL, say="".join(f"guest{i} Hello!\n" for i in range(5)))
        self.assertEqual(1, code)
        self.assertIn("there is no room for guest4: at most 4 talk at a time", err)

    def test_a_worker_takes_the_conversation_to_another_budget(self):
        with tempfile.TemporaryDirectory() as folder:
            snapshot = f"{folder}/chat"
            code, out, err = run("worker_cpp", MODEL, snapshot, say="My name is Zoe.\n/memory 10\nWhat is my name?\n")
            self.assertEqual((0, ""), (code, err))
            first, second = [int(tokens) for tokens in re.findall(r"\((\d+) tokens\)", out)]
            self.assertGreater(first, second)
            self.assertEqual(2, out.count("()\n"))  # two replies ended
            self.assertGreater(pathlib.Path(snapshot).stat().st_size, 0)
            code, out, _ = run("worker_cpp", MODEL, snapshot, say="Hello!\n/memory 1\n")
            self.assertIn("give it more)", out)  # the reason, and the program goes on
            self.assertEqual(0, code)

    def test_a_file_that_is_missing_is_one_line(self):
        for name in ("hello", "hello_cpp"):
            code, _, err = run(name, "missing.gguf")
            self.assertNotEqual(0, code)
            self.assertEqual("cannot open missing.gguf: it is not there, check the path\n", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
