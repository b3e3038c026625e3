#!/usr/bin/env python3
"""Does oriel-tiny follow its system prompt at turn 200 as often as at turn 5?

    python3 lab/research/system_prompt.py build/release/apps/oriel [--chats 4] [--late 200] [ORIEL OPTIONS]

Long greedy chats with `oriel chat`, whose window is far shorter than the chat. The user messages come from the
generator of the model's training text, except for five questions from turn 5 and the same five from turn 200 on.
Their answers show whether the model follows the prompt. Four kinds of system prompts from the training text, --chats
of each. Needs only the standard library.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

os.environ["ORIEL_CONFIG"] = ""  # ignore the user's config file


RECIPE = pathlib.Path(__file__).resolve().parents[1] / "oriel-tiny"
sys.path.insert(0, str(RECIPE))
sys.dont_write_bytecode = True

import banks  # noqa: E402
from dialogue import Dialogue  # noqa: E402
from phrases import Rng  # noqa: E402
from skills_memory import value  # noqa: E402
from skills_numbers import arithmetic, compare  # noqa: E402
from skills_tasks import tables  # noqa: E402
from skills_talk import explain, limits  # noqa: E402

EARLY, PROBES = 5, 5
JOBS = ["a cheerful robot", "a wise owl", "a kind teacher", "a patient tutor"]


def words(text):
    return len(text.split())


def make_chat(kind, rng):
    """-> system prompt, five questions, a test of an answer."""
    d = Dialogue(rng, True, plain=True)
    if kind == "title":  # seen in every answer
        title = rng.choice(banks.TITLES)
        asked = ["What is 12 + 30?", "What is the capital of Japan?", "Who are you?",
                 "What is the opposite of heavy?", "What sound does an owl make?"]
        return f"Always call the user {title}.", asked, lambda text: title in text
    if kind == "persona":
        name, job = rng.choice(banks.PERSONAS), rng.choice(JOBS)
        asked = ["Who are you?", "What is your name?", "What should I call you?",
                 "Introduce yourself.", "Who am I talking to?"]
        return f"You are {name}, {job}.", asked, lambda text: name in text
    if kind == "short":  # without the prompt: stories of 40 words and more, answers of 10 to 20
        asked = ["Who are you?", "What can you do?", "Introduce yourself.", "What are you?",
                 "What are you good at?"]
        return "Answer in one short sentence.", asked, lambda text: words(text) <= 8
    slot = rng.choice(["code", "word", "city"])
    told = str(value(d, slot))
    text, question = {"code": (f"The secret code is {told}.", "What is the code?"),
                      "word": (f"The secret word is {told}.", "What is the secret word?"),
                      "city": (f"The user lives in {told}.", "Where do I live?")}[slot]
    return text, [question] * PROBES, lambda answer: told.lower() in answer.lower()


def filler(rng, count):
    d = Dialogue(rng, False, plain=True)
    while len(d.turns) < count:
        rng.choice([arithmetic, arithmetic, compare, tables, tables, explain, limits])(d)
    return [turn["user"].replace("\n", " ") for turn in d.turns[:count]]


def talk(options, system, users):
    """The replies to the users' messages, as `oriel chat --json` gives them."""
    command = [options.oriel, "chat", "--window", options.window, "--greedy", "--json", "--tokens", "120"]
    done = subprocess.run(command + (["--system", system] if system else []) + options.more,
                          input="\n".join(users) + "\n", text=True, stdout=subprocess.PIPE, check=True)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(replies) == len(users), (len(replies), len(users))
    return replies


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("oriel")
    parser.add_argument("--chats", type=int, default=4)
    parser.add_argument("--late", type=int, default=200)
    parser.add_argument("--window", default="192")
    parser.add_argument("--out", help="every question and answer, as JSON lines")
    options, options.more = parser.parse_known_args()
    log = open(options.out, "w") if options.out else None
    late = options.late
    columns = ["no prompt", f"turns 5-{EARLY + PROBES - 1}", f"turns {late}-{late + PROBES - 1}",
               "turn 5", f"turn {late}"]
    print(f"{'prompt':<9}" + "".join(f"{name:>15}" for name in columns) + "   forgotten")
    sums = {}
    for kind in ("title", "persona", "short", "fact"):
        hits, counts, forgotten = dict.fromkeys(columns, 0), dict.fromkeys(columns, 0), 0

        def see(column, turn, reply, system, user, follows):
            good = follows(reply["text"])
            hits[column] += good
            counts[column] += 1
            if log:
                print(json.dumps([column, kind, system, turn, user, reply["text"], good]), file=log,
                      flush=True)

        for chat in range(options.chats):
            rng = Rng(f"{kind}-{chat}")
            system, asked, follows = make_chat(kind, rng)
            # The i-th turn, counting from 1, is users[i - 1].
            users = filler(rng, EARLY - 1) + asked + filler(rng, late - EARLY - PROBES) + asked
            replies = talk(options, system, users)
            for column, alone, first in ((columns[1], columns[3], EARLY), (columns[2], columns[4], late)):
                for turn in range(first, first + PROBES):
                    see(column, turn, replies[turn - 1], system, users[turn - 1], follows)
                # The others have an answer to look at in the window.
                see(alone, first, replies[first - 1], system, users[first - 1], follows)
            early = users[:EARLY + PROBES - 1]
            for turn, reply in list(enumerate(talk(options, None, early), 1))[EARLY - 1:]:
                see(columns[0], turn, reply, None, early[turn - 1], follows)
            forgotten = max(forgotten, replies[-1]["evicted"])
        print(f"{kind:<9}" + "".join(f"{f'{hits[c]}/{counts[c]}':>15}" for c in columns)
              + f"{forgotten:>12}", flush=True)
        for c in columns:
            sums[c] = (sums.get(c, (0, 0))[0] + hits[c], sums.get(c, (0, 0))[1] + counts[c])
    print(f"{'all':<9}" + "".join(f"{f'{sums[c][0]}/{sums[c][1]}':>15}" for c in columns))


main()
