"""Random choices that are the same on every machine and with every Python, and wordings.

Python guarantees only `random.Random(text).random()`. The standard library's choices changed between versions, so
Rng makes its own.

Wordings: a small grammar of alternatives, and typical typing errors.

    say(rng, "(what is|what's) your (name|age)[, please]?")

`(a|b)` picks one, `[a]` is optional; both nest.  The signs of the grammar have no escape.
"""
import random
import re

_TOKEN = re.compile(r"[()\[\]|]|[^()\[\]|]+")
_BEFORE_SIGN = re.compile(r" ([.?!,])")
_PARSED = {}


class Rng:
    def __init__(self, seed):
        self.random = random.Random(str(seed)).random

    def randrange(self, n):
        return int(self.random() * n)

    def randint(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def uniform(self, low, high):
        return low + self.random() * (high - low)

    def choice(self, items):
        return items[int(self.random() * len(items))]

    def choices(self, items, weights):
        """One item, in a list, drawn with integer weights."""
        x = int(self.random() * sum(weights))
        for item, w in zip(items, weights):
            x -= w
            if x < 0:
                return [item]
        raise ValueError("the weights are not positive integers")

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = int(self.random() * (i + 1))
            items[i], items[j] = items[j], items[i]

    def sample(self, items, count):
        pool = list(items)
        self.shuffle(pool)
        if count > len(pool):
            raise ValueError("more items asked for than there are")
        return pool[:count]


def _alternatives(tokens, at, end):
    """-> ([[piece...]...], next position); a piece is text or ("(" or "[", alternatives)."""
    options, pieces = [], []
    while at < len(tokens) and tokens[at] != end:
        t = tokens[at]
        if t in (")", "]"):
            raise ValueError("unbalanced brackets: " + "".join(tokens))
        if t in "([":
            inner, at = _alternatives(tokens, at + 1, ")" if t == "(" else "]")
            if at == len(tokens):
                raise ValueError("unbalanced brackets: " + "".join(tokens))
            pieces.append((t, inner))
        elif t == "|":
            options.append(pieces)
            pieces = []
        else:
            pieces.append(t)
        at += 1
    return options + [pieces], at


def _pick(rng, options):
    out = []
    for piece in rng.choice(options):
        if isinstance(piece, str):
            out.append(piece)
        elif piece[0] == "(" or rng.random() < 0.4:
            out.append(_pick(rng, piece[1]))
    return "".join(out)


def say(rng, pattern):
    """One wording of `pattern`, with single spaces and a capital letter."""
    parsed = _PARSED.get(pattern)
    if parsed is None:
        tokens = _TOKEN.findall(pattern)
        parsed = _PARSED[pattern] = _alternatives(tokens, 0, None)[0]
    text = _BEFORE_SIGN.sub(r"\1", " ".join(_pick(rng, parsed).split()))
    return text[:1].upper() + text[1:]


# Both directions are met: the corpus is written with the long forms mostly.
CONTRACTIONS = [
    ("What is ", "What's "),
    ("what is ", "what's "),
    ("Where is ", "Where's "),
    ("Who is ", "Who's "),
    ("who is ", "who's "),
    ("How is ", "How's "),
    ("I am ", "I'm "),
    ("do not ", "don't "),
    ("cannot ", "can't "),
    ("It is ", "It's "),
    ("it is ", "it's "),
    ("I have ", "I've "),
    ("That is ", "That's "),
    ("did not ", "didn't "),
    ("When is ", "When's "),
]
BEFORE = (
    "Hey, ",
    "Ok, ",
    "Okay, ",
    "So, ",
    "Well, ",
    "And now: ",
    "Now, ",
    "Hi, ",
    "Hmm, ",
    "Um, ",
    "One more thing: ",
    "Quick question: ",
    "Next question: ",
    "Oriel, ",
    "Thanks. ",
    "Great. ",
    "Alright, ",
    "Cool. ",
    "Another question. ",
    "Good. ",
    "Tell me: ",
    "Let me ask you: ",
)
POLITE = ("please ", "could you please tell me: ", "please answer: ")
FIRST = (
    "What",
    "Who",
    "Where",
    "How",
    "Which",
    "When",
    "Do",
    "Does",
    "Can",
    "Could",
    "Is",
    "Are",
    "Am",
    "Tell",
    "Name",
    "Give",
    "Count",
    "Spell",
    "Repeat",
    "Say",
    "Add",
    "Calculate",
    "Did",
    "Please",
    "Remind",
    "The",
    "My",
    "In",
    "Was",
    "Continue",
    "List",
    "Write",
    "Why",
)


def lower_first(text):
    return text[0].lower() + text[1:] if text.split(" ")[0].rstrip("'s?") in FIRST else text


def typed(rng, text, names=False):
    """Light variation on the user's side; `names`: keeps capital letters."""
    x = rng.random()
    if x < 0.15:
        for long, short in CONTRACTIONS:
            text = text.replace(long, short)
        if rng.random() < 0.3:
            text = text.replace("'", "")
    if rng.random() < 0.08:
        text = rng.choice(BEFORE) + lower_first(text)
    elif rng.random() < 0.06 and text[-1] in ".?":
        text = text[:-1] + ", please" + text[-1]
    elif rng.random() < 0.03 and text[-1] == "?":
        text = rng.choice(POLITE) + lower_first(text)
        text = text[0].upper() + text[1:]
    if rng.random() < 0.15 and not names:
        text = text.lower()
    elif rng.random() < 0.06:
        text = text[0].lower() + text[1:]
    if rng.random() < 0.18 and text[-1] in ".?!":
        text = text[:-1]
    elif rng.random() < 0.02:
        text = text + text[-1] if text[-1] in "?!" else text
    return text
