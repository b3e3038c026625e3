#!/usr/bin/env python3
"""Command lines as people type them: test_spellings.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import shutil
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import BUNDLED, DATA, FIXED, SMALL, check, environment, fails, json_of, oriel, run_tests, scratch, succeeds, with_keys

RUN = ["run", BUNDLED, "--greedy", *FIXED]


def test_other_names_of_options_and_commands():
    wanted = json_of("as it is", *RUN, "--prompt", "Hello!", "--tokens", "5", "--seed", "3", "--window", "100")
    def same(name, *args):
        got = json_of(name, *args)
        check(f"{name}: the same", got["token_ids"] == wanted["token_ids"] and got["window_capacity"] == wanted["window_capacity"], got)
    for tokens in ("--max-tokens", "--n-predict", "--num-predict", "-n"):
        same(tokens, *RUN, "--prompt", "Hello!", tokens, "5", "--ctx-size", "100")
    same("--max-tokens=5", *RUN, "--prompt", "Hello!", "--max-tokens=5", "--num-ctx=100")
    same("short ones", "run", "-m", BUNDLED, "-p", "Hello!", "-n", "5", "-s", "3", "-c", "100", "-t", "1", "--temp", "0", *FIXED)
    same("--model and a word", "run", "--model", BUNDLED, "Hello!", "-n5", "-c100", "--temp=0", *FIXED)
    same("in front of the command", "--tokens", "5", "--window", "100", "run", BUNDLED, "Hello!", "--greedy", *FIXED)
    check("oriel --json devices", "devices" in json.loads(succeeds("devices", "--json", "devices").out))
    folder = scratch / "models"
    folder.mkdir()
    shutil.copyfile(SMALL, folder / "mine.gguf")
    env = environment(ORIEL_MODELS=str(folder))
    for name in ("list", "ls"):
        check(f"oriel {name}", b"mine" in succeeds(name, name, env=env).out)
    check("oriel show", b"architecture" in succeeds("show", "show", SMALL).out)
    for typed, meant in (("--format", "--schema"), ("--n-gpu-layers", "--device"), ("--max-tokens", "--tokens")):
        command = ["plan"] if typed == "--max-tokens" else RUN
        refused = fails(f"{typed} of {command[0]}", 2, *command, typed, "1")
        check(f"{typed}: what was meant", meant.encode() in refused.err, refused)
    check("eval has a --max-tokens of its own", b"--max-tokens" in succeeds("eval", "eval", "--help").out)


def test_help_has_two_levels():
    for command in ([], ["chat"], ["run"], ["plan"], ["pull"], ["models"], ["serve"], ["info"], ["bench"]):
        short = succeeds(f"-h of {command}", *command, "-h").out.decode()
        whole = succeeds(f"--help of {command}", *command, "--help").out.decode()
        check(f"{command}: -h is one screen", len(short.splitlines()) <= 28 and len(short) < len(whole), short)
    for command in ("chat", "run", "plan"):
        examples = [line for line in succeeds(command, command, "-h").out.decode().splitlines() if "  oriel " in line or "| oriel" in line]
        check(f"{command}: three examples", len(examples) == 3, examples)


def test_stdin_and_files_stand_behind_the_prompt():
    def ids(*args, stdin=b""):
        return json_of("ids", *RUN, "--tokens", "1", *args, stdin=stdin)["prompt_token_ids"]
    whole = ids("--prompt", "Summarise this.\n\nThe fox is red.")
    check("behind a word", ids("Summarise this.", stdin=b"The fox is red.\n") == whole)
    check("not behind --prompt", ids("--prompt", "Summarise this.\n\nThe fox is red.", stdin=b"More.") == whole)
    check("alone", ids(stdin=b"Summarise this.\n\nThe fox is red.\n") == whole)
    first, second = scratch / "a.txt", scratch / "b.txt"
    first.write_text("One.")
    second.write_text("Two.")
    files = ids("Compare.", "--file", first, "--file", second, stdin=b"Three.")
    check("files by their names, then the pipe",
          files == ids("--prompt", f"Compare.\n\n{first}:\nOne.\n\n{second}:\nTwo.\n\nThree."), files)
    fails("a file that is not there", 1, *RUN, "x", "--file", scratch / "nothing.txt")
    (scratch / "binary").write_bytes(b"a\0b")
    fails("one that is no text", 1, *RUN, "x", "--file", scratch / "binary")
    fails("no prompt at all", 2, *RUN)


def test_a_word_that_looks_like_a_model_is_no_prompt():
    for word in ("llama3.2", "qwen3:8b", "gemma", "bartowski/Llama-3.2-1B-Instruct-GGUF", "mistral-7b"):
        refused = oriel("run", word, *FIXED)
        check(f"{word}: refused", refused.code in (1, 2) and refused.out == b"" and b"model" in refused.err, refused)
    for word in ("Hello!", "hi", "2+2", "R2D2?", "Why?"):
        succeeds(f"{word}: a prompt", "run", word, "--tokens", "1", *FIXED)
    succeeds("as a prompt", "run", "-p", "llama3.2", "--tokens", "1", *FIXED)
    quotes = fails("words without quotes", 2, "run", BUNDLED, "Tell", "me", "a", "joke")
    check("says how", b'quotes' in quotes.err, quotes)


def test_cut_forms_exit_with_4():
    schema = scratch / "schema.json"
    schema.write_text('{"type": "object", "properties": {"name": {"type": "string", "minLength": 40}}, "required": ["name"]}')
    cut = oriel(*RUN, "--prompt", "x", "--schema", schema, "--tokens", "4")
    check("a schema", cut.code == 4 and cut.out and cut.err.count(b"\n") == 1 and b"--tokens 4" in cut.err, cut)
    check("JSON says it itself", json_of("with --json", *RUN, "--prompt", "x", "--schema", schema, "--tokens", "4")["stop_reason"] == "length")
    tools = scratch / "tools.json"
    tools.write_text('[{"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": {"type": "object", '
                     '"properties": {"city": {"type": "string", "minLength": 40}}, "required": ["city"]}}}]')
    cut = oriel("run", BUNDLED, "Weather?", "--tools", tools, "--tool-choice", "required", "--tokens", "3", "--template", "qwen3", *FIXED)
    refused = b"template" in cut.err
    check("a call", refused or (cut.code == 4 and cut.err.count(b"\n") == 1), cut)
    succeeds("a text that is cut is whole", *RUN, "--prompt", "Tell me a story.", "--tokens", "2")


def test_samples_count_the_prompt_alike():
    for more in ([], ["--raw"], ["--repeat-penalty", "1.1"]):
        out = succeeds("samples", *RUN, "--prompt", "Hello!", "--samples", "3", "--tokens", "2", "--json", *more).out
        counts = [json.loads(line)["prompt_tokens"] for line in out.splitlines()]
        check(f"{more}: the same three times", len(counts) == 3 and len(set(counts)) == 1, counts)


def with_numbers(numbers):
    return with_keys(SMALL, {f"general.sampling.{name}": value for name, value in numbers.items()})


def test_sampling_defaults_of_the_file():
    model = with_numbers({"temp": 0.0})
    same = ["--prompt", "Hello", "--tokens", "12", *FIXED]
    greedy = json_of("greedily", "run", SMALL, *same, "--greedy")["token_ids"]
    check("the file's temperature", all(json_of("seed", "run", model, *same, "--seed", seed)["token_ids"] == greedy for seed in (1, 2)))
    check("an option goes before", json_of("hot", "run", model, *same, "--seed", "1", "--temperature", "100", "--top-k", "0", "--min-p", "0",
                                         "--top-p", "1")["token_ids"] != greedy)
    model = with_numbers({"temp": 5.5, "top_k": 1, "top_p": 7.0})
    check("top-k alone makes it greedy; what is not allowed is left out",
          json_of("top_k", "run", model, *same, "--seed", "3")["token_ids"] == greedy)
    batch = oriel("run", model, "--batch", "-", *FIXED, "--seed", "3", "--tokens", "12", "--template", "plain", stdin=b'{"prompt": "Hello"}\n')
    alone = oriel("run", SMALL, "--batch", "-", *FIXED, "--greedy", "--tokens", "12", "--template", "plain", stdin=b'{"prompt": "Hello"}\n')
    check("a batch, too", batch.code == 0 and batch.json["text"] == alone.json["text"], (batch, alone))
    if no_terminals():
        return
    chat = AtTerminal("chat", model, *FIXED, "--no-save")
    chat.until(chat.at_prompt)
    check("/set shows whose they are", "5.5 (of the model)" in chat.send("/set temperature"), chat.screen.text())
    chat.close()
    chat.forget()


def test_rm():
    folder = scratch / "removes"
    folder.mkdir()
    env = environment(ORIEL_MODELS=str(folder))
    shutil.copyfile(SMALL, folder / "mine.gguf")
    fails("nobody to ask", 2, "rm", "mine", env=env)
    fails("none of that name", 1, "rm", "other", env=env)
    check("it is there", (folder / "mine.gguf").exists())
    gone = succeeds("--yes", "rm", "mine", "--yes", env=env)
    check("it is gone", not (folder / "mine.gguf").exists() and b"Deleted" in gone.out, gone)
    if no_terminals():
        return
    for answer, there in (("n", True), ("", True), ("y", False)):
        shutil.copyfile(SMALL, folder / "mine.gguf")
        asked = AtTerminal("rm", "mine", ORIEL_MODELS=str(folder))
        asked.until(lambda: "[y/N]" in asked.screen.text())
        asked.keys(answer + "\r")
        code = asked.ended()
        check(f"asked, answered {answer!r}", (folder / "mine.gguf").exists() == there and (code == 0) != there, asked.raw)
        asked.forget()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
