#!/usr/bin/env python3
"""Runs many clients at a time. Many of them disconnect during a reply. Afterwards the server's memory must be as
before.

  lab/research/serve_load.py [--oriel PROGRAM] [--requests N] [--clients N] [--model FILE] [--seed N]

Starts `oriel serve`, warms it up with a fifth of the requests, and takes its resident memory before and after
the rest (Linux). Ends with `N passed, N failed`.
"""

import argparse
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import threading
import time

os.environ["ORIEL_CONFIG"] = ""  # ignore the user's config file


ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = "fox river stone window letter morning bread tower garden night".split()
# Allowed to grow: what the allocator rounds.
SLACK_BYTES = 4 << 20


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


def body_of(chance):
    """A request, and its path."""
    text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 60)))
    kind = chance.random()
    if kind < 0.15:
        return "/v1/embeddings", {"input": [text] * chance.randint(1, 4)}
    if kind < 0.35:
        return "/v1/completions", {"prompt": text, "max_tokens": chance.randint(1, 200), "stream": chance.random() < 0.5}
    messages = [{"role": "user", "content": text}]
    if chance.random() < 0.5:
        messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"}]
    body = {"messages": messages, "max_tokens": chance.randint(1, 200), "stream": chance.random() < 0.6}
    if chance.random() < 0.2:
        body["response_format"] = {"type": "json_object"}
    return "/v1/chat/completions", body


def one_request(port, chance):
    """Returns what became of it."""
    path, body = body_of(chance)
    data = json.dumps(body).encode()
    data = (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n").encode() + data
    leaves = chance.random()
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        if leaves < 0.05:
            connection.sendall(data[:chance.randint(1, len(data) - 1)])
            return "left while asking"
        connection.sendall(data)
        if leaves < 0.2:
            time.sleep(chance.random() * 0.1)
            return "left while waiting"
        got = b""
        while True:
            more = connection.recv(4096)
            if not more:
                return "status " + got[9:12].decode()
            got += more
            if leaves < 0.4:
                return "left while reading"


class Load:
    def __init__(self, port, clients, seed):
        self.port, self.clients, self.seed = port, clients, seed
        self.outcomes = {}
        self.lock = threading.Lock()

    def run(self, requests):
        share = [requests // self.clients + (i < requests % self.clients) for i in range(self.clients)]
        self.seed += 1
        threads = [threading.Thread(target=self.client, args=(f"{self.seed}-{i}", n)) for i, n in enumerate(share)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def client(self, seed, requests):
        chance = random.Random(seed)
        for _ in range(requests):
            try:
                outcome = one_request(self.port, chance)
            except OSError as error:
                outcome = f"failed: {error}"
            with self.lock:
                self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1


def rest(port):
    """Waits until no session is at work, and returns the metrics."""
    for _ in range(600):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        counts = {name: float(value) for name, value in re.findall(r"^(oriel_\w+) (\S+)$", text, re.M)}
        if counts["oriel_sessions_busy"] == 0 and counts["oriel_connections"] <= 1:
            return counts
        time.sleep(0.1)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oriel", default=ROOT / "build/release/apps/oriel")
    parser.add_argument("--model", default=ROOT / "models/oriel-tiny/oriel-tiny-q8_0.gguf")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    server = subprocess.Popen([str(options.oriel), "serve", str(options.model), "--port", "0", "--json", "--device", "cpu",
                               "--memory", "256MiB", "--window", "1024"], stdout=subprocess.PIPE)
    about = json.loads(server.stdout.readline())
    load = Load(about["port"], options.clients, options.seed)
    load.run(max(options.requests // 5, options.clients))
    rested = rest(about["port"]) is not None
    before = resident_bytes(server.pid)
    load.outcomes = {}
    start = time.time()
    load.run(options.requests)
    seconds = time.time() - start
    counts = rest(about["port"])
    after = resident_bytes(server.pid)
    server.terminate()
    code = server.wait(timeout=60)
    for outcome, count in sorted(load.outcomes.items()):
        print(f"{count:6} {outcome}")
    print(f"{options.requests} requests of {options.clients} clients in {seconds:.1f} s; resident {before >> 10} KiB "
          f"before, {after >> 10} KiB after; planned {about['memory_bytes'] >> 10} KiB")
    checks = {
        "every request was answered, or left by its client":
            all(re.fullmatch(r"left.*|status (200|429)", outcome) for outcome in load.outcomes),
        "no session was left at work": rested and counts is not None,
        "memory is where it was": after <= before + SLACK_BYTES,
        "it ended well": code == 0,
    }
    for name, passed in checks.items():
        print(("ok      " if passed else "FAILED  ") + name)
    failed = sum(not passed for passed in checks.values())
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
