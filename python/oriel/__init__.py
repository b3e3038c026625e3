"""Oriel: an embedded LLM runtime inside one hard memory budget.

    import oriel

    with oriel.Model("model.gguf", memory="300MB") as model:
        with model.session(system="You are brief.") as chat:
            for piece in chat.reply("Hello!"):
                print(piece, end="", flush=True)

`oriel.Model()` without a path is the small model that comes with the package. Logs go to the logger "oriel".
"""

from ._devices import devices, self_test
from ._errors import (
    ArgumentError, BudgetError, Cancelled, ContextError, DeviceError, DeviceTimeoutError, Error, FileError, FormatError,
    NoDeviceError, OutOfMemoryError, SpeedError, StateError, TextError, UnsupportedError,
)
from ._library import VERSION as __version__
from ._library import bundled_model
from ._model import Model
from ._options import Calibration
from ._plan import Plan, Speed, inspect, measure_speed, plan, shapes
from ._reply import Parsed, Reply, ToolCall, reply_many
from ._results import (
    Check, DeviceInfo, FileInfo, Generation, LayerFormats, LayerGroup, Mark, ModelInfo, PlanChoice, Prediction,
    PrefixInfo, Recovered, Resident, Restored, ShapeInfo, SnapshotInfo, Stats, StepCost, StepGroupCost, TensorType,
    TranscriptInfo, View,
)
from ._session import Score, Session
from ._sizes import format_size, parse_size
from ._snapshots import inspect_snapshot
from ._stream import Part, Token

__all__ = [
    "ArgumentError", "BudgetError", "Calibration", "Cancelled", "Check", "ContextError", "DeviceError", "DeviceInfo",
    "DeviceTimeoutError", "Error", "FileError", "FileInfo", "FormatError", "Generation", "LayerFormats", "LayerGroup",
    "Mark", "Model", "ModelInfo", "NoDeviceError", "OutOfMemoryError", "Parsed", "Part", "Plan", "PlanChoice",
    "Prediction", "PrefixInfo", "Recovered", "Reply", "Resident", "Restored", "Score", "Session", "ShapeInfo",
    "SnapshotInfo", "Speed", "SpeedError", "StateError", "Stats", "StepCost", "StepGroupCost", "TensorType", "TextError",
    "Token", "ToolCall", "TranscriptInfo", "UnsupportedError", "View", "__version__", "bundled_model", "devices",
    "format_size", "inspect", "inspect_snapshot", "measure_speed", "parse_size", "plan", "reply_many", "self_test", "shapes",
]
