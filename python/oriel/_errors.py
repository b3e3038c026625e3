"""Failures as exceptions: one class for each status of the C API."""

import re
from typing import Dict, Type


class Error(Exception):
    """What an Oriel call could not do. `str(error)` is one line, "WHAT HAPPENED: WHAT TO DO"."""

    status = 15  # oriel_status


class ArgumentError(Error, ValueError):
    """A value out of range, or a name that is not known."""

    status = 1


class FileError(Error, OSError):
    """A file cannot be opened, read or written, or changed meanwhile."""

    status = 2


class FormatError(Error):
    """A file that is no GGUF file, or bytes that are no snapshot for this model."""

    status = 3


class UnsupportedError(Error):
    """Well formed, but this build cannot run it."""

    status = 4


class BudgetError(Error):
    """Does not fit the memory given; `Plan.minimum_bytes` would do."""

    status = 5


class OutOfMemoryError(Error, MemoryError):
    """The system or the device refused memory that was planned."""

    status = 6


class NoDeviceError(Error):
    """The device that was asked for is not there, or not usable."""

    status = 7


class DeviceError(Error):
    """The device was lost, or its driver failed. `Session.recover` goes on, on that device or another."""

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
    """Text longer than the window, or a way back to what is no longer held."""

    status = 13


class TextError(Error, ValueError):
    """Text that is not valid UTF-8."""

    status = 14


class SpeedError(Error):
    """Slower than `min_speed`, whatever is chosen."""

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
    """A status that a newer library returns is an `Error` that keeps its number in the text."""
    if status in CLASSES:
        return CLASSES[status](line)
    return Error(line or f"status {status}")


def in_python(line: str) -> str:
    """The line of the C API with options as Python writes them: kv= for the option "kv"."""
    line = re.sub(r'(?:the )?(?:(?:load|session|reply) )?options? "(\w+)"(?: and "(\w+)")?', _keywords, line)
    return re.sub(r'\b(did you mean|load it with|loaded without) "(\w+)"', r"\1 \2=", line)


def _keywords(found: "re.Match[str]") -> str:
    return " and ".join(f"{name}=" for name in found.groups() if name)
