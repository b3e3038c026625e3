"""Numbers, small tables and text tasks.

Every function takes a Dialogue and adds one or more turns to it.
"""
import banks
import coined
from banks import NUMBER, an, join
from stories import cap

# -- (d) numbers ------------------------------------------------------------


def arithmetic(d, ops=("+", "+", "-", "-", "x")):
    op = d.c(ops)

    def pick():
        if op == "+":
            a = d.rng.randint(0, 99)
            b = d.rng.randint(0, 100 - a)
            if d.p(0.5):
                a, b = b, a
        elif op == "-":
            a = d.rng.randint(1, 100)
            b = d.rng.randint(0, a)
        else:
            a, b = d.rng.randint(1, 12), d.rng.randint(1, 12)
        return (f"{a}{op}{b}" if op != "x" else f"{op}{a}"), (a, b)

    a, b = d.draw(pick) if op != "x" else pick()[1]
    r = {"+": a + b, "-": a - b, "x": a * b}[op]
    w = {"+": d.c("plus", "+", "and"), "-": d.c("minus", "-"), "x": d.c("times", "x", "*")}[op]
    e = f"{a} {w} {b}"
    q = d.c(f"What is {e}?", f"{e}", f"{e} = ?", f"How much is {e}?", f"Calculate {e}.",
            f"Can you tell me what {e} is?", f"What do you get for {e}?", f"And {e}?")
    if w == "and":
        q = f"What is the sum of {a} and {b}?" if d.p(0.5) else f"Add {a} and {b}."
        w = "plus"
    elif d.p(0.12):
        t = d.c("apples", "coins", "marbles", "books", "cookies", "flowers", "stamps", "eggs")
        n = d.c(banks.SHE + banks.HE) if d.p(0.5) else coined.first_name(d.rng)
        q = {
            "+": f"{n} has {a} {t} and gets {b} more. How many {t} are there now?",
            "-": f"{n} has {a} {t} and gives away {b}. How many {t} are left?",
            "x": f"There are {a} boxes with {b} {t} each. How many {t} are there?"
        }[op]
    sym = {"+": "plus", "-": "minus", "x": "times"}[op]
    d.add(
        q,
        d.reply([
            f"{a} {sym} {b} is {r}.", f"{a} {sym} {b} is {r}.", f"That is {r}.",
            f"{a} {w} {b} = {r}."
        ], [f"{r}.", f"{r}."]), {
            "+": "addition",
            "-": "subtraction",
            "x": "times table"
        }[op], r)


def compare(d):
    a, b = d.draw(lambda: (lambda a, b: (f"cmp{a}|{b}", (a, b)))
                  (d.rng.randint(0, 99), d.rng.randint(0, 99)))
    if a == b:
        b = a + 1
    hi, lo = max(a, b), min(a, b)
    if d.p(0.6):
        big = d.p(0.6)
        r = hi if big else lo
        wd = d.c("bigger", "larger", "greater", "more") if big else d.c("smaller", "less")
        d.add(d.c(f"Which is {wd}, {a} or {b}?", f"What is {wd}: {a} or {b}?"),
              d.reply([f"{r} is {wd} than {lo if big else hi}.", f"{r} is {wd}."], [f"{r}."]),
              "compare", r)
    else:
        big = d.p(0.5)
        ok = (a > b) == big
        wd = d.c("bigger", "larger") if big else "smaller"
        d.add(f"Is {a} {wd} than {b}?",
              ("Yes, " if ok else "No, ") + (f"{a} is {wd} than {b}." if ok else
                                             f"{a} is {'smaller' if big else 'bigger'} than {b}."),
              "compare", "Yes" if ok else "No")


