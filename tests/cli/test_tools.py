#!/usr/bin/env python3
"""Tools, forms of replies and `oriel parse`: test_tools.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import (BUNDLED, DATA, FIXED, ORIEL, PATIENCE, check, environment, fails, json_of,
                     one_line_failure, run_tests, scratch, succeeds)

# The model knows nothing of tools, so calls are forced.
TEMPLATE = """{%- if tools %}{{ '<|im_start|>system\n<tool_call>{"name": ..., "arguments": ...}</tool_call>\n' }}
{%- for tool in tools %}{{ (tool | tojson) + '\n' }}{% endfor %}{{ '<|im_end|>\n' }}{% endif %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}{{ '<tool_call>' + (call.function | tojson) + '</tool_call>' }}{% endfor %}
{{- '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Lisbon", "Oslo"]},
                                     "days": {"type": "integer", "minimum": 1, "maximum": 7}},
    "required": ["city", "days"]}}}]


def written(name, content):
    path = scratch / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def with_tools():
    return ["--tools", written("tools.json", TOOLS), "--template", written("tools.jinja", TEMPLATE), "--greedy",
            *FIXED]


def valid(call):
    return (call["name"] == "get_weather" and list(call["arguments"]) == ["city", "days"]
            and call["arguments"]["city"] in ("Lisbon", "Oslo") and 1 <= call["arguments"]["days"] <= 7)


def objects(result):
    return [json.loads(line) for line in result.out.splitlines()]


def test_run_prints_calls():
    args = ["run", BUNDLED, "--prompt", "Weather?", *with_tools()]
    read = json_of("required", *args, "--tool-choice", "required")
    check("one valid call and no text", read["text"] == "" and len(read["tool_calls"]) == 1
          and valid(read["tool_calls"][0]), read)
    text = succeeds("as text", *args, "--tool-choice", "required")
    check("calls as lines of JSON", objects(text) == read["tool_calls"], text)
    free = json_of("free", *args, "--tokens", "5")
    check("without a call the list is empty", free["tool_calls"] == [] and free["text"], free)
    cut = json_of("cut off", *args, "--tool-choice", "required", "--tokens", "30")
    check("a call that is cut off is none", cut["tool_calls"] == [] and cut["stop_reason"] == "length", cut)
    plain = json_of("no tools", "run", BUNDLED, "--prompt", "x", "--tokens", "3", *FIXED)
    check("no field without tools", "tool_calls" not in plain, plain)
    form = written("call.gbnf", 'root ::= "<tool_call>{\\"name\\": \\"f\\", \\"arguments\\": {}}</tool_call>"')
    none = json_of("none", *args, "--tool-choice", "none", "--grammar", form)
    check("none reads no call", none["tool_calls"] == [] and "arguments" in none["text"], none)


def test_wrong_usage_of_tools():
    fails("a choice without tools", 2, "run", BUNDLED, "--prompt", "x", "--tool-choice", "checked", *FIXED)
    fails("a command without tools", 2, "chat", BUNDLED, "--allow-tool", "a=b", *FIXED, stdin=b"x\n")
    fails("no choice", 2, "run", BUNDLED, "--prompt", "x", *with_tools(), "--tool-choice", "maybe")
    fails("no command", 2, "chat", BUNDLED, *with_tools(), "--allow-tool", "get_weather", stdin=b"x\n")


def test_parameters_may_be_deep():
    """Each nested object takes two levels of a schema: 30 objects in 64 levels, with the list around them."""
    def tools(depth):
        schema = {"type": "integer"}
        for _ in range(depth):
            schema = {"type": "object", "properties": {"a": schema}}
        return written("deep.json", [{"type": "function", "function": {"name": "f", "parameters": schema}}])

    args = ["run", BUNDLED, "--prompt", "x", "--template", written("tools.jinja", TEMPLATE), "--tokens", "2", *FIXED]
    read = json_of("deep parameters", *args, "--tools", tools(29))
    check("29 objects in each other are read", read["tool_calls"] == [], read)
    refused = fails("deeper ones are refused", 1, *args, "--tools", tools(40))
    check("with the bound", b"more than 64 levels" in refused.err, refused)


def test_template_variables_are_checked():
    messages = written("messages.json", [{"role": "user", "content": "x"}])
    args = ["render", BUNDLED, "--messages", messages, "--template-variables"]
    succeeds("an object", *args, '{"reasoning_effort": "low"}')
    fails("a list", 2, *args, "[1]")
    fails("no JSON", 2, *args, "{low")


