"""Questions for a trained model, in wordings that training does not have.

Users phrase things differently from the generator of the training text, so no fact here uses a sentence of the
generator.  Values, pairs of numbers, words and story seeds are held out as in the validation split (`held_out`); the
rest comes from a fixed seed.  Needs only the standard library.

    python3 checks.py            # prints one example of every kind
"""
from collections import namedtuple

import banks
from banks import an
from dialogue import Dialogue, held_out
from make_corpus import SHORT_ONES, one_of
from phrases import Rng
from skills_talk import story
from stories import Story

# skill, system prompt, turns before the question, question, accepted answers (the reply must contain one)
Check = namedtuple("Check", "skill system turns question gold")
# skill, system prompt, the user's messages turn by turn, first turn that counts, test of an answer
Talk = namedtuple("Talk", "skill system users first test")

TOLD_UNKNOWN = ("not told", "do not know", "don't know", "haven't told", "no idea")


def right(check, text):
    low = text.casefold()
    return any(g.casefold() in low for g in check.gold)


def number_in(text, n):
    """`n` as a whole number somewhere in `text`."""
    digits = "".join(ch if ch.isdigit() else " " for ch in text).split()
    return str(n) in digits


SUMS = {
    "+": [
        "What's {a} plus {b}?",
        "whats {a}+{b}",
        "Could you add {a} and {b} for me?",
        "Please compute {a} + {b}.",
        "I have {a} nuts and get {b} more. How many nuts do I have now?",
        "{a} and {b} make how much?",
        "Tell me how much {a} plus {b} is",
        "Hey, what is {a} + {b}?",
        "What does {a} + {b} equal?",
    ],
    "-": [
        "What's {a} minus {b}?",
        "whats {a}-{b}",
        "Could you subtract {b} from {a}?",
        "Please compute {a} - {b}.",
        "I have {a} nuts and eat {b}. How many are left?",
        "Tell me how much {a} minus {b} is",
        "Hey, what is {a} - {b}?",
    ],
    "x": [
        "What's {a} times {b}?",
        "whats {a}x{b}",
        "Could you multiply {a} by {b}?",
        "Please compute {a} * {b}.",
        "Tell me how much {a} times {b} is",
        "{a} bags with {b} nuts each: how many nuts?",
        "Hey, what is {a} x {b}?",
    ],
}


def sums(rng, op):
    while True:
        a, b = rng.randint(1, 99), rng.randint(1, 99)
        if op == "x":
            a, b = rng.randint(2, 12), rng.randint(2, 12)
            break
        if (a + b <= 100 if op == "+" else a >= b) and held_out(
            f"{min(a, b)}+{max(a, b)}" if op == "+" else f"{a}-{b}"
        ):
            break
    r = {"+": a + b, "-": a - b, "x": a * b}[op]
    return Check(
        {"+": "sums", "-": "differences", "x": "times tables"}[op],
        None,
        [],
        rng.choice(SUMS[op]).format(a=a, b=b),
        r,
    )


