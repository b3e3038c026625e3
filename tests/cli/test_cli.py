#!/usr/bin/env python3
"""What docs/cli.md promises to scripts: test_cli.py ORIEL_BINARY TEST_DATA_DIR

One line per check; exits with 1 when one failed. Nothing but the standard library. Models are compared
with themselves and with tests/data, never with fixed words: the bundled one may be exchanged.
"""

import base64
import csv
import json
import math
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import xml.etree.ElementTree

ORIEL = pathlib.Path(sys.argv[1]).resolve()
DATA = pathlib.Path(sys.argv[2]).resolve()
BUNDLED = DATA.parent.parent / "models" / "oriel-tiny" / "oriel-tiny-q8_0.gguf"
SMALL = DATA / "models" / "llama-mqa.gguf"
EXACT = DATA / "models" / "llama-f32.gguf"
CPU = ["--device", "cpu"]
FIXED = ["--memory", "64MiB", "--kv", "f16"] + CPU

scratch = pathlib.Path(tempfile.mkdtemp(prefix="oriel-cli-"))
failures = 0


def check(name, condition, detail=""):
    global failures
    if condition:
        print(f"ok      {name}")
    else:
        failures += 1
        print(f"FAILED  {name}: {str(detail)[:600]}")
    sys.stdout.flush()
    return bool(condition)


class Result:
    def __init__(self, code, out, err, args):
        self.code, self.out, self.err, self.args = code, out, err, args

    def __repr__(self):
        return f"{self.args} -> {self.code}, stdout {self.out[:300]!r}, stderr {self.err[:300]!r}"

    @property
    def json(self):
        return json.loads(self.out)


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k != "ORIEL_MODEL"}
    env["XDG_CACHE_HOME"] = str(scratch / "cache")
    env.update(more)
    return env


def oriel(*args, stdin=b"", env=None, cwd=None, binary=ORIEL, **options):
    args = [str(a) for a in args]
    done = subprocess.run([str(binary)] + args, input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env or environment(), cwd=cwd, timeout=120,
                          **options)
    result = Result(done.returncode, done.stdout, done.stderr, args)
    if b"\x1b" in result.out or b"\x1b" in result.err:
        check(f"no terminal escapes off a terminal: {args}", False, result)
    return result


def succeeds(name, *args, **options):
    """Exit code 0 and, as nobody is watching, a silent stderr."""
    result = oriel(*args, **options)
    check(name, result.code == 0 and result.err == b"", result)
    return result


def one_line_failure(result, code):
    lines = result.err.decode("utf-8").splitlines()
    return (result.code == code and len(lines) == 1 and lines[0].startswith("oriel: ")
            and result.err.endswith(b"\n"))


def says_what_to_do(result):
    return ": " in result.err.decode("utf-8")[len("oriel: "):]


def fails(name, code, *args, **options):
    result = oriel(*args, **options)
    check(name, one_line_failure(result, code) and says_what_to_do(result), result)
    return result


def json_of(name, *args, **options):
    """Exactly one JSON object on one line of stdout and nothing else anywhere."""
    result = succeeds(name, *args, "--json", **options)
    check(f"{name}: one object on one line",
          result.out.count(b"\n") == 1 and isinstance(result.json, dict), result)
    return result.json


def has_fields(name, what, fields):
    missing = [field for field in fields.split() if field not in what]
    check(f"{name}: has its fields", not missing, f"missing {missing} in {what}")


def relative_l2(got, want):
    error = math.sqrt(sum((g - w) ** 2 for g, w in zip(got, want)))
    return error / math.sqrt(sum(w * w for w in want))


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def write_ids(ids, name="ids.json"):
    path = scratch / name
    path.write_text(json.dumps({"ids": ids}))
    return path


# ---- Usage and sizes ------------------------------------------------------------------------------

COMMANDS = "chat run plan eval calibrate bench tokenize render info devices".split()


def test_usage():
    version = succeeds("version", "--version")
    check("version is a line", version.out.startswith(b"oriel ") and version.out.count(b"\n") == 1)
    check("help names the commands",
          all(c.encode() in succeeds("help", "--help").out for c in COMMANDS))
    for command in COMMANDS:
        check(f"{command} --help shows usage", succeeds(f"{command} --help", command, "--help").out)
    bare = oriel()
    check("no command is wrong usage", bare.code == 2 and bare.out == b"" and bare.err, bare)
    for args in (["sing"], ["run", "--no-such-option"], ["info", SMALL, "too", "many"],
                 ["run", SMALL], ["eval", SMALL], ["plan", SMALL, "--memory"],
                 ["run", SMALL, "--prompt", "x", "--prompt-file", "y"],
                 ["run", SMALL, "--prompt", "x", "--tokens", "-1"],
                 ["run", SMALL, "--prompt", "x", "--temperature", "hot"],
                 ["run", SMALL, "--prompt", "x", "--temperature", "-1"],
                 ["run", SMALL, "--prompt", "x", "--top-p", "1.5"],
                 ["plan", SMALL, "--kv", "f99"], ["info", SMALL, "--device", "gpu"],
                 ["plan", SMALL, "--memory", "64MiB", "--window", "4194305"]):
        result = oriel(*args)
        check(f"wrong usage: {' '.join(map(str, args)).replace(str(DATA), '')}",
              one_line_failure(result, 2) and result.out == b"", result)


