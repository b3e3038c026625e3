"""Coined names and words: an open set, so the model must copy them.

A model that sees every value of a small bank learns the bank. With a new word in every dialogue it must look back at
the conversation.  The words are
pronounceable and break into many different tokens.  All random choices use the `rng` argument.
"""
from collections import defaultdict

import banks

ONSETS = ("b c d f g h j k l m n p r s t v w z b d k l m n r s t br ch cl cr dr fl fr gl gr kl kr pl pr "
          "qu sh sk sl sm sn sp st str th tr tw wh y x").split() + [""] * 6
VOWELS = "a e i o u a e i o u a o ai ea ee ei ia ie io oa oo ou au y ue".split()
CODAS = "b ck d f g k l ll m n nd ng nk nt p r rd rk rl rn rt s sh sk ss st t th tt v x z".split()


def word(rng, syllables=None):
    """A lower-case word such as 'trask', 'belonia' or 'quimper'."""
    n = syllables or rng.choice((1, 2, 2, 2, 2, 3, 3))
    out = ""
    for i in range(n):
        out += rng.choice(ONSETS) + rng.choice(VOWELS)
        if rng.random() < (0.55 if i == n - 1 else 0.25):
            out += rng.choice(CODAS)
    return out if len(out) > 2 else out + rng.choice(ONSETS[:20]) + rng.choice("aeiou")


class Chain:
    """Letter chain over a bank: gives words that look like the bank's."""

    def __init__(self, bank):
        self.next = defaultdict(list)
        for w in bank:
            s = "^^" + w.lower() + "$"
            for i in range(2, len(s)):
                self.next[s[i - 2:i]].append(s[i])

    def draw(self, rng):
        while True:
            s = "^^"
            while s[-1] != "$" and len(s) < 14:
                s += rng.choice(self.next[s[-2:]])
            if s[-1] == "$" and len(s) > 5:
                return s[2:-1]


FIRST = Chain([n for n in banks.SHE + banks.HE + banks.PETNAMES if " " not in n])
TOWN = Chain([c for _, c in banks.CAPITALS if " " not in c] + banks.CITIES)


def title(s):
    return s[:1].upper() + s[1:]


def first_name(rng):
    x = rng.random()
    if x < 0.5:
        return title(FIRST.draw(rng))
    if x < 0.93:
        return title(word(rng))
    if x < 0.97:
        return f"{title(FIRST.draw(rng))}-{title(FIRST.draw(rng))}"
    return word(rng, 1).upper()


def full_name(rng):
    """Mostly a first name, now and then with a family name or an initial."""
    x = rng.random()
    if x < 0.86:
        return first_name(rng)
    if x < 0.96:
        return f"{first_name(rng)} {title(word(rng))}"
    return f"{first_name(rng)} {rng.choice('ABCDEFGHIJKLMNOPRSTVWZ')}."[:-1]


def town(rng):
    x = rng.random()
    if x < 0.55:
        return title(TOWN.draw(rng))
    base = title(word(rng, rng.choice((1, 2))))
    if x < 0.8:
        return base + rng.choice(("", "", "ville", "ton", "burg", "ford", "ham", "stad", "berg", "field", "mouth"))
    return rng.choice(("New {}", "San {}", "Port {}", "Saint {}", "Mount {}", "{} City", "{} Bay", "Lake {}", "North {}",
                       "Upper {}", "{} Springs", "El {}")).format(base)


def code(rng):
    """Digits, or letters and digits; never fewer than three signs."""
    x = rng.random()
    digits = lambda n: "".join(rng.choice("0123456789") for _ in range(n))
    letters = lambda n: "".join(rng.choice("ABCDEFGHKLMNPRSTUVWXYZ") for _ in range(n))
    if x < 0.6:
        return digits(4)
    if x < 0.8:
        return digits(rng.choice((3, 5, 6)))
    return rng.choice((letters(1) + digits(3), letters(2) + digits(2), f"{digits(2)}-{digits(2)}",
                       f"{letters(1)}{digits(1)}-{digits(3)}"))


def thing(rng, bank):
    """A noun phrase that is not in `bank`: coined, or a known noun with an odd word in front."""
    x = rng.random()
    if x < 0.4:
        return word(rng, rng.choice((2, 2, 3)))
    if x < 0.7:
        return f"{rng.choice(banks.COLOURS + banks.PLAIN)} {rng.choice(bank)}"
    if x < 0.85:
        return f"{word(rng, 2)} {rng.choice(bank)}"
    return rng.choice(banks.PLAIN)


def hobby(rng):
    x = rng.random()
    if x < 0.35:
        return rng.choice(("collecting {}s", "painting {}s", "building {}s", "reading about {}s", "drawing {}s",
                           "looking for {}s", "writing about {}s", "repairing {}s")).format(
                               rng.choice(banks.PLAIN + banks.ANIMALS))
    if x < 0.7:
        return word(rng, rng.choice((1, 2, 2))) + "ing"
    return f"{word(rng, 2)} {rng.choice(('dancing', 'racing', 'cooking', 'running', 'singing', 'games', 'music'))}"


def job(rng):
    x = rng.random()
    if x < 0.5:
        kinds = ("maker", "seller", "keeper", "doctor", "painter", "trainer", "driver", "expert")
        return f"{rng.choice(banks.PLAIN + banks.ANIMALS)} {rng.choice(kinds)}"
    return word(rng, rng.choice((2, 2, 3))).rstrip("e") + rng.choice(("er", "ist", "or"))
