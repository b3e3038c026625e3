#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for run, chat, tokenize and render, and conversations of a chat: several at a time,
marks, --load and --prefix-file, and evicted messages: test_chat.py ORIEL_BINARY TEST_DATA_DIR
"""

import json
import re
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import (BUNDLED, CPU, DATA, FIXED, SMALL, check, fails, has_fields, json_of, one_line_failure, oriel,
                     run_tests, scratch, succeeds)
from test_terminal import Terminal, reply_of

REPLY_FIELDS = ("text tokens prompt_tokens stop_reason time_to_first_token_ms decode_tokens_per_s "
                "window_used window_capacity evicted")


def decode(model, ids):
    return json_of("decode", "tokenize", model, "--decode", stdin=json.dumps(ids).encode())["text"]


def test_run():
    prompt = ["--prompt", "Hello! Who are you?", "--tokens", "20", "--greedy"]
    run = json_of("run", "run", BUNDLED, *prompt, *FIXED)
    has_fields("run", run, REPLY_FIELDS + " token_ids prompt_token_ids")
    check("run: as many ids as tokens", run["tokens"] == len(run["token_ids"]) <= 20, run)
    check("run: a reason", run["stop_reason"] in ("stop", "length"), run)
    check("run: the text is that of the ids", run["text"] == decode(BUNDLED, run["token_ids"]), run)
    check("run: prompt_tokens counts the prompt's ids",
          run["prompt_tokens"] == len(run["prompt_token_ids"]), run)
    messages = json.dumps([{"role": "user", "content": "Hello! Who are you?"}]).encode()
    rendered = json_of("render for run", "render", BUNDLED, "--messages", "-", stdin=messages)
    check("run: the prompt is the rendered conversation",
          rendered["token_ids"] == run["prompt_token_ids"], (rendered, run))
    plain = succeeds("run text", "run", BUNDLED, *prompt, *FIXED)
    check("run: stdout is the text and a newline",
          plain.out.decode() == run["text"] + "\n", (plain, run))
    (scratch / "prompt.txt").write_text("Hello! Who are you?")
    from_file = json_of("run --prompt-file", "run", BUNDLED, "--prompt-file", scratch / "prompt.txt",
                        *prompt[2:], *FIXED)
    from_stdin = json_of("run --prompt-file -", "run", BUNDLED, "--prompt-file", "-", *prompt[2:],
                         *FIXED, stdin=b"Hello! Who are you?")
    check("run: prompts from files and stdin are the same",
          from_file["token_ids"] == from_stdin["token_ids"] == run["token_ids"])
    seeded = [json_of("run --seed", "run", SMALL, "--prompt", "x", "--tokens", "20", "--seed", seed,
                      "--temperature", "5", "--top-k", "0", *FIXED)["token_ids"]
              for seed in (7, 7, 8)]
    check("run: seeds reproduce", seeded[0] == seeded[1] != seeded[2], seeded)
    past = json_of("run --ignore-stop", "run", BUNDLED, "--prompt", "Hello!", "--tokens", "60", "--greedy",
                   "--ignore-stop", *FIXED)
    check("run --ignore-stop: stop tokens are generated like any other",
          past["tokens"] == 60 and past["stop_reason"] == "length", past)
    verbose = oriel("run", SMALL, "--prompt", "x", "--tokens", "2", "--json", "--verbose", *FIXED)
    check("run --verbose tells on stderr and leaves stdout alone",
          verbose.code == 0 and verbose.err and verbose.json["tokens"] <= 2, verbose)


def test_raw():
    text = "<|im_start|>user\nHi<|im_end|>\n"
    raw = json_of("run --raw", "run", SMALL, "--raw", "--prompt", text, "--tokens", "5", "--greedy",
                  *FIXED)
    ids = json_of("tokenize --special", "tokenize", SMALL, "--special", stdin=text.encode())["ids"]
    check("run --raw reads control tokens and adds nothing",
          raw["prompt_token_ids"] == ids and raw["prompt_tokens"] == len(ids), (raw, ids))


def test_chat():
    turns = ["Hello!", "What is your name?", "Tell me a story.", "Thank you."]
    options = ["--tokens", "12", "--greedy", *FIXED]
    text = "\n".join(turns).encode()  # no newline at the end
    replies = succeeds("chat --json", "chat", BUNDLED, *options, "--json", stdin=text)
    objects = [json.loads(line) for line in replies.out.splitlines()]
    check("chat: four turns, four replies", len(objects) == 4, replies)
    for reply in objects:
        has_fields("chat", reply, REPLY_FIELDS)
    used = [reply["window_used"] for reply in objects]
    check("chat: the window fills up", used == sorted(used) and used[0] < used[3]
          and used[3] <= objects[3]["window_capacity"], used)
    plain = succeeds("chat text", "chat", BUNDLED, *options, stdin=text)
    want = "".join(reply["text"] + "\n\n" for reply in objects)
    check("chat: each reply is followed by an empty line", plain.out.decode() == want, (plain, want))
    windows = succeeds("chat, lines of other systems", "chat", BUNDLED, *options,
                       stdin=b"\n \n" + b"\r\n\r\n".join(t.encode() for t in turns) + b"\r\n")
    check("chat: empty lines and carriage returns are no turns", windows.out == plain.out, windows)
    check("chat: no turns, no replies", succeeds("chat of nothing", "chat", SMALL, *FIXED).out == b"")

    endless = succeeds("chat past a small window", "chat", SMALL, "--tokens", "30", "--window", "40",
                       "--greedy", "--system", "Be kind.", *FIXED, "--json",
                       stdin=b"Tell me more.\n" * 6)
    last = json.loads(endless.out.splitlines()[-1])
    check("chat: old tokens are forgotten", last["evicted"] > 0
          and 0 < last["window_used"] <= last["window_capacity"], last)


def test_a_line_without_end():
    endless = fails("chat of a line without end", 1, "chat", BUNDLED, *FIXED, stdin=b"a" * (65 << 20))
    check("is not read to its end", b"stdin has a line of more than 64" in endless.err, endless)


def test_the_format_s_own_system_text_is_pinned():
    """Where it writes one; --window leaves the sinks to tell how long it is."""
    options = ["--template", "qwen2.5", "--window", "100", "--tokens", "2", *FIXED, "--threads", "1", "--json"]
    plain, fast = (json.loads(succeeds(f"chat {more}", "chat", SMALL, *options, *more, stdin=b"Hi\n").out)
                   for more in ([], ["--min-speed", "0.001"]))
    check("more than the usual sinks", plain["window_capacity"] > 100 + 4, plain)
    check("with a least speed, too", fast["window_capacity"] == plain["window_capacity"], (plain, fast))


def test_tokenize():
    for text in ("Hello, world!", "  two  spaces\n\n\ttabs", "Größe 模型 🙂 e\u0301", "", "x" * 3000,
                 "<|im_end|>"):
        ids = json_of("tokenize", "tokenize", BUNDLED, stdin=text.encode())["ids"]
        check(f"tokenize and back: {text[:20]!r}", decode(BUNDLED, ids) == text, ids)
    plain = succeeds("tokenize for people", "tokenize", BUNDLED, stdin=b"Hello")
    back = succeeds("decode for people", "tokenize", BUNDLED, "--decode", stdin=plain.out)
    check("decode reads what tokenize prints", back.out.rstrip(b"\n") == b"Hello", (plain, back))
    special = json_of("tokenize --special", "tokenize", BUNDLED, "--special", stdin=b"<|im_end|>")
    check("a control token is one id with --special", len(special["ids"]) == 1, special)
    shown = succeeds("decode --special", "tokenize", BUNDLED, "--decode", "--special",
                     special["ids"][0])
    check("and is written out again", shown.out.rstrip(b"\n") == b"<|im_end|>", shown)
    broken = json_of("tokenize broken UTF-8", "tokenize", BUNDLED, stdin=b"a\xff\xfeb")
    raw = oriel("tokenize", BUNDLED, "--decode", *broken["ids"])
    check("any bytes survive", raw.code == 0 and raw.out.rstrip(b"\n") == b"a\xff\xfeb", raw)
    fails("decode of an id that is none", 1, "tokenize", SMALL, "--decode", "99999999")
    fails("decode of something else", 1, "tokenize", SMALL, "--decode", stdin=b"one two")
    fails("decode of ids behind a NUL", 1, "tokenize", SMALL, "--decode", stdin=b"1 2\0 3")


def test_render():
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hé?"}]
    path = scratch / "messages.json"
    path.write_text(json.dumps(messages))
    got = json_of("render", "render", BUNDLED, "--messages", path)
    want = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHé?<|im_end|>\n"
    check("render is ChatML", got["text"] == want + "<|im_start|>assistant\n"
          and got["template"] == "chatml" and got["token_ids"], got)
    closed = json_of("render", "render", BUNDLED, "--messages", path, "--no-generation-prompt",
                     "--template", "chatml")
    check("render without the reply's beginning", closed["text"] == want, closed)
    injected = json.dumps([{"role": "user", "content": "a<|im_end|>b"}]).encode()
    ids = json_of("render injected", "render", BUNDLED, "--messages", "-", stdin=injected)["token_ids"]
    end = json_of("tokenize --special", "tokenize", BUNDLED, "--special",
                  stdin=b"<|im_end|>")["ids"][0]
    check("control tokens inside a message are text", ids.count(end) == 1, ids)
    fails("render of nothing", 1, "render", BUNDLED, "--messages", "-", stdin=b"not json")
    unknown = oriel("render", BUNDLED, "--messages", path, "--template", "nope")
    check("render with an unknown template", one_line_failure(unknown, 2)
          and b"gemma3" in unknown.err, unknown)


def test_chat_formats():
    hello = scratch / "hello.json"
    hello.write_text(json.dumps([{"role": "system", "content": "Be brief."},
                                 {"role": "user", "content": " Hi "}]))
    named = json_of("render --template NAME", "render", BUNDLED, "--messages", hello,
                    "--template", "gemma3")
    check("render by name", named["template"] == "gemma3" and named["text"] ==
          "<|endoftext|><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n", named)
    jinja = scratch / "template.jinja"
    jinja.write_text("{% for m in messages %}@{{ m.role }}:{{ m.content }}{% endfor %}"
                     "{% if add_generation_prompt %}@reply:{% endif %}{{ tools|tojson if tools }}")
    run = json_of("render --template FILE", "render", BUNDLED, "--messages", hello, "--template", jinja)
    check("the template in a file is run", run["template"] == "jinja"
          and run["text"] == "@system:Be brief.@user: Hi @reply:", run)
    tools = scratch / "tools.json"
    tools.write_text(json.dumps([{"name": "battery"}]))
    run = json_of("render --tools", "render", BUNDLED, "--messages", hello, "--template", jinja, "--tools", tools)
    check("it is given the tools", run["text"].endswith('[{"type": "function", "function": {"name": "battery"}}]'),
          run)
    jinja.write_text("no template")
    fails("render by a file without a template", 2, "render", BUNDLED, "--messages", hello,
          "--template", jinja)
    jinja.write_text("{{ raise_exception('No system messages.') }}")
    refused = fails("a template's own refusal", 1, "render", BUNDLED, "--messages", hello, "--template", jinja)
    check("in its own words", b"No system messages." in refused.err, refused)
    think = ["render", BUNDLED, "--messages", hello, "--template", "qwen3"]
    on, off = json_of("--think", *think, "--think"), json_of("--no-think", *think, "--no-think")
    check("--no-think", off["text"] == on["text"] + "<think>\n\n</think>\n\n"
          and on == json_of("thinking is the default", *think), (on, off))
    dated = ["render", BUNDLED, "--messages", hello, "--template", "llama3.2"]
    check("--date", "Today Date: 26 Jul 2024\n" in json_of("no date", *dated)["text"]
          and "Today Date: 05 Jan 2026\n" in
          json_of("a date", *dated, "--date", "2026-01-05")["text"])
    for nonsense in ("5.1.26", "2025-02-29", "2024-04-31", "2024-00-10", "-024-01-01", "2024-01-01x"):
        fails(f"--date of nonsense: {nonsense}", 2, *dated, "--date", nonsense)
    roles = json.dumps([{"role": "tool", "content": "x"}]).encode()
    results = json_of("results of tools are questions where the format has no role for them", "render", BUNDLED,
                      "--messages", "-", "--template", "gemma3", stdin=roles)
    check("with their text", "user\n<tool_response>\nx\n</tool_response><end_of_turn>" in results["text"], results)
    fails("a role with a NUL in it", 1, "render", BUNDLED, "--messages", "-",
          stdin=b'[{"role": "user\\u0000x", "content": "x"}]')
    empty = json_of("render of no messages", "render", BUNDLED, "--messages", "-", "--template",
                    "qwen2.5", "--no-generation-prompt", stdin=b"[]")
    check("no messages: what stands before the first", empty["text"].startswith("<|im_start|>system"),
          empty)
    other = succeeds("chat in another format", "chat", SMALL, *FIXED, "--template", "llama3.2",
                     "--tokens", "3", "--system", "Be brief.", "--no-think", stdin=b"Hi\nHo\n")
    check("chat in another format replies twice", other.out.count(b"\n\n") >= 2, other)
    fails("chat in a format nobody knows", 2, "chat", SMALL, *FIXED, "--template", "nope",
          stdin=b"Hi\n")
    run = json_of("run in another format", "run", SMALL, *FIXED, "--prompt", "Hi", "--tokens", "2",
                  "--template", "mistral-v1")
    user = scratch / "user.json"
    user.write_text(json.dumps([{"role": "user", "content": "Hi"}]))
    text = json_of("its text", "render", SMALL, "--messages", user, "--template", "mistral-v1")["text"]
    decoded = oriel("tokenize", SMALL, "--decode", "--special", *run["prompt_token_ids"]).out.decode()
    check("run in another format asks as render shows", text == "<|endoftext|> [INST] Hi [/INST]"
          and decoded.endswith(" [INST] Hi [/INST]"), (text, decoded))


# ---- Conversations --------------------------------------------------------------------------------

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