def sequence(d, part=(0.0, 1.0)):
    x = d.rng.uniform(*part)
    if x < 0.3:
        s, st = d.rng.randint(0, 60), d.c(1, 2, 2, 3, 5, 10)
        n = [s + st * i for i in range(d.rng.randint(3, 4))]
        r = n[-1] + st
        d.add(
            d.c("What comes next: {}?", "Which number comes next? {}", "{}, what is next?",
                "Continue: {}.").format(", ".join(map(str, n))),
            d.reply([f"The next number is {r}.", f"{r} comes next."], [f"{r}."]), "sequence", r)
    elif x < 0.5:
        a = d.rng.randint(0, 80)
        n = d.rng.randint(3, 10)
        up = d.p(0.5) or a < n
        r = list(range(a, a + n)) if up else list(range(a, a - n, -1))
        d.add(
            d.c(f"Count from {r[0]} to {r[-1]}.", f"Please count from {r[0]} to {r[-1]}.",
                f"Can you count from {r[0]} to {r[-1]}?"), ", ".join(map(str, r)) + ".", "counting",
            ", ".join(map(str, r)))
    elif x < 0.63:
        a = d.rng.randint(1, 99)
        up = d.p(0.5)
        d.add(
            f"Which number comes {'after' if up else 'before'} {a}?",
            d.reply([f"{a + 1 if up else a - 1} comes {'after' if up else 'before'} {a}."],
                    [f"{a + 1 if up else a - 1}."]), "sequence", a + 1 if up else a - 1)
    elif x < 0.78:
        seq, kind = d.c((banks.DAYS, "day"), (banks.MONTHS, "month"), (banks.SEASONS, "season"))
        i = d.rng.randrange(len(seq))
        up = d.p(0.6)
        r = seq[(i + (1 if up else -1)) % len(seq)]
        d.add(
            d.c(f"Which {kind} comes {'after' if up else 'before'} {seq[i]}?",
                f"What {kind} is {'after' if up else 'before'} {seq[i]}?"),
            d.reply([
                f"{cap(r)} comes {'after' if up else 'before'} {seq[i]}.",
                f"The {kind} {'after' if up else 'before'} {seq[i]} is {r}."
            ], [cap(r) + "."]), "order", cap(r))
    elif x < 0.86:
        q, a, g = d.c([
            ("How many days are in a week?", "There are seven days in a week.", "seven"),
            ("How many months are in a year?", "There are twelve months in a year.", "twelve"),
            ("How many hours are in a day?", "There are 24 hours in a day.", "24"),
            ("How many minutes are in an hour?", "There are 60 minutes in an hour.", "60"),
            ("Name the days of the week.", join(banks.DAYS) + ".", "Sunday"),
            ("Name the months of the year.", join(banks.MONTHS) + ".", "December"),
            ("Name the four seasons.", "Spring, summer, autumn and winter.", "winter"),
            ("How many seconds are in a minute?", "There are 60 seconds in a minute.", "60"),
            ("How many legs does a table have?", "Most tables have four legs.", "four"),
            ("How many fingers do I have?", "Most people have ten fingers.", "ten"),
            ("Say the alphabet.", "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z.", "X Y Z")
        ])
        d.add(q, a, "order", g)
    else:
        a = d.rng.randint(1, 99)
        e = a % 2 == 0
        d.add(
            d.c(f"Is {a} even or odd?",
                f"Is {a} an even number?" if e else f"Is {a} an odd number?"),
            f"{a} is {'even' if e else 'odd'}.", "even/odd", "even" if e else "odd")


# -- (e) tables -------------------------------------------------------------