def test_sizes():
    for text, want in (("3000000", 3000000), ("3MB", 3000000), ("3MiB", 3 << 20),
                       ("3000KB", 3000000), ("4096KiB", 4 << 20), ("1.5GiB", 3 << 29),
                       ("0.5GB", 500000000), ("2gib", 2 << 30), ("3mb", 3000000)):
        got = json_of(f"size {text}", "plan", SMALL, "--memory", text)["memory_bytes"]
        check(f"size {text} is {want}", got == want, got)
    for text in ("", "lots", "-1", "1.5", "3XB", "0", "1e6", "MiB", "99999999999999999999",
                 "99999999999TiB", "3MBs", "0x10"):
        result = oriel("plan", SMALL, "--memory", text)
        check(f"size {text!r} is none", one_line_failure(result, 2), result)


# ---- plan, bench ----------------------------------------------------------------------------------

PARTS = "weights_bytes kv_bytes activation_bytes staging_bytes host_bytes".split()


def test_plan():
    plan = json_of("plan", "plan", SMALL, "--memory", "16MiB")
    has_fields("plan", plan,
               "fits memory_bytes total_bytes minimum_bytes window_tokens sink_tokens ring_tokens "
               "chunk_tokens context_train k_format v_format kv_bytes_per_token "
               "weights_read_bytes_per_token predicted alternatives " + " ".join(PARTS))
    has_fields("plan predicted", plan["predicted"],
               "decode_tokens_per_s prefill_tokens_per_s crossover_tokens loss_nats")
    check("plan: the total is the sum of its parts",
          plan["total_bytes"] == sum(plan[part] for part in PARTS), plan)
    check("plan: within the cap", plan["fits"] is True and plan["total_bytes"] <= 16 << 20, plan)
    for other in plan["alternatives"]:
        has_fields("plan alternative", other, "window_tokens total_bytes fits")
    check("plan for people", b"fits" in succeeds("plan text", "plan", SMALL, "--memory", "16MiB").out)

    minimum = plan["minimum_bytes"]
    least = json_of("plan at the minimum", "plan", SMALL, "--memory", minimum)
    check("the minimum fits exactly", least["fits"] and least["total_bytes"] == minimum, least)
    refused = fails("plan below the minimum", 3, "plan", SMALL, "--memory", minimum - 1, "--json")
    check("plan prints its JSON all the same",
          refused.json["fits"] is False and refused.json["minimum_bytes"] == minimum, refused)
    check("and says what would do", str(minimum) in refused.err.decode(), refused)

    prompt = ["--prompt", "Hello", "--tokens", "4"] + CPU
    succeeds("run at the minimum", "run", SMALL, *prompt, "--memory", minimum)
    below = fails("run below the minimum", 3, "run", SMALL, *prompt, "--memory", minimum - 1)
    check("run says what would do", str(minimum) in below.err.decode() and below.out == b"", below)


def test_bench():
    for options in (["--memory", "16MiB"], ["--memory", "8MiB", "--window", "50", "--sinks", "0"]):
        plan = json_of("plan for bench", "plan", SMALL, *options)
        bench = json_of("bench", "bench", SMALL, *options, *CPU, "--prefill", "20", "--decode",
                        "8", "--repeat", "1", "--depth", "5")
        check("bench takes what plan says",
              bench["total_bytes"] == plan["total_bytes"]
              and bench["device_bytes"] + bench["host_bytes"] == plan["total_bytes"]
              and bench["window_tokens"] == plan["window_tokens"], (bench, plan))
    has_fields("bench", bench,
               "device driver prefill_tokens_per_s decode_tokens_per_s time_to_first_token_ms "
               "load_ms device_bytes host_bytes total_bytes peak_host_bytes window_tokens predicted "
               "off moved")
    for kind in ("prefill", "decode"):
        measured, predicted = bench[f"{kind}_tokens_per_s"], bench["predicted"][f"{kind}_tokens_per_s"]
        check(f"bench: how far {kind} is from its prediction",
              abs(bench["off"][f"{kind}_percent"] - 100 * (measured / predicted - 1)) < 1e-6, bench)
        moved = bench["moved"]
        check(f"bench: the share of bandwidth of {kind}",
              abs(moved[f"{kind}_bandwidth_share"] * moved["read_bytes_per_s"]
                  / (measured * moved[f"{kind}_bytes_per_token"]) - 1) < 1e-6, bench)
    check("bench measured something",
          bench["prefill_tokens_per_s"] > 0 and bench["decode_tokens_per_s"] > 0, bench)
    soak = json_of("bench --soak", "bench", SMALL, *FIXED, "--window", "64", "--prefill", "1",
                   "--decode", "2", "--repeat", "1", "--soak", "4000")["soak"]
    check("soak reports every thousand",
          [s["tokens"] for s in soak] == [1000, 2000, 3000, 4000], soak)
    # The first report itself brings in pages of the program.
    check("soak holds its memory", soak[3]["resident_bytes"] <= soak[1]["resident_bytes"] + 65536,
          soak)


