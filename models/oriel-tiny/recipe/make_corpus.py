"""Generates multi-turn chat dialogues from word banks and small grammars.

    python3 make_corpus.py --train 150000 --val 1500 --seed 1 --out data

writes data/train.jsonl and data/val.jsonl, one dialogue per line:
    {"system": str or null, "turns": [{"user", "assistant", "skill", "gold"}]}
`gold` (string or null) must occur in a correct answer; evaluate.py uses it.

Some facts, sums and story seeds are held out: they appear only in val.jsonl
(see `held_out` in dialogue.py).  Same seed, same text.
"""
import argparse
import json
import os
import random

import banks
from banks import an
from dialogue import Dialogue, render
from skills_memory import NOT_UPDATED, about_me, ask, pet, tell, value, where_thing, word_list
from skills_talk import (ability, bye, explain, fallback, feelings, fun, greet, identity, limits,
                         story)
from skills_tasks import arithmetic, compare, sequence, tables, text_task
from stories import KINDS, OBJECTS, PLACES

# -- dialogue plans ---------------------------------------------------------

SMALL = [(greet, 3), (identity, 4), (ability, 3), (limits, 4), (feelings, 7), (fallback, 7),
         (fun, 5), (explain, 8), (arithmetic, 22), (compare, 4), (sequence, 7), (tables, 16),
         (text_task, 14)]
SMALL_F, SMALL_W = [f for f, _ in SMALL], [w for _, w in SMALL]


def small(d):
    d.rng.choices(SMALL_F, SMALL_W)[0](d)


def plan_small(d):
    if d.p(0.2):
        greet(d)
    for _ in range(d.c(1, 1, 2, 3, 4, 6)):
        small(d)
    if d.p(0.12):
        bye(d)


def plan_topic(d):
    """Several turns of one kind."""
    f = d.c(arithmetic, arithmetic, arithmetic, arithmetic, arithmetic, tables, tables, text_task,
            text_task, explain, compare, sequence, fun, identity, limits)
    for _ in range(d.rng.randint(2, 8)):
        f(d)


def plan_story(d):
    if d.p(0.15):
        d.c(greet, feelings)(d)
    if d.p(0.15):
        tell(d, "name")
    story(d)
    if d.p(0.15):
        small(d)
    if d.p(0.12):
        story(d)
    if d.p(0.15) and d.facts:
        ask(d)
    if d.p(0.15):
        d.c(bye, feelings)(d)


def plan_memory(d):
    """Facts early, distraction, questions late: the long-range part."""
    if d.p(0.2):
        greet(d)
    if d.p(0.12):
        ask(d, known=False)
    first = d.c(1, 1, 1, 2, 2, 3)
    for i in range(first):
        tell(d, "name" if i == 0 and d.p(0.3) else None)
    extra = d.c(None, None, where_thing, pet, word_list)
    if extra:
        extra(d)
    far = d.c(0, 0, 1, 2, 3, 5, 8, 12)
    for _ in range(far):
        if d.p(0.25):
            story(d, d.c(0, 0, 1))
        elif d.p(0.12):
            tell(d)
        else:
            small(d)
    if d.p(0.2):
        slot = d.c(list(d.facts))
        if slot not in NOT_UPDATED:
            tell(d, slot)
    for _ in range(d.c(1, 2, 2, 3)):
        x = d.rng.random()
        if x < 0.72:
            ask(d)
        elif x < 0.80:
            ask(d, known=False)
        elif x < 0.87:
            about_me(d)
        else:
            small(d)
    if extra:
        extra(d)
        if d.p(0.5):
            extra(d)
    if d.p(0.15):
        bye(d)


def plan_system_fact(d):
    """A fact stands in the system prompt and is asked for much later."""
    slot = d.c("name", "code", "city", "word")
    v = value(d, slot)
    d.facts[slot] = v
    text = {
        "name": f"The user is called {v}.",
        "code": f"The secret code is {v}.",
        "city": f"The user lives in {v}.",
        "word": f"The secret word is {v}."
    }[slot]
    d.system = ((d.system + " ") if d.system else "") + text
    for _ in range(d.c(0, 0, 1, 2, 4, 7)):
        story(d, 0) if d.p(0.15) else small(d)
    ask(d, slot)
    if d.p(0.4):
        small(d)
        ask(d, slot)


PLANS = [(plan_small, 20), (plan_topic, 16), (plan_story, 26), (plan_memory, 30),
         (plan_system_fact, 8)]


def make_dialogue(rng, val):
    d = Dialogue(rng, val)
    rng.choices([f for f, _ in PLANS], [w for _, w in PLANS])[0](d)
    return {"system": d.system, "turns": d.turns}


def real_stories(path, count, rng):
    """Optional: stories from a TinyStories text file (CDLA-Sharing-1.0) as answers.

    Off by default (--stories).  The topic is a word of our banks that occurs
    in the story at least twice.
    """
    text = open(path, encoding="utf-8", errors="ignore").read()
    topics = set(KINDS + OBJECTS + PLACES + banks.ANIMALS)
    out = []
    for s in text.split("<|endoftext|>"):
        s = " ".join(s.split())
        if not 200 < len(s) < 1400 or not s.isascii():
            continue
        low = [w.strip('.,!?"') for w in s.lower().split()]
        best = [w for w in topics if low.count(w) > 1]
        if best:
            w = rng.choice(sorted(best))
            q = rng.choice([
                "Tell me a story about {}.", "Tell me a tale about {}.",
                "I would like a story about {}.", "Can you tell me a story about {}?"
            ]).format(an(w))
            out.append({
                "system": None,
                "turns": [{
                    "user": q,
                    "assistant": s,
                    "skill": "real story",
                    "gold": None
                }]
            })
        if len(out) >= count:
            break
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default="data")
    ap.add_argument("--train", type=int, default=90000)
    ap.add_argument("--val", type=int, default=1500)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--stories", help="optional TinyStories text file (CDLA-Sharing-1.0)")
    ap.add_argument("--story-count", type=int, default=8000)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for split, n in (("val", a.val), ("train", a.train)):
        rng = random.Random(f"{a.seed}-{split}")
        rows = [make_dialogue(rng, split == "val") for _ in range(n)]
        if a.stories and split == "train":
            rows += real_stories(a.stories, a.story_count, rng)
            rng.shuffle(rows)
        with open(os.path.join(a.out, split + ".jsonl"), "w") as f:
            for r in rows:
                f.write(json.dumps(r) + "\n")
        chars = sum(len(render(r["system"], r["turns"])) for r in rows)
        print(
            f"{split}: {len(rows)} dialogues, {sum(len(r['turns']) for r in rows)} turns, {chars / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()
