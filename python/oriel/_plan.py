"""Plans: memory, window and formats before anything is loaded; as text like `oriel plan`, as SVG and HTML for notebooks."""

import ctypes
import json
import os
from html import escape
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple

from . import _abi
from ._calls import (
    Described, Log, PathLike, Progress, bundled_model, call, described, interruptible, of_struct, path_bytes, until,
)
from ._errors import at_path
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
        return formats_name(self)

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
        return verdict(self, choice)

    def predict(self, depth_tokens: int = 0, prompt_tokens: int = 0) -> Described:
        """Speed at a depth (0: a full window) and for a prompt (0: one prefill batch), of a plan made with `speed`."""
        prediction = _abi.new(_abi.Prediction)
        depth = whole("depth_tokens", depth_tokens, 0, (1 << 64) - 1) or self.window_tokens + self.sink_tokens
        prompt = whole("prompt_tokens", prompt_tokens, 0, (1 << 32) - 1)
        text = json.dumps(self).encode()
        call("oriel_plan_predict", text, len(text), depth, prompt, ctypes.byref(prediction))
        return of_struct(prediction, decode_limit=LIMITS)

    def __str__(self) -> str:
        return plan_text(self)

    def __repr__(self) -> str:
        fits = "" if self.fits else " does not fit,"
        return (
            f"<oriel.Plan {self.title}:{fits} {self.total_bytes} of {self.memory_bytes} bytes,"
            f" window {self.window_tokens}, {self.kv}>"
        )

    def _repr_svg_(self) -> str:
        return plan_svg(self)

    def _repr_html_(self) -> str:
        return plan_html(self)

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
    dispatches: int
    ms: float
    expected_ms: float


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

    def on_op(name: bytes, op: bytes, count: int, dispatches: int, ms: float, expected_ms: float, _user: object) -> None:
        times.append(OpTime(name.decode("utf-8"), op.decode("utf-8"), count, dispatches, ms, expected_ms))

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


BAR_COLUMNS = 32
WINDOW_DEFAULT = 8192  # tokens
TOKENS_OF_PAGE = 700
BITS = {"f16": 16, "int8": 8, "int4": 4}
EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
# Okabe and Ito's colours, which people who see red and green alike can tell apart.
COLOURS = {"weights": "#0072b2", "cache": "#009e73", "activations": "#e69f00", "staging": "#cc79a7", "host": "#56b4e9"}


def format_size(size: int) -> str:
    """ "10.3 MiB" """
    if size < 1024:
        return f"{size} B"
    value, unit = size / 1024, 0
    units = ("KiB", "MiB", "GiB", "TiB")
    while value >= 1023.95 and unit < 3:
        value /= 1024
        unit += 1
    return f"{value:.1f} {units[unit]}"


def bar(share: float, columns: int = BAR_COLUMNS) -> str:
    eighths = int(min(max(share, 0.0), 1.0) * columns * 8 + 0.5)
    if share > 0 and eighths == 0:
        eighths = 1
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8]


def _name(choice: Described) -> str:
    """ "f16", "K8V4", as the program writes them."""
    return formats_name(choice).upper().replace("F16", "f16")


def formats_name(formats: Described) -> str:
    """ "f16", "k8v4", as the option "kv" has them."""
    keys, values = formats.k_format, formats.v_format
    if keys is None:
        return "none"
    return "f16" if keys == values == "f16" else f"k{keys[3:]}v{values[3:]}"


