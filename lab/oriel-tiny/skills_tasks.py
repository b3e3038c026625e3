"""Small tables of knowledge, and tasks with words and letters.

Every function takes a Dialogue and adds one or more turns to it.
"""
import banks
from banks import NUMBER, an, join
from facts import cap

# -- (e) tables -------------------------------------------------------------


# Large tables come more often than small ones.
KINDS = (0, 0, 0, 0, 1, 2, 2, 3, 3, 4, 4, 4, 4, 4, 4, 6, 6, 7, 7, 8, 9, 9, 10, 11, 11, 11)


def tables(d):
    x = d.c(KINDS)
    if x == 0:
        a, b = d.c(banks.OPPOSITES)
        if d.p(0.4) and dict(banks.OPPOSITES).get(b, a) == a:
            a, b = b, a
        d.add(
            d.c(
                f"What is the opposite of {a}?",
                f"Tell me the opposite of {a}.",
                f"What is the reverse of {a}?",
                f"{cap(a)} is the opposite of what?",
                f"{cap(a)} is the opposite of which word?",
                f"Opposite of {a}?",
                f"Which word means the opposite of {a}?",
                f"Give me the opposite of {a}.",
                f"Do you know the opposite of {a}?",
            ),
            d.reply([f"The opposite of {a} is {b}."], [cap(b) + "."]),
            "opposite",
            b if not d.short else None,
        )
    elif x == 1:
        a, b = d.c(banks.SOUNDS)
        d.add(
            d.c(
                f"What sound does {an(a)} make?",
                f"What does {an(a)} say?",
                f"How does {an(a)} sound?",
                f"Which noise does {an(a)} make?",
            ),
            d.reply([f"{cap(an(a))} goes {b}.", f"{cap(an(a))} says {b}."], [cap(b) + "."]),
            "sound",
            b[1:],
        )
    elif x == 2:
        a, b = d.c(banks.THING_COLOURS)
        be = "are" if a == "rain clouds" else "is"
        d.add(
            d.c(
                f"What colour {be} {a}?",
                f"Which colour does {a} have?" if be == "is" else f"What colour {be} {a}?",
                f"Tell me the colour of {a}.",
            ),
            d.reply([f"{cap(a)} {be} {b}."], [cap(b) + "."]),
            "colour",
            b[1:],
        )
    elif x == 3:
        a, b = d.c(banks.PLURALS)
        d.add(
            d.c(
                f"What is the plural of {a}?",
                f"One {a}, two ...?",
                f"How do you say more than one {a}?",
                f"Plural of {a}?",
            ),
            d.reply([f"The plural of {a} is {b}.", f"One {a}, two {b}."], [cap(b) + "."]),
            "plural",
            b[1:],
        )
    elif x == 4:
        a, b = d.c(banks.CAPITALS)
        if d.p(0.6):
            d.add(
                d.c(
                    f"What is the capital of {a}?",
                    f"Which city is the capital of {a}?",
                    f"Tell me the capital of {a}.",
                    f"Capital of {a}?",
                    f"Do you know the capital of {a}?",
                    f"And the capital of {a}?",
                    f"Name the capital city of {a}.",
                    f"What city is the capital of {a}?",
                    f"I need the capital of {a}.",
                ),
                d.reply([f"The capital of {a} is {b}."], [b + "."]),
                "capital",
                b,
            )
        else:
            d.add(
                d.c(
                    f"Which country has the capital {b}?",
                    f"{b} is the capital of which country?",
                    f"Of which country is {b} the capital?",
                    f"In which country is {b}?",
                    f"Where is {b}?",
                ),
                d.reply([f"{b} is the capital of {a}.", f"{b} is in {a}."], [cap(a) + "."]),
                "capital",
                a[1:],
                names=True,
            )
    elif x == 6:
        a, b = d.c(banks.DEFINITIONS)
        d.add(
            d.c(
                f"What is {a}?",
                f"Can you explain what {a} is?",
                f"What does {a.split(' ', 1)[-1] if a.split()[0] in ('a', 'an', 'the') else a} mean?",
                f"Do you know what {a} is?",
                f"Define {a}.",
            ),
            d.reply([f"{cap(a)} is {b}."], [cap(b) + "."]),
            "definition",
            b[1:],
        )
    elif x == 7:
        a, b = d.c(banks.PAST)
        d.add(
            d.c(
                f"What is the past of {a}?",
                f"Put {a} into the past.",
                f"Today I {a}, yesterday I ...?",
                f"What is the past tense of {a}?",
            ),
            d.reply([f"The past of {a} is {b}.", f"Today I {a}, yesterday I {b}."], [cap(b) + "."]),
            "past tense",
            b[1:],
        )
    elif x == 8:
        a, b = d.c(banks.BABIES)
        d.add(
            d.c(
                f"What is a baby {a} called?",
                f"What do you call a young {a}?",
                f"How is a baby {a} called?",
            ),
            d.reply(
                [f"A baby {a} is called {an(b)}.", f"A young {a} is {an(b)}."], [cap(an(b)) + "."]
            ),
            "baby animal",
            b,
        )
    elif x == 9:
        if d.p(0.5):
            a, b = d.c(banks.HOMES)
            d.add(
                d.c(f"Where does {an(a)} live?", f"What is the home of {an(a)}?"),
                d.reply(
                    [
                        f"{cap(an(a))} lives in {b if b in ('water',) else ('the ' if b in ('desert', 'cold south', 'jungle', 'ocean') else '') + (b if b in ('desert', 'cold south', 'jungle', 'ocean') else an(b))}."
                    ],
                    [cap(b) + "."],
                ),
                "home",
                b[1:],
            )
        else:
            a, b = d.c(banks.LEGS)
            d.add(
                d.c(f"How many legs does {an(a)} have?", f"How many legs has {an(a)}?"),
                d.reply([f"{cap(an(a))} has {b} legs."], [cap(b) + "."]),
                "legs",
                b[1:],
            )
    elif x == 10:
        a, b = d.c(banks.TOOLS)
        d.add(
            d.c(
                f"What is {an(a)} for?" if a != "scissors" else "What are scissors for?",
                f"What do you do with {an(a)}?"
                if a != "scissors"
                else "What do you do with scissors?",
                f"Why do people need {an(a)}?"
                if a != "scissors"
                else "Why do people need scissors?",
            ),
            d.reply(
                [
                    f"You use {an(a)} to {b}."
                    if a not in ("scissors", "soap")
                    else f"You use {a} to {b}."
                ],
                [f"To {b}."],
            ),
            "use of",
            b,
        )
    else:
        k = d.c("fruit", "vegetable", "animal", "vehicle", "instrument", "colour", "metal", "job")
        src = {
            "fruit": banks.FRUITS,
            "vegetable": banks.VEGETABLES,
            "animal": banks.ANIMALS,
            "vehicle": banks.VEHICLES,
            "instrument": banks.INSTRUMENTS,
            "colour": banks.COLOURS[:10],
            "metal": banks.METALS[:5],
            "job": banks.JOBS,
        }
        k2 = d.c([z for z in src if z != k])
        w = d.c(src[k])
        if w in src[k2]:
            k2 = k
        o = d.c([z for z in src if z not in (k, k2) and w not in src[z]])
        o1, o2 = (k, o) if d.p(0.5) else (o, k)
        d.add(
            d.c(f"Is {w} {an(o1)} or {an(o2)}?", f"What is {w}, {an(o1)} or {an(o2)}?"),
            d.reply([f"{cap(w)} is {an(k)}."], [cap(an(k)) + "."]),
            "category",
            k[1:],
        )


