#!/usr/bin/env python3
"""The tables of docs/reference/faults.md, from what oriel_fault_matrix --results wrote: page.py RESULTS... [--write]

Without --write: exits with 1 where the page lacks something that came, which a sample can find out, too."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/faults.md"
PHASES = ["describe", "load", "load again", "create", "prefill", "decode", "chat", "reply", "recall", "embed", "convert",
          "save", "restore", "fork", "trim", "resume", "reset", "recover", "destroy"]
# By number of the status; L: the device is lost.
WORDS = {"0": "on", "2": "IO", "6": "memory", "7": "none", "8": "driver", "8L": "lost", "9L": "lost", "X": "CRASH"}
HEADINGS = {"v": "## Vulkan", "f": "## The operating system"}


def read(paths):
    """{kind: {row: {phase: set of words, or a number of calls}}}"""
    tables = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(set)))
    for path in paths:
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            what, kind, phase, site, value = line.split("\t")[:5]
            if kind == "l" or (kind == "v" and phase == "load"):  # which asks the driver for what "load again" does
                continue
            table = tables["v" if kind in "vm" else "f"]
            cell = table[site][phase]
            if what == "fault" and kind != "m":
                cell.add(WORDS[value])
            elif kind == "m":
                cell.add("none")
    # Functions that cannot fail are shown with their calls only.
    for kind, rows in tables.items():
        for row, cells in list(rows.items()):
            failed = any(words - {"none"} for words in cells.values()) or (kind == "f")
            for phase in [phase for phase, words in cells.items() if failed and not words]:
                del cells[phase]
            if not cells:
                del rows[row]
    return tables


def rows_of_vulkan():
    text = (ROOT / "platform/vulkan/loader.h").read_text(encoding="utf-8")
    return re.findall(r"^  X\((vk\w+)\)", text, re.M)


def order(kind, row):
    names = rows_of_vulkan()
    return (names.index(row) if kind == "v" else 0 if row == "allocate" else 1, row)


def cell(words):
    return ", ".join(sorted(words, key=list(dict.fromkeys(WORDS.values())).index)) if words else "·"


def table(kind, rows):
    phases = [phase for phase in PHASES if any(phase in cells for cells in rows.values())]
    lines = ["| | " + " | ".join(phases) + " |", "|---" * (len(phases) + 1) + "|"]
    for row in sorted(rows, key=lambda row: order(kind, row)):
        cells = [cell(rows[row][phase]) if phase in rows[row] else "" for phase in phases]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return lines


def written(text, tables):
    """The page with these tables in place of its old ones."""
    out, heading, done = [], None, set()
    for line in text.splitlines():
        heading = line if line.startswith("#") else heading
        kind = next((kind for kind, name in HEADINGS.items() if name == heading), None)
        if kind and line.startswith("|"):
            if kind not in done:
                out += table(kind, tables[kind])
                done.add(kind)
            continue
        out.append(line)
    assert done == set(HEADINGS), done
    return "\n".join(out) + "\n"


def tables_of(text):
    """Parses the page into the same form as read()."""
    tables, kind, phases = {}, None, None
    for line in text.splitlines():
        if line.startswith("#"):
            kind, phases = next((kind for kind, name in HEADINGS.items() if name == line), None), None
        elif kind and line.startswith("| "):
            cells = [part.strip() for part in line.strip("|").split("|")]
            if phases is None:
                phases = cells[1:]
                tables[kind] = {}
            else:
                tables[kind][cells[0]] = {phase: set() if words == "·" else set(words.split(", "))
                                          for phase, words in zip(phases, cells[1:]) if words}
    return tables


def main():
    paths = [name for name in sys.argv[1:] if name != "--write"]
    tables = read(paths)
    text = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        PAGE.write_text(written(text, tables), encoding="utf-8")
        return 0
    known, lacks = tables_of(text), []
    for kind, rows in tables.items():
        for row, cells in rows.items():
            for phase, words in cells.items():
                more = words - known[kind].get(row, {}).get(phase, set())
                if more or phase not in known[kind].get(row, {}):
                    lacks.append(f"{row} in {phase}: {', '.join(more) or 'called'}")
    print("\n".join(f"docs/reference/faults.md lacks {each}" for each in lacks))
    return 1 if lacks else 0


if __name__ == "__main__":
    sys.exit(main())
