#!/usr/bin/env python3
"""Lines as vectors: test_embed.py ORIEL_BINARY TEST_DATA_DIR"""

import json
import math
import pathlib
import struct
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing appears in the source tree
from program import BUNDLED, FIXED, GOLDEN, SMALL, check, fails, json_of, oriel, relative_l2, run_tests, succeeds

LINES = ["A cat sleeps on the sofa.", "Un chat dort.", "x"]


def vectors(name, *args, lines=LINES):
    result = succeeds(name, "embed", *args, "--json", *FIXED, stdin="\n".join(lines).encode())
    return [json.loads(line) for line in result.out.splitlines()]


def test_a_vector_a_line():
    width = json_of("info", "info", BUNDLED)["n_embd"]
    got = vectors("embed", BUNDLED)
    check("an object a line", len(got) == len(LINES), got)
    for line, each in zip(LINES, got):
        ids = json_of("ids", "tokenize", BUNDLED, stdin=line.encode())["ids"]
        check("as wide as the model", len(each["embedding"]) == width, len(each["embedding"]))
        check("of length 1", abs(math.hypot(*each["embedding"]) - 1) < 1e-5, each)
        check("its tokens are counted", 0 <= each["tokens"] - len(ids) <= 2, (each["tokens"], ids))
    alone = vectors("one line", BUNDLED, lines=LINES[1:2])
    check("lines do not know each other", alone[0] == got[1], alone)
    check("the bundled model is the default", vectors("without a model") == got)


def test_for_people():
    result = succeeds("embed", "embed", BUNDLED, *FIXED, stdin=b"one\r\ntwo\n")
    rows = [[float(value) for value in line.split()] for line in result.out.splitlines()]
    want = [each["embedding"] for each in vectors("JSON", BUNDLED, lines=["one", "two"])]
    check("the same values on lines", rows == want, result)
    check("nothing in, nothing out", succeeds("no lines", "embed", BUNDLED, *FIXED).out == b"")


def test_pooling():
    got = {how: vectors(how, SMALL, "--pooling", how) for how in ("auto", "mean", "LAST", "first")}
    check("the mean by default", got["auto"] == got["mean"])
    for how in ("LAST", "first"):
        far = relative_l2(got[how][0]["embedding"], got["mean"][0]["embedding"])
        check(f"{how} is another vector", far > 0.01, far)
    fails("no such pooling", 2, "embed", SMALL, "--pooling", "max", *FIXED)


def test_a_file_of_vectors():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "v.npy")
        succeeds("npy", "embed", BUNDLED, "--out", str(path), *FIXED, stdin="\n".join(LINES).encode())
        data = path.read_bytes()
        text = pathlib.Path(folder, "a.txt")
        text.write_text(LINES[0])
        of_file = json_of("a file", "embed", BUNDLED, "--file", str(text), *FIXED)
    header = 10 + int.from_bytes(data[8:10], "little")
    want = vectors("JSON", BUNDLED)
    values = struct.unpack(f"<{(len(data) - header) // 4}f", data[header:])
    check("NumPy's format", data[:6] == b"\x93NUMPY" and header % 64 == 0 and b"'<f4'" in data[:header], data[:80])
    exact = [struct.unpack("<f", struct.pack("<f", v))[0] for each in want for v in each["embedding"]]
    check("all values", list(values) == exact, len(values))
    check("a file is a text", of_file["embedding"] == want[0]["embedding"] and of_file["file"].endswith("a.txt"), of_file)


def test_ids_and_raw_vectors():
    ids = json.dumps({"ids": [1, 2, 3]}).encode()
    raw = json_of("ids", "embed", SMALL, "--tokens-file", "-", "--no-normalize", *FIXED, stdin=ids)
    unit = json_of("ids", "embed", SMALL, "--tokens-file", "-", *FIXED, stdin=ids)
    length = math.hypot(*raw["embedding"])
    check("read as they are", raw["tokens"] == 3, raw)
    check("another length", abs(length - 1) > 0.01, length)
    check("the same direction", relative_l2([v / length for v in raw["embedding"]], unit["embedding"]) < 1e-5)


def test_queries_and_documents():
    golden = GOLDEN / "models" / "nomic-bert.gguf"
    if not golden.exists():
        return print(f"skipped: {golden} is not there")
    lines = ["a cache", "a window"]
    for flag, words in (("--query", "search_query: "), ("--document", "search_document: ")):
        want = vectors("words", golden, lines=[words + line for line in lines])
        check(f"{flag} puts its words before", vectors(flag, golden, flag, lines=lines) == want)
    check("not both", oriel("embed", golden, "--query", "--document", *FIXED).code == 2)


def test_rerank():
    ranker = str(pathlib.Path(SMALL).parent / "bert-rank-labels.gguf")
    lines = b"the cache\na window of tokens\nx\n"
    result = succeeds("rerank", "rerank", ranker, "--query", "a cache", "--json", *FIXED, stdin=lines)
    rows = [json.loads(line) for line in result.out.splitlines()]
    check("a line each, in order", [row["index"] for row in rows] == [0, 1, 2], rows)
    check("three labels", all(len(row["scores"]) == 3 and row["score"] == row["scores"][0] for row in rows), rows)
    shown = succeeds("for people", "rerank", ranker, "--query", "a cache", *FIXED, stdin=lines).out.splitlines()
    scores = [float(line.split(b"\t")[0]) for line in shown]
    check("the best first", scores == sorted((row["score"] for row in rows), reverse=True), shown)
    fails("no query", 2, "rerank", ranker, *FIXED, stdin=lines)
    chat = fails("a chat model", 1, "rerank", BUNDLED, "--query", "a", *FIXED, stdin=lines)
    check("says what it is", b"a chat model (llama), which gives no scores" in chat.err, chat)
    vectors_of = fails("vectors of a ranker", 1, "embed", ranker, *FIXED, stdin=lines)
    check("says what it is, too", b"ranks texts (bert) rather than embeds them" in vectors_of.err, vectors_of)
    run = fails("a chat with a ranker", 1, "run", ranker, "--prompt", "Hello", *FIXED)
    check("writes no text", b"writes no text" in run.err, run)
    chat = fails("a chat with a ranker", 1, "chat", ranker, *FIXED, stdin=b"Hello\n")
    check("writes no text either", b"writes no text" in chat.err, chat)


def test_refusals():
    empty = fails("a line without text", 1, "embed", BUNDLED, *FIXED, stdin=b"one\n\ntwo\n")
    check("its number is named", b"line 2:" in empty.err and empty.out.count(b"\n") == 1, empty)
    fails("not UTF-8", 1, "embed", BUNDLED, *FIXED, stdin=b"a\xff\n")
    endless = fails("a line without end", 1, "embed", BUNDLED, *FIXED, stdin=b"word " * (13 << 20) + b"\n")
    check("is not read to its end", b"stdin has a line of more than 64" in endless.err, endless)
    long = oriel("embed", BUNDLED, "--window", "32", *FIXED, stdin=b"word " * 100)
    check("longer than the window: what would hold it is named",
          long.code == 1 and b"--window" in long.err and b"line 1:" in long.err, long)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
