#!/usr/bin/env python3
"""Vulkan that is lost, cannot be started or has other limits, imitated on this device: test_fault_layer.py ORIEL_BINARY
TEST_DATA_DIR, with the fault layer (tests/faults/layer) in VK_ADD_LAYER_PATH
"""

import json
import re
import subprocess
import sys
import threading

sys.dont_write_bytecode = True  # nothing appears in the source tree
from at_terminal import AtTerminal, no_terminals
from program import BUNDLED, ORIEL, PATIENCE, SMALL, check, environment, fails, json_of, oriel, run_tests, scratch
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


RUN = ["run", SMALL, "--prompt", "x", "--tokens", "2", "--greedy", "--memory", "64MiB", "--kv", "f16",
       "--no-cache"]


def broken():
    """Vulkan fails to start."""
    return environment(VK_INSTANCE_LAYERS="VK_LAYER_ORIEL_faults", ORIEL_FAULTS="vkCreateInstance@1+=-3")


def test_the_cpu_is_listed():
    listed = oriel("devices", "--json", "--verbose", env=broken())
    check("devices: the CPU alone", listed.code == 0
          and [device["option"] for device in listed.json["devices"]] == ["cpu"], listed)
    check("devices: says what is wrong with Vulkan", b"Vulkan cannot be started" in listed.err, listed)


def test_without_a_device_named_the_cpu_does_it():
    auto = oriel(*RUN, "--json", "--device", "auto", env=broken())
    check("auto: runs", auto.code == 0, auto)
    check("auto: on the CPU", auto.json["token_ids"] == json_of("cpu", *RUN, "--device", "cpu", env=broken())["token_ids"],
          auto)


def test_vulkan_that_was_asked_for_is_an_error():
    fails("vulkan: an error", 1, *RUN, "--device", "vulkan", env=broken())


def test_a_manifest_that_cannot_be_read_is_told_as_that():
    manifest = scratch / "bad.json"
    manifest.write_text("{garbage")
    env = environment(VK_DRIVER_FILES=str(manifest), VK_ICD_FILENAMES=str(manifest))
    result = fails("manifest: an error", 1, *RUN, "--device", "vulkan", env=env)
    check("manifest: says what to look at", b"memory" not in result.err and b"VK_DRIVER_FILES" in result.err, result)


VERBOSE_RUN = ["run", SMALL, "--prompt", "Hello there", "--tokens", "24", "--greedy", "--raw", "--memory", "64MiB", "--kv", "f16",
       "--verbose", "--json", "--device", "vulkan", "--device-test", "never"]
LARGE_WINDOW = "400000"
SAMPLED = [word for word in VERBOSE_RUN if word != "--greedy"] + ["--temperature", "1.5", "--seed", "7"]  # reads all logits


def run(orders, args=VERBOSE_RUN):
    """The result and the layer's complaints."""
    report = scratch / "report"
    report.unlink(missing_ok=True)
    result = oriel(*args, env=environment(VK_INSTANCE_LAYERS="VK_LAYER_ORIEL_faults", ORIEL_FAULTS=orders,
                                          ORIEL_FAULTS_REPORT=str(report)))
    return result, report.read_text().splitlines() if report.exists() else []


def same(result, args=VERBOSE_RUN):
    return result.code == 0 and result.json["token_ids"] == PLAIN[args is SAMPLED]


PLAIN = [oriel(*args).json["token_ids"] for args in (VERBOSE_RUN, SAMPLED)]


def test_memory_types():
    # As Mesa's drivers have them: Valhall, Meteor Lake, PowerVR and V3D, a discrete card.
    for types in ("1,7", "7,b", "7", "1,7,f", "b"):
        for args in (VERBOSE_RUN, SAMPLED):
            result, complaints = run(f"types={types} dirt=255", args)
            check(f"types {types}: the text is right", same(result, args) and not complaints, (complaints, result))


def test_rounded_buffers():
    result, complaints = run("padding=65536")
    check("padding: runs", same(result) and not complaints, (complaints, result))
    check("padding: says so", b"rounds the weights up by 65536 bytes" in result.err, result)
    result, _ = run("padding=1000000")
    check("padding: too much is refused", result.code != 0 and b"for a buffer planned with" in result.err, result)


def test_small_allocations():
    result, _ = run("allocation=100000")
    check("allocation: says what to do", result.code != 0 and b"give a smaller memory budget or window" in result.err,
          result)