def verdict(plan: "Plan", choice: Described) -> str:
    if choice.refused == "quality":
        return "never chosen: it failed the calibration of this model"
    if choice.refused == "speed":
        return "slower than was asked for"
    least = choice.total_bytes if plan.fits is None else choice.minimum_bytes
    fits = choice.total_bytes <= plan.memory_bytes if plan.fits is None else choice.fits
    if not fits:
        return f"{format_size(least - plan.memory_bytes)} too little"
    if choice is plan.choice:
        return "chosen: the least expected loss"
    more = choice.window_tokens - plan.window_tokens
    tokens = "" if more == 0 else f"{abs(more):,} {'more' if more > 0 else 'fewer'} tokens, "
    finer = BITS[choice.k_format] + BITS[choice.v_format] > BITS[plan.k_format] + BITS[plan.v_format]
    return f"{tokens}{'more' if finer else 'less'} precise: {choice.loss_nats - plan.loss_nats:.4f} worse"


def _why(plan: "Plan") -> str:
    if not plan.planned_fits:
        return "the smallest plan with these options"
    trained = plan.context_train_tokens or 0
    beyond = plan.sink_tokens + plan.window_tokens - trained
    if trained and beyond > 0:
        return f"as given: {beyond:,} tokens more than the {trained:,} that the model was trained on, and replies get worse there"
    if plan.window_given:
        return "as given"
    if trained and beyond >= 0:
        return "all that the model was trained on"
    if plan.window_tokens == WINDOW_DEFAULT:
        return f'the default; window="max" for more of the {trained:,} that the model was trained on'
    # A token more is rounded up in every layer.
    if any(plan.window_shares) and plan.memory_bytes - plan.total_bytes > 2 * plan.kv_bytes_per_token + 4096:
        return "the longest window that was measured for these layers"
    return f"the longest that fits; another token takes {format_size(plan.kv_bytes_per_token)}"


def _attends(plan: "Plan") -> bool:
    return not plan.groups or any(group.layers and group.kind in ("session", "sliding") for group in plan.groups)


def title(plan: "Plan") -> str:
    memory = format_size(plan.memory_bytes)
    if plan.fits is None:
        return f"whether {plan.title} fits in {memory} is not known"
    if not plan.fits:
        return f"{plan.title} does not fit in {memory}: {format_size(plan.minimum_bytes - plan.memory_bytes)} too little"
    left = plan.memory_bytes - plan.total_bytes
    return f"{plan.title} fits in {memory}" + (f", {format_size(left)} are left over" if left >= 1024 else "")


def _bars(plan: "Plan") -> List[str]:
    lines = []
    for name, size in plan.parts:
        if size is None:
            lines.append(f"  {name:<12}{'not known':>12}")
            continue
        share = size / plan.total_bytes if plan.total_bytes else 0
        lines.append(f"  {name:<12}{format_size(size):>12}  {bar(share)}")
    if plan.constraint_bytes:
        lines.append(f"  {'':<12}{format_size(plan.constraint_bytes):>12}  of host, for schemas and grammars")
    total = "the rest" if plan.fits is None else "total"
    lines.append(f"  {total:<12}{format_size(plan.total_bytes):>12}")
    if plan.on_file_bytes:
        size_text = format_size(plan.on_file_bytes)
        lines.append(f"  {'on file':<12}{size_text:>12}  read when tokens need it, never held as a whole")
    return lines


def _sessions(plan: "Plan") -> List[str]:
    lines = []
    if plan.sessions > 1:
        windows = plan.session_windows
        alike = len(set(windows)) == 1
        seen = f"a window of {windows[0]:,} tokens each" if alike else f"windows of {', '.join(format(w, ',') for w in windows)} tokens"
        lines.append(f"  sessions    {plan.sessions} with {seen}; one more takes {format_size(plan.session_bytes)}")
    if plan.prefix_tokens:
        once = ", held once for all" if plan.sessions > 1 else ""
        lines.append(f"  prefix      {plan.prefix_tokens:,} tokens in f16, {format_size(plan.prefix_bytes)}{once}")
    if plan.transcript_bytes > plan.sessions * 32768:  # more than usual
        lines.append(f"  transcript  {format_size(plan.transcript_bytes)} of host, for the text of messages")
    return lines