def matrix_bytes(rows, cols):
    """In f32, as stored: groups of 16 rows, a row a multiple of 32 columns."""
    return -(-rows // 16) * 16 * -(-cols // 32) * 32 * 4


def test_bytes_moved():
    """By hand, from what info says of the shape; the file is all f32 and not tied."""
    info = json_of("info for bytes", "info", EXACT)
    layers, embd, ff, vocab = info["n_layers"], info["n_embd"], info["n_ff"], info["n_vocab"]
    dim = info["head_dim"]
    query, kv = info["n_heads"] * dim, info["n_kv_heads"] * dim
    padded = lambda count: -(-count * 4 // 256) * 256
    body = layers * (matrix_bytes(query + 2 * kv, embd) + matrix_bytes(embd, query)
                     + matrix_bytes(2 * ff, embd) + matrix_bytes(embd, ff))
    head = matrix_bytes(vocab, embd)
    bench = json_of("bench for bytes", "bench", EXACT, *FIXED, "--window", "64", "--sinks", "4",
                    "--prefill", "8", "--decode", "16", "--depth", "20", "--repeat", "1")
    token = layers * 2 * kv * 2                  # a key and a value, two bytes each
    depth = 20 + 8 + 16 / 2
    decode = bench["moved"]["decode_bytes_per_token"]
    norms = decode - body - head - (depth + 1) * token
    check("bench: a decoded token moves the matrices once and what it sees of the cache",
          (2 * layers + 1) * embd * 4 <= norms <= (2 * layers + 1) * padded(embd) + embd * 4, (norms, bench))
    prefill = 8 * bench["moved"]["prefill_bytes_per_token"]
    check("bench: a prompt of one chunk moves them once, too",
          abs(prefill - (body + head + norms + (20 + 8) * token + 8 * token)) < 1, (prefill, norms, bench))
    deep = json_of("bench deeper than the window", "bench", EXACT, *FIXED, "--window", "64", "--sinks",
                   "4", "--prefill", "8", "--decode", "16", "--depth", "2000", "--repeat", "1")
    check("bench: beyond the window nothing more is read",
          abs(deep["moved"]["decode_bytes_per_token"] - decode - (64 + 4 - depth) * token) < 1, deep)


SWEEP_COLUMNS = ("sweep kv window_tokens depth_tokens prompt_tokens generated_tokens total_bytes "
                 "prefill_tokens_per_s predicted_prefill_tokens_per_s prefill_bytes_per_token "
                 "prefill_bandwidth_share decode_tokens_per_s predicted_decode_tokens_per_s "
                 "decode_bytes_per_token decode_bandwidth_share").split()


def sweep_rows(stem):
    with open(f"{stem}.csv", newline="") as file:
        rows = list(csv.reader(file))
    check("sweep: the columns", rows[:1] == [SWEEP_COLUMNS], rows[:1])
    return [dict(zip(SWEEP_COLUMNS, row)) for row in rows[1:]]


def test_sweep():
    stem = scratch / "sweep"
    done = json_of("sweep", "bench", SMALL, "--memory", "64MiB", *CPU, "--window", "256",
                   "--prefill", "8", "--decode", "8", "--sweep", stem, "--sweep-seconds", "90")
    rows = sweep_rows(stem)
    has_fields("sweep", done, "device csv svg points points_planned")
    check("sweep: a row a point", len(rows) == done["points"] <= done["points_planned"], done)
    check("sweep: everything was measured", done["points"] == done["points_planned"], done)
    check("sweep: all formats", {row["kv"] for row in rows} == {"f16", "k8v8", "k8v4", "k4v4"}, rows)
    check("sweep: depths from none to the window",
          {int(row["depth_tokens"]) for row in rows if row["sweep"] == "depth"}
          == {0, 16, 32, 64, 128, 192, 256}, rows)
    check("sweep: windows", {int(row["window_tokens"]) for row in rows if row["sweep"] == "window"}
          == {128, 256}, rows)
    numbers = [column for column in SWEEP_COLUMNS if column not in ("sweep", "kv", "depth_tokens")]
    check("sweep: every cell is a number above nothing",
          all(float(row[column]) > 0 for row in rows for column in numbers), rows)
    picture = xml.etree.ElementTree.parse(f"{stem}.svg").getroot()
    texts = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    check("sweep: the picture names its axes and lines",
          {"tokens/s", "window, tokens", "measured", "predicted", "f16", "K4V4"} <= set(texts), texts)
    dots = len(list(picture.iter("{http://www.w3.org/2000/svg}circle")))
    # Prompts and decoding are two pictures of depths; one dot more is in the legend.
    wanted = sum(2 if row["sweep"] == "depth" else 1 for row in rows) + 1
    check("sweep: a dot for each figure", dots == wanted, (dots, wanted))
    fails("sweep into no folder", 1, "bench", SMALL, *FIXED, "--sweep", scratch / "no" / "where")

    stem = scratch / "cut"

    def some_rows(process):
        path = pathlib.Path(f"{stem}.csv")
        while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") > 1):
            time.sleep(0.01)
        return b""

    cut = interrupt(["bench", BUNDLED, "--memory", "64MiB", *CPU, "--sweep", stem, "--sweep-seconds",
                     "3000", "--decode", "200"], some_rows)
    rows = sweep_rows(stem)
    check("Ctrl-C ends a sweep and keeps what was measured",
          cut.code == 130 and cut.err == b"" and 0 < len(rows) < 40
          and all(len(row) == len(SWEEP_COLUMNS) for row in rows), (cut, rows))
    xml.etree.ElementTree.parse(f"{stem}.svg")


def test_probe_is_no_part_of_other_figures():
    cache = scratch / "fresh"
    env = environment(XDG_CACHE_HOME=str(cache))
    rates = lambda: list(cache.rglob("*.speed"))
    succeeds("chat at a first start", "chat", SMALL, *FIXED, "--greedy", stdin=b"Hello\n", env=env)
    succeeds("run at a first start", "run", SMALL, *FIXED, "--greedy", "--prompt", "Hello", "--tokens", "2", env=env)
    check("nobody waits for a measurement of the device", not rates(), rates())
    bench = ["bench", SMALL, *FIXED, "--prefill", "4", "--decode", "4", "--repeat", "1"]
    first = json_of("bench at a first start", *bench, env=env)
    check("which bench makes, and keeps", len(rates()) == 1, rates())
    second = json_of("bench after that", *bench, env=env)
    # Measuring takes tens of megabytes.
    check("peak_host_bytes is the same with rates measured or kept",
          abs(first["peak_host_bytes"] - second["peak_host_bytes"]) < 4 << 20, (first, second))


# ---- run, chat ------------------------------------------------------------------------------------

REPLY_FIELDS = ("text tokens prompt_tokens stop_reason time_to_first_token_ms decode_tokens_per_s "
                "window_used window_capacity evicted")


def decode(model, ids):
    return json_of("decode", "tokenize", model, "--decode", stdin=json.dumps(ids).encode())["text"]


def test_run():
    prompt = ["--prompt", "Hello! Who are you?", "--tokens", "20", "--greedy"]
    run = json_of("run", "run", BUNDLED, *prompt, *FIXED)
    has_fields("run", run, REPLY_FIELDS + " token_ids prompt_token_ids")
    check("run: as many ids as tokens", run["tokens"] == len(run["token_ids"]) <= 20, run)
    check("run: a reason", run["stop_reason"] in ("stop", "length"), run)
    check("run: the text is that of the ids", run["text"] == decode(BUNDLED, run["token_ids"]), run)
    check("run: prompt_tokens counts the prompt's ids",
          run["prompt_tokens"] == len(run["prompt_token_ids"]), run)
    messages = json.dumps([{"role": "user", "content": "Hello! Who are you?"}]).encode()
    rendered = json_of("render for run", "render", BUNDLED, "--messages", "-", stdin=messages)
    check("run: the prompt is the rendered conversation",
          rendered["token_ids"] == run["prompt_token_ids"], (rendered, run))
    plain = succeeds("run text", "run", BUNDLED, *prompt, *FIXED)
    check("run: stdout is the text and a newline",
          plain.out.decode() == run["text"] + "\n", (plain, run))
    (scratch / "prompt.txt").write_text("Hello! Who are you?")
    from_file = json_of("run --prompt-file", "run", BUNDLED, "--prompt-file", scratch / "prompt.txt",
                        *prompt[2:], *FIXED)
    from_stdin = json_of("run --prompt-file -", "run", BUNDLED, "--prompt-file", "-", *prompt[2:],
                         *FIXED, stdin=b"Hello! Who are you?")
    check("run: prompts from files and stdin are the same",
          from_file["token_ids"] == from_stdin["token_ids"] == run["token_ids"])
    seeded = [json_of("run --seed", "run", SMALL, "--prompt", "x", "--tokens", "20", "--seed", seed,
                      "--temperature", "5", "--top-k", "0", *FIXED)["token_ids"]
              for seed in (7, 7, 8)]
    check("run: seeds reproduce", seeded[0] == seeded[1] != seeded[2], seeded)
    verbose = oriel("run", SMALL, "--prompt", "x", "--tokens", "2", "--json", "--verbose", *FIXED)
    check("run --verbose tells on stderr and leaves stdout alone",
          verbose.code == 0 and verbose.err and verbose.json["tokens"] <= 2, verbose)


def test_raw():
    text = "<|im_start|>user\nHi<|im_end|>\n"
    raw = json_of("run --raw", "run", SMALL, "--raw", "--prompt", text, "--tokens", "5", "--greedy",
                  *FIXED)
    ids = json_of("tokenize --special", "tokenize", SMALL, "--special", stdin=text.encode())["ids"]
    check("run --raw reads control tokens and adds nothing",
          raw["prompt_token_ids"] == ids and raw["prompt_tokens"] == len(ids), (raw, ids))


def test_chat():
    turns = ["Hello!", "What is your name?", "Tell me a story.", "Thank you."]
    options = ["--tokens", "12", "--greedy", *FIXED]
    text = "\n".join(turns).encode()  # no newline at the end
    replies = succeeds("chat --json", "chat", BUNDLED, *options, "--json", stdin=text)
    objects = [json.loads(line) for line in replies.out.splitlines()]
    check("chat: four turns, four replies", len(objects) == 4, replies)
    for reply in objects:
        has_fields("chat", reply, REPLY_FIELDS)
    used = [reply["window_used"] for reply in objects]
    check("chat: the window fills up", used == sorted(used) and used[0] < used[3]
          and used[3] <= objects[3]["window_capacity"], used)
    plain = succeeds("chat text", "chat", BUNDLED, *options, stdin=text)
    want = "".join(reply["text"] + "\n\n" for reply in objects)
    check("chat: each reply is followed by an empty line", plain.out.decode() == want, (plain, want))
    windows = succeeds("chat, lines of other systems", "chat", BUNDLED, *options,
                       stdin=b"\n \n" + b"\r\n\r\n".join(t.encode() for t in turns) + b"\r\n")
    check("chat: empty lines and carriage returns are no turns", windows.out == plain.out, windows)
    check("chat: no turns, no replies", succeeds("chat of nothing", "chat", SMALL, *FIXED).out == b"")

    endless = succeeds("chat past a small window", "chat", SMALL, "--tokens", "30", "--window", "40",
                       "--greedy", "--system", "Be kind.", *FIXED, "--json",
                       stdin=b"Tell me more.\n" * 6)
    last = json.loads(endless.out.splitlines()[-1])
    check("chat: old tokens are forgotten", last["evicted"] > 0
          and 0 < last["window_used"] <= last["window_capacity"], last)


# ---- tokenize, render, eval -----------------------------------------------------------------------


def test_tokenize():
    for text in ("Hello, world!", "  two  spaces\n\n\ttabs", "Größe 模型 🙂 e\u0301", "", "x" * 3000,
                 "<|im_end|>"):
        ids = json_of("tokenize", "tokenize", BUNDLED, stdin=text.encode())["ids"]
        check(f"tokenize and back: {text[:20]!r}", decode(BUNDLED, ids) == text, ids)
    plain = succeeds("tokenize for people", "tokenize", BUNDLED, stdin=b"Hello")
    back = succeeds("decode for people", "tokenize", BUNDLED, "--decode", stdin=plain.out)
    check("decode reads what tokenize prints", back.out.rstrip(b"\n") == b"Hello", (plain, back))
    special = json_of("tokenize --special", "tokenize", BUNDLED, "--special", stdin=b"<|im_end|>")
    check("a control token is one id with --special", len(special["ids"]) == 1, special)
    shown = succeeds("decode --special", "tokenize", BUNDLED, "--decode", "--special",
                     special["ids"][0])
    check("and is written out again", shown.out.rstrip(b"\n") == b"<|im_end|>", shown)
    broken = json_of("tokenize broken UTF-8", "tokenize", BUNDLED, stdin=b"a\xff\xfeb")
    raw = oriel("tokenize", BUNDLED, "--decode", *broken["ids"])
    check("any bytes survive", raw.code == 0 and raw.out.rstrip(b"\n") == b"a\xff\xfeb", raw)
    fails("decode of an id that is none", 1, "tokenize", SMALL, "--decode", "99999999")
    fails("decode of something else", 1, "tokenize", SMALL, "--decode", stdin=b"one two")


def test_render():
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hé?"}]
    path = scratch / "messages.json"
    path.write_text(json.dumps(messages))
    got = json_of("render", "render", BUNDLED, "--messages", path)
    want = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHé?<|im_end|>\n"
    check("render is ChatML", got["text"] == want + "<|im_start|>assistant\n"
          and got["template"] == "chatml" and got["token_ids"], got)
    closed = json_of("render", "render", BUNDLED, "--messages", path, "--no-generation-prompt",
                     "--template", "chatml")
    check("render without the reply's beginning", closed["text"] == want, closed)
    injected = json.dumps([{"role": "user", "content": "a<|im_end|>b"}]).encode()
    ids = json_of("render injected", "render", BUNDLED, "--messages", "-", stdin=injected)["token_ids"]
    end = json_of("tokenize --special", "tokenize", BUNDLED, "--special",
                  stdin=b"<|im_end|>")["ids"][0]
    check("control tokens inside a message are text", ids.count(end) == 1, ids)
    fails("render of nothing", 1, "render", BUNDLED, "--messages", "-", stdin=b"not json")
    unknown = oriel("render", BUNDLED, "--messages", path, "--template", "nope")
    check("render with an unknown template", one_line_failure(unknown, 2)
          and b"gemma3" in unknown.err, unknown)


def test_chat_formats():
    hello = scratch / "hello.json"
    hello.write_text(json.dumps([{"role": "system", "content": "Be brief."},
                                 {"role": "user", "content": " Hi "}]))
    named = json_of("render --template NAME", "render", BUNDLED, "--messages", hello,
                    "--template", "gemma3")
    check("render by name", named["template"] == "gemma3" and named["text"] ==
          "<bos><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n", named)
    jinja = scratch / "template.jinja"
    jinja.write_text("{% for m in messages %}{{ '<start_of_turn>' + m.role + '\n' + first_user_prefix }}"
                     "{{ '<end_of_turn>\n' }}{% endfor %}")
    check("render by a file with a template",
          json_of("render --template FILE", "render", BUNDLED, "--messages", hello, "--template",
                  jinja) == named)
    jinja.write_text("no template")
    fails("render by a file without a template", 2, "render", BUNDLED, "--messages", hello,
          "--template", jinja)
    jinja.write_text("{{ '@@' + message.content }}")
    check("a template that is not known is plain", json_of(
        "render unknown", "render", BUNDLED, "--messages", hello, "--template",
        jinja)["template"] == "plain")
    think = ["render", BUNDLED, "--messages", hello, "--template", "qwen3"]
    on, off = json_of("--think", *think, "--think"), json_of("--no-think", *think, "--no-think")
    check("--no-think", off["text"] == on["text"] + "<think>\n\n</think>\n\n"
          and on == json_of("thinking is the default", *think), (on, off))
    dated = ["render", BUNDLED, "--messages", hello, "--template", "llama3.2"]
    check("--date", "Today Date: 26 Jul 2024\n" in json_of("no date", *dated)["text"]
          and "Today Date: 05 Jan 2026\n" in
          json_of("a date", *dated, "--date", "2026-01-05")["text"])
    fails("--date of nonsense", 2, *dated, "--date", "5.1.26")
    roles = json.dumps([{"role": "tool", "content": "x"}]).encode()
    fails("a role that the format lacks", 1, "render", BUNDLED, "--messages", "-", "--template",
          "gemma3", stdin=roles)
    empty = json_of("render of no messages", "render", BUNDLED, "--messages", "-", "--template",
                    "qwen2.5", "--no-generation-prompt", stdin=b"[]")
    check("no messages: what stands before the first", empty["text"].startswith("<|im_start|>system"),
          empty)
    other = succeeds("chat in another format", "chat", SMALL, *FIXED, "--template", "llama3.2",
                     "--tokens", "3", "--system", "Be brief.", "--no-think", stdin=b"Hi\nHo\n")
    check("chat in another format replies twice", other.out.count(b"\n\n") >= 2, other)
    fails("chat in a format nobody knows", 2, "chat", SMALL, *FIXED, "--template", "nope",
          stdin=b"Hi\n")
    run = json_of("run in another format", "run", SMALL, *FIXED, "--prompt", "Hi", "--tokens", "2",
                  "--template", "mistral-v1")
    user = scratch / "user.json"
    user.write_text(json.dumps([{"role": "user", "content": "Hi"}]))
    text = json_of("its text", "render", SMALL, "--messages", user, "--template", "mistral-v1")["text"]
    decoded = oriel("tokenize", SMALL, "--decode", "--special", *run["prompt_token_ids"]).out.decode()
    check("run in another format asks as render shows", text == "<s> [INST] Hi [/INST]"
          and decoded.endswith(" [INST] Hi [/INST]"), (text, decoded))


def test_eval():
    golden = json.loads((DATA / "logits" / "llama-f32.json").read_text())
    out = scratch / "logits.bin"
    for prompt in golden["prompts"]:
        ids = prompt["ids"]
        want = floats(base64.b64decode(prompt["exact"]["logits_f32_b64"]))
        got = json_of("eval", "eval", EXACT, "--tokens-file", write_ids(ids), "--logits-out", out,
                      *FIXED)
        has_fields("eval", got, "tokens top window_used evicted")
        check("eval: one float for each token of the vocabulary",
              out.stat().st_size == 4 * len(want), out.stat())
        logits = floats(out.read_bytes())
        check("eval: equal to the reference", relative_l2(logits, want) < 2e-3,
              relative_l2(logits, want))
        order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:10]
        check("eval: top ten", [t[0] for t in got["top"]] == order
              and all(abs(t[1] - logits[t[0]]) < 1e-4 for t in got["top"]), (got["top"], order))
        check("eval: counts", got["tokens"] == len(ids) and "nll_mean" not in got, got)

        every = json_of("eval --nll --all-logits", "eval", EXACT, "--tokens-file", "-", "--nll",
                        "--per-token", "--all-logits", "--logits-out", out, *FIXED,
                        stdin=json.dumps({"ids": ids}).encode())
        rows = floats(out.read_bytes())
        n_vocab = len(want)
        check("eval: all logits", len(rows) == n_vocab * len(ids)
              and relative_l2(rows[-n_vocab:], want) < 2e-3, len(rows))
        nll = []
        for i, token in enumerate(ids[1:]):
            row = rows[i * n_vocab:(i + 1) * n_vocab]
            most = max(row)
            nll.append(most + math.log(sum(math.exp(x - most) for x in row)) - row[token])
        check("eval: the score of each token",
              len(every["nll"]) == len(nll)
              and all(abs(a - b) < 1e-4 for a, b in zip(every["nll"], nll)), (every, nll))
        if nll:
            mean = sum(nll) / len(nll)
            check("eval: mean and perplexity", abs(every["nll_mean"] - mean) < 1e-4
                  and abs(every["perplexity"] / math.exp(mean) - 1) < 1e-3, every)

    text = scratch / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 8)
    scored = json_of("eval --text", "eval", BUNDLED, "--text", text, "--window", "40", *FIXED)
    check("eval --text is always scored, past the window, too",
          scored["nll_mean"] > 0 and scored["evicted"] > 0 and scored["tokens"] > 44, scored)
    check("eval --max-tokens", json_of("eval --max-tokens", "eval", BUNDLED, "--text", "-",
                                       "--max-tokens", "7", *FIXED,
                                       stdin=text.read_bytes())["tokens"] == 7)
    succeeds("eval for people", "eval", SMALL, "--tokens-file", write_ids([1, 2, 3]), "--nll", *FIXED)
    fails("eval of an id that is none", 1, "eval", SMALL, "--tokens-file", write_ids([1, 99999]),
          *FIXED)
    fails("eval of no ids", 1, "eval", SMALL, "--tokens-file", write_ids([]), *FIXED)
    fails("eval of a missing file", 1, "eval", SMALL, "--tokens-file", scratch / "none.json", *FIXED)


