#!/usr/bin/env python3
"""Writes the pages of docs/reference/ that come from the program: options.md from the library's table of options,
commands.md from the help of each command, and models.md from the list of published models.

    python3 scripts/options_page.py build/release/apps/oriel [--out FOLDER]

Needs only the standard library. tests/docs/test_cli_page.py fails while a page differs from what this writes.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess

os.environ["ORIEL_CONFIG"] = ""  # ignore the user's config file


FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs/reference"
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
- choice: a word of the list, in any case
- flag: `true` or `false`
- text, file: any text
- list: whole numbers, separated by commas

The flag is the spelling of the program `oriel`. A dash: the program has no flag of that option.
"""
SCOPES = {"load": "Load options", "session": "Session options", "reply": "Reply options"}
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


COMMANDS = """# Options of the commands

`scripts/options_page.py` writes this page from `oriel COMMAND --help`: do not edit it by hand. [cli.md](../cli.md)
explains the commands and their output. [Options that several commands have](#options-that-several-commands-have) are
listed once, at the end. Every command accepts these; its help leaves out options without effect.
"""
SHARED = 3  # commands


def help_of(oriel, *command):
    return subprocess.run([*oriel, *command, "--help"], capture_output=True, text=True, check=True).stdout


def commands(oriel):
    part = help_of(oriel).split("\nCommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z]+)", part, re.M)


def entries(text):
    """[(group, option, meaning)] of a help text."""
    found, group = [], None
    for line in text.splitlines():
        heading = re.match(r"([A-Z][a-z ]+):$", line)
        option = re.match(r"  ((?:-\w, )?--\S.*?)(?:   *(.*))?$", line)
        if heading or not line:
            group = heading.group(1) if heading else None
        elif group and option:
            found.append([group, option.group(1), option.group(2) or ""])
        elif group and found and re.match(r" {20}", line) and found[-1][0] == group:
            found[-1][2] += " " + line.strip()
    return [(group, option, meaning.strip()) for group, option, meaning in found]


def rows_of(entries_of_a_table):
    rows = [(f"`{option}`", meaning) for option, meaning in entries_of_a_table]
    return "\n| option | |\n|---|---|\n" + "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def commands_page(helps):
    parsed = {name: [entry for entry in entries(text) if not entry[1].startswith("--help")]
              for name, text in helps.items()}
    count = {}
    for found in parsed.values():
        for entry in found:
            count[entry] = count.get(entry, 0) + 1
    text = COMMANDS
    for name, found in parsed.items():
        lines = helps[name].splitlines()
        usage = next(line.removeprefix("Usage: ") for line in lines if line.startswith("Usage: "))
        text += f"\n## {name}\n\n{lines[0]}.\n\n    {usage}\n"
        own = [entry[1:] for entry in found if count[entry] < SHARED]
        groups = list(dict.fromkeys(entry[0] for entry in found if count[entry] >= SHARED))
        if own:
            text += rows_of(own)
        text += f"\nShared: {', '.join(groups)}.\n"
    text += "\n## Options that several commands have\n"
    shared = [entry for entry in count if count[entry] >= SHARED]
    for group in dict.fromkeys(entry[0] for entry in shared):
        text += f"\n### {group}\n" + rows_of([entry[1:] for entry in shared if entry[0] == group])
    return text


MODELS = """# Published models

`scripts/options_page.py` writes this page from `oriel models --markdown`: do not edit it by hand.
[models.md](../models.md#memory-of-a-model) explains the columns.

"""


def models_page(oriel):
    return MODELS + subprocess.run([*oriel, "models", "--markdown"], capture_output=True, text=True, check=True).stdout


def pages(oriel):
    """{name of a page: its text}"""
    return {"options.md": page(table(oriel)),
            "commands.md": commands_page({name: help_of(oriel, name) for name in commands(oriel)}),
            "models.md": models_page(oriel)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("oriel")
    parser.add_argument("--out", type=pathlib.Path, default=FOLDER)
    given = parser.parse_args()
    for name, text in pages([given.oriel]).items():
        (given.out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