# -- (f) text tasks ---------------------------------------------------------


POOL = banks.PLAIN + banks.ANIMALS + banks.FRUITS + banks.SHE[:20] + banks.HE[:20]
EVERY = sorted(
    {
        w
        for w in POOL
        + banks.VEGETABLES
        + banks.CITIES
        + banks.NUMBER
        + banks.SHE
        + banks.HE
        + banks.VEHICLES
        + banks.CLOTHES
        + banks.INSTRUMENTS
        + banks.JOBS
        + banks.COLOURS
        + [t for t, _ in banks.TOOLS]
    }
)


def some_words(d, low, high):
    """Words for a list task: known, coined, or both; none twice."""
    n, x = d.rng.randint(low, high), d.rng.random()
    if x < 0.45:
        return d.rng.sample(banks.PLAIN if d.p(0.5) else EVERY, n)
    out = []
    while len(out) < n:
        w = banks.word(d.rng) if d.p(0.5 if x < 0.7 else 1) else d.c(EVERY)
        if w not in out:
            out.append(w)
    return out


def text_word(d, x):
    """A word that this split may use in task x."""
    y = d.rng.random()
    return d.draw(
        lambda: (lambda w: (f"text{x}|{w}", w))(
            d.c(POOL)
            if y < 0.25
            else d.c(EVERY)
            if y < 0.5
            else banks.word(d.rng)
            if y < 0.85
            else banks.first_name(d.rng).replace("-", "")
        )
    )


