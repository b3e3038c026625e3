#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for a chat at a terminal: test_terminal.py ORIEL_BINARY TEST_DATA_DIR"""

import os
import re
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import (BUNDLED, CPU, FIXED, ORIEL, PATIENCE, SMALL, check, environment, fails, is_svg,
                     json_of, run_tests, scratch, succeeds)


class Terminal:
    """A chat at a terminal; say() returns the output up to the next prompt."""

    def __init__(self, *args):
        import pty
        self.fd, theirs = pty.openpty()
        env = environment(NO_COLOR="1", TERM="dumb", HOME=str(scratch))
        self.process = subprocess.Popen([str(ORIEL)] + [str(a) for a in args], stdin=theirs,
                                        stdout=theirs, stderr=theirs, env=env, close_fds=True)
        os.close(theirs)
        self.greeting = self.answer()

    def answer(self):
        text = ""
        end = time.time() + 60 * PATIENCE
        while not self.at_prompt(text.replace("\r", "")) and time.time() < end:
            ready, _, _ = select.select([self.fd], [], [], 0.2)
            if ready:
                try:
                    block = os.read(self.fd, 65536)
                except OSError:
                    break
                if not block:
                    break
                text += block.decode("utf-8", "replace")
        return text.replace("\r", "")

    @staticmethod
    def at_prompt(text):
        return text.endswith("\n> ")

    def say(self, line):
        os.write(self.fd, (line + "\n").encode())
        # The terminal echoes the input.
        return self.answer().split("\n", 1)[-1]

    def leave(self):
        os.write(self.fd, b"/quit\n")
        self.answer()
        os.close(self.fd)
        return self.process.wait(timeout=30 * PATIENCE)


def reply_of(answer):
    return answer.split("\n")[0]


def test_info_on_a_saved_conversation():
    if no_terminals():
        return
    kept = scratch / "said.bin"
    before = int(time.time())
    chat = Terminal("chat", BUNDLED, *CPU, "--memory", "64MiB", "--window", "200", "--kv", "k8v4", "--tokens", "5")
    chat.say("Hello!")
    chat.say(f"/save {kept}")
    chat.leave()
    info = json_of("info on a snapshot", "info", kept)
    check("it is known as one", info["snapshot"] is True and info["readable"] is True, info)
    check("its model is named", info["model"] and info["architecture"] == "llama", info)
    check("and how it was made", (info["window_tokens"], info["k_format"], info["v_format"]) == (200, "int8", "int4"),
          info)
    check("and what is in it", info["position"] > 5 and info["turns"] == 1 and info["tokens_held"] == info["position"],
          info)
    check("and when it was", before <= info["saved_at"] <= time.time() + 1, info)
    check("and how large it is", info["bytes"] == kept.stat().st_size, info)
    people = succeeds("info on a snapshot, for people", "info", kept).out.decode()
    for word in ("snapshot", "K8V4", "200 tokens", "1 turn", "UTC"):
        check(f"people are told: {word}", word in people, people)
    whole = kept.read_bytes()
    cut = scratch / "cut.bin"
    for data in (whole[:-1], whole[:9], whole[:40] + b"\xff" + whole[41:]):
        cut.write_bytes(data)
        refused = fails("info on a damaged snapshot", 1, "info", cut)
        check("the file is named", str(cut) in refused.err.decode(), refused)
    cut.write_bytes(whole[:8] + b"\x06" + whole[9:])
    older = json_of("info on one of another version", "info", cut)
    check("is known as that", older["version"] == 6 and older["readable"] is False, older)


