#!/usr/bin/env python3
"""That nothing is forgotten without a word: test_forgetting.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import re
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, CPU, FIXED, SMALL, check, fails, json_of, oriel, run_tests, scratch, succeeds
from test_terminal import Terminal, no_terminals

WORDS = "The hedgehog saw a dog by the river. "


def loss(result):
    """(tokens, lost, held, options that would hold all) as the one line on stderr has it, or None."""
    found = re.findall(r"^oriel: warning: the \w+ has ([\d,]+) tokens?, and the model no longer sees ([\d,]+) of them: "
                       r"the context holds ([\d,]+)(?: \((.*) holds all of it\))?$", result.err.decode(), re.M)
    check("at most one line", len(found) <= 1, result)
    return (*(int(n.replace(',', '')) for n in found[0][:3]), found[0][3].split()) if found else None


def test_nothing_advises_a_window_beyond_what_the_model_was_trained_on():
    for window in ([], ["--window", "300"]):
        said = oriel("run", BUNDLED, "--prompt", WORDS * 200, "--tokens", "3", "--greedy", *window, *CPU).err.decode()
        check("a long prompt is told of", "the model no longer sees" in said, said)
        check("no window of all of it is advised", "holds all of it" not in said, said)
        check("all that it was trained on is, where there is less",
              ("(--window max holds 1,024, all that the model was trained on)" in said) == bool(window), said)


def test_a_window_beyond_what_the_model_was_trained_on_is_told_of():
    plan = json_of("plan", "plan", BUNDLED, "--window", "2500")
    check("plan has a field", plan["beyond_trained_tokens"] == 2500 + plan["sink_tokens"] - plan["context_train"], plan)
    check("which is 0 else", json_of("plan", "plan", BUNDLED)["beyond_trained_tokens"] == 0)
    text = " ".join(succeeds("plan", "plan", BUNDLED, "--window", "2500").out.decode().split())
    check("and a reason", "1,480 tokens more than the 1,024 that the model was trained on" in text, text)
    warning = b"longer than the 1024 that the model was trained on"
    for command in (["plan", BUNDLED], ["run", BUNDLED, "--prompt", "x", "--tokens", "1"]):
        said = oriel(*command, "--verbose", "--window", "2500", "--device", "cpu").err
        check(f"{command[0]} warns", said.count(warning) == 1 and b"nats a token expected" in said, said)
        said = oriel(*command, "--verbose", "--window", "1000", "--device", "cpu")
        check(f"{command[0]} does not within", said.code == 0 and warning not in said.err, said)
    if not no_terminals():
        chat = Terminal("chat", BUNDLED, "--window", "2500", *FIXED)
        check("chat warns", "longer than the 1024 that the model was trained on" in " ".join(chat.greeting.split()),
              chat.greeting)
        chat.leave()


def test_run_says_what_of_the_prompt_is_out_of_sight():
    (scratch / "prompt.txt").write_text(WORDS * 60)
    ids = json_of("ids", "tokenize", BUNDLED, stdin=(WORDS * 60).encode())
    (scratch / "ids.json").write_text(json.dumps(ids))
    options = ["--tokens", "3", "--greedy", "--json", *CPU]
    least = json_of("plan", "plan", BUNDLED, "--window", "200")["minimum_bytes"]
    for given in (["--prompt", WORDS * 60], ["--prompt-file", scratch / "prompt.txt"],
                  ["--prompt-file", scratch / "prompt.txt", "--raw"], ["--tokens-file", scratch / "ids.json"]):
        for limits in (["--window", "100", "--memory", "64MiB"], ["--memory", str(least)]):
            said = oriel("run", BUNDLED, *given, *limits, *options)
            told = loss(said)
            if not check(f"run {given[0]} {limits[0]} says it", said.code == 0 and told, said):
                continue
            tokens, lost, held, remedy = told
            check("it counts the prompt", tokens == len(said.json["prompt_token_ids"]), told)
            check("the library counts the same, besides what opens the reply",
                  0 <= said.json["prompt_tokens_evicted"] - lost <= 8, (told, said.json))
            check("what is lost and what is held make the prompt", lost >= tokens - held
                  and held == said.json["window_capacity"] and lost <= said.json["evicted"], (told, said.json))
            check("more memory is asked for only where there is too little",
                  ("--memory" in remedy) == (limits[0] == "--memory"), told)
            wanted = {**dict(zip(limits[::2], limits[1::2])), **dict(zip(remedy[::2], remedy[1::2]))}
            more = oriel("run", BUNDLED, *given, *(word for pair in wanted.items() for word in pair), *options)
            check("with these options all is seen", more.code == 0 and loss(more) is None
                  and more.json["evicted"] == 0, (remedy, more))
    short = oriel("run", BUNDLED, "--prompt", "Hello!", "--tokens", "3", *FIXED)
    check("a prompt that is seen as a whole needs no words", short.code == 0 and loss(short) is None, short)


def test_chat_says_what_of_a_message_is_out_of_sight():
    options = ["--tokens", "3", "--greedy", "--window", "100", *FIXED]
    said = oriel("chat", BUNDLED, *options, stdin=(WORDS * 30 + "\nHello\n").encode())
    told = loss(said)
    check("chat says it once", said.code == 0 and told and told[1] >= told[0] - told[2], said)


def test_a_document_is_remembered_at_the_next_question():
    """Longer than half the window; and --evict tokens keeps part of a shorter one, too."""
    def evicted(words, *more):
        text = f"{WORDS * words}\n{WORDS * 4}\n".encode()
        out = succeeds("chat", "chat", BUNDLED, "--tokens", "2", "--greedy", "--window", "150", "--json", *FIXED, *more,
                       stdin=text).out.splitlines()
        return [json.loads(line) for line in out]
    long = evicted(13)
    check("part of a long turn stays", long[1]["window_used"] == long[1]["window_capacity"] and long[1]["evicted"] > 0, long)
    turns, tokens = evicted(5), evicted(5, "--evict", "tokens")
    check("all is seen while it fits", turns == [dict(t, **{k: r[k] for k in r if k.endswith(("_ms", "_s"))})
                                                 for t, r in zip(tokens, turns)], (turns, tokens))
    fails("--evict of something else", 2, "chat", SMALL, "--evict", "words")


def test_whole_turns_go_and_the_chat_says_so_in_place():
    if no_terminals():
        return
    options = ["--tokens", "2", "--greedy", "--window", "150", *FIXED]
    chat = Terminal("chat", BUNDLED, *options)
    check("the greeting says what goes", "the oldest turns drop out first" in " ".join(chat.greeting.split()), chat.greeting)
    answers = [chat.say(WORDS * 5) for _ in range(6)]
    check("turns that go are counted", any("1 turn dropped" in a for a in answers), answers)
    check("a large one is told of", any("A turn of" in a and "--evict tokens" in " ".join(a.split()) for a in answers), answers)
    chat.leave()
    chat = Terminal("chat", BUNDLED, *options, "--evict", "tokens")
    check("the greeting says what goes token by token", "the oldest tokens drop out first" in " ".join(chat.greeting.split()), chat.greeting)
    answers = [chat.say(WORDS * 5) for _ in range(6)]
    check("parts of turns go then", any("part of a turn dropped" in a for a in answers), answers)
    chat.leave()


def test_files_that_hold_no_template_are_refused():
    files = {"binary": b"\x7fELF\0{{}}", "empty": b"", "text": b"no braces at all", "huge": b"{" * (1 << 21)}
    for name, content in files.items():
        (scratch / name).write_bytes(content)
        for command in (["run", SMALL, "--prompt", "x", *FIXED], ["chat", SMALL, *FIXED],
                        ["render", SMALL, "--messages", "-"]):
            fails(f"{command[0]} --template {name}", 2, *command, "--template", scratch / name, stdin=b"[]")
    broken = scratch / "broken.jinja"
    broken.write_text("{% for m in messages %}\n{{ m.content }}\n{% endif %}")
    for command in (["run", SMALL, "--prompt", "x", *FIXED], ["render", SMALL, "--messages", "-"]):
        wrong = fails(f"{command[0]} with a template that is none", 1, *command, "--template", broken,
                      stdin=b'[{"role": "user", "content": "x"}]')
        check("the line is named", b"line 3" in wrong.err, wrong)
    fails("a template that is not there", 2, "run", SMALL, "--prompt", "x", "--template", scratch / "nothing.jinja")
    succeeds("plain on request", "run", SMALL, "--prompt", "x", "--tokens", "1", "--template", "plain", *FIXED)


def test_decode_takes_ids_without_a_model():
    ids = json_of("ids", "tokenize", BUNDLED, stdin=b"Hello there")["ids"]
    named = succeeds("with a model", "tokenize", BUNDLED, "--decode", *ids)
    check("the bundled model's", succeeds("without", "tokenize", "--decode", *ids).out == named.out, named)
    check("as JSON", succeeds("as JSON", "tokenize", "--decode", json.dumps(ids)).out == named.out, named)
    help_text = succeeds("help", "tokenize", "--help").out.decode()
    check("help shows both ways", "--decode [IDS...]" in help_text or "tokenize --decode" in help_text, help_text)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
