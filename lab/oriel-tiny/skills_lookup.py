"""Small tables, lists and texts given in the prompt, with questions about them."""
import banks
from banks import an
from facts import cap
from skills_memory import filler


def _names(d, n):
    out = []
    while len(out) < n:
        x = d.rng.random()
        w = d.c(banks.SHE + banks.HE) if x < 0.4 else banks.first_name(d.rng)
        if w not in out:
            out.append(w)
    return out


def _goods(d, n):
    out = []
    while len(out) < n:
        w = (
            d.c(banks.FRUITS + banks.VEGETABLES + banks.CLOTHES + banks.PLAIN + banks.DRINKS)
            if d.p(0.7)
            else banks.word(d.rng)
        )
        if w not in out:
            out.append(w)
    return out


TOWN = lambda d: banks.town(d.rng) if d.p(0.5) else d.c(banks.CITIES)
# column: (heading, drawer, answer with K the row and V the value, questions with K)
PERSON_COLUMNS = [
    (
        "age",
        lambda d: d.rng.randint(4, 99),
        "K is V years old.",
        ["How old is K?", "What is the age of K?", "What is K's age?"],
    ),
    (
        "town",
        TOWN,
        "K lives in V.",
        ["Where does K live?", "Which town does K live in?", "What is K's town?"],
    ),
    (
        "city",
        TOWN,
        "K lives in V.",
        ["Where does K live?", "Which city does K live in?", "What is K's city?"],
    ),
    (
        "score",
        lambda d: d.rng.randint(0, 100),
        "K's score is V.",
        [
            "What is K's score?",
            "Which score does K have?",
            "How many points does K have?",
            "What score did K get?",
        ],
    ),
    (
        "points",
        lambda d: d.rng.randint(0, 60),
        "K has V points.",
        ["How many points does K have?", "What is K's score?"],
    ),
    (
        "pet",
        lambda d: d.c(banks.PETS),
        "K's pet is V.",
        ["Which pet does K have?", "What is K's pet?", "What pet does K have?"],
    ),
    (
        "colour",
        lambda d: d.c(banks.COLOURS),
        "K's colour is V.",
        ["What is K's colour?", "Which colour does K have?", "What colour does K have?"],
    ),
    (
        "job",
        lambda d: d.c(banks.JOBS),
        "K's job is V.",
        ["What is K's job?", "Which job does K have?", "What does K do?"],
    ),
    (
        "room",
        lambda d: d.rng.randint(1, 400),
        "K's room is V.",
        ["Which room is K in?", "What is K's room?", "What is the room of K?"],
    ),
    (
        "food",
        lambda d: d.c(banks.FOODS),
        "K's food is V.",
        ["What does K eat?", "What is K's food?", "Which food does K have?"],
    ),
    (
        "sport",
        lambda d: d.c(banks.SPORTS),
        "K's sport is V.",
        ["Which sport does K play?", "What is K's sport?"],
    ),
]
THING_COLUMNS = [
    (
        "price",
        lambda d: d.rng.randint(1, 99),
        "The price of the K is V.",
        [
            "What is the price of the K?",
            "How much is the K?",
            "How much does the K cost?",
            "What does the K cost?",
        ],
    ),
    (
        "count",
        lambda d: d.rng.randint(1, 99),
        "The count of the K is V.",
        ["What is the count of K?", "How many of the K are there?", "What is the count for the K?"],
    ),
    (
        "weight",
        lambda d: d.rng.randint(1, 99),
        "The weight of the K is V.",
        ["What is the weight of the K?", "How heavy is the K?", "How much does the K weigh?"],
    ),
    (
        "colour",
        lambda d: d.c(banks.COLOURS),
        "The colour of the K is V.",
        ["What is the colour of the K?", "Which colour is the K?", "What colour is the K?"],
    ),
    (
        "shelf",
        lambda d: d.rng.randint(1, 40),
        "The K is on shelf V.",
        ["On which shelf is the K?", "Which shelf is the K on?", "Where is the K?"],
    ),
    (
        "code",
        lambda d: banks.code(d.rng),
        "The code of the K is V.",
        [
            "What is the code of the K?",
            "Which code does the K have?",
            "What is the code for the K?",
        ],
    ),
]


