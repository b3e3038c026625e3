"""Arrays that go in and out: pictures of messages (files, bytes, Pillow images and arrays), and rows of float32."""

import array
import ctypes
import importlib
import io
import math
import os
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from . import _abi
from ._errors import ArgumentError

CHANNELS = {3: 0, 4: 1}  # to oriel_pixel_order
Pixels = Tuple[bytes, int, int, int]  # pixels, width, height, order


def _decoded(picture: Any) -> Any:
    """A file, or a file's bytes, as a Pillow image that stands upright."""
    try:
        image = importlib.import_module("PIL.Image")
        operations = importlib.import_module("PIL.ImageOps")
    except ImportError as error:
        raise ArgumentError("files of pictures need Pillow: install it (pip install pillow), or give an array") from error
    source = io.BytesIO(bytes(picture)) if isinstance(picture, (bytes, bytearray, memoryview)) else os.fspath(picture)
    return operations.exif_transpose(image.open(source))


def _pixels(picture: Any) -> Pixels:
    if isinstance(picture, (str, bytes, bytearray, os.PathLike)):
        picture = _decoded(picture)
    if hasattr(picture, "convert") and hasattr(picture, "tobytes") and hasattr(picture, "size"):
        image = picture.convert("RGB")
        return image.tobytes(), image.size[0], image.size[1], 0
    try:
        view = memoryview(picture)
    except TypeError:
        view = memoryview(b"")
    shape = view.shape or ()
    if view.format != "B" or len(shape) != 3 or shape[2] not in CHANNELS:
        raise ArgumentError(
            "a picture is a path, bytes of a file, a Pillow image, or an array of bytes [height][width][3 or 4]"
        )
    height, width, channels = shape
    return view.tobytes(), width, height, CHANNELS[channels]


class Pictures:
    """The array of a call. Keeps the pixels alive."""

    def __init__(self, pictures: Sequence[Any]) -> None:
        self._pixels: List[Pixels] = [_pixels(picture) for picture in pictures]
        self.count = len(self._pixels)
        self.array = (_abi.Picture * max(self.count, 1))()
        for place, (pixels, width, height, order) in zip(self.array, self._pixels):
            place.pixels = ctypes.cast(ctypes.c_char_p(pixels), ctypes.c_void_p).value
            place.width, place.height, place.stride, place.order = width, height, 0, order


def with_pictures(message: Mapping[str, Any], count: int) -> Mapping[str, Any]:
    """The message with the pictures before its text."""
    parts: List[Any] = [{"type": "image", "picture": number} for number in range(count)]
    return {**message, "content": parts + [{"type": "text", "text": message["content"]}]}


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
