"""Files, snapshots, devices, published shapes, and published models by name."""

import ctypes
import json
import os
import shutil
import subprocess
from typing import Any, List, Optional, Union

from . import _abi
from ._calls import (
    Described, Log, PathLike, Progress, bundled_model, call, described, interruptible, of_struct, path_bytes, running,
    until,
)
from ._errors import ArgumentError, FileError, UnsupportedError, at_path
from ._options import load_options, takes

CHECKS = ("passed", "failed", "skipped")


def inspect(model: Optional[PathLike] = None, *, log: Optional[Log] = None) -> Described:
    """Facts about a model file. `missing` has the reasons if this build cannot run it. None: the bundled model."""
    held = load_options({}, log=log)
    path = bundled_model() if model is None else model
    return at_path(path, lambda: described("oriel_file_describe", path_bytes(path), ctypes.byref(held.struct)))


def inspect_snapshot(snapshot: Union[bytes, bytearray, memoryview, PathLike], *, log: Optional[Log] = None) -> Described:
    """Describes a snapshot without a model: the bytes of `Session.save`, or a file by its path."""
    options = ctypes.byref(load_options({}, log=log).struct)
    if isinstance(snapshot, (bytes, bytearray, memoryview)):
        data = bytes(snapshot)
        return described("oriel_snapshot_describe", None, data, len(data), options)
    return described("oriel_snapshot_describe", path_bytes(snapshot), None, 0, options)


def shapes() -> List[Described]:
    """Published models for `plan(shape=...)`."""
    found: List[Described] = described("oriel_shape_list").shapes
    return found


@takes("load")
def devices(*, forget: bool = False, log: Optional[Log] = None, **options: Any) -> List[Described]:
    """Vulkan devices in the order of "vulkan:N", and the CPU last. `forget` first deletes the verdicts about drivers in
    cache_folder."""
    held = load_options(options, log=log)
    flags = _abi.DEVICE_FORGET if forget else 0
    found: List[Described] = described("oriel_device_describe", ctypes.byref(held.struct), flags).devices
    return found


@takes("load")
def self_test(*, progress: Optional[Progress] = None, log: Optional[Log] = None, **options: Any) -> List[Described]:
    """Runs every kernel that the device could use against plain code on the CPU."""
    stopped: List[bool] = []
    held = load_options(options, log=log, progress=until(stopped, progress))
    checks: List[Described] = []

    def on_check(check: Any, _user: object) -> None:
        try:
            checks.append(of_struct(check.contents, result=CHECKS))
        except BaseException as error:
            running.keep(error)

    callback, result = _abi.check_fn(on_check), _abi.new(_abi.SelfTestResult)
    arguments = ctypes.byref(held.struct), callback, None, None, ctypes.byref(result)
    interruptible(lambda: call("oriel_self_test", *arguments), lambda: stopped.append(True))
    return checks


USAGE = 2


def pull(name: str, *, to: Optional[PathLike] = None, sha256: Optional[str] = None) -> str:
    """Downloads a model with `oriel pull` and returns its path: a name of `oriel models`, ORG/REPO of huggingface.co, or an
    address. A file that is there already is not downloaded again. `to`: a folder, or the file to make.

    Needs the program `oriel` on the PATH, or its path in the environment variable ORIEL_PROGRAM.
    """
    program = os.environ.get("ORIEL_PROGRAM") or shutil.which("oriel")
    if program is None:
        raise UnsupportedError("the program oriel is not on the PATH: install it, or set ORIEL_PROGRAM")
    command: List[str] = [program, "pull", "--json"]
    command += [] if to is None else ["--to", os.fspath(to)]
    command += [] if sha256 is None else ["--sha256", sha256]
    done = subprocess.run([*command, "--", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode == 0:
        file: str = json.loads(done.stdout)["path"]
        return file
    line = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    line = line[len("oriel: "):] if line.startswith("oriel: ") else line
    raise ArgumentError(line) if done.returncode == USAGE else FileError(line)
