#!/usr/bin/env python3
"""Tests a device with the device bundle and brings back one JSON.

    run.py local                  this machine, with build/release/device-bundle
    run.py PRESET                 the bundle in build/PRESET; if for another system, in its emulator
    run.py adb[:SERIAL]           an Android device, with build/android-arm64/device-bundle
    run.py ssh:HOST               any machine with a POSIX shell

    --bundle DIR   another bundle           --devices LIST   cpu,vulkan:0 (default: all usable ones)
    --label TEXT   name in the report (default: the phone's name, else the target)
    --out FILE     default: device-LABEL.json                --no-bench       checks only
    --only WHAT    kernels, models, streaming or faults; models/NAME for models whose names begin so
    --disable NAMES   optional Vulkan features to turn off (default: ORIEL_DISABLE; docs/devices.md)
    --patience N   factor on waiting times (default: ORIEL_TEST_PATIENCE, else 20 in
                   an emulator, else 1)
    --limit SECONDS   the longest silence before the program is killed (default: 600 times the patience)
    --folder DIR   for adb and ssh: where the run makes a folder of its own (/data/local/tmp, /tmp)
    --keep         leave that folder there   --verbose       show each check as it runs

One process tests one device of the target, so a driver that crashes is reported with the check it
crashed in. Exit codes: 0 all passed, 1 something failed, 2 wrong usage, no contact, or an unreadable or unwritable
result, 130 interrupted (the results of finished devices are written).
"""

import argparse
import hashlib
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from report import DEVICE, RUN, ending, fault  # noqa: E402
from targets import Adb, Local, Problem, Ssh, Watch, last_line, say  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GROUPS = ("kernels", "models", "streaming", "faults")


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--bundle", type=pathlib.Path)
    parser.add_argument("--devices")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--label")
    parser.add_argument("--only")
    parser.add_argument("--disable", default=os.environ.get("ORIEL_DISABLE"))
    parser.add_argument("--patience", type=int)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--folder")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--no-bench", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def presets():
    file = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
    return [preset["name"] for preset in file["configurePresets"] if not preset.get("hidden")]


def read_target(text):
    """The target's kind, the text after its colon, and the preset whose bundle it takes."""
    kind, colon, rest = text.partition(":")
    if text == "local" or kind == "adb" and bool(colon) == bool(rest) or \
            kind == "ssh" and rest and not rest.startswith("-"):
        return kind, rest, "android-arm64" if kind == "adb" else "release"
    if text in presets():
        return "local", "", text
    raise Problem(f"{text} is no target: local, adb[:SERIAL], ssh:HOST or one of {', '.join(presets())}")