# slot: statements of the fact, questions about it; no sentence is in facts.py
FACTS = {
    "name": (
        [
            "Hello Oriel, I'm {v} by the way.",
            "hi, {v} is what they call me",
            "You may call me {v}.",
        ],
        [
            "Could you say my name?",
            "What did I say my name is?",
            "hey, what was my name again",
            "Tell me please, what's my name?",
        ],
    ),
    "city": (
        [
            "I grew up in {v} and I still live there.",
            "These days I live in {v}.",
            "My flat is in {v}.",
        ],
        [
            "Where did I say that I live?",
            "which town do I live in",
            "Please tell me where I live.",
            "Where's my home?",
        ],
    ),
    "code": (
        [
            "Please keep this secret code: {v}",
            "Note down my code, it is {v}.",
            "The secret code you need is {v}.",
        ],
        [
            "What was my secret code?",
            "Please give me my code",
            "which code did I tell you?",
            "Can you repeat the code?",
        ],
    ),
    "word": (
        [
            "The password is {v}, don't lose it.",
            "Our code word will be {v}.",
            "Please remember the secret word {v}.",
        ],
        [
            "What's the password?",
            "what was the secret word",
            "Please tell me the code word.",
            "Which word did I want you to remember?",
        ],
    ),
    "pet cat": (
        ["We have a cat at home, she is called {v}.", "My cat has the name {v}."],
        ["What's the name of my cat?", "how is my cat called", "Tell me my cat's name, please."],
    ),
    "pet dog": (
        ["Our dog is named {v}.", "I walk my dog {v} every day."],
        ["What's my dog's name?", "what is the dog called", "Do you know the name of my dog?"],
    ),
    "friend": (
        ["{v} has been my best friend for years.", "I met my best friend {v} today."],
        [
            "What's the name of my best friend?",
            "who's my best friend",
            "Please tell me who my best friend is.",
        ],
    ),
    "age": (
        ["I turned {v} last week.", "I will tell you my age: {v}."],
        ["What's my age?", "how old did I say I am", "Please tell me how old I am."],
    ),
    "colour": (
        ["The colour {v} is my favourite.", "I really like {v}, it is my favourite colour."],
        [
            "What's my favourite colour?",
            "which colour do I like",
            "Do you know what colour I like best?",
        ],
    ),
    "food": (
        ["I like {v} more than any other food.", "For dinner I want {v}, my favourite food."],
        [
            "What's my favourite food?",
            "what food do I like best",
            "Please tell me what I like to eat.",
        ],
    ),
    "job": (
        ["I earn my living as {a_v}.", "At work I am {a_v}."],
        ["What's my job?", "what is my work", "Do you know what I do for a living?"],
    ),
    "birthday": (
        ["We celebrate my birthday on {v}.", "My birthday falls on {v}."],
        [
            "When's my birthday?",
            "what day is my birthday on",
            "Please tell me when my birthday is.",
        ],
    ),
    "number": (
        ["My lucky number has always been {v}.", "{v} brings me luck, it is my lucky number."],
        [
            "What's my lucky number?",
            "which number is my lucky one",
            "Please tell me my lucky number.",
        ],
    ),
}
DRAW = {
    "name": banks.full_name,
    "city": banks.town,
    "code": banks.code,
    "word": banks.word,
    "pet cat": banks.first_name,
    "pet dog": banks.first_name,
    "friend": banks.first_name,
    "age": lambda r: r.randint(5, 98),
    "colour": lambda r: r.choice(banks.COLOURS),
    "food": lambda r: r.choice(banks.FOODS),
    "job": lambda r: r.choice(banks.JOBS),
    "birthday": lambda r: f"{r.choice(banks.MONTHS)} {r.randint(1, 28)}",
    "number": lambda r: r.randint(11, 999),
}


def drawn(rng, slot):
    """A coined value that training never has in this place; values of small banks as they come."""
    for _ in range(500):
        v = DRAW[slot](rng)
        if slot in ("age", "colour", "food", "job", "birthday") or held_out(f"{slot}|{v}"):
            return str(v)
    raise ValueError(slot)


def told(rng, slot):
    v = drawn(rng, slot)
    return v, rng.choice(FACTS[slot][0]).format(v=v, a_v=an(v))


def between(rng, tok, tokens):
    """Turns about other things that come to about `tokens` tokens."""
    d = Dialogue(rng, True, plain=True)
    size = 0
    while size < tokens * 0.85:
        mark = len(d.turns)
        if tokens - size > 220 and rng.random() < 0.35:
            story(d, rng.choice((0, 0, 1)))
        else:
            one_of(d, [s for s in SHORT_ONES if s[0].__name__ not in ("said", "identity", "greet")])
        new = sum(len(tok.encode(t["user"] + t["assistant"])) + 9 for t in d.turns[mark:])
        if size + new > tokens * 1.15 + 10:
            del d.turns[mark:]
        else:
            size += new
    return [(t["user"], t["assistant"]) for t in d.turns]


def recall(rng, tok, tokens):
    slot = rng.choice(sorted(FACTS))
    v, text = told(rng, slot)
    return Check(
        f"recall at {tokens}",
        None,
        [(text, "I will remember that.")] + between(rng, tok, tokens),
        rng.choice(FACTS[slot][1]),
        [v],
    )


def unknown(rng, tok):
    slots = rng.sample(sorted(FACTS), 3)
    turns = [(told(rng, s)[1], "I will remember that.") for s in slots[: rng.randint(0, 2)]]
    asked = rng.choice([s for s in sorted(FACTS) if s not in slots[: len(turns)]])
    return Check(
        "not told yet",
        None,
        turns + (between(rng, tok, 60) if rng.random() < 0.5 else []),
        rng.choice(FACTS[asked][1]),
        TOLD_UNKNOWN,
    )


def wrong(rng, tok):
    slot = rng.choice(("name", "city", "pet cat", "friend"))
    v, text = told(rng, slot)
    yes = rng.random() < 0.5
    w = v if yes else drawn(rng, slot)
    q = {
        "name": f"Is {w} my name?",
        "city": f"Do I live in {w}?",
        "pet cat": f"Is my cat called {w}?",
        "friend": f"Is {w} my best friend?",
    }[slot]
    return Check(
        "yes or no",
        None,
        [(text, "I will remember that.")] + between(rng, tok, 60),
        q,
        ["Yes" if yes else "No"],
    )


