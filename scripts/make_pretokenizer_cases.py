#!/usr/bin/env python3
"""Writes tests/data/tokenizer/pretokenizer-cases.json: texts and the words that published regular
expressions cut them into.

usage: scripts/make_pretokenizer_cases.py [TARGET [COUNT [SEED]]]

Needs the package `regex` (python3-regex), a backtracking engine that has nothing in common with the
matchers under test. Code points are drawn from those whose category the engine and this Python's
unicodedata agree on, so that the version of Unicode does not matter.
"""

import json
import random
import sys
import unicodedata
from pathlib import Path

import regex

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BIG = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# One after the other; each cuts what the one before left. All as the models' own files have them.
EXPRESSIONS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "qwen2": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES],
    "qwen35": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
               r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + SPACES],
    "llama-bpe": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
                  r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES],
    "tekken": [rf"[^\r\n\p{{L}}\p{{N}}]?{BIG}*{SMALL}+|[^\r\n\p{{L}}\p{{N}}]?{BIG}+{SMALL}*"
               r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES],
    "gpt-4o": [rf"[^\r\n\p{{L}}\p{{N}}]?{BIG}*{SMALL}+{CONTRACTION}?"
               rf"|[^\r\n\p{{L}}\p{{N}}]?{BIG}+{SMALL}*{CONTRACTION}?"
               r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES],
}
# In these expressions \s is the property White_Space; this engine counts U+001C .. U+001F, too.
COMPILED = {name: [regex.compile(e.replace(r"\s", r"\p{White_Space}")
                                 .replace(r"\S", r"\P{White_Space}")) for e in stages]
            for name, stages in EXPRESSIONS.items()}

BY_HAND = [
    "", " ", "\n", "\r\n", "'", "''", "'s", "'S", "'ſ", "'ſx", "I'LL've", "it's IT'S 'tis", "'r'l",
    "a  b", "a \n b", "a\n\n  b", "a  \n", "x \r\n\r\n y", "  \n 1", "a  1", "12345", " 123 4567",
    "v2.5s", "½x", "!!\n\n/x", "a//\n//b", "?!\r\n ", "e\u0301", " \u0301", "\u0301\u0301a",
    "\u0301ABC", "ABCdef", "abcDEF", "HelloWorld", "HELLOworld's", "McDonald'S", "ǅx", "xǅY",
    "日本語ABC", "AB日CD", "ʰAB", "ABʰ", "ABʰc", "नमस्ते दुनिया", "สวัสดี", "👩‍👩‍👧 x", "\ufeffa", "\u0085a",
    "\u00a0\u00a0a", "\u3000あ", "\u200ba", "\x1c\x1da", "\u2028\u2029a", "١٢٣٤", "ⅧⅨ", "Ⅷa",
    "don't 'do' it", "The 'LL're", "x=1;\n\ty=22;\n", "http://a.b/c/", "<|im_end|>\n",
]


def pools():
    """Code points by category, where two databases agree."""
    found = {}
    check = {}
    for point in range(0x110000):
        c = chr(point)
        kind = unicodedata.category(c)
        if kind in ("Cs", "Cn"):
            continue
        if kind not in check:
            check[kind] = regex.compile(rf"\p{{{kind}}}")
        if check[kind].match(c):
            found.setdefault(kind, []).append(c)
    return found


def random_texts(count, seed):
    draw = random.Random(seed)
    kinds = pools()
    names = sorted(kinds)
    plain = list("aZbe sdtmlrv'SDTMLRVE019/.!") + ["\n", "\r", "\t", "  ", "\r\n", "'s", "'LL", "ſ"]
    for _ in range(count):
        share = draw.random()
        few = draw.sample(names, 3)
        parts = []
        for _ in range(draw.randint(1, 24)):
            pool = plain if draw.random() < share else kinds[draw.choice(few)]
            parts.append(draw.choice(pool))
        yield "".join(parts)


def words(stages, text):
    pieces = [text]
    for stage in stages:
        cut = []
        for piece in pieces:
            at = 0
            for match in stage.finditer(piece):
                if match.start() > at:
                    cut.append(piece[at:match.start()])
                cut.append(match[0])
                at = match.end()
            if at < len(piece):
                cut.append(piece[at:])
        pieces = cut
    assert "".join(pieces) == text
    return pieces


def main():
    root = Path(__file__).resolve().parent.parent
    target = Path(sys.argv[1] if len(sys.argv) > 1
                  else root / "tests/data/tokenizer/pretokenizer-cases.json")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    texts = BY_HAND + list(random_texts(count, seed))
    lines = []
    for text in texts:
        ends = {name: [len(word.encode()) for word in words(stages, text)]
                for name, stages in COMPILED.items()}
        lines.append(json.dumps({"text": text, "word_bytes": ends}, separators=(",", ":")))
    target.write_text('{"cases":[\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
    print(f"{len(texts)} texts, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
