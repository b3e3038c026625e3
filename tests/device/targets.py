"""The targets of run.py: this machine, a phone through adb, a machine through ssh. Programs that run there, and what the test
program says meanwhile.

A target is a context manager: after entry it can start the bundle's program, after exit no file of the run remains on
it.
"""

import codecs
import contextlib
import os
import pathlib
import platform
import posixpath
import queue
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

CONTACT_S = 30  # a command that does next to nothing
ENDED = re.compile(r"(passed|failed|skipped) \((.*)\)$")
# Ctrl-C at the terminal must reach run.py alone, which then ends its child processes.
OWN_GROUP = {"creationflags": 0x200} if os.name == "nt" else {"start_new_session": True}


class Problem(Exception):
    """A failure that ends the run; its text is one line that says what to do."""


def say(text):
    print(f"run.py: {text}", file=sys.stderr, flush=True)


def end_group(process):
    """Kills the program and its child processes."""
    if os.name == "nt":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # all of it has ended
    process.wait()


def command_output(command, seconds=CONTACT_S):
    """Exit code, stdout and stderr; code None after a timeout."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace", **OWN_GROUP) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end_group(process)
            return None, "", f"no answer within {seconds} s"
        except BaseException:
            end_group(process)
            raise
    return process.returncode, out, err


def last_line(text, otherwise):
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), otherwise)


class Running:
    """A started test program and its output; text before the marker comes from the shell."""

    def __init__(self, command, marker=None, quiet=False, **options):
        """`quiet`: stderr is kept, not shown."""
        self.errors = tempfile.TemporaryFile() if quiet else None
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.errors, **OWN_GROUP, **options)
        self.marker, self.pid, self.ahead = marker, None, ""
        self.chunks = queue.Queue()
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            data = self.process.stdout.read1(65536)
            self.chunks.put(decoder.decode(data) if data else None)
            if not data:
                return

    def read(self, seconds):
        """Text as it arrives, "" at the end; None after a timeout."""
        until = time.monotonic() + seconds
        while True:
            ended = self.process.poll() is not None
            try:
                chunk = self.chunks.get(timeout=max(0, min(1, until - time.monotonic())))
            except queue.Empty:
                if ended:
                    return ""  # a helper that outlives the program holds on to the pipe
                if time.monotonic() >= until:
                    return None
                continue
            if chunk is None:
                return ""
            chunk = chunk.replace("\r", "")
            if self.marker:
                self.ahead += chunk
                match = re.search(self.marker + r" (\d+)\n", self.ahead)
                if not match:
                    continue
                self.marker, self.pid, chunk = None, int(match.group(1)), self.ahead[match.end():]
            if chunk:
                return chunk

    def last_error(self):
        """The last line on stderr of a quiet program that has ended; empty if it wrote nothing."""
        with self.errors as file:
            file.seek(0)
            return last_line(file.read().decode("utf-8", "replace"), "")


class Watch:
    """Reads the program's output: ended checks and the current one."""

    def __init__(self, verbose):
        self.verbose, self.one_line = verbose, not verbose and sys.stderr.isatty()
        self.checks, self.during, self.pending, self.partial = [], "its start", None, ""

    def see(self, text):
        *lines, self.partial = (self.partial + text).split("\n")
        for line in lines:
            self.line(line)
        self.line(self.partial, False)
        if self.verbose:
            sys.stderr.write(text)
        self.show(self.during)

    def line(self, line, whole=True):
        match = re.match(r"(\w+)/(.*?) \.\.\. (.*)", line)
        if match:
            self.pending, line = match.group(1, 2), match.group(3)
            self.during = "/".join(self.pending)
        match = ENDED.search(line) if whole and self.pending else None
        if match:  # several checks may be run before they are reported
            group, name = self.pending
            self.checks.append({"group": group, "name": name, "status": match.group(1), "detail": match.group(2)})
            self.during, self.pending = f"what follows {group}/{name}", None

    def show(self, text):
        if self.one_line:
            sys.stderr.write(f"\r\033[K{text[:shutil.get_terminal_size().columns - 1]}")
            sys.stderr.flush()


PROBE_S = 10  # whether there still is contact
COPIED_S = 600  # sums of the whole bundle on a slow board
FAMILIES = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x86_64", "amd64": "x86_64", "x86-64": "x86_64",
            "riscv64": "riscv64", "arm": "arm", "armv8l": "arm"}
PRESETS = {("adb", "arm64"): "android-arm64", ("adb", "x86_64"): "android-x64",
           ("ssh", "arm64"): "linux-aarch64", ("ssh", "arm"): "linux-armhf",
           ("ssh", "riscv64"): "linux-riscv64", ("ssh", "x86_64"): "release"}


def family(processor):
    """Processors that run the same programs; None for an unknown name."""
    name = processor.lower()
    return "arm" if re.match(r"armv[67]", name) else FAMILIES.get(name)