def tables(d):
    x = d.rng.randrange(12)
    if x == 0:
        a, b = d.c(banks.OPPOSITES)
        if d.p(0.4) and dict(banks.OPPOSITES).get(b, a) == a:
            a, b = b, a
        d.add(
            d.c(f"What is the opposite of {a}?", f"Tell me the opposite of {a}.",
                f"What is the reverse of {a}?", f"{cap(a)} is the opposite of what?",
                f"Opposite of {a}?", f"Do you know the opposite of {a}?"),
            d.reply([f"The opposite of {a} is {b}."], [cap(b) + "."]), "opposite",
            b if not d.short else None)
    elif x == 1:
        a, b = d.c(banks.SOUNDS)
        d.add(
            d.c(f"What sound does {an(a)} make?", f"What does {an(a)} say?",
                f"How does {an(a)} sound?", f"Which noise does {an(a)} make?"),
            d.reply([f"{cap(an(a))} goes {b}.", f"{cap(an(a))} says {b}."], [cap(b) + "."]),
            "sound", b[1:])
    elif x == 2:
        a, b = d.c(banks.THING_COLOURS)
        be = "are" if a == "rain clouds" else "is"
        d.add(
            d.c(f"What colour {be} {a}?",
                f"Which colour does {a} have?" if be == "is" else f"What colour {be} {a}?",
                f"Tell me the colour of {a}."), d.reply([f"{cap(a)} {be} {b}."], [cap(b) + "."]),
            "colour", b[1:])
    elif x == 3:
        a, b = d.c(banks.PLURALS)
        d.add(
            d.c(f"What is the plural of {a}?", f"One {a}, two ...?",
                f"How do you say more than one {a}?", f"Plural of {a}?"),
            d.reply([f"The plural of {a} is {b}.", f"One {a}, two {b}."], [cap(b) + "."]), "plural",
            b[1:])
    elif x == 4 or x == 5:
        a, b = d.c(banks.CAPITALS)
        if d.p(0.75):
            d.add(
                d.c(f"What is the capital of {a}?", f"Which city is the capital of {a}?",
                    f"Tell me the capital of {a}.", f"Capital of {a}?",
                    f"Do you know the capital of {a}?", f"And the capital of {a}?"),
                d.reply([f"The capital of {a} is {b}."], [b + "."]), "capital", b)
        else:
            d.add(
                d.c(f"Which country has the capital {b}?", f"{b} is the capital of which country?",
                    f"In which country is {b}?"),
                d.reply([f"{b} is the capital of {a}.", f"{b} is in {a}."], [cap(a) + "."]),
                "capital", a[1:], names=True)
    elif x == 6:
        a, b = d.c(banks.DEFINITIONS)
        d.add(
            d.c(
                f"What is {a}?", f"Can you explain what {a} is?",
                f"What does {a.split(' ', 1)[-1] if a.split()[0] in ('a', 'an', 'the') else a} mean?",
                f"Do you know what {a} is?", f"Define {a}."),
            d.reply([f"{cap(a)} is {b}."], [cap(b) + "."]), "definition", b[1:])
    elif x == 7:
        a, b = d.c(banks.PAST)
        d.add(
            d.c(f"What is the past of {a}?", f"Put {a} into the past.",
                f"Today I {a}, yesterday I ...?", f"What is the past tense of {a}?"),
            d.reply([f"The past of {a} is {b}.", f"Today I {a}, yesterday I {b}."], [cap(b) + "."]),
            "past tense", b[1:])
    elif x == 8:
        a, b = d.c(banks.BABIES)
        d.add(
            d.c(f"What is a baby {a} called?", f"What do you call a young {a}?",
                f"How is a baby {a} called?"),
            d.reply([f"A baby {a} is called {an(b)}.", f"A young {a} is {an(b)}."],
                    [cap(an(b)) + "."]), "baby animal", b)
    elif x == 9:
        if d.p(0.5):
            a, b = d.c(banks.HOMES)
            d.add(
                d.c(f"Where does {an(a)} live?", f"What is the home of {an(a)}?"),
                d.reply([
                    f"{cap(an(a))} lives in {b if b in ('water',) else ('the ' if b in ('desert', 'cold south', 'jungle', 'ocean') else '') + (b if b in ('desert', 'cold south', 'jungle', 'ocean') else an(b))}."
                ], [cap(b) + "."]), "home", b[1:])
        else:
            a, b = d.c(banks.LEGS)
            d.add(d.c(f"How many legs does {an(a)} have?", f"How many legs has {an(a)}?"),
                  d.reply([f"{cap(an(a))} has {b} legs."], [cap(b) + "."]), "legs", b[1:])
    elif x == 10:
        a, b = d.c(banks.TOOLS)
        d.add(
            d.c(
                f"What is {an(a)} for?" if a != "scissors" else "What are scissors for?",
                f"What do you do with {an(a)}?" if a != "scissors" else
                "What do you do with scissors?", f"Why do people need {an(a)}?"
                if a != "scissors" else "Why do people need scissors?"),
            d.reply([
                f"You use {an(a)} to {b}." if a not in ("scissors",
                                                        "soap") else f"You use {a} to {b}."
            ], [f"To {b}."]), "use of", b)
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
            "job": banks.JOBS
        }
        k2 = d.c([z for z in src if z != k])
        w = d.c(src[k])
        if w in src[k2]:
            k2 = k
        o = d.c([z for z in src if z not in (k, k2) and w not in src[z]])
        o1, o2 = (k, o) if d.p(0.5) else (o, k)
        d.add(d.c(f"Is {w} {an(o1)} or {an(o2)}?", f"What is {w}, {an(o1)} or {an(o2)}?"),
              d.reply([f"{cap(w)} is {an(k)}."], [cap(an(k)) + "."]), "category", k[1:])


# -- (f) text tasks ---------------------------------------------------------


POOL = banks.PLAIN + banks.ANIMALS + banks.FRUITS + banks.SHE[:20] + banks.HE[:20]
EVERY = sorted({w for w in POOL + banks.VEGETABLES + banks.CITIES + banks.NUMBER + banks.SHE + banks.HE + banks.VEHICLES
                + banks.CLOTHES + banks.INSTRUMENTS + banks.JOBS + banks.COLOURS + [t for t, _ in banks.TOOLS]})


def some_words(d, low, high):
    """Words for a list task: known, coined, or both; none twice."""
    n, x = d.rng.randint(low, high), d.rng.random()
    if x < 0.45:
        return d.rng.sample(banks.PLAIN if d.p(0.5) else EVERY, n)
    out = []
    while len(out) < n:
        w = coined.word(d.rng) if d.p(0.5 if x < 0.7 else 1) else d.c(EVERY)
        if w not in out:
            out.append(w)
    return out


