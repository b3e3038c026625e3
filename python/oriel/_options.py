"""Keyword arguments as the settings of the C API. The library knows the options, checks them and reports errors."""

import ctypes
import dataclasses
import datetime
import functools
import inspect
import json
import math
import numbers
import operator
import os
from decimal import Decimal
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from . import _abi
from ._calls import Described, Log, Progress, described, log_callback, progress_callback, text_bytes
from ._errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])
POOLINGS = ("auto", "mean", "last", "first")
Json = Union[str, bytes, Mapping[str, Any], Sequence[Any], bool]


@functools.lru_cache(maxsize=None)
def _table() -> List[Described]:
    rows: List[Described] = described("oriel_option_list").options
    return rows


def options() -> List[Described]:
    """All options of `Model` ("load"), `Model.session` ("session") and `Session.reply` ("reply"), with `name`, `scope`,
    `type`, `default`, `help`, and the range or the choices."""
    return list(_table())


def takes(scope: str) -> Callable[[F], F]:
    """Lists the options of a scope in the signature and the docstring of a function, for help() and notebooks. setup.py
    writes the same into .pyi files for editors."""

    def listed(function: F) -> F:
        rows = [row for row in _table() if row.scope == scope]
        signature: Any = inspect.signature(function)
        named = [item for item in signature.parameters.values() if item.kind != item.VAR_KEYWORD]
        named += [inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=None) for row in rows]
        function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
        lines = [f"    {row.name}: {row.help} (default: {row.default})" for row in rows]
        function.__doc__ = "\n".join([function.__doc__ or "", "", *lines])
        return function

    return listed


class Held:
    """A struct, the memory that its pointers need, and the keywords of the caller."""

    def __init__(self, struct: Any, given: Mapping[str, Any]) -> None:
        self.struct = struct
        self.given = given
        self.keep: List[Any] = []
        pairs = [(name.encode(), text) for name, value in given.items() for text in _texts(name, value)]
        struct.settings = self.array(_abi.Setting, [_abi.Setting(*pair) for pair in pairs])
        struct.setting_count = len(pairs)

    def array(self, kind: Any, values: Sequence[Any]) -> Any:
        """A pointer to the values; None for an empty list."""
        if not values:
            return None
        made = (kind * len(values))(*values)
        self.keep.append(made)
        return ctypes.cast(made, ctypes.POINTER(kind))


def _texts(name: str, value: Any) -> List[bytes]:
    """The texts of one option: none for None, several for a list."""
    if value is None:
        return []
    kind = next((row.type for row in _table() if row.name == name), "text")
    if kind == "list" and isinstance(value, Mapping):
        texts = [f"{key}:{_text(name, item)}" for key, item in value.items()]
    elif kind in ("list", "files") and not isinstance(value, (str, bytes)):
        try:
            items = list(value)
        except TypeError:
            items = [value]
        texts = [_text(name, int(item) if isinstance(item, bool) else item) for item in items]
        if kind == "list" and not any(isinstance(item, str) for item in items):
            texts = [",".join(texts)] if texts else []
    elif kind == "choice" and isinstance(value, bool):
        texts = ["on" if value else "off"]
    else:
        texts = [_text(name, value)]
    return [c_string(f"{name}=", text) for text in texts]


def _text(name: str, value: Any) -> str:
    """A number, a name, a path, a date, or JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, datetime.date):
        return f"{value:%Y%m%d}"
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        return str(operator.index(value))
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        return format(Decimal(repr(float(value))), "f") if math.isfinite(value) else repr(float(value))
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError as error:
        raise TypeError(f"{name}= cannot be {value!r}: {error}") from None


def one_of(name: str, value: str, names: Sequence[str]) -> int:
    if not isinstance(value, str) or value.lower() not in names:
        raise ArgumentError(f"{name}= cannot be {value!r}: give {', '.join(names)}")
    return list(names).index(value.lower())


def embed_flags(kind: str, normalise: bool) -> int:
    flags = (0, _abi.EMBED_QUERY, _abi.EMBED_DOCUMENT)[one_of("kind", kind, ("text", "query", "document"))]
    return flags if normalise else flags | _abi.EMBED_RAW


def json_bytes(value: Json) -> bytes:
    """JSON text unchanged, other values as JSON."""
    if isinstance(value, (str, bytes)):
        return text_bytes(value)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def c_string(what: str, value: str) -> bytes:
    encoded = text_bytes(value, what)
    if b"\0" in encoded:
        raise ArgumentError(f"{what} contains a NUL: remove it")
    return encoded


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Measured losses of a model in nats a token: oriel_calibration. 0: the published prior.
    `layers` has (keys_int8, keys_int4, values_int8, values_int4) of each layer. `windows` has the cost of windows that
    differ by layer: (tokens of the longest, nats, shares of the layers)."""

    forget_scale: float = 0
    forget_power: float = 0
    keys_int8: float = 0
    keys_int4: float = 0
    values_int8: float = 0
    values_int4: float = 0
    kl_limit: float = 0
    state_f16: float = 0
    state_int8: float = 0
    layers: Sequence[Tuple[float, float, float, float]] = ()
    windows: Sequence[Tuple[int, float, Sequence[int]]] = ()


def _calibration(held: Held, calibration: Calibration) -> Any:
    struct = _abi.new(_abi.Calibration)
    for field in dataclasses.fields(calibration):
        if field.name not in ("layers", "windows"):
            setattr(struct, field.name, getattr(calibration, field.name))
    struct.layers = held.array(_abi.LayerCalibration, [_abi.LayerCalibration(*row) for row in calibration.layers])
    struct.layer_count = len(calibration.layers)
    profiles = []
    for tokens, nats, shares in calibration.windows:
        numbers_of_shares = [whole("a share of a window", share, 0, 255) for share in shares]
        longest = whole("a calibration's window", tokens, 0, (1 << 32) - 1)
        profiles.append(_abi.WindowProfile(nats, held.array(ctypes.c_uint8, numbers_of_shares), len(shares), longest))
    struct.profiles = held.array(_abi.WindowProfile, profiles)
    struct.profile_count = len(profiles)
    held.keep.append(struct)
    return ctypes.pointer(struct)


def whole(what: str, value: Any, least: int, most: int) -> int:
    """A number for an argument of a C function, where a larger one would wrap."""
    number = operator.index(value)
    if not least <= number <= most:
        raise ArgumentError(f"{what} cannot be {number}: give a whole number from {least} to {most}")
    return number


def load_options(
    given: Mapping[str, Any], *, speed: Any = None, log: Optional[Log] = None, progress: Optional[Progress] = None
) -> Held:
    calibration = given.get("calibration")
    measured = isinstance(calibration, Calibration)
    held = Held(_abi.new(_abi.Options), {name: value for name, value in given.items() if not measured or value is not calibration})
    if isinstance(calibration, Calibration):
        held.struct.calibration = _calibration(held, calibration)
    if speed is not None:
        held.keep.append(speed)
        held.struct.speed = ctypes.pointer(speed.struct)
    held.struct.log = log_callback(log)
    held.struct.progress = progress_callback(progress)
    return held


def session_options(given: Mapping[str, Any], progress: Optional[Progress] = None) -> Held:
    held = Held(_abi.new(_abi.SessionOptions), given)
    held.struct.progress = progress_callback(progress)
    return held


def reply_options(given: Mapping[str, Any]) -> Held:
    return Held(_abi.new(_abi.ReplyOptions), given)


