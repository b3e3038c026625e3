"""Failures as exceptions: one class for each status of the C API."""

import errno
import os
import re
from typing import Any, Callable, Dict, Type, TypeVar

T = TypeVar("T")


class Error(Exception):
    """A failed call. `str(error)` is one line, "WHAT HAPPENED: WHAT TO DO"."""

    status = 15  # oriel_status

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ArgumentError(Error, ValueError):
    """A value out of range, or an unknown name."""

    status = 1


class FileError(Error, OSError):
    """A file cannot be opened, read or written, or changed during the call."""

    status = 2


class MissingFileError(FileError, FileNotFoundError):
    """A missing file; `filename` is its path."""


class OrielWarning(UserWarning):
    """A call works, with an effect that may not be expected."""


class FormatError(Error):
    """A damaged file, or the wrong kind of file."""

    status = 3


class UnsupportedError(Error):
    """A sound file or request that this build cannot run."""

    status = 4


class BudgetError(Error):
    """Does not fit the memory; `Plan.minimum_bytes` is enough."""

    status = 5


class OutOfMemoryError(Error, MemoryError):
    """The system or the device refused planned memory."""

    status = 6


class NoDeviceError(Error):
    """The requested device is missing or unusable."""

    status = 7


class DeviceError(Error):
    """The device was lost, or its driver failed. `Session.recover` continues on that device or another."""

    status = 8


class DeviceTimeoutError(DeviceError, TimeoutError):
    """The device did not answer in time."""

    status = 9


class Cancelled(Error):
    """`Session.cancel`, or a progress callback, ended the call."""

    status = 10


class StateError(Error):
    """Not allowed now: something is closed, in use by another thread, trimmed or empty."""

    status = 12


class ContextError(Error):
    """Longer than the window, or evicted."""

    status = 13


class TextError(Error, ValueError):
    """Text that is not valid UTF-8."""

    status = 14


class SpeedError(Error):
    """Slower than `min_speed` with every format."""

    status = 16


class BufferTooSmallError(Error):
    """Handled inside the package."""

    status = 11


CLASSES: Dict[int, Type[Error]] = {
    kind.status: kind
    for kind in (
        ArgumentError, FileError, FormatError, UnsupportedError, BudgetError, OutOfMemoryError, NoDeviceError,
        DeviceError, DeviceTimeoutError, Cancelled, StateError, ContextError, TextError, SpeedError,
        BufferTooSmallError,
    )
}


def error_of(status: int, line: str) -> Error:
    """An unknown status of a newer library is an `Error` with its number."""
    if status in CLASSES:
        return CLASSES[status](line)
    return Error(line or f"status {status}")


def at_path(path: Any, work: Callable[[], T]) -> T:
    """Runs `work`. Its FileError is a FileNotFoundError if nothing is at the path."""
    try:
        return work()
    except FileError as error:
        name = os.fspath(path)
        if os.path.exists(name):
            raise
        hint = "" if name.endswith(".gguf") and "://" not in name else f", or fetch a model with oriel.pull({name!r})"
        missing = MissingFileError(str(error) + hint)
        missing.errno, missing.filename = errno.ENOENT, name
        raise missing from None


def in_python(line: str) -> str:
    """The line of the C API with options as Python writes them: kv= for the option "kv"."""
    line = re.sub(r'(?:the )?(?:(?:load|session|reply) )?options? "(\w+)"(?: and "(\w+)")?', _keywords, line)
    line = re.sub(r'\b(did you mean|with|longer|loaded without) "(\w+)"', r"\1 \2=", line)
    return re.sub(r'\("(\w+)"\)', r"(\1=)", line)


def _keywords(found: "re.Match[str]") -> str:
    return " and ".join(f"{name}=" for name in found.groups() if name)