def repeat_words(d):
    s = text_word(d, 0) if d.p(0.35) else " ".join(some_words(d, 2, 6))
    d.add(
        d.c(
            f"Repeat: {s}",
            f"Say {s}.",
            f"Please repeat the words {s}." if " " in s else f"Please repeat the word {s}.",
            f"Repeat after me: {s}",
            f"Say: {s}",
            f"Echo {s}",
            f'Repeat "{s}"',
        ),
        s,
        "repeat",
        s,
        names=True,
        title=False,
    )


def spell(d):
    w = text_word(d, 1)
    r = "-".join(w.lower())
    x = d.rng.random()
    if x < 0.7:
        d.add(
            d.c(
                f"Spell {w}.",
                f"How do you spell {w}?",
                f"Spell the word {w}.",
                f"Can you spell {w}?",
                f"Spell {w} letter by letter.",
                f"How is {w} spelled?",
                f"How do you write {w}?",
                f'Spell "{w}".',
                f"What are the letters of {w}?",
                f"Which letters are in {w}?",
                f"Say the letters of {w}.",
                f"Tell me how to spell {w}.",
            ),
            d.c(f"{r}.", f"{cap(w)}: {r}."),
            "spell",
            r,
            names=True,
        )
    elif x < 0.85:
        b = "-".join(w.lower()[::-1])
        d.add(
            d.c(
                f"Spell {w} backwards.",
                f"Spell the word {w} backwards.",
                f"How do you spell {w} backwards?",
                f"Say the letters of {w} in reverse.",
                f"Reverse the letters of {w}.",
            ),
            f"{r} backwards is {b}.",
            "spell backwards",
            b,
            names=True,
        )
    else:
        d.add(
            d.c(
                f"How many letters are in {w}?",
                f"How many letters does {w} have?",
                f"Count the letters of {w}.",
                f"How long is the word {w}?",
            ),
            f"{r}: {len(w.replace('-', ''))} letters.",
            "count letters",
            f"{len(w.replace('-', ''))} letter",
            names=True,
        )


def join_letters(d):
    w = text_word(d, 2).lower()
    d.add(
        d.c(
            f"Which word is {'-'.join(w)}?",
            f"What word do these letters make: {', '.join(w)}?",
            f"What does {'-'.join(w)} spell?",
            f"Put these letters together: {' '.join(w)}",
        ),
        f"{w}.",
        "join letters",
        w,
        names=True,
    )


