"""Oriel: an embedded LLM runtime inside one hard memory budget.

    import oriel

    with oriel.Model("model.gguf", memory="300MB") as model:
        with model.session(system="You are brief.") as chat:
            for piece in chat.reply("Hello!"):
                print(piece, end="", flush=True)

`oriel.Model()` without a path is the small model that comes with the package. Logs go to the logger "oriel".
"""

from ._about import devices, inspect, inspect_snapshot, pull, self_test, shapes
from ._calls import VERSION as __version__
from ._calls import Described, bundled_model
from ._errors import (
    ArgumentError, BudgetError, Cancelled, ContextError, DeviceError, DeviceTimeoutError, Error, FileError, FormatError,
    MissingFileError, NoDeviceError, OrielWarning, OutOfMemoryError, SpeedError, StateError, TextError, UnsupportedError,
)
from ._model import Model
from ._options import Calibration, options
from ._plan import OpTime, Plan, Speed, format_size, measure_ops, measure_speed, plan
from ._reply import Parsed, Reply, ToolCall, reply_many
from ._session import Score, Session
from ._stream import Part, Token

__all__ = [
    "ArgumentError", "BudgetError", "Calibration", "Cancelled", "ContextError", "Described", "DeviceError",
    "DeviceTimeoutError", "Error", "FileError", "FormatError", "MissingFileError", "Model", "NoDeviceError", "OpTime",
    "OrielWarning", "OutOfMemoryError", "Parsed",
    "Part", "Plan", "Reply", "Score", "Session", "Speed", "SpeedError", "StateError", "TextError", "Token", "ToolCall",
    "UnsupportedError", "__version__", "bundled_model", "devices", "format_size", "inspect", "inspect_snapshot",
    "measure_ops", "measure_speed", "options", "plan", "pull", "reply_many", "self_test", "shapes",
]
