#!/usr/bin/env python3
"""The local server: test_serve.py ORIEL_BINARY TEST_DATA_DIR"""

import base64
import http.client
import json
import select
import signal
import socket
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import BUNDLED, DATA, EXACT, FIXED, ORIEL, PATIENCE, check, fails, json_of, run_tests, succeeds
from server import ReplayedServer as Server, refused
from test_tools import TEMPLATE, TOOLS, valid, written

USER = {"role": "user", "content": "Tell me about a fox."}
ENDLESS = dict(max_tokens=1000000, logit_bias={})  # filled once the model's stop tokens are known

RED_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"  # a PNG


def setUp():
    info = json_of("info", "info", BUNDLED)
    rendered = json_of("end of turn", "tokenize", BUNDLED, "--special", stdin=b"<|im_end|><|endoftext|>")["ids"]
    ENDLESS["logit_bias"] = {str(i): -100 for i in rendered if i < info["n_vocab"]}


def alone(*args, **files):
    """The same by `oriel run`."""
    return json_of("run", "run", BUNDLED, *args, "--greedy", "--tokens", "40", *FIXED)["text"]


def by_messages(messages):
    return alone("--messages", written("messages.json", messages))


def text_of(reply):
    return reply.json["choices"][0]["message"]["content"]


def streamed(reply):
    return "".join(choice["delta"].get("content") or "" for event in reply.events for choice in event["choices"])