def test_memory_budget():
    result, _ = run("budget=100000")
    check("budget: the text is right", same(result), result)
    check("budget: too small is said", b"MiB free and the plan takes" in result.err, result)
    result, _ = run("budget=4000000000")
    check("budget: enough is not", same(result) and b"MiB free" not in result.err, result)


def test_default_memory():
    """Without --memory a card's budget counts: four fifths of the memory that its driver reports as free."""
    asked = [word for word in VERBOSE_RUN if word not in ("--memory", "64MiB", "--verbose")]
    plan = ["plan", SMALL, "--device", "vulkan", "--json"]
    for budget in (40000000, 50000000):
        result, _ = run(f"kind=2 budget={budget}", plan)
        check(f"default of {budget}: is four fifths", result.code == 0 and
              result.json["memory_bytes"] == budget // 100 * 80, result)
        check(f"default of {budget}: holds the plan", result.json["total_bytes"] <= budget // 100 * 80, result)
        result, _ = run(f"kind=2 budget={budget}", asked)
        check(f"default of {budget}: runs", result.code == 0, result)


def test_large_caches():
    """A cache of more than a driver gives in one piece, in pieces of 1 GiB."""
    with_window = ["run", BUNDLED, "--prompt", "Hello there", "--tokens", "8", "--greedy", "--raw", "--memory", "3GiB",
                   "--kv", "f16", "--window", LARGE_WINDOW, "--verbose", "--json", "--device", "vulkan", "--device-test",
                   "never"]
    cache = oriel("plan", BUNDLED, "--memory", "3GiB", "--kv", "f16", "--window", LARGE_WINDOW, "--json").json["kv_bytes"]
    check("large cache: is more than 1 GiB", cache > 1 << 30, cache)
    result, complaints = run("allocation=1073741824", with_window)
    small = ["1020" if word == LARGE_WINDOW else word for word in with_window]
    check("large cache: the text is right", result.code == 0 and not complaints and
          result.json["token_ids"] == oriel(*small).json["token_ids"], (complaints, result))


def test_times_of_ops():
    model = ["bench", SMALL, "--ops", "--memory", "64MiB", "--depth", "40", "--device", "vulkan"]
    result, complaints = run("", [*model, "--json"])
    check("ops: runs", result.code == 0 and not complaints, (complaints, result))
    ops = result.json["ops"]
    lists = {"decode": [], "prefill": [], "head": []}
    for op in ops:
        lists[op["list"]].append(op)
    for name, those in lists.items():
        check(f"ops: {name} has products", any(op["op"].startswith("matmul ") for op in those), those)
        check(f"ops: {name} is whole", abs(sum(op["share"] for op in those) - 1) < 1e-6, those)
    check("ops: take time", all(op["ms"] > 0 and op["count"] > 0 for op in ops), ops)
    check("ops: are dispatched and have an estimate",
          all(op["dispatches"] >= op["count"] and op["expected_ms"] > 0 for op in ops), ops)
    layers = [op["count"] for op in lists["decode"] if op["op"] == "attention"]
    check("ops: an attention a layer", layers == [2], ops)
    result, _ = run("", model)
    check("ops: as a table", result.code == 0 and b"list     op " in result.out and b"attention" in result.out, result)
    result, _ = run("families=f ticks=0", model)
    check("ops: a driver without timestamps is told", result.code != 0 and b"no timestamps" in result.err, result)
    result = oriel(*model[:-1], "cpu")
    check("ops: so is the CPU", result.code != 0 and b"Vulkan" in result.err, result)


def test_queue_families():
    # Flags of RADV: graphics with compute, compute alone, copies.
    for families, chosen in (("f,e,c", 1), ("f", 0), ("c,2,7", 1), ("1,f", 1)):
        result, lines = run(f"families={families}")
        check(f"families {families}: the text is right", same(result), result)
        check(f"families {families}: {chosen} is used", lines == [f"uses family {chosen}"], lines)
    result, _ = run("families=1,c")
    check("families: none computes", result.code != 0 and b"no compute queue" in result.err, result)


def test_subgroups():
    for lanes in (0, 3, 1):
        result, _ = run(f"subgroup={lanes}")
        check(f"subgroups of {lanes}: the text is right", result.code == 0, result)
        check(f"subgroups of {lanes}: not used", b"(shared)" in result.err, result)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
