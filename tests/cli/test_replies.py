#!/usr/bin/env python3
"""The look of replies, and the files that chats write: test_replies.py ORIEL_BINARY TEST_DATA_DIR"""

import base64
import json
import os
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import BUNDLED, CPU, check, environment, fails, oriel, run_tests, scratch, succeeds

FEW = ["--memory", "64MiB", "--greedy", *CPU]
STYLED = {"NO_COLOR": "", "LC_ALL": "C.UTF-8"}


def grammar_of(text, name="said.gbnf"):
    """A reply that is this text."""
    path = scratch / name
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    path.write_text(f'root ::= "{quoted}"\n', "utf-8")
    return path


def shown(text, *options, columns=40, **env):
    """The bytes that a terminal receives for a reply, and its lines."""
    run = AtTerminal("run", BUNDLED, "Hi", "--memory", "64MiB", "--tokens", "900", "--grammar", grammar_of(text), *CPU,
                     *options, columns=columns, **env)
    check("it ends well", run.ended() == 0, run.raw)
    raw, lines, soft = run.raw.decode().replace("\r\n", "\n"), run.screen.lines(), run.screen.soft
    check("styles are reset at the end", not run.screen.shade, raw)
    run.forget()
    return raw, lines, soft


def chat_at(*args, home=None, **env):
    chat = AtTerminal("chat", BUNDLED, *FEW, *(() if "--tokens" in args else ("--tokens", "12")), *args, **{"HOME": str(home or scratch), **env})
    check("greets", chat.until(chat.at_prompt), chat.screen.text())
    return chat


def leave(chat):
    check("leaves", chat.close() == 0)
    chat.forget()


def test_replies_are_wrapped_between_words():
    if no_terminals():
        return
    text = "The quick brown fox jumps over the lazy dog and runs away into the woods, where nobody finds it again."
    for columns in (40, 80, 200):
        raw, lines, soft = shown(text, columns=columns)
        check(f"{columns}: the terminal breaks nothing", not soft and " ".join(" ".join(lines).split()) == text, lines)
        check(f"{columns}: lines are filled", all(len(line) <= columns for line in lines)
              and (columns > 100 or len(lines[0]) > columns - 12), lines)
    raw, lines, soft = shown(text, "--no-wrap")
    check("--no-wrap leaves it to the terminal", raw == text + "\n" and soft, raw)
    raw, _, soft = shown(text, TERM="dumb")
    check("dumb terminals, too", "\x1b" not in raw and not soft, raw)
    wide = "日本語の文章には空白がないので、どこでも改行できます。" * 2
    raw, lines, soft = shown(wide)
    check("scripts without spaces are broken anywhere", not soft and "".join(lines) == wide, lines)
    long_word = "x" * 90 + " end"
    raw, lines, _ = shown(long_word)
    check("a word that is too long stays whole", "x" * 90 in raw, raw)
    piped = succeeds("a pipe", "run", BUNDLED, "Hi", *FEW, "--tokens", "900", "--grammar", grammar_of(text))
    check("in a pipe nothing is changed", piped.out.decode() == text + "\n", piped)


def test_markdown_is_shown():
    if no_terminals():
        return
    raw, lines, _ = shown("# Title\nSome **bold text** and `code`.\n", **STYLED)
    check("a heading", "\x1b[1mTitle\x1b[0m" in raw, raw)
    check("bold text and code", "\x1b[1mbold text\x1b[0m and \x1b[36mcode\x1b[0m." in raw, raw)
    check("their marks are gone", lines[:2] == ["Title", "Some bold text and code."], lines)
    raw, lines, _ = shown("- an item that is longer than forty columns are\n  - inner\n12. a number", **STYLED)
    check("items hang", lines[:4] == ["• an item that is longer than forty", "  columns are", "  • inner", "12. a number"], lines)
    raw, lines, _ = shown("```c\nint  main(void) { return 0; } // longer than forty\n```\nafter **it**", **STYLED)
    check("code stays as it is", "int  main(void) { return 0; } // longer than forty\x1b[0m" in raw.replace("\n", "\n"), raw)
    check("and ends", "after \x1b[1mit\x1b[0m" in raw, raw)
    table = "| a | b |\n|---|---|\n| **1** | " + "long " * 12 + "|"
    raw, _, _ = shown(table, **STYLED)
    check("tables are unchanged", table in raw, raw)
    for text in ("2 ** 3 ** 4", "**never closed", "a `tick", "x**2 and y**2", "****", "``", "*emphasis* stays", "#tag",
                 "1.5 and -x", "`" * 2 + " ` " + "`" * 3, "__init__"):
        raw, lines, _ = shown(text, **STYLED)
        check(f"no Markdown: {text}", "\n".join(lines).strip() == text, (raw, lines))
    text = "# Title with **bold** and `code`"
    for options, env in (("--plain",), STYLED), ((), {"NO_COLOR": "1"}), ((), {**STYLED, "TERM": "dumb"}):
        raw, _, _ = shown(text, *options, **env)
        check(f"as it is written: {options} {env}", raw == text + "\n", raw)
    raw, lines, _ = shown("- item", NO_COLOR="", LC_ALL="C")
    check("no bullets where the locale has none", lines[0] == "- item", lines)


