#!/usr/bin/env python3
"""Invalid requests get an error in OpenAI's form or a closed connection. test_serve_hostile.py ORIEL_BINARY
TEST_DATA_DIR"""

import itertools
import json
import os
import random
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True  # nothing appears in the source tree
import program
from program import BUNDLED, PATIENCE, check, run_tests
from server import Server

PATH = "/v1/chat/completions"
GOOD = json.dumps({"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 2, "temperature": 0}).encode()


def request(body, method="POST", path=PATH, kind="application/json", headers=""):
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            f"{headers}\r\n").encode() + body


def answers(data):
    """[(status, body)] of everything that came back."""
    found = []
    while data.startswith(b"HTTP/1.1 "):
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields.get(b"content-length", b"0"))
        found.append((int(head.split()[1]), rest[:length]))
        data = rest[length:]
    return found, data


def is_error(answer):
    try:
        return 400 <= answer[0] < 500 and isinstance(json.loads(answer[1])["error"]["message"], str)
    except (ValueError, KeyError, TypeError):
        return False


def sends(server, name, data, statuses=None, **how):
    """Errors, or nothing."""
    found, rest = answers(server.raw(data, wait=2, least=len(statuses or []), **how))
    sound = all(is_error(answer) for answer in found) and rest in (b"", b"(still open)")
    sound = sound and (statuses is None or [status for status, _ in found] == statuses)
    return check(name, sound, (found, rest[:200]))


CLOSE = "Connection: close\r\n"