# For any column: H its heading.
ASK = (
    "((What is|What's|Tell me|Give me|Find|I need|Please tell me|Do you see) the H (of|for|that belongs to) the K"
    "|(What|Which) H (does the K have|belongs to the K|stands (beside|next to|behind) the K|is given for the K)"
    "|(The|) K (has|got) which H|the K's H|H of the K|And the H of the K|Which H do you find for the K)"
)
IN_TABLE = (
    "According to the table, ",
    "Look it up: ",
    "In the table, ",
    "Going by the list, ",
    "From these data: ",
    "Use the table. ",
    "Have a look: ",
    "Now: ",
)


def _layout(d, heads, rows, x, prose):
    """The table as text: as markdown, from x = 0.3 on as CSV, from 0.5 in lines, from 0.72 in one line.

    prose: how often two columns become a sentence instead.
    """
    h = [c[0] for c in heads]
    if len(h) == 2 and d.p(prose):
        one = d.c("{0} {1}", "{0} has {1}", "{0} {1}", "{0}: {1}", "{1} for {0}", "{0} ({1})")
        text = d.c(", ", ", ", "; ", " and ").join(one.format(*r) for r in rows)
        return (
            d.c(
                f"These are the {h[1]}s: ",
                f"The {h[1]} of each {h[0]}: ",
                f"The values of {h[1]}: ",
                f"{cap(h[1])}: ",
                f"For {h[1]} we have ",
                f"I noted the {h[1]} of each: ",
                "",
            )
            + text
            + "."
        )
    if x < 0.3:
        line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
        return "\n".join(
            [line(h)] + (["|" + "---|" * len(h)] if d.p(0.6) else []) + [line(r) for r in rows]
        )
    if x < 0.5:
        sep = d.c(",", ", ", ";", "; ")
        return "\n".join(
            ([sep.join(h)] if d.p(0.7) or len(h) > 2 else [])
            + [sep.join(map(str, r)) for r in rows]
        )
    if x < 0.72 or len(h) > 2:
        if len(h) > 2:
            one = lambda r: f"{r[0]}: " + ", ".join(f"{k} {v}" for k, v in zip(h[1:], r[1:]))
        else:
            mark = d.c(": ", ": ", " - ", " = ", " ")
            one = lambda r: f"{r[0]}{mark}{r[1]}"
        return d.c("\n", "\n", "; ").join(one(r) for r in rows)
    if x < 0.86:
        return ", ".join(f"{r[0]} {r[1]}" for r in rows) + "."
    return "; ".join(f"{r[0]}: {r[1]}" for r in rows) + "."


INTRO = [
    "Here is a table:",
    "Look at this table:",
    "This is a table:",
    "Table:",
    "Use this table:",
    "Here is some data:",
    "Here are the data:",
    "Read this table:",
    "Given this table:",
    "Here is a small table.",
    "The table:",
    "Look at this list:",
    "Here is a list:",
    "",
    "",
]


def _draw(d, columns_wanted, layout, prose=0.1):
    """-> (about people?, columns, keys, rows, text); the last two arguments are for _layout"""
    people = d.p(0.6)
    n = d.rng.randint(2, 7)
    columns = PERSON_COLUMNS if people else THING_COLUMNS
    chosen = d.rng.sample(columns, columns_wanted())
    if {"town", "city"} <= {c[0] for c in chosen} or {"score", "points"} <= {c[0] for c in chosen}:
        chosen = chosen[:1]
    keys = _names(d, n) if people else _goods(d, n)
    rows = [[k] + [c[1](d) for c in chosen] for k in keys]
    heads = [("name" if people else d.c("item", "thing", "name"),)] + chosen
    intro = d.c(INTRO)
    text = intro + d.c("\n", "\n", " ") if intro else ""
    return people, chosen, keys, rows, text + _layout(d, heads, rows, layout(), prose)


