"""What would be allocated, and why: before anything is loaded."""

import ctypes
import dataclasses
import os
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi, _draw
from ._calls import Log, PathLike, Progress, call, interruptible, path_bytes, progress_callback, until
from ._library import LIBRARY, bundled_model
from ._options import MAX32, WEIGHTS, Calibration, Held, c_string, model_options, number, one_of
from ._results import FileInfo, LayerGroup, PlanChoice, Prediction, ShapeInfo, StepCost, formats_name, new, result_of, values_of
from ._sizes import Size


def chosen(arguments: Mapping[str, Any], function: Any) -> "dict[str, Any]":
    """Those of a caller's arguments that `function` takes by keyword. None is its default."""
    return {name: arguments[name] for name in function.__kwdefaults__ if arguments.get(name) is not None}


class Speed:
    """How fast a device was measured to be, for `plan(speed=...)` and `Model(speed=...)`."""

    def __init__(self, struct: _abi.oriel_speed) -> None:
        self.struct = struct

    @property
    def device(self) -> str:
        name: Any = self.struct.device
        return str(name.decode("utf-8", "replace"))

    @property
    def read_bytes_per_s(self) -> float:
        return self.struct.read_bytes_per_s

    def __repr__(self) -> str:
        return f"<oriel.Speed of {self.device}: reads {self.read_bytes_per_s / 1e9:.1f} GB/s>"


@dataclasses.dataclass(frozen=True, repr=False)
class Plan:
    """A plan: oriel_plan, whose comments say what each field means. `print(plan)` draws it; so do notebooks.

    `title` is the file's or shape's name. Where `fits` is False everything describes the smallest plan instead.
    """

    title: str
    fits: bool
    memory_bytes: int
    total_bytes: int
    weights_bytes: int
    kv_bytes: int
    activation_bytes: int
    staging_bytes: int
    host_bytes: int
    minimum_bytes: int
    kv_bytes_per_token: int
    window_tokens: int
    sink_tokens: int
    ring_tokens: int
    chunk_tokens: int
    context_train_tokens: int
    k_format: str
    v_format: str
    weights_read_bytes_per_token: int
    crossover_tokens: int
    loss_nats: float
    raised_layers: int
    choices: Tuple[PlanChoice, ...]
    calibrated: bool
    weights_unknown: bool
    kv_window_bytes: int
    groups: Tuple[LayerGroup, ...]
    raised_by_bias: Tuple[int, ...]
    raised_by_norm: Tuple[int, ...]
    window_shares: Tuple[int, ...]
    head_read_bytes: int
    decode: StepCost
    prefill: StepCost
    on_file_bytes: int
    expert_slots: int
    expert_count: int
    expert_hit_rate: float
    file_s: float
    state_bytes: int
    state_slots: int
    checkpoints: int
    state_format: str
    constraint_bytes: int
    sessions: int
    prefix_tokens: int
    prefix_bytes: int
    session_bytes: int
    transcript_bytes: int
    session_windows: Tuple[int, ...]
    trim_bytes: Tuple[int, ...]
    draft_bytes: int
    draft_tokens: int
    activation_bits: int
    recall_tokens: int
    recall_memory_bytes: int
    recall_file_bytes: int
    recall_file_tokens: int
    draft_weights_bytes: int
    window_given: bool = dataclasses.field(default=False, compare=False)
    _struct: Any = dataclasses.field(default=None, compare=False)

    @property
    def kv(self) -> str:
        """The pair of cache formats: "f16", "K8V4"."""
        return formats_name(self.k_format, self.v_format)

    @property
    def choice(self) -> Optional[PlanChoice]:
        """The one of `choices` that was taken; None where nothing fits."""
        taken = [item for item in self.choices if (item.k_format, item.v_format) == (self.k_format, self.v_format)]
        return taken[0] if taken and self.planned_fits else None

    @property
    def planned_fits(self) -> bool:
        """As `fits`; of a shape without weights, whether the rest fits."""
        return self.total_bytes <= self.memory_bytes if self.weights_unknown else self.fits

    @property
    def parts(self) -> Tuple[Tuple[str, int], ...]:
        """What `total_bytes` consists of."""
        return (
            ("weights", self.weights_bytes),
            ("cache", self.kv_bytes),
            ("activations", self.activation_bytes),
            ("staging", self.staging_bytes),
            ("host", self.host_bytes),
        )

    def why_not(self, choice: PlanChoice) -> str:
        """Why one of `choices` was or was not taken."""
        return _draw.verdict(self, choice)

    def predict(self, depth_tokens: int = 0, prompt_tokens: int = 0) -> Prediction:
        """Speed of a plan that was made with `speed`, at a depth; 0: with the window full, of one prefill batch."""
        prediction = new(_abi.oriel_prediction)
        depth = number("depth_tokens", depth_tokens, 0, MAX32) or self.window_tokens + self.sink_tokens
        prompt = number("prompt_tokens", prompt_tokens, 0, MAX32)
        call("oriel_plan_predict", ctypes.byref(self._struct), depth, prompt, ctypes.byref(prediction))
        return result_of(Prediction, prediction)

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
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return _plan_again, (dict(values, _struct=None), bytes(self._struct))