def test_bodies():
    with Server(BUNDLED, "--max-body", "64KiB") as server:
        for name, body in {
                "nothing": b"", "half": GOOD[:20], "no JSON": b"hello", "a list": b"[]", "a number": b"1",
                "two values": GOOD + GOOD, "no UTF-8": GOOD.replace(b"Hi", b"\xff\xfe"),
                "half a pair": GOOD.replace(b"Hi", b"\\ud800"), "NUL": GOOD.replace(b"Hi", b"a\0b"),
                "a comment": b"/* */" + GOOD, "deep": b"[" * 30000, "deep objects": b'{"a":' * 10000,
                "deep in a field": b'{"x":' + b"[" * 1000 + b"]" * 1000 + b"}",
                "twice the name": b'{"messages":[],"messages":[]}', "huge": GOOD.replace(b'"max_tokens": 2', b'"max_tokens": 1e999'),
                "many digits": GOOD.replace(b'"max_tokens": 2', b'"max_tokens": ' + b"9" * 5000),
                "minus nothing": GOOD.replace(b'"max_tokens": 2', b'"max_tokens": -0.0'),
                "a byte order mark and no more": b"\xef\xbb\xbf"}.items():
            sends(server, f"body: {name}", request(body, headers=CLOSE), [400])
        sends(server, "too large", request(b"x" * 70000, headers=CLOSE), [413])
        sends(server, "said to be too large", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
              [413])
        sends(server, "larger than a number", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 40 +
              b"\r\n\r\n", [400])
        sends(server, "less than nothing", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", [400])
        sends(server, "two lengths", request(GOOD, headers="Content-Length: 3\r\n" + CLOSE), [400])
        chunked = (f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{CLOSE}"
                   "Transfer-Encoding: chunked\r\n\r\n").encode()
        pieces = b"".join(b"%x\r\n%s\r\n" % (len(GOOD[i:i + 7]), GOOD[i:i + 7]) for i in range(0, len(GOOD), 7))
        found, _ = answers(server.raw(chunked + pieces + b"0\r\n\r\n"))
        check("chunks are read", [status for status, _ in found] == [200], found)
        sends(server, "chunks without end", chunked + b"ffffffffffffffff\r\nx")
        sends(server, "chunks of no size", chunked + b"zz\r\n", [400])
        sends(server, "too many chunks", chunked + (b"1000\r\n" + b" " * 4096 + b"\r\n") * 20, [413])
        sends(server, "both", request(GOOD, headers="Transfer-Encoding: chunked\r\n" + CLOSE))
        check("it still answers", server.chat("Hi.").status == 200)


def test_odd_values_of_every_client():
    """Wherever a field or a member of one is something else, the request is answered or refused, and names no defect."""
    user = {"role": "user", "content": "Hi."}
    function = {"name": "f", "parameters": {"type": "object"}}
    tool = {"type": "function", "function": function}
    good = {
        PATH: {"messages": [user, {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"}], "max_tokens": 1, "tools": [tool],
            "tool_choice": {"type": "function", "function": {"name": "f"}}, "stop": ["x"], "stream": False,
            "response_format": {"type": "json_schema", "json_schema": {"schema": {"const": 1}}},
            "stream_options": {"include_usage": True}, "chat_template_kwargs": {"a": 1}, "reasoning_effort": "low"},
        "/v1/responses": {"input": [user, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                                    {"type": "function_call_output", "call_id": "c", "output": "x"},
                                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]}],
                          "instructions": "x", "max_output_tokens": 1, "tools": [{"type": "function", **function}],
                          "tool_choice": "auto", "text": {"format": {"type": "json_schema", "name": "n", "schema": {"const": 1}}},
                          "reasoning": {"effort": "low"}},
        "/v1/messages": {"messages": [user, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
                                      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}],
                         "system": [{"type": "text", "text": "x"}], "max_tokens": 1, "tools": [{"name": "f", "input_schema": {"type": "object"}}],
                         "tool_choice": {"type": "auto"}, "thinking": {"type": "enabled"}, "stop_sequences": ["x"]},
        "/api/chat": {"messages": [user, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
                                   {"role": "tool", "content": "x"}], "stream": False, "tools": [tool], "format": {"const": 1},
                      "options": {"num_predict": 1, "stop": "x"}, "think": False},
        "/api/generate": {"prompt": "x", "system": "x", "stream": False, "format": "json", "options": {"num_predict": 1}},
        "/v1/embeddings": {"input": ["x", [1]], "encoding_format": "float", "dimensions": None},
        "/api/embed": {"input": "x"},
        "/tokenize": {"content": "x", "with_pieces": True},
        "/detokenize": {"tokens": [1]},
        "/apply-template": {"messages": [user]},
        "/v1/messages/count_tokens": {"messages": [user]},
    }
    odd = [None, True, -1, 1e300, "", "x\0", [], {}, [[]], {"type": 3}, [{"type": "x"}]]

    def places(value, path=()):
        yield path
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            yield from places(value[key], (*path, key))

    def changed(value, path, other):
        if not path:
            return other
        copy = value.copy()
        copy[path[0]] = changed(value[path[0]], path[1:], other)
        return copy

    with Server(BUNDLED, "--max-tokens", "4") as server:
        for path, body in good.items():
            reply = server.post(path, body)
            check(f"{path}: as it should be", reply.status == 200, reply)
            wrong = []
            bodies = list(itertools.product(places(body), odd))[::1 if "ORIEL_TEST_ALL" in os.environ else 3]
            for place, other in bodies:
                reply = server.post(path, json.dumps(changed(body, place, other)), Content_Type="application/json")
                if reply.status != 200 and not (reply.status == 400 and "error" in reply.json):
                    wrong.append((place, other, reply))
            check(f"{path}: {len(bodies)} odd bodies", len(bodies) > 5 and not wrong, wrong[:3])


