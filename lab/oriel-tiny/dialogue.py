"""One dialogue under construction, its ChatML text and its token mask.

The skills_*.py files add turns, make_corpus.py strings them together.  This file does not depend on the skills.

How a system prompt (or the user) wants all answers to be: an ending, a title, a manner.

A Style knows the sentence that asks for it and how it changes an answer.  Nearly every
value is coined, so that the instruction has to be read and cannot be guessed.
"""

import zlib

import banks
from phrases import say, typed

TITLES = banks.TITLES + banks.words(
    """Sir, Madam, Admiral, Coach, Mister, Your Majesty, Master, buddy, pal, my friend,
General, Sergeant, Major, Duke, Duchess, Princess, Prince, Doc, Maestro, Skipper, Judge, Sheriff, champ, traveller, hero"""
)

# manner: (words for it, prefix, suffix)
MANNERS = {
    "pirate": (
        ("a pirate", "a pirate captain", "an old pirate"),
        ("Arr!", "Arr,", "Ahoy!"),
        ("matey", "me hearty"),
    ),
    "robot": (("a robot", "an old robot"), ("Beep!", "Beep boop!"), ()),
    "cat": (("a cat", "a little cat"), ("Meow!", "Purr!"), ()),
    "dog": (("a dog", "a happy dog"), ("Woof!",), ()),
    "wizard": (("a wizard", "an old wizard"), ("By my beard!", "Abracadabra!"), ()),
    "cowboy": (("a cowboy", "a cowgirl"), ("Howdy!", "Yeehaw!"), ("partner",)),
    "knight": (("a knight", "a brave knight"), ("Hark!", "By my sword!"), ("noble friend",)),
    "ghost": (("a ghost",), ("Boo!", "Whooo!"), ()),
    "duck": (("a duck",), ("Quack!",), ()),
    "snake": (("a snake",), ("Hiss!",), ()),
    "owl": (("an owl",), ("Hoot!",), ()),
    "bee": (("a bee",), ("Buzz!",), ()),
}


def closing_word(rng):
    x = rng.random()
    if x < 0.45:
        return rng.choice(
            banks.PLAIN
            + banks.ANIMALS
            + banks.FRUITS
            + ["over", "cheers", "amen", "okay", "indeed", "wow", "hooray"]
        )
    if x < 0.9:
        return banks.word(rng)
    return rng.choice(
        (
            "over and out",
            "have a nice day",
            "that is all",
            "you know",
            "thank you",
            "yes indeed",
            "so it is",
        )
    )


class Style:
    """kind: end, start, title, manner, sign, short or None; `ask` is the instruction."""

    def __init__(self, rng, kind):
        self.kind, self.value, self.ask = kind, None, None
        every = "(every|each) (answer|reply|response|message)"
        all_ = "(all your answers|your answers|all of your replies|everything you say)"
        if kind == "end":
            w = self.value = closing_word(rng)
            quoted = rng.choice((f'"{w}"', f"'{w}'", w, w, f"the word {w}", f"the word '{w}'"))
            self.ask = say(
                rng,
                f"([always|please|you must] (end|finish|close) {every} with {quoted}|(end|finish) {all_} with {quoted}"
                f"|(add|put|say|write) {quoted} at the end of {every}|at the end of {every} (say|write|add) {quoted}"
                f"|{every} (must|has to|should) end with {quoted}|the last word of {every} (is|must be) {w}).",
            )
        elif kind == "start":
            w = self.value = closing_word(rng)
            quoted = rng.choice((f'"{w}"', f"'{w}'", w, f"the word {w}", f"the word '{w}'"))
            self.ask = say(
                rng,
                f"([always|please|you must] (start|begin|open) {every} with {quoted}|(start|begin) {all_} with {quoted}"
                f"|(put|say|write) {quoted} (before|at the start of|at the beginning of) {every}"
                f"|{every} (must|has to|should) (start|begin) with {quoted}).",
            )
        elif kind == "title":
            w = self.value = rng.choice(TITLES) if rng.random() < 0.5 else banks.first_name(rng)
            self.ask = say(
                rng,
                f"([always|please|you must always] (call the user|address the user as) {w}|[always|please] call me {w} [in (every|each) answer]"
                f"|(address|speak to|talk to) the user as {w}|the user (wants|likes) to be called {w} in (every|each) answer"
                f"|(use the name|say the title) {w} in {every}|call the user {w} in {every}).",
            )
        elif kind == "manner":
            self.value = rng.choice(sorted(MANNERS))
            names, before, behind = MANNERS[self.value]
            who = rng.choice(names)
            self.before, self.behind = (
                before[0] if rng.random() < 0.8 else rng.choice(before),
                behind,
            )
            self.ask = say(
                rng,
                f"([always] (speak|talk|answer|reply|write) (like|as) {who}|you are {who}|you are {who}[, and you (talk|speak) like one]"
                f"|(act|behave) like {who}|pretend (to be|that you are) {who}|answer (everything|all questions) like {who}"
                f"|you (speak|talk) like {who}|answer in the (style|voice) of {who}).",
            )
        elif kind == "sign":
            w = self.value = (
                banks.first_name(rng) if rng.random() < 0.7 else rng.choice(banks.PERSONAS)
            )
            self.ask = say(
                rng,
                f"([always|please] sign {every} with {w}|sign {all_} with {w}|sign {every} as {w}).",
            )
        elif kind == "short":
            self.ask = say(
                rng,
                "(answer in one short sentence|keep your answers short|be very brief|give short answers"
                "|use as few words as possible|answer (briefly|shortly)|[always] answer with one word if you can"
                "|short answers only|your answers are short).",
            )

    def apply(self, text, plain=False):
        """`plain`: texts that must stay whole (stories, poems, words to repeat)."""
        k, v = self.kind, self.value
        if k == "end":
            return f"{text} {v}"
        if k == "start":
            return f"{v}. {text}"
        if k == "sign":
            return f"{text} - {v}"
        if k == "title":
            if plain or text[-1] not in ".!?" or len(text) > 160:
                return f"{v[0].upper() + v[1:]}, here you are: {text}"
            return f"{text[:-1]}, {v}{text[-1]}"
        if k == "manner":
            behind = self.behind[0] if self.behind else None
            if plain or behind is None or text[-1] not in ".!?" or len(text) > 160:
                return f"{self.before} {text}"
            return f"{self.before} {text[:-1]}, {behind}{text[-1]}"
        return text


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
        self.name = self.c(banks.PERSONAS) if self.p(0.3) else banks.first_name(self.rng)
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