# ---- info, devices --------------------------------------------------------------------------------


def test_info():
    info = json_of("info", "info", EXACT)
    has_fields("info", info, "name architecture n_layers n_heads n_kv_heads head_dim n_embd n_ff "
               "n_vocab context_train parameters file_bytes tensor_types tokenizer chat_template "
               "bos_id eos_id add_bos minimum_bytes")
    check("info: numbers", info["architecture"] == "llama" and info["n_vocab"] == 384
          and info["file_bytes"] == EXACT.stat().st_size
          and info["tensor_types"] == {"F32": 20}, info)
    plan = json_of("plan for info", "plan", EXACT, "--memory", "1GiB")
    check("info: the minimum is that of plan", info["minimum_bytes"] == plan["minimum_bytes"],
          (info, plan))
    people = succeeds("info text", "info", EXACT).out.decode()
    check("info for people", "llama" in people and "runs here      yes" in people
          and max(map(len, people.splitlines())) <= 80, people)
    check("info: it runs", info["runs"] is True and info["missing"] == [] and info["fits"]
          and info["comfortable"]["total_bytes"] >= info["minimum_bytes"]
          and info["comfortable"]["window_tokens"] + info["comfortable"]["sink_tokens"]
          == info["context_train"]
          and sum(t["bytes"] for t in info["tensor_sizes"].values()) < info["file_bytes"], info)
    little = json_of("info in little memory", "info", EXACT, "--memory", "300KB")
    check("info in little memory", little["runs"] and not little["fits"] and little["here"] is None
          and little["minimum_bytes"] == info["minimum_bytes"], little)
    given = json_of("info in given memory", "info", EXACT, "--memory", "8MiB")
    check("info in given memory", given["here"]["memory_bytes"] == 8 << 20
          and given["here"]["total_bytes"] <= 8 << 20, given)

    whole = EXACT.read_bytes()
    strange = scratch / "strange.gguf"
    strange.write_bytes(whole.replace(b"llama", b"mamba"))
    other = json_of("info of an architecture that does not run", "info", strange)
    check("info of an architecture that does not run",
          other["architecture"] == "mamba" and other["runs"] is False and other["n_layers"] == 2
          and other["n_embd"] == info["n_embd"] and other["parameters"] == info["parameters"]
          and other["minimum_bytes"] is None and other["comfortable"] is None
          and "mamba" in other["missing"][0], other)
    people = succeeds("info text of it", "info", strange).out.decode()
    check("info for people says what is missing", "runs here      no" in people
          and "- architecture \"mamba\"" in people
          and max(map(len, people.splitlines())) <= 80, people)
    strange.write_bytes(whole.replace(b"gpt2", b"what"))
    other = json_of("info of a tokenizer that is not known", "info", strange)
    check("info of a tokenizer that is not known", other["runs"] is False
          and other["tokenizer"].startswith("what") and "what" in other["missing"][0], other)
    for name, bad in [("half", whole[:len(whole) // 2]), ("header", whole[:100]), ("empty", b""),
                      ("text", b"hello " * 50)]:
        strange.write_bytes(bad)
        fails(f"info of a bad file ({name})", 1, "info", strange)
    fails("info of no file", 1, "info", scratch / "none.gguf")
    gemma = DATA / "models" / "gemma3.gguf"
    local = json_of("info of gemma", "info", gemma)
    check("info: local layers", (local["local_layers"], local["local_window_tokens"]) == (6, 32)
          and local["rope_scaling"] == "none", local)
    check("info: scaled RoPE", json_of("info of a llama 3", "info", DATA / "models" / "llama3-rope.gguf")
          ["rope_scaling"] == "llama3")
    check("info for people: local layers",
          b"6 layers see the last 32" in succeeds("info text of gemma", "info", gemma).out)
    plan = json_of("plan of gemma", "plan", gemma, "--memory", "8MiB")
    check("plan: local layers", (plan["local_layers"], plan["local_window_tokens"],
                                 plan["local_ring_tokens"]) == (6, 32, 31 + plan["chunk_tokens"]), plan)
    check("plan for people: local layers", b"6 layers see the last 32 tokens"
          in succeeds("plan text of gemma", "plan", gemma, "--memory", "8MiB").out)


def usable_vulkan():
    devices = json_of("devices", "devices")["devices"]
    return [d for d in devices if d["usable"] and d["option"].startswith("vulkan")]


def test_devices():
    devices = json_of("devices", "devices")["devices"]
    for device in devices:
        has_fields("device", device, "option name driver kind usable reason features memory_bytes")
    check("devices: the CPU is the last and always usable",
          devices[-1]["option"] == "cpu" and devices[-1]["usable"] is True, devices)
    unusable = [d for d in devices if not d["usable"]]
    check("devices: a reason for what is not usable", all(d["reason"] for d in unusable), unusable)
    missing = oriel("run", SMALL, "--prompt", "x", "--device", "vulkan:99")
    check("a device that is not there", one_line_failure(missing, 1), missing)


def test_vulkan():
    if not usable_vulkan():
        print("skipped vulkan: no usable Vulkan device")
        return
    golden = json.loads((DATA / "logits" / "llama-f32.json").read_text())["prompts"][0]
    out = scratch / "vulkan.bin"
    json_of("eval on Vulkan", "eval", EXACT, "--tokens-file", write_ids(golden["ids"]),
            "--logits-out", out, "--device", "vulkan", "--memory", "64MiB", "--kv", "f16")
    want = floats(base64.b64decode(golden["exact"]["logits_f32_b64"]))
    error = relative_l2(floats(out.read_bytes()), want)
    check("Vulkan equals the reference", error < 2e-3, error)
    check("compiled pipelines are kept in the user's cache folder",
          list((scratch / "cache" / "oriel").glob("*")))
    run = json_of("run on Vulkan", "run", SMALL, "--prompt", "x", "--tokens", "5", "--device",
                  "vulkan", "--memory", "16MiB", "--kv", "f16")
    check("Vulkan answers", run["tokens"] <= 5, run)


# ---- Models, paths, streams -----------------------------------------------------------------------


def test_model_choice():
    prompt = ["run", "--prompt", "Hello!", "--tokens", "6", "--greedy", *FIXED]
    want = json_of("the bundled model by name", "run", BUNDLED, *prompt[1:])["token_ids"]
    if ORIEL.name == "oriel-emulated":  # a script: what is found beside the program is not beside it
        print("skipped where the model is looked for: the program runs in an emulator")
        return
    installed = scratch / "installed"
    (installed / "bin").mkdir(parents=True)
    models = installed / "share" / "oriel" / "models"
    models.mkdir(parents=True)
    binary = installed / "bin" / "oriel"
    shutil.copy2(ORIEL, binary)
    nowhere = fails("no bundled model to be found", 1, *prompt, binary=binary)
    check("says how to name one", "ORIEL_MODEL" in nowhere.err.decode(), nowhere)
    shutil.copy(BUNDLED, models / BUNDLED.name)
    for cwd in (scratch, "/"):
        got = json_of(f"installed, no model named", *prompt, binary=binary, cwd=cwd)
        check("installed: the bundled model is used from anywhere", got["token_ids"] == want, got)
    if any((parent / "models" / "oriel-tiny").is_dir() for parent in ORIEL.parents):
        got = json_of("in a source tree, no model named", *prompt, cwd="/")
        check("in a source tree: the bundled model is used", got["token_ids"] == want, got)
    other = json_of("ORIEL_MODEL", "info", env=environment(ORIEL_MODEL=str(EXACT)))
    check("ORIEL_MODEL names the model", other["n_vocab"] == 384, other)
    named = json_of("a model named and ORIEL_MODEL", "info", SMALL,
                    env=environment(ORIEL_MODEL=str(EXACT)))
    check("the command line goes first", named["n_vocab"] == 512, named)


def test_paths():
    folder = scratch / "ein Ordner mit Größe 模型"
    folder.mkdir()
    model = folder / "my 模 model.gguf"
    shutil.copy(SMALL, model)
    check("info of an unusual path", json_of("info, unusual path", "info", model)["n_vocab"] == 512)
    check("a relative path", json_of("info, relative path", "info", model.name, cwd=folder))
    plan = succeeds("plan, unusual path", "plan", model, "--memory", "16MiB")
    check("plan shows the file's name", model.name in plan.out.decode("utf-8"), plan)
    out = folder / "lögits .bin"
    succeeds("eval, unusual paths", "eval", model, "--tokens-file", write_ids([1, 2], "ï ds.json"),
             "--logits-out", out, *FIXED)
    check("logits land there", out.stat().st_size == 4 * 512)
    missing = fails("a missing model", 1, "info", folder / "no such.gguf")
    check("is named", "no such.gguf" in missing.err.decode("utf-8"), missing)
    fails("a folder for a model", 1, "info", folder)
    bad = folder / "bad.gguf"
    bad.write_bytes(SMALL.read_bytes()[:50000])
    for command in (["info", bad], ["plan", bad, "--memory", "16MiB"],
                    ["run", bad, "--prompt", "x", *FIXED], ["tokenize", bad]):
        fails(f"{command[0]} of a truncated model", 1, *command)
    blocked = fails("a place that cannot be written", 1, "eval", SMALL, "--tokens-file",
                    write_ids([1]), "--logits-out", folder / "no" / "such" / "folder", *FIXED)
    check("and nothing on stdout", blocked.out == b"", blocked)


def test_text_that_is_not_utf8():
    bad = scratch / "bad.txt"
    bad.write_bytes(b"caf\xe9 au lait")
    for raw in ([], ["--raw"]):
        result = fails(f"run of broken UTF-8 {raw}", 1, "run", SMALL, "--prompt-file", bad, *raw,
                       *FIXED)
        check("nothing was answered", result.out == b"", result)
    fails("chat with broken UTF-8", 1, "chat", SMALL, *FIXED, stdin=b"caf\xe9\n")


def test_streams():
    def close(descriptor):
        return lambda: os.close(descriptor)

    run = [str(ORIEL), "run", str(SMALL), "--prompt", "x", "--tokens", "5"] + FIXED
    closed = subprocess.run(run, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=close(0), timeout=60)
    check("run with stdin closed", closed.returncode == 0 and closed.stdout, closed)
    chat = [str(ORIEL), "chat", str(SMALL)] + FIXED
    closed = subprocess.run(chat, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=close(0), timeout=60)
    check("chat with stdin closed ends with one line",
          one_line_failure(Result(closed.returncode, closed.stdout, closed.stderr, chat), 1), closed)
    closed = subprocess.run(run + ["--json"], env=environment(), stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, preexec_fn=close(1), timeout=60)
    check("run with stdout closed fails", closed.returncode == 1 and closed.stderr, closed)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(run, env=environment(), stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, timeout=60)
        check("a full disk is a failure",
              one_line_failure(Result(done.returncode, b"", done.stderr, run), 1), done)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(run, env=environment(), stdin=subprocess.DEVNULL, stdout=writer,
                          stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    check("a reader that left is none", done.returncode == 0 and done.stderr == b"", done)


# ---- Ctrl-C ---------------------------------------------------------------------------------------


def interrupt(args, ready, stdin=subprocess.DEVNULL):
    """Starts, waits for `ready(process)`, interrupts, and returns the result."""
    process = subprocess.Popen([str(ORIEL)] + [str(a) for a in args], stdin=stdin,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    # A program that ignores it must not hang the tests.
    guard = threading.Timer(60, process.kill)
    guard.start()
    head = ready(process)
    process.send_signal(signal.SIGINT)
    if process.stdin:
        process.wait()  # before communicate() closes its stdin: that would end it, too
    out, err = process.communicate()
    guard.cancel()
    return Result(process.returncode, head + out, err, args)


def test_interrupt():
    # A model that cannot stop by itself: its stop tokens are called otherwise.
    model = scratch / "endless.gguf"
    model.write_bytes(SMALL.read_bytes().replace(b"<|im_end|>", b"<|no_end|>")
                      .replace(b"<|endoftext|>", b"<|nooftexts|>")
                      .replace(b"eos_token_id", b"not_token_id"))
    endless = ["run", model, "--raw", "--prompt", "Hello", "--tokens", "0", *FIXED]
    cancelled = interrupt(endless, lambda process: process.stdout.read(1))
    check("Ctrl-C ends run with 130, silently", cancelled.code == 130 and cancelled.err == b"",
          cancelled)
    check("what was generated was shown", cancelled.out.endswith(b"\n"), cancelled)

    def soon(process):
        time.sleep(0.7)
        return b""

    cancelled = interrupt(endless + ["--json"], soon)
    check("Ctrl-C with --json", cancelled.code == 130
          and cancelled.json["stop_reason"] == "cancelled"
          and cancelled.json["tokens"] == len(cancelled.json["token_ids"]) > 0, cancelled)
    soak = ["bench", SMALL, *FIXED, "--soak", "100000000", "--repeat", "1"]
    cancelled = interrupt(soak, soon)
    check("Ctrl-C ends bench with 130", cancelled.code == 130 and cancelled.out == b"", cancelled)
    waiting = interrupt(["chat", SMALL, *FIXED], soon, stdin=subprocess.PIPE)
    check("Ctrl-C ends a chat that waits for a line", waiting.code == 130, waiting)


def main():
    for name, test in sorted(globals().items()):
        if not name.startswith("test_"):
            continue
        start = time.time()
        try:
            test()
        except Exception:  # one broken test does not hide the others
            check(name, False, traceback.format_exc())
        print(f"        {name} took {time.time() - start:.1f} s")
    shutil.rmtree(scratch, ignore_errors=True)
    print(f"{failures} failed" if failures else "all passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
