#!/usr/bin/env python3
"""Tools in run and chat: test_tools.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import BUNDLED, FIXED, ORIEL, PATIENCE, check, fails, json_of, run_tests, scratch, succeeds

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


def test_wrong_usage():
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


if __name__ == "__main__":
    sys.exit(run_tests(dict(globals())))
