#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for replies, except sampling, for the sources of prompts, for --batch and for filling
in the middle: test_run.py ORIEL_BINARY TEST_DATA_DIR
"""

import json
import math
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import (BUNDLED, CPU, EXACT, FIXED, ORIEL, PATIENCE, SMALL, check, environment, fails, json_of,
                     one_line_failure, oriel, run_tests, scratch, succeeds, with_keys, write_ids)
from server import Server

TALK = [BUNDLED, "--prompt", "Tell me a story.", "--tokens", "60", "--seed", "5", *FIXED]
USE_BUNDLED = environment(ORIEL_MODEL=str(BUNDLED))


def test_stop():
    whole = json_of("run", "run", *TALK)["text"]
    for begin, end in ((5, 8), (20, 31), (0, 1)):
        stop = whole[begin:end]
        cut = json_of(f"run --stop {stop}", "run", *TALK, "--stop", "Nobody says this.", "--stop", stop)
        check("a stop text ends the reply in front of it", cut["text"] == whole[:whole.find(stop)], cut)
        check("and is the reason", cut["stop_reason"] == "stop_text", cut)
        text = succeeds("as text", "run", *TALK, "--stop", stop).out.decode()
        check("as text, too", text == whole[:whole.find(stop)] + "\n", text)
    never = json_of("run --stop", "run", *TALK, "--stop", "[no,such]", "--stop", "\\n\\\\x")
    check("one that does not come changes nothing", never["text"] == whole, never)
    check("nor the reason", never["stop_reason"] in ("length", "stop"), never)


def test_stop_escapes():
    # A model that is made to say line feeds.
    feed = json_of("tokenize", "tokenize", BUNDLED, stdin=b"\n")["ids"]
    if not check("a line feed is a token", len(feed) == 1, feed):
        return
    bias = ["--logit-bias", f"{feed[0]}=1000", "--tokens", "10", *FIXED, "--raw", "--prompt", "x"]
    check("biased", json_of("run", "run", BUNDLED, *bias)["text"] == "\n" * 10)
    for stop, want in (("\\n\\n", ""), ("\\\\n", "\n" * 10), ("\\x", "\n" * 10)):
        said = json_of(f"--stop {stop}", "run", BUNDLED, *bias, "--stop", stop)
        check(f"--stop {stop}", said["text"] == want, said)


def test_bias():
    ids = json_of("run", "run", *TALK, "--greedy")["token_ids"]
    without = json_of("run --logit-bias", "run", *TALK, "--greedy", "--logit-bias", f"{ids[3]}=-inf",
                      "--logit-bias", f"{ids[0]}=-1.5")["token_ids"]
    check("minus infinity forbids", ids[3] not in without, without)
    always = json_of("run --logit-bias", "run", *TALK, "--logit-bias", "300=500", "--logit-bias",
                     "300=500")["token_ids"]
    check("biases add up", set(always) == {300}, always)


def test_penalties():
    common = ["run", SMALL, "--raw", "--prompt", "x y z", "--tokens", "80", "--ignore-stop", "--greedy",
              *FIXED]
    plain = json_of("run", *common)["token_ids"]
    unlike = {tuple(plain)}
    for option in (["--presence-penalty", "3"], ["--frequency-penalty", "1"],
                   ["--presence-penalty", "3", "--repeat-window", "1"]):
        ids = json_of(" ".join(option), *common, *option)["token_ids"]
        unlike.add(tuple(ids))
    check("each penalty makes a difference", len(unlike) == 4, unlike)
    never_again = json_of("presence", *common[:-len(FIXED)], *FIXED, "--presence-penalty", "10",
                          "--frequency-penalty", "10", "--repeat-window", "256")["token_ids"]
    check("what was said does not come again", len(set(never_again)) == len(never_again), never_again)


def test_min_tokens():
    stop = json_of("tokenize", "tokenize", BUNDLED, "--special", stdin=b"<|im_end|>")["ids"]
    if not check("a stop token", len(stop) == 1, stop):
        return
    likely = [*TALK, "--logit-bias", f"{stop[0]}=1000"]
    check("at once", json_of("run", "run", *likely)["tokens"] == 0)
    late = json_of("run --min-tokens", "run", *likely, "--min-tokens", "7")
    check("no stop token before", late["tokens"] == 7 and late["stop_reason"] == "stop", late)
    check("and none among them", stop[0] not in late["token_ids"], late)


def test_logprobs():
    run = json_of("run --logprobs", "run", EXACT, "--raw", "--prompt", "hello there", "--tokens", "12",
                  "--ignore-stop", "--seed", "3", "--temperature", "2", "--logprobs", "3", *FIXED)
    check("one for each token", [t["id"] for t in run["logprobs"]] == run["token_ids"], run)
    for n, token in enumerate(run["logprobs"]):
        ids = run["prompt_token_ids"] + run["token_ids"][:n]
        top = json_of("eval", "eval", EXACT, "--tokens-file", write_ids(ids), *FIXED)["top"]
        check("the most likely, best first", [i for i, _ in token["top"]] == [i for i, _ in top[:3]],
              (token, top))
        # Differences of log-probabilities equal differences of logits.
        near = all(abs((token["top"][0][1] - token["top"][k][1]) - (top[0][1] - top[k][1])) < 1e-3
                   for k in range(3))
        check("as far apart as their logits", near, (token, top))
        check("the chosen one is none better", token["logprob"] <= token["top"][0][1], token)
        check("probabilities", sum(math.exp(p) for _, p in token["top"]) <= 1 + 1e-6, token)
    none = json_of("run --logprobs 0", "run", *TALK, "--logprobs", "0")
    check("of the chosen alone", all(t["top"] == [] and t["logprob"] <= 0 for t in none["logprobs"]))
    lines = oriel("chat", BUNDLED, "--json", "--logprobs", "1", "--tokens", "5", *FIXED,
                  stdin=b"Hello!\nHello!\n").out.decode().splitlines()
    check("in chat, too", all(len(json.loads(line)["logprobs"]) == json.loads(line)["tokens"]
                              for line in lines) and len(lines) == 2, lines)


def test_chat_stops():
    said = oriel("chat", BUNDLED, "--json", "--greedy", "--tokens", "40", *FIXED, stdin=b"Hello!\n").json
    stop = said["text"][4:9]
    lines = oriel("chat", BUNDLED, "--json", "--greedy", "--tokens", "40", "--stop", stop, *FIXED,
                  stdin=b"Hello!\nAnd now?\n").out.decode().splitlines()
    first = json.loads(lines[0])
    check("chat --stop", first["text"] == said["text"][:said["text"].find(stop)], lines)
    check("its reason", first["stop_reason"] == "stop_text", lines)
    check("the conversation goes on", len(lines) == 2, lines)


def test_where_prompts_come_from():
    tail = ["--tokens", "12", "--seed", "3", *FIXED, "--json"]
    want = oriel("run", BUNDLED, "--prompt", "Say hello.", *tail).json

    def same(name, *args, **options):
        got = oriel("run", *args, *tail, **options)
        check(name, got.code == 0 and got.json["token_ids"] == want["token_ids"] and
              got.json["prompt_token_ids"] == want["prompt_token_ids"], got)

    same("a word behind the model", BUNDLED, "Say hello.")
    same("a word alone", "Say hello.", env=USE_BUNDLED)
    same("a pipe", BUNDLED, stdin=b"Say hello.\n")
    same("a pipe without a line's end", BUNDLED, stdin=b"Say hello.")
    same("a pipe and no model", stdin=b"Say hello.\r\n", env=USE_BUNDLED)
    conversation = scratch / "conversation.json"
    conversation.write_text(json.dumps([{"role": "user", "content": "Say hello."}]))
    same("a conversation", BUNDLED, "--messages", conversation)
    same("a conversation on stdin", BUNDLED, "--messages", "-", stdin=conversation.read_bytes())
    system = oriel("run", BUNDLED, "Say hello.", "--system", "Be brief.", *tail).json
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]
    rendered = json_of("render", "render", BUNDLED, "--messages", "-", stdin=json.dumps(turns).encode())
    check("--system", system["prompt_token_ids"][-len(rendered["token_ids"]):] == rendered["token_ids"],
          (system, rendered))
    conversation.write_text(json.dumps(turns))
    both = oriel("run", BUNDLED, "--messages", conversation, *tail).json
    check("is the same in a conversation", both["token_ids"] == system["token_ids"], both)
    missing = oriel("run", "no-such-model.gguf", "hello")
    check("two words: the first is the model", one_line_failure(missing, 1) and
          b"no-such-model.gguf" in missing.err, missing)
    missing = oriel("run", "no-such-model.GGUF", stdin=b"hello")
    check("a name that ends in .gguf is the model", b"no-such-model.GGUF" in missing.err, missing)


def test_samples():
    # A raw prompt's last token is computed in its own step, which rounds in another order.
    for mode, exact in (([], 4), (["--window", "16"], 4), (["--raw", "--presence-penalty", "1"], 4),
                        (["--raw"], 1), (["--raw", "--window", "16"], 1)):
        args = ["run", BUNDLED, "One upon a time", "--tokens", "30", "--temperature", "2", *FIXED, "--json",
                *mode]
        lines = oriel(*args, "--seed", "11", "--samples", "4").out.decode().splitlines()
        texts = [json.loads(line)["text"] for line in lines]
        alone = [oriel(*args, "--seed", str(11 + n)).json["text"] for n in range(exact)]
        check(f"samples {mode}: as with a seed of its own", texts[:exact] == alone, (texts, alone))
        check(f"samples {mode}: unlike each other", len(set(texts)) == 4, texts)
    last = ["run", BUNDLED, "One upon a time", "--tokens", "12", "--temperature", "2", *FIXED, "--seed", str(2 ** 64 - 1)]
    twice = [oriel(*last, "--samples", "3").out for _ in range(2)]
    check("samples behind the largest seed", twice[0] == twice[1], twice)
    text = succeeds("samples as text", "run", BUNDLED, "Hello!", "--tokens", "3", "--samples", "2", *FIXED)
    check("each followed by an empty line", text.out.count(b"\n\n") == 2, text)


def test_more_samplers():
    """Each option changes sampled replies; only DRY changes greedy ones."""
    def ids(*args, tokens="60"):
        return json_of(f"with {' '.join(args)}", "run", BUNDLED, "Tell me a story about the sea.", "--json",
                       "--device", "cpu", "--tokens", tokens, *args)["token_ids"]

    hot = ["--seed", "5", "--temperature", "1.5", "--top-k", "0", "--top-p", "1", "--min-p", "0"]
    usual = ids(*hot)
    check("the same seed gives the same tokens", ids(*hot) == usual)
    for more in (["--typical-p", "0.3"], ["--top-n-sigma", "0.5"], ["--xtc-probability", "1"],
                 ["--dry-multiplier", "20", "--dry-allowed-length", "1", "--dry-breaker", "\\n\\n\\n"]):
        check(f"{more[0]} changes it", ids(*hot, *more) != usual, more)
    greedy = ids("--greedy")
    check("greedy is greedy", greedy == ids("--greedy", "--typical-p", "0.3", "--top-n-sigma", "0.5",
                                            "--xtc-probability", "1"))
    dry = ids("--greedy", "--ignore-stop", "--dry-multiplier", "50", "--dry-allowed-length", "3", "--dry-breaker",
              "never written", tokens="200")
    seen = set()
    again = 0
    for i in range(len(dry) - 4):
        part = tuple(dry[i:i + 5])
        again += part in seen
        seen.add(part)
    check("no five tokens come again", again == 0, dry)


def test_wrong_usage():
    conversation = scratch / "conversation.json"
    for content in ("[]", '[{"role": "assistant", "content": "x"}]', '{"role": "user"}'):
        conversation.write_text(content)
        result = oriel("run", BUNDLED, "--messages", conversation)
        check(f"no conversation to answer: {content}", one_line_failure(result, 1), result)
    for args in (["--logprobs", "3"], ["--logprobs", "21", "--json"], ["--stop", ""],
                 ["--stop", "x" * 257], ["--stop", "x"] * 17, ["--logit-bias", "5"],
                 ["--logit-bias", "x=5"], ["--logit-bias", "5=nan"], ["--logit-bias", "5=inf"],
                 ["--logit-bias", "-1=5"], ["--logit-bias", "99999999=5"], ["--logit-bias", "5=1=2"],
                 ["--presence-penalty", "11"], ["--frequency-penalty", "-10.5"],
                 ["--repeat-window", "257"], ["--repeat-window", "0"],
                 ["--typical-p", "0"], ["--top-n-sigma", "-1"], ["--xtc-probability", "1.5"],
                 ["--dry-base", "0.5"], ["--dry-window", "257"], ["--dry-breaker", ""],
                 ["--dry-breaker", "x" * 33], ["--dry-breaker", "x"] * 17,
                 ["--min-tokens", "5", "--tokens", "4"], ["--samples", "0"],
                 ["--raw", "--system", "x"], ["--prompt", "y"], ["--messages", "-"]):
        result = oriel("run", BUNDLED, "hello", *args, "--device", "cpu")
        check(f"wrong usage: {' '.join(args)[:60]}", one_line_failure(result, 2) and not result.out, result)
    for args in ([], [BUNDLED]):
        result = oriel("run", *args, env=USE_BUNDLED)
        check(f"no prompt at all: {args}", one_line_failure(result, 2) and not result.out, result)


SAME = ["--greedy", "--tokens", "12", "--memory", "64MiB", "--window", "400", "--kv", "f16", *CPU]


def batch(lines, *args, text=None):
    path = scratch / "batch.jsonl"
    path.write_text(text if text is not None else "".join(json.dumps(line) + "\n" for line in lines))
    result = oriel("run", BUNDLED, "--batch", path, *SAME, *args)
    return result, [json.loads(line) for line in result.out.splitlines()]


def alone(prompt, *args):
    return oriel("run", BUNDLED, prompt, "--json", *SAME, *args).json


def test_each_line_is_answered_as_it_would_be_alone():
    prompts = ["Hello!", "My name is Ada. What is my name?", "Tell me a story.", "What is 2 plus 3?", "Spell lamp."]
    want = [alone(prompt) for prompt in prompts]
    for sessions in (1, 2, 3, 8):
        result, got = batch([{"prompt": prompt} for prompt in prompts], "--sessions", sessions)
        check(f"{sessions} at a time: the same texts in the same order", result.code == 0 and result.err == b""
              and [g["text"] for g in got] == [w["text"] for w in want], result)
        check(f"{sessions} at a time: numbers of lines", [g["id"] for g in got] == [1, 2, 3, 4, 5], got)


def test_what_a_line_says():
    lines = [{"id": "a", "messages": [{"role": "user", "content": "My name is Ada."},
                                      {"role": "assistant", "content": "Hello, Ada!"},
                                      {"role": "user", "content": "What is my name?"}]},
             {"id": {"b": [1]}, "prompt": "Tell me a story.", "tokens": 3},
             {"id": None, "prompt": "Hello!", "stop": ["e", "o"]},
             {"prompt": "Pick one.", "schema": {"enum": ["left", "right"]}},
             {"prompt": "Pick one.", "grammar": 'root ::= "xyz"'},
             {"prompt": "Hello!", "seed": 5, "greedy": False, "temperature": 5},
             {"prompt": "Hello!", "seed": 5, "greedy": False, "temperature": 5, "system": "Be brief."},
             {"prompt": "x", "tools": [{"type": "function", "function": {"name": "clock"}}]}]
    result, got = batch(lines, "--sessions", "3")
    check("all of them", result.code == 0 and len(got) == len(lines), result)
    check("ids as they came", [g["id"] for g in got] == ["a", {"b": [1]}, None, 4, 5, 6, 7, 8], got)
    check("messages", "Ada" in got[0]["text"], got[0])
    check("tokens", got[1]["tokens"] == 3 and got[1]["stop_reason"] == "length", got[1])
    check("stop", "e" not in got[2]["text"] and "o" not in got[2]["text"], got[2])
    check("schema", json.loads(got[3]["text"]) in ("left", "right"), got[3])
    check("grammar", got[4]["text"] == "xyz", got[4])
    single = oriel("run", BUNDLED, "Hello!", "--json", "--seed", "5", "--temperature", "5", *SAME[1:]).json
    check("seed and temperature", got[5]["text"] == single["text"], (got[5], single))
    check("system", got[6]["prompt_tokens"] > got[5]["prompt_tokens"], got[6])
    check("tools", got[7]["tool_calls"] == [], got[7])


def test_errors_stand_in_their_place():
    text = "\n".join(['{"prompt": "Hello!", "id": "good"}', "", "no json", '{"id": "x"}', "[1]",
                      '{"prompt": "a", "messages": []}', '{"id": 9, "prompt": "a", "temperature": 101}',
                      '{"prompt": "a", "nonsense": 1}', '{"prompt": 3}', '{"prompt": "a", "memory": "1MB"}',
                      '{"prompt": "a", "schema": {"type": "no such"}}', '{"messages": [{"no": "role"}]}',
                      '{"prompt": "a", "tool_choice": "perhaps"}', '{"prompt": "a", "tool_choice": "required"}',
                      '{"prompt": "a", "schema": {}, "grammar": "root ::= \\"a\\""}', '{"prompt": "Hello!"}'])
    result, got = batch(None, "--sessions", "4", text=text)
    check("the good ones are answered", got[0]["id"] == "good" and got[0]["text"] == got[-1]["text"] != "", got)
    check("the others have an error", all(set(g) == {"id", "error"} and g["error"] for g in got[1:-1])
          and len(got) == 15, got)
    check("ids, and numbers of lines without one", [g["id"] for g in got] ==
          ["good", 3, "x", 5, 6, 9, 8, 9, 10, 11, 12, 13, 14, 15, 16], [g["id"] for g in got])
    check("what is wrong is named", "temperature" in got[5]["error"] and "nonsense" in got[6]["error"], got)
    check("exit code 1 in the end", result.code == 1 and result.err.count(b"\n") == 1 and b"13 of 15" in result.err,
          result)


def test_ctrl_c_keeps_what_has_ended():
    path = scratch / "endless.jsonl"
    endless = 'root ::= [a-z]+'
    path.write_text("".join(json.dumps(line) + "\n" for line in [
        {"prompt": "Hello!", "tokens": 2}, {"prompt": "Go on.", "grammar": endless, "tokens": 0, "min_tokens": 100000},
        {"prompt": "Hello!", "tokens": 2}]))
    run = subprocess.Popen([ORIEL, "run", BUNDLED, "--batch", path, "--sessions", "2", "--greedy", *CPU],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    time.sleep(3 * PATIENCE)  # the first has ended by then, the second never does
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60 * PATIENCE)
    got = [json.loads(line) for line in out.splitlines()]
    check("the first line's result is there", run.returncode == 130 and [g["id"] for g in got] == [1]
          and got[0]["tokens"] == 2, (run.returncode, out, err))


def test_usage():
    empty, got = batch([])
    check("no lines", empty.code == 0 and got == [], empty)
    fails("a file that is not there", 1, "run", BUNDLED, "--batch", scratch / "none", *CPU)
    for args in (["--batch", "x", "--prompt", "y"], ["--sessions", "2", "hi"], ["--batch", "x", "--raw"],
                 ["--batch", "x", "--samples", "2"], ["--batch", "x", "--ignore-stop"]):
        check(f"wrong usage: {args}", one_line_failure(oriel("run", BUNDLED, *args), 2))
    lines = [{"prompt": "Hello!", "tokens": 2}]
    result, got = batch(lines, "--logprobs", "2")
    check("logprobs need no --json", result.code == 0 and len(got[0]["logprobs"]) == 2, result)
    result, got = batch(lines, "--tool-choice", "checked")
    check("lines may bring the tools that a choice is about", result.code == 0 and got[0]["tokens"] == 2, result)
    one = oriel("run", BUNDLED, "--batch", "-", *SAME, stdin=b'{"prompt": "Hello!"}')
    check("from a pipe", one.code == 0 and one.json["text"] == alone("Hello!")["text"], one)


BEFORE, BEHIND = "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"
MARKS = {"fim_pre": 11, "fim_suf": 12, "fim_mid": 13}


def ids_of(text):
    return json_of("ids", "tokenize", SMALL, stdin=text.encode())["ids"]


def expected(before=BEFORE, behind=BEHIND):
    bos = json_of("bos", "run", SMALL, "--prompt", "a", "--raw", "--tokens", "1", *FIXED)["prompt_token_ids"]
    bos = bos[:len(bos) - len(ids_of("a"))]
    return bos + [MARKS["fim_pre"]] + ids_of(before) + [MARKS["fim_suf"]] + ids_of(behind) + [MARKS["fim_mid"]]


def marked():
    model = with_keys(SMALL, {f"tokenizer.ggml.{name}_token_id": id for name, id in MARKS.items()})
    return model.rename(scratch / "coder.gguf")


def files():
    before, behind = scratch / "before.py", scratch / "behind.py"
    before.write_text(BEFORE)
    behind.write_text(BEHIND)
    return before, behind


def test_run():
    model, (before, behind) = marked(), files()
    fixed = ["--tokens", "12", "--greedy", *FIXED]
    got = json_of("a gap", "run", model, "--prefix", before, "--suffix", behind, *fixed)
    check("reads prefix, suffix and middle", got["prompt_token_ids"] == expected(), got)
    ids = scratch / "ids.json"
    ids.write_text(json.dumps({"ids": expected()}))
    same = json_of("the same ids", "run", model, "--tokens-file", ids, *fixed)
    check("and writes what follows", got["text"] == same["text"] and got["token_ids"] == same["token_ids"], (got, same))
    only = json_of("no prefix", "run", model, "--suffix", behind, *fixed)
    check("is an empty one", only["prompt_token_ids"] == expected(before=""), only)
    plain = fails("a model without the tokens", 1, "run", SMALL, "--prefix", before, *fixed)
    check("says so", b"fill in the middle" in plain.err, plain)
    both = oriel("run", model, "--prefix", before, "--prompt", "Hello", *fixed)
    check("a gap and a prompt", both.code == 2 and b"--prefix" in both.err, both)
    fails("no such file", 1, "run", model, "--prefix", scratch / "nowhere", *fixed)
    info = json_of("info", "info", model)
    check("info has the ids", [info[f"fill_{name}_id"] for name in ("prefix", "suffix", "middle")] == list(MARKS.values()), info)


def test_serve():
    if b"--queue" not in oriel("serve", "--help").out:
        print("skipped: this program was built without its server (libboost-dev)")
        return
    model, (before, behind) = marked(), files()
    text = json_of("run", "run", model, "--prefix", before, "--suffix", behind, "--tokens", "12", "--greedy", *FIXED)["text"]
    asked = {"input_prefix": BEFORE, "input_suffix": BEHIND, "n_predict": 12, "temperature": 0}
    with Server(model) as server:
        whole = server.post("/infill", asked)
        check("/infill", whole.status == 200 and whole.json["content"] == text and whole.json["stop"] is True
              and whole.json["tokens_evaluated"] == len(expected()), whole)
        stream = server.post("/infill", {**asked, "stream": True})
        events = [json.loads(line[6:]) for line in stream.body.decode().split("\n") if line.startswith("data: ")]
        check("streamed", "".join(event["content"] for event in events) == text and events[-1]["stop"] is True, stream)
        typed = server.post("/infill", {**asked, "input_prefix": BEFORE[:8], "prompt": BEFORE[8:]})
        check("a prompt stands before the gap", typed.json["content"] == text, typed)
        warmed = server.post("/infill", {**asked, "n_predict": 0})
        check("n_predict 0 only reads", warmed.json["content"] == "" and warmed.json["tokens_predicted"] == 0, warmed)
        extra = server.post("/infill", {**asked, "input_extra": [{"filename": "other.py", "text": "x = 1"}]})
        check("other files stand in front", extra.json["tokens_evaluated"] > len(expected()), extra)
        complete = server.complete(BEFORE, suffix=BEHIND, max_tokens=12)
        check("/v1/completions with a suffix", complete.json["choices"][0]["text"] == text, complete)
        ollama = server.post("/api/generate", {"model": "m", "prompt": BEFORE, "suffix": BEHIND, "stream": False,
                                               "options": {"temperature": 0, "num_predict": 12}})
        check("/api/generate with a suffix", ollama.json["response"] == text, ollama)
        for name, wrong, field in (("no list", {**asked, "input_extra": "x"}, "input_extra"),
                                   ("no text", {**asked, "input_prefix": 3}, "input_prefix")):
            reply = server.post("/infill", wrong)
            check(name, reply.status == 400 and reply.json["error"]["param"] == field, reply)
    with Server(SMALL) as server:
        reply = server.post("/infill", asked)
        check("a model without the tokens", reply.status == 400 and "fill in the middle" in reply.json["error"]["message"], reply)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
