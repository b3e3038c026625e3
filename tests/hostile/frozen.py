"""Stopped processes that hold locks on files, or stopped in the middle of their work."""

import fcntl
import glob
import os
import re
import shutil
import signal
import sys
import time

from changes import DENSE, EXPERTS, FIXED, SOURCE, TINY
from process import SOON_SECONDS, Process, one_line, problems

sys.path.insert(0, f"{SOURCE}/tests/cli")
from slow_server import Server

# The places where the sources take locks, including Windows code, with their count: a new one needs a test here.
LOCKING = re.compile(r"flock\(|lockf\(|F_SETLK|F_OFD_SETLK|O_EXLOCK|LockFile|_SH_DENY|pthread_mutex_timedlock")
LOCKS = {"runtime/os/posix_temporary.cpp": 1, "apps/oriel/models/part_file.cpp": 2, "apps/oriel/output.cpp": 1}
CPU = ["--device", "cpu", "--threads", "1"]
MODEL_BYTES = b"GGUF" + bytes(4 << 20)  # slow enough to be stopped in the middle; no model


def sources_that_lock():
    found = {}
    for folder in ("runtime", "platform", "apps", "python", "integrations"):
        for path in glob.glob(f"{SOURCE}/{folder}/**/*", recursive=True):
            if os.path.isfile(path) and path.endswith((".cpp", ".h", ".c", ".py", ".kt", ".swift", ".java")):
                with open(path, encoding="utf-8", errors="replace") as file:
                    count = len(LOCKING.findall(file.read()))
                if count:
                    found[os.path.relpath(path, SOURCE)] = count
    return found