def runs_on(built_for, machine):
    """True if a program for one processor runs on the other, judged by their names."""
    program, there = family(built_for), family(machine)
    return None in (program, there) or program == there or (program, there) == ("arm", "arm64")


class Local:
    """Runs in place, in the emulator that the bundle was configured with, if installed."""

    def __init__(self, bundle, manifest):
        program, emulator = str(bundle / manifest["program"]), manifest["emulator"]
        self.name, self.label = "this machine", None
        self.emulated = bool(emulator) and shutil.which(emulator[0]) is not None
        here = f"{platform.system()} {platform.machine()}"
        built_for = f"{manifest['system']} {manifest['processor']}"
        native = manifest["system"] == platform.system() and runs_on(manifest["processor"], platform.machine())
        if emulator and not self.emulated and not native:
            raise Problem(f"the bundle's emulator {emulator[0]} is not there, and this machine ({here}) cannot "
                          f"run a program for {built_for} without it")
        if not emulator and not runs_on(manifest["processor"], platform.machine()):
            raise Problem(f"this bundle is for {built_for} and this machine is {here}: name another by --bundle")
        self.command = [*(emulator if self.emulated else []), program]
        self.scratch = None

    def __enter__(self):
        self.scratch = tempfile.mkdtemp(prefix="oriel-device-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self, arguments, patience, quiet=False):
        """A Running program, as for all targets; `quiet` ones keep their stderr."""
        folder = os.path.join(self.scratch, "tmp")
        os.makedirs(folder, exist_ok=True)
        names = ("TMP", "TEMP") if os.name == "nt" else ("TMPDIR",)
        environment = {**os.environ, **dict.fromkeys(names, folder), "ORIEL_TEST_PATIENCE": str(patience)}
        try:
            return Running([*self.command, *arguments], quiet=quiet, env=environment)
        except OSError as error:
            raise Problem(f"{self.command[0]} does not start: {error.strerror}") from error

    def stop(self, running):
        if running.process.poll() not in (0, 1):  # child processes of a program that ended well, such as wine's, may
                                                  # continue
            end_group(running.process)

    def in_contact(self):
        return True

    def result_path(self):
        return os.path.join(self.scratch, "result.json")

    def fetch(self, path):
        return pathlib.Path(path).read_text(encoding="utf-8")

    def forget(self, path):
        pathlib.Path(path).unlink(missing_ok=True)


class Remote:
    """A folder of this run's own on another machine, reached by copying and by running shell commands."""

    kind, parent = None, None
    emulated, label = False, None

    def __init__(self, name, bundle, manifest, options):
        self.name, self.bundle, self.manifest, self.keep = name, bundle, manifest, options.keep
        self.marker = f"oriel-{secrets.token_hex(6)}"
        self.folder = posixpath.join(options.folder or self.parent, f"oriel-device-test-{secrets.token_hex(4)}")
        self.program = posixpath.join(self.folder, manifest["program"])
        self.made = self.lost = False

    def shell(self, command):
        """The command line, here, that runs `command` in a shell there."""
        raise NotImplementedError

    def copy(self):
        """Puts the bundle's contents into the folder."""
        raise NotImplementedError

    def advice(self, said):
        """Advice for a failed connection, from the last message of the connecting program."""
        raise NotImplementedError

    def script(self, command):
        # A shell of its own: the host's may be of another kind, and greet.
        return self.shell(f"sh -c {shlex.quote(f'echo {self.marker} $$; {command}')}")

    def attempt(self, command, seconds=CONTACT_S):
        """Exit code and output of the command, without earlier output; (None, reason) if the shell was not reached."""
        code, out, err = command_output(self.script(command), seconds)
        parts = re.split(self.marker + r" \d+\n", out, maxsplit=1)
        return code, parts[1] if len(parts) == 2 else None, err

    def output(self, command, seconds=CONTACT_S):
        code, out, err = self.attempt(command, seconds)
        if code != 0 or out is None:
            reason = last_line(err, f"exit code {code}")
            raise Problem(f"`{command.split(' ')[0]}` failed on {self.name}: {reason}")
        return out

    def __enter__(self):
        try:
            self.push()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if not self.made:
            return
        if self.keep:
            say(f"{self.folder} is kept on {self.name}")
        elif self.lost or self.attempt(f"rm -rf {shlex.quote(self.folder)}")[0] != 0:
            say(f"{self.folder} is left on {self.name}: it could not be removed")

    def greet(self):
        """Connects, and checks that the bundle fits the machine; copies nothing before."""
        ask = "; ".join(f'echo "$({command} 2>/dev/null)"' for command in (
            "uname -m", "getprop ro.product.manufacturer", "getprop ro.product.model"))
        try:
            code, out, err = self.attempt(ask)
        except OSError as error:
            raise Problem(self.advice(f"{self.kind} cannot be started: {error.strerror}")) from error
        if code != 0 or out is None:
            raise Problem(self.advice(err.strip() or f"exit code {code}"))
        machine, maker, model = [*(line.strip() for line in out.splitlines()), "", "", ""][:3]
        if self.kind == "adb" and model:
            self.label = model if model.lower().startswith(maker.lower()) else f"{maker} {model}"
        if not runs_on(self.manifest["processor"], machine):
            preset = PRESETS.get((self.kind, family(machine)), "PRESET")
            raise Problem(f"this bundle is for {self.manifest['processor']} and the device is {machine}: "
                          f"--bundle build/{preset}/device-bundle")

    def push(self):
        say(f"copying {self.bundle} to {self.folder} on {self.name}")
        folder = shlex.quote(self.folder)
        self.made = True  # it may be, even when the answer is lost
        try:
            self.output(f"mkdir {folder}")
        except Problem:
            self.made = not self.in_contact()
            raise
        self.copy()
        self.output(f"chmod 755 {shlex.quote(self.program)}")
        sums = self.output(f"cd {folder} && find . -type f -exec sha256sum {{}} +", COPIED_S)
        pairs = (line.split(None, 1) for line in sums.splitlines())
        there = {pair[1][2:]: pair[0] for pair in pairs if len(pair) == 2}
        for name, digest in self.manifest["files"].items():
            if there.get(name) != digest:
                raise Problem(f"{name} arrived damaged: is there room in {self.folder}?")

    def start(self, arguments, patience, quiet=False):
        folder, command = shlex.quote(self.folder), " ".join(map(shlex.quote, [self.program, *arguments]))
        return Running(self.script(f"cd {folder} && export TMPDIR={folder} ORIEL_TEST_PATIENCE={patience} && "
                                   f"exec {command}"), self.marker, quiet)

    def stop(self, running):
        if running.pid is None:
            running.read(2)  # the process may be known in a moment
        if running.pid is not None and running.process.poll() not in (0, 1):  # ssh may end before the program
            self.attempt(f"kill -9 {running.pid}")
        end_group(running.process)

    def in_contact(self):
        self.lost = self.attempt("true", PROBE_S)[0] != 0
        return not self.lost

    def result_path(self):
        return posixpath.join(self.folder, "result.json")

    def fetch(self, path):
        return self.output(f"cat {shlex.quote(path)}")

    def forget(self, path):
        self.output(f"rm -f {shlex.quote(path)}")


class Adb(Remote):
    kind, parent = "adb", "/data/local/tmp"

    def __init__(self, serial, *rest):
        self.adb = [os.environ.get("ADB") or "adb", *(["-s", serial] if serial else [])]
        super().__init__(f"the phone {serial}" if serial else "the phone", *rest)

    def shell(self, command):
        return [*self.adb, "shell", command]

    def advice(self, said):
        for words, what in (
                ("cannot be started", "install it (package adb), or set ADB to where it is"),
                ("more than one", "several phones are connected: name one, adb:SERIAL (see `adb devices`)"),
                ("unauthorized", "confirm this machine on the phone's screen"),
                ("no devices", "connect a phone and allow USB debugging on it"),
                ("not found", "see `adb devices` for those that are connected"),
                ("offline", "connect it again")):
            if words in said:
                return f"{last_line(said, '')}: {what}"
        return f"no contact through adb: {last_line(said, '')}"

    def copy(self):
        code, _, err = command_output([*self.adb, "push", f"{self.bundle}/.", self.folder], COPIED_S)
        if code != 0:
            raise Problem(f"copying to {self.name} failed: {last_line(err, f'exit code {code}')}")


class Ssh(Remote):
    kind, parent = "ssh", "/tmp"

    def __init__(self, host, *rest):
        self.host = host
        super().__init__(host, *rest)

    def shell(self, command):
        return ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15",
                self.host, command]

    def advice(self, said):
        what = "install it (package openssh-client)" if "cannot be started" in said else \
            f"`ssh {self.host}` must work without a password"
        return f"{last_line(said, '')}: {what}"

    def copy(self):
        with tempfile.TemporaryFile() as errors, subprocess.Popen(
                self.shell(f"tar -xof - -C {shlex.quote(self.folder)}"), stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=errors, **OWN_GROUP) as unpacking:
            try:
                with contextlib.suppress(OSError):  # when it has ended it says why
                    with tarfile.open(fileobj=unpacking.stdin, mode="w|") as packed:
                        packed.add(self.bundle, ".")
                with contextlib.suppress(OSError):
                    unpacking.stdin.close()
                code = unpacking.wait()
            except BaseException:
                end_group(unpacking)
                raise
            if code != 0:
                errors.seek(0)
                reason = last_line(errors.read().decode("utf-8", "replace"), f"exit code {code}")
                raise Problem(f"copying to {self.name} failed: {reason}")