def test_a_conversation():
    with Server(BUNDLED) as server:
        first = server.chat([USER])
        body = first.json
        check("as run says it", text_of(first) == alone("--prompt", USER["content"]), first)
        check("form", body["object"] == "chat.completion" and body["id"].startswith("chatcmpl-")
              and abs(body["created"] - time.time()) < 60 and body["model"] == "oriel-tiny-q8_0"
              and body["choices"][0]["finish_reason"] == "stop"
              and body["choices"][0]["message"]["role"] == "assistant", body)
        usage = body["usage"]
        count = json_of("count", "render", BUNDLED, "--messages", written("one.json", [USER]))["token_ids"]
        check("usage", usage["prompt_tokens"] == len(count) and usage["completion_tokens"] > 0
              and usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"], (usage, len(count)))
        check("nothing was held", usage["prompt_tokens_details"]["cached_tokens"] == 0, usage)
        stream = server.chat([USER], stream=True, stream_options={"include_usage": True})
        events = stream.events
        check("streams are event streams", stream.headers["Content-Type"].startswith("text/event-stream"), stream)
        check("the same text", streamed(stream) == text_of(first), stream)
        check("the first says who speaks", events[0]["choices"][0]["delta"]["role"] == "assistant", events[0])
        check("one id", len({event["id"] for event in events}) == 1, stream)
        check("the last choice says why it ended", events[-2]["choices"][0]["finish_reason"] == "stop", events[-2])
        check("usage comes last", events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"]
              == usage["completion_tokens"] and all(event["usage"] is None for event in events[:-1]), events[-1])
        conversation = [USER, {"role": "assistant", "content": text_of(first)}, {"role": "user", "content": "Why?"}]
        again = server.chat(conversation)
        usage = again.json["usage"]
        check("what was said is not read again", usage["prompt_tokens_details"]["cached_tokens"]
              >= first.json["usage"]["total_tokens"] - 1, usage)
        check("and answered as if it had been", text_of(again) == by_messages(conversation), again)
        other = server.chat(conversation[:2] + [{"role": "user", "content": "Where does it live?"}])
        check("another question: from where they part", 0 < other.json["usage"]["prompt_tokens_details"]
              ["cached_tokens"] < usage["prompt_tokens"], other.json["usage"])
        check("answered as alone",
              text_of(other) == by_messages(conversation[:2] + [{"role": "user", "content": "Where does it live?"}]))
        parts = [{"role": "user", "content": [{"type": "text", "text": "Tell me "},
                                              {"type": "text", "text": "about a fox."}]}]
        check("content in parts", text_of(server.chat(parts)) == text_of(first))
        told = [{"role": "developer", "content": "Speak briefly."}, USER]
        check("developers are the system", text_of(server.chat(told)) == by_messages(
            [{"role": "system", "content": "Speak briefly."}, USER]))
        check("counted", server.metric("oriel_reply_tokens_total") > 40
              and server.metric("oriel_cached_prompt_tokens_total") > 0, server.get("/metrics"))


def test_how_replies_are_asked_for():
    with Server(BUNDLED) as server:
        whole = text_of(server.chat([USER]))
        cut = server.chat([USER], max_completion_tokens=3, max_tokens=30)
        check("cut", cut.json["choices"][0]["finish_reason"] == "length"
              and cut.json["usage"]["completion_tokens"] == 3 and whole.startswith(text_of(cut)), cut)
        word = whole.split()[1]
        stop = server.chat([USER], stop=word)
        check("stop", text_of(stop) == whole[:whole.index(word)]
              and stop.json["choices"][0]["finish_reason"] == "stop", stop)
        check("a list of them", text_of(server.chat([USER], stop=["@@@@", word])) == text_of(stop))
        check("streams hold them back", streamed(server.chat([USER], stop=word, stream=True)) == text_of(stop))
        seeded = [text_of(server.chat([USER], temperature=1.5, seed=seed)) for seed in (7, 7, 8, 0, 0, -1)]
        check("seeds", seeded[0] == seeded[1] and seeded[3] == seeded[4] and len(set(seeded)) > 2, seeded)
        for seed in (0, -1, -2, 2 ** 63 - 1, -2 ** 63):
            twice = [[choice["message"]["content"] for choice in
                      server.chat([USER], temperature=2, seed=seed, n=3).json["choices"]] for _ in range(2)]
            check(f"choices of seed {seed}", twice[0] == twice[1] and len(set(twice[0])) == 3, twice)
        two = server.chat([USER], temperature=1.5, seed=7, n=3)
        texts = [choice["message"]["content"] for choice in two.json["choices"]]
        check("choices", texts[0] == seeded[0] and len(set(texts)) > 1
              and [choice["index"] for choice in two.json["choices"]] == [0, 1, 2], texts)
        many = server.chat([USER], n=2, stream=True).events
        check("choices in a stream", {choice["index"] for event in many for choice in event["choices"]} == {0, 1}
              and sum(choice["finish_reason"] == "stop" for event in many for choice in event["choices"]) == 2, many)
        probable = server.chat([USER], logprobs=True, top_logprobs=3, max_tokens=6)
        content = probable.json["choices"][0]["logprobs"]["content"]
        check("log-probabilities", len(content) == 6 and all(len(each["top_logprobs"]) == 3 and
              each["logprob"] == each["top_logprobs"][0]["logprob"] and bytes(each["bytes"]).decode() == each["token"]
              for each in content), content)
        events = server.chat([USER], logprobs=True, max_tokens=6, stream=True).events
        pieces = [entry for event in events for choice in event["choices"]
                  for entry in (choice.get("logprobs") or {"content": []})["content"]]
        check("in streams, too", [each["token"] for each in pieces] == [each["token"] for each in content]
              and all(each["top_logprobs"] == [] for each in pieces), pieces)
        wanted = json_of("logprobs", "run", BUNDLED, "--prompt", USER["content"], "--greedy", "--tokens", "6",
                         "--logprobs", "3", *FIXED)["logprobs"]
        check("those that run gives", all(abs(a["logprob"] - b["logprob"]) < 1e-4 for a, b in zip(content, wanted)))
        first_id = wanted[0]["id"]
        check("biases forbid", not text_of(server.chat([USER], logit_bias={str(first_id): -100})).startswith(
            content[0]["token"]))
        check("nulls are nothing", text_of(server.chat([USER], stop=None, n=None, seed=None, logprobs=None,
                                                       response_format=None, tools=None)) == whole)
        check("unknown fields are nothing", text_of(server.chat([USER], store=False, user="x", zzz=[1])) == whole)
        penal = server.chat([USER], presence_penalty=2, frequency_penalty=2)
        check("penalties", penal.status == 200 and text_of(penal) == text_of(
            server.chat([USER], presence_penalty=2, frequency_penalty=2)), penal)


def test_completions():
    with Server(BUNDLED) as server:
        prompt = "Once upon a time there was a"
        want = json_of("raw", "run", BUNDLED, "--raw", "--prompt", prompt, "--greedy", "--tokens", "12", *FIXED)
        got = server.complete(prompt, max_tokens=12)
        check("as run --raw", got.json["choices"][0]["text"] == want["text"]
              and got.json["object"] == "text_completion"
              and got.json["usage"]["prompt_tokens"] == len(want["prompt_token_ids"]), (got, want))
        ids = server.complete(want["prompt_token_ids"], max_tokens=12)
        check("ids", ids.json["choices"][0]["text"] == want["text"]
              and ids.json["usage"]["prompt_tokens_details"]["cached_tokens"] == len(want["prompt_token_ids"]) - 1, ids)
        longer = server.complete(want["prompt_token_ids"] + want["token_ids"][:6], max_tokens=6)
        check("going on", longer.json["choices"][0]["text"] and longer.json["usage"]["prompt_tokens_details"]
              ["cached_tokens"] == len(want["prompt_token_ids"]) + 5 and want["text"].endswith(
                  longer.json["choices"][0]["text"]), (longer, want))
        several = server.complete([prompt, "The"], max_tokens=4, n=2)
        check("several prompts and choices", [choice["index"] for choice in several.json["choices"]] == [0, 1, 2, 3]
              and several.json["choices"][0]["text"] == several.json["choices"][1]["text"], several)
        stream = server.complete(prompt, max_tokens=12, stream=True, logprobs=2)
        check("stream", "".join(choice["text"] for event in stream.events for choice in event["choices"])
              == want["text"], stream)
        tokens = [t for event in stream.events for choice in event["choices"]
                  for t in (choice["logprobs"] or {"tokens": []})["tokens"]]
        check("its tokens", "".join(tokens) == want["text"] and len(tokens) == 12, tokens)
        e_acute = json_of("bytes of one", "tokenize", BUNDLED, stdin="é".encode())["ids"][:2]
        for byte, offsets in ((e_acute[0], [0, 1, 2, 3]), (e_acute[1], [0, 0, 0, 0])):
            choice = server.complete("x", max_tokens=4, logprobs=1, logit_bias={str(byte): 100}).json["choices"][0]
            check("bytes that go on with a character begin none", choice["logprobs"]["text_offset"] == offsets, choice)
        check("16 tokens by default", server.complete(prompt, logit_bias=ENDLESS["logit_bias"]).json["usage"]
              ["completion_tokens"] == 16)
        refused("echo", server.complete(prompt, echo=True), 400, "echo")
        refused("best_of", server.complete(prompt, best_of=3), 400, "best_of")
        refused("ids beyond", server.complete([1, 10 ** 9]), 400, "prompt")
        for wrong in (None, [], {}, [[]], 3, [True]):
            refused(f"prompt {wrong}", server.complete(wrong), 400, "prompt")
    with Server(EXACT) as server:  # with weights by chance bytes of characters are as likely as words
        choice = server.complete([5], max_tokens=3, logprobs=20, temperature=0).json["choices"][0]
        names = [list(top) for top in choice["logprobs"]["top_logprobs"]]
        check("tokens that are no text have names of their own", [len(each) for each in names] == [20] * 3
              and any(name.startswith("bytes:\\x") for each in names for name in each), names)


def test_forms_and_tools():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 10, "maximum": 99}},
              "required": ["n"], "additionalProperties": False}
    named = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    with Server(BUNDLED, "--template", written("tools.jinja", TEMPLATE)) as server:
        form = server.chat([USER], response_format=named)
        check("by the schema", 10 <= json.loads(text_of(form))["n"] <= 99, form)
        check("in a stream", json.loads(streamed(server.chat([USER], response_format=named, stream=True))))
        free = server.chat([USER], response_format={"type": "json_object"}, max_tokens=60)
        check("an object", text_of(free).lstrip().startswith("{"), free)
        reply = server.chat([USER], tools=TOOLS, tool_choice="required", max_tokens=200)
        choice = reply.json["choices"][0]
        call = choice["message"]["tool_calls"][0]
        read = {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
        check("a valid call", valid(read) and choice["finish_reason"] == "tool_calls"
              and choice["message"]["content"] is None and call["id"].startswith("call_"), reply)
        events = server.chat([USER], tools=TOOLS, tool_choice="required", max_tokens=200, stream=True).events
        pieces = [one for event in events for each in event["choices"] for one in each["delta"].get("tool_calls", [])]
        joined = "".join(piece["function"]["arguments"] for piece in pieces)
        check("in pieces", pieces[0]["function"]["name"] == "get_weather" and pieces[0]["id"]
              and json.loads(joined) == read["arguments"]
              and events[-1]["choices"][0]["finish_reason"] == "tool_calls", events)
        results = [USER, choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "Sunny."}]
        behind = server.chat(results, tools=TOOLS)
        check("results of tools go on", behind.status == 200 and behind.json["usage"]["prompt_tokens_details"]
              ["cached_tokens"] > 0, behind)
        server.chat([USER], tools=TOOLS, tool_choice="required", max_tokens=200)
        turned = json.dumps(dict(reversed(read["arguments"].items())), indent=1)
        results[1] = {**choice["message"], "tool_calls": [
            {**call, "function": {"name": "get_weather", "arguments": turned}}]}
        same = server.chat(results, tools=TOOLS)
        check("and with arguments in another order", same.json["usage"] == behind.json["usage"],
              (turned, behind.json["usage"], same.json["usage"]))
        other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}
        one = server.chat([USER], tools=TOOLS + [other], max_tokens=100,
                          tool_choice={"type": "function", "function": {"name": "other"}})
        check("the one that is named", one.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"]
              == "other", one)
        none = server.chat([USER], tools=TOOLS, tool_choice="none")
        check("none", "tool_calls" not in none.json["choices"][0]["message"]
              and text_of(none) == text_of(server.chat([USER])), none)
        refused("a tool that is not there", server.chat([USER], tools=TOOLS, tool_choice={
            "type": "function", "function": {"name": "x"}}), 400, "tool_choice.function.name")
        refused("required without tools", server.chat([USER], tool_choice="required"), 400, "tool_choice")
        refused("a schema that is none", server.chat([USER], response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}}), 400)
        refused("a format that is none", server.chat([USER], response_format={"type": "x"}), 400,
                "response_format.type")


