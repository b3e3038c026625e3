"""Failures as exceptions: one class for each status of the C API."""

from typing import Dict, Type

from ._abi import oriel_status


class Error(Exception):
    """What an Oriel call could not do. `str(error)` is one line, "WHAT HAPPENED: WHAT TO DO"."""

    status: oriel_status = oriel_status.ORIEL_ERROR_INTERNAL


class ArgumentError(Error, ValueError):
    """A value out of range, or a name that is not known."""

    status = oriel_status.ORIEL_ERROR_ARGUMENT


class FileError(Error, OSError):
    """A file cannot be opened, read or written, or changed meanwhile."""

    status = oriel_status.ORIEL_ERROR_IO


class FormatError(Error):
    """A file that is no GGUF file, or bytes that are no snapshot for this model."""

    status = oriel_status.ORIEL_ERROR_FORMAT


class UnsupportedError(Error):
    """Well formed, but this build cannot run it."""

    status = oriel_status.ORIEL_ERROR_UNSUPPORTED


class BudgetError(Error):
    """Does not fit the memory given; `Plan.minimum_bytes` would do."""

    status = oriel_status.ORIEL_ERROR_MEMORY_BUDGET


class OutOfMemoryError(Error, MemoryError):
    """The system or the device refused memory that was planned."""

    status = oriel_status.ORIEL_ERROR_OUT_OF_MEMORY


class NoDeviceError(Error):
    """The device that was asked for is not there, or not usable."""

    status = oriel_status.ORIEL_ERROR_NO_DEVICE


class DeviceError(Error):
    """The device was lost, or its driver failed. `Session.recover` goes on, on that device or another."""

    status = oriel_status.ORIEL_ERROR_DEVICE


class DeviceTimeoutError(DeviceError, TimeoutError):
    """The device did not answer in time."""

    status = oriel_status.ORIEL_ERROR_TIMEOUT


class Cancelled(Error):
    """`Session.cancel`, or a progress callback, ended the call."""

    status = oriel_status.ORIEL_ERROR_CANCELLED


class StateError(Error):
    """Not allowed now: something is closed, in use by another thread, trimmed or empty."""

    status = oriel_status.ORIEL_ERROR_STATE


class ContextError(Error):
    """Text longer than the window, or a way back to what is no longer held."""

    status = oriel_status.ORIEL_ERROR_CONTEXT


class TextError(Error, ValueError):
    """Text that is not valid UTF-8."""

    status = oriel_status.ORIEL_ERROR_TEXT


class SpeedError(Error):
    """Slower than `min_tokens_per_s`, whatever is chosen."""

    status = oriel_status.ORIEL_ERROR_SPEED


class BufferTooSmallError(Error):
    """Handled inside the package."""

    status = oriel_status.ORIEL_ERROR_BUFFER_TOO_SMALL


CLASSES: Dict[int, Type[Error]] = {
    int(kind.status): kind
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
