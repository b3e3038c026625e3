"""Drives oriel-desktop as a person would: keys and mouse through xdotool, on the display that DISPLAY names.

    python3 drive.py PROGRAM MODEL FOLDER

Asserts on the state that the program writes with --state; screenshots go to FOLDER. Ends with "N passed, N failed".
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

PROGRAM, MODEL, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
STATE = FOLDER / "state.json"
SAVED = FOLDER / "kept.oriel"
DATA = FOLDER / "data"  # the user's, for this run
CHATS = DATA / "oriel" / "chats"
LOOK = FOLDER / "look"  # what the desktop answers about its colours
WAIT_S = 60
passed = failed = 0


def check(what, holds, detail=""):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    print(("ok      " if holds else "FAILED  ") + what + ("" if holds else f": {detail}"), flush=True)


def xdo(*words):
    subprocess.run(["xdotool", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def state():
    for _ in range(100):
        try:
            return json.loads(STATE.read_text())
        except (OSError, ValueError):
            time.sleep(0.05)
    raise SystemExit("the program wrote no state")


def until(what, holds, wait_s=WAIT_S):
    end = time.time() + wait_s
    now = state()
    while not holds(now) and time.time() < end:
        time.sleep(0.1)
        now = state()
    check(what, holds(now), json.dumps({k: v for k, v in now.items() if k != "widgets"})[:900])
    return now


def front(now):
    return next((chat for chat in now["chats"] if chat["id"] == now["active"]), None)


def idle(now):
    return now["phase"] == "ready" and all(chat["phase"] == "idle" for chat in now["chats"])


class Window:
    def __init__(self, *options):
        STATE.unlink(missing_ok=True)
        environment = {**os.environ, "XDG_DATA_HOME": str(DATA), "ORIEL_MODELS": str(FOLDER / "models"),
                       "PATH": f"{FOLDER / 'bin'}:{os.environ['PATH']}"}
        environment.pop("ORIEL_NO_SAVE", None)
        self.process = subprocess.Popen([PROGRAM, *options, "--state", STATE, "--device", "cpu"], env=environment)
        end = time.time() + WAIT_S
        while not STATE.exists() and time.time() < end:
            time.sleep(0.1)
        found = subprocess.run(["xdotool", "search", "--sync", "--onlyvisible", "--name", "^Oriel$"],
                               stdout=subprocess.PIPE, check=True, timeout=WAIT_S).stdout
        self.id = found.split()[-1].decode()
        xdo("windowfocus", self.id)

    def settled(self, widget):
        """Its position, once it stops moving: items drawn above it may still grow."""
        seen, end = [], time.time() + WAIT_S
        while len(seen) < 4 or seen[-1] is None or any(one != seen[-1] for one in seen[-4:]):
            if time.time() > end:
                raise SystemExit(f"{widget} does not come to rest")
            seen.append(state()["widgets"].get(widget))
            time.sleep(0.1)
        return seen[-1]

    def click(self, widget, across=0.5):
        x, y, width, height = self.settled(widget)
        xdo("mousemove", "--window", self.id, int(x + width * across), int(y + height / 2), "sleep", 0.15, "click", 1)
        time.sleep(0.3)

    def say(self, text):
        xdo("type", "--delay", 15, text)
        xdo("key", "Return")

    def shoot(self, name):
        time.sleep(0.3)
        path = FOLDER / f"{name}.png"
        subprocess.run(["import", "-window", self.id, str(path)], check=True, timeout=WAIT_S)
        check(f"screenshot {name}", path.stat().st_size > 5000)

    def resize(self, width, height):
        xdo("windowsize", self.id, width, height)
        inside = lambda now: all(x >= 0 and x + w <= width + 1 for k, (x, y, w, h) in now["widgets"].items()
                                 if k in ("composer", "save", "panel", "memory", "new"))
        until(f"everything stands inside {width}x{height}",
              lambda now: inside(now) and now["widgets"]["panel"][0] > width - 120, 5)

    def close(self):
        self.process.terminate()
        self.process.wait(20)

    def seconds_of_cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def chats(window):
    until("the model loads", lambda now: idle(now) and now["chats"])
    window.say("What is the capital of France?")
    now = until("a reply comes", lambda now: idle(now) and front(now)["messages"] and front(now)["messages"][-1]["text"])
    check("it is the right one", "Paris" in front(now)["messages"][-1]["text"], front(now))
    check("the shared prompt is in the plan", now["plan"]["prefix_tokens"] > 0)
    xdo("type", "one"), xdo("key", "shift+Return"), xdo("type", "two")
    until("Shift+Enter begins a line", lambda now: now["draft"] == "one\ntwo", 5)
    xdo("key", "ctrl+a", "BackSpace")
    until("it can be taken back", lambda now: now["draft"] == "", 5)
    window.click("fork")
    now = until("a fork comes to the front with what was said",
                lambda now: len(now["chats"]) == 2 and now["active"] == now["chats"][1]["id"], 10)
    check("it has the messages and the tokens", front(now)["messages"] == now["chats"][0]["messages"]
          and front(now)["position"] == now["chats"][0]["position"], now["chats"])
    window.say("And of Italy?")
    now = until("the fork goes on alone", lambda now: idle(now) and len(front(now)["messages"]) == 4)
    check("the first chat stayed", len(now["chats"][0]["messages"]) == 2)
    window.shoot("chat")


def two_at_once_and_stop(window):
    xdo("key", "ctrl+t")
    until("Ctrl+T opens a chat", lambda now: len(now["chats"]) == 3, 10)
    window.say("Tell me a long story about the sea.")
    window.click("tab1")
    until("a click on a tab brings it to the front", lambda now: now["active"] == 1, 5)
    window.say("Tell me a long story about a fox.")
    until("two chats have answered", lambda now: idle(now) and len(now["chats"][2]["messages"]) == 2
          and now["chats"][2]["messages"][1]["text"] and len(now["chats"][0]["messages"]) == 4)
    xdo("key", "ctrl+w")
    until("Ctrl+W closes a chat", lambda now: len(now["chats"]) == 2, 10)


def keys(window):
    xdo("key", "ctrl+plus", "ctrl+plus", "ctrl+equal")
    now = until("Ctrl with plus makes everything larger", lambda now: now["zoom"] > 1.2, 5)
    xdo("key", "ctrl+minus")
    until("Ctrl with minus makes it smaller", lambda now: now["zoom"] < 1.25, 5)
    xdo("key", "ctrl+0")
    now = until("Ctrl+0 brings the size back", lambda now: now["zoom"] == 1, 5)
    check("a key with Ctrl types nothing", now["draft"] == "", now["draft"])
    order = [chat["id"] for chat in now["chats"]]
    other = order[1 - order.index(now["active"])]
    for key, wanted in (("ctrl+Tab", other), ("ctrl+shift+Tab", now["active"]), ("ctrl+Prior", other),
                        ("ctrl+Next", now["active"])):
        xdo("key", key)
        until(f"{key} changes the tab", lambda now: now["active"] == wanted, 5)
    xdo("key", "ctrl+Tab")
    now = until("the fork is in front", lambda now: len(front(now)["messages"]) == 4, 5)
    said = [message["text"] for message in front(now)["messages"] if message["from_user"]]
    xdo("key", "Up")
    until("Up brings the last message", lambda now: now["draft"] == said[-1], 5)
    xdo("key", "Up")
    until("and the one before it", lambda now: now["draft"] == said[-2], 5)
    xdo("key", "Down", "Down")
    until("Down leads back to the empty field", lambda now: now["draft"] == "", 5)


def memory(window):
    before = state()
    window.click("memory", 0.4)
    now = until("the slider plans at once", lambda now: now["preview"]["total_bytes"] != before["plan"]["total_bytes"], 5)
    check("the model is as it was meanwhile", now["plan"] == before["plan"])
    wanted = now["preview"]
    window.shoot("plan")
    window.click("apply")
    now = until("apply takes the new memory", lambda now: idle(now) and now["plan"]["total_bytes"] == wanted["total_bytes"])
    now = until("what is allocated is at most what was planned",
                lambda now: 0 < now["allocated_bytes"] <= now["plan"]["total_bytes"], 5)
    check("every chat says what was kept", all("kept" in c["note"] or "read again" in c["note"] for c in now["chats"]),
          [c["note"] for c in now["chats"]])
    window.shoot("carried")
    window.click("memory", 0.01)
    until("too little is said to be", lambda now: not now["preview"]["fits"], 5)
    window.click("apply")
    now = until("and is refused, with what would do", lambda now: "would do" in now["error"], 10)
    check("the chats are still there", len(now["chats"]) == 2 and idle(now))
    window.shoot("refused")
    window.click("would_do")
    until("one click takes what would do", lambda now: idle(now) and not now["error"]
          and now["plan"]["total_bytes"] <= 1.1 * now["plan"]["minimum_bytes"])


def files(window):
    before = front(state())
    xdo("key", "ctrl+s")
    until("Ctrl+S asks for a file", lambda now: "path" in now["widgets"], 5)
    time.sleep(0.3)
    xdo("key", "ctrl+a"), xdo("type", str(SAVED)), xdo("key", "Return")
    until("the conversation is saved", lambda now: "Saved" in now["notice"], 10)
    check("the file is there", SAVED.is_file() and SAVED.stat().st_size > 1000)
    window.click("restore")
    time.sleep(0.3)
    xdo("key", "ctrl+a"), xdo("type", str(SAVED)), xdo("key", "Return")
    now = until("it is restored in a tab of its own", lambda now: "Restored" in now["notice"], 10)
    check("with all that was said", front(now)["messages"] == before["messages"], (front(now), before))
    window.click("open")
    time.sleep(0.3)
    xdo("key", "ctrl+a"), xdo("type", "/nowhere/model.gguf"), xdo("key", "Return")
    until("a model that is missing is said to be", lambda now: "/nowhere/model.gguf" in now["error"], 10)
    check("and the chats go on", idle(state()))
    window.click("dismiss")


def narrow(window):
    xdo("windowsize", window.id, 600, 500)
    now = until("a narrow window shows the chat alone", lambda now: "memory" not in now["widgets"]
                and now["widgets"]["panel"][0] < 600, 5)
    outside = lambda now: {k: v for k, v in now["widgets"].items() if v[0] < 0 or v[0] + v[2] > 601}
    check("nothing is cut at 600x500", "status" in now["widgets"] and not outside(now), outside(now))
    window.shoot("600x500")
    window.click("panel")
    now = until("the panel takes its place", lambda now: "memory" in now["widgets"] and "composer" not in now["widgets"], 5)
    check("nothing of it is cut", not outside(now), outside(now))
    window.shoot("600x500-panel")
    window.click("panel")
    until("and goes again", lambda now: "composer" in now["widgets"], 5)


CODE = "def greet(name):\n    print(f\"Hello, {name}\")"
MARKDOWN = f"""## Greeting somebody

