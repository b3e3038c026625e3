"""What a model could run on here."""

import ctypes
from typing import Any, List, Optional, Sequence

from . import _abi
from ._calls import Log, PathLike, Progress, call, interruptible, log_callback, running
from ._options import model_options
from ._plan import chosen
from ._results import Check, DeviceInfo, device_of, new, result_of


def devices(*, log: Optional[Log] = None) -> List[DeviceInfo]:
    """Vulkan devices in the order that "vulkan:N" counts, and the CPU last."""
    callback, room = log_callback(log), 16
    while True:
        array, needed = (_abi.oriel_device_info * room)(), ctypes.c_size_t()
        for item in array:
            item.struct_size = ctypes.sizeof(item)
        call("oriel_device_list", callback, None, array, room, ctypes.byref(needed))
        if needed.value <= room:
            return [device_of(item) for item in array[: needed.value]]
        room = needed.value


def self_test(
    *,
    device: str = "auto",
    device_timeout_ms: Optional[int] = None,
    threads: Optional[int] = None,
    disabled_features: Sequence[str] = (),
    cache_dir: Optional[PathLike] = None,
    progress: Optional[Progress] = None,
    log: Optional[Log] = None,
) -> List[Check]:
    """Every kernel that the device could use beside plain code on the CPU."""
    held = model_options(**chosen(locals(), model_options))
    checks: List[Check] = []

    def on_check(check: Any, _user: object) -> None:
        try:
            checks.append(result_of(Check, check.contents))
        except BaseException as error:
            running.keep(error)

    callback = _abi.oriel_check_fn(on_check)
    options, result = ctypes.byref(held.struct), new(_abi.oriel_self_test_result)
    nothing = _abi.oriel_candidate_fn()
    interruptible(
        lambda: call("oriel_self_test", options, callback, nothing, None, ctypes.byref(result)), lambda: None
    )
    return checks
