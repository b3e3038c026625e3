"""Shared helpers of the tests for the device bundle's scripts.

A bundle's program may be a Python script. Phones and other machines are local folders, reached with fake adb and ssh
programs.
"""

import hashlib
import html.parser
import importlib
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / "tests" / "device"
PATIENCE = int(os.environ.get("ORIEL_TEST_PATIENCE", "1"))  # in emulators: times longer

CPU = {"option": "cpu", "name": "C", "driver": "d", "kind": "cpu", "usable": True, "features": "", "reason": ""}
GPU = {**CPU, "option": "vulkan:0", "name": "G", "kind": "discrete", "features": "subgroup"}
DEAD = {**GPU, "option": "vulkan:1", "name": "<Old>", "usable": False, "reason": "no compute queue"}

PYTHON = [sys.executable, "-S"]  # starts in half the time, without installed packages
SIGNALS = (signal.SIGINT, signal.SIGTERM)

# The beginning of every stand-in for the test program. `finish` writes a result as the program does.
PROGRAM = """#!{python}
import json, os, sys, time
DEVICES = {devices!r}
def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None
def write(text):
    with open(option("--out"), "w") as file:
        file.write(text)
def check(name, status="passed", **more):
    return dict(group="models", name=name, status=status, detail="x", ms=1, **more)
def finish(*checks, code=0):
    counts = {{s: sum(c["status"] == s for c in checks) for s in ("passed", "failed", "skipped")}}
    write(json.dumps(dict(counts, device=device, oriel="1", checks=checks)))
    sys.exit(code)
if "--list" in sys.argv:
    print(json.dumps(DEVICES))
    sys.exit(0)
device = next(device for device in DEVICES if device["option"] == option("--device"))
"""

ADB = """#!/bin/sh
# A phone on this machine: its /data/local/tmp is the folder $PHONE.
[ -n "$ADB_SAYS" ] && { echo "$ADB_SAYS" >&2; exit 1; }
if [ "$1" = -s ]; then [ "$2" = emulator-1 ] || { echo "error: device '$2' not found" >&2; exit 1; }; shift 2; fi
there() { printf '%s' "$1" | sed "s:/data/local/tmp:$PHONE:g"; }
getprop() { :; }
PATH=$PHONE/bin:$PATH
case $1 in
  shell) exec sh -c "$(there "$2")" ;;
  push) exec cp -R "$2" "$(there "$3")" ;;
esac
exit 9
"""

SSH = """#!/bin/sh
# A machine behind ssh, whose shell greets; it is gone when there is a file $PHONE/gone.
[ -e "$PHONE/gone" ] && { echo "ssh: connect to host board: No route to host" >&2; exit 255; }
while [ "$1" = -o ]; do echo "$2" >>"$PHONE/options"; shift 2; done
[ "$1" = board ] || { echo "Permission denied (publickey)." >&2; exit 255; }
echo "Welcome [to] {this}; {machine}"
printf 'no end of line'
PATH=$PHONE/bin:$PATH
exec sh -c "$2"
"""


def script(name, *arguments, cwd=None, **environment):
    """Runs `python NAME ARGUMENTS` in this process, because starting Python takes longer than the script."""
    sys.path.insert(0, str(SCRIPTS))
    main = importlib.import_module(name.removesuffix(".py")).main
    sys.path.pop(0)
    kept = dict(os.environ), os.getcwd(), sys.argv, {number: signal.getsignal(number) for number in SIGNALS}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # what the end of a process would close
        ours = [os.dup(1), os.dup(2)]
        point(out.fileno(), err.fileno())
        try:
            os.environ.update(environment)
            os.chdir(cwd or ".")
            sys.argv, tempfile.tempdir = [name, *map(str, arguments)], None
            code = main()
        except SystemExit as end:
            code = end.code
        except Exception:
            traceback.print_exc()
            code = 1
        finally:
            point(*ours)
            for descriptor in ours:
                os.close(descriptor)
            os.environ.clear()
            os.environ.update(kept[0])
            os.chdir(kept[1])
            sys.argv, tempfile.tempdir = kept[2], None
            for number, handler in kept[3].items():
                signal.signal(number, handler)
        said = [file.seek(0) or file.read().decode("utf-8") for file in (out, err)]
    return subprocess.CompletedProcess(arguments, code, *said)


