"""Writes a page of facts, questions for training, and other questions for the test.

    python3 cartridge_page.py --out data/page

Writes page.txt, study.txt (one question a line, no answers) and test.json (questions, the required words, and an
answer in the model's words).  Names come from the model's training text, the facts are drawn at random.  Training
questions name the noun of the fact ("What is Mia's job?"); test questions use other sentences ("What does Mia do
for a living?").  Needs only the standard library.
"""
import argparse
import json
import os

import banks
from facts import about_person, fmt, questions
from phrases import say
from rng import Rng

KINDS = ("age", "city", "colour", "food", "hobby", "job", "pet", "room", "sport")


def draw(rng, people, facts_each):
    """-> [(fact, value)], person by person; of a kind every person has another value"""
    out, taken = [], set()
    for name in rng.sample(banks.SHE + banks.HE, people):
        for kind in rng.sample(KINDS, facts_each):
            f = about_person(name, kind)
            while True:
                v = str(f.known(rng))
                if (kind, v) not in taken:
                    break
            taken.add((kind, v))
            out.append((f, v))
    return out


def text(rng, facts):
    return " ".join(fmt(rng.choice(f.say), v) + "." for f, v in facts)


def study(rng, facts, wordings):
    """Questions by the noun."""
    out = []
    for f, _ in facts:
        frames, _ = questions(f)
        out += [say(rng, q) for q in rng.sample(sorted(set(frames)), wordings)]
    return out


def test(facts):
    """All other questions."""
    return [{"question": q, "right": v, "answer": fmt(f.answer[0], v)} for f, v in facts for q in f.ask]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True, help="a folder")
    ap.add_argument("--people", type=int, default=10)
    ap.add_argument("--each", type=int, default=2, help="facts about everyone")
    ap.add_argument("--wordings", type=int, default=24, help="of a question in study.txt")
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    rng = Rng(f"page-{a.seed}")
    facts = draw(rng, a.people, a.each)
    put = lambda name: open(os.path.join(a.out, name), "w", encoding="utf-8", newline="\n")
    with put("page.txt") as f:
        f.write(text(rng, facts) + "\n")
    with put("study.txt") as f:
        f.write("\n".join(study(rng, facts, a.wordings)) + "\n")
    with put("test.json") as f:
        json.dump(test(facts), f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
