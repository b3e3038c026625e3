#!/usr/bin/env python3
"""Text for people fits the terminal, 80 and 40 columns wide, and names of files and strings from a model cannot forge rows
or control it: test_output.py ORIEL_BINARY TEST_DATA_DIR
"""

import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from at_terminal import AtTerminal, Screen, no_terminals, width_of
from program import BUNDLED, CPU, FIXED, SMALL, check, environment, json_of, oriel, run_tests, scratch, succeeds

COMMANDS = "chat run plan bench eval calibrate info tokenize render parse embed models pull rm devices doctor".split()


def shown(columns, *args):
    """The screen after a command that ends."""
    terminal = AtTerminal(*args, columns=columns, COLUMNS="")
    code = terminal.ended()
    check(f"{columns} columns, {args}: nothing that a terminal might not know", not terminal.screen.unknown,
          terminal.screen.unknown)
    terminal.forget()
    return code, terminal.screen


def longest_word(text):
    return max((sum(map(width_of, word)) for word in text.split()), default=0)


def fits(columns, *args):
    """No line was broken by the terminal, but inside words that are longer than it is wide (paths)."""
    code, screen = shown(columns, *args)
    lines = screen.lines()
    for row in sorted(screen.soft):
        whole = lines[row] + lines[row + 1]
        if longest_word(whole) <= columns - 1:
            check(f"{columns} columns: `oriel {' '.join(map(str, args))}` fits", False, whole)
            return code, screen
    check(f"{columns} columns: `oriel {' '.join(map(str, args))}` fits", screen.text().strip() != "",
          screen.text())
    return code, screen


def words(text):
    return text.split()


def test_results_fit():
    if no_terminals():
        return
    # test_bench.py covers 80 columns. plan uses the rates measured there.
    fits(40, "bench", SMALL, "--prefill", "8", "--decode", "8", "--repeat", "1", *FIXED)
    for columns in (80, 40):
        fits(columns, "plan", BUNDLED, "--memory", "16MiB")
        fits(columns, "plan", BUNDLED, "--memory", "16MiB", "--explain")
        fits(columns, "chat", "-h")
        fits(columns, "chat", "--list")
        fits(columns, "plan", SMALL, "--memory", "12MiB", *CPU)
        fits(columns, "plan", BUNDLED, "--memory", "1MiB")
        fits(columns, "plan", "--arch", "gemma-3-1b", "--memory", "1GiB")
        fits(columns, "plan", "--arch", "deepseek-v3", "--memory", "1GiB")
        fits(columns, "plan", "--list")
        fits(columns, "info", BUNDLED)
        fits(columns, "models")
        fits(columns, "models", "gemma-4-e2b")
        fits(columns, "devices")
        fits(columns, "doctor", "--no-timing", *CPU)
        fits(columns, "eval", SMALL, "--text", text_file(), "--max-tokens", "40", *FIXED)


def text_file():
    path = scratch / "text.txt"
    path.write_text("One day a fox met a bear in the wood, and they talked until the sun went down. " * 8)
    return path


def test_help_fits():
    if no_terminals():
        return
    for columns in (80, 40):
        fits(columns, "--help")
        for command in COMMANDS:
            fits(columns, command, "--help")


def test_errors_fit_and_stay_one_line_for_scripts():
    if no_terminals():
        return
    wrong = [["plan", SMALL, "--memory", "1"], ["chat", SMALL, "--kv", "k9v9"], ["info", "no-such-file.gguf"],
             ["plan", "--plot", "x.png"], ["eval", SMALL, "--logits-out"]]
    for args in wrong:
        for columns in (80, 40):
            code, _ = fits(columns, *args)
            check(f"{args} fails", code != 0)
        error = oriel(*args).err.decode()
        check(f"{args}: one line off a terminal", error.count("\n") == 1, error)


def test_a_width_changes_no_word():
    if no_terminals():
        return
    wide = words(shown(200, "plan", BUNDLED, "--memory", "1MiB")[1].whole())
    narrow = words(shown(40, "plan", BUNDLED, "--memory", "1MiB")[1].whole())
    # Bars are as long as there is room.
    plain = [[w for w in each if not re.search("[▏▎▍▌▋▊▉█]", w)] for each in (wide, narrow)]
    differ = [pair for pair in zip(*plain) if pair[0] != pair[1]][:3]
    check("the same words at 200 and at 40 columns", plain[0] == plain[1], differ)
    listed = succeeds("a list of shapes", "plan", "--list").out.decode()
    check("off a terminal tables are 80 columns wide", 70 < max(map(len, listed.splitlines())) <= 80,
          max(map(len, listed.splitlines())))
    names = [shape["name"] for shape in json.loads(oriel("plan", "--list", "--json").out)["shapes"]]
    narrow = shown(40, "plan", "--list")[1].lines()
    check("a narrow list has every shape", all(any(line.split()[:1] == [name] for line in narrow) for name in names))


def test_a_chat_fits():
    if no_terminals():
        return
    for columns in (80, 40):
        chat = AtTerminal("chat", BUNDLED, "--greedy", "--tokens", "4", "--window", "64", *FIXED, columns=columns)
        check(f"{columns} columns: greets", chat.until(chat.at_prompt), chat.screen.text())
        chat.send("Hello!")
        for line in ("/help", "/stats", "/cache", "/undo", "/undo", "/reset", "/cache x.png",
                     "/load there-is-no-such-file"):
            chat.send(line)
            chat.keys("\x15")
        chat.send("/hepl")
        check(f"{columns} columns: a chat's own lines fit", not chat.screen.soft,
              [chat.screen.lines()[row] for row in sorted(chat.screen.soft)])
        chat.close()
        chat.forget()


def test_wide_characters_count_twice():
    screen = Screen(10)
    screen.feed("漢字漢字漢字".encode())
    check("the screen of these tests knows it", screen.lines() == ["漢字漢字漢", "字"], screen.lines())
    if no_terminals():
        return
    folder = scratch / ("漢字" * 4)
    folder.mkdir(exist_ok=True)
    fits(40, "info", folder / "no file.gguf")


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