def point(out, err):
    """Stdout and stderr, of programs that are started, too."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(out, 1)
    os.dup2(err, 2)


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def write_manifest(bundle, **fields):
    """Updates the checksums of all files."""
    path = bundle / "manifest.json"
    path.unlink(missing_ok=True)
    files = {file.relative_to(bundle).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
             for file in bundle.rglob("*") if file.is_file()}
    path.write_text(json.dumps({"files": files, **fields}))


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = pathlib.Path(f"/proc/{pid}/stat")  # a zombie does not count
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


class Parser(html.parser.HTMLParser):
    """Counts tags and checks that they are closed in order."""

    VOID = {"meta", "br", "link", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.links = [], 0, []

    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"


class InAFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="oriel-bundle-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = self.folder / "out.json"

    def refused(self, words, name, *arguments, code=2, **environment):
        """One line that names the problem, and no traceback."""
        done = script(name, *arguments, cwd=self.folder, **environment)
        self.assertEqual(code, done.returncode, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
        return done

    def page_of(self, *paths):
        report = self.folder / "report.html"
        done = script("report.py", *paths, "--out", report)
        self.assertEqual(0, done.returncode, done.stderr)
        page = report.read_text(encoding="utf-8")
        parser = Parser()
        parser.feed(page)
        self.assertEqual([], [tag for tag in parser.open if tag != "html"])
        self.assertEqual([], parser.links, "the page must work offline")
        self.rows = parser.rows
        return page


@unittest.skipIf(os.name == "nt", "the stand-ins are shell scripts")
class WithStandIns(InAFolder):
    """A bundle with a script as program, on this machine or through fake adb and ssh."""

    def bundle(self, body="finish(check('a'), check('b'))\n", devices=(CPU,), **fields):
        bundle = self.folder / "bundle"
        executable(bundle / "program.py", PROGRAM.format(python=" ".join(PYTHON), devices=list(devices)) + body)
        write_manifest(bundle, **{"program": "program.py", "system": platform.system(), "processor": "x",
                                  "emulator": PYTHON, **fields})
        return bundle

    def local(self, code, *arguments, **environment):
        """The output of run.py and its result file."""
        done = script("run.py", "local", "--bundle", self.folder / "bundle", "--out", self.out, *arguments,
                      cwd=self.folder, **environment)
        self.assertEqual(code, done.returncode, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr, json.loads(self.out.read_text()) if self.out.exists() else None

    def machine(self, uname="x86_64"):
        """The environment in which adb and ssh reach a folder that is another machine."""
        phone = self.folder / "phone"
        executable(phone / "bin" / "uname", f"#!/bin/sh\necho {uname}\n")
        executable(phone / "bin" / "getprop", "#!/bin/sh\n[ $1 = ro.product.model ] && echo 'Pixel [7]' || echo Google\n")
        executable(self.folder / "tools" / "ssh", SSH)
        adb = executable(self.folder / "tools" / "adb", ADB)
        return {"ADB": str(adb), "PHONE": str(phone), "PATH": f"{self.folder / 'tools'}{os.pathsep}{os.environ['PATH']}"}

    def left(self):
        """The folders of runs that are still on the other machine."""
        return [path.name for path in (self.folder / "phone").glob("oriel-device-test-*")]

    def over(self, target, code, *arguments, **environment):
        """Like `local`, through adb or ssh."""
        place = [] if target.startswith("adb") else ["--folder", self.folder / "phone"]
        done = script("run.py", target, "--bundle", self.folder / "bundle", *place, *arguments, cwd=self.folder,
                      **{**self.machine(), **environment})
        self.assertEqual(code, done.returncode, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr
