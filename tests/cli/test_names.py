#!/usr/bin/env python3
"""Names of files and strings from a model cannot forge rows or control the terminal: test_names.py ORIEL_BINARY
TEST_DATA_DIR"""

import os
import re
import shutil
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from at_terminal import AtTerminal, no_terminals
from program import BUNDLED, FIXED, SMALL, check, environment, json_of, run_tests, scratch, succeeds

# Escape sequences, a newline, C1 control characters, a sequence that becomes one after removal of the character inside
# it, and line separators.
EVIL = b"\x1b[31mred\x1b]0;title\x07\nforged\t\xc2\x9b2J\xc2\xc2\x85\x9b7m\xc2\x85\xe2\x80\xa8\xe2\x80\xa9"
HARMLESS = "[31mred]0;title forged 2J\ufffd\ufffd7m  "
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def is_clean(text):
    return not CONTROLS.search(text.decode("utf-8"))


def place(name):
    """A folder with a model of that name."""
    folder = scratch / "named"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(BUNDLED, os.fsencode(folder) + b"/" + name)
    return folder


def said(name, old, new, source=BUNDLED):
    """A model that says something else of itself, in as many bytes."""
    assert len(old) == len(new)
    model = scratch / name
    whole = source.read_bytes()
    assert old in whole
    model.write_bytes(whole.replace(old, new))
    return model


def test_models_that_are_here():
    folder = place(EVIL + b".gguf")
    result = succeeds("models --local", "models", "--local", env=environment(ORIEL_MODELS=str(folder)))
    lines = result.out.decode("utf-8").split("\n")
    check("a title, a row and its path", len(lines) == 4 and is_clean(result.out), result)
    check("the name is whole but for what it must not have", lines[1].startswith(HARMLESS), lines)
    rows = json_of("JSON", "models", "--local", env=environment(ORIEL_MODELS=str(folder)))["models"]
    check("JSON is exact", rows[0]["id"] == EVIL.decode("utf-8", "replace"), rows)
    empty = scratch / "no\n\x1b[31mmodels"
    result = succeeds("no models", "models", "--local", env=environment(ORIEL_MODELS=str(empty)))
    check("no models: the folder is one of words", is_clean(result.out)
          and "in {} yet".format(str(empty).replace("\n", " ").replace("\x1b", ""))
          in " ".join(result.out.decode("utf-8").split("\n")), result)


def test_a_file_of_such_a_name():
    model = os.fsdecode(os.fsencode(place(EVIL + b".gguf")) + b"/" + EVIL + b".gguf")
    for command, *options in (["info"], ["plan"], ["plan", "--memory", "1MiB"]):
        result = program.oriel(command, model, *options)
        text = result.out + result.err
        check(f"{command} {options}: no control characters", is_clean(text), result)
        check(f"{command} {options}: the name is on one line", HARMLESS.strip() in text.decode("utf-8"), result)


def test_what_a_model_says_of_itself():
    honest = succeeds("info of the model", "info", BUNDLED).out.decode("utf-8").split("\n")
    for what, old, new, shown in (("name", b"Oriel Tiny", b"\x1b[m\nlic\xc2\x9bm", "[m licm"),
                                  ("licence", b"apache-2.0", b"A\nruns  no", "A runs  no"),
                                  ("licence", b"apache-2.0", b"M\xe2\x80\xa8\tIT \x1b[", "M  IT [")):
        model = said("evil.gguf", old, new)
        result = succeeds(f"info: {what}", "info", model)
        lines = result.out.decode("utf-8").split("\n")
        check(f"info: {what} is one row", len(lines) == len(honest) and is_clean(result.out)
              and any(line.startswith(what) and line.endswith("  " + shown) for line in lines), result)
        fields = json_of(f"info: {what} in JSON", "info", model)
        check(f"info: {what} is exact in JSON", new.decode() in fields.values(), fields)
    result = succeeds("info: architecture", "info", said("evil.gguf", b"llama", b"\x1b[m\na", SMALL))
    check("info: an architecture is one row", is_clean(result.out)
          and result.out.decode("utf-8").split("\n")[2].startswith("architecture   [m a"), result)


def test_a_chat_greets_in_two_lines():
    if no_terminals():
        return
    chat = AtTerminal("chat", said("evil.gguf", b"Oriel Tiny", b"\x1b[3m\nfake>"), *FIXED, TERM="dumb")
    greets = chat.until(chat.at_prompt)
    lines = chat.screen.lines()
    check("the name is in the first line, without an escape",
          greets and lines[0].startswith("[3m fake> on") and b"\x1b" not in chat.raw, chat.raw)
    kept = scratch / "kept.bin"
    chat.send(f"/save {kept}")
    chat.close()
    chat.forget()
    text = succeeds("info of what was kept", "info", kept).out
    check("info of what was kept: its model is one row",
          is_clean(text) and re.search(b"\nmodel .*fake> [(]", text), text)


def test_what_shows_nothing_is_an_escape_on_a_terminal():
    if no_terminals():
        return
    heart = "\u2764\ufe0f\u200dx".encode()
    for name, shown in ("A\u202eB\u200bCD", b"A\\u202eB\\u200bCD"), ("A\u00adB\u2066\ufeff", b"A\\u00adB\\u2066\\ufeff"), \
                       ("\U000e0041\u200d\u200d", b"\\udb40\\udc41\\u200d\\u200d"), \
                       ("A\ufe0f\ufe0fBCD", b"A\xef\xb8\x8f\\ufe0fBCD"), ("\u2764\ufe0f\u200dx", heart):
        model = said("hidden.gguf", b"Oriel Tiny", name.encode())
        for options in [], ["--json"]:
            terminal = AtTerminal("info", model, *options, TERM="dumb")
            code = terminal.ended()
            check(f"{name!a}: at a terminal {options}", code == 0 and shown in terminal.raw, terminal.raw)
            terminal.forget()
        piped = succeeds(f"{name!a}: in a pipe", "info", model)
        check(f"{name!a}: is kept in a pipe", name.encode() in piped.out, piped)
        check(f"{name!a}: is kept in JSON", json_of("JSON", "info", model)["name"] == name)


def test_progress_on_a_dumb_terminal():
    if no_terminals():
        return
    terminal = AtTerminal("bench", SMALL, *FIXED, "--window", "64", "--prefill", "1", "--decode", "2", "--repeat", "1",
                          "--sustain", "0.02", TERM="dumb")
    code = terminal.ended()
    check("TERM=dumb: no escapes", code == 0 and b"\x1b" not in terminal.raw, terminal.raw)
    terminal.forget()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
