#!/usr/bin/env python3
"""Typing in a chat at a terminal, as docs/cli.md promises it: test_typing.py ORIEL_BINARY TEST_DATA_DIR"""

import os
import signal
import sys
import termios
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import DATA, FIXED, SMALL, check, run_tests, scratch
from at_terminal import AtTerminal, no_terminals

LEFT, RIGHT, UP, DOWN, DELETE = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B", "\x1b[3~"
HOME, END, ALT_ENTER = "\x1b[H", "\x1b[F", "\x1b\r"
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
SHORT = ["--tokens", "2", "--greedy", *FIXED]
ENDLESS = DATA / "models" / "gemma3.gguf"  # its replies never end
LONG = ["--tokens", "1000000", "--greedy", "--threads", "1", *FIXED]


def no_editor():
    """True, and a visible skip, where lines cannot be edited: no terminals, or no libedit."""
    if no_terminals():
        return True
    chat = AtTerminal("chat", SMALL, *SHORT)
    chat.until(chat.at_prompt)
    edits = 2004 in chat.screen.modes
    chat.close()
    if edits:
        return False
    if os.environ.get("ORIEL_TEST_LINE_EDITOR") == "1":
        check("built with libedit, lines are edited with it", False, chat.raw)
    else:
        check("SKIPPED: built without libedit, or it is not installed", True)
    return True


def chat_at(columns=80, *options, model=SMALL, rows=24, **env):
    chat = AtTerminal("chat", model, *(options or SHORT), columns=columns, rows=rows, **env)
    check("a chat greets", chat.until(chat.at_prompt), chat.screen.text())
    return chat


def turns_of(chat):
    turns = 0
    while "Took back" in chat.send("/undo"):
        turns += 1
    return turns


def shows(chat, name, wanted):
    check(name, chat.until(lambda: chat.typed() == wanted, 5), (chat.typed(), wanted))


def left_as_it_was(chat, name):
    check(f"{name}: the terminal is as it was before", chat.modes() == chat.usual, (chat.modes(), chat.usual))
    check(f"{name}: pastes are no longer marked", 2004 not in chat.screen.modes)
    check(f"{name}: nothing was sent that a terminal might not know", not chat.screen.unknown, chat.screen.unknown)


def test_keys_edit_the_line():
    if no_editor():
        return
    chat = chat_at()
    chat.keys("hello wold" + LEFT * 2 + "r" + END + "s")
    shows(chat, "arrows and End", "hello worlds")
    chat.keys("\x01X\x05Y" + HOME + DELETE)
    shows(chat, "Ctrl-A, Ctrl-E, Home and Delete", "hello worldsY")
    chat.keys("\x05\x17\x7f")
    shows(chat, "Ctrl-W takes a word", "hello")
    chat.keys(" again" + LEFT * 6 + "\x0b")
    shows(chat, "Ctrl-K takes the rest", "hello")
    chat.keys(" more\x1bb\x1bbBIG ")
    shows(chat, "Alt-B goes back by words", "BIG hello more")
    chat.keys(END + "\x15")
    shows(chat, "Ctrl-U takes all before the cursor", "")
    chat.keys("\x19")
    shows(chat, "Ctrl-Y brings it back", "BIG hello more")
    chat.keys("\x1b[15~\x1b[1;2P\x1bOS\x1b[99;5u")
    shows(chat, "keys that mean nothing write nothing", "BIG hello more")
    chat.keys("\x0c")
    shows(chat, "Ctrl-L clears the screen and keeps the line", "BIG hello more")
    check("the screen is clear", chat.screen.lines()[0] == "> BIG hello more", chat.screen.text())
    check("leaves", chat.close() == 0)
    left_as_it_was(chat, "Ctrl-D")


def test_wide_characters():
    if no_editor():
        return
    for locale in ({"LANG": "", "LC_ALL": ""}, {"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}):
        chat = chat_at(40, **locale)
        chat.keys("日本語 é🎉x")
        shows(chat, f"wide characters {locale}", "日本語 é🎉x")
        chat.keys("\x7f\x7f")
        shows(chat, f"an emoji is gone after one backspace {locale}", "日本語 é")
        chat.keys("\x7f" * 3 + LEFT + "を")
        shows(chat, f"one is put in between {locale}", "日を本")
        chat.keys("\x15\x0b" + "漢" * 30)
        check(f"they wrap at the width {locale}", chat.screen.lines()[-2:] == ["> " + "漢" * 19, "漢" * 11],
              chat.screen.text())
        chat.keys("\x7f" * 12)
        shows(chat, f"and back {locale}", "漢" * 18)
        stats = chat.send("\x15/stats")
        check(f"numbers keep their point {locale}", "." in stats.split("memory")[1].split("in")[0], stats)
        chat.close()


def test_history():
    if no_editor():
        return
    chat = chat_at()
    for line in ("first words", "second words"):
        chat.send(line)
    chat.keys("unsent" + UP)
    shows(chat, "Up brings the last message", "second words")
    chat.keys(UP + "!")
    shows(chat, "and the one before it, to be edited", "first words!")
    chat.keys(DOWN + DOWN)
    shows(chat, "Down comes back to what was being typed", "unsent")
    chat.keys(UP + UP)
    shows(chat, "what was edited on the way is still so", "first words!")
    chat.keys("\x03")
    shows(chat, "Ctrl-C clears the line", "")
    chat.keys(UP)
    shows(chat, "and the history has it", "first words!")
    chat.keys("\x15\x12seco")
    check("Ctrl-R finds", chat.screen.lines()[-1] == "(search: seco) second words", chat.screen.text())
    chat.keys("\x07")
    shows(chat, "Ctrl-G ends the search", "")
    chat.keys("\x12words\x12" + END + "?")
    shows(chat, "Ctrl-R again finds an older one, and another key ends it", "second words?")
    check("nothing was written to disk", not list(scratch.rglob("history*")), list(scratch.iterdir()))
    chat.close()


def test_messages_of_several_lines():
    if no_editor():
        return
    chat = chat_at()
    chat.keys("one" + ALT_ENTER + "two\nthree\\\rfour")
    shows(chat, "Alt-Enter, Ctrl-J and a backslash before Enter begin a line", "one\ntwo\nthree\nfour")
    chat.keys(UP + UP + "\x05" + "!" + "\x01" + "?")
    shows(chat, "Up moves in it, Ctrl-A and Ctrl-E in its line", "one\n?two!\nthree\nfour")
    chat.send("")
    check("it is one message", turns_of(chat) == 1)
    chat.keys(UP + UP)
    check("the history has it whole", "three" in chat.typed(), chat.typed())
    chat.close()


def paste(text):
    return PASTE_BEGINS + text + PASTE_ENDS


def test_pastes():
    if no_editor():
        return
    chat = chat_at()
    # Terminals send line ends as Enter.
    chat.keys("See: " + paste("/undo\r/reset now\n\x1b[31mred\x1b[0m \x07\x1b]0;title\x07\x08\x9b2Jtext\r\nend"))
    shows(chat, "a paste is text, whatever is in it", "See: /undo\n/reset now\nred 2Jtext\nend")
    chat.keys("\x03")
    chat.keys(paste("/reset\rand more"))
    check("nothing of it was done", chat.typed() == "/reset\nand more", chat.screen.text())
    answer = chat.send("")
    check("a paste that begins with a slash is a message", " tok" in answer and turns_of(chat) == 1, answer)
    chat.keys(paste("/quit"))
    shows(chat, "one that looks like a command waits for Enter", "/quit")
    chat.keys("\x03")
    long_line = " ".join(f"w{i}" for i in range(3000))
    chat.keys(paste(long_line))
    check("a line above 4095 bytes stands there by name",
          chat.until(lambda: chat.typed() == f"[paste 1: {len(long_line)} characters]"), chat.typed())
    answer = chat.send("")
    check("and is sent whole", " tok" in answer and "so far       1" in chat.send("/stats"), chat.screen.text())
    chat.send("/reset")
    chat.keys("a " + paste("\n".join(f"line {i}" for i in range(100))) + " z")
    shows(chat, "many lines stand there by name", "a [paste 2: 100 lines] z")
    chat.keys(LEFT * 2 + "\x7f")
    shows(chat, "which is deleted at once", "a  z")
    chat.keys("\x03")
    chat.keys(paste("x" * 5000 + PASTE_BEGINS))
    check("a paste in a paste is nothing special", chat.typed().startswith("[paste 3: 5000 char"), chat.typed())
    check("leaves", chat.close() == 0)
    left_as_it_was(chat, "after pastes")


def test_pastes_of_terminals_that_do_not_mark_them():
    if no_editor():
        return
    chat = chat_at()
    chat.keys("one\rtwo\rthree")
    shows(chat, "lines that come together are one message", "one\ntwo\nthree")
    chat.send("")
    check("which is sent as one", turns_of(chat) == 1)
    chat.close()


def test_slashes():
    if no_editor():
        return
    chat = chat_at()
    answer = chat.send("/hepl")
    check("an unknown command names the nearest", "Did you mean /help" in answer, answer)
    shows(chat, "and stands there to be mended", "/hepl")
    chat.keys("\x15")
    answer = chat.send("/reset the thing")
    check("a command that takes nothing is not done with something behind it", "takes no argument" in answer, answer)
    chat.keys("\x15")
    check("a path is no command", " tok" in chat.send("/usr/bin is what?"))
    check("a space before it sends a command", " tok" in chat.send(" /help"))
    check("so does a second slash", " tok" in chat.send("//help"))
    check("all were messages", turns_of(chat) == 3)
    chat.close()


def test_typed_ahead():
    if no_editor():
        return
    chat = chat_at(80, *LONG, model=ENDLESS)
    chat.keys("Tell me a story.\r", settle=False)
    marker = "typedahead"
    check("the reply runs", chat.until(lambda: len(chat.screen.lines()) > 8))
    before = len(chat.screen.lines())
    chat.keys(f"sent {marker}\runsent 日本{marker}", settle=False)
    time.sleep(0.5)
    chat.read(0.1)
    check("what is typed meanwhile is not in the reply", marker not in chat.screen.text(), chat.screen.text()[-300:])
    chat.keys("\x03", settle=False)
    check("Ctrl-C stops the reply", chat.until(lambda: "stopped" in chat.screen.text()), chat.screen.text()[-300:])
    shows(chat, "and all that was typed stands at the prompt", f"sent {marker}\nunsent 日本{marker}")
    check("nothing of it was sent", len(chat.screen.lines()) > before)
    chat.close()

    chat = chat_at(80, *LONG[2:], "--tokens", "4000", model=ENDLESS)
    chat.keys("Tell me a story.\r", settle=False)
    while len(chat.screen.lines()) < 8 and chat.read(5):
        pass  # no longer: the reply is to be running yet
    chat.keys("second" + LEFT + "X\r" + "third", settle=False)
    check("a line that was ended is sent when the reply is over", chat.until(lambda: chat.typed() == "third", 60),
          chat.screen.text())
    check("as it was edited", "> seconXd" in chat.screen.lines(), chat.screen.text())
    chat.close()


def test_stopped_and_continued():
    if no_editor():
        return
    chat = chat_at()
    chat.keys("half a")
    # The part of a shell: this test sends the signal, and the process group stays.
    for stop in (signal.SIGTSTP, signal.SIGSTOP):
        chat.send_signal(stop)
        chat.settle()
        check(f"{stop.name} stops it", chat.changed(5) == "stopped")
        if stop == signal.SIGTSTP:
            left_as_it_was(chat, "while it is stopped")
        else:
            termios.tcsetattr(chat.theirs, termios.TCSANOW, chat.usual)  # as shells do
        chat.send_signal(signal.SIGCONT)
        chat.settle()
        check("it goes on: pastes are marked", 2004 in chat.screen.modes)
    chat.keys(" line")
    check("what was typed is still there, and keys edit it", chat.screen.lines()[-1].endswith("> half a line"),
          chat.screen.text())
    chat.keys("\x15")
    answer = chat.send("/stats")
    check("Enter sends", "so far" in answer, answer)
    chat.close()
    left_as_it_was(chat, "after all")

    chat = chat_at(80, *LONG, model=ENDLESS)
    chat.keys("Tell me a story.\r", settle=False)
    check("the reply runs", chat.until(lambda: len(chat.screen.lines()) > 8))
    chat.keys("\x1a", settle=False)
    check("Ctrl-Z stops it", chat.changed(5) == "stopped")
    chat.settle()
    left_as_it_was(chat, "stopped in a reply")
    rows = len(chat.screen.lines())
    time.sleep(0.3)
    chat.send_signal(signal.SIGCONT)
    check("the reply goes on", chat.until(lambda: len(chat.screen.lines()) > rows + 2))
    chat.keys("typed", settle=False)
    time.sleep(0.3)
    check("without echo", "typed" not in chat.screen.text())
    chat.keys("\x03", settle=False)
    shows(chat, "and it stands at the prompt", "typed")
    chat.close()


def test_every_end_gives_the_terminal_back():
    if no_editor():
        return
    for end in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT):
        chat = chat_at()
        chat.keys("abc")
        chat.send_signal(end)
        check(f"{end.name} ends it", chat.ended() == -end)
        left_as_it_was(chat, end.name)
    chat = chat_at(80, *LONG, model=ENDLESS)
    chat.keys("Tell me a story.\r", settle=False)
    chat.until(lambda: len(chat.screen.lines()) > 8)
    chat.send_signal(signal.SIGSTOP)  # so that it can do nothing about the first two
    chat.changed(5)
    chat.keys("\x03", settle=False)
    chat.send_signal(signal.SIGCONT)
    chat.settle()
    chat.close()
    left_as_it_was(chat, "Ctrl-C again and again")
    failed = AtTerminal("chat", scratch / "no-such-file.gguf")
    check("a chat that cannot begin fails", failed.ended() == 1)
    left_as_it_was(failed, "a failure")


def test_resized():
    if no_editor():
        return
    chat = chat_at(80)
    chat.keys("some words that are here")
    chat.screen.columns = 30
    chat.resize(30)
    chat.settle()
    chat.keys(" and more of them")
    last = "".join(chat.screen.lines()[-2:])
    check("a line is wrapped at the new width", last.replace(" ", "").endswith("hereandmoreofthem"),
          chat.screen.text())
    check("and stands there once", chat.screen.text().count("some words") == 1, chat.screen.text())
    chat.close()


def test_resized_with_wide_characters():
    if no_editor():
        return
    chat = chat_at(100)
    chat.keys("日本語 and some more words, とても長い文, that fill more than a narrow line")
    for columns in (40, 120):
        chat.screen.columns = columns
        chat.resize(columns)
        chat.settle()
    chat.keys("\x01S")
    text = chat.screen.text().replace("\n", "")
    check("what is typed at the beginning stands there", "> S日本語 and some more words" in text, chat.screen.text())
    chat.close()


def test_stderr_is_a_file():
    if no_terminals():
        return
    chat = AtTerminal("chat", SMALL, *SHORT, "--no-save", stderr=scratch / "err.txt")
    chat.until(lambda: b"> " in chat.raw)
    chat.keys("Hello\r", settle=False)
    chat.until(lambda: chat.raw.count(b"> ") > 1)
    check("the prompt comes again behind a reply", chat.raw.count(b"> ") > 1, chat.raw)
    chat.keys("\x04", settle=False)
    check("it ends", chat.ended() == 0, chat.raw)
    check("notes are in the file", b"> " not in (scratch / "err.txt").read_bytes())


def test_ctrl_c_at_the_prompt():
    if no_editor():
        return
    chat = chat_at()
    chat.keys("something")
    chat.keys("\x03")
    shows(chat, "Ctrl-C clears the line", "")
    chat.keys("\x03")
    check("on an empty line it says how to leave", "Ctrl-C again" in chat.screen.text(), chat.screen.text())
    chat.keys("x")
    chat.keys("\x03")
    chat.keys("\x03")
    check("it leaves only twice in a row", chat.changed(0.5) is None)
    chat.keys("\x03", settle=False)
    check("then it leaves", chat.ended() == 0)
    left_as_it_was(chat, "Ctrl-C twice")


def test_only_the_prompt_is_bold():
    if no_editor():
        return
    for terminal in ("xterm-256color", "linux", "vt100"):
        chat = AtTerminal("chat", SMALL, *SHORT, TERM=terminal, NO_COLOR="")
        check(f"{terminal}: a prompt comes", chat.until(chat.at_prompt), chat.screen.text())
        screen = chat.screen
        check("the prompt is bold", b"\x1b[1m>" in chat.raw and screen.shaded.endswith(">"), chat.raw)
        check("and nothing behind it", not screen.shade, chat.raw)
        screen.shaded = ""
        chat.keys("some words")
        check("what is typed is not", not screen.shade and screen.shaded == "", chat.raw)
        chat.keys("\x12some")
        check("a search stands in the prompt's place",
              screen.lines()[-1].startswith("(not found: some) "), screen.text())
        chat.keys("\x07")
        shows(chat, "and goes again", "some words")
        check("with the prompt's shade", not screen.shade and set(screen.shaded) <= {">"}, chat.raw)
        chat.send("")
        check("nor is a reply", not screen.shade, chat.raw)
        screen.shaded = ""
        chat.keys("more")
        check("nor what is typed after it", not screen.shade and screen.shaded == "", chat.raw)
        check("the chat ends", chat.close() == 0)
        check("and leaves the terminal without a shade", not screen.shade, chat.raw)


def test_plain_terminals():
    if no_terminals():
        return
    for terminal in ("dumb", ""):
        chat = AtTerminal("chat", SMALL, *SHORT, TERM=terminal)
        check(f"TERM={terminal}: no escapes", chat.until(chat.at_prompt) and b"\x1b" not in chat.raw, chat.raw)
        os.write(chat.fd, b"/first of\ntwo lines\n")
        check("a text of several lines that begins with a slash is one message",
              chat.until(lambda: " tok ·" in chat.screen.text()) and turns_of_plain(chat) == 1, chat.screen.text())
        os.write(chat.fd, b"\x04")
        check("leaves", chat.ended() == 0)


def turns_of_plain(chat):
    turns = 0
    for _ in range(5):
        seen = len(chat.screen.text())
        prompts = chat.prompts()
        os.write(chat.fd, b"/undo\n")
        chat.until(lambda: chat.prompts() > prompts and chat.at_prompt())
        if "Took back" not in chat.screen.text()[seen:]:
            break
        turns += 1
    return turns


def test_ctrl_d_leaves_nothing_on_the_screen():
    if no_editor():
        return
    chat = chat_at()
    chat.keys("\x04", settle=False)
    check("Ctrl-D leaves", chat.ended() == 0)
    check("without a trace", "^D" not in chat.raw.decode(), chat.raw)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
