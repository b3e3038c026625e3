"""One dialogue under construction, its ChatML text and its token mask.

The other parts of the generator: skills_talk.py, skills_memory.py and
skills_tasks.py add turns, make_corpus.py strings them together.  Nothing here
knows which skills exist.
"""
import zlib

import banks

NAME = "Oriel"


def held_out(key):
    return zlib.crc32(key.encode()) % 10 == 0


class Dialogue:
    def __init__(self, rng, val, practice=False):
        self.rng, self.val, self.practice = rng, val, practice
        self.turns, self.facts, self.lists = [], {}, {}
        self.story = None
        self.only_new = False  # evaluation: facts with coined values only
        self.name, self.title, self.short, self.system = NAME, None, False, None
        self.set_style()

    # -- helpers -----------------------------------------------------------
    def c(self, *options):
        if len(options) == 1 and isinstance(options[0], (list, tuple)):
            options = options[0]
        return self.rng.choice(options)

    def p(self, x):
        return self.rng.random() < x

    def draw(self, fn):
        """Draws (key, value) until the key belongs to this split."""
        for _ in range(60):
            key, value = fn()
            if held_out(key) == self.val:
                return value
        return value

    def set_style(self):
        x = self.rng.random()
        if x < 0.55:
            return
        if x < 0.67:
            self.system = self.c(
                f"You are {NAME}, a tiny helpful assistant that runs on the device.",
                "You are a helpful assistant.", f"You are {NAME}. You are friendly and brief.",
                "You are a friendly chat assistant.", f"You are {NAME}, a small language model.")
        elif x < 0.80:
            self.name = self.c(banks.PERSONAS)
            job = self.c("a friendly helper", "a cheerful robot", "a wise owl", "a story teller",
                         "a tiny assistant", "a kind teacher", "a pocket companion",
                         "a patient tutor", "a chat assistant")
            self.system = self.c(f"You are {self.name}, {job}.",
                                 f"Your name is {self.name}. You are {job}.",
                                 f"You are {job} called {self.name}.",
                                 f"Act as {self.name}, {job}.")
            self.job = job
        elif x < 0.90:
            self.short = True
            self.system = self.c("Answer in one short sentence.", "Keep your answers short.",
                                 "Be very brief.", "Give short answers.",
                                 f"You are {NAME}. Answer in one short sentence.",
                                 "Use as few words as possible.")
        else:
            self.title = self.c(banks.TITLES)
            self.system = self.c(f"Always call the user {self.title}.",
                                 f"Address the user as {self.title}.",
                                 f"You are {NAME}. Call the user {self.title}.",
                                 f"Please call me {self.title} in every answer.")

    def casual(self, u, names=False):
        """Light typing variation on the user's side."""
        x = self.rng.random()
        if x < 0.12 and not names:
            u = u.lower()
        if self.p(0.15) and u[-1] in ".?!":
            u = u[:-1]
        return u

    def add(self, user, answer, skill, gold=None, names=False, raw=False, title=True):
        if self.title and title and answer[-1] in ".!?" and len(answer) < 200:
            answer = f"{answer[:-1]}, {self.title}{answer[-1]}"
        self.turns.append({
            "user": user if raw else self.casual(user, names),
            "assistant": answer,
            "skill": skill,
            "gold": None if gold is None else str(gold)
        })

    def reply(self, long, short):
        if self.short:
            return self.c(short)
        return self.c(long) if self.p(0.9) else self.c(short)


def render(system, turns):
    """ChatML text of a dialogue; used for training and for prompts."""
    parts = []
    if system:
        parts.append(f"<|im_start|>system\n{system}<|im_end|>\n")
    for t in turns:
        parts.append(f"<|im_start|>user\n{t['user']}<|im_end|>\n<|im_start|>assistant\n")
        if t.get("assistant") is not None:
            parts.append(f"{t['assistant']}<|im_end|>\n")
    return "".join(parts)


def encode_dialogue(tok, row, context):
    """-> ids, mask.  mask[i] is 1 if the assistant wrote ids[i], 2 if the user or
    the system did, 0 for the signs between them.

    A dialogue that does not fit is cut after its last complete turn.
    """
    ids, mask = [], []

    def put(text, kind=0):
        new = tok.encode(text)
        ids.extend(new)
        mask.extend([kind] * len(new))

    def written(role, text):
        put(f"<|im_start|>{role}\n")
        put(text + "<|im_end|>", 1 if role == "assistant" else 2)
        put("\n")

    if row["system"]:
        written("system", row["system"])
    for turn in row["turns"]:
        mark = len(ids)
        written("user", turn["user"])
        written("assistant", turn["assistant"])
        if len(ids) > context:
            del ids[mark:], mask[mark:]
            break
    return ids, mask
