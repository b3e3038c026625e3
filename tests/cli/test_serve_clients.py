#!/usr/bin/env python3
"""Routes of the server that clients of other interfaces ask for, and several models in one server:
test_serve_clients.py ORIEL_BINARY TEST_DATA_DIR
"""

import json
import shutil
import sys
import threading

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import BUNDLED, CPU, EXACT, SMALL, check, json_of, run_tests, scratch
from server import Server, refused
from test_tools import TEMPLATE, TOOLS, valid, written

USER = {"role": "user", "content": "Tell me about a fox."}
FUNCTION = TOOLS[0]["function"]
FLAT = {"type": "function", **FUNCTION}  # as Responses has it
UNHELD = {"type": "function", "function": {"name": "list_names", "parameters": {
    "type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
    "required": ["names"]}}}
FORM = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 10, "maximum": 99}}, "required": ["n"],
        "additionalProperties": False}
# Thoughts, which the reply is led into by the grammar.
THINKING = """{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}
{%- if message.reasoning_content %}{{ '<think>' + message.reasoning_content + '</think>' }}{% endif %}
{{- message.content + '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% if enable_thinking is false %}{{ '<think></think>' }}
{%- endif %}{% endif %}"""
THOUGHT = 'root ::= "<think>So.</think>Yes."'


def with_tools(*args):
    return Server(BUNDLED, "--template", written("tools.jinja", TEMPLATE), *args)


def events_of(reply):
    """Named events: their names stand in the data, too."""
    events = []
    for block in reply.body.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        check("the event has its name", name == "event: " + event["type"], block)
        events.append(event)
    return events


def message_of(reply):
    return reply.json["choices"][0]["message"]


def cached(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def test_tools_that_cannot_be_held():
    with with_tools() as server:
        for choice in ("auto", "required", {"type": "function", "function": {"name": "list_names"}}):
            reply = server.chat([USER], tools=[*TOOLS, UNHELD], tool_choice=choice, max_tokens=60)
            check(f"{choice}: not refused, and said", reply.status == 200
                  and reply.json["oriel"]["unchecked_tools"] == ["list_names"], reply)
        forced = server.chat([USER], tools=[UNHELD], tool_choice="required", stream=True, max_tokens=60)
        calls = [call for event in forced.events for choice in event["choices"]
                 for call in choice["delta"].get("tool_calls", [])]
        check("its name is held", calls[0]["function"]["name"] == "list_names"
              and "".join(call["function"]["arguments"] for call in calls).startswith("{"), forced)
        strict = {"type": "function", "function": {**UNHELD["function"], "strict": True}}
        refused("strict", server.chat([USER], tools=[*TOOLS, strict]), 400, "tools[1]", "unsupported_schema")
        held = server.chat([USER], tools=TOOLS, tool_choice="required", max_tokens=100)
        check("nothing is said where all are held", "unchecked_tools" not in held.json["oriel"], held)
        refused("a form that cannot be held", server.chat([USER], tools=TOOLS, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": {"unevaluatedItems": False}}}),
            400, "response_format", "unsupported_schema")


def test_tools_beside_a_form():
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": FORM}}
    with with_tools() as server:
        answer = server.chat([USER], tools=TOOLS, response_format=form, max_tokens=100)
        message = message_of(answer)
        calls = message.get("tool_calls", [])
        check("a call, or an answer of the form", answer.status == 200 and (calls or FORM["properties"]["n"]["minimum"]
              <= json.loads(message["content"])["n"] <= 99), answer)
        # Each of the two, led there by its first token.
        first = {name: json_of(name, "tokenize", BUNDLED, "--special", stdin=text.encode())["ids"][0]
                 for name, text in (("call", "<tool_call>"), ("answer", '{"n": 42}'))}
        for wanted, other in (("call", "answer"), ("answer", "call")):
            led = server.chat([USER], tools=TOOLS, response_format=form, max_tokens=100,
                              logit_bias={str(first[wanted]): 50, str(first[other]): -50})
            message = message_of(led)
            is_call = "tool_calls" in message
            check(f"led to the {wanted}", is_call == (wanted == "call"), led)
            if is_call:
                call = message["tool_calls"][0]["function"]
                check("a valid call", valid({"name": call["name"], "arguments": json.loads(call["arguments"])}), led)
            else:
                check("of the form", 10 <= json.loads(message["content"])["n"] <= 99, led)
        must = server.chat([USER], tools=TOOLS, response_format=form, tool_choice="required", max_tokens=100)
        check("required: a call", "tool_calls" in message_of(must), must)
        none = server.chat([USER], tools=TOOLS, response_format=form, tool_choice="none", max_tokens=60)
        check("none: the form", 10 <= json.loads(message_of(none)["content"])["n"] <= 99, none)


def test_choices_among_tools():
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}
    write = {"type": "custom", "custom": {"name": "write", "description": "Writes a text.", "format": {
        "type": "grammar", "grammar": {"syntax": "regex", "definition": "[ab]{3}"}}}}
    with with_tools() as server:
        allowed = {"type": "allowed_tools", "allowed_tools": {
            "mode": "required", "tools": [{"type": "function", "function": {"name": "other"}}]}}
        only = server.chat([USER], tools=[*TOOLS, other], tool_choice=allowed, max_tokens=100)
        check("only allowed tools", message_of(only)["tool_calls"][0]["function"]["name"] == "other", only)
        allowed["allowed_tools"]["tools"][0]["function"]["name"] = "x"
        refused("one that is not there", server.chat([USER], tools=TOOLS, tool_choice=allowed), 400,
                "tool_choice.allowed_tools.tools")
        text = server.chat([USER], tools=[*TOOLS, write], max_tokens=100,
                           tool_choice={"type": "custom", "custom": {"name": "write"}})
        call = message_of(text)["tool_calls"][0]
        check("a tool with a text", call["type"] == "custom" and call["custom"]["name"] == "write"
              and len(call["custom"]["input"]) == 3 and set(call["custom"]["input"]) <= {"a", "b"}, text)
        stream = server.chat([USER], tools=[write], tool_choice="required", stream=True, max_tokens=100)
        pieces = [piece for event in stream.events for choice in event["choices"]
                  for piece in choice["delta"].get("tool_calls", [])]
        check("streamed", pieces[0]["custom"]["name"] == "write"
              and len("".join(piece["custom"].get("input", "") for piece in pieces)) == 3, pieces)
        after = server.chat([USER, message_of(text), {"role": "tool", "tool_call_id": call["id"], "content": "Done."}],
                            tools=[*TOOLS, write])
        check("and its result", after.status == 200, after)
        one = server.chat([USER], tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_tokens=200)
        check("one call", len(message_of(one)["tool_calls"]) == 1
              and one.json["choices"][0]["finish_reason"] == "tool_calls", one)
        refused("tools that run elsewhere", server.chat([USER], tools=[{"type": "web_search"}]), 400, "tools[0].type",
                "unsupported_tool")


def test_forms_as_others_write_them():
    with Server(BUNDLED) as server:
        grammar = 'root ::= "yes" | "no"'
        for name, fields in (("grammar", {"grammar": grammar}), ("json_schema", {"json_schema": {"const": "x"}}),
                             ("json_object with a schema", {"response_format": {
                                 "type": "json_object", "schema": {"const": "x"}}})):
            reply = server.chat([USER], **fields)
            check(name, message_of(reply)["content"] in (("yes", "no") if name == "grammar" else ('"x"',)), reply)
        text = server.complete("Once", grammar=grammar, max_tokens=8)
        check("completions", text.json["choices"][0]["text"] in ("yes", "no"), text)
        refused("two forms", server.chat([USER], grammar=grammar, json_schema={"const": "x"}), 400, "grammar")
        refused("no grammar", server.chat([USER], grammar="root = x"), 400, "grammar", "unsupported_schema")
        free = server.chat([USER], max_tokens=-1, top_k=-1)
        check("-1 is no limit", free.status == 200 and free.json["choices"][0]["finish_reason"] == "stop", free)


def test_errors_and_hosts():
    with Server(BUNDLED, "--allow-host", "chat.example", "--api-key", "secret") as server:
        key = {"Authorization": "Bearer secret"}
        check("a host that is allowed", server.get("/v1/models", Host="chat.example:8443", **key).status == 200)
        other = server.get("/v1/models", Host="evil.example", **key)
        refused("another host", other, 403, code="host_not_allowed")
        check("what to do", "--allow-host evil.example" in other.json["error"]["message"], other)
        check("Anthropic's header for the key", server.get("/v1/models", x_api_key="secret").status == 200)
        refused("another key there", server.get("/v1/models", x_api_key="x"), 401)
        ids = [server.get("/health").headers["x-request-id"] for _ in range(2)]
        check("each request has an id", ids[0] != ids[1] and ids[0].startswith("req_"), ids)
        wrong = server.post("/v1/chat/completions", {"messages": 3}, **key)
        check("errors, too", wrong.headers["x-request-id"].startswith("req_") and wrong.json["error"]["param"]
              == "messages", wrong)
        for path, form in (("/api/none", lambda e: isinstance(e["error"], str)),
                           ("/v1/messages/none", lambda e: e["type"] == "error" and e["error"]["type"] == "not_found_error"),
                           ("/v1/none", lambda e: e["error"]["code"] == "not_found")):
            reply = server.get(path, **key)
            check(f"errors of {path} in the form of its clients", reply.status == 404 and form(reply.json), reply)


def test_paths_without_a_version():
    with Server(BUNDLED) as server:
        for method, path, body in (("GET", "/models", None), ("GET", "/models/oriel-tiny-q8_0", None),
                                   ("GET", "/v1/health", None), ("POST", "/embeddings", {"input": "x"}),
                                   ("POST", "/completions", {"prompt": "Once", "max_tokens": 1}),
                                   ("POST", "/chat/completions", {"messages": [USER], "max_tokens": 1}),
                                   ("POST", "/responses", {"input": "x", "max_output_tokens": 1}),
                                   ("POST", "/messages", {"messages": [USER], "max_tokens": 1}),
                                   ("POST", "/v1/tokenize", {"content": "x"})):
            reply = server.ask(method, path, body)
            check(f"{method} {path}", reply.status == 200, reply)
        check("none twice", server.get("/v1/v1/models").status == 404)
        model = server.get("/v1/models").json["data"][0]
        check("the length of the context", model["context_length"] == model["max_model_len"] == model["meta"]["n_ctx"]
              == server.get("/props").json["default_generation_settings"]["n_ctx"] > 0, model)


def test_texts_and_tokens():
    with Server(BUNDLED) as server:
        text = "Hello <|im_end|>é"
        want = json_of("special", "tokenize", BUNDLED, "--special", stdin=text.encode())["ids"]
        got = server.post("/tokenize", {"content": text})
        check("tokens", got.json == {"tokens": want}, (got, want))
        plain = json_of("plain", "tokenize", BUNDLED, stdin=text.encode())["ids"]
        check("control tokens as text", server.post("/tokenize", {"content": text, "parse_special": False}).json
              == {"tokens": plain})
        pieces = server.post("/tokenize", {"content": "é", "with_pieces": True}).json["tokens"]
        check("bytes that are no text", b"".join(bytes(each["piece"]) if isinstance(each["piece"], list)
                                                 else each["piece"].encode() for each in pieces) == "é".encode(), pieces)
        check("and back", server.post("/detokenize", {"tokens": want}).json == {"content": text})
        refused("no such token", server.post("/detokenize", {"tokens": [10 ** 9]}), 400, "tokens")
        refused("no text", server.post("/tokenize", {}), 400, "content")
        rendered = json_of("render", "render", BUNDLED, "--messages", written("one.json", [USER]))
        check("the template", server.post("/apply-template", {"messages": [USER]}).json == {"prompt": rendered["text"]})
        count = server.post("/v1/messages/count_tokens", {"model": "x", "messages": [USER]})
        check("a count", count.json == {"input_tokens": len(rendered["token_ids"])}, count)


def test_many_embeddings():
    with Server(BUNDLED) as server:
        many = server.post("/v1/embeddings", {"input": ["fox"] * 2048, "encoding_format": "base64"})
        check("2,048", many.status == 200 and len(many.json["data"]) == 2048
              and [each["index"] for each in many.json["data"]] == list(range(2048)))
        refused("2,049", server.post("/v1/embeddings", {"input": ["fox"] * 2049}), 400, "input")
        text = "A cat sleeps."
        ids = json_of("ids", "tokenize", BUNDLED, stdin=text.encode())["ids"]
        by_text = server.post("/v1/embeddings", {"input": text}).json
        by_ids = server.post("/v1/embeddings", {"input": [ids, ids[:2]]}).json
        bos = json_of("bos", "info", BUNDLED)
        same = by_text["data"][0]["embedding"] == by_ids["data"][0]["embedding"]
        counts = by_text["usage"]["prompt_tokens"], by_ids["usage"]["prompt_tokens"]
        check("ids are read as they are", (same or bos.get("add_bos")) and counts[1] == len(ids) + 2, (counts, len(ids)))
        check("one list of ids", server.post("/v1/embeddings", {"input": ids}).json["data"][0]["embedding"]
              == by_ids["data"][0]["embedding"])
        refused("ids beyond", server.post("/v1/embeddings", {"input": [10 ** 9]}), 400, "input")
        refused("too many ids", server.post("/v1/embeddings", {"input": [1] * 5000}), 400)


def test_responses():
    with with_tools() as server:
        def respond(**fields):
            return server.post("/v1/responses", {"model": "any", "temperature": 0, "max_output_tokens": 100, **fields})

        plain = respond(input=USER["content"])
        body = plain.json
        text = message_of(server.chat([USER]))["content"]
        check("as a chat says it", body["output"][0]["content"][0]["text"] == text and body["object"] == "response"
              and body["status"] == "completed" and body["output"][0]["role"] == "assistant"
              and not body["store"], plain)
        check("usage", body["usage"]["total_tokens"] == body["usage"]["input_tokens"] + body["usage"]["output_tokens"])
        told = respond(instructions="Speak briefly.", input=[{"role": "user", "content": [
            {"type": "input_text", "text": USER["content"]}]}])
        check("instructions are the system's", told.json["output"][0]["content"][0]["text"] == message_of(server.chat(
            [{"role": "system", "content": "Speak briefly."}, USER], max_tokens=100))["content"], told)
        events = events_of(respond(input=USER["content"], stream=True))
        check("numbered events", [event["sequence_number"] for event in events] == list(range(len(events))), events)
        check("their order", [event["type"] for event in events if "delta" not in event] == [
            "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
            "response.output_text.done", "response.content_part.done", "response.output_item.done",
            "response.completed"], events)
        check("the same text", "".join(event["delta"] for event in events if event["type"]
                                       == "response.output_text.delta") == text, events)
        check("the whole comes last", events[-1]["response"]["output"][0]["content"][0]["text"] == text
              and events[-1]["response"]["usage"]["output_tokens"] > 0, events[-1])
        cut = respond(input=USER["content"], max_output_tokens=3).json
        check("cut", cut["status"] == "incomplete" and cut["incomplete_details"] == {"reason": "max_output_tokens"}, cut)
        called = respond(input=USER["content"], tools=[FLAT], tool_choice="required")
        call = called.json["output"][-1]
        check("a call", call["type"] == "function_call" and valid(
            {"name": call["name"], "arguments": json.loads(call["arguments"])}), called)
        history = [USER, *called.json["output"],
                   {"type": "function_call_output", "call_id": call["call_id"], "output": "Sunny."}]
        after = respond(input=history, tools=[FLAT])
        check("its result goes on", after.status == 200
              and after.json["usage"]["input_tokens_details"]["cached_tokens"] > 0, after)
        with with_tools("--sessions", "1") as fresh:
            anew = fresh.post("/v1/responses", {"temperature": 0, "max_output_tokens": 100, "input": history,
                                                "tools": [FLAT]})
            check("in a fresh session, too", anew.status == 200 and anew.json["status"] == "completed"
                  and anew.json["usage"]["input_tokens_details"]["cached_tokens"] == 0, anew)
        events = events_of(respond(input=USER["content"], tools=[FLAT], tool_choice={
            "type": "function", "name": "get_weather"}, stream=True))
        arguments = "".join(event["delta"] for event in events
                            if event["type"] == "response.function_call_arguments.delta")
        done = [event for event in events if event["type"] == "response.function_call_arguments.done"]
        check("streamed", json.loads(arguments) == json.loads(done[0]["arguments"]) and done[0]["name"]
              == "get_weather", events)
        custom = respond(input="x", tool_choice="required", tools=[{"type": "custom", "name": "write", "format": {
            "type": "grammar", "syntax": "regex", "definition": "[ab]{3}"}}]).json["output"][-1]
        check("a custom tool", custom["type"] == "custom_tool_call" and len(custom["input"]) == 3, custom)
        both = respond(input=[USER, custom, {"type": "custom_tool_call_output", "call_id": custom["call_id"],
                                             "output": "Done."}])
        check("its result", both.status == 200, both)
        form = respond(input="x", text={"format": {"type": "json_schema", "name": "n", "schema": FORM}})
        check("a form", 10 <= json.loads(form.json["output"][0]["content"][0]["text"])["n"] <= 99, form)
        unheld = respond(input="x", max_output_tokens=5, tools=[{"type": "function", **UNHELD["function"]}])
        check("a tool that cannot be held", unheld.json["oriel"]["unchecked_tools"] == ["list_names"], unheld)
        for field, value in (("previous_response_id", "resp_1"), ("conversation", "conv_1"), ("background", True),
                             ("prompt", {"id": "x"})):
            refused(f"{field} would need a store", respond(input="x", **{field: value}), 400, field,
                    "unsupported_parameter")
        for param, fields in (("input", {}), ("input", {"input": []}), ("input[0]", {"input": [{"type": "web_search_call"}]}),
                              ("input[0]", {"input": [{"type": "item_reference", "id": "x"}]}),
                              ("input[0].role", {"input": [{"role": "king", "content": "x"}]}),
                              ("text.format", {"input": "x", "text": {"format": {"type": "json_schema", "name": "n",
                                                                                  "schema": {"unevaluatedItems": False}}}}),
                              ("tools[0].type", {"input": "x", "tools": [{"type": "web_search"}]}),
                              ("max_output_tokens", {"input": "x", "max_output_tokens": 0})):
            refused(f"{param} {str(fields)[:40]}", respond(**fields), 400, param)


def test_thoughts():
    template = written("thinking.jinja", THINKING)
    with Server(BUNDLED, "--template", template) as server:
        response = server.post("/v1/responses", {"input": "x", "grammar": THOUGHT})
        check("/v1/responses has no grammar", response.status == 200, response)
        chat = message_of(server.chat([USER], grammar=THOUGHT))
        check("a thought of a chat", (chat.get("reasoning_content"), chat["content"]) == ("So.", "Yes."), chat)
        again = server.chat([USER, chat, {"role": "user", "content": "Why?"}])
        check("sent back", again.status == 200, again)
        for path, body in (("/v1/messages", {"messages": [USER, {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "So.", "signature": ""}, {"type": "text", "text": "Yes."}]}, USER]}),
                           ("/api/chat", {"stream": False, "messages": [
                               USER, {"role": "assistant", "thinking": "So.", "content": "Yes."}, USER]}),
                           ("/v1/responses", {"input": [USER, {"type": "reasoning", "summary": [], "content": [
                               {"type": "reasoning_text", "text": "So."}]}, {"role": "assistant", "content": "Yes."}, USER]})):
            reply = server.post(path, {"max_tokens": 3, **body})
            check(f"a thought in the history of {path}", reply.status == 200, reply)