def test_schemas_open_and_ignored():
    schema = {"type": "object", "x-order": 1, "properties": {"a": {"const": 1}}, "required": ["a"], "minProperties": 1}
    with Server(BUNDLED, "--template", written("tools.jinja", TEMPLATE), "--open-objects") as server:
        for strict in (True, False):
            named = {"type": "json_schema", "json_schema": {"name": "x", "strict": strict, "schema": schema}}
            reply = server.chat([USER], response_format=named, max_tokens=40, seed=1)
            check("ignored keywords are told", reply.json["oriel"]["ignored_keywords"] == ["x-order"], reply)
            if strict:
                check("strict objects stay closed", json.loads(text_of(reply)) == {"a": 1}, reply)
        tool = {"type": "function", "function": {"name": "f", "parameters": {**schema, "minProperties": 0}}}
        for seed in (1, 2, 3):
            call = server.chat([USER], tools=[tool], tool_choice="required", max_tokens=100, seed=seed, temperature=1.5)
            calls = call.json["choices"][0]["message"].get("tool_calls") or []
            check("tools stay closed", [json.loads(one["function"]["arguments"]) for one in calls] in ([], [{"a": 1}]), call)
        free = server.chat([USER], max_tokens=4)
        check("not of other replies", "ignored_keywords" not in free.json["oriel"], free)
    with Server(BUNDLED, "--strict-schema") as server:
        refused("unknown keywords", server.chat([USER], response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": schema}}), 400)


def test_embeddings():
    lines = ["A cat sleeps.", "Un chat dort."]
    want = [json.loads(line)["embedding"] for line in succeeds(
        "embed", "embed", BUNDLED, "--json", *FIXED, stdin="\n".join(lines).encode()).out.splitlines()]
    with Server(BUNDLED) as server:
        got = server.post("/v1/embeddings", {"model": "any", "input": lines})
        vectors = [each["embedding"] for each in got.json["data"]]
        check("as embed says", vectors == want and got.json["usage"]["prompt_tokens"] > 4, got)
        packed = server.post("/v1/embeddings", {"input": lines[0], "encoding_format": "base64"})
        data = base64.b64decode(packed.json["data"][0]["embedding"])
        check("packed", list(struct.unpack(f"<{len(data) // 4}f", data)) ==
              [struct.unpack("<f", struct.pack("<f", value))[0] for value in want[0]], packed)
        short = server.post("/v1/embeddings", {"input": lines[0], "dimensions": 3}).json["data"][0]["embedding"]
        scale = sum(value * value for value in want[0][:3]) ** 0.5
        check("shortened, of length 1", len(short) == 3 and all(
            abs(a - b / scale) < 1e-5 for a, b in zip(short, want[0])), short)
        refused("scores of a chat model", server.post("/v1/rerank", {"query": "x", "documents": ["y"]}), 400)
        refused("more dimensions", server.post("/v1/embeddings", {"input": "x", "dimensions": 99999}), 400, "dimensions")
        refused("no input", server.post("/v1/embeddings", {}), 400, "input")
        refused("an empty text", server.post("/v1/embeddings", {"input": ""}), 400)
        check("conversations go on", server.chat([USER]).status == 200)


def test_rerank():
    ranker = DATA / "models" / "bert-rank-labels.gguf"
    texts = ["the cache", "a window of tokens", "x"]
    want = [json.loads(line)["score"] for line in succeeds(
        "rerank", "rerank", ranker, "--query", "a cache", "--json", *FIXED, stdin="\n".join(texts).encode()).out.splitlines()]
    with Server(ranker) as server:
        body = {"query": "a cache", "documents": texts, "top_n": 2, "return_documents": True}
        got = server.post("/v1/rerank", body)
        results = got.json["results"]
        best = sorted(range(3), key=lambda i: -want[i])[:2]
        check("the best two", [one["index"] for one in results] == best and
              [one["relevance_score"] for one in results] == [want[i] for i in best], got)
        check("their texts", [one["document"]["text"] for one in results] == [texts[i] for i in best], got)
        refused("no documents", server.post("/v1/rerank", {"query": "x"}), 400, "documents")
        refused("no texts", server.post("/v1/rerank", {"query": "x", "documents": [3]}), 400, "documents")
        refused("a chat", server.chat([USER]), 400)


def test_errors_name_the_field():
    with Server(BUNDLED) as server:
        cases = [("messages", [], "messages"), ("messages", "x", "messages"), ("messages", None, "messages"),
                 ("messages", [3], "messages[0]"), ("messages", [USER, {"role": "king", "content": "x"}], "messages[1].role"),
                 ("messages", [{"content": "x"}], "messages[0].role"),
                 ("messages", [{"role": "user"}], "messages[0].content"),
                 ("messages", [{"role": "user", "content": 3}], "messages[0].content"),
                 ("temperature", "hot", "temperature"), ("temperature", 9, "temperature"),
                 ("temperature", 1e300, "temperature"), ("top_p", -1, "top_p"), ("n", 0, "n"), ("n", 1e30, "n"),
                 ("n", 1.5, "n"), ("stream", "yes", "stream"), ("seed", "x", "seed"), ("stop", [""], "stop"),
                 ("stop", ["a"] * 17, "stop"), ("max_tokens", 0, "max_tokens"), ("max_tokens", -2, "max_tokens"),
                 ("logit_bias", {"x": 1}, "logit_bias"), ("logit_bias", {"1": "x"}, "logit_bias"),
                 ("top_logprobs", 3, "top_logprobs"), ("tools", {}, "tools"), ("tools", [{"type": "x"}], "tools[0].type"),
                 ("tool_choice", 3, "tool_choice"), ("response_format", "json", "response_format"),
                 ("stream_options", 1, "stream_options"), ("model", 3, "model"), ("functions", [{"name": "f"}], "functions")]
        for field, value, param in cases:
            body = {"messages": [USER], "max_tokens": 3, field: value}
            refused(f"{field} {str(value)[:30]}", server.post("/v1/chat/completions", body), 400, param)
        def asked(url):
            return server.chat([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}])

        refused("a picture's address", asked("http://a.b/c.png"), 400, "messages[0].content[0]", "unsupported_content")
        refused("a picture that is none", asked("data:,"), 400, "messages", "invalid_image")
        refused("a picture for a model without eyes", asked("data:image/png;base64," + RED_PIXEL), 400, "messages")
        refused("no such route", server.get("/v1/nothing"), 404)
        refused("no such model", server.get("/v1/models/gpt"), 404, code="model_not_found")
        refused("the wrong method", server.get("/v1/chat/completions"), 405)
        check("which is right", server.get("/v1/chat/completions").headers["Allow"] == "POST")
        refused("no JSON type", server.post("/v1/chat/completions", "{}", Content_Type="text/plain"), 415)
        refused("another host", server.get("/health", Host="evil.example:80"), 403)
        refused("a name that begins like this machine", server.get("/health", Host="127.0.0.1.evil.example"), 403)
        refused("another site's page", server.get("/v1/models", Origin="http://evil.example"), 403)
        check("no CORS", "Access-Control-Allow-Origin" not in server.get("/v1/models").headers)
        check("its own page", server.get("/v1/models", Host="localhost:1", Origin="http://localhost:1").status == 200)


def test_thought_limits():
    """Clients' names for a parameter; the library's tests check its effect."""
    user = {"messages": [USER], "max_tokens": 4}
    with Server(BUNDLED) as server:
        for name, path, body, field in (
                ("ours", "/v1/chat/completions", {**user, "max_thought_tokens": 0}, "max_thought_tokens"),
                ("OpenRouter's", "/v1/chat/completions", {**user, "reasoning": {"max_tokens": 0}}, "reasoning.max_tokens"),
                ("Responses'", "/v1/responses", {"input": "Hello", "reasoning": {"max_tokens": "x"}}, "reasoning.max_tokens")):
            reply = server.post(path, body)
            check(f"{name} is checked", reply.status == 400 and reply.json["error"]["param"] == field, reply)
        budget = {**user, "thinking": {"type": "enabled", "budget_tokens": 0}}
        check("Anthropic's is checked", "thinking.budget_tokens" in server.post("/v1/messages", budget).body.decode())
        for path, body in (("/v1/chat/completions", {**user, "reasoning": {"max_tokens": 16}}),
                           ("/v1/messages", {**user, "thinking": {"type": "enabled", "budget_tokens": 1024}})):
            check(f"{path} takes it", server.post(path, body).status == 200, server.post(path, body))


def test_routes_and_guards():
    with Server(BUNDLED, "--api-key", "secret", "--cors", "https://app.example", "--name", "tiny") as server:
        refused("no key", server.get("/v1/models"), 401, code="invalid_api_key")
        refused("another key", server.get("/v1/models", Authorization="Bearer secreT"), 401)
        refused("no scheme", server.get("/v1/models", Authorization="secret"), 401)
        refused("another scheme", server.get("/v1/models", Authorization="Basic secret"), 401)
        check("schemes have no case", server.get("/v1/models", Authorization="bearer secret").status == 200)
        models = server.get("/v1/models", Authorization="Bearer secret")
        check("models", [each["id"] for each in models.json["data"]] == ["tiny"], models)
        check("one of them", server.get("/v1/models/tiny", Authorization="Bearer secret").json["object"] == "model")
        check("health", server.get("/health").json == {"status": "ok"})
        refused("metrics", server.get("/metrics"), 401)
        page = server.get("/")
        # Small: it is part of the program. Markdown, settings and kept chats take a third of it.
        check("the page", b"<title>Oriel</title>" in page.body and "default-src 'none'" in
              page.headers["Content-Security-Policy"] and len(page.body) < 16384, page.headers)
        check("HEAD", server.ask("HEAD", "/").body == b"" and server.ask("HEAD", "/").status == 200)
        asked = server.ask("OPTIONS", "/v1/chat/completions", Origin="https://app.example",
                           Access_Control_Request_Method="POST", Access_Control_Request_Headers="authorization")
        check("a browser asks first", asked.status == 204 and asked.headers["Access-Control-Allow-Origin"]
              == "https://app.example" and asked.headers["Access-Control-Allow-Headers"] == "authorization", asked)
        allowed = server.get("/health", Origin="https://app.example")
        check("and may read", allowed.headers["Access-Control-Allow-Origin"] == "https://app.example", allowed)
        refused("others may not", server.ask("OPTIONS", "/v1/models", Origin="https://evil.example",
                                             Access_Control_Request_Method="GET"), 403)
    with Server(BUNDLED, ORIEL_API_KEY="other") as server:
        refused("the key of the environment", server.get("/v1/models"), 401)
    with Server(BUNDLED, "--name", "a model/100% é") as server:
        for written_as in ("a%20model%2F100%25%20%C3%A9", "a%20model%2f100%%20%c3%A9"):
            got = server.get("/v1/models/" + written_as)
            check(f"named in a path: {written_as}", got.status == 200 and got.json["id"] == "a model/100% é", got)
        for other in ("a+model", "%", "%2", "%zz", "%00", "%ff", "%0d%0aX:%20y", "a%2520model"):
            refused(f"{other} is none", server.get("/v1/models/" + other), 404, code="model_not_found")


def test_a_shared_system_prompt():
    system = "You are a fox, and speak of foxes only."
    with Server(BUNDLED, "--system", system, "--sessions", "2") as server:
        reply = server.chat([USER])
        check("as run says it", text_of(reply) == alone("--system", system, "--prompt", USER["content"]), reply)
        check("held once", reply.json["usage"]["prompt_tokens_details"]["cached_tokens"] > 5, reply.json["usage"])
        same = server.chat([{"role": "system", "content": system}, USER])
        check("the same one is no other", text_of(same) == text_of(reply), same)
        refused("another one", server.chat([{"role": "system", "content": "x"}, USER]), 400, "messages")
        refused("tools", server.chat([USER], tools=TOOLS), 400, "tools")
        refused("completions", server.complete("x"), 400)
        refused("embeddings", server.post("/v1/embeddings", {"input": "x"}), 400)


def test_past_the_window():
    with Server(BUNDLED, "--window", "64", "--sessions", "1") as server:
        long = server.chat("word " * 300)
        check("a prompt that is longer", long.status == 200 and long.json["oriel"]["evicted"] > 200
              and long.json["oriel"]["window_used"] <= 68 and long.json["oriel"]["prompt_tokens_evicted"] > 200, long)
        messages = []
        for i in range(6):
            messages.append({"role": "user", "content": f"Tell me something about the number {i}."})
            reply = server.chat(messages)
            messages.append(reply.json["choices"][0]["message"])
        check("a conversation that is longer", reply.json["oriel"]["evicted"] > 0
              and reply.json["usage"]["prompt_tokens_details"]["cached_tokens"] > 64, reply)


class Endless:
    """A reply without an end, during its transfer."""

    def __init__(self, server, **fields):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60 * PATIENCE)
        body = {"prompt": "Once", "stream": True, **ENDLESS, **fields}
        self.connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})

    def begin(self):
        self.answer = self.connection.getresponse()
        self.first = self.answer.readline()
        return self.answer.status

    def leave(self):
        self.connection.sock and self.connection.sock.close()
        if hasattr(self, "answer"):
            self.answer.close()
        self.connection.close()


