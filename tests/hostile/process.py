"""Processes that are given something hostile: run with a limit of time, measured, and judged by how they ended."""

import os
import re
import select
import signal
import time

SOON_SECONDS = 5 * max(1.0, os.getloadavg()[0] / os.cpu_count())  # on a machine that others keep busy
MARGIN_BYTES = 8 << 20  # what heaps and sanitizers round up
REPORT = re.compile(rb"ERROR: \w+Sanitizer|runtime error:|Sanitizer:DEADLYSIGNAL|terminate called|Failure$", re.M)
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=4:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=98",
}


class Outcome:
    def __init__(self, args, code, seconds, peak_bytes, out, err, hung):
        self.args, self.code, self.seconds, self.peak_bytes = args, code, seconds, peak_bytes
        self.out, self.err, self.hung = out, err, hung

    def __str__(self):
        return (f"{' '.join(self.args)} -> {self.code} after {self.seconds:.1f} s, {self.peak_bytes >> 20} MiB, "
                f"stdout {self.out[-300:]!r}, stderr {self.err[:2000]!r}")


class Process:
    """Started in `folder`, where its output lands in files NAME.out and NAME.err."""

    def __init__(self, args, env, folder, name="process", stdin=b"", leaks=True):
        self.args = [str(arg) for arg in args]
        self.paths = [os.path.join(folder, f"{name}.{end}") for end in ("in", "out", "err")]
        with open(self.paths[0], "wb") as file:
            file.write(stdin)
        env = {**env, **SANITIZERS}
        if not leaks:  # of drivers
            env["ASAN_OPTIONS"] = env["ASAN_OPTIONS"].replace("detect_leaks=1", "detect_leaks=0")
        writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        actions = [(os.POSIX_SPAWN_OPEN, 0, self.paths[0], os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_OPEN, n, self.paths[n], writing, 0o600) for n in (1, 2)]
        self.begin = time.monotonic()
        self.pid = os.posix_spawn(self.args[0], self.args, env, file_actions=actions)
        self.handle = os.pidfd_open(self.pid)

    def alive(self):
        return not self.ends_within(0)

    def ends_within(self, seconds):
        waiting = select.poll()
        waiting.register(self.handle, select.POLLIN)
        return bool(waiting.poll(max(0, seconds) * 1000))

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)

    def wait(self, seconds):
        """Ends the process if it has not ended `seconds` after its start."""
        hung = not self.ends_within(self.begin + seconds - time.monotonic())
        if hung:
            os.kill(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        took = time.monotonic() - self.begin
        os.close(self.handle)
        texts = []
        for path in self.paths[1:]:
            with open(path, "rb") as file:
                texts.append(file.read(1 << 20))
        return Outcome(self.args, os.waitstatus_to_exitcode(status), took, usage.ru_maxrss * 1024, *texts, hung)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.wait(60)


def run(args, env, folder, seconds, **options):
    return Process(args, env, folder, **options).wait(seconds)


def one_line(err):
    """True if it is one line, `oriel: WHAT HAPPENED: WHAT TO DO`."""
    try:
        text = err.decode()
    except UnicodeDecodeError:
        return False
    return (text.startswith("oriel: ") and text.endswith("\n") and text.count("\n") == 1 and ": " in text[7:]
            and len(text) < 2500 and all(c.isprintable() for c in text[:-1]))


def problems(outcome, most_seconds=SOON_SECONDS, most_bytes=None, codes=(0, 1, 3)):
    """Problems with the end of a process; an empty list: none."""
    found = []
    report = REPORT.search(outcome.err) or REPORT.search(outcome.out)
    if report:
        found.append(f"a report: {report.group().decode()}")
    if outcome.hung or outcome.seconds > most_seconds:
        found.append(f"{'hung' if outcome.hung else 'ended'} after {outcome.seconds:.1f} s")
    elif outcome.code < 0:
        found.append(f"signal {-outcome.code}")
    elif outcome.code not in codes:
        found.append(f"exit code {outcome.code}")
    elif outcome.code != 0 and not one_line(outcome.err):
        found.append("not one line that says what to do")
    elif outcome.code == 0 and outcome.err.count(b"\n") > 2:
        found.append("words on stderr of what went well")
    if most_bytes is not None and outcome.peak_bytes > most_bytes:
        found.append(f"{outcome.peak_bytes >> 10} KiB in memory, more than {most_bytes >> 10}")
    return found
