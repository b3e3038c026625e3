#!/usr/bin/env python3
"""Checks the promises of docs/cli.md for bench: test_bench.py ORIEL_BINARY TEST_DATA_DIR"""

import csv
import os
import pathlib
import re
import sys
import time
import xml.etree.ElementTree

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import (CPU, EXACT, FIXED, SMALL, check, environment, fails, has_fields,
                     interrupt, json_of, run_tests, scratch, succeeds)

# A bench without --threads 1 measures the device for a second, so only a few tests do that.
ALONE = [*CPU, "--threads", "1"]


def takes_what_plan_says(plan, bench):
    check("bench takes what plan says",
          bench["total_bytes"] == plan["total_bytes"]
          and bench["device_bytes"] + bench["host_bytes"] == plan["total_bytes"]
          and bench["window_tokens"] == plan["window_tokens"], (bench, plan))


def test_bench():
    options = ["--memory", "8MiB", "--window", "50", "--sinks", "0"]
    bench = json_of("bench", "bench", SMALL, *options, *CPU, "--prefill", "20", "--decode", "8", "--repeat", "1",
                    "--depth", "5", "--sessions", "3", "--sustain", "0.05")
    takes_what_plan_says(json_of("plan for bench", "plan", SMALL, *options), bench)
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
    check("bench of several sessions", bench["sessions"] == 3 and bench["together_tokens_per_s"] > 0, bench)
    steps = bench["sustain"]
    check("a short run has ten steps", len(steps) == 10 and all(s["seconds"] >= 0.3 for s in steps), steps)
    fastest = [max(s["tokens_per_s"] for s in steps[:i + 1]) for i in range(10)]
    check("slower steps are marked",
          all(s["throttled"] == (s["tokens_per_s"] < 0.9 * best) for s, best in zip(steps, fastest)), steps)
    # The first report itself brings in pages of the program.
    check("a long generation holds its memory", steps[9]["resident_bytes"] <= steps[1]["resident_bytes"] + 65536, steps)


