"""`oriel serve` as a process, and requests to it."""

import http.client
import json
import signal
import socket
import subprocess
import time

from program import FIXED, ORIEL, PATIENCE, check, environment


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:400]!r}"

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        """The events of a stream; the last must be [DONE]."""
        texts = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        assert texts[-1] == "[DONE]", texts[-3:]
        return [json.loads(text) for text in texts[:-1]]


class Server:
    def __init__(self, *args, fixed=FIXED, **env):
        self.process = subprocess.Popen(
            [str(ORIEL), "serve", "--port", "0", "--json"] + [str(a) for a in (*args, *fixed)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**env))
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1].decode())
        self.about = json.loads(line)
        self.port = self.about["port"]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.process.kill()
        self.stop()

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=60 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()  # its code says so
            out, err = self.process.communicate()
        return self.process.returncode, out, err.decode()

    def raw(self, data, wait=10, half_close=False, least=0):
        """All that comes back for these bytes, until the server closes or says nothing for `wait` seconds. A busy machine
        has longer for the first `least` answers."""
        with self.connect() as connection:
            connection.settimeout(wait * PATIENCE)
            got = b""
            try:
                connection.sendall(data)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
                while True:
                    connection.settimeout((60 if got.count(b"HTTP/1.1 ") < least else wait) * PATIENCE)
                    more = connection.recv(65536)
                    if not more:
                        return got
                    got += more
            except (ConnectionResetError, BrokenPipeError):
                return got
            except socket.timeout:
                return got + b"(still open)"

    def peak_bytes(self):
        """The most memory it has had; None: this system does not say."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
                return next((1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM")), None)
        except OSError:
            return None

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30 * PATIENCE)

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * PATIENCE)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        reply = Reply(answer.status, dict(answer.getheaders()), answer.read())
        connection.close()
        return reply

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, body, **headers):
        return self.ask("POST", path, body, **headers)

    def chat(self, messages, **fields):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        fields.setdefault("temperature", 0)
        fields.setdefault("max_tokens", 40)
        return self.post("/v1/chat/completions", {"model": "any", "messages": messages, **fields})

    def complete(self, prompt, **fields):
        fields.setdefault("temperature", 0)
        return self.post("/v1/completions", {"model": "any", "prompt": prompt, **fields})

    def metric(self, name):
        for line in self.get("/metrics").body.decode().splitlines():
            if line.rpartition(" ")[0] == name:
                return float(line.rpartition(" ")[2])
        return None

    def becomes(self, name, value, seconds=20):
        deadline = time.time() + seconds * PATIENCE
        while self.metric(name) != value:
            if time.time() > deadline:
                return False
            time.sleep(0.02)
        return True


class ReplayedServer(Server):
    """Sends every finished conversation to a session that holds it and to a new one: both give the same reply."""

    def __init__(self, *args, **env):
        super().__init__(*args, **env)
        self.args, self.env, self.finished = args, env, {}

    def chat(self, messages, **fields):
        reply = super().chat(messages, **fields)
        if reply.status == 200 and isinstance(messages, list) and not fields.get("stream"):
            message = reply.json["choices"][0]["message"]
            results = [{"role": "tool", "tool_call_id": call["id"], "content": "Sunny."}
                       for call in message.get("tool_calls", [])]
            whole = [*messages, message, *results, {"role": "user", "content": "And then?"}]
            form = {name: fields[name] for name in ("tools", "chat_template_kwargs", "reasoning_effort")
                    if fields.get(name) is not None}
            self.finished[json.dumps([whole, form])] = (whole, form)
        return reply

    def __exit__(self, kind, *rest):
        if kind is None and self.finished:
            self.replay()
        super().__exit__(kind, *rest)

    def replay(self):
        args = list(self.args)
        if "--sessions" in args:
            at = args.index("--sessions")
            del args[at:at + 2]
        with Server(*args, "--sessions", "1", **self.env) as fresh:
            compared = 0
            for messages, form in self.finished.values():
                held = super().chat(messages, max_tokens=12, **form)
                fresh.chat("Something else.", max_tokens=1)
                anew = fresh.chat(messages, max_tokens=12, **form)
                same = held.status == anew.status == 200
                # The earlier one may have seen more, or hold a call in the tokens that the model chose for its text.
                alike = same and held.json["usage"]["prompt_tokens"] == anew.json["usage"]["prompt_tokens"]
                if alike and held.json["oriel"]["evicted"] == 0:
                    same = said(held) == said(anew)
                    compared += 1
                if not same:
                    check("a fresh session goes on as the one that holds it", False, (messages, held, anew))
            check(f"{len(self.finished)} conversations go on in a fresh session, {compared} in the same words",
                  compared > 0, compared)


def said(reply):
    """Without ids, which are other ones each time."""
    choice = reply.json["choices"][0]
    calls = [call["function"] for call in choice["message"].get("tool_calls", [])]
    return choice["message"]["content"], calls, choice["finish_reason"]


def refused(name, reply, status, param=None, code=None):
    """An error in OpenAI's form."""
    try:
        error = reply.json["error"]
        sound = (reply.status == status and isinstance(error["message"], str) and error["message"] != ""
                 and isinstance(error["type"], str) and "param" in error and "code" in error
                 and reply.headers["Content-Type"] == "application/json")
        sound = sound and (param is None or error["param"] == param) and (code is None or error["code"] == code)
    except (ValueError, KeyError):
        sound = False
    return check(f"{name}: {status}", sound, reply)
