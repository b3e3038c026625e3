#!/usr/bin/env python3
"""Checks reading and writing of files with hostile users and with early ends."""

import fcntl
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import (BUNDLED, CPU, DATA, EXACT, FIXED, ORIEL, PATIENCE, SMALL, check, environment, fails, floats,
                     is_svg, json_of, one_line_failure, oriel, run_tests, scratch, succeeds, write_ids)

DEEP = 1000000
READERS = {  # every option that reads JSON
    "eval --tokens-file": ["eval", SMALL, *FIXED, "--tokens-file"],
    "run --tokens-file": ["run", SMALL, *FIXED, "--tokens", "1", "--tokens-file"],
    "calibrate --tokens-file": ["calibrate", SMALL, *FIXED, "--out", scratch / "none.json", "--tokens-file"],
    "render --messages": ["render", BUNDLED, "--messages"],
}
HOSTILE = {
    "lists in lists": "[" * DEEP,
    "lists in lists, closed": "[" * DEEP + "]" * DEEP,
    "ids in lists": '{"ids": ' + "[" * DEEP + "1" + "]" * DEEP + "}",
    "an id that is lists": '{"ids": [1, ' + "[" * DEEP + "]" * DEEP + "]}",
    "objects in objects": '{"ids":' * DEEP + "1" + "}" * DEEP,
    "seventeen levels": "[" * 17 + "]" * 17,
    "a key twice": '{"ids": [1], "ids": [2]}',
    "many keys": "{" + ",".join(f'"k{i}": 1' for i in range(200000)) + "}",
    "nothing": "",
    "half of it": '{"ids": [1, 2',
    "a number": "5",
    "null": "null",
    "not text": "\x00\x01\x02",
}


def test_hostile_json():
    for option, command in READERS.items():
        for what, text in HOSTILE.items():
            path = scratch / "hostile.json"
            path.write_text(text)
            result = fails(f"{option}: {what}", 1, *command, path)
            check(f"{option}: {what}: the file is named", str(path) in result.err.decode(), result)
        result = fails(f"{option}: from stdin", 1, *command, "-", stdin=b"[" * DEEP)
        check(f"{option}: stdin is named", "stdin" in result.err.decode(), result)
    for text in (b"[" * DEEP, b'{"ids": [' + b"[" * DEEP + b"]" * DEEP + b"]}"):
        fails("tokenize --decode: lists in lists", 1, "tokenize", SMALL, "--decode", stdin=text)


def test_hostile_ids():
    good = json_of("ids as they should be", "eval", SMALL, *FIXED, "--tokens-file", write_ids([1, 2, 3]))
    check("all are taken", good["tokens"] == 3, good)
    for what in ("18446744073709551615", "18446744073709551613", "9223372036854775808", "-9223372036854775808",
                 "2147483648", "99999999999999999999999999", "1e999", "-1e999", "1.5", "1e2", '"1"', "true", "null",
                 "[1]", '{"a": 1}', "-1", "1000000", "\"" + "x" * 100000 + "\""):
        path = scratch / "ids.json"
        path.write_text('{"ids": [1, %s]}' % what)
        result = fails(f"no token id: {what[:30]}", 1, "eval", SMALL, *FIXED, "--tokens-file", path)
        check(f"no token id: {what[:30]}: the line is short and names the file",
              str(path) in result.err.decode() and len(result.err) < 300 + len(str(path)), result)
    path.write_text('{"ids": [1, 1000000]}')
    for option in ("run", "calibrate"):
        result = fails(f"{option}: an id outside the vocabulary", 1, *READERS[f"{option} --tokens-file"], path)
        check(f"{option}: the file is named", str(path) in result.err.decode(), result)


def test_huge_json():
    path = scratch / "huge.json"
    with open(path, "wb") as file:
        file.write(b'{"ids": [' + b"1," * 34000000 + b"1]}")  # 68 MB
    begin = time.time()
    result = fails("68 MB of ids", 1, "eval", SMALL, *FIXED, "--tokens-file", path)
    check("are refused by size", "64.0 MiB" in result.err.decode() and time.time() - begin < 20 * PATIENCE, result)
    path.write_bytes(b"[" + b"{}," * 12000000 + b"{}]")
    fails("12 million objects", 1, "eval", SMALL, *FIXED, "--tokens-file", path)
    path.unlink()


