#!/usr/bin/env python3
"""`oriel parse`: test_parse.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import sys

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import DATA, check, fails, run_tests, scratch, succeeds

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


def written(name, content):
    path = scratch / name
    path.write_text(content, "utf-8")
    return path


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


def test_wrong_usage():
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
    sys.exit(run_tests(globals()))
