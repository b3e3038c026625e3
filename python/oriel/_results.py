"""What Oriel says of models, plans and sessions: plain objects that own their values.

Each class names fields of the C struct it is made from; the headers say what they mean.
"""

import ctypes
import dataclasses
from typing import Any, Dict, Tuple, Type, TypeVar

from . import _abi

T = TypeVar("T")

KV_FORMATS = ("auto", "f16", "int8", "int4")
STATE_FORMATS = ("auto", "f32", "f16", "int8")
TRIM_LEVELS = ("none", "scratch", "weights", "cache", "all")
STOP_REASONS = ("length", "stop_token", "callback", "cancelled", "stop_text")
LAYER_KINDS = ("session", "sliding", "convolution", "state")
REFUSALS = ("", "quality", "speed")
RESTORED_HOW = ("exactly", "carried", "read")
LIMITS = ("weights", "cache", "overhead")
CHECKS = ("passed", "failed", "skipped")
DEVICE_KINDS = ("auto", "vulkan", "cpu", "none")

_NAMES: Dict[str, Tuple[str, ...]] = {
    "k_format": KV_FORMATS,
    "v_format": KV_FORMATS,
    "k": KV_FORMATS,
    "v": KV_FORMATS,
    "state_format": STATE_FORMATS,
    "level": TRIM_LEVELS,
    "stop_reason": STOP_REASONS,
    "refused": REFUSALS,
    "how": RESTORED_HOW,
    "decode_limit": LIMITS,
    "result": CHECKS,
}
_COUNTS = {
    "groups": "group_count",
    "choices": "choice_count",
    "missing": "missing_count",
    "tensor_types": "tensor_type_count",
    "session_windows": "sessions",
}


def _name(names: Tuple[str, ...], value: int) -> str:
    return names[value] if 0 <= value < len(names) else str(value)


def _value(owner: ctypes.Structure, name: str, wanted: Any) -> Any:
    value = getattr(owner, name)
    if name == "kind" and isinstance(value, int):
        return _name(LAYER_KINDS, value)
    if name == "device" and isinstance(value, int):
        return _name(DEVICE_KINDS, value)
    if name in _NAMES:
        return _name(_NAMES[name], value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, ctypes.Structure):
        return result_of(CLASSES[type(value)], value)
    if isinstance(value, ctypes.Array):
        items = value[: getattr(owner, _COUNTS[name])] if name in _COUNTS else value[:]
        return tuple(_item(item) for item in items)
    return bool(value) if wanted is bool else value


def _item(item: Any) -> Any:
    if isinstance(item, ctypes.Structure):
        return result_of(CLASSES[type(item)], item)
    if isinstance(item, ctypes.Array):
        return item.value.decode("utf-8", "replace")
    return item


def values_of(kind: Any, struct: ctypes.Structure) -> Dict[str, Any]:
    """The struct's values of those fields of a dataclass that it has."""
    fields = [field for field in dataclasses.fields(kind) if hasattr(struct, field.name)]
    return {field.name: _value(struct, field.name, field.type) for field in fields}


def result_of(kind: Type[T], struct: ctypes.Structure) -> T:
    """An object of the dataclass; each of its fields is one of the struct's."""
    return kind(**values_of(kind, struct))


def new(struct: Type[T]) -> T:
    """A struct with struct_size set and the rest zero."""
    made: Any = struct()
    made.struct_size = ctypes.sizeof(made)
    return made  # type: ignore[no-any-return]


@dataclasses.dataclass(frozen=True)
class LayerGroup:
    """Layers that see the same tokens: "session", "sliding", "convolution" or "state"."""

    kind: str
    layers: int
    window_tokens: int
    ring_tokens: int
    bytes_per_token: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class LayerFormats:
    """How one layer's keys and values are stored; "auto" of a layer without any."""

    k: str
    v: str


@dataclasses.dataclass(frozen=True)
class TensorType:
    name: str
    tensors: int
    parameters: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class ModelInfo:
    """A loaded model: oriel_model_info."""

    architecture: str
    name: str
    tokenizer: str
    chat_template: str
    tensor_types: str
    device: str
    driver: str
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_embd: int
    n_ff: int
    n_vocab: int
    context_train: int
    parameters: int
    file_bytes: int
    bos_id: int
    eos_id: int
    add_bos: bool
    rope_scaling: str
    groups: Tuple[LayerGroup, ...]
    window_train: int
    pipelines: int
    pipelines_from_cache: int
    pipelines_ms: float
    device_trust: str


@dataclasses.dataclass(frozen=True)
class FileInfo:
    """A model file: oriel_file_info. `missing` says why this build cannot run it."""

    architecture: str
    name: str
    size_label: str
    license: str
    tokenizer: str
    chat_template: str
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_embd: int
    n_ff: int
    n_vocab: int
    n_experts: int
    context_train: int
    tensor_count: int
    parameters: int
    file_bytes: int
    bos_id: int
    eos_id: int
    add_bos: bool
    tensor_types: Tuple[TensorType, ...]
    runs: bool
    missing: Tuple[str, ...]
    rope_scaling: str
    groups: Tuple[LayerGroup, ...]
    window_train: int


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """What a model could run on: oriel_device_info."""

    name: str
    driver: str
    device_kind: str
    features: str
    reason: str
    usable: bool
    memory_bytes: int
    faults: str
    verdict: str
    kernels_right: int
    kernels_wrong: int