def corrected(rng, tok):
    slot = rng.choice(("name", "city", "code", "colour", "pet dog"))
    v, text = told(rng, slot)
    w = drawn(rng, slot)
    fix = {
        "name": "Sorry, I was joking. My real name is {w}.",
        "city": "I have moved, I live in {w} now.",
        "code": "The code has changed, it is {w} now.",
        "colour": "I changed my mind, my favourite colour is {w} now.",
        "pet dog": "I made a mistake, my dog is called {w}.",
    }[slot].format(w=w)
    return Check(
        "correction",
        None,
        [(text, "I will remember that.")]
        + between(rng, tok, 50)
        + [(fix, "Thank you, I will remember that.")]
        + between(rng, tok, 50),
        rng.choice(FACTS[slot][1]),
        [w],
    )


def table(rng):
    n = rng.randint(3, 6)
    people = rng.random() < 0.6
    keys = []
    while len(keys) < n:
        k = banks.first_name(rng) if people else rng.choice(banks.FRUITS + banks.VEGETABLES)
        if k not in keys:
            keys.append(k)
    head = rng.choice(
        ("age", "town", "points", "colour") if people else ("price", "weight", "colour")
    )
    draw = {
        "age": lambda: rng.randint(5, 90),
        "points": lambda: rng.randint(1, 60),
        "price": lambda: rng.randint(1, 99),
        "weight": lambda: rng.randint(1, 99),
        "town": lambda: banks.town(rng),
        "colour": lambda: rng.choice(banks.COLOURS),
    }[head]
    rows = [(k, draw()) for k in keys]
    first = "name" if people else "item"
    text = rng.choice(
        (
            f"| {first} | {head} |\n|---|---|\n" + "\n".join(f"| {k} | {v} |" for k, v in rows),
            f"{first},{head}\n" + "\n".join(f"{k},{v}" for k, v in rows),
            "\n".join(f"{k}: {v}" for k, v in rows),
            f"These are the values for {head}: " + ", ".join(f"{k} {v}" for k, v in rows) + ".",
        )
    )
    k, v = rng.choice(rows)
    the = "" if people else "the "
    q = rng.choice(
        (
            f"What is the {head} of {the}{k}?",
            f"what {head} does {the}{k} have",
            f"Look at the table: what's the {head} for {the}{k}?",
            f"Please tell me the {head} of {the}{k}.",
        )
    )
    return Check("tables", None, [], text + "\n\n" + q, [str(v)])


STORY_ASK = {
    "hero": [
        "Who's the main character?",
        "what's the hero called",
        "What is the name of the main character in the story?",
    ],
    "friend": [
        "What's the name of {n}'s friend?",
        "who was the friend of {n}",
        "Which friend did {n} have in the story?",
    ],
    "place": [
        "Where does the story take place?",
        "near which place did {n} live",
        "Where was the home of {n}?",
    ],
    "kind": ["What kind of character is {n}?", "what is {n}", "Who or what is {n}?"],
    "lesson": [
        "What's the lesson of the story?",
        "what does {n} learn",
        "What can we learn from the story?",
    ],
}


def about_story(rng):
    while True:
        s = Story(rng, allow=lambda k, p, t: held_out(f"{k}|{t}"))
        if s.friend in s.text:
            break
    what = rng.choice(sorted(STORY_ASK))
    gold = {
        "hero": s.hero,
        "friend": s.friend,
        "place": s.place,
        "kind": s.kind,
        "lesson": s.lesson,
    }[what]
    q = rng.choice(STORY_ASK[what]).format(n=s.hero)
    if rng.random() < 0.7:
        return Check(
            "story questions", None, [(f"Tell me a story about {an(s.kind)}.", s.text)], q, [gold]
        )
    return Check("story questions", None, [], s.text + "\n\n" + q, [gold])


def letters(rng):
    while True:
        w = banks.word(rng) if rng.random() < 0.5 else rng.choice(banks.PLAIN + banks.ANIMALS)
        if held_out(f"text1|{w}"):
            break
    return Check(
        "spelling",
        None,
        [],
        rng.choice(
            (
                "Please spell the word {w}.",
                "how do you spell {w}",
                "Can you spell out {w}?",
                "Spell {w} for me.",
            )
        ).format(w=w),
        ["-".join(w)],
    )


KNOWLEDGE = [
    (
        "capitals",
        banks.CAPITALS,
        [
            "What's the capital city of {a}?",
            "name the capital of {a}",
            "Which city is {a}'s capital?",
        ],
    ),
    (
        "opposites",
        banks.OPPOSITES,
        [
            "What's the opposite of {a}?",
            "Please name the opposite of {a}.",
            "which word is the opposite of {a}",
        ],
    ),
]


