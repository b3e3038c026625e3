#!/usr/bin/env python3
"""Commands of a chat that change how it goes on: test_chat_commands.py ORIEL_BINARY TEST_DATA_DIR Q4_0_MODEL"""

import pathlib
import shutil
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import BUNDLED, CPU, DATA, SMALL, check, run_tests, scratch

FEW = ["--memory", "64MiB", "--tokens", "8", "--seed", "5", *CPU]
OTHER = pathlib.Path(sys.argv[3])  # the bundled model in another type


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
    chat = talk(SMALL, *FEW[2:], "--memory", "16MiB", "--window", "48", "--kv", "f16")
    for _ in range(5):
        chat.send("Tell me more of it, please.")
    chat.says("past the window", "/retry", "tok", absent=["oriel:"])
    chat.leaves()


def test_system():
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
    models = scratch / "models"
    models.mkdir()
    shutil.copyfile(OTHER, models / "other.gguf")
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
    kept = scratch / "kept.oriel"
    chat = talk(BUNDLED, *FEW)
    chat.send("My name is Ada.")
    chat.send(f"/save! {kept}")
    chat.send("/reset")
    chat.send(f"/load {kept}")
    chat.says("with its text", f"/model {OTHER}", "1 turn")
    chat.says("so a system message may come", "/system Hi.", "1 turn")
    chat.says("it is known", "What is my name?", "Ada")
    chat.leaves()


def test_tab():
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
    chat = talk(BUNDLED, *FEW, rows=60)
    chat.says("in force", "/plan", "fits in 64 MiB", "(f16)", "1,024 tokens")
    chat.says("what would be", "/plan 11MB", "fits in 11 MB", "/set memory 11MB switches to this plan")
    chat.says("too little", "/plan 1MB", "does not fit", absent=["switches"])
    chat.says("nonsense", "/plan much", "is not a size")
    chat.leaves()


def test_replies_are_shown_as_they_are():
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
    sys.exit(0 if no_terminals() else run_tests(globals()))