@dataclasses.dataclass(frozen=True)
class Stats:
    """What a session has done and takes: oriel_stats."""

    position: int
    window_used: int
    window_capacity: int
    evicted: int
    device_bytes: int
    host_bytes: int
    submissions: int
    expert_hits: int
    expert_misses: int
    rows_wanted: int
    rows_read: int
    tokens_read_again: int
    tokens_drafted: int
    tokens_accepted: int
    tokens_kept: int
    tokens_recalled: int


@dataclasses.dataclass(frozen=True)
class View:
    """What of a conversation is where: oriel_view."""

    position: int
    first_visible: int
    first_stored: int
    sinks_used: int
    turn_count: int
    group_first_visible: Tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Generation:
    """How a reply went: oriel_generation. `stop_reason`: "length", "stop_token", "stop_text", "callback" (the app
    ended it) or "cancelled". `prompt_tokens_evicted`: of `prompt_tokens`, those that the reply does not see."""

    stop_reason: str
    tokens: int
    prompt_tokens: int
    time_to_first_token_ms: float
    decode_tokens_per_s: float
    tokens_drafted: int
    tokens_accepted: int
    prompt_tokens_evicted: int


@dataclasses.dataclass(frozen=True)
class Mark:
    name: str
    position: int


@dataclasses.dataclass(frozen=True)
class PrefixInfo:
    tokens: int
    capacity: int
    bytes: int
    trained: bool


@dataclasses.dataclass(frozen=True)
class TranscriptInfo:
    messages: int
    dropped: int
    bytes: int
    capacity: int


@dataclasses.dataclass(frozen=True)
class SnapshotInfo:
    """What a snapshot says of itself: oriel_snapshot_info."""

    version: int
    readable: bool
    model: str
    architecture: str
    model_hash: int
    bytes: int
    position: int
    tokens_held: int
    turns: int
    messages: int
    window_tokens: int
    sink_tokens: int
    chunk_tokens: int
    k_format: str
    v_format: str
    chat_template: str
    saved_at: int


@dataclasses.dataclass(frozen=True)
class Restored:
    """How a snapshot came back: "exactly", "carried" over or "read" again."""

    how: str
    rounded: bool
    tokens_held: int
    tokens_dropped: int
    tokens_read: int


@dataclasses.dataclass(frozen=True)
class Recovered:
    """What `Session.recover` came to: on "vulkan" or "cpu"; `exact`: on the same device to the bit what was lost."""

    device: str
    same_device: bool
    device_name: str
    tokens_held: int
    tokens_read: int
    tokens_dropped: int
    exact: bool


@dataclasses.dataclass(frozen=True)
class Resident:
    """What a model has allocated at the moment: oriel_resident."""

    level: str
    paused: bool
    weights_bytes: int
    kv_bytes: int
    activation_bytes: int
    staging_bytes: int
    host_bytes: int
    total_bytes: int


@dataclasses.dataclass(frozen=True)
class StepGroupCost:
    window_tokens: int
    s_per_token: float


@dataclasses.dataclass(frozen=True)
class StepCost:
    """What a step is predicted to take, in seconds. `tokens` is 0 where nothing is predicted."""

    tokens: int
    overhead_s: float
    weights_s: float
    weights_once_s: float
    head_s: float
    groups: Tuple[StepGroupCost, ...]


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Speed at a depth: oriel_prediction."""

    decode_tokens_per_s: float
    prefill_tokens_per_s: float
    decode_limit: str
    crossover_tokens: float


@dataclasses.dataclass(frozen=True)
class ShapeInfo:
    """A published model that plans can be made for: oriel_shape_info."""

    name: str
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_embd: int
    n_ff: int
    n_vocab: int
    context_train: int
    sliding_layers: int
    sliding_window_tokens: int
    shared_layers: int
    latent_dim: int
    parameters: int
    architecture: str
    convolution_layers: int
    state_layers: int
    state_bytes: int
    n_experts: int
    n_experts_used: int


@dataclasses.dataclass(frozen=True)
class Check:
    """One kernel of the self-test: "passed", "failed" or "skipped"."""

    name: str
    result: str
    error: float
    limit: float
    reason: str


@dataclasses.dataclass(frozen=True)
class PlanChoice:
    """One pair of cache formats that was weighed: oriel_plan_choice. `refused`: "", "quality" or "speed"."""

    k_format: str
    v_format: str
    fits: bool
    window_tokens: int
    shortest_window_tokens: int
    chunk_tokens: int
    refused: str
    total_bytes: int
    minimum_bytes: int
    loss_nats: float
    decode_tokens_per_s: float


CLASSES: Dict[Any, Any] = {
    _abi.oriel_layer_group: LayerGroup,
    _abi.oriel_tensor_type: TensorType,
    _abi.oriel_plan_choice: PlanChoice,
    _abi.oriel_step_cost: StepCost,
    _abi.oriel_step_cost_groups: StepGroupCost,
}


def device_of(struct: _abi.oriel_device_info) -> DeviceInfo:
    kind: Any = struct.kind
    return DeviceInfo(device_kind=kind.decode("ascii"), **values_of(DeviceInfo, struct))


def formats_name(k: str, v: str) -> str:
    """ "f16", "K8V4" """
    digits = {"int8": "8", "int4": "4", "f16": "16"}
    if k == v and k in ("f16", "auto"):
        return k
    return f"K{digits.get(k, k)}V{digits.get(v, v)}"