def table(d, questions=None):
    people, chosen, keys, rows, text = _draw(d, lambda: d.c(1, 1, 1, 2, 2, 3), d.rng.random)
    first = True
    for _ in range(questions or d.c(1, 2, 2, 3, 4, 5, 6)):
        q, a, gold = _question(d, people, chosen, keys, rows, d.rng.random())
        if first:
            where = d.rng.random()
            if where < 0.7:
                q = text + d.c("\n", "\n", "\n\n", " ") + q
            elif where < 0.85:
                q = q + "\n" + text
            else:
                d.add(
                    text,
                    d.c(
                        "Thank you. What would you like to know?",
                        "I see the table. What is your question?",
                        "Okay. Ask me about it.",
                    ),
                    "tell",
                    raw=True,
                )
            d.add(q, a, "table", gold, raw=where < 0.85)
            first = False
        else:
            d.add(q, a, "table", gold, names=True)


def table_drill(d):
    """A table in the layouts that are hardest to read, with a question for each of its rows."""
    people, chosen, _, rows, text = _draw(
        d, lambda: d.c(1, 1, 1, 2), lambda: d.c(0.3, 0.72, d.rng.random()), 0.35
    )
    below = d.p(0.85)
    for k, r in enumerate(d.rng.sample(rows, len(rows))):
        i = d.rng.randrange(len(chosen))
        q, a, gold = _cell(d, people, chosen[i], r, i)
        if k == 0:
            q = text + d.c("\n", "\n\n", "\n\n", " ") + q if below else q + "\n" + text
            d.add(q, a, "table", gold, raw=True)
        else:
            d.add(q, a, "table", gold, names=True)


def table_search(d):
    """A table with more questions that need all of it: whose a value is, which is the most, how many."""
    people, chosen, keys, rows, text = _draw(d, lambda: d.c(1, 1, 2, 2, 3), d.rng.random)
    golds = set()
    for _ in range(d.rng.randint(3, 8)):
        kind = d.c(0.05, 0.2, 0.2, 0.2, 0.2, 0.3, 0.3, 0.38, 0.9, 0.9)
        q, a, gold = _question(d, people, chosen, keys, rows, kind)
        if gold in golds:
            continue
        first = not golds
        d.add(text + "\n\n" + q if first else q, a, "table", gold, raw=first, names=not first)
        golds.add(gold)


def _question(d, people, chosen, keys, rows, x):
    """A question of the kind given by x: below 0.10 a missing row, 0.24 the row of a value, 0.36 an extreme, 0.40 how
    many."""
    i = d.rng.randrange(len(chosen))
    head, _, answer, asks = chosen[i]
    values = [r[i + 1] for r in rows]
    if x < 0.10:
        k = d.c([w for w in (_names(d, 4) if people else _goods(d, 4)) if w not in keys] or ["Zed"])
        return _put(d.c(asks), k, ""), f"{cap(k)} is not in the table.", "not in the table"
    if x < 0.24:
        unique = [r for r in rows if values.count(r[i + 1]) == 1]
        if unique:
            r = d.c(unique)
            v = r[i + 1]
            who = "Who" if people else "Which one"
            q = d.c(
                f"{who} has the {head} {v}?",
                f"Whose {head} is {v}?" if people else f"Which one has {head} {v}?",
                f"Which row has the {head} {v}?",
            )
            return q, _put(answer, r[0], v), r[0]
    if (
        x < 0.36
        and isinstance(values[0], int)
        and len(set(values)) == len(values)
        and len(values) < 6
        and head not in ("room", "shelf")
    ):
        most = d.p(0.6)
        r = sorted(rows, key=lambda r: r[i + 1])[-1 if most else 0]
        who = "Who" if people else "Which one"
        if head == "age":
            q = f"{who} is the {'oldest' if most else 'youngest'}?"
        elif head == "price":
            q = d.c(
                f"Which one costs the {'most' if most else 'least'}?",
                f"What is the {'most expensive' if most else 'cheapest'} thing?",
            )
        else:
            q = d.c(
                f"{who} has the {'highest' if most else 'lowest'} {head}?",
                f"{who} has the {'most' if most else 'least'} {head}?"
                if head == "points"
                else f"{who} has the {'biggest' if most else 'smallest'} {head}?",
            )
        return q, _put(answer, r[0], r[i + 1]), r[0]
    if x < 0.40:
        n = len(rows)
        return (
            d.c(
                "How many rows are in the table?",
                "How many names are there?" if people else "How many things are in the table?",
            ),
            f"There are {n}.",
            str(n),
        )
    return _cell(d, people, chosen[i], d.c(rows), i)