def test_ollama():
    with with_tools() as server:
        text = message_of(server.chat([USER]))["content"]
        options = {"temperature": 0, "num_predict": 100}

        def chat(messages, **fields):
            return server.post("/api/chat", {"model": "any", "messages": messages, "options": options, **fields})

        stream = chat([USER])
        lines = [json.loads(line) for line in stream.body.decode().splitlines()]
        check("lines of JSON", stream.headers["Content-Type"] == "application/x-ndjson"
              and "".join(line["message"]["content"] for line in lines) == text
              and [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True], stream)
        last = lines[-1]
        check("counts", last["done_reason"] == "stop" and last["eval_count"] > 0 and last["prompt_eval_count"] > 0
              and last["total_duration"] > 0, last)
        whole = chat([USER], stream=False).json
        check("at once", whole["message"] == {"role": "assistant", "content": text} and whole["done"], whole)
        called = chat([USER], stream=False, tools=TOOLS, tool_choice="required").json["message"]
        call = called["tool_calls"][0]["function"]
        check("a call has its arguments as an object", valid({"name": call["name"], "arguments": call["arguments"]}), called)
        after = chat([USER, called, {"role": "tool", "tool_name": "get_weather", "content": "Sunny."}], stream=False,
                     tools=TOOLS)
        check("and its result", after.status == 200 and after.json["prompt_eval_count"] > 0, after)
        form = chat([USER], stream=False, format=FORM).json
        check("a form", 10 <= json.loads(form["message"]["content"])["n"] <= 99, form)
        free = chat([USER], stream=False, format="json").json
        check("any JSON", free["message"]["content"].lstrip().startswith("{"), free)
        done = server.post("/api/generate", {"prompt": USER["content"], "stream": False, "options": options}).json
        check("generate", done["response"] == text and done["done"], done)
        raw = server.post("/api/generate", {"prompt": "Once", "raw": True, "stream": False,
                                            "options": {**options, "num_predict": 6}}).json
        check("raw", raw["response"] == server.complete("Once", max_tokens=6).json["choices"][0]["text"], raw)
        check("a model that is only wanted", server.post("/api/generate", {"model": "any"}).json["done_reason"] == "load"
              and chat([]).json["done_reason"] == "load")
        tags = server.get("/api/tags").json["models"]
        check("tags", [tag["name"] for tag in tags] == ["oriel-tiny-q8_0"]
              and tags[0]["details"]["quantization_level"] == "Q8_0", tags)
        show = server.post("/api/show", {"model": "any"}).json
        architecture = show["model_info"]["general.architecture"]
        check("show", show["model_info"][architecture + ".context_length"]
              == server.get("/v1/models").json["data"][0]["context_length"] and "tools" in show["capabilities"], show)
        check("version", server.get("/api/version").json["version"].count(".") == 2)
        check("what runs", server.get("/api/ps").json["models"][0]["name"] == "oriel-tiny-q8_0")
        wanted = [each["embedding"] for each in server.post("/v1/embeddings", {"input": ["a", "b"]}).json["data"]]
        embedded = server.post("/api/embed", {"model": "any", "input": ["a", "b"]}).json
        check("embed", embedded["embeddings"] == wanted and embedded["prompt_eval_count"] > 0, embedded.keys())
        check("embeddings", server.post("/api/embeddings", {"prompt": "a"}).json["embedding"] == wanted[0])
        for fields in ({"messages": 3}, {"messages": [{"role": "king"}]}, {"messages": [USER], "format": 3},
                       {"messages": [{**USER, "images": ["x"]}]}, {"messages": [USER], "options": {"top_p": 3}}):
            wrong = server.post("/api/chat", fields)
            check(f"an error is a text: {str(fields)[:40]}", wrong.status == 400 and isinstance(wrong.json["error"], str),
                  wrong)


