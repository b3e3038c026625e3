"""What a model could run on here."""

import ctypes
from typing import Any, List, Optional, Sequence

from . import _abi
from ._calls import Log, PathLike, Progress, call, interruptible, progress_callback, running, until
from ._options import model_options
from ._plan import chosen
from ._results import Check, DeviceInfo, device_of, new, result_of


def devices(
    *,
    cache_dir: Optional[PathLike] = None,
    enabled_features: Sequence[str] = (),
    device_test: Optional[str] = "auto",
    log: Optional[Log] = None,
) -> List[DeviceInfo]:
    """Vulkan devices in the order that "vulkan:N" counts, and the CPU last; with what cache_dir says of them."""
    held, room = model_options(**chosen(locals(), model_options)), 16
    options = ctypes.byref(held.struct)
    while True:
        array, needed = (_abi.oriel_device_info * room)(), ctypes.c_size_t()
        for item in array:
            item.struct_size = ctypes.sizeof(item)
        call("oriel_device_list_with", options, array, room, ctypes.byref(needed))
        if needed.value <= room:
            return [device_of(item) for item in array[: needed.value]]
        room = needed.value


def forget_devices(cache_dir: PathLike, *, log: Optional[Log] = None) -> None:
    """What cache_dir says against devices and their drivers: docs/drivers.md."""
    held = model_options(cache_dir=cache_dir, log=log)
    call("oriel_device_forget", ctypes.byref(held.struct))


def self_test(
    *,
    device: Optional[str] = "auto",
    device_timeout_ms: Optional[int] = None,
    threads: Optional[int] = None,
    disabled_features: Sequence[str] = (),
    cache_dir: Optional[PathLike] = None,
    progress: Optional[Progress] = None,
    log: Optional[Log] = None,
) -> List[Check]:
    """Every kernel that the device could use beside plain code on the CPU."""
    held = model_options(**chosen(locals(), model_options))
    stopped: List[bool] = []
    held.struct.progress = progress_callback(until(stopped, progress))
    checks: List[Check] = []

    def on_check(check: Any, _user: object) -> None:
        try:
            checks.append(result_of(Check, check.contents))
        except BaseException as error:
            running.keep(error)

    callback = _abi.oriel_check_fn(on_check)
    options, result = ctypes.byref(held.struct), new(_abi.oriel_self_test_result)
    nothing = _abi.oriel_candidate_fn()
    work = lambda: call("oriel_self_test", options, callback, nothing, None, ctypes.byref(result))  # noqa: E731
    interruptible(work, lambda: stopped.append(True))
    return checks
