"""Programs that run.py starts, and what the test program says while it runs."""

import codecs
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
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
