"""Generates multi-turn chat dialogues from word banks and small grammars.

    python3 make_corpus.py --train 130000 --val 1500 --out data

writes data/train.jsonl and data/val.jsonl, one dialogue per line:
    {"system": str or null, "turns": [{"user", "assistant", "skill", "gold"}]}
`gold` (string or null) must occur in a correct answer; evaluate.py uses it.

Held out of the training split (see `held_out` in dialogue.py): combinations, that is coined names
and words as a value, values of small banks together with the sentence that tells them, pairs of
numbers, words of text tasks, pairs of hero and theme.  Every dialogue has a seed of its own, so
the text is the same on every machine and with any number of processes.
"""
import argparse
import json
import os
from hashlib import sha256
from multiprocessing import Pool

from dialogue import STYLES, Dialogue, Style, render
from facts_user import CORE, FACTS
from phrases import Rng
from skills_lookup import passage, table, table_drill, table_search
from skills_memory import (
    NOT_UPDATED,
    about_me,
    ask,
    ask_unknown,
    chatter,
    correct_me,
    needle,
    no_story,
    said,
    tell,
    value,
    where_thing,
    word_list,
    yes_no,
)
from skills_numbers import arithmetic, check_sum, compare, sequence, sort_numbers, times_row
from skills_talk import (
    ability,
    bye,
    explain,
    fallback,
    feelings,
    fun,
    greet,
    identity,
    limits,
    story,
    told_story,
)
from skills_tasks import tables, text_task

SMALL = [
    (greet, 3),
    (identity, 5),
    (ability, 3),
    (limits, 4),
    (feelings, 6),
    (fallback, 9),
    (fun, 5),
    (explain, 5),
    (arithmetic, 24),
    (check_sum, 1),
    (compare, 3),
    (sequence, 6),
    (sort_numbers, 2),
    (times_row, 1),
    (tables, 22),
    (text_task, 12),
    (said, 7),
    (yes_no, 1),
    (table, 4),
    (chatter, 2),
]
SHORT_ONES = [s for s in SMALL if s[0] not in (table, chatter)]


def one_of(d, weighted):
    d.rng.choices([f for f, _ in weighted], [w for _, w in weighted])[0](d)


def small(d):
    one_of(d, SMALL)


def questions(d, count):
    """Questions about told facts, with corrections in between."""
    for _ in range(count):
        x = d.rng.random()
        if x < 0.65 and d.facts:
            ask(d)
        elif x < 0.81:
            ask_unknown(d)
        elif x < 0.83 and d.facts:
            about_me(d)
        elif x < 0.92:
            correct_me(d)
            if d.p(0.6) and d.facts:
                ask(d)
        else:
            small(d)


def distraction(d, story_share=0.15):
    if d.p(story_share):
        story(d, d.c(0, 0, 1, 2))
    elif d.p(0.08):
        tell(d)
    elif d.p(0.12):
        chatter(d)
    else:
        small(d)


def plan_small(d):
    if d.p(0.2):
        greet(d)
    for _ in range(d.c(1, 1, 2, 3, 4, 6)):
        small(d)
    if d.p(0.12):
        bye(d)


def plan_drill(d):
    """Many short tasks of one kind."""
    f = d.c(
        arithmetic,
        arithmetic,
        arithmetic,
        arithmetic,
        arithmetic,
        tables,
        tables,
        tables,
        text_task,
        text_task,
        text_task,
        sequence,
        compare,
        sort_numbers,
        explain,
        fun,
        identity,
        fallback,
        check_sum,
        ask_unknown,
        table,
        passage,
    )
    for _ in range(d.rng.randint(2, 5 if f in (table, passage) else 12)):
        f(d)


def plan_sums(d):
    """Sums, differences and products, one after the other."""
    ops = d.c(("+",), ("-",), ("x",), ("+", "-"), ("+", "-", "x"), ("+", "-", "x"))
    for _ in range(d.rng.randint(5, 18)):
        arithmetic(d, ops)


def plan_letters(d):
    """Spelling, repeating, reversing, lists."""
    for _ in range(d.rng.randint(4, 12)):
        text_task(d)


def plan_story(d):
    if d.p(0.1):
        d.c(greet, feelings)(d)
    if d.p(0.1):
        tell(d, "name")
    if d.p(0.06):
        no_story(d)
    d.c(story, story, story, told_story)(d)
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
    if d.p(0.3):
        greet(d)
    if d.p(0.15):
        ask_unknown(d)
    for i in range(d.c(1, 1, 1, 2, 2, 3)):
        tell(d, "name" if i == 0 and d.p(0.25) else None)
    extra = d.c(None, None, where_thing, word_list)
    if extra:
        extra(d)
    for _ in range(d.c(0, 1, 1, 1, 2, 2, 3, 4, 6)):
        distraction(d)
    if d.p(0.2):
        slot = d.c(list(d.facts))
        if slot not in NOT_UPDATED and not isinstance(slot, tuple):
            tell(d, slot)
    questions(d, d.c(1, 2, 2, 3, 4))
    if extra:
        extra(d)
        if d.p(0.5):
            extra(d)
    if d.p(0.4):
        distraction(d, 0.2)
        questions(d, d.c(1, 2))
    if d.p(0.1):
        bye(d)


