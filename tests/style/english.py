"""Pages, comments, messages and the changelog are plain technical English (CONTRIBUTING.md, "Style").

Counts constructions that a reader has to decode, per 1,000 words, in each group of texts. english_limits.json records a
limit for each group. A limit may only fall: --record writes lower rates and never raises one.

    english.py                    # check all tracked files; prints the worst lines of a group that is over its limit
    english.py --lines GROUP      # print every hit of a group
    english.py --record           # lower the limits to the present rates
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LIMITS = pathlib.Path(__file__).with_name("english_limits.json")
WORST = 20  # lines to print
NEW_GROUP = 4.0  # the limit of a group without a record
SLACK = 2  # hits above the limit: in a small folder one sentence changes the rate

VERBS = ("is|was|are|were|has|had|have|does|did|do|would|will|can|could|may|must|should|comes?|came|goes|went|leaves?|left|"
         "takes?|took|stands?|stood|lies|lay|gives?|gave|makes?|made|sees|saw|needs?|asks|wants|says|said|reads?|holds?|"
         "remains?|follows?")
# What to write instead, and the patterns that call for it.
RULES = {
    "name the subject": [r"whoever", r"whatever", r"nobody", r"somebody", r"anybody", r"everybody"],
    "use a noun instead of 'what ...'": [
        rf"what (?:{VERBS})", rf"what (?:it|they|he|she|we|you|an?|one|the) (?:[a-z]+ )?(?:{VERBS})",
        rf"what (?:a|an|one|it|they)", r"all (?:that|it|they) (?:has|have|had|is|are|was|were)"],
    "say 'reported' or name the error": [r"(?:is|are|was|were|be) told", r"told (?:as|of|by|from|to be)"],
    "give the number a name": [r"so many", r"as many as (?:may|can) be"],
    "say 'indefinitely' or 'permanently'": [r"for ever"],
    "turn the relative clause into a sentence": [
        r"of (?:which|whose|what|whom)", r"(?:such an?|one) (?:one|that)", r"those (?:that|of|who|which|in|with)",
        r"that of", r"ones? (?:of|in|with|for|behind|before)"],
    "say 'not' or 'without'": [
        r"(?:is|are|was|were) (?:no|none)", r"where (?:it|they|there|that|one|none) (?:is|are|has|have|does|do|was|were|says?)",
        r"do(?:es)? without", r"(?:is )?to be had", r"but for", r"nor", r"as (?:it|they) (?:is|are|was|were)"],
    "say 'next to', 'in addition to' or 'after'": [r"beside", r"behind", r"besides it", r"in front of"],
    "say 'the same'": [r"likewise", r"hereby", r"thereof", r"therein"],
    "say 'automatically' or 'alone'": [r"by (?:itself|themselves|himself)"],
    "say 'low-bit'": [r"(?:of|in) few bits"],
}
# A sentence that begins like this has its subject later, if at all.
STARTS = r"(?:^|(?<=[.!?:;] ))(?:Of|What|Who|Whose|Whether|Where|Behind|Beside|So|Nor|Nothing|Nobody|None) [a-z]"
PATTERNS = [(re.compile(rf"\b(?:{'|'.join(words)})\b", re.I), hint) for hint, words in RULES.items()]
PATTERNS.append((re.compile(STARTS), "begin with the subject"))

CODE = re.compile(r'R"([^()\\ ]{0,16})\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''
                  r"|//(?:\\\n|[^\n])*|/\*(?:.|\n)*?\*/")
HASH = re.compile(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(?:^|(?<=\s))#[^\n]*', re.M)
SLASHES = {".h", ".c", ".cpp", ".hpp", ".m", ".comp", ".glsl", ".java", ".kt", ".swift", ".js", ".mjs",
           ".ts"}
HASHES = {".py", ".cmake", ".sh"}
QUOTED = ("models/oriel-tiny/MODEL_CARD.md",)  # transcripts of a model

Text = collections.namedtuple("Text", "line words")


def line_of(whole, at):
    return whole.count("\n", 0, at) + 1


def joined(found):
    """Comments on consecutive lines are one text."""
    texts = []
    end = -1
    for line, words in found:
        if texts and line == end:
            texts[-1] = Text(texts[-1].line, texts[-1].words + " " + words)
        else:
            texts.append(Text(line, words))
        end = line + words.count("\n") + 1
    return [Text(t.line, re.sub(r"\s+", " ", re.sub(r"`[^`]*`", "X", t.words))) for t in texts]


def slash_comments(whole):
    return joined([(line_of(whole, m.start()), re.sub(r"^[/*!<]+|\*/$|^ *\* ?", "", m.group(), flags=re.M).strip())
                   for m in CODE.finditer(whole) if m.group().startswith(("//", "/*"))])


def hash_comments(whole):
    found = [(line_of(whole, m.start()), m.group().strip('#" \n')) for m in HASH.finditer(whole)
             if m.group().startswith("#") and not m.group().startswith("#!")]
    found += [(line_of(whole, m.start()), m.group(1)) for m in re.finditer(r'^\s*"""((?:.|\n)*?)"""', whole, re.M)]
    return joined(sorted(found))


def messages(whole):
    """String literals of four words and more; literals that follow each other are one."""
    texts = []
    end = None
    for m in CODE.finditer(whole):
        if not m.group().startswith('"'):
            continue
        words = re.sub(r"\\[ntr\"]", " ", m.group()[1:-1])
        if end is not None and whole[end:m.start()].strip() == "":
            texts[-1] = Text(texts[-1].line, texts[-1].words + words)
        else:
            texts.append(Text(line_of(whole, m.start()), words))
        end = m.end()
    return [t for t in texts if len(re.findall(r"[A-Za-z]{2,}", t.words)) >= 4 and "{%" not in t.words]


def page(whole):
    """Prose only: no code, no link targets. Tables count."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    whole = re.sub(r"```.*?```", blank, whole, flags=re.S)
    whole = re.sub(r"^(?:    |\t).*$", blank, whole, flags=re.M)
    whole = re.sub(r"`[^`\n]*`", "X", whole)
    whole = re.sub(r"\]\([^)]*\)", "]", whole)
    at = 1
    texts = []
    for part in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ))", whole):
        if part.strip():
            texts.append(Text(at, re.sub(r"\s+", " ", part).strip(" -*|#")))
        at += part.count("\n")
    return texts


