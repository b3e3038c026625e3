#!/usr/bin/env python3
"""A chat whose Vulkan device is lost goes on on the CPU:
test_lost_device.py ORIEL_BINARY TEST_DATA_DIR, with lost_loader.c in the folder ORIEL_TEST_LOST_LOADER
"""

import ctypes
import json
import os
import subprocess
import sys
import threading

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, ORIEL, PATIENCE, check, environment, run_tests, scratch

LINES = ["My name is Ada.", "What is my name?", "Tell me a story."]
CHAT = ["chat", BUNDLED, "--greedy", "--tokens", "24", "--memory", "64MiB", "--kv", "f16", "--no-cache", "--json", "--system", "You are kind."]


def real_loader():
    ctypes.CDLL("libvulkan.so.1")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if "libvulkan.so.1" in line)


def talk(device, lost_before, say=LINES, window=("--window", "200")):
    """Replies, stderr and exit code; the device is lost before the line of this number."""
    marker = scratch / "lost"
    marker.unlink(missing_ok=True)
    env = environment(LD_LIBRARY_PATH=os.environ["ORIEL_TEST_LOST_LOADER"], ORIEL_TEST_LOADER=real_loader(),
                      ORIEL_TEST_LOST=str(marker))
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


def test_it_goes_on_on_the_cpu():
    want, err, code = talk("cpu", None)
    check("cpu: talks", code == 0 and not err and len(want) == len(LINES), (want, err))
    for lost_before in range(1, len(LINES)):
        got, err, code = talk("vulkan", lost_before)
        name = f"lost before line {lost_before}"
        check(f"{name}: all is answered", code == 0 and len(got) == len(LINES), (got, err, code))
        check(f"{name}: one line says so",
              len(err) == 1 and err[0] == "oriel: the device was lost: going on on the CPU", err)
        check(f"{name}: the conversation is the same",
              [(r["text"], r["window_used"]) for r in got] == [(r["text"], r["window_used"]) for r in want],
              (got, want))


def test_what_was_forgotten_stays_forgotten():
    say = ["Tell me a long story about a dog and a cat.", "And another one.", "And another.", "Go on.", "Thanks!"]
    got, err, code = talk("vulkan", 4, say, ("--window", "64"))
    check("after eviction: it goes on", code == 0 and len(got) == 5 and len(err) == 1, (got, err, code))
    check("after eviction: something was forgotten by then", got and got[3]["evicted"] > 0, got)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