def plan_memory_long(d):
    """As plan_memory, up to the whole context between statement and question."""
    for i in range(d.c(1, 2, 3)):
        tell(d, "name" if i == 0 and d.p(0.3) else None)
    goal = d.rng.randint(1000, 3400)  # characters, up to nine tenths of the context
    while d.chars < goal:
        distraction(d, 0.3)
    questions(d, d.c(2, 3, 4))


def plan_interview(d):
    """Facts and questions in quick succession, no distraction."""
    if d.p(0.3):
        ask_unknown(d)
    for _ in range(d.rng.randint(2, 4)):
        d.c(tell, tell, tell, tell, where_thing, word_list)(d)
        questions(d, d.c(0, 1, 2, 3))
    questions(d, d.c(2, 3, 4))


def plan_needle(d):
    """A fact inside a long message."""
    needle(d)
    for _ in range(d.c(0, 0, 1, 2)):
        distraction(d)
    questions(d, d.c(1, 2, 3))


def plan_lookup(d):
    for _ in range(d.c(1, 1, 2, 3)):
        d.c(table, table, table, passage)(d)
        if d.p(0.15):
            small(d)


def plan_table_drill(d):
    for _ in range(d.c(1, 1, 2)):
        table_drill(d)


def plan_table_search(d):
    for _ in range(d.c(1, 1, 2)):
        table_search(d)


def plan_check_sums(d):
    for _ in range(d.rng.randint(2, 8)):
        check_sum(d) if d.p(0.7) else arithmetic(d)


def plan_system_fact(d):
    """Facts stand in the system prompt and are asked for much later."""
    slots = d.rng.sample(
        [
            s
            for s in CORE
            if s
            not in ("pin", "surname", "nickname", "phone", "treasure", "train", "day", "season")
        ],
        d.c(1, 1, 2),
    )
    said_ = []
    for s in slots:
        v = d.facts[s] = value(d, s)
        you = {
            "name": d.c(
                f"The user is called {v}",
                f"The name of the user is {v}",
                f"You are talking to {v}",
                f"The user's name is {v}",
            ),
            "city": d.c(f"The user lives in {v}", f"The home of the user is {v}"),
            "key": f"The key is in the {v}",
            "meeting": f"The meeting is at {v}",
        }.get(s)
        noun = FACTS[s].noun
        said_.append((you or f"The user's {noun[3:]} is {v}") + ".")
    d.system = ((d.system + " ") if d.system else "") + " ".join(said_)
    for _ in range(d.c(0, 0, 1, 2, 4, 7)):
        story(d, 0) if d.p(0.12) else small(d)
    ask(d, slots[0])
    if d.p(0.5):
        small(d)
        ask(d, slots[-1])
    if d.p(0.4):
        ask_unknown(d)


def plan_pinned(d):
    """A system prompt that wants something of every answer, for twenty turns and more.

    The history may begin anywhere: in a session the oldest turns are forgotten and the
    system prompt is not.
    """
    if not d.styles:
        parts = [d.persona()] if d.p(0.25) and not d.job else []
        d.add_style(parts, ["end", "end", "start", "title", "title", "manner", "manner", "sign"])
        d.system = ((d.system + " ") if d.system else "") + " ".join(parts)
    goal = d.rng.randint(500, 3300)
    while d.chars < goal:
        x = d.rng.random()
        if x < 0.80:
            one_of(d, SHORT_ONES)
        elif x < 0.86:
            tell(d)
        elif x < 0.92 and d.facts:
            questions(d, 1)
        elif x < 0.96:
            story(d, d.c(0, 1))
        else:
            ask_unknown(d)


def plan_asked_style(d):
    """The user, not the system prompt, asks for a manner of answering."""
    if d.styles or d.job:
        return plan_pinned(d)
    for _ in range(d.c(0, 1, 2)):
        one_of(d, SHORT_ONES)
    s = Style(d.rng, d.c([k for k in STYLES if k != "short"]))
    text = (
        s.ask.replace("the user wants", "I want")
        .replace("the user likes", "I like")
        .replace("the user", "me")
        .replace("The user", "Me")
    )
    if d.p(0.5):
        text = (
            d.c(
                "From now on, ",
                "Please, ",
                "From now on: ",
                "For the rest of this chat, ",
                "New rule: ",
            )
            + text[0].lower()
            + text[1:]
        )
    d.styles.append(s)
    d.add(
        text,
        d.c("Okay, I will do that.", "I will do so from now on.", "As you wish.", "Okay."),
        "style",
        raw=True,
    )
    for _ in range(d.rng.randint(3, 16)):
        one_of(d, SHORT_ONES)


