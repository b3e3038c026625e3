"""Sizes as people write them."""

import re
from typing import Union

Size = Union[int, str]
_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([kmgt]?)(i?)(b?)\s*", flags=re.I)


def parse_size(size: Size) -> int:
    """262144, "300MB" (10^6) or "300MiB" (2^20; so is "300M"), as the program reads them."""
    if isinstance(size, bool) or not isinstance(size, (int, str)):
        raise TypeError(f'a size is a number of bytes or text such as "300MB", not {size!r}')
    if isinstance(size, int):
        if not 0 < size < 1 << 64:
            raise ValueError(f"a size is more than 0 bytes and within 64 bits, not {size}")
        return size
    match = _UNIT.fullmatch(size)
    if not match or (match.group(3) and not (match.group(2) and match.group(4))):
        raise ValueError(f'"{size}" is no size: write 300MB, 1.5GiB or a number of bytes')
    number, unit, binary, letter_b = match.groups()
    power = " kmgt".index(unit.lower()) if unit else 0
    factor: int = (1000 if letter_b and not binary else 1024) ** power
    if "." in number and factor == 1:
        raise ValueError(f'"{size}" is no size: a number of bytes is whole')
    whole, _, part = number.partition(".")
    part = (part + "000000")[:6]
    total = int(whole or 0) * factor + int(part) * factor // 1000000
    if total == 0 or total >= 1 << 64:
        raise ValueError(f'"{size}" is no size: it is 0 or beyond 64 bits')
    return total


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
