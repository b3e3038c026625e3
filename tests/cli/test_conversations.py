#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for several conversations, marks, --load and --prefix-file:
test_conversations.py ORIEL_BINARY TEST_DATA_DIR
"""

import json
import re
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import (BUNDLED, CPU, DATA, FIXED, SMALL, check, fails, json_of, one_line_failure, oriel, run_tests, scratch, succeeds)
from test_terminal import Terminal, reply_of

CHAT = ["--greedy", "--tokens", "12", "--memory", "64MiB", "--kv", "f16", *CPU]
PAGE = DATA / "prefix" / "page.gguf"


class Chat(Terminal):
    """With several conversations the prompt has a name in front."""

    @staticmethod
    def at_prompt(text):
        return re.search(r"\n[^\n>]{0,31}> $", text) is not None

    def say(self, line):
        self.prompt = ""
        answer = super().say(line)
        self.prompt = answer.rsplit("\n", 1)[-1]
        return " ".join(answer.rsplit("\n", 1)[0].split()) if line.startswith("/") else answer


def talk(*lines):
    """The replies of one conversation that runs alone."""
    chat = Terminal("chat", BUNDLED, *CHAT, "--system", "You are kind.")
    replies = [reply_of(chat.say(line)) for line in lines]
    chat.leave()
    return replies


def test_several_conversations():
    if no_terminals():
        return
    first = talk("Hello!", "Tell me a story about a fox.", "What happened next?")
    other = talk("Tell me a joke.", "Another one.")
    chat = Chat("chat", BUNDLED, *CHAT, "--system", "You are kind.", "--sessions", "3")
    check("it is said how many there is room for", "room for 3 conversations" in " ".join(chat.greeting.split()),
          chat.greeting)
    one = [reply_of(chat.say("Hello!"))]
    check("/new begins another", "fox" in chat.say("/new joke fox") and chat.prompt == "joke fox> ", chat.prompt)
    two = [reply_of(chat.say("Tell me a joke."))]
    check("/switch takes a number", chat.say("/switch 1") and chat.prompt == "1> ", chat.prompt)
    one.append(reply_of(chat.say("Tell me a story about a fox.")))
    check("/switch takes a name", chat.say("/switch joke fox") and chat.prompt == "joke fox> ", chat.prompt)
    two.append(reply_of(chat.say("Another one.")))
    chat.say("/switch 1")
    check("/fork is a third", "3" in chat.say("/fork") and chat.prompt == "3> ", chat.prompt)
    three = reply_of(chat.say("What happened next?"))
    chat.say("/switch 1")
    one.append(reply_of(chat.say("What happened next?")))
    check("each is as it is alone", (one, two) == (first, other), (one, first, two, other))
    check("a fork goes on as what it was forked from", three == first[2], (three, first))
    listed = chat.say("/list")
    check("/list has all of them", "> 1 3 messages" in listed and "2 joke fox 2 messages" in listed
          and "3 3 messages" in listed and "no room for another" in listed, listed)
    full = chat.say("/new")
    check("there is no fourth, and what to do", "all 3 conversations are in use" in full and "--sessions 4" in full
          and "/close" in full, full)
    check("nor a fork", "--sessions 4" in chat.say("/fork"))
    check("/undo is each one's own", "Took back" in chat.say("/undo 3") and "No message" in chat.say("/undo"))
    chat.say("/switch joke fox")
    check("of several messages", "Only 2 messages" in chat.say("/undo 3"))
    check("what was not taken back is there", "Took back" in chat.say("/undo 2"))
    check("/undo of something else", "takes a number of messages" in chat.say("/undo all"))
    check("/undo of none", "takes a number of messages" in chat.say("/undo 0"))
    check("/close of another one stays here", "joke fox" in chat.say("/close 3") and chat.prompt == "joke fox> ")
    check("a name is there once", "already" in chat.say("/new joke fox"))
    check("a name is no number", "cannot be a number" in chat.say("/new 7"))
    check("a name is short", "at most 31 bytes" in chat.say("/new " + "x" * 32))
    check("numbers are used again", "Switched to 3" in chat.say("/fork"))
    check("a conversation that there is not", "/list" in chat.say("/switch nobody"))
    check("to be closed, either", "/list" in chat.say("/close nobody"))
    check("/switch wants a name", "needs" in chat.say("/switch"))
    chat.say("/close")
    check("the last but one", "only conversation" in chat.say("/close") and chat.prompt == "> ", chat.prompt)
    check("the last stays", "/reset" in chat.say("/close"))
    check("/reset begins behind the system message", chat.say("/reset") and reply_of(chat.say("Hello!")) == first[0])
    check("the chat ends with 0", chat.leave() == 0)

    chat = Chat("chat", SMALL, "--tokens", "2", *FIXED)
    alone = chat.say("/new")
    check("a chat has one unless more are asked for", "--sessions 4" in alone, alone)
    check("and cannot fork", "--sessions 4" in chat.say("/fork x"))
    chat.leave()


def test_the_system_message_is_held_once():
    text = " ".join(["You are kind."] * 30)
    lines = b"Hello!\nWhat is your name?\n"
    for template in ("chatml", "gemma3", "mistral-v1"):
        one, two = (succeeds(f"{template}: {n} sessions", "chat", BUNDLED, *CHAT, "--system", text, "--template",
                             template, "--sessions", n, stdin=lines) for n in (1, 2))
        check(f"{template}: the replies are the same", one.out == two.out, (one, two))


def test_a_window_of_each():
    if no_terminals():
        return
    chat = Chat("chat", SMALL, "--tokens", "2", "--sessions", "2", "--session-windows", "200,50", *FIXED)
    check("the first has the longest", "of 204 tokens" in chat.say("/stats"))
    chat.say("/new")
    check("the other one the other", "of 54 tokens" in chat.say("/stats"))
    chat.leave()


def test_marks():
    if no_terminals():
        return
    chat = Chat("chat", BUNDLED, *CHAT)
    check("no marks yet", "/mark NAME" in chat.say("/back"))
    chat.say("Hello!")
    check("/mark says how to come back", "/back start returns" in chat.say("/mark start"))
    first = reply_of(chat.say("Tell me a story about a fox."))
    chat.say("/mark later")
    chat.say("And then?")
    check("/back lists them", "start, later" in chat.say("/back"))
    unknown = chat.say("/back nowhere")
    check("an unknown one is told of", "No mark nowhere" in unknown and "start, later" in unknown, unknown)
    check("/back goes back", "Back at start" in chat.say("/back start")
          and reply_of(chat.say("Tell me a story about a fox.")) == first)
    check("marks behind it are gone", "marks: start" == chat.say("/back"))
    check("a name is short", "31 bytes" in chat.say("/mark " + "x" * 32))
    check("/mark wants a name", "needs" in chat.say("/mark"))
    for i in range(15):
        chat.say(f"/mark m{i}")
    check("there are 16", "16 marks are in use" in chat.say("/mark one-more"))
    chat.leave()


def test_load():
    if no_terminals():
        return
    kept = scratch / "kept.bin"
    chat = Terminal("chat", BUNDLED, *CHAT, "--window", "200", "--transcript", "64KiB", "--system", "You are kind.")
    for line in ("My name is Ada.", "Tell me a story about a fox."):
        chat.say(line)
    chat.say(f"/save {kept}")
    want = reply_of(chat.say("What happened next?"))
    used = json_of("info", "info", kept)["tokens_held"]
    chat.leave()
    ask = b"What happened next?\n"
    exact = succeeds("--load", "chat", BUNDLED, *CHAT, "--window", "200", "--load", kept, stdin=ask)
    check("it goes on to the bit, with the sinks of the file", exact.out.decode() == want + "\n\n", (exact, want))
    longer = succeeds("--load in a longer window", "chat", BUNDLED, *CHAT, "--window", "400", "--load", kept, "--json",
                      stdin=ask)
    check("everything is carried over", longer.json["window_used"] > used and longer.json["evicted"] == 0
          and longer.json["text"] == want, longer)
    shorter = oriel("chat", BUNDLED, *CHAT, "--window", "30", "--load", kept, stdin=ask)
    said = " ".join(shorter.err.decode().split())
    check("in a shorter one it is said what was not, terminal or not", shorter.code == 0 and "fewer than before" in said
          and "longer --window" in said, shorter)
    for people in (["--window", "30", "--kv", "f16"], ["--window", "200", "--kv", "k8v4"]):
        chat = Terminal("chat", BUNDLED, "--memory", "64MiB", *CPU, *people, "--load", str(kept))
        said = " ".join(chat.greeting.split())
        check(f"{people}: what was carried over is told", "converted to this window, batch and cache format" in said
              and ("rounded" in said) == ("k8v4" in people)
              and ("fewer than before" in said) == ("30" in people), said)
        chat.leave()
    again = Terminal("chat", BUNDLED, *CHAT, "--window", "200", "--template", "gemma3", "--load", str(kept))
    check("where nothing fits its messages are read again", "its messages were read again" in again.greeting,
          again.greeting)
    again.leave()
    chat = Terminal("chat", BUNDLED, *CHAT, "--window", "200", "--template", "gemma3")
    refused = " ".join(chat.say(f"/load {kept}").split())
    check("/load says why and what would do", str(kept) in refused and "chatml" in refused and "gemma3" in refused
          and "/load! FILE reads its 5 messages again" in refused, refused)
    check("/load! does", "read again" in chat.say(f"/load! {kept}"))
    check("and it goes on", " tok" in chat.say("What happened next?"))
    chat.leave()
    other = succeeds("--load with another model", "chat", SMALL, *FIXED, "--tokens", "2", "--load", kept, "--json",
                     stdin=ask)
    check("reads its messages again", other.json["window_used"] > used / 2, other)
    for name, file in (("that is not there", scratch / "nothing.bin"), ("that is none", PAGE)):
        refused = fails(f"--load of a file {name}", 1, "chat", BUNDLED, *CHAT, "--load", file, stdin=ask)
        check(f"{name}: it is named", str(file) in refused.err.decode(), refused)
    fails("--load of nothing", 2, "chat", BUNDLED, *CHAT, "--load", "", stdin=ask)


def test_prefix_file():
    ask = json.loads((DATA / "prefix" / "test.json").read_text())
    sure = [each for each in ask if each["question"] in ("How old is Petra?", "What does Uma work as?")]
    check("there are questions", len(sure) == 2, ask[:2])
    for each in sure:
        behind = succeeds("run --prefix-file", "run", BUNDLED, *FIXED, "--greedy", "--tokens", "20", "--prefix-file", PAGE,
                          each["question"])
        check(f"it knows: {each['question']}", each["right"] in behind.out.decode(), behind)
    lines = "".join(each["question"] + "\n" for each in sure).encode()
    chat = succeeds("chat --prefix-file", "chat", BUNDLED, *CHAT, "--sessions", "2", "--prefix-file", PAGE, stdin=lines)
    check("so does a chat", sure[0]["right"] in chat.out.decode(), chat)
    plan = json_of("plan --prefix-file", "plan", BUNDLED, "--memory", "20MiB", "--prefix-file", PAGE)
    check("it is planned for", plan["prefix_tokens"] == plan["sink_tokens"] == 32 and plan["prefix_bytes"] == 98304, plan)
    other = fails("of another model", 1, "run", SMALL, *FIXED, "--prefix-file", PAGE, "Hello!")
    check("says so", "page.gguf" in other.err.decode(), other)
    fails("not there", 1, "run", BUNDLED, *FIXED, "--prefix-file", scratch / "nothing.gguf", "Hello!")
    for command in ("run", "chat"):
        both = oriel(command, BUNDLED, *FIXED, "--prefix-file", PAGE, "--system", "x")
        check(f"{command}: not with a system message", one_line_failure(both, 2), both)
    both = oriel("plan", BUNDLED, "--prefix-file", PAGE, "--prefix-tokens", 3)
    check("plan: not with a number", one_line_failure(both, 2), both)


def test_it_fits_40_columns():
    if no_terminals():
        return
    chat = AtTerminal("chat", BUNDLED, *CHAT, "--sessions", "2", columns=40)
    check("greets", chat.until(chat.at_prompt), chat.screen.text())
    for line in ("/new", "/switch nobody", "/mark here", "/back nowhere", "/undo 3", "/undo x", "/help"):
        chat.keys(line + "\r")
        chat.settle(0.2)
        chat.keys("\x15")
    chat.keys("/list\r")
    chat.settle(0.2)
    check("its lines fit", not chat.screen.soft, [chat.screen.lines()[row] for row in sorted(chat.screen.soft)])
    check("the prompt has the name", chat.screen.lines()[chat.screen.row].startswith("2>"), chat.screen.text())
    chat.close()
    chat.forget()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
