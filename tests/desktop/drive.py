"""Drives oriel-desktop as a person would: keys and mouse through xdotool, on the display that DISPLAY names.

    python3 drive.py PROGRAM MODEL FOLDER

Asserts on the state that the program writes with --state; screenshots go to FOLDER. Ends with "N passed, N failed".
"""
import json
import os
import pathlib
import subprocess
import sys
import time

PROGRAM, MODEL, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
STATE = FOLDER / "state.json"
SAVED = FOLDER / "kept.oriel"
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
        self.process = subprocess.Popen([PROGRAM, *options, "--state", STATE, "--device", "cpu"])
        end = time.time() + WAIT_S
        while not STATE.exists() and time.time() < end:
            time.sleep(0.1)
        found = subprocess.run(["xdotool", "search", "--sync", "--onlyvisible", "--name", "^Oriel$"],
                               stdout=subprocess.PIPE, check=True, timeout=WAIT_S).stdout
        self.id = found.split()[-1].decode()
        xdo("windowfocus", self.id)

    def click(self, widget, across=0.5):
        x, y, width, height = state()["widgets"][widget]
        xdo("mousemove", "--window", self.id, int(x + width * across), int(y + height / 2), "sleep", 0.15, "click", 1)
        time.sleep(0.3)

    def say(self, text):
        xdo("type", "--delay", 15, text)
        xdo("key", "Return")

    def shoot(self, name):
        time.sleep(0.3)
        path = FOLDER / f"{name}.png"
        subprocess.run(["import", "-window", self.id, str(path)], check=True)
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


def memory(window):
    before = state()
    window.click("memory", 0.4)
    now = until("the slider plans at once", lambda now: now["preview"]["total_bytes"] != before["plan"]["total_bytes"], 5)
    check("the model is as it was meanwhile", now["plan"] == before["plan"])
    wanted = now["preview"]
    window.shoot("plan")
    window.click("apply")
    now = until("apply takes the new memory", lambda now: idle(now) and now["plan"]["total_bytes"] == wanted["total_bytes"])
    check("what is allocated is at most what was planned", 0 < now["allocated_bytes"] <= now["plan"]["total_bytes"], now)
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
    window = Window(MODEL, "--memory", "60MB", "--system", "You are a helpful assistant.")
    try:
        for part in (chats, two_at_once_and_stop, memory, files):
            part(window)
        window.resize(800, 600), window.shoot("800x600")
        window.resize(1400, 900), window.click("theme"), window.shoot("1400x900-light")
        rest(window)
        check("it runs still", window.process.poll() is None)
    finally:
        window.close()
    window = Window("/nowhere/model.gguf")
    until("a missing model at the start is a line, not an end", lambda now: "/nowhere/model.gguf" in now["error"], 10)
    window.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
