#!/usr/bin/env python3
"""Replies that are held to a form, and thoughts: test_structured.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import (BUNDLED, DATA, FIXED, ORIEL, check, environment, fails, json_of, one_line_failure, run_tests,
                     scratch, succeeds)

HOT = ["--temperature", "1.5", "--top-k", "0", "--min-p", "0"]
SCHEMA = {"type": "object", "properties": {
    "title": {"type": "string", "maxLength": 12}, "stars": {"type": "integer", "minimum": 1, "maximum": 5},
    "tags": {"type": "array", "items": {"enum": ["new", "old", "odd"]}, "maxItems": 3},
    "ok": {"type": "boolean"}}, "required": ["title", "stars", "ok"]}
# Its generation prompt opens a thought, and nothing closes it: the model does not know the mark.
THINKS = """{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content }}
{%- if '</think>' in message.content %}{{ '<think>' }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"""


def written(name, content):
    path = scratch / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def valid(value):
    return (list(value) == [name for name in SCHEMA["properties"] if name in value]
            and {"title", "stars", "ok"} <= set(value)
            and isinstance(value["title"], str) and len(value["title"]) <= 12
            and type(value["stars"]) is int and 1 <= value["stars"] <= 5 and type(value["ok"]) is bool
            and len(value.get("tags", [])) <= 3 and set(value.get("tags", [])) <= {"new", "old", "odd"})


def test_schemas_hold_at_any_temperature():
    schema = written("schema.json", SCHEMA)
    texts = set()
    for seed in range(1, 9):
        args = ["run", BUNDLED, "--prompt", "Describe a film.", "--schema", schema, "--seed", seed, *HOT, *FIXED]
        out = succeeds(f"seed {seed}", *args).out.decode()
        texts.add(out)
        check("one value and a new line", out.endswith("}\n") and out.count("\n") == 1, out)
        check("valid by the schema", valid(json.loads(out)), out)
        cut = fails(f"seed {seed}, cut off", 4, *args, "--tokens", "9").out.decode()
        check("cut off it is the beginning of it", out.startswith(cut[:-1]) and len(cut) < len(out), (cut, out))
    check("seeds differ", len(texts) > 4, texts)
    read = json_of("--json", "run", BUNDLED, "--prompt", "x", "--schema", schema, "--seed", "3", *HOT, *FIXED)
    check("the value is the text", valid(json.loads(read["text"])) and read["stop_reason"] == "stop", read)
    raw = succeeds("--raw", "run", BUNDLED, "--raw", "--prompt", "x", "--schema", schema, "--seed", "3", *HOT, *FIXED)
    check("--raw, too", valid(json.loads(raw.out)), raw)
    piped = succeeds("from stdin", "run", BUNDLED, "--prompt", "x", "--schema", "-", "--seed", "3", *HOT, *FIXED,
                     stdin=json.dumps(SCHEMA).encode())
    check("- is stdin", valid(json.loads(piped.out)), piped)


def test_grammars():
    grammar = written("moves.gbnf", 'root ::= move (" " move){2}\nmove ::= [a-h] [1-8] "-" [a-h] [1-8]\n')
    for seed in (1, 2, 3):
        out = succeeds("a grammar", "run", BUNDLED, "--prompt", "Move.", "--grammar", grammar, "--seed", seed,
                       *HOT, *FIXED).out.decode()
        check("a text of it", re.fullmatch(r"[a-h][1-8]-[a-h][1-8]( [a-h][1-8]-[a-h][1-8]){2}\n", out), out)
    two = succeeds("a chat", "chat", BUNDLED, "--grammar", grammar, "--json", *HOT, *FIXED, stdin=b"Move.\nOn.\n")
    check("every reply of a chat", [re.fullmatch(r"([a-h1-8-]{5} ?){3}", json.loads(line)["text"]) is not None
                                    for line in two.out.splitlines()] == [True, True], two)


def test_what_is_refused():
    prompt = ["run", BUNDLED, "--prompt", "x", *FIXED]
    schema = written("not.json", {"type": "object", "properties": {"name": {"not": {"multipleOf": 3}}}})
    result = fails("a keyword", 1, *prompt, "--schema", schema)
    check("its name, place and file", all(word in result.err for word in
                                          (b'"not"', b"#/properties/name", str(schema).encode())), result)
    grammar = written("bad.gbnf", 'root ::= "a" |\n  other\n')
    result = fails("a grammar", 1, *prompt, "--grammar", grammar)
    check("its rule and file", b"'other'" in result.err and str(grammar).encode() in result.err, result)
    fails("no JSON", 1, *prompt, "--schema", written("no.json", "{"))
    fails("an empty file", 1, *prompt, "--grammar", written("empty.gbnf", ""))
    fails("no file", 1, *prompt, "--schema", scratch / "absent.json")
    both = program.oriel(*prompt, "--schema", schema, "--grammar", grammar)
    check("both", one_line_failure(both, 2), both)
    shape = program.oriel("plan", "--arch", "llama-3.2-1b", "--constraints")
    check("a shape has no vocabulary", one_line_failure(shape, 2), shape)


def test_plans_count_them():
    fixed = FIXED[:-2]  # nothing is measured where no device is named
    plain = json_of("a plan", "plan", BUNDLED, *fixed)
    more = json_of("--constraints", "plan", BUNDLED, "--constraints", *fixed)
    check("part of host_bytes", plain["constraint_bytes"] == 0 < more["constraint_bytes"]
          == more["host_bytes"] - plain["host_bytes"], (plain, more))


def test_thoughts_are_no_answer():
    template = written("thinks.jinja", THINKS)
    args = ["run", BUNDLED, "--prompt", "Hello!", "--template", template, "--greedy", "--tokens", "12", *FIXED]
    whole = json_of("a thought", *args)
    check("all is thought", whole["text"] == "" and len(whole["thought"]) > 8, whole)
    # A possible beginning of a stop text is held back to the end, and remains thought.
    held = json_of("held back", *args, "--stop", whole["thought"][-4:] + "@#")
    check("nothing becomes answer", (held["text"], held["thought"]) == ("", whole["thought"]), held)
    stopped = json_of("stopped", *args, "--stop", whole["thought"][4:8])
    check("a stop text in it", (stopped["text"], stopped["thought"], stopped["stop_reason"])
          == ("", whole["thought"][:4].rstrip(), "stop_text"), stopped)
    text = succeeds("as text", *args)
    check("nothing on stdout", text.out == b"\n", text)
    raw = json_of("--raw", "run", BUNDLED, "--raw", "--prompt", "<think>\nHello!", "--greedy", "--tokens", "5", *FIXED)
    check("--raw has none", "thought" not in raw and raw["text"], raw)


def test_the_page_s_example():
    page = (DATA.parent.parent / "docs" / "structured-output.md").read_text("utf-8")
    block = re.search(r"## An example.*?```\n(.*?\nEND\n)(.*?)```", page, re.S)
    env = environment(PATH=f"{ORIEL.parent}{os.pathsep}{os.environ['PATH']}")
    done = subprocess.run(["sh", "-c", block.group(1)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    check("prints what the page says", done.returncode == 0 and done.stdout.decode() == block.group(2), done)
    told = [("Emma", "Lisbon"), ("Noah", "Oslo"), ("Mia", "Vienna"), ("Leo", "Dublin"), ("Clara", "Madrid"),
            ("Tom", "Prague"), ("Ines", "Athens"), ("Paul", "Cairo"), ("Ada", "Berlin"), ("Hugo", "Lima"),
            ("Zoe", "Rome"), ("Otto", "Hamburg"), ("Ruth", "Boston"), ("Sven", "Bergen"), ("Lucy", "Sydney"),
            ("Karl", "Zurich"), ("Rosa", "Bogota"), ("Finn", "Galway"), ("Nina", "Krakow"), ("Owen", "Bristol")]
    right = 0
    for name, city in told:
        command = block.group(1).replace("Zoe", name).replace("Rome", city)
        done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        right += json.loads(done.stdout) == {"name": f"Your name is {name}.", "city": f"You live in {city}."}
    check(f"{right} of {len(told)} pairs", right == len(told), right)


if __name__ == "__main__":
    sys.exit(run_tests(dict(globals())))
