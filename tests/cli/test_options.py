#!/usr/bin/env python3
"""Options as the library's table, the user's config file and people write them:
test_options.py ORIEL_BINARY TEST_DATA_DIR
"""

import json
import shutil
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import (BUNDLED, CPU, EXACT, FIXED, SMALL, check, environment, fails, has_fields, json_of,
                     one_line_failure, oriel, run_tests, scratch, succeeds, with_keys)

# A flag of another form.
OTHER = {"system_prompt"}
WRONG = {"bytes": "much", "count": "-1", "number": "x", "choice": "nonsense", "list": "1,,2"}


def rows():
    return json_of("options", "options")["options"]


def right(row):
    """Values that the row allows."""
    words = ["auto", "cpu"] if row["name"] == "device" else row.get("choices", [])
    if row["type"] == "bytes":
        return ["64MiB"]
    if row["type"] in ("count", "number"):
        return [f"{value:.0f}" for value in (row["least"], min(row["most"], 2 ** 32 - 1))] + words
    return words or {"list": ["1,0"], "file": ["missing.gguf"], "files": ["missing.gguf"], "text": ["early_stop"]}[row["type"]]


def test_rows():
    for row in rows():
        has_fields(row["name"], row, "name flag scope layer type default help")


def test_each_load_option_is_a_flag():
    for row in rows():
        if row["scope"] != "load" or row["name"] in OTHER or not row["flag"]:
            continue
        flag = "--" + row["flag"]
        for value in [None] if row["type"] == "flag" else right(row):
            done = oriel("plan", SMALL, *([flag] if value is None else [flag, value]),
                         *([] if row["name"] == "memory" else ["--memory", "64MiB"]))
            # The value may still be refused for its meaning: a missing file, or options that contradict each other.
            said = done.err.decode()
            check(f"{flag} {value} is read", not any(words in said for words in ("not allowed", "cannot be", "no option")), done)
        if row["type"] in WRONG:
            done = oriel("plan", SMALL, flag, WRONG[row["type"]])
            check(f"{flag} {WRONG[row['type']]} is refused by name", one_line_failure(done, 2)
                  and flag in done.err.decode() and not done.out, done)


def test_each_way_to_sample_is_a_flag():
    base = ["run", SMALL, "--prompt", "x", "--json", "--tokens", "2", *FIXED]
    for row in rows():
        if row["scope"] != "reply" or not row["flag"] or row["layer"] == "laboratory" or row["name"] == "max_tokens":
            continue
        flag = "--" + row["flag"]
        if row["type"] == "flag":
            check(f"{flag} is taken", oriel(*base, flag).code == 0)
        elif row["type"] in ("count", "number"):
            least = f"{row['least']:g}"
            check(f"{flag} {least} is taken", oriel(*base, flag, least).code == 0)
            wrong = oriel(*base, flag, "-11")
            check(f"{flag} -11 is refused by name", one_line_failure(wrong, 2) and flag in wrong.err.decode(), wrong)


def test_errors_of_the_library_name_the_flag():
    both = fails("two that contradict each other", 1, "plan", SMALL, "--recall", "1MiB", "--prefix-tokens", "12")
    check("as it is typed", "--recall" in both.err.decode() and '"retrieval"' not in both.err.decode(), both)
    large = fails("a size beyond the row's", 2, "plan", SMALL, "--transcript", "2GiB")
    check("is refused by its flag", "--transcript" in large.err.decode() and '"transcript"' not in large.err.decode(), large)


PROMPT = ["--prompt", "Once upon", "--raw", *CPU]


def written(config, name="config.json"):
    path = scratch / name
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path


def with_config(config, *args, **env):
    return oriel(*args, env=environment(ORIEL_CONFIG=str(written(config)), **env))


def ids(result):
    check("runs", result.code == 0, result)
    return result.json["token_ids"]


def run(config, *args, **env):
    return ids(with_config(config, "run", *args, *PROMPT, "--json", **env))


def plain(model, *args):
    return json_of("plain", "run", model, *args, *PROMPT)["token_ids"]


