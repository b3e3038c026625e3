#!/usr/bin/env python3
"""Tests a device with the device bundle and brings back one JSON.

    run.py local                  this machine, with build/release/device-bundle
    run.py PRESET                 the bundle in build/PRESET; a foreign one runs under its emulator
    run.py adb[:SERIAL]           an Android device, with build/android-arm64/device-bundle
    run.py ssh:HOST               any machine with a shell

    --bundle DIR   another bundle           --devices LIST   cpu,vulkan:0 (default: all that are usable)
    --out FILE     default: device-NAME.json                --no-bench       checks only
    --label TEXT   what the report calls it (default: the target)
    --only WHAT    kernels, models, streaming or faults; models/NAME for models whose names begin so

One process tests one device of the target, so a driver that crashes is reported with the check it
crashed in. Exit codes: 0 all passed, 1 something failed, 2 wrong usage or no contact.
"""

import argparse
import hashlib
import json
import os
import pathlib
import posixpath
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ANDROID_FOLDER = "/data/local/tmp/oriel-device-test"


class NoContact(Exception):
    """The target cannot be reached or the bundle cannot be used; the text says what to do."""


def say(text):
    print(f"run.py: {text}", file=sys.stderr, flush=True)


class Local:
    """Runs in place, under the emulator that the bundle was configured with, if any."""

    def __init__(self, bundle, manifest):
        self.command = [*manifest["emulator"], str(bundle / manifest["program"])]
        self.environment = dict(os.environ)
        if manifest["emulator"]:  # compiling kernels takes minutes there
            self.environment.setdefault("ORIEL_TEST_PATIENCE", "20")
        self.scratch = tempfile.TemporaryDirectory(prefix="oriel-device-")

    def start(self, arguments):
        return subprocess.Popen([*self.command, *arguments], stdout=subprocess.PIPE, text=True,
                                errors="replace", env=self.environment)

    def result_path(self):
        return os.path.join(self.scratch.name, "result.json")

    def fetch(self, path):
        return pathlib.Path(path).read_text(encoding="utf-8")

    def forget(self, path):
        pathlib.Path(path).unlink(missing_ok=True)


class Remote:
    """A folder on another machine, reached by copying and by running shell commands."""

    def __init__(self, folder, program):
        self.folder = folder
        self.program = posixpath.join(folder, program)

    def shell(self, command):
        """The command line, here, that runs `command` in a shell there."""
        raise NotImplementedError

    def copy(self, bundle):
        """Puts the bundle's contents into the folder."""
        raise NotImplementedError

    def output(self, command):
        done = subprocess.run(self.shell(command), stdout=subprocess.PIPE, text=True, errors="replace")
        if done.returncode != 0:
            raise NoContact(f"`{command}` failed there with code {done.returncode}")
        return done.stdout

    def push(self, bundle, manifest):
        say(f"copying {bundle} to {self.folder}")
        self.copy(bundle)
        self.output(f"chmod 755 {shlex.quote(self.program)}")
        sums = self.output(f"cd {shlex.quote(self.folder)} && find . -type f -exec sha256sum {{}} +")
        there = {name[2:]: digest for digest, name in
                 (line.split(None, 1) for line in sums.splitlines() if line)}
        for name, digest in manifest["files"].items():
            if there.get(name) != digest:
                raise NoContact(f"{name} arrived damaged: is there room in {self.folder}?")

    def start(self, arguments):
        command = " ".join(map(shlex.quote, [self.program, *arguments]))
        folder = shlex.quote(self.folder)
        return subprocess.Popen(self.shell(f"cd {folder} && TMPDIR={folder} {command}"),
                                stdout=subprocess.PIPE, text=True, errors="replace")

    def result_path(self):
        return posixpath.join(self.folder, "result.json")

    def fetch(self, path):
        return self.output(f"cat {shlex.quote(path)}")

    def forget(self, path):
        self.output(f"rm -f {shlex.quote(path)}")


class Adb(Remote):
    def __init__(self, serial, program):
        super().__init__(ANDROID_FOLDER, program)
        self.adb = [os.environ.get("ADB", "adb"), *(["-s", serial] if serial else [])]

    def shell(self, command):
        return [*self.adb, "shell", command]

    def copy(self, bundle):
        self.output(f"rm -rf {self.folder} && mkdir -p {self.folder}")
        subprocess.run([*self.adb, "push", f"{bundle}/.", self.folder], check=True,
                       stdout=subprocess.DEVNULL)