def test_waiting_and_leaving():
    with Server(BUNDLED, "--sessions", "1", "--queue", "1") as server:
        endless = Endless(server)
        check("it runs", endless.begin() == 200 and server.metric("oriel_sessions_busy") == 1)
        waiter = Endless(server)
        check("one waits", server.becomes("oriel_requests_waiting", 1))
        full = server.chat([USER])
        refused("the queue is full", full, 429, code="queue_full")
        check("when to ask again", int(full.headers["Retry-After"]) >= 1, full)
        waiter.leave()
        check("who leaves waits no more", server.becomes("oriel_requests_waiting", 0))
        waiter = Endless(server)
        check("another one waits", server.becomes("oriel_requests_waiting", 1))
        endless.leave()
        check("is served when the first has left", waiter.begin() == 200)
        waiter.leave()
        check("nobody is left", server.becomes("oriel_sessions_busy", 0))
        silent = Endless(server, stream=False)
        check("a reply that is not streamed", server.becomes("oriel_sessions_busy", 1))
        silent.leave()
        check("ends when its client leaves", server.becomes("oriel_sessions_busy", 0))
        check("and the next is answered", server.chat([USER]).status == 200)


def test_time_limits():
    with Server(BUNDLED, "--sessions", "1", "--timeout", "1") as server:
        start = time.time()
        cut = server.complete("Once", **ENDLESS)
        check("a reply is cut", cut.status == 200 and cut.json["choices"][0]["finish_reason"] == "length"
              and cut.json["oriel"]["timed_out"] and time.time() - start < 20 * PATIENCE, cut)
        threads = [threading.Thread(target=server.complete, args=("Once",), kwargs=ENDLESS) for _ in range(2)]
        for thread in threads:
            thread.start()
            time.sleep(0.2)
        with server.connect() as connection:
            begin = time.time()
            try:
                while time.time() - begin < 20 * PATIENCE and not select.select([connection], [], [], 0.05)[0]:
                    connection.sendall(b"x" if time.time() - begin > 0.2 else b"POST / HTTP/1.1\r\nX: ")
                got = connection.recv(1000)
            except OSError as error:
                got = repr(error).encode()
            check("headers that come byte by byte", got.startswith(b"HTTP/1.1 408 ") and time.time() - begin < 10 * PATIENCE,
                  (got, time.time() - begin))
        slow = server.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n", wait=20)
        check("headers that do not come", b" 408 " in slow.split(b"\r\n")[0] and b'"error"' in slow, slow)
        for thread in threads:
            thread.join()


