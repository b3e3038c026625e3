"""Files, snapshots, devices and published shapes."""

import ctypes
from typing import Any, List, Optional, Union

from . import _abi
from ._calls import Log, PathLike, Progress, call, interruptible, path_bytes, running, until
from ._described import Described, described, of_struct
from ._errors import at_path
from ._library import bundled_model
from ._options import load_options, takes

CHECKS = ("passed", "failed", "skipped")


def inspect(model: Optional[PathLike] = None, *, log: Optional[Log] = None) -> Described:
    """What a model file holds. `missing` has the reasons if this build cannot run it. None: the bundled model."""
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
