#!/usr/bin/env python3
"""A chat whose Vulkan device is lost goes on, on that one if it works again, else on the CPU, and so does a server:
test_lost_device.py ORIEL_BINARY TEST_DATA_DIR, with the fault layer (tests/faults/layer) in VK_ADD_LAYER_PATH
"""

import json
import re
import subprocess
import sys
import threading

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import ORIEL, PATIENCE, SMALL, check, environment, run_tests, scratch
from server import Server

LINES = ["My name is Ada.", "What is my name?", "Tell me a story."]
# In f32: on no device are two words so near each other that rounding may choose.
CHAT = ["chat", SMALL, "--greedy", "--tokens", "24", "--memory", "64MiB", "--kv", "f16", "--no-cache", "--json", "--system", "You are kind."]


def losing(marker):
    """The device is lost while the file is there."""
    return {"VK_INSTANCE_LAYERS": "VK_LAYER_ORIEL_faults", "ORIEL_FAULTS": "vkWaitForFences@1+=-4",
            "ORIEL_FAULTS_WHEN": str(marker)}


def talk(device, lost_before, say=LINES, window=("--window", "500")):
    """Replies, stderr and exit code; the device is lost before the line of this number."""
    marker = scratch / "lost"
    marker.unlink(missing_ok=True)
    env = environment(**losing(marker))
    process = subprocess.Popen([str(ORIEL)] + [str(a) for a in CHAT] + ["--device", device, *window],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    guard = threading.Timer(120 * PATIENCE, process.kill)
    guard.start()
    replies = []
    for number, line in enumerate(say):
        if number == lost_before:
            marker.touch()
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            break
        said = process.stdout.readline()
        if not said:
            break
        replies.append(json.loads(said))
    _, err = process.communicate()
    guard.cancel()
    marker.unlink(missing_ok=True)
    return replies, err.decode().splitlines(), process.returncode


def test_it_goes_on():
    want, err, code = talk("cpu", None)
    check("cpu: talks", code == 0 and not err and len(want) == len(LINES), (want, err))
    for lost_before in range(1, len(LINES)):
        got, err, code = talk("vulkan", lost_before)
        name = f"lost before line {lost_before}"
        check(f"{name}: all is answered", code == 0 and len(got) == len(LINES), (got, err, code))
        check(f"{name}: one line says so",
              len(err) == 1 and err[0].startswith("oriel: the device was lost: going on on "), err)
        check(f"{name}: the conversation is the same",
              [(r["text"], r["window_used"]) for r in got] == [(r["text"], r["window_used"]) for r in want],
              (got, want))


def test_what_was_forgotten_stays_forgotten():
    say = ["Tell me a long story about a dog and a cat.", "And another one.", "And another.", "Go on.", "Thanks!"]
    got, err, code = talk("vulkan", 4, say, ("--window", "64"))
    check("after eviction: it goes on", code == 0 and len(got) == 5 and len(err) == 1, (got, err, code))
    check("after eviction: something was forgotten by then", got and got[3]["evicted"] > 0, got)


def test_several_conversations_go_on():
    """Both sessions, after the one copy of the system message, including the idle one."""
    if no_terminals():
        return
    marker = scratch / "lost"
    want = {}
    for device in ("cpu", "vulkan"):
        lost = device == "vulkan"
        env = losing(marker) if lost else {}
        options = [option for option in CHAT if option != "--json"]
        chat = AtTerminal(*options, "--sessions", "3", "--window", "500", "--device", device, columns=200, rows=60, **env)
        check(f"{device}: greets", chat.until(chat.at_prompt), chat.screen.text())

        def say(line):
            before = len(chat.screen.lines())
            chat.keys(line + "\r", settle=False)
            chat.until(lambda: len(chat.screen.lines()) > before + 1
                       and re.fullmatch(r"([^>]+)?>", chat.screen.lines()[chat.screen.row]))
            return [each for each in chat.screen.lines()[before:] if each and not re.search("tok/s|>|lost", each)]

        said = [say("My name is Ada."), say("/new other"), say("Tell me a story.")]
        if lost:
            marker.touch()
        said += [say("Go on."), say("/switch 1"), say("What is my name?"), say("/new third"), say("Hello!")]
        marker.unlink(missing_ok=True)
        text = chat.screen.text()
        check(f"{device}: one line says that it was lost", text.count("the device was lost") == (1 if lost else 0), text)
        want[device] = said
        chat.close()
        chat.forget()
    check("all say what they say on the CPU", want["cpu"] == want["vulkan"], want)


SERVE = ["--device-test", "never", "--memory", "64MiB", "--kv", "f16", "--window", "500", "--no-cache"]


def serving(device, marker, lost_before, works_again):
    """Statuses and bodies of requests, and the /health reply after each. The device is lost before a request."""
    said, messages = [], []
    with Server(SMALL, *SERVE, "--device", device, fixed=(), **(losing(marker) if device == "vulkan" else {})) as server:
        for number, line in enumerate([LINES[0], "And yours?", *LINES[1:]]):
            if number == lost_before:
                marker.touch()
            asked = messages + [{"role": "user", "content": line}]
            reply = server.chat(asked, max_tokens=16)
            if number == lost_before:
                said.append((reply.status, reply.json.get("error", {}).get("code"), server.get("/health").status))
                if works_again:
                    marker.unlink()
                reply = server.chat(asked, max_tokens=16)
            text = reply.json["choices"][0]["message"]["content"] if reply.status == 200 else reply.body
            said.append((reply.status, text, server.get("/health").status))
            # The words of this model's replies are random, so tests do not look for them.
            messages = asked + [{"role": "assistant", "content": "Yes."}]
        marker.unlink(missing_ok=True)
        code, _, err = server.stop()
        said.append((code, err))
    return said


def test_a_server_goes_on():
    marker = scratch / "lost"
    marker.unlink(missing_ok=True)
    want = serving("cpu", marker, None, False)
    check("serve, cpu: answers", all(each[0] == 200 for each in want[:-1]), want)
    for works_again in (True, False):
        got = serving("vulkan", marker, 2, works_again)
        name = f"serve, {'it works again' if works_again else 'it stays lost'}"
        failed = [each for each in got[:-1] if each[0] != 200]
        check(f"{name}: one request says that the device was lost",
              [each[:2] for each in failed] == [(503, "device_lost")], got)
        check(f"{name}: the rest is answered as on the CPU",
              [each[1] for each in got[:-1] if each[0] == 200] == [each[1] for each in want[:-1]], (got, want))
        check(f"{name}: requests can be answered again at once", all(each[2] == 200 for each in got[:-1]), got)
        check(f"{name}: it ends as ever", got[-1][0] == want[-1][0] == 0, (got[-1], want[-1]))


def test_a_server_that_begins_on_a_lost_device_recovers():
    """The device is lost during the creation of the first session. The second request recovers it."""
    marker = scratch / "lost"
    marker.unlink(missing_ok=True)
    want = serving("cpu", marker, None, False)
    got = serving("vulkan", marker, 0, False)
    failed = [each for each in got[:-1] if each[0] != 200]
    check("serve, lost from the beginning: at most one request says so",
          [each[:2] for each in failed] in ([], [(503, "device_lost")]), got)
    check("serve, lost from the beginning: the rest is answered as on the CPU",
          [each[1] for each in got[:-1] if each[0] == 200][-len(want) + 1:] == [each[1] for each in want[:-1]], (got, want))


def test_a_reset_that_is_refused_is_made_up_for():
    """The request during the loss gets an error; the next one is answered as if the conversation were new."""
    marker = scratch / "refused"
    marker.unlink(missing_ok=True)
    refusing = {**losing(marker), "ORIEL_FAULTS": "vkQueueSubmit@1+=-1"}
    secret, other, asked = ([{"role": "user", "content": text}] for text in (LINES[0], "Hello!", "What is my name?"))
    with Server(SMALL, *SERVE, "--sessions", "1", "--device", "vulkan", fixed=(), **refusing) as server:
        want = server.chat(asked, max_tokens=16, temperature=0).json["choices"][0]["message"]
        first = server.chat(secret, max_tokens=16, temperature=0)
        marker.touch()
        refused = server.chat(other, max_tokens=16, temperature=0)
        marker.unlink()
        got = server.chat(asked, max_tokens=16, temperature=0)
        check("serve, memory refused: one request fails", (first.status, refused.status // 100) == (200, 5), refused)
        check("serve, memory refused: the next is answered", got.status == 200, got)
        if got.status == 200:
            check("serve, memory refused: nobody's words are in it", got.json["choices"][0]["message"] == want
                  and got.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 0, (got, want))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
