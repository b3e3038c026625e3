#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for run, chat, tokenize and render:
test_chat.py ORIEL_BINARY TEST_DATA_DIR
"""

import json
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import (BUNDLED, FIXED, SMALL, check, fails, has_fields, json_of, one_line_failure, oriel,
                     run_tests, scratch, succeeds)

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


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