def test_floats_are_short():
    scored = json_of("logits", "eval", EXACT, *FIXED, "--tokens-file", write_ids([1, 2, 3, 4, 5]),
                     "--logits-out", scratch / "logits.f32")
    exact = floats((scratch / "logits.f32").read_bytes())
    for token, logit in scored["top"]:
        again = struct.unpack("<f", struct.pack("<f", logit))[0]
        check("a logit reads back as the same float", again == exact[token], (logit, exact[token]))
        check("and has as few digits as that takes", len(repr(logit).strip("-").replace(".", "").lstrip("0")) <= 9,
              logit)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def writers(name):
    """Every option that writes a result, as (what, command, path)."""
    ids = write_ids([1, 2, 3])
    return [("plan --plot", ["plan", SMALL, "--memory", "64MiB", "--plot"], scratch / f"{name}-plan.svg"),
            ("eval --picture", ["eval", SMALL, *FIXED, "--tokens-file", ids, "--picture"],
             scratch / f"{name}-cache.svg"),
            ("eval --logits-out", ["eval", SMALL, *FIXED, "--tokens-file", ids, "--logits-out"],
             scratch / f"{name}-logits.f32")]


def test_results_in_files():
    before = os.umask(0o027)
    for what, command, path in writers("mode"):
        succeeds(what, *command, path)
        check(f"{what}: a new file has the user's usual mode", mode_of(path) == 0o640, oct(mode_of(path)))
        first = path.read_bytes()
        for mode in (0o600, 0o666):
            path.write_bytes(b"old")
            path.chmod(mode)
            succeeds(f"{what} again", *command, path)
            check(f"{what}: a mode is kept", mode_of(path) == mode and path.read_bytes() == first, oct(mode_of(path)))
        link = scratch / f"link{path.suffix}"
        link.symlink_to(path.name)
        path.write_bytes(b"old")
        succeeds(f"{what} through a link", *command, link)
        check(f"{what}: a link stays a link", link.is_symlink() and path.read_bytes() == first)
        path.unlink()
        succeeds(f"{what} through a link to nothing yet", *command, link)
        check(f"{what}: what it names is written", link.is_symlink() and path.read_bytes() == first)
        link.unlink()
        nowhere = scratch / "no" / f"where{path.suffix}"
        refused = fails(f"{what} into no folder", 1, *command, nowhere)
        check(f"{what}: the file is named", str(nowhere) in refused.err.decode(), refused)
        taken = scratch / f"folder{path.suffix}"
        taken.mkdir(exist_ok=True)
        fails(f"{what} over a folder", 1, *command, taken)
    os.umask(before)
    check("nothing is left beside", not list(scratch.glob(".oriel*")) and not list(scratch.glob("*tmp*")),
          os.listdir(scratch))
    if os.path.exists("/dev/full"):
        for what, command, _ in writers("full"):
            if "plot" not in what and "picture" not in what:  # those take names that end in .svg
                fails(f"{what} on a full disk", 1, *command, "/dev/full")


