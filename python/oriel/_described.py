"""What Oriel reports: the objects of docs/reference/describe.md, and results."""

import ctypes
import json
from typing import Any, Dict, List, Sequence

from ._calls import fill


class Described(Dict[str, Any]):
    """A JSON object whose fields are attributes, too: `info.n_layers` is `info["n_layers"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no field {name!r}: use one of {', '.join(self)}") from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


def of_json(text: bytes) -> Described:
    found: Described = json.loads(text.rstrip(b"\0"), object_hook=Described)
    return found


def described(name: str, *arguments: Any) -> Described:
    """The JSON that a function of the C API writes."""
    return of_json(fill(ctypes.c_char, name, *arguments, guess=1 << 15))


def of_struct(struct: Any, **words: Sequence[str]) -> Described:
    """The fields of a C struct. `words` names the values of enumerations."""
    found = Described()
    for name, _ in struct._fields_[1:]:
        value = getattr(struct, name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        found[name] = words[name][value] if name in words else value
    return found