A **function** in *Python*, called `greet`:

```python
{CODE}
```

- It takes a **name**.
- It prints a line with `print`.

| column | what |
|--------|------|
| name   | text |

Greetings: \u0645\u0631\u062d\u0628\u0627, \u05e9\u05dc\u05d5\u05dd \U0001f600 \u2764 \u2713
"""


def kept():
    """Chats return after the window was closed, and a stored chat can be opened."""
    before = state()
    texts = lambda now: [[message["text"] for message in chat["messages"]] for chat in now["chats"] if chat["messages"]]
    check("every chat is in the store", len(list(CHATS.glob("*.json"))) >= len(texts(before)) > 1)
    check("for the user alone", all(path.stat().st_mode & 0o077 == 0 for path in CHATS.iterdir()))
    (CHATS / "20260101-120000.json").write_text(json.dumps({
        "version": 1, "model": "", "system": "", "title": "Markdown", "messages": [
            {"role": "user", "content": "How do I greet somebody?"}, {"role": "assistant", "content": MARKDOWN}]}))
    (CHATS / "20260101-110000.json").write_text(json.dumps({
        "version": 1, "model": "", "system": "", "title": "\u4f60\u597d", "messages": [
            {"role": "user", "content": "\u4f60\u597d"}, {"role": "assistant", "content": "Hello!"}]}))
    LOOK.write_text("(<<uint32 2>>,)\n")
    window = Window(MODEL, "--memory", "60MB", "--system", "You are a helpful assistant.")
    try:
        now = until("chats survive closing the window", lambda now: idle(now) and texts(now) == texts(before))
        check("the same one is in front", front(now)["messages"] == front(before)["messages"], front(now))
        until("the window follows the desktop's colours", lambda now: not now["dark"], 10)
        held = front(now)["position"]
        window.say("And of Spain?")
        now = until("a chat that was kept goes on", lambda now: idle(now)
                    and len(front(now)["messages"]) == len(front(before)["messages"]) + 2)
        check("with all that was said before", front(now)["position"] > front(before)["position"] > held, front(now))
        xdo("key", "ctrl+w")
        until("a chat is closed", lambda now: len(now["chats"]) == len(before["chats"]) - 1, 10)
        xdo("key", "ctrl+r")
        until("chats of the store are offered", lambda now: "offer Markdown" in now["widgets"], 5)
        time.sleep(0.3)
        window.click("offer Markdown")
        now = until("and opened", lambda now: front(now)["file"] == "20260101-120000.json", 10)
        window.shoot("markdown-light")
        window.click("copycode1_1")
        xdo("key", "ctrl+v")
        until("the code is copied by its button", lambda now: now["draft"] == CODE, 5)
        xdo("key", "ctrl+a", "BackSpace")
        window.click("theme")
        until("the colours are a choice, too", lambda now: now["dark"], 5)
        window.shoot("markdown-dark")
        window.say("What is the capital of France?")
        until("the opened chat goes on", lambda now: idle(now) and len(front(now)["messages"]) == 4)
        window.shoot("window")
        window.click("theme")
        until("the colours change back", lambda now: not now["dark"], 5)
        window.shoot("window-light")
        window.click("theme")
        until("and again", lambda now: now["dark"], 5)
        xdo("windowsize", window.id, 600, 500)
        window.shoot("markdown-600x500")
    finally:
        window.close()


def too_long():
    window = Window(MODEL, "--memory", "60MB", "--window", "64", "--no-save")
    try:
        until("nothing is opened with --no-save", lambda now: idle(now) and len(now["chats"]) == 1)
        xdo("type", "--delay", 2, "one two three four five " * 16), xdo("key", "Return")
        now = until("a message that does not fit is held back", lambda now: front(now)["refused_tokens"] > 64
                    and "send_anyway" in now["widgets"])
        check("it is in its field", now["draft"].startswith("one two") and not front(now)["messages"], now["draft"][:40])
        window.shoot("too-long")
        window.click("send_anyway")
        until("and sent if told so", lambda now: idle(now) and len(front(now)["messages"]) == 2)
        xdo("key", "ctrl+o")
        until("pulled models are offered", lambda now: "offer pulled" in now["widgets"], 5)
        window.shoot("pulled")
        window.click("offer pulled")
        until("and loaded", lambda now: idle(now) and now["plan"]["memory_bytes"] != 60000000)
        check("nothing new was kept", len(list(CHATS.glob("*.json"))) == too_long.files)
    finally:
        window.close()


def rest(window):
    xdo("mousemove", 1, 1)
    time.sleep(1)
    frames, seconds = state()["frames"], window.seconds_of_cpu()
    time.sleep(3)
    check("nothing is drawn while nothing happens", state()["frames"] == frames, (frames, state()["frames"]))
    check("and no time is used", window.seconds_of_cpu() - seconds < 0.05, window.seconds_of_cpu() - seconds)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    SAVED.unlink(missing_ok=True)
    shutil.rmtree(DATA, ignore_errors=True)
    (FOLDER / "models").mkdir(exist_ok=True)
    shutil.copy(MODEL, FOLDER / "models" / "pulled.gguf")
    (FOLDER / "bin").mkdir(exist_ok=True)
    desktop = FOLDER / "bin" / "gdbus"
    desktop.write_text(f"#!/bin/sh\ncat '{LOOK}'\n")
    desktop.chmod(0o755)
    LOOK.write_text("(<<uint32 1>>,)\n")
    window = Window(MODEL, "--memory", "60MB", "--system", "You are a helpful assistant.")
    try:
        for part in (chats, two_at_once_and_stop, keys, memory, files):
            part(window)
        window.resize(800, 600), window.shoot("800x600")
        window.resize(1400, 900), window.click("theme"), window.shoot("1400x900-light")
        narrow(window)
        rest(window)
        check("it runs still", window.process.poll() is None)
    finally:
        window.close()
    kept()
    too_long.files = len(list(CHATS.glob("*.json")))
    too_long()
    window = Window("/nowhere/model.gguf")
    until("a missing model at the start is a line, not an end", lambda now: "/nowhere/model.gguf" in now["error"], 10)
    window.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
