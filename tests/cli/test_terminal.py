#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for a chat at a terminal and its commands:
test_terminal.py ORIEL_BINARY TEST_DATA_DIR Q4_0_MODEL
"""

import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import (BUNDLED, CPU, DATA, FIXED, ORIEL, PATIENCE, SMALL, check, environment, fails, is_svg,
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


FEW = ["--memory", "64MiB", "--tokens", "8", "--seed", "5", *CPU]


class Talk(AtTerminal):
    def says(self, name, typed, *words, absent=()):
        shown = " ".join(self.send(typed).split())
        check(name, all(word in shown for word in words) and not any(word in shown for word in absent), shown)
        return shown

    def leaves(self):
        check("leaves", self.close() == 0)
        self.forget()


def talk(*args, **options):
    chat = Talk("chat", *args, **options)
    chat.until(chat.at_prompt)
    return chat


def test_retry():
    if no_terminals():
        return
    chat = talk(BUNDLED, *FEW, "--temperature", "3", "--top-k", "0")
    chat.says("nothing yet", "/retry", "No message")
    chat.says("a message", "My name is Ada.", "tok")
    chat.says("another reply", "/retry", "tok")
    chat.says("and again", "/retry", "tok")
    replies = [line for at, line in enumerate(chat.screen.lines()) if at and chat.screen.lines()[at - 1].startswith("> ")
               and "there is no" not in line]
    check("the replies are not the same", len(set(replies)) > 1, replies)
    chat.says("one message, for the model as well", "/undo", "Took back")
    chat.says("and no other", "/undo", "No message")
    chat.send("/set greedy on")
    chat.send("Hello!")
    chat.says("greedy", "/retry", "/set greedy off")
    chat.leaves()


def test_retries_have_seeds_of_their_own():
    if no_terminals():
        return
    said = []
    for _ in range(2):
        chat = talk(BUNDLED, *FEW[:4], *CPU, "--temperature", "3", "--top-k", "0", "--seed", str(2 ** 64 - 1))
        for typed in ("Hello!", "/retry", "/retry"):
            chat.send(typed)
        lines = chat.screen.lines()
        said.append([line for at, line in enumerate(lines) if at and lines[at - 1].startswith("> ")])
        chat.leaves()
    check("the same ones behind the largest", said[0] == said[1] and len(set(said[0])) > 2, said)


def test_retry_reads_again_what_is_forgotten():
    if no_terminals():
        return
    chat = talk(SMALL, *FEW[2:], "--memory", "16MiB", "--window", "48", "--kv", "f16")
    for _ in range(5):
        chat.send("Tell me more of it, please.")
    chat.says("past the window", "/retry", "tok", absent=["oriel:"])
    chat.leaves()


def test_system():
    if no_terminals():
        return
    chat = talk(BUNDLED, *FEW)
    chat.says("none", "/system", "No system message")
    chat.send("My name is Ada.")
    chat.says("set", "/system You answer briefly.", "1 turn", "read again", "System message set")
    chat.says("shown", "/system", "You answer briefly.")
    chat.says("the conversation was kept", "What is my name?", "Ada")
    chat.says("none again", "/system none", "2 turns", "System message removed")
    chat.leaves()
    chat = talk(BUNDLED, *FEW, "--sessions", "2", "--system", "You answer briefly.")
    chat.says("shared", "/system You are kind.", "System message set")
    chat.keys("/new\r")
    check("and another conversation", chat.until(lambda: "Switched to 2" in chat.screen.text()), chat.screen.text())
    chat.leaves()


def test_set():
    if no_terminals():
        return
    chat = talk(BUNDLED, *FEW)
    chat.says("all", "/set", "temperature 0.7 (default)", "seed 5", "memory 64 MiB", "window", "think")
    chat.says("one", "/set top-k", "top-k is 40 (default)")
    chat.says("set", "/set temperature 0.5", "temperature is 0.5")
    chat.says("its other spelling", "/set TOP_P=0.5", "top-p is 0.5")
    chat.says("back", "/set temperature default", "temperature is 0.7 (default)")
    for nonsense, words in (("temperature 101", "0 to 100"), ("temperature hot", "0 to 100"), ("top-k -1", "whole number"),
                            ("greedy perhaps", "on, off"), ("tempratur 1", "did you mean temperature?"),
                            ("memory much", "300MB"), ("kv q8", "k8v4"), ("seed 1.5", "whole number")):
        chat.says(f"nonsense: {nonsense}", f"/set {nonsense}", "oriel:", words)
    chat.send("/set tokens 2")
    chat.says("fewer tokens", "Tell me a story.", "2 tok")
    chat.send("My name is Ada.")
    chat.send("/set tokens 12")
    chat.says("less memory", "/set memory 11MB", "limit 11 MB", "memory is 11 MB")
    chat.says("what is free", "/set memory default", "memory is")
    chat.says("less memory again", "/set memory 11MB", "memory is 11 MB")
    chat.says("too little", "/set memory 2MB", "does not fit", "at least", absent=["memory is"])
    chat.says("a window", "/set window 300", "Context: 304 tokens")
    chat.says("a cache", "/set kv k8v8", "kv is k8v8")
    chat.says("think", "/set think off", "think is off")
    chat.says("nothing is forgotten by all that", "What is my name?", "Ada")
    chat.leaves()


def test_model():
    if no_terminals():
        return
    models = scratch / "models"
    models.mkdir()
    other = pathlib.Path(sys.argv[3])  # the bundled model in another type
    shutil.copyfile(other, models / "other.gguf")
    chat = talk(BUNDLED, *FEW[:-4], *CPU, "--greedy", ORIEL_MODELS=str(models))
    chat.send("My name is Ada.")
    for wrong, words in (("nope", "no model of that name"), (DATA / "none.gguf", "cannot open"),
                         (__file__, "not a GGUF file"), ("smollm2-135m", "oriel pull smollm2-135m")):
        chat.says(f"no model: {wrong}", f"/model {wrong}", "oriel:", words)
    chat.says("the old one stays", "What is my name?", "Ada")
    chat.says("another by its name", "/model other", "Switched to Oriel Tiny", "2 turns", "tokens) read again in")
    chat.says("it knows what was said", "What is my name?", "Ada")
    chat.says("one of another kind", f"/model {SMALL}", "oriel-test-llama-mqa", "read again")
    chat.says("it replies", "Hello!", "tok")
    chat.says("what was said stays", f"/model {BUNDLED}", "4 turns")
    chat.says("to the first one", "/undo 1", "Took back")
    chat.leaves()


def test_loaded_conversations_have_their_text():
    if no_terminals():
        return
    kept = scratch / "kept.oriel"
    chat = talk(BUNDLED, *FEW)
    chat.send("My name is Ada.")
    chat.send(f"/save! {kept}")
    chat.send("/reset")
    chat.send(f"/load {kept}")
    chat.says("with its text", f"/model {sys.argv[3]}", "1 turn")
    chat.says("so a system message may come", "/system Hi.", "1 turn")
    chat.says("it is known", "What is my name?", "Ada")
    chat.leaves()


def test_tab():
    if no_terminals():
        return
    models = scratch / "tab"
    (models / "folder").mkdir(parents=True)
    for name in ("abc.gguf", "abd.gguf", "xyz\nforged.gguf"):  # the last name has a newline, so it is not completed
        shutil.copyfile(SMALL, models / name)
    chat = talk(BUNDLED, *FEW, ORIEL_MODELS=str(models))
    for keys, want in (("/sys\t", "/system "), ("/set temp\t", "/set temperature "), ("/model ab\tc\t", "/model abc "),
                       (f"/load {models}/fol\t", f"/load {models}/folder/"), ("Hi\t!", "Hi!"), ("/nothing\t", "/nothing"),
                       ("/model xy\t!", "/model xy!"), (f"/load {models}/xy\t!", f"/load {models}/xy!")):
        chat.keys(keys)
        check(f"Tab: {want}", chat.until(lambda: "".join(chat.typed().split("\n")) == want.rstrip()), chat.typed())
        chat.keys("\x03")
        chat.until(chat.at_prompt)
    chat.keys("/sa\t\t")
    check("several are listed", chat.until(lambda: "/save  /save!" in chat.screen.text()) and
          chat.until(lambda: chat.typed() == "/save"), chat.screen.text())
    chat.leaves()


def test_plan():
    if no_terminals():
        return
    chat = talk(BUNDLED, *FEW, rows=60)
    chat.says("in force", "/plan", "fits in 64 MiB", "(f16)", "1,024 tokens")
    chat.says("what would be", "/plan 11MB", "fits in 11 MB", "/set memory 11MB switches to this plan")
    chat.says("too little", "/plan 1MB", "does not fit", absent=["switches"])
    chat.says("nonsense", "/plan much", "is not a size")
    chat.leaves()


def test_replies_are_shown_as_they_are():
    if no_terminals():
        return
    """With --no-wrap and --plain nothing is wrapped, left out or put in, so that code can be copied."""
    text = ("1. one\n   - two\n\n```python\nif x:\n\tprint(" + "x" * 120 + ")\n```\n\n"
            "| a | b |\n|---|---|\n| 1 | " + "long " * 20 + "|\n\n# end")
    grammar = scratch / "markdown.gbnf"
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    grammar.write_text(f'root ::= "{quoted}"\n')
    chat = talk(BUNDLED, "--memory", "64MiB", "--grammar", grammar, "--tokens", "900", "--no-wrap", "--plain", *CPU)
    chat.send("Show me.")
    check("as it came", text in chat.raw.decode().replace("\r\n", "\n"), chat.raw.decode())
    chat.leaves()


def test_what_the_bundled_model_can_do():
    if no_terminals():
        return
    for stored in (False, True):
        models = scratch / f"first{stored}"
        models.mkdir()
        if stored:
            shutil.copyfile(SMALL, models / "m.gguf")
        chat = talk(*FEW, ORIEL_MODELS=str(models))
        shown = " ".join(chat.screen.text().split())
        check(f"said where there is no other: {not stored}", ("oriel pull smollm2-135m" in shown) != stored, shown)
        check("narrow", all(len(line) <= 80 for line in chat.screen.lines()))
        chat.leaves()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