def test_the_prompt_and_the_end_reset_styles():
    if no_terminals():
        return
    chat = chat_at(**STYLED)
    chat.send("Hello!")
    chat.keys("typed")
    check("what is typed is not bold", not chat.screen.shade, chat.raw)
    leave(chat)
    check("nor is what comes after", b"\x1b[1m" in chat.raw and not chat.screen.shade, chat.raw)


def test_bars_are_left_out_where_they_are_no_pictures():
    if no_terminals():
        return
    for env, drawn in (({"LC_ALL": "C.UTF-8"}, True), ({"LC_ALL": "C"}, False), ({"LC_ALL": "C.UTF-8", "TERM": "dumb"}, False)):
        plan = AtTerminal("plan", BUNDLED, "--memory", "16MiB", **env)
        plan.ended()
        check(f"plan {env}", ("█" in plan.raw.decode()) == drawn and b"8.6 MiB" in plan.raw, plan.raw)
        plan.forget()
        chat = chat_at("--no-save", **env)
        chat.send("Hello!")
        shown = chat.send("/cache")
        check(f"/cache {env}", ("▕" in shown) == drawn and "4 sinks" in shown, shown)
        leave(chat)


def test_copy():
    if no_terminals():
        return
    text = "**Bold** and a line that is far longer than the forty columns of this terminal"
    chat = chat_at("--grammar", grammar_of(text), "--tokens", "200", columns=40)
    check("nothing yet", "No reply to copy" in chat.send("/copy") or "No reply" in chat.screen.text())
    chat.send("Hi")
    chat.send("/copy")
    wanted = b"\x1b]52;c;" + base64.b64encode(text.encode()) + b"\x07"
    check("the reply as it was written", wanted in chat.raw, chat.raw)
    chat.close()
    chat.forget()


def test_blocks_files_and_editors():
    if no_terminals():
        return
    note = scratch / "note.txt"
    note.write_text("The cat is called Tom.\n")
    editor = scratch / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "%s, edited\\n" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o700)
    chat = chat_at(EDITOR=str(editor), VISUAL="")
    for line in ('"""My name', "is Ada."):
        chat.keys(line + "\r")
    check("a block asks for more", chat.screen.lines()[-1].startswith("..."), chat.screen.text())
    chat.send('"""')
    check("it is one message", "so far" in chat.send("/stats") and "Took back" in chat.send("/undo")
          and "No message" in chat.send("/undo"), chat.screen.text())
    check("/read says so", "goes with your next message" in " ".join(chat.send(f"/read {note}").split()), chat.screen.text())
    check("a file that is not there", "cannot be read" in " ".join(chat.send("/read /nothing").split()), chat.screen.text())
    chat.send("What is the cat called?")
    chat.send("/clear")
    chat.keys("draft\x18\x05")
    check("Ctrl-X Ctrl-E edits", chat.until(lambda: chat.typed() == "draft, edited"), chat.screen.text())
    chat.keys("\x15/edit\r")
    check("/edit, too", chat.until(lambda: chat.typed() == ", edited"), chat.screen.text())
    chat.keys("\x15")
    check("/? is /help", "/retry" in chat.send("/?"), chat.screen.text())
    chat.keys("/bye\r")
    check("/bye leaves", chat.ended() == 0)
    chat.forget()


