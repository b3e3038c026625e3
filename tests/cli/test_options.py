#!/usr/bin/env python3
"""Every option of the library's table is a flag, takes what its row allows and refuses the rest by its name:
test_options.py ORIEL_BINARY TEST_DATA_DIR
"""

import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import FIXED, SMALL, check, fails, has_fields, json_of, one_line_failure, oriel, run_tests

# A flag of another form.
OTHER = {"system_prompt"}
WRONG = {"bytes": "much", "count": "-1", "number": "x", "choice": "nonsense", "list": "1,,2"}


def rows():
    return json_of("options", "options")["options"]


def right(row):
    """Values that the row allows."""
    words = ["auto", "cpu"] if row["name"] == "device" else row.get("choices", [])
    if row["type"] == "bytes":
        return ["64MiB"]
    if row["type"] in ("count", "number"):
        return [f"{value:.0f}" for value in (row["least"], min(row["most"], 2 ** 32 - 1))] + words
    return words or {"list": ["1,0"], "file": ["missing.gguf"], "files": ["missing.gguf"], "text": ["early_stop"]}[row["type"]]


def test_rows():
    for row in rows():
        has_fields(row["name"], row, "name flag scope layer type default help")


def test_each_load_option_is_a_flag():
    for row in rows():
        if row["scope"] != "load" or row["name"] in OTHER or not row["flag"]:
            continue
        flag = "--" + row["flag"]
        for value in [None] if row["type"] == "flag" else right(row):
            done = oriel("plan", SMALL, *([flag] if value is None else [flag, value]),
                         *([] if row["name"] == "memory" else ["--memory", "64MiB"]))
            # The value may still be refused for its meaning: a missing file, or options that contradict each other.
            said = done.err.decode()
            check(f"{flag} {value} is read", not any(words in said for words in ("not allowed", "cannot be", "no option")), done)
        if row["type"] in WRONG:
            done = oriel("plan", SMALL, flag, WRONG[row["type"]])
            check(f"{flag} {WRONG[row['type']]} is refused by name", one_line_failure(done, 2)
                  and flag in done.err.decode() and not done.out, done)


def test_each_way_to_sample_is_a_flag():
    base = ["run", SMALL, "--prompt", "x", "--json", "--tokens", "2", *FIXED]
    for row in rows():
        if row["scope"] != "reply" or not row["flag"] or row["layer"] == "laboratory" or row["name"] == "max_tokens":
            continue
        flag = "--" + row["flag"]
        if row["type"] == "flag":
            check(f"{flag} is taken", oriel(*base, flag).code == 0)
        elif row["type"] in ("count", "number"):
            least = f"{row['least']:g}"
            check(f"{flag} {least} is taken", oriel(*base, flag, least).code == 0)
            wrong = oriel(*base, flag, "-11")
            check(f"{flag} -11 is refused by name", one_line_failure(wrong, 2) and flag in wrong.err.decode(), wrong)


def test_errors_of_the_library_name_the_flag():
    both = fails("two that contradict each other", 1, "plan", SMALL, "--recall", "1MiB", "--prefix-tokens", "12")
    check("as it is typed", "--recall" in both.err.decode() and '"retrieval"' not in both.err.decode(), both)
    large = fails("a size beyond the row's", 2, "plan", SMALL, "--transcript", "2GiB")
    check("is refused by its flag", "--transcript" in large.err.decode() and '"transcript"' not in large.err.decode(), large)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
