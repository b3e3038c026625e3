"""The program under test and shared helpers of its tests; sys.argv: ORIEL_BINARY TEST_DATA_DIR

One line per check; a file of tests exits with 1 if one failed. Needs only the standard library. Models are compared
with themselves and with tests/data, never with fixed words, because the bundled model may change.
"""

import json
import math
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import xml.etree.ElementTree

ORIEL = pathlib.Path(sys.argv[1]).resolve()
DATA = pathlib.Path(sys.argv[2]).resolve()
BUNDLED = DATA.parent.parent / "models" / "oriel-tiny" / "oriel-tiny-q8_0.gguf"
SMALL = DATA / "models" / "llama-mqa.gguf"
EXACT = DATA / "models" / "llama-f32.gguf"
CPU = ["--device", "cpu"]
# The reference data, which may be missing, and its model with recurrent layers.
GOLDEN = pathlib.Path(os.environ.get("ORIEL_REFERENCE_DATA") or DATA.parent.parent.parent / "shared" / "golden")
HYBRID = GOLDEN / "models" / "qwen35.gguf"
PATIENCE = int(os.environ.get("ORIEL_TEST_PATIENCE", "1"))  # in emulators: times longer
FIXED = ["--memory", "64MiB", "--kv", "f16"] + CPU

scratch = pathlib.Path(tempfile.mkdtemp(prefix="oriel-cli-"))
failures = 0


def check(name, condition, detail=""):
    global failures
    if condition:
        print(f"ok      {name}")
    else:
        failures += 1
        print(f"FAILED  {name}: {str(detail)[:600]}")
    sys.stdout.flush()
    return bool(condition)


class Result:
    def __init__(self, code, out, err, args):
        self.code, self.out, self.err, self.args = code, out, err, args

    def __repr__(self):
        return f"{self.args} -> {self.code}, stdout {self.out[:300]!r}, stderr {self.err[:300]!r}"

    @property
    def json(self):
        return json.loads(self.out)


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k != "ORIEL_MODEL"}
    env["XDG_CACHE_HOME"] = str(scratch / "cache")
    env["ORIEL_CONFIG"] = ""  # ignore the user's config file
    # The driver's own cache stays the user's: lavapipe takes a second for each shape of attention that it does not know.
    env.setdefault("MESA_SHADER_CACHE_DIR", os.environ.get("XDG_CACHE_HOME") or str(pathlib.Path.home() / ".cache"))
    env.update(more)
    return env


def with_keys(model, numbers):
    """A copy of the file with these keys before the others."""
    whole = model.read_bytes()
    tensors, keys = struct.unpack_from("<QQ", whole, 8)
    at = 24
    widths = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    def text(at):
        return at + 8 + struct.unpack_from("<Q", whole, at)[0]
    for _ in range(keys):
        at = text(at)
        kind = struct.unpack_from("<I", whole, at)[0]
        at += 4
        if kind == 8:
            at = text(at)
        elif kind == 9:
            of, count = struct.unpack_from("<IQ", whole, at)
            at += 12
            for _ in range(count if of == 8 else 0):
                at = text(at)
            at += 0 if of == 8 else count * widths[of]
        else:
            at += widths[kind]
    for _ in range(tensors):
        at = text(at)
        dims = struct.unpack_from("<I", whole, at)[0]
        at += 4 + 8 * dims + 4 + 8
    added = b""
    for name, value in numbers.items():
        key = name.encode()
        real = isinstance(value, float)
        added += struct.pack("<Q", len(key)) + key + struct.pack("<If" if real else "<Ii", 6 if real else 5, value)
    head = whole[:8] + struct.pack("<QQ", tensors, keys + len(numbers)) + added + whole[24:at]
    path = scratch / "keyed.gguf"
    path.write_bytes(head + bytes(-len(head) % 32) + whole[at + -at % 32:])
    return path


def oriel(*args, stdin=b"", env=None, cwd=None, binary=ORIEL, **options):
    args = [str(a) for a in args]
    done = subprocess.run([str(binary)] + args, input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env or environment(), cwd=cwd,
                          timeout=120 * PATIENCE, **options)
    result = Result(done.returncode, done.stdout, done.stderr, args)
    # The character alone may be a word of a model with random weights.
    if b"\x1b[" in result.out or b"\x1b[" in result.err:
        check(f"no terminal escapes off a terminal: {args}", False, result)
    return result


def succeeds(name, *args, **options):
    """Exit code 0 and an empty stderr, because stderr is not a terminal."""
    result = oriel(*args, **options)
    check(name, result.code == 0 and result.err == b"", result)
    return result


def one_line_failure(result, code):
    lines = result.err.decode("utf-8").splitlines()
    return (result.code == code and len(lines) == 1 and lines[0].startswith("oriel: ")
            and result.err.endswith(b"\n"))


def says_what_to_do(result):
    return ": " in result.err.decode("utf-8")[len("oriel: "):]


def fails(name, code, *args, **options):
    result = oriel(*args, **options)
    check(name, one_line_failure(result, code) and says_what_to_do(result), result)
    return result


def json_of(name, *args, **options):
    """Exactly one JSON object on one line of stdout and nothing else anywhere."""
    result = succeeds(name, *args, "--json", **options)
    check(f"{name}: one object on one line",
          result.out.count(b"\n") == 1 and isinstance(result.json, dict), result)
    return result.json


def has_fields(name, what, fields):
    missing = [field for field in fields.split() if field not in what]
    check(f"{name}: has its fields", not missing, f"missing {missing} in {what}")


def relative_l2(got, want):
    error = math.sqrt(sum((g - w) ** 2 for g, w in zip(got, want)))
    return error / math.sqrt(sum(w * w for w in want))


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def is_svg(path):
    try:
        return xml.etree.ElementTree.parse(path).getroot().tag.endswith("svg")
    except (OSError, xml.etree.ElementTree.ParseError):
        return False


def write_ids(ids, name="ids.json"):
    path = scratch / name
    path.write_text(json.dumps({"ids": ids}))
    return path


def interrupt(args, ready, stdin=subprocess.DEVNULL):
    """Starts, waits for `ready(process)`, interrupts, and returns the result."""
    process = subprocess.Popen([str(ORIEL)] + [str(a) for a in args], stdin=stdin,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    # A program that ignores it must not hang the tests.
    guard = threading.Timer(60 * PATIENCE, process.kill)
    guard.start()
    head = ready(process)
    process.send_signal(signal.SIGINT)
    if process.stdin:
        process.wait()  # before communicate() closes its stdin: that would end it, too
    out, err = process.communicate()
    guard.cancel()
    return Result(process.returncode, head + out, err, args)


def run_tests(names):
    """Calls each test of a module's names, in their order; returns the exit code."""
    for name, test in sorted(names.items()):
        if not name.startswith("test_"):
            continue
        start = time.time()
        try:
            test()
        except Exception:  # one broken test does not hide the others
            check(name, False, traceback.format_exc())
        print(f"        {name} took {time.time() - start:.1f} s")
    shutil.rmtree(scratch, ignore_errors=True)
    print(f"{failures} failed" if failures else "all passed")
    return 1 if failures else 0
