"""Accuracy per skill on held-out items, greedy, and ten raw transcripts.

    python3 evaluate.py --oriel PATH/oriel --model ../../models/oriel-tiny/oriel-tiny-q8_0.gguf --data data   # through Oriel
    python3 evaluate.py --model run/checkpoint.pt --data data --each 20                  # fast, PyTorch

Two sets of questions: from checks.py, whose wordings training does not have, and from the validation
dialogues.  Before a question the model reads the written history; in talks ("pinned after 20 turns") and transcripts
it reads its own replies.  Through Oriel only the standard library is needed.
Writes results.json, misses.txt and transcripts.md to --out, and with --card the tables into it.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

import banks
import checks
from dialogue import render
from tokenizer import Tokenizer

REPLY = {"story": 260, "story next": 200}  # tokens; others 90
SKIPPED = ("tell", "bye", "greet", "style", "chatter", "small talk")


class Oriel:
    """The model in a GGUF file, run by the oriel program."""

    def __init__(self, program, model, extra=()):
        self.program, self.model = program, model
        self.extra = ["--greedy", "--json", "--device", "cpu", *extra]

    def answer(self, system, turns, question, limit):
        text = render(
            system, [{"user": u, "assistant": a} for u, a in turns] + [{"user": question}]
        )
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            out = self.run(
                ["run", self.model, "--raw", "--prompt-file", f.name, "--tokens", str(limit)]
            )
        return json.loads(out)["text"].split("<|im_end|>")[0].strip()

    def talk(self, system, users):
        args = ["chat", self.model, "--tokens", "260"] + (["--system", system] if system else [])
        out = self.run(args, "".join(u.replace("\n", " ") + "\n" for u in users))
        return [json.loads(line)["text"].strip() for line in out.splitlines()]

    def run(self, args, text=None):
        done = subprocess.run(
            [self.program, *args, *self.extra],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{' '.join(args)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout


class Torch:
    """A checkpoint of train.py; keeps the newest --context tokens of a long talk."""

    def __init__(self, path, tok):
        import torch
        from model import Config, Model

        self.torch, self.tok = torch, tok
        ck = torch.load(path, map_location="cpu")
        self.model = Model(Config(**ck["config"]))
        self.model.load_state_dict(ck["model"])
        self.model.eval()

    def answer(self, system, turns, question, limit):
        def ids_of(turns):
            return self.tok.encode(
                render(
                    system, [{"user": u, "assistant": a} for u, a in turns] + [{"user": question}]
                )
            )

        ids = ids_of(turns)
        while len(ids) > self.model.cfg.context - limit and turns:
            turns = turns[1:]
            ids = ids_of(turns)
        new = self.model.generate(ids, limit, (self.tok.im_end,))
        return self.tok.decode(new).split("<|im_end|>")[0].strip()

    def talk(self, system, users):
        turns = []
        for u in users:
            turns.append((u, self.answer(system, turns, u, 260)))
        return [a for _, a in turns]


def list_is_right(skill, text):
    """As many items of the kind as asked for, none twice."""
    _, kind, n = skill.split(":")
    bank = {w.lower() for w in banks.CATEGORIES[kind]}
    items = [w.strip(" .!").lower() for w in text.replace(" and ", ", ").split(",")]
    return len(items) == len(set(items)) == int(n) and set(items) <= bank


def right_turn(turn, text):
    if turn["skill"].startswith("list:"):
        return list_is_right(turn["skill"], text)
    if turn["skill"] == "recall unknown":
        return any(t in text.casefold() for t in checks.TOLD_UNKNOWN)
    if turn["skill"] == "letter":
        return (
            re.search(rf"\b{turn['gold'][0]}(\W|$)", text.casefold().split(" is ")[-1]) is not None
        )
    if turn["gold"].isdigit():
        return checks.number_in(text, turn["gold"])
    return turn["gold"].casefold() in text.casefold()


def validation_turns(rows, each):
    """-> (row, index of the turn) for at most `each` questions of every skill, without styles."""
    count = defaultdict(int)
    for row in rows:
        if row["system"] and not row["system"].startswith(
            ("You are Oriel", "You are a helpful", "You are a friendly chat")
        ):
            continue
        for i, turn in enumerate(row["turns"]):
            skill = turn["skill"].split(":")[0]
            asked = turn["gold"] is not None or skill in ("list", "recall unknown")
            if asked and skill not in SKIPPED and count[skill] < each:
                count[skill] += 1
                yield row, i


TRANSCRIPT_SEED = 10


def ten_talks(rows):
    """User messages of ten validation dialogues, chosen by a fixed seed, not by result."""
    from phrases import Rng

    rng = Rng(f"transcripts-{TRANSCRIPT_SEED}")
    rows = [r for r in rows if 4 <= len(r["turns"]) <= 12]
    return [
        (r["system"], [t["user"] for t in r["turns"]]) for r in rng.sample(rows, min(10, len(rows)))
    ]


def transcripts(backend, rows):
    out = []
    for i, (system, users) in enumerate(ten_talks(rows)):
        lines = [f"### {i + 1}"] + ([f"system: {system}"] if system else [])
        for u, a in zip(users, backend.talk(system, users)):
            lines += [f"user: {u}", f"assistant: {a}"]
        out.append("\n\n".join(line.replace("\n", "  \n") for line in lines))
    return "\n\n".join(out)


def table(title, counts):
    rows = [f"| {title} | correct | |", "|---|---|---|"]
    return "\n".join(rows + [f"| {k} | {h} of {n} | {h / n:.0%} |" for k, (h, n) in counts.items()])


def fill(card, parts):
    """Replaces the text between `<!-- name -->` and `<!-- end -->` in the card."""
    with open(card, encoding="utf-8") as f:
        text = f.read()
    for name, part in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.S)
        if not pattern.search(text):
            sys.exit(f"{card} has no place for {name}: put <!-- {name} --> and <!-- end --> in it")
        text = pattern.sub(lambda m: m[1] + part + "\n" + m[2], text)
    with open(card, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument(
        "--model", required=True, help="a GGUF file with --oriel, else a checkpoint of train.py"
    )
    ap.add_argument("--oriel", help="the oriel program")
    ap.add_argument("--options", default="", help="more options for oriel, such as '--window 512'")
    ap.add_argument("--tokenizer", default="tokenizer.json")
    ap.add_argument("--data", default="data")
    ap.add_argument("--out", default="results")
    ap.add_argument("--each", type=int, default=100, help="questions of each kind")
    ap.add_argument("--only", help="kinds of checks.py whose name contains this, and nothing else")
    ap.add_argument("--card", help="MODEL_CARD.md to fill in")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    tok = Tokenizer.load(a.tokenizer)
    backend = Oriel(a.oriel, a.model, a.options.split()) if a.oriel else Torch(a.model, tok)
    hits, seen, misses = defaultdict(list), defaultdict(list), []

    asked, talks = checks.all_checks(tok, a.each)
    for c in asked:
        if a.only and a.only not in c.skill:
            continue
        got = backend.answer(c.system, c.turns, c.question, 90)
        hits[c.skill].append(checks.passed(c, got))
        if not hits[c.skill][-1]:
            misses.append((c.skill, c.question, got, c.gold))
    for t in talks:
        if a.only and a.only not in t.skill:
            continue
        for u, got in list(zip(t.users, backend.talk(t.system, t.users)))[t.first :]:
            hits[t.skill].append(bool(t.test(got)))
            if not hits[t.skill][-1]:
                misses.append((t.skill, f"{t.system} | {u}", got, ""))
    counts = {k: (sum(v), len(v)) for k, v in hits.items()}
    for k, (h, n) in counts.items():
        print(f"{k}: {h}/{n} ({h / n:.0%})", flush=True)
    if not a.only:
        with open(os.path.join(a.data, "val.jsonl"), encoding="ascii") as f:
            rows = [json.loads(line) for line in f]
        for row, i in validation_turns(rows, a.each):
            turn = row["turns"][i]
            skill = turn["skill"].split(":")[0]
            got = backend.answer(
                row["system"],
                [(t["user"], t["assistant"]) for t in row["turns"][:i]],
                turn["user"],
                REPLY.get(skill, 90),
            )
            seen[skill].append(right_turn(turn, got))
            if not seen[skill][-1]:
                misses.append(("val " + skill, turn["user"], got, turn["assistant"]))
        by_skill = {k: (sum(v), len(v)) for k, v in sorted(seen.items())}
        print(
            "validation dialogues: " + ", ".join(f"{k} {h}/{n}" for k, (h, n) in by_skill.items()),
            flush=True,
        )
        talks_text = transcripts(backend, rows)
        with open(os.path.join(a.out, "transcripts.md"), "w", encoding="utf-8") as f:
            f.write(
                "# Ten transcripts\n\nGreedy, chosen by a fixed seed, not edited.\n\n"
                + talks_text
                + "\n"
            )
        with open(os.path.join(a.out, "results.json"), "w", encoding="utf-8") as f:
            json.dump(
                {
                    "through": "oriel" if a.oriel else "torch",
                    "checks": counts,
                    "validation": by_skill,
                },
                f,
                indent=1,
            )
            f.write("\n")
        if a.card:
            fill(
                a.card,
                {
                    "checks": table("question", counts),
                    "validation": table("skill", by_skill),
                    "transcripts": talks_text,
                },
            )
    with open(os.path.join(a.out, "misses.txt"), "w", encoding="utf-8") as f:
        for m in misses:
            f.write(" | ".join(str(x).replace("\n", " / ") for x in m) + "\n")


if __name__ == "__main__":
    main()
