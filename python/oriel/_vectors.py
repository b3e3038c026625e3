"""Rows of float32: numpy's arrays where numpy is installed, else the standard library's."""

import array
import ctypes
import importlib
import math
from typing import Any, Optional

# A numpy.ndarray of float32, or an array.array("f").
Floats = Any


def _numpy() -> Optional[Any]:
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


NUMPY = _numpy()


def floats(pointer: Any, count: int) -> Floats:
    """A copy of `count` floats at a ctypes pointer or array."""
    data = ctypes.string_at(pointer, 4 * count)
    if NUMPY is not None:
        return NUMPY.frombuffer(bytearray(data), dtype=NUMPY.float32)
    return array.array("f", data)


def rows(list_of_rows: Any) -> Any:
    """numpy: one array of two dimensions; else the list."""
    if NUMPY is not None:
        return NUMPY.stack(list_of_rows) if list_of_rows else NUMPY.zeros((0, 0), dtype=NUMPY.float32)
    return list_of_rows


def negative_log_likelihood(pointer: Any, count: int, index: int) -> float:
    """-log softmax(logits)[index], summed in double precision."""
    if NUMPY is not None:
        logits = NUMPY.ctypeslib.as_array(pointer, shape=(count,)).astype(NUMPY.float64)
        largest = logits.max()
        return float(largest + NUMPY.log(NUMPY.exp(logits - largest).sum()) - logits[index])
    values = pointer[:count]
    largest = float(max(values))
    total = math.fsum(math.exp(value - largest) for value in values)
    return float(largest + math.log(total) - values[index])
