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
UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def llama3(letter=r"\p{L}", number=r"\p{N}", rest=r" ?[^\s\p{L}\p{N}]+[\r\n]*"):
    return CONTRACTION + rf"|[^\r\n\p{{L}}\p{{N}}]?{letter}+|{number}|{rest}" + SPACES


def cased(upper, lower, number, contraction, tail):
    lead = r"[^\r\n\p{L}\p{N}]?"
    return (f"{lead}{upper}*{lower}+{contraction}|{lead}{upper}+{lower}*{contraction}|{number}"
            rf"| ?[^\s\p{{L}}\p{{N}}]+{tail}" + SPACES)


BIG, SMALL = f"[{UPPER}]", f"[{LOWER}]"
ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
KANA = r"\u3040-\u309f\u30a0-\u30ff"
# DeepSeek's list of letters: it is not a property, but written out in its tokenizers.
DEEPSEEK_LETTERS = (
    r"A-Za-z\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    r"\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481"
    r"\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf"
    r"\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"
    r"\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4"
    r"\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    r"\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    r"\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    r"\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17"
    r"\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    r"\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943")
DEEPSEEK_PUNCTUATION = r"!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002"
BLOOM = r" ?[^(\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
# Applied in order; each expression splits the pieces of its predecessor. All come from the models' own files, where Digits is
# \p{N} and Punctuation (contiguous) a run of \p{P} and ASCII's; Kimi's && is -- here.
EXPRESSIONS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "qwen2": [llama3()],
    "qwen35": [llama3(r"[\p{L}\p{M}]", rest=r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*")],
    "llama-bpe": [llama3(number=r"\p{N}{1,3}")],
    "tekken": [cased(BIG, SMALL, r"\p{N}", "", r"[\r\n/]*")],
    "gpt-4o": [cased(BIG, SMALL, r"\p{N}{1,3}", CONTRACTION + "?", r"[\r\n/]*")],
    "seed-coder": [llama3(number=r"\p{N}{1}", rest=r" ?[^\s\p{L}\p{N}\r\n]+")],
    "minicpm5": [r"\p{N}{1,3}", llama3(number=r"\p{N}+")],
    "kimi-k2": [r"(?V1)\p{Han}+|" + cased(rf"[[{UPPER}]--\p{{Han}}]", rf"[[{LOWER}]--\p{{Han}}]",
                                          r"\p{N}{1,3}", CONTRACTION + "?", r"[\r\n]*")],
    "youtu": [r"[\uac00-\ud7a3\u3131-\u318e]+"
              r"|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
              rf"|[\u3105-\u312f]+|[\u4e00-\u9fa5{KANA}]+",
              cased(BIG, SMALL, r"\p{N}", CONTRACTION + "?", r"[\r\n/]*")],
    "deepseek-llm": [r"[\r\n]", rf"\s?[{DEEPSEEK_LETTERS}]+", rf"\s?[{DEEPSEEK_PUNCTUATION}]+", r"\s+$",
                     ASIAN, r"\p{N}"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", ASIAN, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", rf"[\u4e00-\u9fa5{KANA}]+",
                    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
                    r"| ?[\p{P}\p{S}]+[\r\n]*" + SPACES],
    "falcon": [r"[!-/:-@\[-`{-~\p{P}]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
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
    "1234567 x", "12½345", "½123½1234½", "a 12٣456٤ 7", "١٢٣٤٥٦٧", " 1 12 123 1234", "〇一二〇1", "〡〢A", "!⺀x", "々々",
    "カ・カ ゛x", "中 国  文", "「你好」、 —— ‘x’ …！", "한국어ㄱㄴ 말", "ㄅㄆ ㄇ", "，　　é", "。　　a", "。　　", "　　", "a　\u2003　", "\u2003 \u2003x",
    "ա  բ \u2003 ", "ա \u2003 բ", "ա  １", "naïve café", " ḁḂ　é", "x\xa0//\xa0y", "\x01\x02\x03abc", "\x01\x02 !", "@Abc.def",
    "$ 　$1  中", "שלום עולם 123", "a, b ,c... d|e(f) g", "١، ٢۔ ३।", "don't 'do' it", "The 'LL're", "x=1;\n\ty=22;\n", "http://a.b/c/", "<|im_end|>\n",
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
    asian = list("　。，、！！：…‘“—々〇一丁中国あアー・゛한글ㄱㄅ𠀀⺀ ḁéաἀ\u2003１") + ["　　", "\xa0", "  ", "123", "\n"]
    for _ in range(count):
        share = draw.random()
        east = draw.choice([0, 0, 0.5, 1])
        few = draw.sample(names, 3)
        parts = []
        for _ in range(draw.randint(1, 24)):
            pool = plain if draw.random() < share else kinds[draw.choice(few)]
            pool = asian if draw.random() < east else pool
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
                if match[0]:
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
