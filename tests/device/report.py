#!/usr/bin/env python3
"""Makes one HTML page of the JSONs that run.py wrote: a column for each device, differences marked.

    report.py RESULT.json... [--out report.html]

The page needs nothing but itself. Exit codes: 0 written, 1 a file that cannot be used or written, 2 wrong usage.
"""

import argparse
import html
import json
import pathlib
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree

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


STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7d3f; --bad: #c22f2f; --odd: #e8a33d55; }
@media (prefers-color-scheme: dark) { :root { --good: #6cc083; --bad: #ff7b72; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2.2rem 0 .5rem }
p { margin: .4rem 0; max-width: 46rem }
table { border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums }
thead th { position: sticky; top: 0; background: Canvas; max-width: 14rem }
tr > th:first-child { position: sticky; left: 0; background: Canvas }
thead th:first-child { z-index: 1 }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem; text-align: left;
         vertical-align: top; max-width: 24rem; overflow-wrap: break-word }
th { font-weight: 600 } td.number { text-align: right; white-space: nowrap }
.passed { color: var(--good) } .failed { color: var(--bad); font-weight: 600 }
.skipped, .absent { color: #888 } .odd { background: var(--odd) }
small { color: #888; font-weight: 400; display: block } small.failed { color: var(--bad) }
"""

FIGURES = [  # field, words, unit, divisor, more is better
    ("prefill_tokens_per_s", "prompt of 128, bundled model", "tokens/s", 1, True),
    ("decode_tokens_per_s", "decoding behind it", "tokens/s", 1, True),
    ("first_start.ms", "load to first token, nothing kept", "ms", 1, False),
    ("second_start.ms", "load to first token, pipelines kept", "ms", 1, False),
    ("first_start.pipelines_ms", "of it compiling, nothing kept", "ms", 1, False),
    ("second_start.pipelines_ms", "of it compiling, pipelines kept", "ms", 1, False),
    ("pipeline_file_bytes", "pipelines on disk", "KB", 1e3, False),
    ("device_bytes", "memory on the device", "MB", 1e6, False),
    ("host_bytes", "memory on the host", "MB", 1e6, False),
]


def escape(value):
    return html.escape(str(value))


def counted(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def cell(text, *classes, number=False, title=""):
    names = " ".join(filter(None, [*classes, "number" if number else ""]))
    attributes = f' class="{names}"' if names else ""
    attributes += f' title="{escape(title)}"' if title else ""
    return f"<td{attributes}>{text}</td>"


def is_cpu(run):
    """Oriel's own executor, without the features for Vulkan drivers."""
    return run["device"]["kind"] == "cpu"


def usual_status(found):
    """The most frequent status; on a tie, the better."""
    return max(("passed", "skipped", "failed"), key=found.count)


def heading(columns, *first):
    cells = "".join(f"<th>{escape(run['label'])}<small>{escape(run['device']['name'])}</small></th>"
                    for run in columns)
    return f"<thead><tr><th></th>{''.join(f'<th>{word}</th>' for word in first)}{cells}</tr></thead>"


def table(columns, rows, *first):
    """`first`: headings of columns before the devices' columns."""
    body = "".join(f"<tr><th>{name}</th>{''.join(cells)}</tr>\n" for name, cells in rows)
    return f"<table>{heading(columns, *first)}<tbody>\n{body}</tbody></table>"


def overview(columns):
    def row(name, text):
        return name, [cell(text(run)) for run in columns]

    def counts(run):
        text = f'<span class="passed">{run["passed"]} passed</span>'
        if run["failed"]:
            text += f', <span class="failed">{run["failed"]} failed</span>'
        if run["skipped"]:
            text += f', <span class="skipped">{run["skipped"]} skipped</span>'
        if run["only"]:
            text += f"<small>only {escape(run['only'])}</small>"
        if run.get("crashed"):
            text += f'<small class="failed">{escape(ending(run["crashed"]))}</small>'
        return text

    def system(run):
        about = run.get("system") or {}
        text = f"{about.get('os', '?')} {about.get('processor', '?')}, {about.get('pointer_bits', '?')} bits"
        return escape(text) + ("<small>emulated</small>" if run["emulated"] else "")

    rows = [("result", counts),
            ("driver", lambda run: escape(run["device"]["driver"] or "–")),
            ("kind", lambda run: escape(run["device"]["kind"])),
            ("system", system),
            ("Oriel", lambda run: escape(run.get("oriel") or "?")),
            ("tested", lambda run: escape(run["when"].replace("T", " ").replace("Z", " UTC")) +
             ("<small>interrupted before other devices</small>" if run["interrupted"] else ""))]
    for name, field in (("build", "build"), ("without", "disabled")):
        if any(run[field] for run in columns):
            rows.append((name, lambda run, field=field: escape(run[field] or "–")))
    return table(columns, [row(name, text) for name, text in rows])


def plain_table(heads, rows):
    head = "".join(f"<th>{escape(word)}</th>" for word in heads)
    body = "".join(f"<tr><th>{escape(first)}</th>{''.join(cell(escape(text)) for text in rest)}</tr>\n"
                   for first, *rest in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


def failures(columns):
    rows = []
    for run in columns:
        who = f"{run['label']}: {run['device']['name']}"
        rows += [(who, f"{check['group']}/{check['name']}",
                  ("not a number: " if is_nan(check) else "") + check["detail"])
                 for check in run["checks"] if check["status"] == "failed"]
        if run.get("crashed"):
            rows.append((who, run["crashed"]["during"] or "its start", ending(run["crashed"])))
    return ["<h2>Failures</h2>", plain_table(("device", "check", "detail"), rows)] if rows else []


def not_tested(results):
    """Devices that are listed and not usable, and results without any Vulkan device."""
    listed = [(result["label"], result.get("devices") or []) for result in results]
    rows = [(label, f"{device['option']} {device['name']}", device.get("reason") or "not usable")
            for label, devices in listed for device in devices if not device["usable"]]
    rows += [(label, "Vulkan", "no Vulkan device was found") for label, devices in listed
             if devices and not any(device["option"].startswith("vulkan:") for device in devices)]
    return ["<h2>Not tested</h2>", plain_table(("label", "device", "reason"), rows)] if rows else []


def features(columns):
    """A row for each feature; `subgroup arithmetic (8 lanes)` has a value."""
    owned = []
    for run in columns:
        parts = [part.strip() for part in (run["device"].get("features") or "").split(",")]
        named = [part.rstrip(")").partition(" (") for part in parts if part]
        owned.append({name: value or "yes" for name, _, value in named})
    rows = []
    for feature in sorted(set().union(*owned)):
        differs = any(feature not in own for run, own in zip(columns, owned) if not is_cpu(run))
        rows.append((escape(feature), [
            cell("–", "absent") if is_cpu(run) else
            cell(escape(own.get(feature, "no")), "" if feature in own else "absent",
                 "odd" if differs and feature not in own else "")
            for run, own in zip(columns, owned)]))
    return table(columns, rows)


def figure(run, field):
    """`a.b` is field b of a; None if unknown."""
    value = run.get("figures")
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return number(value)


def figures(columns):
    rows = []
    for field, words, unit, divisor, more in FIGURES:
        values = [figure(run, field) for run in columns]
        known = [value for value in values if value is not None]
        if not known:
            continue
        best = max(known) if more else min(known)
        rows.append((f"{escape(words)}<small>{unit}</small>", [
            cell("–", "absent") if value is None else
            cell(f"{value / divisor:,.1f}", "passed" if value == best and len(known) > 1 else "",
                 number=True) for value in values]))
    peaks = [number(run.get("peak_resident_bytes")) for run in columns]
    if any(peaks):
        rows.append(("peak of the process<small>MB</small>",
                     [cell(f"{peak / 1e6:,.1f}" if peak else "–", number=True) for peak in peaks]))
    hottest = [[max(numbers((run.get("figures") or {}).get(when)), default=None)
                for when in ("temperatures_before", "temperatures_after")] for run in columns]
    if any(value is not None for pair in hottest for value in pair):
        rows.append(("hottest sensor, before and after<small>°C</small>", [
            cell(" → ".join("–" if value is None else f"{value:.1f}" for value in pair), number=True)
            for pair in hottest]))
    return table(columns, rows)


def candidates(columns):
    """Microseconds of each implementation of an op; the used one is marked."""
    by_run = [{(c["op"], c["name"]): c for c in run.get("candidates") or []} for run in columns]
    rows = []
    for key in dict.fromkeys(key for own in by_run for key in own):
        found = [own.get(key) for own in by_run]
        rows.append((f"{escape(key[0])}<small>{escape(key[1])}</small>", [
            cell("–", "absent") if c is None or number(c["microseconds"]) is None else
            cell(f"{c['microseconds']:,.0f}" + (" ✓" if c["chosen"] else ""),
                 "passed" if c["chosen"] else "", number=True) for c in found]))
    return table(columns, rows)


def check_cell(check, usual, best, expected):
    if check is None:
        return cell("–", "absent", "odd" if expected else "", title="was not run")
    value, status = number(check.get("value")), check["status"]
    text = "FAILED" if status == "failed" else escape(status)
    if status != "passed":
        text += "<small>not a number</small>" if is_nan(check) else ""
        text += f"<small>{escape(check['detail'])}</small>"
    elif "value" in check:
        text = f"{value:.1e}" if value else "0"
    # Failed, or other than the rest: by result, or ten times less exact than the best.
    odd = status != usual or status == "failed" or (best and value is not None and value > 10 * best)
    known = status if status in ("passed", "failed", "skipped") else ""
    return cell(text, known, "odd" if odd else "", title="" if status == "passed" else check["detail"])


def checks(columns, group):
    by_run = [{check["name"]: check for check in run["checks"] if check["group"] == group}
              for run in columns]
    names = list(dict.fromkeys(name for own in by_run for name in own))
    rows = []
    for name in names:
        found = [own.get(name) for own in by_run]
        here = [check for check in found if check]
        usual = usual_status([check["status"] for check in here])
        values = [check["value"] for check in here if (number(check.get("value")) or 0) > 0]
        best = min(values) if values else None
        ran = {is_cpu(run) for run, check in zip(columns, found) if check}  # on which sort of device
        limits = [f"{check['limit']:.2g}" for check in here if number(check.get("limit")) is not None]
        rows.append((escape(name), [cell(" or ".join(dict.fromkeys(limits)) or "–", "absent")] +
                     [check_cell(check, usual, best, is_cpu(run) in ran and not run["only"])
                      for run, check in zip(columns, found)]))
    return table(columns, rows, "at most")


def page(results):
    columns = [{**run, "label": result["label"], "when": result["when"],
                "emulated": result["emulated"], "only": result.get("only"), "build": result.get("build"),
                "disabled": result.get("disabled"), "interrupted": result.get("interrupted", False)}
               for result in results for run in result["runs"]]
    groups = list(dict.fromkeys(check["group"] for run in columns for check in run["checks"]))
    failed = sum(run["failed"] for run in columns)
    title = f"Oriel on {counted(len(columns), 'device')}"
    verdict = f"{counted(failed, 'check')} failed" if failed else "nothing failed"
    parts = [f"<h1>{title}: {verdict}</h1>",
             "<p>Marked cells differ from most others in their row: another result, a feature that is "
             "missing, or an error ten times that of the most exact device. A figure in a check is its "
             "error, and it passed: the error is at most what the first column allows. Speeds and times of "
             "emulated and software devices say nothing about hardware.</p>",
             overview(columns), *failures(columns), *not_tested(results),
             "<h2>Optional features</h2>", features(columns),
             "<h2>Figures</h2>", figures(columns)]
    if any(run.get("candidates") for run in columns):
        parts += ["<h2>Kernel variants, microseconds (✓ used)</h2>", candidates(columns)]
    for group in groups:
        parts += [f"<h2>Checks: {escape(group)}</h2>", checks(columns, group)]
    return ("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width\">"
            f"<title>{title}</title><style>{STYLE}</style>\n" + "\n".join(parts) + "\n</html>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("report.html"))
    arguments = parser.parse_args()
    results = []
    for path in arguments.results:
        try:
            results.append(read(path))
        except (OSError, ValueError, RecursionError) as error:
            print(f"report.py: {path} cannot be used ({error}): give files that run.py wrote", file=sys.stderr)
            return 1
    try:
        arguments.out.write_text(page(results), encoding="utf-8", errors="replace")
    except OSError as error:
        print(f"report.py: {arguments.out} cannot be written ({error.strerror})", file=sys.stderr)
        return 1
    print(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
