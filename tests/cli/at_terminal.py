"""The program at a terminal of a given width, for its tests: keys as input, the screen as output.

The screen knows the subset of xterm that the program and libedit use, and the sequences they must not send.
"""

import fcntl
import os
import re
import select
import signal
import struct
import termios
import time
import unicodedata

from program import ORIEL, PATIENCE, check, environment, scratch


def no_terminals():
    """True, and a visible skip, on systems without them and in containers that give none."""
    try:
        import pty
        for end in pty.openpty():
            os.close(end)
    except (ImportError, OSError) as reason:
        check(f"SKIPPED: no terminals here: {reason}", True)
        return True
    return False


class AtTerminal:
    def __init__(self, *args, columns=80, rows=24, stderr=None, **env):
        import pty
        self.fd, theirs = pty.openpty()
        self.screen = Screen(columns)
        self.raw = b""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.usual = termios.tcgetattr(theirs)
        self.theirs = theirs  # kept open: modes are asked for when the program has ended
        env = environment(**{"NO_COLOR": "1", "TERM": "xterm-256color", "HOME": str(scratch), **env})
        self.changes, report = os.pipe()
        self.leader = os.fork()
        if self.leader == 0:
            try:
                self.lead([str(ORIEL)] + [str(a) for a in args], env, report, stderr)
            finally:
                os._exit(127)
        os.close(report)
        self.pid = struct.unpack("i", os.read(self.changes, 4))[0]
        self.code = None  # as of subprocess

    def lead(self, args, env, report, stderr):
        """The part of a shell: Ctrl-C and Ctrl-Z are signals only in a session with job control."""
        os.setsid()
        fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(self.theirs, os.getpgrp())
            for changed in (signal.SIGTTOU, signal.SIGPIPE, signal.SIGINT):
                signal.signal(changed, signal.SIG_DFL)
            for stream in (0, 1, 2):
                os.dup2(self.theirs, stream)
            if stderr is not None:
                os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
            os.closerange(3, 256)
            os.execve(args[0], args, env)
        os.write(report, struct.pack("i", child))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)  # who waits for the end of the tests' output does not wait for this
        os.close(self.fd)  # when the tests have closed theirs this hangs up
        while True:
            status = os.waitpid(child, os.WUNTRACED)[1]
            os.write(report, struct.pack("i", status))
            if not os.WIFSTOPPED(status):
                break
        while True:
            signal.pause()  # the terminal is there until it is looked at

    def send_signal(self, number):
        os.kill(self.pid, number)

    def changed(self, seconds=30):
        """How it was stopped or ended since this was asked; None: it was not."""
        end = time.time() + seconds * PATIENCE
        while time.time() < end:
            self.read(0.05)  # a full terminal blocks the writing program
            if select.select([self.changes], [], [], 0)[0]:
                status = struct.unpack("i", os.read(self.changes, 4))[0]
                if os.WIFSTOPPED(status):
                    return "stopped"
                self.code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                return "ended"
        return None

    def read(self, seconds):
        """True if the program wrote something."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            block = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += block
        self.screen.feed(block)
        return bool(block)

    def until(self, condition, seconds=30):
        """Reads until `condition()`, then the rest that arrives at once. False: the condition never held."""
        end = time.time() + seconds * PATIENCE
        while not condition() and time.time() < end:
            self.read(0.1)
        self.settle(0.05)
        return condition()

    def settle(self, seconds=0.3):
        """Until nothing comes for a while; a reply may go on and on."""
        end = time.time() + 2 * PATIENCE
        while self.read(seconds * PATIENCE) and time.time() < end:
            pass

    def keys(self, keys, settle=True):
        os.write(self.fd, keys.encode() if isinstance(keys, str) else keys)
        if settle:
            self.settle()

    def prompts(self):
        return sum(line == ">" or line.startswith("> ") for line in self.screen.lines())

    def at_prompt(self):
        """An empty prompt below everything else."""
        return self.screen.lines()[self.screen.row] == ">"

    def typed(self):
        """The text at the last prompt."""
        lines = self.screen.lines()
        last = max((i for i, line in enumerate(lines) if line == ">" or line.startswith("> ")), default=0)
        return "\n".join(lines[last:]).rstrip("\n")[2:]

    def send(self, keys):
        """Sends a message or a command. Returns the output up to the next empty prompt."""
        before = len(self.screen.lines())
        self.keys(keys, settle=False)
        self.settle(0.1)
        prompts = self.prompts()
        self.keys("\r", settle=False)
        self.until(lambda: self.prompts() > prompts)
        return "\n".join(self.screen.lines()[before - 1:])

    def resize(self, columns, rows=24):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self):
        return termios.tcgetattr(self.theirs)

    def close(self):
        """The exit code; keys leave an empty prompt, else it is killed."""
        self.keys("\x03", settle=False)
        self.settle(0.2)
        self.keys("\x04", settle=False)
        return self.ended()

    def ended(self):
        """The exit code. The terminal can still be asked."""
        while self.code is None:
            if self.changed() is None:
                self.send_signal(signal.SIGKILL)
        while self.read(0.05):
            pass
        return self.code

    def forget(self):
        os.kill(self.leader, signal.SIGKILL)
        os.waitpid(self.leader, 0)
        for descriptor in (self.fd, self.theirs, self.changes):
            os.close(descriptor)


OPERATING_SYSTEM_COMMAND = re.compile(rb"\x1b\][^\x07\x1b]*\x07")  # the clipboard; shows nothing
SEQUENCE = re.compile(r"\x1b\[([?>=]?)([0-9;]*)([@-~])")


def width_of(character):
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """`columns` wide, endless below: rows are never lost. `soft` are rows that end where the terminal broke a line."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = [[]]
        self.soft = set()
        self.row = self.column = 0
        self.modes = set()
        self.unknown = []
        self.inserting = False
        self.shade = set()  # the active SGR attributes, and each character that was written with any
        self.shaded = ""
        self.rest = b""

    def feed(self, data):
        data = OPERATING_SYSTEM_COMMAND.sub(b"", self.rest + data)
        # A character or a sequence may come in parts.
        cut = max(data.rfind(b"\x1b"), len(data) - 4, 0)
        whole = len(data)
        try:
            data.decode()
            if b"\x1b" in data and not SEQUENCE.match(data[data.rfind(b"\x1b"):].decode()):
                whole = data.rfind(b"\x1b")
        except UnicodeDecodeError as error:
            whole = error.start if len(data) - error.start < 4 else len(data)
        self.rest = data[whole:] if whole >= cut else b""
        text = data[:whole].decode("utf-8", "replace")
        at = 0
        while at < len(text):
            sequence = SEQUENCE.match(text, at)
            if sequence:
                self.control(*sequence.groups())
                at = sequence.end()
                continue
            self.put(text[at])
            at += 1

    def put(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.down()
        elif c == "\b":
            self.column = max(0, min(self.column, self.columns - 1) - 1)
        elif c == "\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        elif c == "\a":
            pass
        elif ord(c) < 32:
            self.unknown.append(repr(c))
        else:
            width = width_of(c)
            if self.column + width > self.columns:
                self.soft.add(self.row)
                self.column = 0
                self.down()
            if width:
                self.write(c, width)

    def write(self, c, width):
        row = self.rows[self.row]
        self.shaded += c if self.shade else ""
        row.extend(" " * (self.column + (0 if self.inserting else width) - len(row)))
        row[self.column:self.column + (0 if self.inserting else width)] = [c] + [""] * (width - 1)
        del row[self.columns:]
        self.column += width

    def down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def control(self, private, parameters, kind):
        numbers = [int(n) if n else 0 for n in parameters.split(";")]
        count = max(numbers[0], 1)
        row = self.rows[self.row]
        if not private and parameters == "4" and kind in "hl":
            self.inserting = kind == "h"
        elif private and kind in "hl":
            for number in numbers:
                (self.modes.add if kind == "h" else self.modes.discard)(number)
        elif kind == "A":
            self.row = max(0, self.row - count)
        elif kind == "B":
            for _ in range(count):
                self.down()
        elif kind == "C":
            self.column = min(self.column + count, self.columns - 1)
        elif kind == "D":
            self.column = max(min(self.column, self.columns - 1) - count, 0)
        elif kind == "G":
            self.column = count - 1
        elif kind == "K" and numbers[0] == 0:
            del row[self.column:]
        elif kind == "J" and numbers[0] == 0:
            del row[self.column:]
            del self.rows[self.row + 1:]
        elif kind == "P":
            del row[self.column:self.column + count]
        elif kind == "@":
            row.extend(" " * (self.column - len(row)))
            row[self.column:self.column] = [" "] * count
            del row[self.columns:]
        elif kind == "L":
            self.rows[self.row:self.row] = [[] for _ in range(count)]
        elif kind == "M":
            del self.rows[self.row:self.row + count]
            while len(self.rows) <= self.row:
                self.rows.append([])
        elif kind == "H" or (kind == "J" and numbers[0] == 2):
            self.clear()
        elif kind == "m":
            for number in numbers:
                self.shade = self.shade | {number} if number else set()
        elif kind != "r":
            self.unknown.append(private + parameters + kind)

    def clear(self):
        """Like Ctrl-L; the old text has scrolled away."""
        self.rows, self.row, self.column, self.soft = [[]], 0, 0, set()

    def lines(self):
        return ["".join(row).rstrip() for row in self.rows]

    def whole(self):
        """The text without the breaks that the terminal made."""
        return "".join("".join(row) + ("" if i in self.soft else "\n") for i, row in enumerate(self.rows))

    def text(self):
        return "\n".join(self.lines())