def letter(d):
    w = text_word(d, 3)
    i = d.c(0, 0, -1, -1, 1, 2)
    i = i if i < len(w) else 0
    which = {0: "first", -1: "last", 1: "second", 2: "third"}[i]
    r = w[i].lower()
    x = d.rng.random()
    q = d.c(
        f"What is the {which} letter of {w}?",
        f"Which is the {which} letter of {w}?",
        f"Tell me the {which} letter of {w}.",
        f"What is the {which} letter in {w}?",
    )
    if i in (0, -1) and x < 0.4:
        q = d.c(
            f"Which letter does {w} {'start' if i == 0 else 'end'} with?",
            f"With which letter does {w} {'begin' if i == 0 else 'end'}?",
            f"What letter does {w} {'begin' if i == 0 else 'end'} with?",
        )
    d.add(
        q, d.reply([f"The {which} letter of {w} is {r}."], [f"{r}."]), "letter", f"{r}.", names=True
    )


def reverse_list(d):
    ws = some_words(d, 2, 6)
    d.add(
        d.c(
            "Reverse this list: {}.",
            "Say this backwards: {}.",
            "Turn this list around: {}.",
            "Reverse: {}",
            "Put this list in reverse order: {}.",
            "Say these words in reverse order: {}.",
        ).format(", ".join(ws)),
        ", ".join(ws[::-1]) + ".",
        "reverse list",
        ", ".join(ws[::-1]),
        names=True,
    )


def name_some(d):
    k = d.c(list(banks.CATEGORIES))
    n = d.rng.randint(2, 6)
    # Always in the order of the bank: a model that follows it cannot repeat an item.
    ws = sorted(d.rng.sample(banks.CATEGORIES[k], n), key=banks.CATEGORIES[k].index)
    d.add(
        d.c(
            f"Name {NUMBER[n]} {k}.",
            f"List {n} {k}.",
            f"Give me {NUMBER[n]} {k}.",
            f"Tell me {NUMBER[n]} {k}.",
            f"I need {n} {k}.",
            f"Can you name {NUMBER[n]} {k}?",
            f"Name {n} {k}.",
            f"Make a list of {NUMBER[n]} {k}.",
        ),
        d.c(f"{cap(join(ws))}.", ", ".join(ws) + "."),
        f"list:{k}:{n}",
        None,
    )


def rhyme(d):
    g = d.c(banks.RHYMES)
    a, b = d.rng.sample(g, 2)
    d.add(
        d.c(
            f"What rhymes with {a}?",
            f"Find a rhyme for {a}.",
            f"Give me a word that rhymes with {a}.",
            f"Which word rhymes with {a}?",
        ),
        d.reply([f"{cap(b)} rhymes with {a}.", f"{cap(a)} rhymes with {b}."], [cap(b) + "."]),
        "rhyme",
    )


def count_words(d):
    ws = some_words(d, 2, 7)
    d.add(
        d.c(
            "How many words are in this list: {}?",
            "Count these words: {}.",
            "How many words are these: {}?",
        ).format(", ".join(ws)),
        d.reply([f"There are {NUMBER[len(ws)]} words."], [cap(NUMBER[len(ws)]) + "."]),
        "count words",
        NUMBER[len(ws)][1:],
        names=True,
    )


def pick_word(d):
    ws = some_words(d, 3, 5)
    i = d.c(0, 1, 2, -1)
    which = ("first", "second", "third", "last")[i]
    d.add(
        d.c(
            f"What is the {which} word in this list: {', '.join(ws)}?",
            f"Which word is the {which}: {', '.join(ws)}?",
            f"Tell me the {which} word: {', '.join(ws)}.",
        ),
        d.reply([f"The {which} word is {ws[i]}."], [cap(ws[i]) + "."]),
        "pick word",
        ws[i][1:],
        names=True,
    )


TEXT_TASKS = [
    (repeat_words, 3),
    (spell, 6),
    (join_letters, 1),
    (letter, 3),
    (reverse_list, 3),
    (name_some, 4),
    (rhyme, 1),
    (count_words, 1),
    (pick_word, 1),
]


def text_task(d, tasks=TEXT_TASKS):
    d.rng.choices([t for t, _ in tasks], [w for _, w in tasks])[0](d)
