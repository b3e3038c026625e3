"""Finds the shared library and declares its functions."""

import ctypes
import ctypes.util
import os
import sys
from pathlib import Path
from typing import Iterator, Optional

from . import _abi

HERE = Path(__file__).resolve().parent
NAMES = {"win32": ("oriel.dll", "liboriel.dll"), "darwin": ("liboriel.dylib",)}.get(
    sys.platform, ("liboriel.so", f"liboriel.so.{_abi.VERSION}")
)


def _candidates() -> Iterator[str]:
    """Only the library that ORIEL_LIBRARY names, if it is set. Else the package's own, then the system's."""
    named = os.environ.get("ORIEL_LIBRARY")
    if named:
        yield named
        return
    for name in NAMES:
        if (HERE / name).is_file():
            yield str(HERE / name)
    yield from NAMES
    found = ctypes.util.find_library("oriel")
    if found:
        yield found


def _open() -> ctypes.CDLL:
    reason: Optional[OSError] = None
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            reason = reason or error
    raise ImportError(
        f"the shared library of Oriel cannot be loaded ({reason}): install the wheel for this system, "
        "or set ORIEL_LIBRARY to the path of liboriel.so"
    )


def _declare(library: ctypes.CDLL) -> None:
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:  # the laboratory is not in every build of the library
            continue
        function.restype = result
        function.argtypes = arguments


def _load() -> ctypes.CDLL:
    library = _open()
    _declare(library)
    version: str = library.oriel_version().decode("ascii")
    if version.rsplit(".", 1)[0] != _abi.VERSION:
        raise ImportError(
            f"the shared library is Oriel {version} and this package is for {_abi.VERSION}: install the same version of both"
        )
    return library


LIBRARY = _load()
VERSION: str = LIBRARY.oriel_version().decode("ascii")


def bundled_model() -> Path:
    """The path of the small model that comes with Oriel: of the wheel, or of the source tree."""
    name = "oriel-tiny-q8_0.gguf"
    places = [HERE / "models" / name, HERE.parents[1] / "models" / "oriel-tiny" / name]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(f"the bundled model is not at {places[0]}: install the wheel again, or give a path")
