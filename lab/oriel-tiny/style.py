"""How a system prompt (or the user) wants all answers to be: an ending, a title, a manner.

A Style knows the sentence that asks for it and how it changes an answer.  Nearly every
value is coined, so that the instruction has to be read and cannot be guessed.
"""
import banks
import coined
from phrases import say

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
        return coined.word(rng)
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
            w = self.value = rng.choice(TITLES) if rng.random() < 0.5 else coined.first_name(rng)
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
                coined.first_name(rng) if rng.random() < 0.7 else rng.choice(banks.PERSONAS)
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