def _context(plan: "Plan") -> str:
    tokens = plan.sink_tokens + plan.window_tokens
    pages = (tokens + TOKENS_OF_PAGE // 2) // TOKENS_OF_PAGE
    text = "less than a page" if pages == 0 else "about a page" if pages == 1 else f"some {pages:,} pages"
    return f"{tokens:,} tokens, {text} of text"


def _cache(plan: "Plan") -> str:
    keys, values = BITS[plan.k_format], BITS[plan.v_format]
    if keys == values == 16:
        return "16 bits a number, full precision (f16)"
    loss = "next to no loss" if keys == values == 8 else "little loss" if keys == 8 else "some loss"
    return f"{keys} bits for keys, {values} for values ({_name(plan)}), {loss}"


def _facts(plan: "Plan") -> List[str]:
    if _attends(plan):
        lines = [f"  context     {_context(plan)}", f"              {_why(plan)}", f"  cache       {_cache(plan)}"]
    else:
        lines = [f"  context     no layer attends: states follow from all tokens; {plan.window_tokens:,} are kept as ids,"
                 " for going back"]
    lines += _sessions(plan)
    if plan.decode:
        lines.append(f"  speed       {plan.predict().decode_tokens_per_s:.1f} tokens/s predicted, with the context full")
    if plan.fits is not None:
        lines.append(f"  least       {format_size(plan.minimum_bytes)}")
    return lines


def plan_text(plan: "Plan") -> str:
    return "\n".join([title(plan), "", *_bars(plan), "", *_facts(plan)])


def plan_svg(plan: "Plan") -> str:
    """One bar as long as the memory, with its parts."""
    width, bar_top, bar_height, left = 640.0, 34, 30, 10.0
    room = max(plan.memory_bytes, plan.total_bytes, 1)
    scale = (width - 2 * left) / room
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="142" viewBox="0 0 {width:.0f} 142"'
        ' font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(title(plan))}</title>",
        f'<text x="{left}" y="20" font-size="14" font-weight="bold" fill="#777">{escape(title(plan))}</text>',
        f'<rect x="{left}" y="{bar_top}" width="{width - 2 * left:.1f}" height="{bar_height}" fill="#8882"/>',
    ]
    at = left
    parts = [(name, size or 0) for name, size in plan.parts]
    for name, size in parts:
        out.append(
            f'<rect x="{at:.2f}" y="{bar_top}" width="{size * scale:.2f}" height="{bar_height}" fill="{COLOURS[name]}">'
            f"<title>{name}: {format_size(size)}</title></rect>"
        )
        at += size * scale
    if plan.total_bytes > plan.memory_bytes:
        edge = left + plan.memory_bytes * scale
        out.append(f'<path d="M{edge:.1f} {bar_top - 4}v{bar_height + 8}" stroke="#d55e00" stroke-width="2"/>')
    for index, (name, known) in enumerate(plan.parts):
        x = left + index % 3 * 210
        y = 84 + index // 3 * 18
        label = f"{name} {'not known' if known is None else format_size(known)}"
        out.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLOURS[name]}"/>')
        out.append(f'<text x="{x + 16}" y="{y}" fill="#777">{label}</text>')
    window = f"window {plan.window_tokens} tokens in {_name(plan)}, expected loss {plan.loss_nats:.4f} nats a token"
    if not _attends(plan):
        window = "no layer attends: states follow from all tokens"
    out.append(f'<text x="{left}" y="130" fill="#777">{window}</text></svg>')
    return "".join(out)


def plan_html(plan: "Plan") -> str:
    """The bar, and the table of formats."""
    if not _attends(plan):
        return f"<div>{plan_svg(plan)}</div>"
    rows = []
    for choice in plan.choices:
        cells = (_name(choice), str(choice.window_tokens), f"{choice.loss_nats:.4f}", verdict(plan, choice))
        tag = "th" if choice is plan.choice else "td"
        rows.append("<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("formats", "window", "loss", "why"))
    return f"<div>{plan_svg(plan)}<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
