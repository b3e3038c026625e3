"""Generates multi-turn chat dialogues from word banks and small grammars.

    python3 make_corpus.py --train 150000 --val 1500 --seed 1 --out data

writes data/train.jsonl and data/val.jsonl, one dialogue per line:
    {"system": str or null, "turns": [{"user", "assistant", "skill", "gold"}]}
`gold` (string or null) must occur in a correct answer; evaluate.py uses it.

Some facts, sums and story seeds are held out: they appear only in val.jsonl
(see `held_out` in dialogue.py): coined names and words by themselves, values
of small banks together with the sentence that tells them.  Same seed, same text.
"""
import argparse
import json
import os
import random

import banks
from banks import an
from dialogue import Dialogue, render
from skills_memory import (NOT_UPDATED, about_me, ask, correct_me, pet, tell, value, where_thing,
                           word_list)
from skills_talk import (ability, bye, explain, fallback, feelings, fun, greet, identity, limits,
                         story)
from skills_tasks import arithmetic, compare, sequence, tables, text_task
from stories import KINDS, OBJECTS, PLACES

# -- dialogue plans ---------------------------------------------------------

SMALL = [(greet, 3), (identity, 4), (ability, 3), (limits, 4), (feelings, 7), (fallback, 7),
         (fun, 5), (explain, 8), (arithmetic, 22), (compare, 4), (sequence, 7), (tables, 16),
         (text_task, 14)]
SMALL_F, SMALL_W = [f for f, _ in SMALL], [w for _, w in SMALL]
SMALL_PRACTICE = [2, 4, 2, 4, 3, 4, 4, 7, 20, 7, 12, 50, 8]


def small(d):
    d.rng.choices(SMALL_F, SMALL_PRACTICE if d.practice else SMALL_W)[0](d)


def plan_small(d):
    if d.p(0.2):
        greet(d)
    for _ in range(d.c(1, 1, 2, 3, 4, 6)):
        small(d)
    if d.p(0.12):
        bye(d)


def plan_topic(d):
    """Several turns of one kind."""
    if d.practice:
        f = d.c(arithmetic, tables, tables, tables, tables, compare, sequence, explain, identity, fun)
    else:
        f = d.c(arithmetic, arithmetic, arithmetic, arithmetic, arithmetic, tables, tables,
                text_task, text_task, explain, compare, sequence, fun, identity, limits)
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


def plan_drill(d):
    """Many short tasks of the kinds that need practice: letters, copying, sums."""
    x = d.rng.random()
    for _ in range(d.rng.randint(5, 14)):
        if x < 0.35:
            text_task(d, (0, 1, 1, 1, 2, 3, 4))
        elif x < 0.65:
            arithmetic(d, ("+", "-"))
        elif x < 0.75:
            sequence(d, (0.0, 0.5))
        elif x < 0.83:
            text_task(d, (5, 8, 9, 10))
        elif d.p(0.4):
            arithmetic(d)
        else:
            text_task(d)


def questions(d, count):
    """Questions about what was told, with corrections in between."""
    for _ in range(count):
        x = d.rng.random()
        if x < 0.70:
            ask(d)
        elif x < 0.79:
            ask(d, known=False)
        elif x < 0.84:
            about_me(d)
        elif x < 0.92:
            correct_me(d)
            if d.p(0.6):
                ask(d)
        else:
            small(d)


def distraction(d, story_share=0.3):
    if d.p(story_share):
        story(d, d.c(0, 0, 0, 1, 2))
    elif d.p(0.12):
        tell(d)
    else:
        small(d)


def plan_memory(d):
    """Facts early, distraction, questions late: the long-range part."""
    if d.p(0.3):
        greet(d)
    if d.p(0.15):
        ask(d, known=False)
    for i in range(d.c(1, 1, 1, 2, 2, 3)):
        tell(d, "name" if i == 0 and d.p(0.35) else None)
    extra = d.c(None, None, where_thing, pet, word_list)
    if extra:
        extra(d)
    for _ in range(d.c(0, 1, 1, 1, 2, 2, 3, 4, 6)):
        distraction(d)
    if d.p(0.15):
        slot = d.c(list(d.facts))
        if slot not in NOT_UPDATED:
            tell(d, slot)
    questions(d, d.c(1, 2, 2, 3, 4))
    if extra:
        extra(d)
        if d.p(0.5):
            extra(d)
    if d.p(0.4):
        distraction(d, 0.2)
        questions(d, d.c(1, 2))
    if d.p(0.15):
        bye(d)


def plan_memory_long(d):
    """As plan_memory, up to the whole context between statement and question."""
    for i in range(d.c(1, 2, 3)):
        tell(d, "name" if i == 0 and d.p(0.4) else None)
    goal = d.rng.randint(1200, 3300)  # characters
    while sum(len(t["user"]) + len(t["assistant"]) + 25 for t in d.turns) < goal:
        distraction(d, 0.4)
    questions(d, d.c(2, 3, 4))


def plan_interview(d):
    """Facts and questions in quick succession, no distraction."""
    if d.p(0.3):
        ask(d, known=False)
    for _ in range(d.rng.randint(2, 4)):
        d.c(tell, tell, tell, tell, pet, where_thing, word_list)(d)
        for _ in range(d.c(0, 1, 2, 3)):
            if d.facts:
                questions(d, 1)
    if d.facts:
        questions(d, d.c(2, 3, 4))


def plan_system_fact(d):
    """A fact stands in the system prompt and is asked for much later."""
    slot = d.c("name", "code", "city", "word")
    v = value(d, slot)
    d.facts[slot] = v
    text = {
        "name": d.c(f"The user is called {v}.", f"The name of the user is {v}.", f"You are talking to {v}."),
        "code": f"The secret code is {v}.",
        "city": d.c(f"The user lives in {v}.", f"The home of the user is {v}."),
        "word": f"The secret word is {v}."
    }[slot]
    d.system = ((d.system + " ") if d.system else "") + text
    for _ in range(d.c(0, 0, 1, 2, 4, 7)):
        story(d, 0) if d.p(0.15) else small(d)
    ask(d, slot)
    if d.p(0.4):
        small(d)
        ask(d, slot)


PLANS = [plan_small, plan_topic, plan_drill, plan_story, plan_memory, plan_memory_long,
         plan_interview, plan_system_fact]
MIXES = {"recall": [13, 11, 19, 13, 24, 4, 11, 5], "practice": [16, 20, 18, 11, 15, 3, 14, 3]}


def make_dialogue(rng, val, mix="recall"):
    d = Dialogue(rng, val, mix == "practice")
    rng.choices(PLANS, MIXES[mix])[0](d)
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
    ap.add_argument("--mix", choices=sorted(MIXES), default="recall",
                    help="practice: more tables, yes/no and story questions, fewer stories")
    ap.add_argument("--stories", help="optional TinyStories text file (CDLA-Sharing-1.0)")
    ap.add_argument("--story-count", type=int, default=8000)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for split, n in (("val", a.val), ("train", a.train)):
        rng = random.Random(f"{a.seed}-{split}")
        rows = [make_dialogue(rng, split == "val", a.mix) for _ in range(n)]
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