def test_a_schema_that_cannot_be_held():
    function = {"name": "look", "parameters": {"type": "object", "properties": {"a": {"type": 5}}}}
    lenient = written("lenient.json", [{"type": "function", "function": function}])
    strict = written("strict.json", [{"type": "function", "function": {**function, "strict": True}}])
    for choice in ("checked", "required"):
        args = ["run", BUNDLED, "--prompt", "x", "--tokens", "5", "--tool-choice", choice]
        warned = program.oriel(*args, "--tools", lenient, "--verbose", *FIXED)
        check(f"{choice}: a warning names the tool", warned.code in (0, 4)
              and "warning: tool look: the schema's keyword" in warned.err.decode(), warned)
        result = fails(f"{choice}: strict", 1, *args, "--tools", strict, *FIXED)
        check("its file and the tool", f"{strict}: tool look: the schema's keyword" in result.err.decode(), result)


def test_templates_that_are_too_large_are_wrong_usage():
    large = written("large.jinja", TEMPLATE + " " * (256 << 10))
    messages = written("messages.json", [{"role": "user", "content": "x"}])
    fails("a template of more than 256 KiB", 2, "render", BUNDLED, "--messages", messages, "--template", large)


def test_chat_runs_what_is_allowed():
    seen, named = scratch / "seen", scratch / "named"
    command = f"get_weather=cat > {seen}; echo $ORIEL_TOOL > {named}; echo 7 degrees"
    args = ["chat", BUNDLED, *with_tools(), "--tool-choice", "required", "--json", "--tokens", "120"]
    allowed = succeeds("chat", *args, "--allow-tool", command, stdin=b"Weather?\n")
    replies = objects(allowed)
    check("a call, then a reply to its result", len(replies) >= 2 and valid(replies[0]["tool_calls"][0]), replies)
    check("the first result's reply may be an answer", len(replies) == 2 and not replies[1]["tool_calls"], replies)
    check("the arguments came on stdin", json.loads(seen.read_text()) == replies[0]["tool_calls"][0]["arguments"],
          seen.read_text())
    check("the name in ORIEL_TOOL", named.read_text() == "get_weather\n", named.read_text())
    longer = objects(succeeds("a longer result", *args, "--allow-tool", "get_weather=echo 7 degrees and rain and sun",
                              stdin=b"Weather?\n"))
    check("the result is what the model reads", longer[1]["prompt_tokens"] > replies[1]["prompt_tokens"],
          (replies, longer))
    text = succeeds("as text", *args[:-3], "--tokens", "120", "--allow-tool", command, stdin=b"Weather?\n")
    check("only the answer is text", text.out.decode() == replies[1]["text"] + "\n\n", (text, replies))


def test_a_result_that_is_no_text_is_told_to_the_model():
    args = ["chat", BUNDLED, *with_tools(), "--tool-choice", "required", "--json", "--tokens", "120"]
    for name, command in (("a lone surrogate", "printf '\\355\\240\\200'"), ("an overlong form", "printf '\\340\\200\\200'"),
                          ("a failure with such bytes", "printf '\\377'; false")):
        replies = objects(succeeds(name, *args, "--allow-tool", f"get_weather={command}", stdin=b"Weather?\n"))
        check(f"{name}: the chat goes on", len(replies) >= 2, replies)


def test_chat_runs_nothing_else():
    args = ["chat", BUNDLED, *with_tools(), "--tool-choice", "required", "--json", "--tokens", "120"]
    result = program.oriel(*args, "--allow-tool", "other=touch " + str(scratch / "touched"), stdin=b"Weather?\n")
    check("it goes on", result.code == 0 and len(objects(result)) >= 2, result)
    check("one line says what would allow it", result.err.decode().count("--allow-tool get_weather=COMMAND") == 1
          and result.err.count(b"\n") == 1, result)
    check("nothing was run", not (scratch / "touched").exists())


def test_chat_ends_rounds():
    """A grammar makes every reply a call."""
    form = written("again.gbnf", 'root ::= "<tool_call>{\\"name\\": \\"f\\", \\"arguments\\": {}}</tool_call>"')
    count = scratch / "count"
    result = program.oriel("chat", BUNDLED, *with_tools(), "--grammar", form, "--json", "--allow-tool",
                           f"f=echo x >> {count}; false", stdin=b"Go.\n")
    check("eight rounds", result.code == 0 and len(objects(result)) == 9 and count.read_text() == 8 * "x\n", result)