def text_task(d, kinds=tuple(range(11))):
    x = d.c(kinds)
    y = d.rng.random()
    w = d.draw(lambda: (lambda w: (f"text{x}|{w}", w))
               (d.c(POOL) if y < 0.3 else d.c(EVERY) if y < 0.55 else
                coined.word(d.rng) if y < 0.85 else coined.first_name(d.rng)))
    if x == 0:
        s = w if d.p(0.4) else " ".join(some_words(d, 2, 6))
        d.add(
            d.c(f"Repeat: {s}", f"Say {s}.",
                f"Please repeat the words {s}." if " " in s else f"Please repeat the word {s}.",
                f"Repeat after me: {s}"), s, "repeat", s, names=True, title=False)
    elif x in (1, 2):
        r = "-".join(w.lower())
        d.add(
            d.c(f"Spell {w}.", f"How do you spell {w}?", f"Spell the word {w}.",
                f"Can you spell {w}?", f"Spell {w} letter by letter."),
            d.c(f"{r}.", f"{cap(w)}: {r}."), "spell", r, names=True)
    elif x == 3:
        i = d.p(0.6)
        r = (w[0] if i else w[-1]).lower()
        d.add(
            d.c(f"What is the {'first' if i else 'last'} letter of {w}?",
                f"Which letter does {w} {'start' if i else 'end'} with?"),
            d.reply([
                f"The {'first' if i else 'last'} letter of {w} is {r}.",
                f"{cap(w)} {'starts' if i else 'ends'} with {r}."
            ], [f"{r}."]), "letter", f"{r}." if not d.title else None, names=True)
    elif x == 4:
        ws = some_words(d, 2, 5)
        d.add(
            d.c("Reverse this list: {}.", "Say this backwards: {}.",
                "Turn this list around: {}.").format(", ".join(ws)), ", ".join(ws[::-1]) + ".",
            "reverse list", ", ".join(ws[::-1]))
    elif x in (5, 6):
        k = d.c(list(banks.CATEGORIES)[:9])
        n = d.rng.randint(2, 6)
        # Always in the order of the bank: a model that follows it cannot repeat an item.
        ws = sorted(d.rng.sample(banks.CATEGORIES[k], n), key=banks.CATEGORIES[k].index)
        d.add(
            d.c(f"Name {NUMBER[n]} {k}.", f"List {n} {k}.", f"Give me {NUMBER[n]} {k}.",
                f"Tell me {NUMBER[n]} {k}.", f"I need {n} {k}."),
            d.c(f"{cap(join(ws))}.", ", ".join(ws) + "."), f"list:{k}:{n}", None)
    elif x == 7:
        g = d.c(banks.RHYMES)
        a, b = d.rng.sample(g, 2)
        d.add(
            d.c(f"What rhymes with {a}?", f"Find a rhyme for {a}.",
                f"Give me a word that rhymes with {a}."),
            d.reply([f"{cap(b)} rhymes with {a}.", f"{cap(a)} rhymes with {b}."], [cap(b) + "."]),
            "rhyme")
    elif x == 8:
        ns = d.rng.sample(range(1, 100), d.rng.randint(3, 4))
        m = d.c("big", "small", "sort")
        if m == "sort":
            r = ", ".join(map(str, sorted(ns)))
            d.add(
                d.c("Sort these numbers: {}.",
                    "Put these in order: {}.").format(", ".join(map(str, ns))), r + ".", "sort", r)
        else:
            r = max(ns) if m == "big" else min(ns)
            d.add(
                f"What is the {d.c('biggest', 'largest') if m == 'big' else 'smallest'} number: {join(ns, 'or')}?",
                d.reply([f"The {'biggest' if m == 'big' else 'smallest'} number is {r}."],
                        [f"{r}."]), "max/min", r)
    elif x == 9:
        ws = some_words(d, 2, 6)
        d.add(
            d.c("How many words are in this list: {}?",
                "Count these words: {}.").format(", ".join(ws)),
            d.reply([f"There are {NUMBER[len(ws)]} words."], [cap(NUMBER[len(ws)]) + "."]),
            "count words", NUMBER[len(ws)][1:])
    else:
        ws = some_words(d, 3, 4)
        i = d.rng.randrange(3)
        d.add(
            f"What is the {('first', 'second', 'third')[i]} word in this list: {', '.join(ws)}?",
            d.reply([f"The {('first', 'second', 'third')[i]} word is {ws[i]}."],
                    [cap(ws[i]) + "."]), "pick word", ws[i][1:])