def test_a_result_that_was_not_finished_is_not_there():
    path = scratch / "cut.f32"
    for old in (None, b"old"):
        if old:
            path.write_bytes(old)
        process = subprocess.Popen([str(ORIEL), "eval", str(BUNDLED), *CPU, "--memory", "64MiB", "--text",
                                    str(DATA.parent.parent / "docs" / "design.md"), "--all-logits", "--logits-out",
                                    str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=environment())
        time.sleep(0.5)
        process.kill()
        process.wait()
        check("what was there is as it was", (path.read_bytes() if path.exists() else None) == old)


def test_the_sidecar_is_not_written_through_a_link():
    victim = scratch / "victim"
    victim.write_text("untouched")
    out = scratch / "sidecar.json"
    for name in ("sidecar.json.new", "sidecar.json.oriel-tmp", "sidecar.json.tmp"):
        (scratch / name).symlink_to(victim.name)
    succeeds("calibrate", "calibrate", SMALL, *FIXED, "--whole-model", "--max-tokens", "256", "--tokens-file",
             write_ids([i % 200 + 3 for i in range(300)]), "--out", out)
    check("the link's file is untouched", victim.read_text() == "untouched")
    check("the sidecar is whole", json.loads(out.read_text())["format"] == "oriel calibration")


def test_cache_folder_is_the_users_alone_and_a_frozen_process_holds_up_nobody():
    before = os.umask(0)
    cache = scratch / "private" / "cache"
    env = environment(XDG_CACHE_HOME=str(cache))
    bench = ["bench", SMALL, *FIXED, "--prefill", "4", "--decode", "4", "--repeat", "1"]
    succeeds("bench fills the cache folder", *bench, env=env)
    os.umask(before)
    kept = list((cache / "oriel").iterdir())
    check("with files that nobody else reads", kept and all(mode_of(path) == 0o600 for path in kept), kept)
    check("in folders that nobody else enters",
          mode_of(cache) == 0o700 and mode_of(cache / "oriel") == 0o700, oct(mode_of(cache / "oriel")))
    holders = []
    for rates in kept:
        held = open(f"{rates}.oriel-tmp", "wb")
        fcntl.flock(held, fcntl.LOCK_EX)  # from this process, which stands for a frozen one
        holders.append(held)
    begin = time.time()
    succeeds("bench beside a frozen one", *bench, env=env)
    check("does not wait", time.time() - begin < 30 * PATIENCE)
    check("and leaves alone what is being written", all(os.path.exists(held.name) for held in holders))


def test_weights_of_large_models_are_mapped_from_the_cache_folder():
    large = scratch / "large.gguf"
    shutil.copy(SMALL, large)
    os.truncate(large, 80 << 20)  # a hole
    cache = scratch / "prepares" / "cache"
    folder = cache / "oriel" / "prepared"
    env = environment(XDG_CACHE_HOME=str(cache))
    run = ["run", large, *CPU, "--greedy", "--tokens", "8", "--window", "64", "--prompt", "Hello"]
    expected = succeeds("--no-cache", *run, "--no-cache", env=env).out
    succeeds("--memory", *run, "--memory", "64MiB", env=env)
    succeeds("a small model", *run[:1], SMALL, *run[2:], env=env)
    check("nothing is prepared", not folder.exists())
    check("a load prepares", succeeds("run", *run, env=env).out == expected)
    kept = sorted(folder.iterdir())
    check("weights and tables", len(kept) == 2 and all(mode_of(path) == 0o600 for path in kept), kept)
    written = [path.stat().st_mtime_ns for path in kept]
    check("the next load gives the same text", succeeds("run", *run, env=env).out == expected)
    check("and maps them", written == [path.stat().st_mtime_ns for path in sorted(folder.iterdir())])
    planned = succeeds("plan", "plan", large, *CPU, "--window", "64", env=env).out.decode()
    check("plan shows the mapped bytes", "  mapped " in planned and "  held " in planned, planned)
    weights = max(kept, key=lambda path: path.stat().st_size)
    with open(weights, "r+b") as file:
        file.seek(weights.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    damaged = fails("changed weights", 1, *run, env=env)
    check("say what to do", "load the model again" in damaged.err.decode(), damaged)
    check("and are made again", succeeds("run", *run, env=env).out == expected)
    shutil.rmtree(folder)
    folder.write_bytes(b"")
    check("a folder that cannot be written is left out", succeeds("run", *run, env=env).out == expected)


def test_a_pipe_is_no_model():
    pipe = scratch / "pipe.gguf"
    os.mkfifo(pipe)
    for command in (["info"], ["run", "--prompt", "Hi"], ["plan"], ["calibrate", "--text", __file__]):
        fails(f"{command[0]} of a pipe that nobody writes to", 1, command[0], pipe, *command[1:], *CPU)


def test_byte_order_marks():
    """Windows editors and shells write a byte order mark before UTF-8; the text begins after it."""
    mark = b"\xef\xbb\xbf"

    def both(what, text, *command, stdin=False):
        path = scratch / "marked.txt"
        outs = []
        for content in (text, mark + text):
            path.write_bytes(content)
            result = (succeeds(f"{what}, from stdin", *command, stdin=content) if stdin else
                      succeeds(what, *command, path))
            outs.append(result.out)
        check(f"{what}: a byte order mark changes nothing", outs[0] == outs[1], outs)

    run = ["run", BUNDLED, *CPU, "--greedy", "--tokens", "8"]
    both("--prompt-file", b"Hello", *run, "--prompt-file")
    both("the prompt", b"Hello", *run, stdin=True)
    both("--messages", b'[{"role": "user", "content": "Hi"}]', *run, "--messages")
    both("--tokens-file", b'{"ids": [1, 2, 3]}', *run, "--tokens-file")
    both("--schema", b'{"enum": ["ab"]}', *run, "Hello", "--schema")
    both("--grammar", b'root ::= "ab"', *run, "Hello", "--grammar")
    both("--template", b"{% for m in messages %}{{ m.content }}{% endfor %}", *run, "Hello", "--template")
    both("tokenize", b"a word", "tokenize", BUNDLED, stdin=True)


def test_empty_model_variable():
    for command in (["info"], ["plan", "--memory", "64MiB"], ["run", *CPU, "--prompt", "Hello", "--tokens", "1"]):
        empty = fails(f"an empty ORIEL_MODEL: {command[0]}", 2, *command, env=environment(ORIEL_MODEL=""))
        check("the variable is named", "ORIEL_MODEL" in empty.err.decode(), empty)
    succeeds("where the model is named it does not count", "info", SMALL, env=environment(ORIEL_MODEL=""))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