def _plan_again(values: Any, struct: bytes) -> Plan:
    return Plan(**dict(values, _struct=_abi.oriel_plan.from_buffer_copy(struct)))


def plan_of(struct: _abi.oriel_plan, title: str, window_given: bool) -> Plan:
    return Plan(title=title, window_given=window_given, _struct=struct, **values_of(Plan, struct))


def _speed(path: Optional[bytes], arch: Optional[str], weights: str, held: Held) -> Speed:
    struct = new(_abi.oriel_speed)
    if arch is None:
        call("oriel_speed_measure", path, ctypes.byref(held.struct), ctypes.byref(struct))
    else:
        kind = one_of("weights", weights, WEIGHTS)
        call("oriel_speed_measure_shape", c_string("arch", arch), kind, ctypes.byref(held.struct), ctypes.byref(struct))
    return Speed(struct)


def measure_speed(
    model: Optional[PathLike] = None,
    *,
    arch: Optional[str] = None,
    weights: str = "default",
    device: Optional[str] = "auto",
    device_timeout_ms: Optional[int] = None,
    threads: Optional[int] = None,
    disabled_features: Sequence[str] = (),
    enabled_features: Sequence[str] = (),
    device_test: Optional[str] = "auto",
    cache_dir: Optional[PathLike] = None,
    measure_again: bool = False,
    progress: Optional[Progress] = None,
    log: Optional[Log] = None,
) -> Speed:
    """Measures the device with layers like the model's, for about a second. Neither model nor arch: any model."""
    held = model_options(**chosen(locals(), model_options))
    stopped: List[bool] = []
    held.struct.progress = progress_callback(until(stopped, progress))
    path = None if model is None else path_bytes(model)
    return interruptible(lambda: _speed(path, arch, weights, held), lambda: stopped.append(True))


def plan(
    model: Optional[PathLike] = None,
    *,
    arch: Optional[str] = None,
    weights: str = "default",
    memory: Optional[Size] = None,
    window: Optional[int] = None,
    min_window: Optional[int] = None,
    sinks: Optional[int] = None,
    pinned: Optional[int] = None,
    chunk: Optional[int] = None,
    kv: Optional[str] = "auto",
    k_format: Optional[str] = None,
    v_format: Optional[str] = None,
    f16_layers: Optional[Sequence[bool]] = None,
    window_shares: Sequence[int] = (),
    state_format: Optional[str] = "auto",
    device: Optional[str] = "auto",
    threads: Optional[int] = None,
    activation_bits: Optional[int] = 16,
    calibration: Union[Calibration, PathLike, None] = None,
    speed: Optional[Speed] = None,
    min_tokens_per_s: Optional[float] = None,
    on_file: Optional[str] = "auto",
    expert_slots: Optional[int] = None,
    checkpoints: Optional[int] = None,
    constraints: bool = False,
    sessions: int = 1,
    session_windows: Sequence[int] = (),
    prefix_tokens: Optional[int] = None,
    system_prompt: Optional[str] = None,
    prefix_file: Optional[PathLike] = None,
    transcript: Optional[Size] = None,
    log: Optional[Log] = None,
) -> Plan:
    """Plans for a model file (None: the bundled one), or for the shape of a published model by name (`arch`).

    Reads the file's header and touches no device. Also returns a plan when nothing fits: `plan.fits` tells. A `Model`
    with the same arguments carries it out.
    """
    held = model_options(**chosen(locals(), model_options))
    struct = new(_abi.oriel_plan)
    if arch is not None:
        if model is not None:
            raise TypeError("a plan is for a model or for an arch, not for both")
        kind = one_of("weights", weights, WEIGHTS)
        call("oriel_plan_shape", c_string("arch", arch), kind, ctypes.byref(held.struct), ctypes.byref(struct))
        return plan_of(struct, arch, window is not None)
    path = bundled_model() if model is None else model
    call("oriel_plan_file", path_bytes(path), ctypes.byref(held.struct), ctypes.byref(struct))
    return plan_of(struct, os.path.basename(os.fspath(path)), window is not None)


def inspect(model: Optional[PathLike] = None, *, log: Optional[Log] = None) -> FileInfo:
    """What is in a model file, also in one that this build cannot run (`missing` says why)."""
    held = model_options(log=log)
    struct = new(_abi.oriel_file_info)
    path = bundled_model() if model is None else model
    call("oriel_inspect", path_bytes(path), ctypes.byref(held.struct), ctypes.byref(struct))
    return result_of(FileInfo, struct)


def shapes() -> List[ShapeInfo]:
    """Published models that `plan(arch=...)` knows."""
    needed = ctypes.c_size_t()
    LIBRARY.oriel_shape_list(None, 0, ctypes.byref(needed))
    array = (_abi.oriel_shape_info * needed.value)()
    for item in array:
        item.struct_size = ctypes.sizeof(item)
    call("oriel_shape_list", array, needed.value, ctypes.byref(needed))
    return [result_of(ShapeInfo, item) for item in array]


