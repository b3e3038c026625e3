"""Keyword arguments as the structs of the C API. Left out or None means what it means there: chosen by Oriel."""

import ctypes
import dataclasses
import datetime
import json
import math
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi
from ._calls import Log, PathLike, Progress, address, log_callback, path_bytes, progress_callback, text_bytes
from ._results import KV_FORMATS, STATE_FORMATS, new
from ._sizes import Size, parse_size

MAX32 = (1 << 32) - 1
SMALLEST = 2.0**-149  # float32 above 0
DEVICE_TESTS = ("auto", "always", "never")
ON_FILE = ("auto", "none", "rows", "all")
TOOL_CHOICES = ("free", "checked", "required", "none")
DRAFTS = ("auto", "always", "never")
POOLINGS = ("auto", "mean", "last", "first")
WEIGHTS = ("default", "q4_0", "q8_0", "f16")
Json = Union[str, bytes, Mapping[str, Any], Sequence[Any], bool]


class Held:
    """A struct, and what it points to."""

    def __init__(self, struct: Any) -> None:
        self.struct = struct
        self.keep: List[Any] = []

    def text(self, field: str, value: bytes) -> None:
        """A text with its length beside it."""
        self.keep.append(value)
        setattr(self.struct, field, address(value))
        setattr(self.struct, field + "_bytes", len(value))

    def array(self, field: str, kind: Any, values: Sequence[Any]) -> None:
        made = (kind * len(values))(*values)
        self.keep.append(made)
        setattr(self.struct, field, ctypes.cast(made, ctypes.POINTER(kind)))


def number(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name} is from {least} to {most}, not {value}")
    return value


def one_of(name: str, value: str, names: Sequence[str]) -> int:
    if not isinstance(value, str) or value.lower() not in names:
        raise ValueError(f"{name} is one of {', '.join(names)}, not {value!r}")
    return list(names).index(value.lower())


def json_bytes(value: Json) -> bytes:
    """JSON text as it is, other values as JSON."""
    if isinstance(value, (str, bytes)):
        return text_bytes(value)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def c_string(name: str, value: str) -> bytes:
    encoded = text_bytes(value, name)
    if b"\0" in encoded:
        raise ValueError(f"{name} has no NUL")
    return encoded


def kv_formats(kv: str) -> Tuple[int, int]:
    """ "auto", "f16", "k8v8", "k8v4" or "k4v4" """
    pairs = {"auto": (0, 0), "f16": (1, 1), "k8v8": (2, 2), "k8v4": (2, 3), "k4v4": (3, 3)}
    if not isinstance(kv, str) or kv.lower() not in pairs:
        raise ValueError(f"kv is one of {', '.join(pairs)}, not {kv!r}")
    return pairs[kv.lower()]