def interrupted(marker, *args):
    """A chat that is sent SIGINT once `marker` is there: its exit code and the seconds that it took to end."""
    chat = subprocess.Popen([ORIEL, "chat", BUNDLED, *map(str, with_tools()), "--json", *map(str, args)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=program.environment())
    chat.stdin.write(b"Go.\n")
    chat.stdin.close()
    until = time.time() + 60 * PATIENCE
    while not marker.exists() and time.time() < until:
        time.sleep(0.02)
    chat.send_signal(signal.SIGINT)
    sent = time.time()
    try:
        code = chat.wait(20 * PATIENCE)
    except subprocess.TimeoutExpired:
        chat.kill()
        code = None
    chat.stdout.close()
    chat.stderr.close()
    return code, time.time() - sent


def test_ctrl_c_ends_commands():
    call = '<tool_call>{\\"name\\": \\"%s\\", \\"arguments\\": {}}</tool_call>'
    begun, paid = scratch / "begun", scratch / "paid"
    two = written("two.gbnf", f'root ::= "{call % "slow"}{call % "pay"}"')
    code, took = interrupted(begun, "--grammar", two, "--allow-tool", f"slow=touch {begun}; sleep 60",
                             "--allow-tool", f"pay=touch {paid}; sleep 60")
    check("the one that runs ends, the next one is not begun", code == 130 and not paid.exists(), (code, took))
    begun.unlink(missing_ok=True)
    silent = written("silent.gbnf", f'root ::= "{call % "silent"}"')
    code, took = interrupted(begun, "--grammar", silent, "--allow-tool", f"silent=touch {begun}; exec sleep 60 >/dev/null")
    check("one that has closed its output ends", code == 130, (code, took))


HOT = ["--temperature", "1.5", "--top-k", "0", "--min-p", "0"]
SCHEMA = {"type": "object", "properties": {
    "title": {"type": "string", "maxLength": 12}, "stars": {"type": "integer", "minimum": 1, "maximum": 5},
    "tags": {"type": "array", "items": {"enum": ["new", "old", "odd"]}, "maxItems": 3},
    "ok": {"type": "boolean"}}, "required": ["title", "stars", "ok"]}
# Its generation prompt opens a thought, and nothing closes it: the model does not know the mark.
THINKS = """{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content }}
{%- if '</think>' in message.content %}{{ '<think>' }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"""


def fits_schema(value):
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
        check("valid by the schema", fits_schema(json.loads(out)), out)
        cut = fails(f"seed {seed}, cut off", 4, *args, "--tokens", "9").out.decode()
        check("cut off it is the beginning of it", out.startswith(cut[:-1]) and len(cut) < len(out), (cut, out))
    check("seeds differ", len(texts) > 4, texts)
    read = json_of("--json", "run", BUNDLED, "--prompt", "x", "--schema", schema, "--seed", "3", *HOT, *FIXED)
    check("the value is the text", fits_schema(json.loads(read["text"])) and read["stop_reason"] == "stop", read)
    raw = succeeds("--raw", "run", BUNDLED, "--raw", "--prompt", "x", "--schema", schema, "--seed", "3", *HOT, *FIXED)
    check("--raw, too", fits_schema(json.loads(raw.out)), raw)
    piped = succeeds("from stdin", "run", BUNDLED, "--prompt", "x", "--schema", "-", "--seed", "3", *HOT, *FIXED,
                     stdin=json.dumps(SCHEMA).encode())
    check("- is stdin", fits_schema(json.loads(piped.out)), piped)


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


GOLDEN = DATA.parent.parent.parent / "shared" / "golden"
# A published template of a model that writes the form.
TEMPLATES = {
    "bare-pythonic": "chat-gemma3", "functools": "vllm-phi4-mini", "gemma4": "google-gemma-4-31B-it",
    "granite-3-list": "ibm-granite-granite-3.3-2B-Instruct", "json-in-tool_call-tags": "Qwen-Qwen3-0.6B",
    "lfm2-pythonic": "LFM2.5-Instruct", "llama3-json": "meta-llama-Llama-3.2-3B-Instruct",
    "minicpm5-xml": "openbmb-MiniCPM5-1B", "mistral-args": "mistralai-Ministral-3-14B-Reasoning-2512",
    "mistral-nemo-list": "mistralai-Mistral-Nemo-Instruct-2407",
    "mistral-small-3.2": "Mistral-Small-3.2-24B-Instruct-2506", "nemotron-nano-2": "NVIDIA-Nemotron-Nano-v2",
    "phi4-mini": "Phi-4-mini-instruct", "qwen-xml": "Qwen3.5-4B"}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def parsed(reply, *args):
    result = program.oriel("parse", "--json", *args, stdin=reply.encode())
    check(f"parse {args} succeeds", result.code == 0 and not result.err, result)
    return json.loads(result.out)


def test_fields():
    read = parsed(f"<think>\nHm.\n</think>\n\nHere:\n{CALL}", "--template", "qwen3")
    check("thought, text and calls", read == {
        "text": "Here:\n", "thought": "Hm.",
        "tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]}, read)
    read = parsed("Just text.\n")
    check("only text", read == {"text": "Just text.\n", "thought": "", "tool_calls": []}, read)
    read = parsed("", "--template", "qwen3")
    check("nothing", read == {"text": "", "thought": "", "tool_calls": []}, read)


def test_numbers_beyond_doubles():
    call = CALL.replace('"Oslo"', "1e999")
    read = parsed(call, "--template", "qwen3")["tool_calls"]
    check("arguments that no reader of doubles holds stay text",
          read == [{"name": "weather", "arguments": '{"city":1e999}'}], read)


def test_only_complete_calls_are_listed():
    read = parsed(CALL + CALL[:60], "--template", "qwen3")
    check("one of two", len(read["tool_calls"]) == 1, read)


def test_the_form_is_the_templates():
    read = parsed(CALL, "--template", "gemma4")
    check("text to a model of another form", read["text"] == CALL and not read["tool_calls"], read)
    own = written("own.jinja", "{{ '<tool_call>' }}{{ messages }}")
    check("a file with a template", len(parsed(CALL, "--template", own)["tool_calls"]) == 1)
    check("the model's own", len(parsed(CALL)["tool_calls"]) == 1)


def test_thoughts_that_the_template_opened():
    read = parsed("Hm.\n</think>\nYes.", "--template", "qwen3")
    check("told by what it closes", (read["thought"], read["text"]) == ("Hm.", "Yes."), read)
    read = parsed("Hm.", "--inside-thought")
    check("told", (read["thought"], read["text"]) == ("Hm.", ""), read)


def test_tools_say_what_is_text():
    reply = "<tool_call>\n<function=note>\n<parameter=text>\n12\n</parameter>\n</function>\n</tool_call>"
    tools = written("tools.json", json.dumps([{"type": "function", "function": {
        "name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}}]))
    with_tools = parsed(reply, "--template", "qwen3.5", "--tools", tools)["tool_calls"]
    check("a text", with_tools == [{"name": "note", "arguments": {"text": "12"}}], with_tools)
    without = parsed(reply, "--template", "qwen3.5")["tool_calls"]
    check("a number", without == [{"name": "note", "arguments": {"text": 12}}], without)


def test_for_people():
    text = succeeds("parse", "parse", "--template", "qwen3", stdin=f"<think>Hm.</think>Here: {CALL}".encode()).out
    check("three parts", text == b'Thought:\nHm.\n\nText:\nHere: \n\nCall:\nweather {"city":"Oslo"}\n', repr(text))


def test_wrong_usage_of_parse():
    fails("a template that nobody knows", 2, "parse", "--template", "no-such-format", stdin=b"x")
    fails("tools that are not there", 1, "parse", "--tools", scratch / "absent.json", stdin=b"x")
    fails("tools that are no JSON", 2, "parse", "--tools", written("bad.json", "[{"), stdin=b"x")
    fails("a reply that is no text", 1, "parse", stdin=b"a\xff")
    fails("tools that are no list", 2, "parse", "--tools", written("object.json", "{}"), stdin=b"x")


def test_replies_of_published_models():
    if not (GOLDEN / "tool_calls").is_dir():
        print("skipped: replies of published models (the reference data is not here)")
        return
    for path in sorted((GOLDEN / "tool_calls").glob("*.json")):
        golden = json.loads(path.read_text("utf-8"))
        published = GOLDEN / "templates" / f"{TEMPLATES[golden['format']]}.json"
        template = written("published.jinja", json.loads(published.read_text("utf-8"))["template"])
        tools = written("golden-tools.json", json.dumps(
            [{"type": "function", "function": {"name": name, "parameters": parameters}}
             for name, parameters in golden["tools"].items()]))
        for example in golden["examples"]:
            read = parsed(example["output"], "--template", template, "--tools", tools)
            calls = [(call["name"], call["arguments"]) for call in read["tool_calls"]]
            name = f"{golden['format']}: {example['name']}"
            if example.get("incomplete"):
                check(name, calls == [], read)
            else:
                check(name, (read["text"], read["thought"]) == (example["content"], example.get("reasoning", ""))
                      and calls == [(call["name"], call["arguments"]) for call in example["calls"]], read)


if __name__ == "__main__":
    sys.exit(run_tests(dict(globals())))
