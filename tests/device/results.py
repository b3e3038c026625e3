"""The JSON that the test program and run.py write, format 1, and what of it can be used."""

import json

# A field with ? may be absent or null; NUMBER is null if it was not finite.
NUMBER = (int, float, type(None))
SAID = {str: "text", int: "number", bool: "truth value", dict: "object"}
CHECK = {"group": str, "name": str, "status": str, "detail": str, "value?": NUMBER, "limit?": NUMBER}
DEVICE = {"option": str, "name": str, "driver": str, "kind": str, "usable": bool, "reason?": str, "features?": str}
RUN = {"device": DEVICE,
       "passed": int, "failed": int, "skipped": int, "checks": [CHECK], "oriel?": str, "system?": dict,
       "peak_resident_bytes?": NUMBER, "figures?": dict,
       "candidates?": [{"op": str, "name": str, "microseconds": NUMBER, "chosen": bool}],
       "crashed?": {"during": str, "silent_s?": NUMBER, "unreadable?": str, "connection_lost?": bool}}
RESULT = {"format": int, "label": str, "when": str, "emulated": bool, "only?": str, "disabled?": str,
          "build?": str, "interrupted?": bool, "runs": [RUN],
          "devices?": [DEVICE]}


def fault(value, shape, where="it"):
    """The part of the value that differs from the shape; None if all matches."""
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} is no list"
        return next(filter(None, (fault(entry, shape[0], f"{where}[{i}]") for i, entry in enumerate(value))), None)
    if not isinstance(shape, dict):
        kinds = shape if isinstance(shape, tuple) else (shape,)
        return None if type(value) in kinds else f"{where} is no {SAID[kinds[0]]}"
    if not isinstance(value, dict):
        return f"{where} is no object"
    for name, inner in shape.items():
        field = name.rstrip("?")
        if field != name and value.get(field) is None:
            continue
        if field not in value:
            return f"{where} lacks {field}"
        found = fault(value[field], inner, field if where == "it" else f"{where}.{field}")
        if found:
            return found
    return None


def number(value):
    """None unless the value is a finite number."""
    return value if type(value) in (int, float) and abs(value) < 1e300 else None


def numbers(table):
    return [value for value in map(number, table.values()) if value is not None] if isinstance(table, dict) else []


def is_nan(check):
    return "value" in check and number(check["value"]) is None


def ending(crash):
    """How a run ended that has no result of its own; the same words for who watches it and who reads the report."""
    during, code = crash["during"] or "its start", f"exit code {crash.get('exit_code')}"
    if crash.get("connection_lost"):
        return f"the connection was lost in {during}"
    if number(crash.get("silent_s")) is not None:
        return f"no answer for {crash['silent_s']:g} s in {during}: it was killed"
    if crash.get("unreadable"):
        return f"ended with {code}, but its result cannot be read: {crash['unreadable']}"
    return f"crashed in {during} ({code})"


def read(path):
    """The file's result; ValueError names its problem."""
    result = json.loads(path.read_text(encoding="utf-8"))
    wrong = fault(result, RESULT)
    if not wrong and result["format"] != 1:
        wrong = "it was written by another version"
    if not wrong and not result["runs"]:
        wrong = "runs is empty"
    if wrong:
        raise ValueError(wrong)
    for run in result["runs"]:
        for check in run["checks"]:
            if check["status"] == "passed" and is_nan(check):
                check["status"] = "failed"
                run["passed"] -= 1
                run["failed"] += 1
    return result