def test_chat_commands():
    if no_terminals():
        return
    kept = scratch / "kept.bin"
    options = ["--greedy", "--system", "You are kind.", "--tokens", "30", "--memory", "64MiB",
               "--kv", "f16", *CPU]
    chat = Terminal("chat", BUNDLED, *options)
    help_text = chat.say("/help")
    check("/help lists the commands", all(word in help_text for word in [
        "/undo", "/save", "/load", "/cache", "/reset", "/stats", "/quit"]), help_text)
    check("/undo has nothing to take back yet", "No message" in chat.say("/undo"))
    first = reply_of(chat.say("Hello!"))
    second = reply_of(chat.say("Tell me a story about a fox."))
    chat.say("/undo")
    check("/undo, and the same message has the same reply",
          reply_of(chat.say("Tell me a story about a fox.")) == second, second)
    check("/save says so", "Saved to" in chat.say(f"/save {kept}") and kept.exists())
    third = reply_of(chat.say("What happened next?"))
    drawn = chat.say("/cache")
    check("/cache draws", "pinned" in drawn and "seen" in drawn and "┃" not in drawn
          and "keys    F" in drawn, drawn)
    picture = scratch / "chat.svg"
    chat.say(f"/cache {picture}")
    check("/cache FILE draws an SVG", is_svg(picture))
    for _ in range(3):
        chat.say("/undo")
    check("all turns can be undone", "No message" in chat.say("/undo"))
    check("the first message has its reply again", reply_of(chat.say("Hello!")) == first)
    loaded = chat.say(f"/load {kept}")
    check("/load goes on there", "Loaded" in loaded
          and reply_of(chat.say("What happened next?")) == third, (loaded, third))
    missing = chat.say("/load there-is-no-such-file")
    check("a file that is not there is told of", missing.startswith("oriel: "), missing)
    check("/load wants a name", "needs" in chat.say("/load"))
    chat.say("/save ~/at-home.bin")
    check("~/ is the user's folder", (scratch / "at-home.bin").exists())
    pipe = scratch / "pipe"
    os.mkfifo(pipe)
    check("a pipe is not replaced by a file", chat.say(f"/save {pipe}").startswith("oriel: ")
          and pipe.is_fifo())
    check("/save over a conversation says so", "Replaced" in chat.say(f"/save {scratch / 'at-home.bin'}"))
    letter = scratch / "letter.txt"
    letter.write_text("Dear friend")
    refused = chat.say(f"/save {letter}")
    check("/save does not write over anything else", letter.read_text() == "Dear friend" and str(letter) in refused
          and "/save!" in refused, refused)
    check("/load of it names the file", str(letter) in chat.say(f"/load {letter}"))
    forced = chat.say(f"/save! {letter}")
    check("/save! does", "Replaced" in forced and letter.read_bytes()[:8] == b"ORIELSNP", forced)
    check("which can be loaded", "Loaded" in chat.say(f"/load {letter}"))
    chat.say(f"/save! {scratch / 'forced.bin'}")
    check("/save! makes a new file, too", (scratch / "forced.bin").exists())
    no_folder = chat.say(f"/save {scratch / 'no' / 'folder.bin'}")
    check("/save makes no folders", "folder is not there" in " ".join(no_folder.split()) and not (scratch / "no").exists(), no_folder)
    check("what is kept is the user's alone", kept.stat().st_mode & 0o777 == 0o600, oct(kept.stat().st_mode))
    chat.say(f"/load {kept}")
    if sys.platform == "linux":
        before = chat.say("/stats")
        cut = chat.say("x" * 5000)
        check("a message that the terminal cut off is not answered", cut.startswith("oriel: ")
              and chat.say("/stats") == before, cut)
    check("there are no other commands", "No command" in chat.say("/nonsense"))
    check("the chat ends with 0", chat.leave() == 0)

    chat = Terminal("chat", BUNDLED, *options)
    chat.say(f"/load {kept}")
    check("another program goes on as this one did",
          reply_of(chat.say("What happened next?")) == third, third)
    damaged = bytearray(kept.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    kept.write_bytes(damaged)
    refused = chat.say(f"/load {kept}")
    check("a damaged file is refused and the chat goes on", "damaged" in refused
          and len(reply_of(chat.say("Hello!"))) > 0, refused)
    chat.leave()

    chat = Terminal("chat", BUNDLED, *options, "--window", "40")
    for _ in range(4):
        chat.say("Tell me a story about a fox.")
    said = [chat.say("/undo") for _ in range(4)]
    check("/undo reads again what the memory lacks", all("Took back" in line for line in said), said)
    check("and the chat goes on", len(reply_of(chat.say("Hello!"))) > 0)
    chat.leave()


def interrupted_reading(name, wanted, *options):
    """Ctrl-C at several moments of the reading of a long message, until the chat's answer has `wanted` in it."""
    # A line can hold no more; in an emulator less takes long enough.
    message = " ".join(str(i * i % 97) for i in range(1400))[:4000 if PATIENCE == 1 else 600]
    chat = Terminal("chat", BUNDLED, *options, "--greedy", "--tokens", "1", "--threads", "1",
                    "--memory", "64MiB", "--kv", "f16", *CPU)
    begin = time.time()
    chat.say(message)
    whole = time.time() - begin
    done = False
    for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8) * 4:
        chat.say("/reset")
        chat.say("Hello!")  # to the very beginning every chat can go back
        before = chat.say("/stats").split("memory")[0]
        os.write(chat.fd, (message + "\n").encode())
        time.sleep(share * whole)
        chat.process.send_signal(signal.SIGINT)
        answer = chat.answer()
        if "leaves" in answer:  # it came before the message
            chat.answer()
        elif "stopped before" in answer or "taken back" in answer:  # else it fell into the reply
            unchanged = chat.say("/stats").split("memory")[0] == before
            done = done or wanted in answer
            if not check(f"{name}: what the chat says of it is so", ("taken back" in answer) == unchanged,
                         (answer, before)) or done:
                break
    check(name, done)
    chat.leave()