def test_messages():
    tool = {"name": "get_weather", "description": "Weather", "input_schema": FUNCTION["parameters"]}
    with with_tools() as server:
        def ask(messages, **fields):
            return server.post("/v1/messages", {"model": "any", "max_tokens": 100, "temperature": 0,
                                                "messages": messages, **fields}, anthropic_version="2023-06-01")

        text = message_of(server.chat([USER]))["content"]
        plain = ask([USER]).json
        check("a message", plain["type"] == "message" and plain["content"] == [{"type": "text", "text": text}]
              and plain["stop_reason"] == "end_turn" and plain["usage"]["output_tokens"] > 0, plain)
        told = ask([USER], system=[{"type": "text", "text": "Speak briefly.", "cache_control": {"type": "ephemeral"}}])
        check("the system", told.json["content"][0]["text"] == message_of(server.chat(
            [{"role": "system", "content": "Speak briefly."}, USER], max_tokens=100))["content"], told)
        events = events_of(ask([USER], stream=True))
        check("events", [event["type"] for event in events if event["type"] != "content_block_delta"] == [
            "message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"], events)
        check("the same text", "".join(event["delta"]["text"] for event in events
                                       if event["type"] == "content_block_delta") == text, events)
        check("why it ended", events[-2]["delta"]["stop_reason"] == "end_turn"
              and events[-2]["usage"]["output_tokens"] > 0, events[-2])
        cut = ask([USER], max_tokens=3).json
        check("cut", cut["stop_reason"] == "max_tokens", cut)
        word = text.split()[1]
        stop = ask([USER], stop_sequences=[word]).json
        check("a stop sequence", stop["stop_reason"] == "stop_sequence" and stop["stop_sequence"] == word, stop)
        called = ask([USER], tools=[tool], tool_choice={"type": "any"}).json
        use = called["content"][-1]
        check("a call", called["stop_reason"] == "tool_use" and use["type"] == "tool_use"
              and valid({"name": use["name"], "arguments": use["input"]}), called)
        history = [USER, {"role": "assistant", "content": called["content"]}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": use["id"], "content": [{"type": "text", "text": "Sunny."}]},
            {"type": "text", "text": "Well?"}]}]
        after = ask(history, tools=[tool])
        check("its result goes on", after.status == 200 and after.json["usage"]["cache_read_input_tokens"] > 0, after)
        with with_tools("--sessions", "1") as fresh:
            anew = fresh.post("/v1/messages", {"max_tokens": 100, "temperature": 0, "messages": history, "tools": [tool]})
            check("in a fresh session, too", anew.status == 200 and anew.json["stop_reason"] == "end_turn", anew)
            counted = fresh.post("/v1/messages/count_tokens", {"messages": history, "tools": [tool]})
            check("counted as read", counted.json == {"input_tokens": anew.json["usage"]["input_tokens"]}, counted)
        events = events_of(ask([USER], tools=[tool], tool_choice={"type": "tool", "name": "get_weather"}, stream=True))
        pieces = "".join(event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta")
        check("streamed", valid({"name": "get_weather", "arguments": json.loads(pieces)})
              and events[-2]["delta"]["stop_reason"] == "tool_use", events)
        form = ask([USER], output_format={"type": "json_schema", "schema": FORM}).json
        check("a form", 10 <= json.loads(form["content"][0]["text"])["n"] <= 99, form)
        for name, wrong in (("no length", server.post("/v1/messages", {"messages": [USER]})), ("a role", ask([{"role": "x"}])),
                            ("a picture", ask([{"role": "user", "content": [{"type": "image", "source": {}}]}])),
                            ("a tool that runs elsewhere", ask([USER], tools=[{"type": "bash_20250124", "name": "bash"}])),
                            ("a schema", ask([USER], tools=[{**tool, "strict": True, "input_schema": {"unevaluatedItems": False}}]))):
            check(f"errors of its form: {name}", wrong.status == 400 and wrong.json["type"] == "error"
                  and wrong.json["error"]["type"] == "invalid_request_error" and wrong.json["error"]["message"], wrong)


def test_one_conversation_for_all_clients():
    with Server(BUNDLED) as server:
        first = message_of(server.chat([USER]))["content"]
        messages = [USER, {"role": "assistant", "content": first}, {"role": "user", "content": "Why?"}]
        replies = [server.post(path, {"temperature": 0, "max_tokens": 20, **body}) for path, body in (
            ("/v1/responses", {"input": messages, "max_output_tokens": 20}),
            ("/v1/messages", {"messages": messages}),
            ("/v1/chat/completions", {"messages": messages}))]
        counts = [replies[0].json["usage"]["input_tokens_details"]["cached_tokens"],
                  replies[1].json["usage"]["cache_read_input_tokens"], cached(replies[2].json["usage"])]
        check("what one client said is held for another", min(counts) > 0, counts)
        texts = [replies[0].json["output"][0]["content"][0]["text"], replies[1].json["content"][0]["text"],
                 message_of(replies[2])["content"]]
        check("and answered alike", len(set(texts)) == 1, texts)


ONE_SESSION = ["--kv", "f16", "--sessions", "1", "--window", "256", *CPU]


def folder_of(**files):
    folder = scratch / "models"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, source in files.items():
        if isinstance(source, bytes):
            (folder / f"{name}.gguf").write_bytes(source)
        else:
            shutil.copy(source, folder / f"{name}.gguf")
    return folder


def bytes_of(model):
    """The memory of one model in the server, including room for constraints."""
    with Server(model, *ONE_SESSION, fixed=[]) as server:
        return server.about["memory_bytes"]


def text_of(model, prompt):
    return json_of("run", "run", model, "--prompt", prompt, "--raw", "--greedy", "--tokens", "8", "--kv", "f16",
                   "--window", "256", *CPU)["text"]


def ask(server, model, prompt="Once upon", **more):
    return server.post("/v1/completions", {"model": model, "prompt": prompt, "temperature": 0, "max_tokens": 8, **more})


def test_by_name():
    one, two = bytes_of(SMALL), bytes_of(EXACT)
    memory = max(one, two) + min(one, two) // 2  # memory for one model
    files = folder_of(first=SMALL, second=EXACT, broken=b"GGUF nonsense")
    want = {"first": text_of(SMALL, "Once upon"), "second": text_of(EXACT, "Once upon")}
    assert want["first"] != want["second"]
    with Server(files / "first.gguf", "--all-models", "--memory", str(memory), *ONE_SESSION, fixed=[], ORIEL_MODELS=str(files)) as server:
        listed = {model["id"]: model["oriel"]["loaded"] for model in server.get("/v1/models").json["data"]}
        check("all are listed", listed == {"first": True, "second": False, "broken": False}, listed)
        tags = [model["name"] for model in server.get("/api/tags").json["models"]]
        check("for Ollama's clients, too", sorted(tags) == ["broken", "first", "second"], tags)
        for name in ("first", "second", "first", "second:latest", "second.gguf"):
            reply = ask(server, name)
            known = name.split(":")[0].split(".")[0]
            check(f"{name} answers", reply.status == 200 and reply.json["choices"][0]["text"] == want[known]
                  and reply.json["model"] == known, reply)
            check("the cap holds", server.metric("oriel_memory_bytes") <= memory, server.metric("oriel_memory_bytes"))
            running = [model["name"] for model in server.get("/api/ps").json["models"]]
            check("the other one made room", running == [known], running)
        loaded = ask(server, "first").json["oriel"]
        warm = ask(server, "first").json["oriel"]
        check("a reply says that it waited for a load", loaded["load_ms"] > 0 and "load_ms" not in warm, (loaded, warm))
        stream = ask(server, "second", stream=True)
        check("a stream says that it waits", stream.body.startswith(b": loading the model\n\n")
              and "".join(e["choices"][0]["text"] for e in stream.events if e["choices"]) == want["second"], stream)
        check("nobody named: the first", ask(server, None).json["model"] == "first")
        unknown = ask(server, "gpt-none")
        check("no such model", unknown.status == 404 and unknown.json["error"]["code"] == "model_not_found", unknown)
        broken = ask(server, "broken")
        check("a file that is no model", broken.status == 500 and broken.json["error"]["code"] == "model_not_loaded"
              and "broken" in broken.json["error"]["message"], broken)
        show = server.post("/api/show", {"model": "second"})
        check("shown without a load", show.json["details"]["format"] == "gguf" and show.status == 200, show)
        shutil.copy(SMALL, files / "later.gguf")
        check("one that came later", ask(server, "later").json["choices"][0]["text"] == want["first"])
        count = server.post("/tokenize", {"model": "second", "content": "Once upon"})
        check("tokens of a named model", count.json["tokens"] == json_of("ids", "tokenize", EXACT, stdin=b"Once upon")["ids"], count)


def test_at_the_same_time():
    one, two = bytes_of(SMALL), bytes_of(EXACT)
    memory = max(one, two) + min(one, two) // 2
    files = folder_of(first=SMALL, second=EXACT)
    want = {"first": text_of(SMALL, "Once upon"), "second": text_of(EXACT, "Once upon")}
    with Server(files / "first.gguf", "--all-models", "--memory", str(memory), *ONE_SESSION, fixed=[], ORIEL_MODELS=str(files)) as server:
        wrong = []

        def work(number):
            for turn in range(6):
                name = "first" if (number + turn) % 2 == 0 else "second"
                reply = ask(server, name)
                if reply.status != 200 or reply.json["choices"][0]["text"] != want[name]:
                    wrong.append((name, reply))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check("each is answered by the model it named", not wrong, wrong[:2])
        check("the cap held", server.metric("oriel_memory_bytes") <= memory)
    both = one + two + (1 << 20)
    with Server(files / "first.gguf", "--all-models", "--memory", str(both), *ONE_SESSION, fixed=[], ORIEL_MODELS=str(files)) as server:
        ask(server, "second")
        running = sorted(model["name"] for model in server.get("/api/ps").json["models"])
        check("both stay where there is room", running == ["first", "second"], running)


def test_too_large():
    files = folder_of(first=SMALL, large=BUNDLED)
    memory = bytes_of(SMALL) + (1 << 18)
    with Server(files / "first.gguf", "--all-models", "--memory", str(memory), *ONE_SESSION, fixed=[], ORIEL_MODELS=str(files)) as server:
        reply = ask(server, "large")
        check("does not fit", reply.status == 400 and reply.json["error"]["code"] == "model_does_not_fit"
              and "--memory" in reply.json["error"]["message"], reply)
        check("nothing made room for it", [m["name"] for m in server.get("/api/ps").json["models"]] == ["first"])
        check("the first still answers", ask(server, "first").status == 200)


if __name__ == "__main__":
    if program.oriel("serve", "--help").out.find(b"--queue") < 0:
        print("skipped: this program was built without its server (libboost-dev)")
        sys.exit(77)
    sys.exit(run_tests(globals()))
