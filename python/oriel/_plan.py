"""Plans: memory, window and formats before anything is loaded."""

import ctypes
import json
import os
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple

from . import _abi, _draw
from ._calls import Log, PathLike, Progress, call, interruptible, path_bytes, until
from ._described import Described, described, of_struct
from ._errors import at_path
from ._library import bundled_model
from ._options import Held, c_string, load_options, takes, whole

LIMITS = ("weights", "cache", "overhead")


class Speed:
    """Measured rates of a device, for `plan(speed=...)` and `Model(speed=...)`."""

    def __init__(self, struct: Any) -> None:
        self.struct = struct

    @property
    def device(self) -> str:
        name: bytes = self.struct.device
        return name.decode("utf-8", "replace")

    @property
    def read_bytes_per_s(self) -> float:
        rate: float = self.struct.read_bytes_per_s
        return rate

    def __repr__(self) -> str:
        return f"<oriel.Speed of {self.device}: reads {self.read_bytes_per_s / 1e9:.1f} GB/s>"


class Plan(Described):
    """A plan, with the fields of docs/reference/describe.md. `print(plan)` draws it; so do notebooks.

    `title` is the name of the file or the shape. If `fits` is False, the plan is the smallest one.
    """

    def __init__(self, fields: Mapping[str, Any], title: str = "", window_given: bool = False) -> None:
        super().__init__(fields)
        vars(self).update(title=title, window_given=window_given)

    @property
    def kv(self) -> str:
        """The pair of cache formats: "f16", "k8v4"."""
        return _draw.formats_name(self)

    @property
    def choice(self) -> Optional[Described]:
        """The chosen entry of `choices`; None if nothing fits."""
        return next((choice for choice in self.choices if choice.chosen), None) if self.planned_fits else None

    @property
    def planned_fits(self) -> bool:
        """As `fits`. Without known weights: the rest fits."""
        return bool(self.total_bytes <= self.memory_bytes if self.fits is None else self.fits)

    @property
    def parts(self) -> Tuple[Tuple[str, Optional[int]], ...]:
        """The parts of `total_bytes`. None: not known."""
        return (
            ("weights", None if self.fits is None else self.weights_bytes),
            ("cache", self.kv_bytes),
            ("activations", self.activation_bytes),
            ("staging", self.staging_bytes),
            ("host", self.host_bytes),
        )

    def why_not(self, choice: Described) -> str:
        """The reason for or against an entry of `choices`."""
        return _draw.verdict(self, choice)

    def predict(self, depth_tokens: int = 0, prompt_tokens: int = 0) -> Described:
        """Speed at a depth (0: a full window) and for a prompt (0: one prefill batch), of a plan made with `speed`."""
        prediction = _abi.new(_abi.Prediction)
        depth = whole("depth_tokens", depth_tokens, 0, (1 << 64) - 1) or self.window_tokens + self.sink_tokens
        prompt = whole("prompt_tokens", prompt_tokens, 0, (1 << 32) - 1)
        text = json.dumps(self).encode()
        call("oriel_plan_predict", text, len(text), depth, prompt, ctypes.byref(prediction))
        return of_struct(prediction, decode_limit=LIMITS)

    def __str__(self) -> str:
        return _draw.text(self)

    def __repr__(self) -> str:
        fits = "" if self.fits else " does not fit,"
        return (
            f"<oriel.Plan {self.title}:{fits} {self.total_bytes} of {self.memory_bytes} bytes,"
            f" window {self.window_tokens}, {self.kv}>"
        )

    def _repr_svg_(self) -> str:
        return _draw.svg(self)

    def _repr_html_(self) -> str:
        return _draw.html(self)

    def __reduce__(self) -> Any:
        return Plan, (dict(self), self.title, self.window_given)


def window_given(options: Mapping[str, Any]) -> bool:
    return options.get("window") not in (None, 0, "max")


def _speed(path: Optional[bytes], shape: Optional[bytes], again: bool, held: Held) -> Speed:
    struct = _abi.new(_abi.Speed)
    call("oriel_speed_measure", path, shape, int(again), ctypes.byref(held.struct), ctypes.byref(struct))
    return Speed(struct)


@takes("load")
def measure_speed(
    model: Optional[PathLike] = None,
    *,
    shape: Optional[str] = None,
    again: bool = False,
    progress: Optional[Progress] = None,
    log: Optional[Log] = None,
    **options: Any,
) -> Speed:
    """Measures the device with layers like the layers of a model file or of a published shape ("llama-3.2-1b:q8_0"), in
    about a second. Without either: common formats. `again` measures even if cache_folder has rates."""
    stopped: List[bool] = []
    held = load_options(options, log=log, progress=until(stopped, progress))
    path = None if model is None else path_bytes(model)
    named = None if shape is None else c_string("shape", shape)
    return interruptible(lambda: _speed(path, named, again, held), lambda: stopped.append(True))


class OpTime(NamedTuple):
    """All ops of one kind in a part of the plan ("decode", "prefill", "head"): how many, and milliseconds of all together."""

    part: str
    op: str
    number: int
    ms: float


@takes("load")
def measure_ops(
    model: Optional[PathLike] = None,
    *,
    depth: int = 0,
    repeat: int = 3,
    progress: Optional[Progress] = None,
    log: Optional[Log] = None,
    **options: Any,
) -> List[OpTime]:
    """Times the ops of a model by the device's timestamps, as if `depth` tokens were cached: the least of `repeat` runs. A
    device without timestamps, such as the CPU, is refused."""
    stopped: List[bool] = []
    held = load_options(options, log=log, progress=until(stopped, progress))
    times: List[OpTime] = []

    def on_op(name: bytes, op: bytes, count: int, ms: float, _user: object) -> None:
        times.append(OpTime(name.decode("utf-8"), op.decode("utf-8"), count, ms))

    callback = _abi.op_time_fn(on_op)
    path = path_bytes(bundled_model() if model is None else model)
    work = lambda: call("oriel_op_times_measure", path, depth, repeat, ctypes.byref(held.struct), callback, None)  # noqa: E731
    interruptible(work, lambda: stopped.append(True))
    return times


@takes("load")
def plan(
    model: Optional[PathLike] = None,
    *,
    shape: Optional[str] = None,
    speed: Optional[Speed] = None,
    log: Optional[Log] = None,
    **options: Any,
) -> Plan:
    """Plans for a model file (None: the bundled one), or for a published shape: "llama-3.2-1b", "llama-3.2-1b:q8_0".

    Reads the header of the file and touches no device. Also returns a plan if nothing fits: see `plan.fits`. A `Model`
    with the same arguments allocates exactly this plan.
    """
    held = load_options(options, speed=speed, log=log)
    given = window_given(options)
    if shape is not None:
        if model is not None:
            raise TypeError("plan() takes a model or a shape, not both")
        fields = described("oriel_shape_describe", c_string("shape", shape), ctypes.byref(held.struct))
        return Plan(fields, shape, given)
    path = bundled_model() if model is None else model
    fields = at_path(path, lambda: described("oriel_plan_describe", path_bytes(path), ctypes.byref(held.struct)))
    return Plan(fields, os.path.basename(os.fspath(path)), given)
