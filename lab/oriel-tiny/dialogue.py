"""One dialogue under construction, its ChatML text and its token mask.

The skills_*.py files add turns, make_corpus.py strings them together.  This file does not depend on the skills.
"""
import zlib

import banks
from phrases import say, typed
from style import Style

NAME = "Oriel"
STYLES = ["end", "start", "title", "manner", "sign", "short"]


def held_out(key):
    """One key in ten belongs to the validation split, by a checksum that is the same everywhere."""
    return zlib.crc32(key.encode()) % 10 == 0


class Dialogue:
    def __init__(self, rng, val, plain=False):
        """`plain`: no system prompt."""
        self.rng, self.val = rng, val
        self.turns, self.facts, self.lists = [], {}, {}
        self.story = None
        self.only_new = False  # checks: facts with coined values only
        self.late = False  # the last stage's wordings, too: LATE_... in tellings.py, skills_numbers.py
        self.counts_first = False  # sums are checked by saying the result, then yes or no
        self.name, self.job, self.system, self.styles = NAME, None, None, []
        self.chars = 0
        if not plain:
            self.set_style()

    # -- helpers -----------------------------------------------------------
    def c(self, *options):
        if len(options) == 1 and isinstance(options[0], (list, tuple)):
            options = options[0]
        return self.rng.choice(options)

    def p(self, x):
        return self.rng.random() < x

    def say(self, pattern):
        return say(self.rng, pattern)

    def draw(self, fn, tries=200, must=True):
        """Draws (key, value) until the key belongs to this split; `must` false: or takes what there is."""
        for _ in range(tries):
            key, value = fn()
            if held_out(key) == self.val:
                return value
        if not must:
            return value
        raise ValueError("nothing to draw for this split, for example " + key)

    @property
    def short(self):
        return any(s.kind == "short" for s in self.styles)

    def set_style(self):
        x = self.rng.random()
        if x < 0.5:
            return
        parts = []
        if x < 0.62:
            self.system = self.c(
                f"You are {NAME}, a tiny helpful assistant that runs on the device.",
                "You are a helpful assistant.",
                f"You are {NAME}. You are friendly and brief.",
                "You are a friendly chat assistant.",
                f"You are {NAME}, a small language model.",
            )
            return
        if self.p(0.4):
            parts.append(self.persona())
        if not parts or self.p(0.6):
            self.add_style(parts)
            if self.p(0.12):
                self.add_style(parts)
        if len(parts) == 1 and self.p(0.25):
            parts.insert(
                0,
                self.c(
                    f"You are {NAME}.", "You are a helpful assistant.", "You are a chat assistant."
                ),
            )
        self.system = " ".join(parts)

    def persona(self):
        import coined

        self.name = self.c(banks.PERSONAS) if self.p(0.3) else coined.first_name(self.rng)
        job = self.job = self.c(banks.PERSONA_JOBS)
        return self.say(
            f"(You are {self.name}, {job}|Your name is {self.name}. You are {job}|You are {job} called {self.name}"
            f"|Act as {self.name}, {job}|You are {job} named {self.name}|Your name is {self.name} and you are {job}"
            f"|Play the part of {self.name}, {job}|Pretend to be {self.name}, {job})."
        )

    def add_style(self, parts, kinds=STYLES):
        taken = [s.kind for s in self.styles]
        free = [
            k
            for k in kinds
            if k not in taken
            and not (k in ("sign", "end") and ("sign" in taken or "end" in taken))
            and not (k in ("start", "manner") and ("start" in taken or "manner" in taken))
            and not (k == "manner" and self.job)
        ]
        if free:
            self.styles.append(Style(self.rng, self.c(free)))
            parts.append(self.styles[-1].ask)

    def add(self, user, answer, skill, gold=None, names=False, raw=False, title=True):
        """`title` false: an answer that must stay in one piece, such as a story."""
        for s in sorted(self.styles, key=lambda s: s.kind in ("end", "sign")):
            answer = s.apply(answer, not title)
        if not raw:
            user = typed(self.rng, user, names)
        self.turns.append(
            {
                "user": user,
                "assistant": answer,
                "skill": skill,
                "gold": None if gold is None else str(gold),
            }
        )
        self.chars += len(user) + len(answer) + 40

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
    the system did or the assistant in a turn that is not to be learned ("untaught"),
    0 for the signs between them.

    A dialogue that does not fit is cut after its last complete turn.
    """
    ids, mask = [], []

    def put(text, kind=0):
        new = tok.encode(text)
        ids.extend(new)
        mask.extend([kind] * len(new))

    def written(role, text, kind=2):
        put(f"<|im_start|>{role}\n")
        put(text + "<|im_end|>", kind)
        put("\n")

    if row["system"]:
        written("system", row["system"])
    for turn in row["turns"]:
        mark = len(ids)
        written("user", turn["user"])
        written("assistant", turn["assistant"], 2 if turn.get("untaught") else 1)
        if len(ids) > context:
            del ids[mark:], mask[mark:]
            break
    return ids, mask