class Ssh(Remote):
    def __init__(self, host, program):
        super().__init__("/tmp/oriel-device-test", program)
        self.host = host

    def shell(self, command):
        return ["ssh", "-o", "BatchMode=yes", self.host, command]

    def copy(self, bundle):
        self.output(f"rm -rf {self.folder} && mkdir -p {self.folder}")
        with subprocess.Popen(["tar", "-C", str(bundle), "-cf", "-", "."],
                              stdout=subprocess.PIPE) as packing:
            subprocess.run(self.shell(f"tar -C {self.folder} -xf -"), stdin=packing.stdout, check=True)


def read_bundle(folder):
    """The manifest, once every file is as it says."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise NoContact(f"{folder} is no device bundle: build one with "
                        "`cmake --build BUILD --target device-bundle`")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for name, digest in manifest["files"].items():
        file = folder / name
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            raise NoContact(f"{file} is not what the manifest says: build the bundle again")
    return manifest


def connect(target, bundle, manifest):
    kind, _, rest = target.partition(":")
    if kind == "adb":
        there = Adb(rest, manifest["program"])
    elif kind == "ssh":
        there = Ssh(rest, manifest["program"])
    else:
        return Local(bundle, manifest)
    there.push(bundle, manifest)
    return there


def list_devices(target):
    process = target.start(["--list"])
    output, _ = process.communicate()
    lines = [line for line in output.splitlines() if line.startswith("[")]
    if process.returncode != 0 or not lines:
        raise NoContact(f"the test program does not run there (exit code {process.returncode})")
    return json.loads(lines[-1])


def test_device(target, device, arguments):
    """What the program says about one device; a crash is a result, too."""
    path = target.result_path()
    target.forget(path)
    options = ["--device", device["option"], "--out", path]
    options += ["--only", arguments.only] if arguments.only else []
    process = target.start([*options, *(["--no-bench"] if arguments.no_bench else [])])
    last = ""
    for line in process.stdout:
        match = re.match(r"(\w+/.*?) \.\.\. (.*)", line)
        if match:  # a check without a result has not ended; several may be run before they are reported
            last = f"what follows {match.group(1)}" if match.group(2) else match.group(1)
        if arguments.verbose:
            sys.stderr.write(line)
    code = process.wait()
    if code in (0, 1):
        try:
            return json.loads(target.fetch(path))
        except (OSError, ValueError, NoContact):
            pass  # it ended before it could write
    return {"device": device, "passed": 0, "failed": 1, "skipped": 0, "checks": [],
            "crashed": {"exit_code": code, "during": last}}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--bundle", type=pathlib.Path)
    parser.add_argument("--devices")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--label")
    parser.add_argument("--only")
    parser.add_argument("--no-bench", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="show each check as it runs")
    arguments = parser.parse_args()
    kind = arguments.target.partition(":")[0]
    preset = {"local": "release", "ssh": "release", "adb": "android-arm64"}.get(kind, kind)
    bundle = (arguments.bundle or ROOT / "build" / preset / "device-bundle").resolve()
    try:
        manifest = read_bundle(bundle)
        target = connect(arguments.target, bundle, manifest)
        devices = list_devices(target)
    except (NoContact, OSError, subprocess.CalledProcessError) as error:
        say(error)
        return 2
    wanted = arguments.devices.split(",") if arguments.devices else \
        [device["option"] for device in devices if device["usable"]]
    unknown = set(wanted) - {device["option"] for device in devices}
    if unknown:
        say(f"there is no device {', '.join(sorted(unknown))}: there are "
            f"{', '.join(device['option'] for device in devices)}")
        return 2

    runs = []
    for device in devices:
        if device["option"] in wanted:
            say(f"testing {device['option']}: {device['name']}")
            run = test_device(target, device, arguments)
            say(f"  {run['passed']} passed, {run['failed']} failed, {run['skipped']} skipped")
            for check in run["checks"]:
                if check["status"] == "failed":
                    say(f"  {check['group']}/{check['name']}: {check['detail']}")
            if "crashed" in run:
                say(f"  crashed with {run['crashed']['exit_code']} in {run['crashed']['during']}")
            runs.append(run)
    result = {"format": 1, "label": arguments.label or arguments.target,
              "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
              "built_for": f"{manifest['system']} {manifest['processor']}",
              "emulated": bool(manifest["emulator"]), "only": arguments.only, "devices": devices,
              "runs": runs}
    for count in ("passed", "failed", "skipped"):
        result[count] = sum(run[count] for run in runs)
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", arguments.target)
    out = arguments.out or pathlib.Path(f"device-{name}.json")
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{result['passed']} passed, {result['failed']} failed, {result['skipped']} skipped: {out}")
    return 0 if result["failed"] == 0 and result["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