def read_bundle(folder):
    """The manifest, once every file is as it says."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise Problem(f"{folder} is no device bundle: build one with "
                      "`cmake --build BUILD --target device-bundle`")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Problem(f"{path} is not JSON ({error}): build the bundle again") from error
    kinds = {"program": str, "system": str, "processor": str, "emulator": list, "files": dict}
    for name, kind in kinds.items():
        if not isinstance(manifest, dict) or not isinstance(manifest.get(name), kind):
            raise Problem(f"{path} lacks {name}: build the bundle again")
    if not all(isinstance(word, str) for word in (*manifest["emulator"], *manifest["files"].values())):
        raise Problem(f"{path} has an emulator or files that are not text: build the bundle again")
    if manifest["program"] not in manifest["files"]:
        raise Problem(f"{path} has no sum of its program {manifest['program']}: build the bundle again")
    for name, digest in manifest["files"].items():
        file = folder / name
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            raise Problem(f"{file} is not what the manifest says: build the bundle again")
    return manifest


def check_only(only, bundle, files):
    """`only` must name a group or a model of the bundle; a model with a suffix has no logits of its own."""
    paths = [pathlib.PurePosixPath(name) for name in files if name.startswith("models/")]
    named = json.loads((bundle / "logits.json").read_text())["models"] if "logits.json" in files else {}
    models = [path.stem if path.stem in named else path.name for path in paths]
    group, slash, name = only.partition("/")
    known = any(model.startswith(name) for model in models) if slash and group == "models" else only in GROUPS
    if not known:
        raise Problem(f"nothing is called {only}: {', '.join(GROUPS)} or models/NAME")


def check_out(path):
    folder = path.absolute().parent
    if path.is_dir():
        raise Problem(f"{path} is a folder: --out takes a file")
    if not folder.is_dir():
        raise Problem(f"{path} cannot be written: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise Problem(f"{path} cannot be written: no permission")


def read_times(arguments, target):
    """Patience, and seconds without a line after which the program is killed."""
    patience, name = arguments.patience, "--patience"
    if patience is None:
        name = "ORIEL_TEST_PATIENCE"
        text = os.environ.get(name) or ("20" if target.emulated else "1")
        patience = int(text) if text.isdecimal() else 0
    limit = 600 * patience if arguments.limit is None else arguments.limit
    if patience < 1:
        raise Problem(f"{name} must be a whole number of at least 1")
    if not 0 < limit < math.inf:
        raise Problem("--limit must be a number of seconds")
    return patience, limit


def list_devices(target, disable, patience, limit):
    running = target.start(["--list", *(["--disable", disable] if disable else [])], patience, True)
    output, code = "", None
    try:
        while chunk := running.read(limit):
            output += chunk
        code = None if chunk is None else running.process.wait(limit)
    except subprocess.TimeoutExpired:
        pass
    finally:
        target.stop(running)
    if code != 0:
        reason = f"no answer for {limit:g} s" if code is None else running.last_error() or f"exit code {code}"
        raise Problem(f"the test program does not list devices on {target.name}: {reason}")
    line = next((line for line in output.splitlines() if line.startswith("[")), "")
    try:
        devices = json.loads(line)
    except ValueError:
        devices = []
    if not devices or fault(devices, [DEVICE]):
        raise Problem(f"the test program's list of devices cannot be read: {last_line(output, 'nothing')[:200]}")
    return devices


def test_device(target, device, arguments, patience, limit):
    """The program's result for one device; a crash is also a result."""
    path = target.result_path()
    target.forget(path)
    options = ["--device", device["option"], "--out", path, *(["--no-bench"] if arguments.no_bench else [])]
    for name in ("only", "disable"):
        options += [f"--{name}", getattr(arguments, name)] if getattr(arguments, name) else []
    watch, crash = Watch(arguments.verbose), {}
    running = target.start(options, patience)
    try:
        while chunk := running.read(limit):
            watch.see(chunk)
        if chunk is None:
            crash = {"silent_s": limit}
        else:
            running.process.wait(limit)
    except subprocess.TimeoutExpired:
        crash = {"silent_s": limit}
    finally:
        watch.show("")
        target.stop(running)
    code = running.process.returncode
    if code in (0, 1) and not crash:
        try:
            result = json.loads(target.fetch(path))
            wrong = fault(result, RUN)
            if not wrong:
                return result
            crash = {"unreadable": wrong}
        except (OSError, ValueError, Problem) as error:
            crash = {"unreadable": str(error)}
    crash = {"exit_code": code, "during": watch.during, **crash}
    if not target.in_contact():
        crash["connection_lost"] = True
    counts = {count: sum(check["status"] == count for check in watch.checks)
              for count in ("passed", "failed", "skipped")}
    counts["failed"] += 1
    return {"device": device, **counts, "checks": watch.checks, "crashed": crash}


def tell(run):
    say(f"  {run['passed']} passed, {run['failed']} failed, {run['skipped']} skipped")
    for check in run["checks"]:
        if check["status"] == "failed":
            say(f"  {check['group']}/{check['name']}: {check['detail']}")
    if run.get("crashed"):
        say(f"  {ending(run['crashed'])}")


