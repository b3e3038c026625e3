"""Tests of the device bundle and its scripts: test_bundle.py BUNDLE

Most of them take a bundle whose program is a Python script; phones and other machines are folders here behind
stand-ins for adb and ssh.
"""

import hashlib
import html.parser
import json
import os
import pathlib
import platform
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / "tests" / "device"
BUNDLE = None  # the folder under test
PATIENCE = int(os.environ.get("ORIEL_TEST_PATIENCE", "1"))  # in emulators: times longer
GROUPS = {"kernels", "models", "streaming", "faults"}

CPU = {"option": "cpu", "name": "C", "driver": "d", "kind": "cpu", "usable": True, "features": "", "reason": ""}
GPU = {**CPU, "option": "vulkan:0", "name": "G", "kind": "discrete", "features": "subgroup"}
DEAD = {**GPU, "option": "vulkan:1", "name": "<Old>", "usable": False, "reason": "no compute queue"}

# What every stand-in for the test program begins with; `finish` writes a result as the program does.
PROGRAM = """#!{python}
import json, os, sys, tempfile, time
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
    return subprocess.run([sys.executable, SCRIPTS / name, *map(str, arguments)], cwd=cwd,
                          capture_output=True, text=True, timeout=280 * PATIENCE,
                          env={**os.environ, **environment})


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def write_manifest(bundle, **fields):
    """With the sums of all files as they are now."""
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
    state = pathlib.Path(f"/proc/{pid}/stat")  # one that has ended and was not waited for does not count
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
        """One line that names what is wrong, and no traceback."""
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


class RealBundle(InAFolder):
    """The program that was built, in its emulator where it is another system's."""

    def program(self, bundle, *arguments):
        manifest = json.loads((bundle / "manifest.json").read_text())
        return subprocess.run([*manifest["emulator"], bundle / manifest["program"], *map(str, arguments)],
                              capture_output=True, encoding="utf-8", errors="replace", timeout=280 * PATIENCE,
                              stdin=subprocess.DEVNULL, cwd=self.folder)

    def copy(self, name="bundle"):
        bundle = self.folder / name
        shutil.copytree(BUNDLE, bundle)
        return bundle

    def test_the_cpu_passes_and_the_report_shows_every_check(self):
        done = script("run.py", "local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench",
                      "--label", "this <machine>", "--out", self.out)
        self.assertEqual(0, done.returncode, done.stderr)
        result = json.loads(self.out.read_text())
        self.assertEqual(1, len(result["runs"]))
        run = result["runs"][0]
        self.assertEqual(GROUPS, {check["group"] for check in run["checks"]})
        self.assertGreater(run["passed"], 100)
        self.assertEqual(run["passed"], sum(check["status"] == "passed" for check in run["checks"]))
        self.assertTrue([c for c in run["checks"] if c["name"].startswith("oriel-tiny-")], "the bundled model")

        # Exact on one device and wrong on the other, of two.
        result["runs"][0]["checks"][0]["value"] = 0.0
        self.out.write_text(json.dumps(result))
        failing = json.loads(self.out.read_text())
        failing["runs"][0]["checks"][0].update(status="failed", value=9.0, limit=0.002)
        failing["runs"][0]["failed"] = 1
        failing_path = self.folder / "failing.json"
        failing_path.write_text(json.dumps(failing))
        page = self.page_of(self.out, failing_path)
        self.assertGreater(self.rows, len(run["checks"]))
        self.assertIn("this &lt;machine&gt;", page)
        self.assertIn("Oriel on 2 devices: 1 check failed", page)
        self.assertIn('class="failed odd"', page)
        self.assertEqual(0, page.count('class="passed odd"'), "of two devices the one that passed is not the odd one")
        for check in run["checks"]:
            self.assertIn(f"<th>{check['name']}</th>", page)

    def test_a_part_can_be_had_alone(self):
        for only, checks in (("models/llama-q4_", {"llama-q4_0", "llama-q4_1", "llama-q4_k", "llama-q4_k_m"}),
                             ("models/qwen3", {"qwen3"})):
            done = script("run.py", "local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench",
                          "--only", only, "--out", self.out)
            self.assertEqual(0, done.returncode, done.stderr)
            run = json.loads(self.out.read_text())["runs"][0]
            self.assertEqual(checks, {check["name"] for check in run["checks"]})

    def test_a_part_that_is_not_there_is_refused_by_both(self):
        for only in ("kernel", "kernels/x", "models/llama-q9", "models/oriel-tiny-q8_0.ggufs"):
            words = f"nothing is called {only}: kernels, models, streaming, faults or models/NAME"
            self.refused(words, "run.py", "local", "--bundle", BUNDLE, "--only", only)
            done = self.program(BUNDLE, "--only", only)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertIn(words, done.stderr)

    def test_features_are_disabled_by_name(self):
        options = ("local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench", "--only", "models/qwen3")
        done = script("run.py", *options, "--disable", "subgroup,integer_dot", "--out", self.out)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual("subgroup,integer_dot", json.loads(self.out.read_text())["disabled"])
        self.assertIn("subgroup,integer_dot", self.page_of(self.out))
        done = script("run.py", *options, "--out", self.out, ORIEL_DISABLE="all")
        self.assertEqual("all", json.loads(self.out.read_text())["disabled"])
        if self.program(BUNDLE, "--list", "--disable", "no_such").returncode == 2:  # else built without Vulkan
            self.refused('there is no optional Vulkan feature "no_such"', "run.py", *options, "--disable", "no_such")

    def test_the_build_is_named(self):
        script("run.py", "local", "--bundle", BUNDLE, "--devices", "cpu", "--no-bench", "--only", "models/qwen3",
               "--out", self.out)
        manifest = json.loads((BUNDLE / "manifest.json").read_text())
        build = hashlib.sha256((BUNDLE / manifest["program"]).read_bytes()).hexdigest()[:12]
        self.assertEqual(build, json.loads(self.out.read_text())["build"])
        self.assertIn(build, self.page_of(self.out))

    def test_a_result_that_is_not_a_number_fails(self):
        bundle = self.copy()
        manifest = json.loads((bundle / "manifest.json").read_text())
        model = bundle / "models" / "llama-f32.gguf"
        data = bytearray(model.read_bytes())
        data[-4096:] = struct.pack("<f", float("nan")) * 1024
        model.write_bytes(data)
        write_manifest(bundle, **{name: manifest[name] for name in ("program", "system", "processor", "emulator")})
        done = script("run.py", "local", "--bundle", bundle, "--devices", "cpu", "--no-bench", "--only",
                      "models/llama-f32", "--out", self.out)
        self.assertEqual(1, done.returncode, done.stderr)
        check = json.loads(self.out.read_text())["runs"][0]["checks"][0]
        self.assertEqual("failed", check["status"])
        self.assertIsNone(check["value"])
        self.assertIn("not a number", self.page_of(self.out))

    def test_a_file_that_cannot_be_read_is_a_failed_check_of_its_group(self):
        bundle = self.copy()
        (bundle / "streaming" / "llama-mqa.json").unlink()
        (bundle / "models" / "llama-q4_0.gguf").unlink()
        for group, file in (("streaming", "llama-mqa.json"), ("faults", "llama-q4_0.gguf")):
            done = self.program(bundle, "--only", group, "--no-bench", "--out", self.out)
            self.assertEqual(1, done.returncode, done.stderr)
            failed = [check for check in json.loads(self.out.read_text())["checks"] if check["status"] == "failed"]
            self.assertEqual(group, failed[-1]["group"])
            self.assertRegex(failed[-1]["detail"], f"cannot read .*{file}")

    def test_it_runs_from_a_folder_with_letters_outside_ascii(self):
        bundle = self.copy("größtes 模 bundle")
        out = bundle / "ergebnis ö.json"
        for only in ("models/qwen3", "streaming", "faults"):
            done = self.program(bundle, "--only", only, "--no-bench", "--out", out)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            self.assertEqual(0, json.loads(out.read_text(encoding="utf-8"))["failed"])
            out.unlink()

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_full_disk_is_an_error(self):
        done = self.program(BUNDLE, "--only", "models/qwen3", "--no-bench", "--out", "/dev/full")
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("cannot write", done.stderr)

    def test_a_damaged_bundle_is_refused(self):
        bundle = self.copy()
        with open(bundle / "models" / "llama-q4_0.gguf", "r+b") as model:
            model.seek(1000)
            model.write(b"damage")
        self.refused("llama-q4_0.gguf is not what the manifest says", "run.py", "local", "--bundle", bundle)

    def test_a_bundle_is_made_below_a_path_with_brackets(self):
        bundle = self.folder / "a [b] ö" / "bundle"
        program = BUNDLE / json.loads((BUNDLE / "manifest.json").read_text())["program"]
        subprocess.run([os.environ.get("CMAKE", "cmake"), "-D", f"FROM={ROOT}", "-D", f"TO={bundle}", "-D",
                        f"PROGRAM={program}", "-D", "SYSTEM=S", "-D", "PROCESSOR=P", "-D", "EMULATOR=",
                        "-P", ROOT / "tests" / "bundle" / "make_bundle.cmake"], check=True, capture_output=True)
        want = json.loads((BUNDLE / "manifest.json").read_text())["files"]
        self.assertEqual(want, json.loads((bundle / "manifest.json").read_text())["files"])

    def test_a_device_that_is_not_there_is_refused(self):
        self.refused("there is no device vulkan:77", "run.py", "local", "--bundle", BUNDLE, "--devices", "vulkan:77")