def group_of(name):
    parts = name.split("/")
    if parts[0] == "runtime" and len(parts) > 2:
        return "headers" if parts[1] == "include" else f"comments: runtime/{parts[1]}"
    if parts[0] in ("platform", "apps", "tests") and len(parts) > 2:
        return f"comments: {parts[0]}/{parts[1]}"
    return f"comments: {parts[0]}" if len(parts) > 1 else "comments: top"


def texts_of(name, whole):
    """(group, texts) of a file."""
    suffix = pathlib.PurePath(name).suffix
    if name == "CHANGELOG.md":
        yield "changelog", page(whole)
    elif suffix == ".md" and name not in QUOTED and not name.startswith("notes/"):
        yield "pages", page(whole)
    elif suffix in SLASHES:
        yield group_of(name), slash_comments(whole)
        if suffix in (".h", ".cpp") and name.startswith(("runtime/", "apps/", "platform/")):
            yield "messages", messages(whole)
    elif suffix in HASHES or name.endswith("CMakeLists.txt"):
        yield "scripts", hash_comments(whole)


def hits_in(text):
    return [(m.group().strip(), hint) for pattern, hint in PATTERNS for m in pattern.finditer(text.words)]


def main(arguments):
    try:
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        print("SKIPPED: this is not a git checkout")
        return 0
    words = collections.Counter()
    hits = collections.defaultdict(list)
    for name in listed.decode().split("\0"):
        path = SOURCE / name
        if not name or not path.is_file() or name == "tests/style/english.py":
            continue
        suffix = path.suffix
        if suffix not in SLASHES | HASHES | {".md"} and path.name != "CMakeLists.txt":
            continue
        for group, texts in texts_of(name, path.read_text(encoding="utf-8", errors="replace")):
            for text in texts:
                words[group] += len(re.findall(r"[A-Za-z']+", text.words))
                found = hits_in(text)
                if found:
                    hits[group].append((len(found), f"{name}:{text.line}", found, text.words))
    rates = {group: 1000 * sum(n for n, *_ in hits[group]) / max(count, 1) for group, count in words.items()}

    if arguments[:1] == ["--lines"]:
        for n, place, found, line in hits[arguments[1]]:
            print(f"{place}: {', '.join(f'{word!r}: {hint}' for word, hint in found)}\n    {line[:300]}")
        return 0
    limits = json.loads(LIMITS.read_text()) if LIMITS.is_file() else {}
    if arguments == ["--record"]:
        lower = {group: min(limits.get(group, 1000), round(rate + 0.05, 1)) for group, rate in sorted(rates.items())}
        LIMITS.write_text(json.dumps(lower, indent=2) + "\n")
        return 0
    over = 0
    for group, rate in sorted(rates.items()):
        limit = limits.get(group, NEW_GROUP)
        if rate * words[group] / 1000 > limit * words[group] / 1000 + SLACK:
            over += 1
            print(f"{group}: {rate:.1f} odd constructions per 1,000 words, limit {limit}. The worst:")
            for _, place, found, line in sorted(hits[group], reverse=True)[:WORST]:
                print(f"  {place}: {', '.join(f'{word!r}: {hint}' for word, hint in found)}\n      {line[:200]}")
    print(f"{len(rates)} groups, {sum(words.values())} words, {over} over their limits")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