def saved_in(home):
    return sorted((home / ".local" / "share" / "oriel" / "chats").glob("*"))


def test_chats_are_saved():
    if no_terminals():
        return
    home = scratch / "saves"
    home.mkdir()
    env = {"home": home, "XDG_DATA_HOME": ""}
    chat = chat_at(**env)
    check("the first says so", "--no-save" in " ".join(chat.screen.text().split()), chat.screen.text())
    chat.send("My name is Ada.")
    leave(chat)
    files = saved_in(home)
    check("one file, for the user alone", len(files) == 1 and files[0].stat().st_mode & 0o777 == 0o600
          and files[0].parent.stat().st_mode & 0o777 == 0o700, files)
    kept = json.loads(files[0].read_text())
    check("with the messages as text", [m["role"] for m in kept["messages"]] == ["user", "assistant"]
          and kept["messages"][0]["content"] == "My name is Ada.", kept)
    chat = chat_at("--continue", **env)
    check("the second does not say it", "--no-save" not in " ".join(chat.screen.text().split()), chat.screen.text())
    check("the last turns are shown", "> My name is Ada." in chat.screen.text() and "Loaded" in chat.screen.text(), chat.screen.text())
    check("and known", "Ada" in chat.send("What is my name?"), chat.screen.text())
    leave(chat)
    check("it goes on in the same file", saved_in(home) == files and len(json.loads(files[0].read_text())["messages"]) == 4)
    chat = chat_at(**env)
    chat.send("Hello!")
    leave(chat)
    listed = succeeds("--list", "chat", "--list", env=environment(HOME=str(home), XDG_DATA_HOME="")).out.decode()
    check("the newest is first", "Hello!" in listed.splitlines()[1] and "My name is Ada." in listed.splitlines()[2], listed)
    chat = chat_at("--continue=2", **env)
    check("by its number", "What is my name?" in chat.screen.text(), chat.screen.text())
    leave(chat)
    before = len(saved_in(home))
    for options, more in ((["--no-save"], {}), ([], {"ORIEL_NO_SAVE": "1"}), (["--json"], {})):
        chat = AtTerminal("chat", BUNDLED, *FEW, "--tokens", "12", *options, **{"HOME": str(home), "XDG_DATA_HOME": "", **more})
        chat.until(chat.at_prompt)
        chat.send("Not this.")
        leave(chat)
        check(f"not with {options} {more}", len(saved_in(home)) == before, saved_in(home))
    oriel("chat", BUNDLED, *FEW, stdin=b"Nor this.\n", env=environment(HOME=str(home), XDG_DATA_HOME=""))
    check("nor through a pipe", len(saved_in(home)) == before, saved_in(home))
    for i in range(210):
        path = files[0].parent / f"2001{i:04}-000000.json"
        path.write_text('{"messages": []}')
        os.utime(path, (1e9 + i, 1e9 + i))
    chat = chat_at(**env)
    chat.send("One more.")
    leave(chat)
    names = [path.name for path in saved_in(home)]
    check("the oldest are removed", len(names) == 200 and files[0].name in names and "20010000-000000.json" not in names, len(names))
    nothing = fails("nothing to continue", 2, "chat", "--continue", env=environment(HOME=str(scratch / "nobody"), XDG_DATA_HOME=""))
    check("says so", b"saved" in nothing.err, nothing)


def test_history_is_kept_by_option():
    if no_terminals():
        return
    home = scratch / "remembers"
    home.mkdir()
    for options, wanted in (([], ""), (["--history"], ""), (["--history"], "Hello 1"), ([], "")):
        chat = chat_at(*options, home=home, XDG_DATA_HOME="")
        chat.keys("\x1b[A")
        check(f"Up in a new chat {options}", chat.until(lambda: chat.typed() == wanted, 5), (chat.typed(), wanted))
        chat.keys("\x15")
        if options and not wanted:
            chat.send("Hello 1")
        leave(chat)
    path = home / ".local" / "share" / "oriel" / "history"
    check("in a file of the user's", path.stat().st_mode & 0o777 == 0o600 and "Hello 1" in path.read_text(), path)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