@unittest.skipIf(os.name == "nt", "the stand-ins are shell scripts")
class WithStandIns(InAFolder):
    """A bundle whose program is a script, on this machine or behind stand-ins for adb and ssh."""

    def bundle(self, body="finish(check('a'), check('b'))\n", devices=(CPU,), **fields):
        bundle = self.folder / "bundle"
        executable(bundle / "program.py", PROGRAM.format(python=sys.executable, devices=list(devices)) + body)
        write_manifest(bundle, **{"program": "program.py", "system": platform.system(), "processor": "x",
                                  "emulator": [sys.executable], **fields})
        return bundle

    def local(self, code, *arguments, **environment):
        """What run.py says, and what it writes."""
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
        """As `local`, behind adb or ssh."""
        place = [] if target.startswith("adb") else ["--folder", self.folder / "phone"]
        done = script("run.py", target, "--bundle", self.folder / "bundle", *place, *arguments, cwd=self.folder,
                      **{**self.machine(), **environment})
        self.assertEqual(code, done.returncode, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    # ---- Targets ---------------------------------------------------------------------------------

    def test_other_targets_are_refused(self):
        self.bundle()
        for target in ("ADB", "loca", "local:x", "adb:", "ssh", "ssh:", "ssh:-oProxyCommand=x", "base"):
            self.refused(f"{target} is no target: local, adb[:SERIAL], ssh:HOST or one of release, debug",
                         "run.py", target, "--bundle", self.folder / "bundle")

    def test_a_preset_takes_its_bundle(self):
        self.bundle()
        done = script("run.py", "linux-aarch64", "--bundle", self.folder / "bundle", cwd=self.folder)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual("linux-aarch64", json.loads((self.folder / "device-linux-aarch64.json").read_text())["label"])

    def test_emulated_is_what_an_emulator_started(self):
        self.bundle()
        self.assertTrue(self.local(0)[1]["emulated"])
        self.bundle(emulator=["/none/emulate"], processor=platform.machine())
        self.assertFalse(self.local(0)[1]["emulated"])
        self.bundle(emulator=["/none/emulate"], processor="riscv64", system="Plan9")
        self.refused("the bundle's emulator /none/emulate is not there", "run.py", "local", "--bundle",
                     self.folder / "bundle")
        self.bundle()
        self.over("ssh:board", 0, "--out", self.out)
        self.assertFalse(json.loads(self.out.read_text())["emulated"])

    def test_a_bundle_for_another_machine_is_refused(self):
        self.bundle(processor="aarch64")
        said = self.over("adb", 2)
        self.assertIn("for aarch64 and the device is x86_64: --bundle build/android-x64/device-bundle", said)
        said = self.over("ssh:board", 2)
        self.assertIn("for aarch64 and the device is x86_64: --bundle build/release/device-bundle", said)
        self.assertNotIn("copying", said)
        for processor, machine, code in (("aarch64", "arm64", 0), ("armv7l", "aarch64", 0), ("AMD64", "x86_64", 0),
                                         ("armv7-a", "armv8l", 0), ("aarch64", "armv7l", 2), ("x", "riscv64", 0)):
            self.bundle(processor=processor)
            environment = self.machine(machine)
            done = script("run.py", "ssh:board", "--bundle", self.folder / "bundle", "--folder",
                          self.folder / "phone", "--out", self.out, **environment)
            self.assertEqual(code, done.returncode, (processor, machine, done.stderr))

    # ---- Behind adb and ssh ----------------------------------------------------------------------

    def test_a_phone_is_a_folder_behind_adb(self):
        self.bundle()
        self.over("adb:emulator-1", 0)
        result = json.loads((self.folder / "device-Google-Pixel-7.json").read_text())
        self.assertEqual(("Google Pixel [7]", 2), (result["label"], result["passed"]))
        self.assertEqual([], self.left())
        said = self.over("adb", 0, "--keep")
        self.assertEqual(1, len(self.left()))
        self.assertIn("is kept on the phone", said)

    def test_without_a_phone_it_is_said_what_to_do(self):
        self.bundle()
        for said, todo in (("adb: more than one device/emulator", "adb:SERIAL (see `adb devices`)"),
                           ("error: device unauthorized.\nThis adb", "confirm this machine on the phone's screen"),
                           ("adb: no devices/emulators found", "connect a phone and allow USB debugging")):
            self.refused(todo, "run.py", "adb", "--bundle", self.folder / "bundle",
                         **{**self.machine(), "ADB_SAYS": said})
        self.refused("see `adb devices`", "run.py", "adb:other", "--bundle", self.folder / "bundle", **self.machine())
        self.refused("set ADB", "run.py", "adb", "--bundle", self.folder / "bundle", ADB="/none/adb")
        self.refused("Permission denied (publickey)", "run.py", "ssh:other", "--bundle", self.folder / "bundle",
                     **self.machine())
        self.refused("install it", "run.py", "ssh:board", "--bundle", self.folder / "bundle", PATH=str(self.folder))

    def test_a_machine_behind_ssh_may_greet(self):
        self.bundle()
        said = self.over("ssh:board", 0, "--out", self.out)
        self.assertIn("2 passed", said)
        self.assertEqual([], self.left())
        options = set((self.folder / "phone" / "options").read_text().split())
        self.assertEqual({"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15"}, options)

    def test_a_damaged_copy_is_refused_and_removed(self):
        self.bundle()
        said = self.over("ssh:board", 2, **self.tools_with("tar", "#!/bin/sh\ncat >/dev/null\n"))
        self.assertIn("failed on board", said)
        self.assertEqual([], self.left())
        said = self.over("ssh:board", 2, **self.tools_with("tar", "#!/bin/sh\necho tar: No space left >&2; exit 2\n"))
        self.assertIn("copying to board failed: tar: No space left", said)
        self.assertEqual([], self.left())

    def tools_with(self, name, text):
        environment = self.machine()
        executable(self.folder / "phone" / "bin" / name, text)
        return environment

    def test_a_lost_connection_is_said(self):
        self.bundle("print('models/a ... passed (x)\\nmodels/b ... ', end='', flush=True)\n"
                    "open(os.environ['PHONE'] + '/gone', 'w').close()\nos.abort()\n", [CPU, GPU])
        said = self.over("ssh:board", 2, "--out", self.out)
        self.assertIn("the connection was lost in models/b", said)
        self.assertIn(f"{self.left()[0]} is left on board", said)
        result = json.loads(self.out.read_text())
        self.assertEqual(1, len(result["runs"]))
        self.assertTrue(result["runs"][0]["crashed"]["connection_lost"])
        self.assertIn("the connection was lost in models/b", self.page_of(self.out))

    # ---- Ends that are none ----------------------------------------------------------------------

    def test_a_crash_keeps_what_was_reported(self):
        for printed, during in (("models/first ... passed (x)\nmodels/2nd ... skipped (y)\nmodels/the third ... ",
                                 "models/the third"),
                                ("models/first ... passed (x)\nmodels/2nd ... noise\nskipped (y)\n",
                                 "what follows models/2nd"),
                                ("", "its start")):
            self.bundle(f"print({printed!r}, end='', flush=True)\nos.abort()\n")
            said, result = self.local(1)
            run = result["runs"][0]
            self.assertEqual(during, run["crashed"]["during"])
            self.assertIn(f"crashed with {-signal.SIGABRT} in {during}", said)
            counts = (1, 1, 1) if printed else (0, 1, 0)
            self.assertEqual(counts, tuple(run[count] for count in ("passed", "failed", "skipped")))
            self.assertEqual(["first", "2nd"] if printed else [], [check["name"] for check in run["checks"]])
            self.assertIn("crashed in " + during, self.page_of(self.out))

    def test_a_silent_program_is_killed(self):
        self.bundle("print('kernels/slow ... ', end='', flush=True)\nprint(os.getpid(), file=open('pid', 'w'))\n"
                    "time.sleep(600)\n")
        for target in ("local", "ssh:board"):
            (self.folder / "pid").unlink(missing_ok=True)
            if target == "local":
                said, _ = self.local(1, "--limit", "1.5")
                pid = int((self.folder / "pid").read_text())
            else:
                said = self.over(target, 1, "--limit", "1.5", "--keep", "--out", self.out)
                pid = int((self.folder / "phone" / self.left()[0] / "pid").read_text())
            self.assertIn("no answer for 1.5 s in kernels/slow", said)
            crash = json.loads(self.out.read_text())["runs"][0]["crashed"]
            self.assertEqual(("kernels/slow", 1.5), (crash["during"], crash["silent_s"]))
            self.assertFalse(is_alive(pid))
        self.assertIn("no answer for 1.5 s in kernels/slow", self.page_of(self.out))

    def interrupted(self, number, *arguments, ready, **environment):
        """What run.py says when it is interrupted as soon as there is a file `ready`."""
        with subprocess.Popen(
                [sys.executable, SCRIPTS / "run.py", *map(str, arguments)], cwd=self.folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment},
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
            until = time.monotonic() + 60
            while not list(self.folder.rglob(ready)) and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(0.1)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        self.assertEqual(130, process.returncode, said)
        self.assertNotIn("Traceback", said)
        return said

    def test_an_interrupt_keeps_what_is_finished_and_ends_the_rest(self):
        self.bundle("if device['option'] == 'cpu':\n    finish(check('a'))\n"
                    f"print(os.getpid(), file=open({str(self.folder / 'pid')!r}, 'w'))\n"
                    f"open({str(self.folder / 'ready')!r}, 'w')\ntime.sleep(600)\n", [CPU, GPU])
        scratch = self.folder / "scratch"
        scratch.mkdir()
        for target, number in (("local", signal.SIGINT), ("local", signal.SIGTERM), ("ssh:board", signal.SIGINT)):
            (self.folder / "ready").unlink(missing_ok=True)
            place = ["--folder", self.folder / "phone"] if target != "local" else []
            said = self.interrupted(number, target, "--bundle", self.folder / "bundle", "--out", self.out, *place,
                                    ready="ready", **{**self.machine(), "TMPDIR": str(scratch)})
            self.assertIn("interrupted: 1 of 2 devices are in", said)
            result = json.loads(self.out.read_text())
            self.assertEqual((True, 1, 1), (result["interrupted"], len(result["runs"]), result["passed"]))
            self.assertFalse(is_alive(int((self.folder / "pid").read_text())))
            self.assertEqual([], self.left() + list(scratch.iterdir()))
        self.assertIn("interrupted", self.page_of(self.out))

    def test_an_interrupt_before_a_device_is_finished_writes_nothing(self):
        self.bundle(f"open({str(self.folder / 'ready')!r}, 'w')\ntime.sleep(600)\n")
        said = self.interrupted(signal.SIGINT, "local", "--bundle", self.folder / "bundle", "--out", self.out,
                                ready="ready")
        self.assertIn("interrupted: nothing was written", said)
        self.assertFalse(self.out.exists())

    def test_a_crash_leaves_no_files(self):
        self.bundle("open(os.path.join(tempfile.mkdtemp(), 'left'), 'w')\nos.abort()\n")
        scratch = self.folder / "scratch"
        scratch.mkdir()
        self.local(1, TMPDIR=str(scratch))
        self.assertEqual([], list(scratch.iterdir()))

    def test_a_result_that_cannot_be_read_is_no_crash(self):
        for body, reason in (("sys.exit(1)\n", "result.json"), ("write('[]')\n", "it is no object"),
                             ("write('{')\n", "Expecting"), ("write('{\"device\": 1}')\n", "device is no object")):
            self.bundle(body)
            said, result = self.local(2)
            self.assertRegex(said, f"ended with code [01] but its result cannot be read: .*{reason}")
            self.assertNotIn("crashed", said)
            self.assertIn("its result cannot be read", self.page_of(self.out))

    # ---- Options and what they say ---------------------------------------------------------------

    def test_a_terminal_shows_the_current_check_in_one_line(self):
        self.bundle("print('models/the first ... passed (x)\\nmodels/the second ... ', flush=True)\n"
                    "finish(check('a'))\n")
        ours, theirs = os.openpty()
        done = subprocess.run([sys.executable, SCRIPTS / "run.py", "local", "--bundle", self.folder / "bundle",
                               "--out", self.out], stderr=theirs, stdout=subprocess.DEVNULL, timeout=60, check=True)
        os.close(theirs)
        said = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertEqual(0, done.returncode)
        self.assertRegex(said, r"\r\x1b\[Kmodels/the second\r\x1b\[K")

    def test_patience_reaches_the_program(self):
        self.bundle("finish(check(os.environ['ORIEL_TEST_PATIENCE']))\n")

        def name(result):
            return result["runs"][0]["checks"][0]["name"]

        self.assertEqual("20", name(self.local(0, ORIEL_TEST_PATIENCE="")[1]))
        self.assertEqual("7", name(self.local(0, ORIEL_TEST_PATIENCE="7")[1]))
        self.assertEqual("3", name(self.local(0, "--patience", 3, ORIEL_TEST_PATIENCE="7")[1]))
        for target in ("ssh:board", "adb"):
            for given, want in ((["--patience", 5], "5"), ([], "1")):
                self.over(target, 0, *given, "--out", self.out, ORIEL_TEST_PATIENCE="")
                self.assertEqual(want, name(json.loads(self.out.read_text())))
        for arguments, said in ((["--patience", "0"], "--patience must be"), (["--limit", "0"], "--limit must be"),
                                (["--limit", "nan"], "--limit must be")):
            self.assertIn(said, self.local(2, *arguments)[0])
        self.assertIn("ORIEL_TEST_PATIENCE must be", self.local(2, ORIEL_TEST_PATIENCE="long")[0])

    def test_disabled_features_reach_the_program(self):
        self.bundle("finish(check(str(option('--disable'))))\n")
        for arguments, want in ((["--disable", "subgroup"], "subgroup"), ([], "None")):
            result = self.local(0, *arguments, ORIEL_DISABLE="")[1]
            self.assertEqual(want, result["runs"][0]["checks"][0]["name"])

    def test_what_is_not_tested_is_said(self):
        self.bundle(devices=[GPU, DEAD, CPU])
        said, result = self.local(0)
        self.assertIn("not tested: vulkan:1 <Old>: no compute queue", said)
        self.assertEqual(["vulkan:0", "cpu"], [run["device"]["option"] for run in result["runs"]])
        page = self.page_of(self.out)
        self.assertIn("Not tested", page)
        self.assertIn("&lt;Old&gt;", page)
        self.assertNotIn("no Vulkan device was found", page)
        self.assertNotIn("not tested", self.local(0, "--devices", "cpu")[0])
        self.bundle()
        self.assertIn("no Vulkan device was found: only the CPU is tested", self.local(0)[0])
        self.assertIn("no Vulkan device was found", self.page_of(self.out))
        self.assertNotIn("no Vulkan device", self.local(0, "--devices", "cpu")[0])

    def test_out_is_checked_before_anything_runs(self):
        self.bundle("sys.exit(9)\n")
        for out, said in (("none/x.json", "there is no folder"), (self.folder, "is a folder")):
            self.refused(said, "run.py", "local", "--bundle", self.folder / "bundle", "--out", out)

    def test_the_folder_on_the_other_machine_is_chosen_there_only(self):
        self.bundle()
        self.refused("are for adb and ssh", "run.py", "local", "--bundle", self.folder / "bundle", "--keep")
        self.refused("must begin with a slash", "run.py", "ssh:board", "--bundle", self.folder / "bundle", "--folder", "x")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_result_that_cannot_be_written_goes_to_stdout(self):
        self.bundle()
        done = script("run.py", "local", "--bundle", self.folder / "bundle", "--out", "/dev/full")
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertEqual(2, json.loads(done.stdout)["passed"])
        self.assertIn("/dev/full cannot be written (No space left on device)", done.stderr)

    # ---- Files that are not as they should be ----------------------------------------------------

    def test_an_odd_manifest_is_one_line(self):
        bundle = self.bundle()
        good = json.loads((bundle / "manifest.json").read_text())
        for manifest, said in (("{", "is not JSON"), ("[]", "lacks program"),
                               ({**good, "files": {}}, "has no sum of its program"),
                               ({**good, "files": {"program.py": 1}}, "that are not text"),
                               ({**good, "files": {**good["files"], "x": "y"}}, "x is not what the manifest says"),
                               ({**good, "emulator": "x"}, "lacks emulator"),
                               ({name: good[name] for name in good if name != "system"}, "lacks system")):
            text = manifest if isinstance(manifest, str) else json.dumps(manifest)
            (bundle / "manifest.json").write_text(text)
            self.refused(said, "run.py", "local", "--bundle", bundle)
        self.refused("is no device bundle", "run.py", "local", "--bundle", self.folder)

    def test_an_odd_list_of_devices_is_one_line(self):
        for devices in ("no list", "[1]", "[]", "[{'option': 'cpu'}]", "{}"):
            bundle = self.bundle()
            text = (bundle / "program.py").read_text()
            executable(bundle / "program.py", text.replace("json.dumps(DEVICES)", repr(devices).replace("\\'", '"')))
            write_manifest(bundle, program="program.py", system="x", processor="x", emulator=[sys.executable])
            self.refused("list of devices cannot be read", "run.py", "local", "--bundle", bundle)
        executable(bundle / "program.py", "import sys; sys.exit('libvulkan is too old')\n")
        write_manifest(bundle, program="program.py", system="x", processor="x", emulator=[sys.executable])
        self.refused("does not list devices on this machine: libvulkan is too old", "run.py", "local", "--bundle",
                     bundle)

    def result(self, **fields):
        """The JSON of a run with one check, and these of its fields changed."""
        run = {"device": CPU, "passed": 1, "failed": 0, "skipped": 0,
               "checks": [{"group": "models", "name": "a", "status": "passed", "detail": "d"}]}
        return {"format": 1, "label": "L", "when": "2026-01-01T00:00:00Z", "emulated": False,
                "runs": [{**run, **fields}]}

    def report_of(self, result):
        self.out.write_text(json.dumps(result))
        return self.page_of(self.out)

    def test_files_of_another_structure_are_refused(self):
        good = self.result()
        for bad in ([], {}, {**good, "format": 2}, {**good, "runs": []}, {**good, "runs": [1]}, {**good, "label": 1},
                    self.result(device=None), self.result(passed="1"), self.result(passed=True),
                    self.result(checks={}), self.result(checks=[1]), self.result(checks=[{"group": "x"}]),
                    self.result(figures=[]), self.result(crashed="x"), self.result(candidates=[{"op": "x"}])):
            self.out.write_text(json.dumps(bad))
            done = self.refused("cannot be used (", "report.py", self.out, code=1)
            self.assertIn("): give files that run.py wrote", done.stderr)
        self.out.write_bytes(b"\xff")
        self.refused("cannot be used", "report.py", self.out, code=1)
        self.refused("cannot be used", "report.py", self.folder / "none.json", code=1)
        self.report_of(good)
        self.refused("cannot be written", "report.py", self.out, "--out", self.folder / "none" / "x", code=1)

    def test_odd_values_are_shown(self):
        check = {"group": "models", "name": "<b>", "status": "passed", "detail": "d", "value": None, "limit": None}
        page = self.report_of(self.result(checks=[check, {**check, "name": "c", "status": "<odd>"}]))
        self.assertIn("not a number", page)
        self.assertIn("Oriel on 1 device: 1 check failed", page)
        self.assertIn("<h2>Failures</h2>", page)
        self.assertIn("&lt;odd&gt;", page)
        self.assertNotIn("<b>", page)
        page = self.report_of(self.result(
            figures={"temperatures_before": {"a": 30, "b": None}, "temperatures_after": {}, "device_bytes": "<x>",
                     "first_start": 1, "host_bytes": None},
            candidates=[{"op": "o", "name": "n", "microseconds": None, "chosen": True}],
            peak_resident_bytes=None, system=None))
        self.assertIn("30.0 → –", page)
        self.assertNotIn("<h2>Failures</h2>", page)


if __name__ == "__main__":
    BUNDLE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