def choose(devices, names):
    """The devices to test; without --devices, unusable ones are reported."""
    if names:
        unknown = set(names.split(",")) - {device["option"] for device in devices}
        if unknown:
            raise Problem(f"there is no device {', '.join(sorted(unknown))}: there are "
                          f"{', '.join(device['option'] for device in devices)}")
        return [device for device in devices if device["option"] in names.split(",")]
    for device in devices:
        if not device["usable"]:
            say(f"not tested: {device['option']} {device['name']}: {device.get('reason') or 'not usable'}")
    if not any(device["option"].startswith("vulkan:") for device in devices):
        say("no Vulkan device was found: only the CPU is tested")
    if not any(device["usable"] for device in devices):
        raise Problem("no device is usable")
    return [device for device in devices if device["usable"]]


def write(result, out):
    """True if the file was written. Otherwise prints its text on stdout."""
    text = json.dumps(result, indent=1) + "\n"
    try:
        out.write_text(text, encoding="utf-8")
        return True
    except OSError as error:
        say(f"{out} cannot be written ({error.strerror}): this is what would be in it")
        sys.stdout.write(text)
        return False


def ignore_interrupts():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def test(target, arguments, manifest):
    label = arguments.label or target.label or arguments.target
    name = re.sub(r"[^\w.-]+", "-", label).strip("-") or "target"
    out = arguments.out or pathlib.Path(f"device-{name}.json")
    check_out(out)
    patience, limit = read_times(arguments, target)
    with target:
        devices = list_devices(target, arguments.disable, patience, limit)
        wanted = choose(devices, arguments.devices)
        result = {"format": 1, "label": label, "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                  "built_for": f"{manifest['system']} {manifest['processor']}",
                  "build": manifest["files"][manifest["program"]][:12], "emulated": target.emulated,
                  "only": arguments.only, "disabled": arguments.disable or None, "devices": devices, "runs": []}
        runs, broken = result["runs"], False
        try:
            for device in wanted:
                say(f"testing {device['option']}: {device['name']}")
                runs.append(test_device(target, device, arguments, patience, limit))
                tell(runs[-1])
                crash = runs[-1].get("crashed", {})
                broken = broken or "unreadable" in crash or "connection_lost" in crash
                if "connection_lost" in crash:
                    break
        except (KeyboardInterrupt, Problem) as error:
            if not runs:
                raise
            if isinstance(error, Problem):
                say(error)
                broken = True
            else:
                result["interrupted"] = True
        ignore_interrupts()  # the rest ends within seconds
    for count in ("passed", "failed", "skipped"):
        result[count] = sum(run[count] for run in runs)
    written = write(result, out)
    if "interrupted" in result:
        say(f"interrupted: {len(runs)} of {len(wanted)} devices are in {out if written else 'the text above'}")
        return 130
    if written:
        print(f"{result['passed']} passed, {result['failed']} failed, {result['skipped']} skipped: {out}")
    if broken or not written:
        return 2
    return 0 if result["failed"] == 0 and result["passed"] > 0 else 1


def interrupt(*_):
    ignore_interrupts()
    raise KeyboardInterrupt


def main():
    arguments = read_arguments()
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        kind, name, preset = read_target(arguments.target)
        if kind == "local" and (arguments.folder or arguments.keep):
            raise Problem("--folder and --keep are for adb and ssh: nothing is left on this machine")
        if arguments.folder and not arguments.folder.startswith("/"):
            raise Problem(f"--folder {arguments.folder} must begin with a slash")
        check_out(arguments.out or pathlib.Path("device.json"))
        bundle = (arguments.bundle or ROOT / "build" / preset / "device-bundle").resolve()
        manifest = read_bundle(bundle)
        if arguments.only:
            check_only(arguments.only, bundle, manifest["files"])
        if kind == "local":
            target = Local(bundle, manifest)
        else:
            target = {"adb": Adb, "ssh": Ssh}[kind](name, bundle, manifest, arguments)
            target.greet()
        return test(target, arguments, manifest)
    except (Problem, OSError) as error:
        say(error)
        return 2
    except KeyboardInterrupt:
        say("interrupted: nothing was written")
        return 130


if __name__ == "__main__":
    sys.exit(main())