PLANS = [
    (plan_small, 8),
    (plan_drill, 20),
    (plan_sums, 12),
    (plan_letters, 8),
    (plan_story, 13),
    (plan_memory, 20),
    (plan_memory_long, 7),
    (plan_interview, 9),
    (plan_needle, 7),
    (plan_lookup, 13),
    (plan_system_fact, 4),
    (plan_pinned, 9),
    (plan_asked_style, 2),
]
# The second stage: more dialogues of the slowest skills, enough of the others to keep them.
MEMORY_PLANS = [
    (plan_small, 5),
    (plan_drill, 10),
    (plan_sums, 5),
    (plan_letters, 9),
    (plan_story, 7),
    (plan_memory, 26),
    (plan_memory_long, 8),
    (plan_interview, 17),
    (plan_needle, 8),
    (plan_lookup, 18),
    (plan_system_fact, 4),
    (plan_pinned, 5),
    (plan_asked_style, 1),
]
LAST_PLANS = [
    (plan_small, 6),
    (plan_drill, 14),
    (plan_sums, 11),
    (plan_letters, 8),
    (plan_story, 9),
    (plan_memory, 22),
    (plan_memory_long, 7),
    (plan_interview, 14),
    (plan_needle, 7),
    (plan_lookup, 14),
    (plan_system_fact, 4),
    (plan_pinned, 7),
    (plan_asked_style, 2),
]
TABLE_PLANS = [
    (plan_small, 5),
    (plan_drill, 9),
    (plan_sums, 8),
    (plan_letters, 16),
    (plan_story, 6),
    (plan_memory, 17),
    (plan_memory_long, 6),
    (plan_interview, 12),
    (plan_needle, 6),
    (plan_lookup, 8),
    (plan_table_drill, 40),
    (plan_system_fact, 3),
    (plan_pinned, 6),
    (plan_asked_style, 1),
]
SEARCH_PLANS = [
    (plan_small, 6),
    (plan_drill, 10),
    (plan_sums, 6),
    (plan_check_sums, 8),
    (plan_letters, 16),
    (plan_story, 6),
    (plan_memory, 18),
    (plan_memory_long, 7),
    (plan_interview, 12),
    (plan_needle, 7),
    (plan_lookup, 6),
    (plan_table_drill, 8),
    (plan_table_search, 30),
    (plan_system_fact, 3),
    (plan_pinned, 6),
    (plan_asked_style, 1),
]
MIXES = {
    "all": PLANS,
    "memory": MEMORY_PLANS,
    "last": LAST_PLANS,
    "tables": TABLE_PLANS,
    "search": SEARCH_PLANS,
}


def make_dialogue(seed, split, index, mix="all"):
    d = Dialogue(Rng(f"{seed}-{split}-{index}"), split == "val")
    d.late = mix not in ("all", "memory")
    d.counts_first = mix == "search"
    one_of(d, MIXES[mix])
    return {"system": d.system, "turns": d.turns}


def lines(job):
    seed, split, mix, low, high = job
    return [json.dumps(make_dialogue(seed, split, i, mix)) + "\n" for i in range(low, high)]


def write_split(path, seed, split, count, processes, mix="all"):
    """-> (number of turns, characters, SHA-256 of the file)"""
    jobs = [(seed, split, mix, i, min(i + 500, count)) for i in range(0, count, 500)]
    digest, turns, chars = sha256(), 0, 0
    with open(path, "w", encoding="ascii", newline="\n") as f, Pool(processes) as pool:
        for part in pool.imap(lines, jobs):
            for line in part:
                f.write(line)
                digest.update(line.encode())
                row = json.loads(line)
                turns += len(row["turns"])
                chars += len(render(row["system"], row["turns"]))
    return turns, chars, digest.hexdigest()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default="data")
    ap.add_argument("--train", type=int, default=130000)
    ap.add_argument("--val", type=int, default=1500)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--mix", choices=sorted(MIXES), default="all")
    ap.add_argument("--processes", type=int, default=os.cpu_count())
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for split, n in (("val", a.val), ("train", a.train)):
        turns, chars, digest = write_split(
            os.path.join(a.out, split + ".jsonl"), a.seed, split, n, a.processes, a.mix
        )
        print(
            f"{split}: {n} dialogues, {turns} turns, {chars / 1e6:.1f} MB, sha256 {digest}",
            flush=True,
        )


if __name__ == "__main__":
    main()