def take_device(struct: Any, device: str) -> None:
    kind, _, index = device.partition(":")
    struct.device = one_of("device", kind, ("auto", "vulkan", "cpu", "none"))
    if index:
        if kind.lower() != "vulkan" or not index.isdigit():
            raise ValueError(f'device is "auto", "cpu", "none", "vulkan" or "vulkan:N", not {device!r}')
        struct.device_number = 1 + number("the device's number", int(index), 0, MAX32 - 1)


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What a model was measured to lose, in nats a token: oriel_calibration. 0: the published prior.
    `layers` has (keys_int8, keys_int4, values_int8, values_int4) of each layer; `windows` what windows cost that differ by
    layer, (tokens of the longest, nats, shares of the layers)."""

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


def _calibration(held: Held, calibration: Calibration) -> None:
    inner = Held(new(_abi.oriel_calibration))
    for field in dataclasses.fields(calibration):
        if field.name not in ("layers", "windows"):
            setattr(inner.struct, field.name, getattr(calibration, field.name))
    if calibration.layers:
        inner.array("layers", _abi.oriel_layer_calibration, [_abi.oriel_layer_calibration(*row) for row in calibration.layers])
        inner.struct.layer_count = len(calibration.layers)
    if calibration.windows:
        profiles = []
        for tokens, nats, shares in calibration.windows:
            longest = number("a calibration's window", tokens, 0, MAX32)
            profile = Held(_abi.oriel_window_profile(loss_nats=nats, window_tokens=longest, share_count=len(shares)))
            profile.array("shares", ctypes.c_uint8, [number("a share of a window", share, 0, 255) for share in shares])
            profiles.append(profile)
        inner.keep.extend(profiles)
        inner.array("profiles", _abi.oriel_window_profile, [profile.struct for profile in profiles])
        inner.struct.profile_count = len(profiles)
    held.keep.append(inner)
    held.struct.calibration = ctypes.pointer(inner.struct)


def model_options(
    *,
    memory: Optional[Size] = None,
    window: Union[int, str, None] = None,
    min_window: Optional[int] = None,
    sinks: Optional[int] = None,
    pinned: Optional[int] = None,
    chunk: Optional[int] = None,
    kv: str = "auto",
    k_format: Optional[str] = None,
    v_format: Optional[str] = None,
    f16_layers: Optional[Sequence[bool]] = None,
    window_shares: Sequence[int] = (),
    state_format: str = "auto",
    device: str = "auto",
    device_timeout_ms: Optional[int] = None,
    disabled_features: Sequence[str] = (),
    enabled_features: Sequence[str] = (),
    device_test: str = "auto",
    threads: Optional[int] = None,
    activation_bits: int = 16,
    cache_dir: Optional[PathLike] = None,
    calibration: Union[Calibration, PathLike, None] = None,
    speed: Any = None,
    min_tokens_per_s: Optional[float] = None,
    on_file: str = "auto",
    expert_slots: Optional[int] = None,
    checkpoints: Optional[int] = None,
    draft_tokens: int = 0,
    recall: Optional[Size] = None,
    recall_tokens: Optional[int] = None,
    recall_dir: Optional[PathLike] = None,
    draft_model: Optional[PathLike] = None,
    constraints: bool = False,
    sessions: int = 1,
    session_windows: Sequence[int] = (),
    prefix_tokens: Optional[int] = None,
    system_prompt: Optional[str] = None,
    prefix_file: Optional[PathLike] = None,
    transcript: Optional[Size] = None,
    measure_again: bool = False,
    log: Optional[Log] = None,
    progress: Optional[Progress] = None,
) -> Held:
    struct = new(_abi.oriel_options)
    held = Held(struct)
    struct.memory_bytes = 0 if memory is None else parse_size(memory)
    whole = {
        "window_tokens": ("window", None if window == "max" else window, 1, 1 << 22),
        "min_window_tokens": ("min_window", min_window, 1, 1 << 22),
        "pinned_tokens": ("pinned", pinned, 0, MAX32),
        "chunk_tokens": ("chunk", chunk, 1, 512),
        "device_timeout_ms": ("device_timeout_ms", device_timeout_ms, 1, MAX32),
        "cpu_threads": ("threads", threads, 1, MAX32),
        "expert_slots": ("expert_slots", expert_slots, 1, MAX32),
        "prefix_tokens": ("prefix_tokens", prefix_tokens, 0, MAX32),
        "sessions": ("sessions", sessions, 1, 64),
        "draft_tokens": ("draft_tokens", draft_tokens, 0, 15),
        "recall_tokens": ("recall_tokens", recall_tokens, 1, 1024),
    }
    for field, (name, value, least, most) in whole.items():
        if value is not None:
            setattr(struct, field, number(name, value, least, most))
    # Zero is a number like any other here, and "chosen" in C.
    if window == "max":
        struct.window_tokens = _abi.ORIEL_WINDOW_MAX
    if sinks is not None:
        struct.sink_tokens = number("sinks", sinks, 0, MAX32 - 1) or MAX32
    if checkpoints is not None:
        struct.checkpoints = number("checkpoints", checkpoints, 0, 32) or MAX32
    struct.k_format, struct.v_format = kv_formats(kv)
    if k_format is not None:
        struct.k_format = one_of("k_format", k_format, KV_FORMATS)
    if v_format is not None:
        struct.v_format = one_of("v_format", v_format, KV_FORMATS)
    struct.state_format = one_of("state_format", state_format, STATE_FORMATS)
    struct.on_file = one_of("on_file", on_file, ON_FILE)
    take_device(struct, device)
    struct.constraints = int(bool(constraints))
    struct.measure_again = int(bool(measure_again))
    if f16_layers is not None:
        held.array("f16_layers", ctypes.c_uint8, [int(bool(value)) for value in f16_layers])
        struct.f16_layer_count = len(f16_layers)
    if window_shares:
        shares = [number("window_shares", share, 0, 255) for share in window_shares]
        held.array("window_shares", ctypes.c_uint8, shares)
        struct.window_share_count = len(shares)
    if disabled_features:
        names = [disabled_features] if isinstance(disabled_features, str) else disabled_features
        struct.disabled_features = c_string("disabled_features", ",".join(names))
    if enabled_features:
        names = [enabled_features] if isinstance(enabled_features, str) else enabled_features
        struct.enabled_features = c_string("enabled_features", ",".join(names))
    struct.device_test = one_of("device_test", device_test, DEVICE_TESTS)
    if activation_bits not in (16, 8):
        raise ValueError("activation_bits is 16 or 8")
    struct.activation_bits = activation_bits
    if cache_dir is not None:
        struct.cache_dir = path_bytes(cache_dir)
    if isinstance(calibration, Calibration):
        _calibration(held, calibration)
    elif calibration is not None:
        struct.calibration_file = path_bytes(calibration)
    if speed is not None:
        held.keep.append(speed)
        struct.speed = ctypes.pointer(speed.struct)
    struct.min_tokens_per_s = min_tokens_per_s or 0
    if session_windows:
        held.array("session_windows", ctypes.c_uint32, [number("a window", value, 0, 1 << 22) for value in session_windows])
        struct.session_window_count = len(session_windows)
    if system_prompt is not None:
        held.text("system_prompt", text_bytes(system_prompt, "system_prompt"))
    if prefix_file is not None:
        struct.prefix_file = path_bytes(prefix_file)
    if recall is not None:
        struct.recall_bytes = parse_size(recall)
    if recall_dir is not None:
        struct.recall_dir = path_bytes(recall_dir)
    if draft_model is not None:
        struct.draft_model = path_bytes(draft_model)
    if transcript is not None:
        struct.transcript_bytes = min(parse_size(transcript), MAX32)
    struct.log = log_callback(log)
    struct.progress = progress_callback(progress)
    return held


def chat_options(
    *,
    chat_template: Optional[str] = None,
    thinking: Optional[bool] = None,
    date: Union[datetime.date, int, None] = None,
    tools: Optional[Json] = None,
    documents: Optional[Json] = None,
    variables: Optional[Json] = None,
) -> Held:
    held = Held(new(_abi.oriel_chat_options))
    if chat_template is not None:
        held.struct.chat_template = c_string("chat_template", chat_template)
    if thinking is not None:
        held.struct.thinking = int(bool(thinking))
        held.struct.no_thinking = int(not thinking)
    if isinstance(date, datetime.date):
        date = date.year * 10000 + date.month * 100 + date.day
    if date is not None:
        held.struct.date = number("date", date, 1, MAX32)
    for name, value in (("tools", tools), ("documents", documents), ("variables", variables)):
        if value is not None:
            held.text(name, json_bytes(value))
    return held


def session_options(
    chat: Held,
    *,
    window: Optional[int] = None,
    split_turns: bool = False,
    forget_evicted: bool = False,
    first_position: int = 0,
    assumed_tokens: int = 0,
    progress: Optional[Progress] = None,
) -> Held:
    struct = new(_abi.oriel_session_options)
    held = Held(struct)
    held.keep.append(chat)
    struct.chat = ctypes.pointer(chat.struct)
    struct.window_tokens = 0 if window is None else number("window", window, 1, MAX32)
    struct.split_turns = int(bool(split_turns))
    struct.forget_evicted = int(bool(forget_evicted))
    struct.first_position = number("first_position", first_position, 0, 1 << 62)
    struct.assumed_tokens = number("assumed_tokens", assumed_tokens, 0, 1 << 62)
    struct.progress = progress_callback(progress)
    return held


def _finite(name: str, value: float, least: float, most: float, above: bool = False) -> float:
    value = float(value)
    if not math.isfinite(value) or not least <= value <= most or (above and value == least):
        raise ValueError(f"{name} is {'above' if above else 'from'} {least:g}, at most {most:g}, not {value:g}")
    return value


def _positive(name: str, value: float, most: float) -> float:
    """Above 0 as a float of 32 bits, too, where 0 would be the default."""
    return max(_finite(name, value, 0, most, above=True), SMALLEST)


# The seed that C takes for "from the clock" is a seed like any other in Python.
SEED_ZERO = 0x9E3779B97F4A7C15


def generate_options(
    *,
    max_tokens: Optional[int] = None,
    min_tokens: int = 0,
    temperature: Optional[float] = None,
    greedy: bool = False,
    seed: Optional[int] = None,
    top_k: Optional[int] = None,
    top_p: Optional[float] = None,
    min_p: Optional[float] = None,
    repeat_penalty: Optional[float] = None,
    presence_penalty: float = 0,
    frequency_penalty: float = 0,
    repeat_window: Optional[int] = None,
    ignore_stop: bool = False,
    stop: Union[str, Sequence[str]] = (),
    logit_bias: Optional[Mapping[int, float]] = None,
    logprobs: Optional[int] = None,
    schema: Optional[Json] = None,
    grammar: Optional[str] = None,
    trigger: Optional[str] = None,
    tool_choice: str = "free",
    draft: str = "auto",
) -> Held:
    """Zero is what it says, not "the default" as in C: temperature 0 is greedy, top_k 0 is all, min_p 0 is off."""
    struct = new(_abi.oriel_generate_options)
    held = Held(struct)
    if max_tokens is not None:
        struct.max_tokens = number("max_tokens", max_tokens, 1, MAX32)
    struct.min_tokens = number("min_tokens", min_tokens, 0, MAX32)
    if temperature is not None:
        struct.temperature = _finite("temperature", temperature, 0, 1e6)
    struct.greedy = int(bool(greedy) or (temperature is not None and struct.temperature == 0))  # also what rounds to 0
    if seed is not None:
        struct.seed = number("seed", seed, 0, (1 << 64) - 1) or SEED_ZERO
    if top_k is not None:
        struct.top_k = number("top_k", top_k, 0, MAX32) or MAX32
    if top_p is not None:
        struct.top_p = _positive("top_p", top_p, 1)
    if min_p is not None:
        struct.min_p = _positive("min_p", min_p, 1) if min_p else -1
    if repeat_penalty is not None:
        struct.repeat_penalty = _positive("repeat_penalty", repeat_penalty, 1e6)
    struct.presence_penalty = _finite("presence_penalty", presence_penalty, -10, 10)
    struct.frequency_penalty = _finite("frequency_penalty", frequency_penalty, -10, 10)
    if repeat_window is not None:
        struct.repeat_window = number("repeat_window", repeat_window, 1, 256)
    struct.ignore_stop = int(bool(ignore_stop))
    texts = [stop] if isinstance(stop, str) else list(stop)
    if texts:
        held.array("stop", ctypes.c_char_p, [c_string("stop", text) for text in texts])
        struct.stop_count = len(texts)
    if logit_bias:
        entries = [_abi.oriel_logit_bias(number("a token", key, 0, (1 << 31) - 1), value) for key, value in logit_bias.items()]
        held.array("logit_bias", _abi.oriel_logit_bias, entries)
        struct.logit_bias_count = len(entries)
    if logprobs is not None:
        struct.logprobs = 1
        struct.top_logprobs = number("logprobs", logprobs, 0, 20)
    if schema is not None:
        held.text("json_schema", json_bytes(schema))
    if grammar is not None:
        held.text("grammar", text_bytes(grammar, "grammar"))
    if trigger is not None:
        struct.trigger = c_string("trigger", trigger)
    struct.tool_choice = one_of("tool_choice", tool_choice, TOOL_CHOICES)
    struct.draft = one_of("draft", draft, DRAFTS)
    return held