def test_several_at_once():
    with Server(BUNDLED, "--sessions", "4") as server:
        prompts = [f"Tell me about the number {i}." for i in range(8)]
        want = [text_of(server.chat(prompt)) for prompt in prompts]
        got = [None] * len(prompts)

        def one(i):
            got[i] = text_of(server.chat(prompts[i]))

        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(prompts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check("each says what it would alone", got == want, (got, want))


def test_start_and_stop():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        busy = fails("a port in use", 1, "serve", BUNDLED, "--port", str(port), *FIXED)
        check("is named", str(port).encode() in busy.err and busy.out == b"", busy)
    fails("no such address", 1, "serve", BUNDLED, "--port", "0", "--host", "no.such.host.invalid", *FIXED)
    fails("no such port", 2, "serve", BUNDLED, "--port", "70000", *FIXED)
    fails("no such model", 1, "serve", "/nowhere.gguf", "--port", "0", *FIXED)
    fails("too little memory", 3, "serve", BUNDLED, "--port", "0", "--memory", "1MiB", "--device", "cpu")
    server = Server(BUNDLED)
    endless = Endless(server)
    endless.begin()
    server.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    code, out, err = server.stop(signal.SIGINT)
    check("Ctrl-C twice", code == 0 and "cut off" in err and out == b"", (code, out, err))
    for name, half in (("half a header", b"POST /v1/chat/completions HTT"),
                       ("half a body", b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")):
        server = Server(BUNDLED)
        with server.connect() as connection:
            connection.sendall(half)
            time.sleep(0.5)
            start = time.time()
            code, _, err = server.stop()
            check(f"{name} keeps nobody waiting", code == 0 and err == "oriel: stopping\n"
                  and time.time() - start < 4 * PATIENCE, (code, err, time.time() - start))
    for signals, most in ((1, 9), (2, 4)):
        server = Server(BUNDLED)
        with server.connect() as connection:
            # More replies than a connection holds, and the client reads none.
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000)
            time.sleep(1)
            start = time.time()
            if signals == 2:
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
            code, _, err = server.stop()
            check(f"nor does who reads nothing: {signals}", code == 0 and time.time() - start < most * PATIENCE,
                  (code, err, time.time() - start))
    server = Server(BUNDLED, "--sessions", "1")
    with server.connect() as connection:
        body = json.dumps({"prompt": "Once", **ENDLESS, "max_tokens": 1500}).encode()
        one = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
              b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        connection.sendall(one * 2)
        check("the first of two is answered", server.becomes("oriel_sessions_busy", 1))
        code, _, err = server.stop()
        got = b""
        while more := connection.recv(65536):
            got += more
        check("the second is not taken any more", code == 0 and got.count(b"HTTP/1.1 ") == 1, (code, err, got[:300]))
    code, out, err = Server(BUNDLED).stop()
    check("SIGTERM", code == 0 and err == "oriel: stopping\n", (code, err))
    plain = program.interrupt(["serve", BUNDLED, "--port", "0", *FIXED], lambda process: process.stdout.readline())
    check("the address on a line", plain.code == 0 and plain.out.startswith(b"http://127.0.0.1:")
          and plain.out.count(b"\n") == 1, plain)
    least = fails("too little for one", 3, "serve", BUNDLED, "--port", "0", "--memory", "1MiB", "--device", "cpu")
    needed = int(least.err.split(b"needs ")[1].split()[0])
    for bytes_, sessions in ((needed, 1), (needed + (3 << 19), 2)):
        some = program.interrupt(["serve", BUNDLED, "--port", "0", "--memory", str(bytes_), "--device", "cpu", "--json"],
                                 lambda process: process.stdout.readline())
        check(f"as many sessions as fit: {sessions}", some.code == 0 and some.json["sessions"] == sessions, some)


if __name__ == "__main__":
    if program.oriel("serve", "--help").out.find(b"--queue") < 0:
        print("skipped: this program was built without its server (libboost-dev)")
        sys.exit(77)
    setUp()
    sys.exit(run_tests(globals()))
