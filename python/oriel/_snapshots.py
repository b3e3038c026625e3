"""What a snapshot says of itself, without a model."""

import ctypes
from typing import Optional, Union

from . import _abi
from ._calls import Log, PathLike, call, log_callback, path_bytes
from ._results import SnapshotInfo, new, result_of


def inspect_snapshot(
    snapshot: Union[bytes, bytearray, memoryview, PathLike], *, log: Optional[Log] = None
) -> SnapshotInfo:
    """Of the bytes of `Session.save`, or of a file by its path."""
    info = new(_abi.oriel_snapshot_info)
    callback = log_callback(log)
    if isinstance(snapshot, (bytes, bytearray, memoryview)):
        data = bytes(snapshot)
        call("oriel_snapshot_inspect", data, len(data), callback, None, ctypes.byref(info))
    else:
        call("oriel_snapshot_inspect_file", path_bytes(snapshot), callback, None, ctypes.byref(info))
    return result_of(SnapshotInfo, info)
