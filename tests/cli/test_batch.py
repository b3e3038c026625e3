#!/usr/bin/env python3
"""`oriel run --batch`: test_batch.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, CPU, ORIEL, PATIENCE, check, environment, fails, one_line_failure, oriel, run_tests, scratch

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


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
