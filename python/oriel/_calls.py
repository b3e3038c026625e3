"""The shared library, calls of its functions with errors, exceptions in callbacks and Ctrl-C, and the objects of
docs/reference/describe.md that they write.
"""

import ctypes
import ctypes.util
import json
import logging
import operator
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from . import _abi
from ._errors import ArgumentError, BufferTooSmallError, OrielWarning, StateError, error_of, in_python

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


T = TypeVar("T")
LOGGER = logging.getLogger("oriel")
LOGGER.addHandler(logging.NullHandler())
LEVELS = {_abi.LOG_ERROR: logging.ERROR, _abi.LOG_WARNING: logging.WARNING, _abi.LOG_INFO: logging.INFO}
Log = Callable[[int, str], object]
Progress = Callable[[int, int], Optional[bool]]
PathLike = Union[str, "os.PathLike[str]"]


class _Running(threading.local):
    """State of the running call of this thread: its error line, and the exception of a callback."""

    line: str = ""
    error: Optional[BaseException] = None
    depth: int = 0
    warned: Tuple[str, ...] = ()  # for the Python warnings after the call

    def keep(self, error: BaseException) -> None:
        self.error = self.error or error


running = _Running()


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status. An exception of a callback is raised in place of the status."""
    function = getattr(LIBRARY, name, None)
    if function is None:
        raise StateError(f"this build of the shared library has no {name}: use the wheel's")
    outer = running.line, running.error
    running.line, running.error = "", None
    running.depth += 1
    try:
        status = function(*arguments)
        line, error = running.line, running.error
    finally:
        running.line, running.error = outer
        running.depth -= 1
    if error is not None:
        raise error
    if status != 0:
        raise error_of(status, line or LIBRARY.oriel_status_text(status).decode("utf-8"))
    if not running.depth:
        warned, running.warned = running.warned, ()
        for text in warned:
            warnings.warn(text, OrielWarning, stacklevel=3)


def fill(kind: Any, name: str, *arguments: Any, guess: int = 256) -> Any:
    """An array that a function fills."""
    capacity = guess
    while True:
        array = (kind * capacity)()
        needed = ctypes.c_size_t()
        try:
            call(name, *arguments, array, capacity, ctypes.byref(needed))
            return array[: needed.value]
        except BufferTooSmallError:
            capacity = needed.value


def line_of(line: Optional[bytes]) -> str:
    return in_python((line or b"").decode("utf-8", "replace"))


def log_callback(log: Optional[Log]) -> Any:
    """Passes lines to `log`, or to the logger "oriel" and warnings to `warnings`. Keeps error lines for the exception."""
    tell = log or LOGGER.log

    def on_log(level: int, message: bytes, _user: object) -> None:
        try:
            text = line_of(message)
            if level == _abi.LOG_ERROR:
                running.line = text
            elif level == _abi.LOG_WARNING and log is None:
                running.warned += (text,)
            tell(LEVELS.get(level, logging.DEBUG), text)
        except BaseException as error:
            running.keep(error)

    return _abi.log_fn(on_log)


def progress_callback(progress: Optional[Progress]) -> Any:
    """Stops when `progress` raises or returns False."""
    if progress is None:
        return _abi.progress_fn()
    told = progress

    def on_progress(done: int, total: int, _user: object) -> int:
        try:
            return 1 if told(done, total) is False else 0
        except BaseException as error:
            running.keep(error)
            return 1

    return _abi.progress_fn(on_progress)


def interruptible(work: Callable[[], T], cancel: Callable[[], object]) -> T:
    """Runs `work`. On the main thread Ctrl-C cancels it, waits until it has ended and goes on as usual.

    Signals are seen by the main thread alone, and not while it is in C, so a thread of its own does the work.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: List[T] = []
    errors: List[BaseException] = []
    done = threading.Event()  # an interrupted join() would take the thread for ended
    begun = threading.Lock()  # taken by the work, or by an earlier interrupt, which prevents the work

    def run() -> None:
        if not begun.acquire(blocking=False):
            return
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=run, name="oriel-call", daemon=True).start()
        done.wait()
    except BaseException:
        if not begun.acquire(blocking=False):
            _end(done, cancel)
        raise
    try:
        if errors:
            raise errors[0]
        return results[0]
    finally:
        errors.clear()  # an exception keeps this frame, which must not keep the exception


def _end(done: threading.Event, cancel: Callable[[], object]) -> None:
    """Waits until a cancelled call has returned, also through further interrupts: until then it uses its buffers."""
    while True:
        try:
            while not done.is_set():  # a cancel that comes before the call has begun is for none
                cancel()
                done.wait(0.05)
            return
        except BaseException:
            pass  # the first interrupt is raised


def until(stopped: List[bool], progress: Optional[Progress]) -> Progress:
    """Ends as `progress` does, or when something is in the list."""

    def told(done: int, total: int) -> Optional[bool]:
        if stopped:
            return False
        return progress(done, total) if progress is not None else None

    return told


def text_bytes(text: Union[str, bytes], what: str = "text") -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "surrogateescape")
    if isinstance(text, bytes):
        return text
    raise TypeError(f"{what} is str or bytes, not {type(text).__name__}")


def path_bytes(path: PathLike) -> bytes:
    encoded = os.fspath(path).encode("utf-8", "surrogateescape") if not isinstance(path, bytes) else path
    if b"\0" in encoded:
        raise ArgumentError("a path contains a NUL: remove it")
    return encoded


def id_array(ids: Sequence[int]) -> Tuple[Any, int]:
    """Ids as a C array. Accepts numpy's integers."""
    count = len(ids)
    limit = 1 << 31
    values = [operator.index(value) for value in ids]
    for value in values:
        if not -limit <= value < limit:
            raise ArgumentError(f"{value} is not a token: give ids of 32 bits")
    return (ctypes.c_int32 * count)(*values), count


def outside_calls(what: str) -> None:
    if running.depth:
        raise StateError(f"{what} cannot be closed from inside a callback: return from it first")


def same_process(pid: int, what: str) -> None:
    if os.getpid() != pid:
        raise StateError(f"this {what} belongs to another process: load the model after the fork")


class Described(Dict[str, Any]):
    """A JSON object whose fields are attributes, too: `info.n_layers` is `info["n_layers"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no field {name!r}: use one of {', '.join(self)}") from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


def of_json(text: bytes) -> Described:
    found: Described = json.loads(text.rstrip(b"\0"), object_hook=Described)
    return found


def described(name: str, *arguments: Any) -> Described:
    """The JSON that a function of the C API writes."""
    return of_json(fill(ctypes.c_char, name, *arguments, guess=1 << 15))


def of_struct(struct: Any, **words: Sequence[str]) -> Described:
    """The fields of a C struct. `words` names the values of enumerations."""
    found = Described()
    for name, _ in struct._fields_[1:]:
        value = getattr(struct, name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        found[name] = words[name][value] if name in words else value
    return found