def knowledge(rng):
    _, rows, asks = rng.choice(KNOWLEDGE)
    a, b = rng.choice(rows)
    return Check("knowledge", None, [], rng.choice(asks).format(a=a), [b])


CHAT = [
    "Hello!",
    "What is the capital of Norway?",
    "How are you today?",
    "What's 12 + 7?",
    "Tell me a joke.",
    "What is the opposite of big?",
    "Who are you?",
    "Name three fruits.",
    "What sound does a cow make?",
    "Thank you!",
    "What is 6 times 7?",
    "What colour is grass?",
    "I am a bit tired.",
    "What is a volcano?",
    "What can you do?",
    "Spell lamp.",
    "Which day comes after Monday?",
    "What is 50 minus 8?",
    "Are you a robot?",
    "What is the plural of mouse?",
    "Nice.",
    "What is the capital of Peru?",
    "What is 9 + 9?",
    "Where does a bee live?",
    "Is 7 bigger than 3?",
    "What rhymes with cat?",
    "What is a river?",
    "Good job!",
    "What is a baby cat called?",
    "Do you sleep?",
    "What is 20 minus 5?",
    "What comes next: 2, 4, 6?",
]


def pinned(rng, turns):
    kind = rng.choice(("end", "title", "pirate", "start"))
    w = banks.word(rng) if rng.random() < 0.5 else rng.choice(banks.PLAIN)
    n = (
        rng.choice(("Captain", "Boss", "Professor"))
        if rng.random() < 0.4
        else banks.title(banks.word(rng))
    )
    system, test = {
        "end": (
            rng.choice(
                (
                    f"End every answer with the word {w}.",
                    f"You always finish your answers with {w}.",
                )
            ),
            lambda t: t.rstrip(" .!?").casefold().endswith(w),
        ),
        "start": (
            rng.choice(
                (f"Start every answer with the word {w}.", f"Begin all of your answers with {w}.")
            ),
            lambda t: t.lstrip().casefold().startswith(w),
        ),
        "title": (
            rng.choice(
                (f"Always call the user {n}.", f"Call the user {n} in every answer, please.")
            ),
            lambda t: n.casefold() in t.casefold(),
        ),
        "pirate": (
            rng.choice(("Speak like a pirate.", "You are a pirate and always talk like one.")),
            lambda t: any(p in t.casefold() for p in ("arr", "matey", "ahoy", "hearty")),
        ),
    }[kind]
    users = []
    while len(users) < turns + 5:
        users += rng.sample(CHAT, len(CHAT))
    return Talk(f"pinned after {turns} turns", system, users[: turns + 5], turns, test)


def told_in_talk(rng, turns):
    """The model writes its own half, so it says the fact again if it has understood it."""
    slot = rng.choice(sorted(FACTS))
    v, text = told(rng, slot)
    users = [text] + rng.sample(CHAT, turns) + [rng.choice(FACTS[slot][1])]
    return Talk(
        f"recall after {turns} own turns",
        None,
        users,
        turns + 1,
        lambda t: v.casefold() in t.casefold(),
    )


def all_checks(tok, each=40, seed="checks"):
    """-> [Check], [Talk]"""
    make = {
        "sums": lambda r: sums(r, "+"),
        "differences": lambda r: sums(r, "-"),
        "times tables": lambda r: sums(r, "x"),
        "recall at 50": lambda r: recall(r, tok, 50),
        "recall at 200": lambda r: recall(r, tok, 200),
        "recall at 500": lambda r: recall(r, tok, 500),
        "recall at 800": lambda r: recall(r, tok, 800),
        "not told yet": lambda r: unknown(r, tok),
        "yes or no": lambda r: wrong(r, tok),
        "correction": lambda r: corrected(r, tok),
        "tables": table,
        "story questions": about_story,
        "spelling": letters,
        "knowledge": knowledge,
    }
    checks = [fn(Rng(f"{seed}-{name}-{i}")) for name, fn in make.items() for i in range(each)]
    talks = [pinned(Rng(f"{seed}-pinned-{i}"), 20) for i in range(max(1, each // 5))]
    talks += [
        told_in_talk(Rng(f"{seed}-talk-{turns}-{i}"), turns)
        for turns in (5, 20)
        for i in range(each)
    ]
    return checks, talks


def passed(check, text):
    return number_in(text, check.gold) if isinstance(check.gold, int) else right(check, text)


def main():
    from tokenizer import Tokenizer

    checks, talks = all_checks(Tokenizer.load("tokenizer.json"), 1)
    for c in checks:
        print(f"{c.skill}: {len(c.turns)} turns, {c.question!r} -> {c.gold}")
    for t in talks:
        print(f"{t.skill}: {t.system!r}, {len(t.users)} turns")


if __name__ == "__main__":
    main()