class Frozen:
    def __init__(self, oriel, models, scratch, seed, say):
        self.oriel, self.models, self.seed, self.say = oriel, models, seed, say
        self.folder = os.path.join(scratch, "frozen")
        self.io = os.path.join(scratch, "frozen.io")
        self.slowest = 0.0
        self.passed = self.failed = 0
        self.server = Server()

    def environment(self):
        return {"HOME": self.folder, "PATH": os.environ["PATH"], "XDG_CACHE_HOME": f"{self.folder}/cache", "no_proxy": "*",
                "LANG": "C.UTF-8", "ORIEL_MODELS": f"{self.folder}/models", "VK_ICD_FILENAMES": "/dev/null"}

    def start(self, args, name="process", stdin=b""):
        program = self.models if args[0] == "live" else self.oriel
        return Process([program, *args], self.environment(), self.io, name=name, stdin=stdin)

    def check(self, what, good, detail=""):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            self.say(f"FAILED  {what}: {detail}")

    def ends(self, what, args, codes=(0,), stdin=b"", usual=0.0):
        outcome = self.start(args, "beside", stdin).wait(usual + 6 * SOON_SECONDS)
        found = problems(outcome, usual + SOON_SECONDS, codes=codes)
        self.slowest = max(self.slowest, outcome.seconds - usual)
        self.check(f"{what}: {args[0]}", not found, f"{'; '.join(found)}: {outcome}")
        return outcome

    def commands(self):
        """Commands that run next to a stopped process, and use the same files."""
        model, tiny = f"{self.folder}/model.gguf", f"{self.folder}/tiny.gguf"
        ids = f"{self.folder}/ids.json"
        return [
            (["info", model], b""),
            (["plan", tiny, "--memory", "16MiB", "--device", "cpu"], b""),
            (["run", tiny, *FIXED, "--tokens", "4", "--prompt", "Once"], b""),
            (["run", model, *FIXED, "--tokens", "4", "--on-file", "all", "--prompt", "Once"], b""),
            (["chat", model, *FIXED, "--tokens", "4", "--load", f"{self.folder}/kept.session"], b"Hello!\n"),
            (["live", "1", model, self.folder], b""),
            (["calibrate", f"{self.folder}/dense.gguf", *FIXED, "--whole-model", "--max-tokens", "256", "--tokens-file",
              ids, "--out", f"{self.folder}/side.json"], b""),
            (["eval", f"{self.folder}/dense.gguf", *FIXED, "--tokens-file", ids, "--logits-out",
              f"{self.folder}/logits.f32"], b""),
            (["devices"], b""),
        ]

    def lay(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(f"{self.folder}/models")
        os.makedirs(self.io, exist_ok=True)
        for source, name in ((EXPERTS, "model"), (DENSE, "dense"), (TINY, "tiny")):
            shutil.copy(source, f"{self.folder}/{name}.gguf")
            os.chmod(f"{self.folder}/{name}.gguf", 0o600)
        shutil.copy(TINY + ".calibration.json", f"{self.folder}/tiny.gguf.calibration.json")
        with open(f"{self.folder}/ids.json", "w", encoding="utf-8") as file:
            file.write('{"ids": [%s]}' % ", ".join(str(3 + i % 200) for i in range(300)))
        self.start(["live", "1", f"{self.folder}/model.gguf", self.folder]).wait(60)
        self.usual = []
        for args, stdin in self.commands():
            outcome = self.start(args, stdin=stdin).wait(120)
            self.check(f"alone: {args[0]}", outcome.code == 0, outcome)
            self.usual.append(outcome.seconds)

    def all_beside(self, what):
        for (args, stdin), usual in zip(self.commands(), self.usual):
            self.ends(what, args, stdin=stdin, usual=usual)

    def hold_everything(self):
        """A process that holds every lock there could be, and stands still. Its pid."""
        names = [os.path.join(place, name) for place, _, files in os.walk(self.folder) for name in files]
        places = [name for name in names if not name.endswith((".oriel-tmp", ".contact"))]
        names += [f"{name}{end}" for name in places
                  for end in (".oriel-tmp", ".0123456789abcdef.oriel-tmp", ".lock", ".new", ".tmp")]
        cache = f"{self.folder}/cache/oriel"
        names += [f"{cache}/oriel-vulkan.contact", f"{self.folder}/oriel-trim.0123456789abcdef.oriel-tmp"]
        names += [f"{os.path.splitext(name)[0]}.contact" for name in places if name.startswith(cache)]
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                for name in names:
                    os.makedirs(os.path.dirname(name), exist_ok=True)
                    held = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
                    fcntl.flock(held, fcntl.LOCK_EX)
                    fcntl.lockf(os.open(name, os.O_RDWR), fcntl.LOCK_EX)
                os.write(tell, b"x")
                os.kill(os.getpid(), signal.SIGSTOP)
            finally:
                os._exit(1)
        os.close(tell)
        held = os.read(ready, 1)
        os.close(ready)
        self.check("a process holds every lock", held == b"x")
        return pid

    @staticmethod
    def end(pid):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def locks_are_known(self):
        found = sources_that_lock()
        self.check("every lock of the sources is held here", found == LOCKS, f"the sources have {found}")

    def beside_locks(self):
        holder = self.hold_everything()
        self.all_beside("beside a process that holds every lock")
        self.end(holder)

    def beside_work(self):
        """Commands that were stopped in the middle of themselves, one after the other."""
        for number, (args, stdin) in enumerate(self.commands()):
            process = self.start(args, "stopped", stdin)
            process.ends_within(self.usual[number] * (0.2 + 0.15 * (self.seed % 5)))
            if process.alive():
                process.stop()
            self.all_beside(f"beside {args[0]} that stands still")
            process.kill()

    def beside_a_download(self):
        """Two that get the same file: the second says so while the first stands still, and gets it afterwards."""
        url = self.server.put("/m.gguf", MODEL_BYTES, drip=0.05)
        part = f"{self.folder}/models/m.gguf.part"
        first = self.start(["pull", url], "stopped")
        for _ in range(600):
            if os.path.exists(part) and os.path.getsize(part) > 0:
                break
            time.sleep(0.05)
        first.stop()
        second = self.ends("beside a download that stands still", ["pull", url], codes=(1,))
        self.check("the line says who has it", one_line(second.err), second)
        self.ends("beside a download that stands still", ["models", "--local"])
        first.kill()

    def instead_of_parts(self):
        """Pipes and folders where the program keeps parts of downloads."""
        url = self.server.put("/n.gguf", MODEL_BYTES)
        for make in (os.mkfifo, os.mkdir):
            for name in ("n.gguf.part", "n.gguf.part.json"):
                path = f"{self.folder}/models/{name}"
                make(path)
                self.ends(f"{make.__name__} {name}", ["pull", url], codes=(0, 1))
                for left in glob.glob(f"{self.folder}/models/n.gguf*"):
                    shutil.rmtree(left) if os.path.isdir(left) else os.unlink(left)

    def instead_of_kept(self):
        """Pipes at the place for its measurements."""
        kept = [path for path in glob.glob(f"{self.folder}/cache/oriel/*")] + [f"{self.folder}/tiny.gguf.calibration.json"]
        for path in kept:
            os.unlink(path)
            os.mkfifo(path)
        usual = self.usual[1] + 10  # rates are measured again
        args = ["plan", f"{self.folder}/tiny.gguf", "--memory", "16MiB", "--device", "cpu"]
        self.ends("pipes in the cache folder and for the sidecar", args, codes=(0, 1), usual=usual)

    def run(self, everything):
        self.lay()
        self.locks_are_known()
        self.beside_locks()
        self.beside_a_download()
        self.instead_of_parts()
        if everything:
            self.beside_work()
            self.instead_of_kept()
        self.say(f"commands beside processes that stand still: {self.failed} failed, {self.slowest:.1f} s at most more "
                 "than alone")
