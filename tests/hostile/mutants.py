"""Mutants of model files, each given to the program and to an app, in processes of their own."""

import json
import os
import queue
import shutil
import subprocess
import threading

from process import MARGIN_BYTES, SOON_SECONDS, problems, run

LEAST_MEMORY = 1 << 20  # memory that the smallest models need in addition to their weights
TALK = b"Where is the red ball?\nAnd \xc3\xa4\xe2\x82\xac <|im_end|> 12?\n"
CPU = ["--device", "cpu", "--threads", "1"]
TURNS = 9  # each mutant gets a single command of this many
RETRIES = 2  # where the machine was busy


def commands(model, memory, number, messages):
    """(name, arguments, stdin) for mutant number `number`."""
    small = ["--memory", str(memory)]
    some = [model, *CPU, *small, "--tokens", "3", "--seed", "1"]
    turns = [
        ("tokenize", ["tokenize", model, "--special"], TALK),
        ("render", ["render", model, "--messages", messages], b""),
        ("render with tools", ["render", model, "--messages", messages, "--tools", messages + ".tools"], b""),
        ("chat", ["chat", *some], TALK),
        ("embed", ["embed", model, *CPU, *small], TALK),
        ("run on file", ["run", *some, "--on-file", "all", "--prompt", "Once"], b""),
        ("run by a schema", ["run", *some, "--prompt", "Once", "--schema", messages + ".schema"], b""),
        ("eval", ["eval", model, *CPU, *small, "--text", messages, "--max-tokens", "12"], b""),
        ("run in a window", ["run", *some, "--window", "16", "--kv", "k8v4", "--prompt", "Once upon a time " * 8], b""),
    ]
    raw = ["--raw"] if number % 3 == 0 else []
    return [("info", ["info", model, "--json"], b""), ("plan", ["plan", model, *small, "--json"], b""),
            ("run", ["run", *some, *raw, "--prompt", "Once <|im_end|> \xc3\xa4"], b""),
            turns[number // 2 % TURNS]]


# 2: a file without a template does not mention tools, so --tools is wrong usage. 4: --tokens cuts a reply under a schema.
MORE_CODES = {"render with tools": (2,), "run by a schema": (4,)}


class Mutants:
    def __init__(self, oriel, models, scratch, seed, say):
        self.oriel, self.models, self.scratch, self.seed, self.say = oriel, models, scratch, seed, say
        self.lock = threading.Lock()
        self.passed = self.failed = self.processes = self.used = 0
        self.slowest, self.largest = 0.0, 0
        self.baseline = {}

    def environment(self, folder):
        return {"HOME": folder, "PATH": os.environ["PATH"], "XDG_CACHE_HOME": f"{folder}/cache", "LANG": "C.UTF-8",
                "XDG_DATA_HOME": f"{folder}/data"}

    def prepare(self, name):
        folder = os.path.join(self.scratch, name)
        os.makedirs(folder, exist_ok=True)
        messages = f"{folder}/messages.json"
        with open(messages, "w", encoding="utf-8") as file:
            json.dump([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is it?"}], file)
        with open(messages + ".schema", "w", encoding="utf-8") as file:
            json.dump({"type": "object", "properties": {"a": {"enum": [1, "b"]}}, "required": ["a"]}, file)
        with open(messages + ".tools", "w", encoding="utf-8") as file:
            json.dump([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}], file)
        return folder, messages

    def all_of(self, folder, messages, number, size):
        """(name, whole command, stdin, whether the file counts) of a mutant."""
        path = f"{folder}/model.gguf"
        memory = max(2 * size, LEAST_MEMORY)
        for name, args, stdin in commands(path, memory, number, messages):
            yield name, [self.oriel, *args], stdin
        # `use` counts its own bytes exactly; the number selects the cap; there are four caps.
        yield "use", [self.models, "use", str(number * 2654435761 % (1 << 32)), path], b""

    def measure(self):
        """The memory of each command with a small valid model: the constant added to twice the file."""
        folder, messages = self.prepare("sound")
        path = f"{folder}/model.gguf"
        for sound in (3, 18):
            subprocess.run([self.models, "sound", str(sound), path], check=True)
            size = os.path.getsize(path)
            for number in range(0, 2 * TURNS, 2):
                for name, args, stdin in self.all_of(folder, messages, number, size):
                    outcome = run(args, self.environment(folder), folder, 60, stdin=stdin)
                    if outcome.code not in (0, 3, *MORE_CODES.get(name, ())):
                        raise SystemExit(f"a sound model fails: {outcome}")
                    taken = outcome.peak_bytes - 2 * size
                    self.baseline[name] = max(self.baseline.get(name, 0), taken)

    def judge(self, name, args, stdin, folder, size):
        most = 2 * size + self.baseline[name] + MARGIN_BYTES
        if name == "use":
            most += 64 << 20
        codes = (0, 1, 3, *MORE_CODES.get(name, ()))
        for _ in range(RETRIES + 1):
            outcome = run(args, self.environment(folder), folder, 4 * SOON_SECONDS, stdin=stdin)
            found = problems(outcome, most_bytes=most, codes=codes)
            if not found or outcome.hung or outcome.seconds <= SOON_SECONDS:
                break
        with self.lock:
            self.processes += 1
            self.used += name == "run" and outcome.code == 0
            self.slowest = max(self.slowest, outcome.seconds)
            self.largest = max(self.largest, outcome.peak_bytes - most + MARGIN_BYTES)
        return outcome, found

    def one(self, number, maker, folder, messages):
        path = f"{folder}/model.gguf"
        maker.stdin.write(f"{number} {path}\n")
        maker.stdin.flush()
        what = maker.stdout.readline().strip()
        if not what:
            raise SystemExit("the maker of mutants ended")
        size = os.path.getsize(path)
        good = True
        for name, args, stdin in self.all_of(folder, messages, number, size):
            outcome, found = self.judge(name, args, stdin, folder, size)
            if found:
                good = False
                kept = f"{self.finds()}/mutant-{self.seed}-{number}.gguf"
                shutil.copy(path, kept)
                self.say(f"FAILED  mutant {number} of seed {self.seed} ({what}), {size} bytes, kept as {kept}: "
                         f"{'; '.join(found)}: {outcome}")
        with self.lock:
            self.passed += good
            self.failed += not good
            done = self.passed + self.failed
            if done % 500 == 0:
                self.say(f"{done} mutants, {self.failed} failed, {self.used} answered, {self.slowest:.1f} s at most")

    @staticmethod
    def finds():
        os.makedirs("hostile-finds", exist_ok=True)
        return os.path.abspath("hostile-finds")

    def work(self, name, numbers):
        folder, messages = self.prepare(name)
        maker = subprocess.Popen([self.models, "make", str(self.seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True, errors="replace", env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        try:
            while True:
                self.one(numbers.get_nowait(), maker, folder, messages)
        except queue.Empty:
            pass
        finally:
            maker.stdin.close()
            maker.wait()

    def run(self, first, count, jobs):
        self.measure()
        numbers = queue.SimpleQueue()
        for number in range(first, first + count):
            numbers.put(number)
        threads = [threading.Thread(target=self.work, args=(f"mutants{i}", numbers)) for i in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        unseen = count - self.passed - self.failed
        self.failed += unseen  # a worker that ended says why itself
        constants = ", ".join(f"{name} {taken >> 20}" for name, taken in sorted(self.baseline.items()))
        self.say(f"{count} mutants of seed {self.seed} in {self.processes} processes: {self.failed} failed; {self.used} "
                 f"answered, {self.slowest:.1f} s at most, {self.largest >> 10} KiB at most beside twice the file and "
                 f"what a sound model takes (MiB: {constants})")