def test_requests():
    with Server(BUNDLED) as server:
        for name, data in {
                "no HTTP": b"hello\r\n\r\n", "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,
                "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/9": b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
                "no path": b"GET\r\n\r\n", "a bad name": b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n",
                "a NUL": b"GET / HTTP/1.1\r\nHost: lo\0cal\r\n\r\n", "a folded line": b"GET /x HTTP/1.1\r\nHost: localhost\r\n x\r\n\r\n"}.items():
            sends(server, f"request: {name}", data, half_close=True)
        sends(server, "long headers", b"GET / HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", [431])
        sends(server, "many headers", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10000 + b"\r\n", [431])
        sends(server, "a long path", b"GET /" + b"x" * 15000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", [404])
        sends(server, "a path outside", request(b"", "GET", "/../../etc/passwd", headers=CLOSE), [404])
        sends(server, "no such method", request(b"", "BREW", "/", headers=CLOSE), [405])
        sends(server, "DELETE", request(b"", "DELETE", "/v1/models", headers=CLOSE), [405])
        sends(server, "OPTIONS", request(b"", "OPTIONS", "/v1/models", headers=CLOSE), [405])
        for kind in ("application/jsonx", "application/json-patch+json", "text/json", "application", ";application/json", ""):
            sends(server, f"the type {kind}", request(GOOD, kind=kind, headers=CLOSE), [415])
        for kind in ("Application/JSON", "application/json; charset=utf-8", "application/json ;charset=utf-8"):
            found, _ = answers(server.raw(request(GOOD, kind=kind, headers=CLOSE)))
            check(f"the type {kind}", [status for status, _ in found] == [200], found)
        sends(server, "a form", request(b"a=b", kind="application/x-www-form-urlencoded", headers=CLOSE), [415])
        check("nothing at all", server.raw(b"", half_close=True) == b"")
        check("half a request", server.raw(b"GET / HT", half_close=True)[9:12] in (b"", b"400"))
        three = request(GOOD) + request(b"x") + request(GOOD, headers=CLOSE)
        found, _ = answers(server.raw(three))
        check("requests in a row", [status for status, _ in found] == [200, 400, 200], found)
        head, _, body = request(GOOD, headers="Expect: 100-continue\r\n" + CLOSE).partition(b"\r\n\r\n")
        with server.connect() as connection:
            connection.sendall(head + b"\r\n\r\n")
            told = connection.recv(1000)
            connection.sendall(body)
            check("100-continue", told == b"HTTP/1.1 100 Continue\r\n\r\n" and
                  connection.recv(1000).startswith(b"HTTP/1.1 200 OK"), told)
        old = server.raw(b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 47\r\n\r\n"
                         b'{"prompt": "a", "max_tokens": 1, "stream":true}')
        check("HTTP/1.0 has no chunks", b"chunked" not in old and old.endswith(b"data: [DONE]\n\n"), old)


KEY = "Authorization: Bearer secret\r\n"


def half(method="POST", path=PATH, length=5000000, headers=KEY, host="localhost"):
    """Headers, and nothing of the body that they announce."""
    how = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return (f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{how}\r\n{headers}"
            "\r\n").encode()


def test_refused_by_the_headers():
    """Before any of the body is read, and the connection ends."""
    with Server(BUNDLED, "--api-key", "secret") as server:
        for name, status, how in (
                ("no key", 401, {"headers": ""}), ("a wrong key", 401, {"headers": "Authorization: Bearer secre\r\n"}),
                ("another host", 403, {"host": "evil.example"}),
                ("another origin", 403, {"headers": KEY + "Origin: http://evil.example\r\n"}),
                ("another path", 404, {"path": "/v1/none"}), ("another method", 405, {"method": "PUT"}),
                ("too long", 413, {"length": 9 << 20}), ("a body of a GET", 413, {"method": "GET", "path": "/health"}),
                ("a body of a GET without a key", 413, {"method": "GET", "path": "/health", "headers": ""}),
                ("a body of a question", 405, {"method": "OPTIONS", "path": "/health", "headers": ""})):
            for length in (how.get("length", 5000000), *([] if name == "too long" else [None])):
                asked = {**how, "length": length}
                sends(server, f"{name}, {length} bytes", half(**asked), [status])
                got = server.raw(half(**asked), wait=60)
                check(f"{name}, {length} bytes: the connection ends", not got.endswith(b"(still open)"), got)
                expects = half(**{**asked, "headers": how.get("headers", KEY) + "Expect: 100-continue\r\n"})
                got = server.raw(expects, wait=60)
                check(f"{name}, {length} bytes: nothing is asked for", got.startswith(f"HTTP/1.1 {status} ".encode()), got)
        before = server.peak_bytes()
        many = []
        for _ in range(8):
            many.append(server.connect())
            try:
                many[-1].sendall(half(headers="", length=8000000) + b"x" * 7900000)
            except OSError:
                pass  # refused meanwhile
        after = server.peak_bytes()
        for connection in many:
            connection.close()
        check("bodies without a key are not held", before is None or after - before < 4 << 20, (before, after))
        check("with it it answers", server.post(PATH, json.loads(GOOD), Authorization="Bearer secret").status == 200)


def test_places_of_connections_without_a_key():
    whole = request(GOOD, headers=KEY)
    with Server(BUNDLED, "--api-key", "secret", "--connections", "4", "--timeout", "1") as server:
        idle = [server.connect() for _ in range(40)]
        for connection in idle[::2]:
            try:
                connection.sendall(b"GET / HT")
            except OSError:
                pass  # ended already
        found, _ = answers(server.raw(request(GOOD, headers=KEY + CLOSE)))
        check("they take no place of others", [status for status, _ in found] == [200], found)
        left = 0
        for connection in idle:
            connection.settimeout(5 * PATIENCE)
            try:
                while connection.recv(1000):
                    pass
            except socket.timeout:
                left += 1
            except OSError:
                pass
            connection.close()
        check("each has a part of the time that others have", left == 0, left)
    with Server(BUNDLED, "--api-key", "secret", "--connections", "4") as server:
        known = [server.connect() for _ in range(4)]
        for connection in known:
            connection.sendall(whole)
            check("one with a key", connection.recv(1000).startswith(b"HTTP/1.1 200 "))
        found, _ = answers(server.raw(request(GOOD, headers=KEY + CLOSE)))
        check("of those with a key there are as many as may be", [status for status, _ in found] == [503], found)
        time.sleep(6)  # more than one without a key has
        known[0].sendall(whole)
        check("they stay", known[0].recv(1000).startswith(b"HTTP/1.1 200 "))
        found, _ = answers(server.raw(request(b"", "GET", "/health", headers=CLOSE)))
        check("health has its place", [status for status, _ in found] == [200], found)
        for connection in known:
            connection.close()


GOES_ON = {"logit_bias": {"0": -100, "2": -100}, "temperature": 0}


def test_lengths_of_replies():
    with Server(BUNDLED, "--max-tokens", "24") as server:
        for fields, tokens in (({"max_tokens": 1000000}, 24), ({"max_tokens": 5}, 5), ({"max_tokens": None}, 24),
                               ({"max_tokens": 1000, "n": 3}, 24), ({"max_tokens": 1000, "n": 16}, 16)):
            reply = server.chat("Hi.", **fields, **GOES_ON).json
            check(f"{fields} is {tokens} tokens", reply["usage"]["completion_tokens"] == tokens and
                  all(choice["finish_reason"] == "length" for choice in reply["choices"]), reply)
        reply = server.complete(["a", "b"], max_tokens=1000, n=2, **GOES_ON).json
        check("prompts count", reply["usage"]["completion_tokens"] == 24, reply)


def lists_of(choices):
    """All that the pieces of a reply say of its tokens."""
    lists = {}
    for choice in choices:
        for name, values in (choice.get("logprobs") or {}).items():
            if isinstance(values, list):
                lists.setdefault(name, []).extend(values)
    return lists


def test_memory_of_probabilities():
    """They are held as numbers, and written one token after the other."""
    with Server(BUNDLED, "--sessions", "1") as server:
        for ask, fields in ((lambda **more: server.chat("Hi.", **more), {"logprobs": True, "top_logprobs": 4}),
                            (lambda **more: server.complete("Once", **more), {"logprobs": 4})):
            fields = {"max_tokens": 70, "n": 2, **fields, **GOES_ON}
            whole = ask(**fields).json["choices"]
            events = ask(stream=True, **fields).events
            for index in (0, 1):
                got = lists_of([whole[index]])
                streamed = lists_of(choice for event in events for choice in event["choices"] if choice["index"] == index)
                check("whole and streamed say the same", got == streamed and got and
                      all(len(values) == 70 for values in got.values()), (got, streamed))
        old = server.raw(b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 47\r\n\r\n"
                         b'{"prompt": "a", "max_tokens": 3,  "logprobs":2}')
        choice = json.loads(old.partition(b"\r\n\r\n")[2])["choices"][0]
        check("HTTP/1.0 has no chunks", len(choice["logprobs"]["tokens"]) == 3, old)
        fields = {"logprobs": True, "top_logprobs": 20, **GOES_ON}
        server.chat("Hi.", max_tokens=100, **fields)
        server.chat("Hi.", max_tokens=1500, **GOES_ON)  # past the window: all of the cache is there
        before = server.peak_bytes()
        reply = server.chat("Hi.", max_tokens=4000, **fields)
        after = server.peak_bytes()
        check("all are there", len(reply.json["choices"][0]["logprobs"]["content"]) == 4000)
        check("at most 512 bytes a token", before is None or after - before < 4000 * 512 + (1 << 20), (before, after))
        fields["logit_bias"] = {"1": 100}  # a control token, which has no text
        events = server.chat("Hi.", max_tokens=300, stream=True, **fields).events
        counts = [len(choice["logprobs"]["content"]) for event in events for choice in event["choices"]
                  if choice.get("logprobs")]
        check("tokens without text do not wait for one", sum(counts) == 300 and max(counts) <= 64, counts)


CHUNKED = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def test_lines_without_end():
    """Refused at once from any client; the following bytes are discarded."""
    with Server(BUNDLED, "--max-body", "64KiB") as server:
        before = server.peak_bytes()
        for name, begin, more in (("a header", b"GET / HTTP/1.1\r\nX: ", b"a" * 65536),
                                  ("a chunk's extension", CHUNKED + b"1;", b"a" * 65536),
                                  ("a chunk's size", CHUNKED, b"0" * 65536),
                                  ("a trailer", CHUNKED + b"0\r\nX: ", b"a" * 65536),
                                  ("lines of a trailer", CHUNKED + b"0\r\n", b"X: y\r\n" * 10922)):
            with server.connect() as connection:
                connection.settimeout(10 * PATIENCE)
                got = b""
                try:
                    connection.sendall(begin + more)
                    got = connection.recv(65536)
                    deadline = time.time() + 10 * PATIENCE
                    while time.time() < deadline:
                        connection.sendall(more)
                    closed = False
                except socket.timeout:
                    closed = False
                except OSError:
                    closed = True
            found, _ = answers(got)
            check(f"{name} without end", [status for status, _ in found] == [431] and closed, (got, closed))
        after = server.peak_bytes()
        check("nothing of it is kept", before is None or after - before < 4 << 20, (before, after))
        check("it still answers", server.get("/health").status == 200)


def test_where_a_request_ends():
    """Requests that a proxy might parse differently are refused, and the connection closes."""
    with Server(BUNDLED) as server:
        behind = request(b"", "GET", "/health", headers=CLOSE)
        for coding in ("xchunked", "chunked, identity", "identity", "gzip", "chunked, chunked", '"chunked"', ","):
            for order in (0, 1):
                lines = [f"Content-Length: {len(GOOD)}\r\n", f"Transfer-Encoding: {coding}\r\n"]
                head = (f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        f"{lines[order]}{lines[1 - order]}\r\n").encode()
                sends(server, f"{coding}, {order}", head + GOOD + behind, [400])
            sends(server, f"{coding} and no length", request(GOOD).replace(
                f"Content-Length: {len(GOOD)}".encode(), f"Transfer-Encoding: {coding}".encode()) + behind, [400])
        sends(server, "a length behind chunks", CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") +
              b"0\r\n\r\n" + behind, [400])
        for name, head, status in (("no host", b"GET /health HTTP/1.1\r\n", 400),
                                   ("two hosts", b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", 400),
                                   ("two others", b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.com\r\n", 400),
                                   ("no host in HTTP/1.0", b"GET /health HTTP/1.0\r\n", 200)):
            found, _ = answers(server.raw(head + b"Connection: close\r\n\r\n", wait=60))
            check(name, [each for each, _ in found] == [status], found)


def test_targets_with_a_host():
    with Server(BUNDLED) as server:
        for target, status in (("http://localhost/health", 200), ("HTTP://127.0.0.1:80/health?x=y", 200),
                               ("http://localhost", 200), ("http://localhost?x", 200), ("http://localhost/v1/none", 404),
                               ("http://evil.example/health", 403), ("http:///health", 400),
                               ("http://localhost:1@evil.example/health", 400)):
            found, _ = answers(server.raw(request(b"", "GET", target, headers=CLOSE), wait=60))
            check(f"{target}: {status}", [each for each, _ in found] == [status], found)


def test_trailers_are_no_headers():
    with Server(BUNDLED, "--api-key", "secret") as server:
        pieces = b"%x\r\n%s\r\n0\r\nAuthorization: Bearer secret\r\n\r\n" % (len(GOOD), GOOD)
        head = CHUNKED.replace(b"Host:", b"Connection: close\r\nContent-Type: application/json\r\nHost:")
        sends(server, "a key behind the body", head + pieces, [401])


def test_bodies_of_many_values():
    """A value takes many times its bytes: as many as there may be are read by one request at a time, and not kept."""
    with Server(BUNDLED) as server:
        start = server.peak_bytes()
        body = ('{"input": "x", "x": [%s]}' % ",".join(['[""]'] * 500000)).encode()
        check("as many as there may be", server.post("/v1/embeddings", body, Content_Type="application/json").status == 200)
        one = server.peak_bytes()
        threads = [threading.Thread(target=server.post, args=("/v1/embeddings", body),
                                    kwargs={"Content_Type": "application/json"}) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        several = server.peak_bytes()
        # The bodies, and one body read in malloc's other arena.
        check("several at once take little more", one is None or several - one < one - start + 5 * len(body),
              (start, one, several, len(body)))
        chat = '"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 1'
        for path, field, values in ((PATH, chat, ("[]", '{"":0}')), ("/v1/embeddings", '"input": "x"', ("{}",))):
            for value in values:
                body = ('{%s, "x": [%s]}' % (field, ",".join([value] * 1100000))).encode()
                sends(server, f"too many {value}: {path}", request(body, path=path, headers=CLOSE), [400])
        names = ",".join('"name%d":1' % i for i in range(200000)).encode()
        for where in (b'"x": {%s}' % names, b'"x": [{%s}]' % names, b'"chat_template_kwargs": {%s}' % names):
            body = b'{"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 1, %s}' % where
            answer = server.post(PATH, body, Content_Type="application/json")
            check(f"200,000 names in one object: {where[:30]}", answer.status == 200, answer)
        check("it still answers", server.chat("Hi.").status == 200)


def test_variables_that_oriel_sets():
    with Server(BUNDLED) as server:
        for name in ("messages", "tools", "bos_token", "eos_token", "add_generation_prompt", "documents"):
            body = GOOD[:-1] + b', "chat_template_kwargs": {"%s": []}}' % name.encode()
            sends(server, f"the variable {name}", request(body, headers=CLOSE), [400])
        answer = server.post(PATH, GOOD[:-1] + b', "chat_template_kwargs": {"messages": []}}',
                             Content_Type="application/json")
        check("the line says which", b"messages" in answer.body and b"leave it out" in answer.body, answer)
        check("it still answers", server.chat("Hi.").status == 200)


def test_noise():
    """Requests with bytes changed."""
    random.seed(5)
    with Server(BUNDLED) as server:
        whole = request(GOOD, headers=CLOSE)
        bad = 0
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(random.randint(1, 4)):
                where = random.randrange(len(data))
                how = random.randrange(3)
                if how == 0:
                    data[where] = random.randrange(256)
                elif how == 1:
                    del data[where:where + random.randint(1, 9)]
                else:
                    data[where:where] = bytes(data[:random.randint(1, 40)])
            found, rest = answers(server.raw(bytes(data), wait=2, half_close=True))
            sound = all(is_error(answer) or answer[0] in (200, 403, 499) for answer in found)
            bad += not sound
            if not sound:
                print(bytes(data), found, rest)
        check("all answered or closed", bad == 0, bad)
        check("it still answers", server.chat("Hi.").status == 200)
        code, _, err = server.stop()
        check("and ends well", code == 0 and err == "oriel: stopping\n", (code, err))


if __name__ == "__main__":
    if program.oriel("serve", "--help").out.find(b"--queue") < 0:
        print("skipped: this program was built without its server (libboost-dev)")
        sys.exit(77)
    sys.exit(run_tests(globals()))
