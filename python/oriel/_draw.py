"""Pictures of plans: text as `oriel plan` prints it, SVG and HTML for notebooks."""

from html import escape
from typing import TYPE_CHECKING, List

from ._described import Described

if TYPE_CHECKING:
    from ._plan import Plan

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


def text(plan: "Plan") -> str:
    return "\n".join([title(plan), "", *_bars(plan), "", *_facts(plan)])


def svg(plan: "Plan") -> str:
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


def html(plan: "Plan") -> str:
    """The bar, and the table of formats."""
    if not _attends(plan):
        return f"<div>{svg(plan)}</div>"
    rows = []
    for choice in plan.choices:
        cells = (_name(choice), str(choice.window_tokens), f"{choice.loss_nats:.4f}", verdict(plan, choice))
        tag = "th" if choice is plan.choice else "td"
        rows.append("<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("formats", "window", "loss", "why"))
    return f"<div>{svg(plan)}<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