def test_the_progress_of_prefill_is_shown():
    if no_terminals():
        return
    message = " ".join(str(i * i % 97) for i in range(1200))
    chat = AtTerminal("chat", BUNDLED, "--greedy", "--tokens", "1", "--threads", "1", "--memory", "64MiB", "--window",
                      "8000", "--kv", "f16", *CPU)
    chat.until(chat.at_prompt)
    seen = lambda: re.search(rb"reading +\d+%", chat.raw)
    # Prefill that takes less than 0.4 s shows nothing, so the program is halted in the middle of it.
    for share in (0.1, 0.2, 0.05, 0.3, 0.02) * 4:
        replies = chat.raw.count(b" tok ")
        chat.keys(message)
        chat.keys("\r", settle=False)
        chat.read(share)
        time.sleep(share)
        chat.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        chat.send_signal(signal.SIGCONT)
        chat.until(lambda: chat.raw.count(b" tok ") > replies, 120)
        if seen():
            break
        chat.send("/reset")
    check("reading N% is shown", seen(), chat.raw[-600:])
    chat.send_signal(signal.SIGKILL)
    chat.close()


def test_a_message_that_is_cancelled():
    if no_terminals():
        return
    interrupted_reading("a message that is cancelled is taken back", "taken back", "--window", "8000")
    interrupted_reading("but for one that is too long for it", "/reset starts a new conversation", "--window", "64")


def test_a_chat_whose_stderr_is_a_file():
    if no_terminals():
        return
    import pty
    ours, theirs = pty.openpty()
    log = scratch / "stderr.txt"
    with open(log, "wb") as stderr:
        process = subprocess.Popen([str(ORIEL), "chat", str(SMALL), *FIXED], stdin=theirs,
                                   stdout=subprocess.DEVNULL, stderr=stderr, env=environment())
    os.write(ours, b"/quit\n")
    check("it ends", process.wait(timeout=30 * PATIENCE) == 0)
    os.close(ours)
    os.close(theirs)
    check("greetings and prompts are for terminals only", log.read_bytes() == b"", log.read_bytes())


def turns_of(chat):
    """How many messages can be taken back, which takes them back."""
    turns = 0
    while "Took back" in chat.say("/undo"):
        turns += 1
    return turns


def test_pasted_text():
    if no_terminals():
        return
    chat = Terminal("chat", SMALL, "--tokens", "2", "--greedy", *FIXED)
    answer = chat.say("one\ntwo\n\nthree")
    check("lines that come together are one message", " tok" in answer and turns_of(chat) == 1, answer)
    os.write(chat.fd, b"four\nfive, not ended")
    time.sleep(1)
    ready = select.select([chat.fd], [], [], 0)[0]
    shown = os.read(chat.fd, 65536).decode() if ready else ""
    check("one whose last line is not ended is waited for", " tok" not in shown, shown)
    answer = chat.say(" yet")
    check("and answered when it is", " tok" in answer and turns_of(chat) == 1, answer)
    os.write(chat.fd, b"/stats\n/cache\n")
    answer = chat.answer()
    answer += "" if "one letter a layer" in answer else chat.answer()
    check("commands are lines of their own", "so far" in answer and "one letter a layer" in answer, answer)
    check("leaves", chat.leave() == 0)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
