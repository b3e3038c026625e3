#!/usr/bin/env python3
"""Text for people fits the terminal, 80 and 40 columns wide: test_width.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import re
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, CPU, FIXED, SMALL, check, oriel, run_tests, scratch, succeeds
from at_terminal import AtTerminal, no_terminals
from screen import Screen, width_of

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


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
