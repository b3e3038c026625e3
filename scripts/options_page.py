#!/usr/bin/env python3
"""Writes docs/options.md from the library's table of options.

    python3 scripts/options_page.py build/release/apps/oriel [--out FILE]

Needs only the standard library. tests/docs/test_options_page.py fails while the page differs from what this writes.
"""
import argparse
import json
import os
import pathlib
import subprocess

os.environ["ORIEL_CONFIG"] = ""  # ignore the user's config file


PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/options.md"
HEAD = """# Options by name

`scripts/options_page.py` writes this page from the table in `runtime/options`: do not edit it by hand. `oriel options`
prints the same table, `oriel options --json` as JSON, and `oriel_option_list()` gives it to an app.

An option by name is a pair of texts, `{"kv", "k8v8"}`. `settings` and `setting_count` give pairs to a load
(`oriel_options`), a session (`oriel_session_options`) or a reply (`oriel_reply_options`). A value by name replaces the
field of the same option. An unknown name, or a value that is not allowed, is `ORIEL_ERROR_ARGUMENT` with a line that names
it.

Types:

- bytes: `262144`, `300MB` (10^6) or `300MiB` (2^20)
- count: a whole number
- number: decimal digits with a point
- choice: one of the words, in any case
- flag: `true` or `false`
- text, file: any text
- list: whole numbers, separated by commas

The flag is the spelling of the program `oriel`. A dash: the program has no flag of that option.
"""
SCOPES = {"load": "Of a load", "session": "Of a session", "reply": "Of a reply"}
LAYERS = {"front": "Front", "advanced": "Advanced", "laboratory": "Laboratory"}


def table(oriel):
    done = subprocess.run([*oriel, "options", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["options"]


def values(row):
    """What the value may be."""
    words = [f"`{word}`" for word in row.get("choices", []) if not ("least" in row and word == "0")]
    if row["type"] == "flag":
        words = ["`true`", "`false`"]
    if "least" in row:
        most = str(2**64 - 1) if row["most"] >= 2**64 else f"{row['most']:.10g}"
        words.append(f"{row['least']:.10g} to {most}")
    return f"{row['type']}: {', '.join(words)}" if words else row["type"]


def page(rows):
    text = HEAD
    for scope, heading in SCOPES.items():
        text += f"\n## {heading}\n"
        for layer, name in LAYERS.items():
            chosen = [row for row in rows if row["scope"] == scope and row["layer"] == layer]
            if not chosen:
                continue
            text += f"\n{name}:\n\n| name | flag | value | default | |\n|---|---|---|---|---|\n"
            for row in chosen:
                flag = f"`--{row['flag']}`" if row["flag"] else "-"
                cells = [f"`{row['name']}`", flag, values(row), row["default"], row["help"]]
                text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("oriel")
    parser.add_argument("--out", type=pathlib.Path, default=PAGE)
    given = parser.parse_args()
    given.out.write_text(page(table([given.oriel])), encoding="utf-8")


if __name__ == "__main__":
    main()