def _put(s, k, v):
    """s with the row's key for K and its value for V"""
    return s.replace("K", "\0").replace("V", str(v)).replace("\0", str(k))


def _cell(d, people, column, r, i):
    """Asks for the value of row r in column i."""
    head, _, answer, asks = column
    if not d.p(0.5):
        asks = [d.say(ASK.replace("H", head).replace("the K", "K" if people else "the K"))]
    q = _put(d.c(asks), r[0], r[i + 1])
    if q[-1] not in ".?":
        q += "?"
    if d.p(0.15):
        q = d.c(IN_TABLE) + q[0].lower() + q[1:]
    return q, _put(answer, r[0], r[i + 1]), str(r[i + 1])


def passage(d):
    """Sentences about several people or things in one message, then questions."""
    n = d.rng.randint(2, 5)
    names = _names(d, n)
    kinds = [
        (
            "has",
            lambda: f"{d.rng.randint(2, 60)} {d.c('apples', 'books', 'coins', 'stamps', 'marbles', 'eggs', 'cards', 'shells')}",
            "What does {n} have?",
            "{n} has {v}.",
        ),
        ("lives in", lambda: TOWN(d), "Where does {n} live?", "{n} lives in {v}."),
        ("likes", lambda: d.c(banks.FOODS), "What does {n} like?", "{n} likes {v}."),
        ("bought", lambda: an(d.c(banks.PLAIN)), "What did {n} buy?", "{n} bought {v}."),
        ("works as", lambda: an(d.c(banks.JOBS)), "What does {n} work as?", "{n} works as {v}."),
        (
            "lost",
            lambda: an(d.c(banks.COLOURS) + " " + d.c(banks.CLOTHES)),
            "What did {n} lose?",
            "{n} lost {v}.",
        ),
        ("went to", lambda: TOWN(d), "Where did {n} go?", "{n} went to {v}."),
        ("plays", lambda: d.c(banks.SPORTS), "What does {n} play?", "{n} plays {v}."),
        ("found", lambda: an(d.c(banks.PLAIN)), "What did {n} find?", "{n} found {v}."),
    ]
    same = d.c(kinds) if d.p(0.6) else None
    said = [(m,) + (same or d.c(kinds)) for m in names]
    values = [s[2]() for s in said]
    text = " ".join(f"{m} {verb} {v}." for (m, verb, _, _, _), v in zip(said, values))
    if d.p(0.3):
        text = " ".join(filler(d, 1, 5)) + " " + text
    first = True
    for _ in range(d.c(1, 2, 3)):
        i = d.rng.randrange(n)
        m, verb, _, ask, answer = said[i]
        x = d.rng.random()
        if x < 0.25 and values.count(values[i]) == 1:
            q, a, g = f"Who {verb} {values[i]}?", answer.format(n=m, v=values[i]), m
        elif x < 0.37:
            other = d.c([w for w in _names(d, 6) if w not in names])
            q, a, g = ask.format(n=other), f"You have not told me about {other}.", "not told"
        else:
            q, a, g = ask.format(n=m), answer.format(n=m, v=values[i]), values[i]
        d.add(
            text + d.c(" ", "\n") + q if first else q,
            a,
            "passage" if g != "not told" else "recall unknown",
            g,
            names=True,
            raw=first,
        )
        first = False