def matrix_bytes(rows, cols):
    """In f32, as stored: groups of 16 rows, a row a multiple of 32 columns."""
    return -(-rows // 16) * 16 * -(-cols // 32) * 32 * 4


def test_bandwidth_beyond_all_of_it():
    text = succeeds("bench in words", "bench", SMALL, "--memory", "16MiB", "--prefill", "20", "--decode", "20",
                    "--repeat", "1", *ALONE).out.decode()
    shares = [int(share) for share in re.findall(r"(\d+) % of bandwidth", text)]
    check("bench tells shares of bandwidth", len(shares) == 2, text)
    check("bench: within 80 columns", max(map(len, text.splitlines())) <= 80, text)
    # 100 is either side of it.
    check("and why, where they are more than all of it", 100 in shares
          or ("more than 100 %" in text) == (max(shares) > 100), text)


def test_bytes_moved():
    """By hand, from what info says of the shape; the file is all f32 and not tied. At a first start, and then."""
    cache = scratch / "fresh"
    env = environment(XDG_CACHE_HOME=str(cache))
    rates = lambda: list(cache.rglob("*.speed"))
    succeeds("chat at a first start", "chat", SMALL, *FIXED, "--greedy", stdin=b"Hello\n", env=env)
    succeeds("run at a first start", "run", SMALL, *FIXED, "--greedy", "--prompt", "Hello", "--tokens", "2", env=env)
    check("nobody waits for a measurement of the device", not rates(), rates())
    info = json_of("info for bytes", "info", EXACT)
    layers, embd, ff, vocab = info["n_layers"], info["n_embd"], info["n_ff"], info["n_vocab"]
    dim = info["head_dim"]
    query, kv = info["n_heads"] * dim, info["n_kv_heads"] * dim
    padded = lambda count: -(-count * 4 // 256) * 256
    body = layers * (matrix_bytes(query + 2 * kv, embd) + matrix_bytes(embd, query)
                     + matrix_bytes(2 * ff, embd) + matrix_bytes(embd, ff))
    head = matrix_bytes(vocab, embd)
    options = [EXACT, *FIXED[:-2], "--window", "64", "--sinks", "4"]
    load = ["--prefill", "8", "--decode", "16", "--repeat", "1"]
    bench = json_of("bench at a first start", "bench", *options, *CPU, *load, "--depth", "20", env=env)
    check("which bench makes, and keeps", len(rates()) == 1, rates())
    takes_what_plan_says(json_of("plan for bytes", "plan", *options), bench)
    check("bench says of one session nothing of several", "sessions" not in bench, bench)
    token = layers * 2 * kv * 2                  # a key and a value, two bytes each
    depth = 20 + 8 + 16 / 2
    decode = bench["moved"]["decode_bytes_per_token"]
    norms = decode - body - head - (depth + 1) * token
    check("bench: a decoded token moves the matrices once and what it sees of the cache",
          (2 * layers + 1) * embd * 4 <= norms <= (2 * layers + 1) * padded(embd) + embd * 4, (norms, bench))
    prefill = 8 * bench["moved"]["prefill_bytes_per_token"]
    check("bench: a prompt of one chunk moves them once, too",
          abs(prefill - (body + head + norms + (20 + 8) * token + 8 * token)) < 1, (prefill, norms, bench))
    deep = json_of("bench after that, deeper than the window", "bench", *options, *CPU, *load, "--depth", "2000",
                   env=env)
    check("bench: beyond the window nothing more is read",
          abs(deep["moved"]["decode_bytes_per_token"] - decode - (64 + 4 - depth) * token) < 1, deep)
    # Measuring takes tens of megabytes.
    check("peak_host_bytes is the same with rates measured or kept",
          abs(bench["peak_host_bytes"] - deep["peak_host_bytes"]) < 4 << 20, (bench, deep))


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
    sweep = ["bench", SMALL, "--memory", "64MiB", *ALONE, "--window", "256", "--min-window", "200", "--prefill", "8",
             "--decode", "8"]
    if "ORIEL_TEST_ALL" in os.environ:  # each point has a least time
        stem = scratch / "sweep"
        done = json_of("sweep", *sweep, "--kv", "k8v4", "--sweep", stem, "--sweep-seconds", "90")
        rows = sweep_rows(stem)
        has_fields("sweep", done, "device csv svg points points_planned")
        check("sweep: a row a point", len(rows) == done["points"] <= done["points_planned"], done)
        check("sweep: everything was measured", done["points"] == done["points_planned"], done)

    stem = scratch / "cut"

    def all_rows(process):
        """Each has been measured once: two more visits are to come."""
        path = pathlib.Path(f"{stem}.csv")
        while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") > 4 * 7 + 2 * 2):
            time.sleep(0.01)
        return b""

    cut = interrupt([*sweep, "--sweep", stem, "--sweep-seconds", "3000", "--json"], all_rows)
    rows = sweep_rows(stem)
    check("Ctrl-C ends a sweep and keeps what was measured",
          cut.code == 130 and cut.err == b"" and all(len(row) == len(SWEEP_COLUMNS) for row in rows), (cut, rows))
    check("and its JSON says so", cut.json["interrupted"] is True and cut.json["points"] == len(rows)
          and cut.json["svg"] == f"{stem}.svg", cut)
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
    check("sweep: its title says the result", re.search(r": [\d,.]+ tokens/s at depth 0, [\d,.]+ at depth 256 \(\w+\)$",
                                                        texts[0]), texts[0])
    dots = len(list(picture.iter("{http://www.w3.org/2000/svg}circle")))
    # Prompts and decoding are two pictures of depths; one dot more is in the legend.
    wanted = sum(2 if row["sweep"] == "depth" else 1 for row in rows) + 1
    check("sweep: a dot for each figure", dots == wanted, (dots, wanted))
    small = ("bench", SMALL, "--memory", "1MiB", *ALONE)
    misfit = fails("sweep in memory that holds nothing", 3, *small, "--sweep", scratch / "nothing")
    check("sweep: as without it", not (scratch / "nothing.csv").exists() and b"the model needs" in misfit.err, misfit)
    fails("sweep into no folder", 1, "bench", SMALL, *FIXED, "--sweep", scratch / "no" / "where")

    early = scratch / "early"
    cut = interrupt(["bench", SMALL, "--memory", "64MiB", *ALONE, "--sweep", early, "--sweep-seconds", "3000"],
                    lambda process: time.sleep(0.3) or b"")
    check("Ctrl-C before there is a point says that, too",
          cut.code == 130 and cut.err == b"" and b"interrupted" in cut.out
          and (not pathlib.Path(f"{early}.csv").exists() or 0 < len(sweep_rows(early)) < 40), cut)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
