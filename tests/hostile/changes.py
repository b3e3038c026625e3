"""Changes files at random moments while the program, or an app, reads them."""

import ctypes
import glob
import json
import os
import random
import shutil
import subprocess
import threading
import traceback

from process import SOON_SECONDS, Process, problems

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = f"{SOURCE}/tests/data"
TINY = f"{SOURCE}/models/oriel-tiny/oriel-tiny-q8_0.gguf"
EXPERTS = f"{DATA}/models/lfm2moe-q4_0.gguf"
ROWS = f"{DATA}/models/gemma4-e-q8_0.gguf"
DENSE = f"{DATA}/models/llama-q2_k.gguf"
FIXED = ["--memory", "64MiB", "--device", "cpu", "--threads", "1", "--greedy"]
LONG = [*FIXED, "--ignore-stop", "--tokens", "60", "--prompt", "Once upon a time"]
LAVAPIPE = glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json")[:1]
KEEP_SIZE, PUNCH_HOLE = 1, 2
TURNS = 15  # until another scene is taken: most of a process is over in some milliseconds
libc = ctypes.CDLL(None, use_errno=True)


def write_at(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def become(path, make):
    """Another thing of that name."""
    os.unlink(path)
    make(path)


def replace_by(path, data):
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.rename(path + ".new", path)


def write_over(path, data):
    with open(path, "wb") as file:
        file.write(data)


def punch(path, offset, length):
    with open(path, "r+b") as file:
        libc.fallocate(file.fileno(), KEEP_SIZE | PUNCH_HOLE, ctypes.c_long(offset), ctypes.c_long(length))


def storm(path, chance):
    with open(path, "rb") as file:
        data = file.read()
    for _ in range(30):
        os.truncate(path, chance.randrange(len(data) + 1))
        write_over(path, data)


def acts(path, chance):
    """Possible changes to a file; (name, function)."""
    size = max(1, os.path.getsize(path))
    at, length = chance.randrange(size), chance.choice([1, 8, 4096, size])
    junk = chance.randbytes(min(length, size - at))
    return [
        ("cut off to nothing", lambda: os.truncate(path, 0)),
        ("cut off", lambda: os.truncate(path, at)),
        ("cut off by a byte", lambda: os.truncate(path, size - 1)),
        ("grown by zeros", lambda: os.truncate(path, size + length)),
        ("grown to a gibibyte", lambda: os.truncate(path, 1 << 30)),
        ("overwritten", lambda: write_at(path, at, junk)),
        ("overwritten at its beginning", lambda: write_at(path, 4, b"\xff" * 24)),
        ("written anew", lambda: write_over(path, junk)),
        ("replaced by another", lambda: replace_by(path, junk)),
        ("replaced by a sound model", lambda: shutil.copy(DENSE, path + ".new") and os.rename(path + ".new", path)),
        ("given a hole", lambda: punch(path, at, size)),
        ("removed", lambda: os.unlink(path)),
        ("a folder now", lambda: become(path, os.mkdir)),
        ("a pipe now", lambda: become(path, os.mkfifo)),
        ("a link to itself now", lambda: become(path, lambda p: os.symlink(p, p))),
        ("an endless device now", lambda: become(path, lambda p: os.symlink("/dev/zero", p))),
        ("nobody's to read", lambda: os.chmod(path, 0)),
        ("dated otherwise", lambda: os.utime(path, (1, 1))),
        ("cut and mended many times", lambda: storm(path, chance)),
    ]


class Scene:
    """A command with the files it reads, in a folder of its own, and which of them change."""

    def __init__(self, name, args, victims, files, stdin=b"", pipes=True, own="", warm=False, leaks=True):
        self.name, self.args, self.victims, self.files, self.stdin = name, args, victims, files, stdin
        self.pipes = pipes  # a pipe in its place is an error: elsewhere it is read to its end
        self.own = own      # files that the command makes change, too: the folder that they are in
        self.warm = warm    # its entries in the cache folder exist
        self.leaks = leaks


def scenes(folder):
    model, text = f"{folder}/model.gguf", f"{folder}/text"
    side = f"{model}.calibration.json"
    say = b"Hello!\nWhere is it?\nWhy?\n"
    messages = json.dumps([{"role": "user", "content": "Once upon a time"}] * 1).encode()
    batch = b"".join(b'{"prompt": "Say %d", "tokens": 8}\n' % i for i in range(6))
    some = {model: DENSE}
    return [
        Scene("info", ["info", model], [model], some),
        Scene("plan", ["plan", model, "--memory", "2MiB"], [model], some),
        Scene("tokenize", ["tokenize", model], [model], some, say),
        Scene("run", ["run", model, *LONG], [model], some),
        Scene("run, rows on file", ["run", model, *LONG, "--on-file", "rows"], [model], {model: ROWS}),
        Scene("run, experts on file", ["run", model, *LONG, "--on-file", "all", "--expert-slots", "2"], [model],
              {model: EXPERTS}),
        Scene("chat, experts on file", ["chat", model, *FIXED, "--tokens", "20", "--on-file", "all"], [model],
              {model: EXPERTS}, say),
        Scene("run with a sidecar", ["run", model, *LONG], [side], {model: TINY, side: TINY + ".calibration.json"}),
        Scene("plan with a sidecar", ["plan", model, "--memory", "16MiB"], [side],
              {model: TINY, side: TINY + ".calibration.json"}),
        Scene("run behind a prefix", ["run", model, *LONG, "--prefix-file", text], [text],
              {model: TINY, text: f"{DATA}/prefix/page.gguf"}),
        Scene("chat behind a conversation", ["chat", model, *FIXED, "--tokens", "8", "--load", f"{folder}/kept.session"],
              [f"{folder}/kept.session"], {model: EXPERTS}, say),
        Scene("render", ["render", model, "--messages", text], [text], {model: TINY, text: messages}, pipes=False),
        Scene("run --messages", ["run", model, *FIXED, "--tokens", "8", "--messages", text], [text],
              {model: TINY, text: messages}, pipes=False),
        Scene("run --batch", ["run", model, *FIXED, "--batch", text], [text], {model: TINY, text: batch}, pipes=False),
        Scene("eval --text", ["eval", model, *FIXED, "--text", text, "--max-tokens", "200"], [text],
              {model: DENSE, text: f"{SOURCE}/README.md"}, pipes=False),
        Scene("an app", ["live", "3", model, folder], [model, f"{folder}/kept.session"], {model: EXPERTS},
              own=folder),
        Scene("plan for a device", ["plan", model, "--memory", "2MiB", "--device", "cpu"], [], some,
              own=f"{folder}/cache/oriel", warm=True),
    ] + [Scene("run on lavapipe", ["run", model, *[a if a != "cpu" else "vulkan" for a in LONG]], [], some,
               own=f"{folder}/cache/oriel", warm=True, leaks=False)] * bool(LAVAPIPE)


class Changes:
    def __init__(self, oriel, models, scratch, seed, say):
        self.oriel, self.models, self.scratch, self.seed, self.say = oriel, models, scratch, seed, say
        self.lock = threading.Lock()
        self.passed = self.failed = self.refused = 0
        self.slowest = 0.0

    def start(self, scene, folder):
        env = {"VK_ICD_FILENAMES": "".join(LAVAPIPE), "HOME": folder, "PATH": os.environ["PATH"], "XDG_CACHE_HOME": f"{folder}/cache", "LANG": "C.UTF-8",
               "XDG_DATA_HOME": f"{folder}/data", "GTEST_COLOR": "no"}
        program = self.models if scene.args[0] == "live" else self.oriel
        return Process([program, *scene.args], env, f"{folder}.io", stdin=scene.stdin,
                       leaks=scene.leaks)

    def lay(self, scene, folder):
        """The files as they should be, older than any clock's tick."""
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        os.makedirs(f"{folder}.io", exist_ok=True)
        for path, content in scene.files.items():
            if isinstance(content, bytes):
                write_over(path, content)
            else:
                shutil.copy(content, path)
            os.chmod(path, 0o600)
            os.utime(path, (1700000000, 1700000000))
        if scene.warm:
            kept = f"{folder}.warm {scene.name}"
            if not os.path.isdir(kept):
                self.start(scene, folder).wait(300)
                shutil.copytree(f"{folder}/cache", kept)
            shutil.copytree(kept, f"{folder}/cache", dirs_exist_ok=True)
        if "kept.session" in " ".join(scene.args + scene.victims):
            subprocess.run([self.models, "live", "1", f"{folder}/model.gguf", folder], check=True,
                           stdout=subprocess.DEVNULL)

    @staticmethod
    def victims(scene):
        found = [path for path in scene.victims if os.path.isfile(path)]
        for place, _, names in os.walk(scene.own) if scene.own else ():
            found += [os.path.join(place, name) for name in names if os.path.join(place, name) not in scene.victims]
        return found

    def one(self, number, turn, scene, folder, undisturbed):
        """True if the change came in time. After each turn that was too late it comes sooner."""
        chance = random.Random(f"{self.seed} {number} {turn}")
        self.lay(scene, folder)
        process = self.start(scene, folder)
        early = process.ends_within(chance.random() * undisturbed * 0.95 * 0.8 ** turn)
        candidates = [] if early else self.victims(scene)
        if not candidates:
            process.wait(60)
            return False
        path = chance.choice(candidates)
        name, act = chance.choice([a for a in acts(path, chance) if scene.pipes or "pipe" not in a[0]])
        try:
            act()
        except OSError:  # the program renamed or removed it just then
            process.wait(60)
            return False
        in_time = process.alive()
        outcome = process.wait(undisturbed + 4 * SOON_SECONDS)
        found = problems(outcome, undisturbed + SOON_SECONDS, codes=(0,) if scene.args[0] == "live" else (0, 1, 3))
        if not in_time and not found:
            return False
        with self.lock:
            self.passed += not found
            self.failed += bool(found)
            self.refused += outcome.code == 1
            self.slowest = max(self.slowest, outcome.seconds)
        if found:
            self.say(f"FAILED  change {number} of seed {self.seed}: {scene.name}: {os.path.basename(path)} {name}: "
                     f"{'; '.join(found)}: {outcome}")
        return True

    def work(self, worker, jobs, count):
        folder = os.path.join(self.scratch, f"changes{worker}")
        undisturbed = {}
        try:
            for number in range(worker, count, jobs):
                self.any_of(number, scenes(folder), folder, undisturbed)
        except Exception:  # the remaining ones count as failed
            self.say(traceback.format_exc())

    def any_of(self, number, all_scenes, folder, undisturbed):
        for turn in range(3 * TURNS):
            scene = all_scenes[(number + turn // TURNS) % len(all_scenes)]
            if scene.name not in undisturbed:
                self.lay(scene, folder)
                outcome = self.start(scene, folder).wait(120)
                if outcome.code != 0:
                    raise RuntimeError(f"{scene.name} fails without a change: {outcome}")
                undisturbed[scene.name] = outcome.seconds
            if self.one(number, turn % TURNS, scene, folder, undisturbed[scene.name]):
                break

    def run(self, count, jobs):
        threads = [threading.Thread(target=self.work, args=(i, jobs, count)) for i in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lost = count - self.passed - self.failed
        self.failed += lost
        self.say(f"{count} files changed under their reader, seed {self.seed}: {self.failed} failed ({lost} not in time); "
                 f"{self.refused} were refused, {self.slowest:.1f} s at most")