def test_defaults():
    base = {"model": str(SMALL), "tokens": 6, "greedy": True, "memory": "64MiB", "kv": "f16"}
    same = ["--greedy", "--memory", "64MiB", "--kv", "f16"]
    check("stands for the command line", run(base) == plain(SMALL, "--tokens", 6, *same))
    check("an option counts more", run(base, "--tokens", "3") == plain(SMALL, "--tokens", 3, *same))
    check("and its short form", run(base, "-n", "3") == plain(SMALL, "--tokens", 3, *same))
    check("MODEL counts more", run(base, EXACT) == plain(EXACT, "--tokens", 6, *same))
    check("and -m", run(base, "-m", EXACT) == plain(EXACT, "--tokens", 6, *same))
    check("the environment counts more", run(base, ORIEL_MODEL=str(EXACT)) == plain(EXACT, "--tokens", 6, *same))
    hot = run(base, "--temperature", "0.9", "--seed", "3")
    check("what excludes an option is left out", hot == run({**base, "greedy": False}, "--temperature", "0.9", "--seed", "3"))
    off = with_config({**base, "model": "/nowhere.gguf"}, "run", SMALL, *PROMPT, "--no-config", "--tokens", "2", *same, "--json")
    check("--no-config", ids(off) == plain(SMALL, "--tokens", 2, *same))
    none = oriel("run", SMALL, *PROMPT, "--tokens", "2", *same, "--json", env=environment(ORIEL_CONFIG=""))
    check("an empty name is none", ids(none) == plain(SMALL, "--tokens", 2, *same))
    stops = run({**base, "stop": ["zzzz", "yyyy"]})
    check("a list is an option several times", stops == plain(SMALL, "--tokens", 6, *same, "--stop", "zzzz", "--stop", "yyyy"))
    other = with_config(base, "devices", "--json")
    check("other commands take what they know", other.code == 0, other)
    words = with_config('{ // mine\n "model": "' + str(SMALL) + '", /* short */ "tokens": 2 }', "run", *PROMPT, *same, "--json")
    check("comments", ids(words) == plain(SMALL, "--tokens", 2, *same))


def test_where_it_is():
    home = scratch / "home"
    folder = home / ".config" / "oriel"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model": str(SMALL), "tokens": 2, "greedy": True}))
    env = {k: v for k, v in environment(HOME=str(home)).items() if k not in ("ORIEL_CONFIG", "XDG_CONFIG_HOME")}
    check("in the home folder", len(ids(oriel("run", *PROMPT, "--json", env=env))) == 2)
    env["XDG_CONFIG_HOME"] = str(scratch / "elsewhere")
    check("elsewhere is none", len(ids(oriel("run", SMALL, *PROMPT, "--json", "--tokens", "3", "--greedy", env=env))) == 3)


def test_presets():
    config = {"model": str(EXACT), "tokens": 6, "greedy": True,
              "presets": {"small": {"model": str(SMALL), "tokens": 3}, "empty": {}}}
    check("a preset counts more than what stands beside it", run(config, "--preset", "small") == plain(SMALL, "--tokens", 3, "--greedy"))
    check("than the environment, too", run(config, "--preset=small", ORIEL_MODEL=str(EXACT)) == plain(SMALL, "--tokens", 3, "--greedy"))
    check("less than an option", run(config, "--preset", "small", "--tokens", "2") == plain(SMALL, "--tokens", 2, "--greedy"))
    check("an empty one", run(config, "--preset", "empty") == plain(EXACT, "--tokens", 6, "--greedy"))
    unknown = with_config(config, "run", *PROMPT, "--preset", "big")
    check("one that is not there", unknown.code == 2 and b"small" in unknown.err, unknown)
    off = with_config(config, "run", *PROMPT, "--preset", "small", "--no-config")
    check("with --no-config", off.code == 2 and b"--no-config" in off.err, off)


def test_faults():
    for name, config, word in (("no JSON", '{"tokens": ', b"line 1"),
                               ("no object", "[1]", b"no JSON object"),
                               ("no such option", {"temprature": 1}, b"did you mean temperature?"),
                               ("a value that is not allowed", {"tokens": "many"}, b"config.json"),
                               ("a flag that is no flag", {"greedy": "perhaps"}, b"config.json"),
                               ("a number for a flag", {"verbose": 3}, b"true or false"),
                               ("an object", {"tokens": {"a": 1}}, b"a text, a number"),
                               ("presets that are none", {"presets": 3, "tokens": 2}, None)):
        done = with_config(config, "run", SMALL, *PROMPT, *(["--tokens", "1"] if word is None else []))
        if word is None:
            check(name, done.code in (0, 2), done)
            continue
        check(name, done.code == 2 and word in done.err and done.err.count(b"\n") == 1, done)
    missing = oriel("run", SMALL, *PROMPT, env=environment(ORIEL_CONFIG=str(scratch / "nowhere.json")))
    check("a file that is not there", missing.code == 2 and b"nowhere.json" in missing.err, missing)


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
