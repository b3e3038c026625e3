"""Facts about the user and other people: told, changed, and asked for later; and questions about the conversation itself.

Every function takes a Dialogue and adds one or more turns to it.  d.facts: slot -> value; a slot
is a key of FACTS or (name, kind) for facts about another person.
"""
import banks
from banks import NUMBER, an, join
from facts import PERSON, TELL, about_person, ask_wording, cap, fmt, told, unknown_wording, yours
from facts_user import CORE, FACTS
from tellings import LATE_CLAUSES, PLAIN_ACK

UPDATES = [
    "Actually, {l}.",
    "I changed my mind. {s}.",
    "Sorry, I was wrong. {s}.",
    "Wait, no. {s}.",
    "That has changed. {s}.",
    "Correction: {l}.",
    "No, that was wrong. {s}.",
    "I made a mistake. {s}.",
    "It is different now: {l}.",
    "Oh, I meant: {l}.",
    "Now {l}.",
    "From today on {l}.",
    "Please change that: {l}.",
]
NOT_UPDATED = ("age", "birthday")
ALIKE = [
    {"code", "pin"},
    {"name", "nickname", "surname"},
    {"number", "fav number", "phone"},
    {"city", "fav city", "country", "fav place"},
    {"word", "fav word"},
    {"key", "treasure"},
    {"meeting", "train"},
    {"hobby", "sport", "fav game"},
    {"friend", "nickname"},
    {"pet " + p for p in banks.PETS},
    {"food", "fav dish", "fav dessert"},
    {"animal", "fav toy"},
    {"fav film", "fav movie"},
    {"instrument", "hobby"},
    {"sport", "instrument"},
    {"drink", "food"},
    {"season", "subject", "day"},
    {"age", "number"},
]


def fact_of(slot):
    return about_person(*slot) if isinstance(slot, tuple) else FACTS[slot]


MIDDLE = frozenset(
    """My The Everyone They You In People We At Our Home What Where Who Which Do How When Can Could
Tell Say And Give Remind Please Your It From Most All Folks No Among Of There On For With This As Since
Nowadays After During By If Would Will Now Quick Let Show Have Concerning About""".split()
)


def low(s):
    """For the second half of a sentence: "My name" -> "my name", but "I am" and names stay."""
    return s[0].lower() + s[1:] if s.split()[0] in MIDDLE else s


def value(d, slot):
    """A value of this split: coined values are held out themselves, values of small banks together with the sentence
    that tells them (see `statement`)."""
    f = fact_of(slot)
    if f.known and (not f.new or d.p(0.3)) and not (d.only_new and f.new):
        return f.known(d.rng)
    if isinstance(slot, tuple) or slot in ("age", "room"):
        return (f.new or f.known)(d.rng)
    return d.draw(lambda: (lambda v: (f"{slot}|{v}", v))(f.new(d.rng)))


def clashes(d, slot):
    return any(slot in g and any(s in g for s in d.facts) for g in ALIKE)


COMMON = [
    "name",
    "name",
    "age",
    "colour",
    "food",
    "city",
    "code",
    "word",
    "birthday",
    "friend",
    "job",
    "number",
    "hobby",
    "animal",
    "drink",
    "pet cat",
    "pet dog",
    "rel sister",
    "rel brother",
]


def any_slot(d):
    """Draws a kind of fact: the more common kinds more often."""
    x = d.rng.random()
    return d.c(COMMON) if x < 0.45 else d.c(CORE) if x < 0.75 else d.c(list(FACTS))


def some_slot(d):
    for _ in range(40):
        if d.late and d.p(0.2):
            slot = d.c(sorted(LATE_CLAUSES))
            if slot not in d.facts and not clashes(d, slot):
                return slot
        if d.p(0.08):
            name = (
                d.c(sorted(s[0] for s in d.facts if isinstance(s, tuple)))
                if d.p(0.4) and any(isinstance(s, tuple) for s in d.facts)
                else banks.first_name(d.rng)
            )
            slot = (name, d.c(sorted(PERSON)))
        else:
            slot = any_slot(d)
        if slot not in d.facts and not clashes(d, slot):
            return slot
    return slot


def statement(d, slot, v):
    """A clause without a full stop; held out are pairs of value and wording."""
    f = fact_of(slot)
    says = f.say
    if d.late and slot in LATE_CLAUSES and d.p(0.6):
        says = LATE_CLAUSES[slot]
    if isinstance(slot, tuple) or len(f.say) < 4:
        return told(d.rng, d.c(says), v)
    pattern = d.draw(lambda: (lambda s: (f"{slot}|{v}|{s}", s))(d.c(says)), 40, False)
    return told(d.rng, pattern, v)


def sentence(d, slot, v):
    f = fact_of(slot)
    if f.more and d.p(0.3):
        return told(d.rng, d.c(f.more), v)
    s = statement(d, slot, v)
    frame = d.say(d.c(TELL))
    if isinstance(slot, tuple) and "about me" in frame:
        frame = "{s}."
    return frame.format(s=s, l=low(s))


def tell_text(d, slots):
    """One to three facts as one text; returns it and takes note of them."""
    vs = [value(d, s) for s in slots]
    d.facts.update(zip(slots, vs))
    if len(slots) == 1:
        text = sentence(d, slots[0], vs[0])
    elif d.p(0.6):
        parts = [statement(d, s, v) for s, v in zip(slots, vs)]
        text = (
            d.c("", "", "", "Hi! ", "Hello! ", "Hey, ")
            + ", ".join([parts[0]] + [low(p) for p in parts[1:-1]])
            + d.c(" and ", " and ", ", ", ", and ")
            + low(parts[-1])
            + "."
        )
    else:
        text = " ".join(sentence(d, s, v) for s, v in zip(slots, vs))
    if d.p(0.06):
        for s in slots:
            if isinstance(d.facts[s], str) and not isinstance(s, tuple):
                d.facts[s] = d.facts[s].lower()
        if not any(isinstance(s, tuple) for s in slots):
            text = text.lower()
        else:
            d.facts.update(zip(slots, vs))
    return text


def tell(d, slot=None, count=None):
    """One to three facts in one message."""
    update = slot in d.facts
    slots = [slot or some_slot(d)]
    count = count or (1 if update else d.c(1, 1, 1, 1, 2, 2, 3))
    while len(slots) < count:
        d.facts[slots[-1]] = "?"
        s = some_slot(d)
        if s not in slots:
            slots.append(s)
    if update:
        v = d.facts[slot] = value(d, slot)
        s = statement(d, slot, v)
        text = d.c(UPDATES).format(s=s, l=low(s))
    else:
        text = tell_text(d, slots)
    acknowledge(d, text, slots)


def acknowledge(d, text, slots):
    if d.short and d.p(0.7):
        answer = d.c("Okay.", "Got it.", "Noted.")
    else:
        one = lambda s: fmt(d.c(fact_of(s).ack), d.facts[s])
        answer = (
            one(slots[0]) if len(slots) == 1 or d.p(0.5) else " ".join(one(s) for s in slots[:2])
        )
    # The model must also find facts that are not repeated. It should not learn such answers, though, because repeating a
    # fact helps to remember it (see `encode_dialogue`).
    plain = d.p(0.5)
    if plain:
        answer = d.say(d.c(PLAIN_ACK))
    d.add(text, answer, "tell", names=True)
    if plain:
        d.turns[-1]["untaught"] = True


def named(slot):
    return (
        slot in ("name", "friend", "city", "nickname")
        or isinstance(slot, str)
        and slot.startswith(("rel", "pet"))
    )


def wrong_value(d, slot):
    """Another value of the same kind, sometimes one from this chat."""
    v, f = str(d.facts[slot]).lower(), fact_of(slot)
    for _ in range(20):
        others = [x for s, x in d.facts.items() if s != slot and named(s) and named(slot)]
        if slot in ("name", "friend") and d.story and d.p(0.4):
            w = d.c(d.story.hero, d.story.friend)
        elif others and d.p(0.25):
            w = d.c(others)
        else:
            w = f.known(d.rng) if f.known and d.p(0.5) else (f.new or f.known)(d.rng)
        if str(w).lower() != v:
            return w
    return w


def ask_unknown(d):
    """Never told: says so, also when something close to it is known."""
    for _ in range(60):
        people = [s for s in d.facts if isinstance(s, tuple)]
        if people and d.p(0.3):
            name = d.c(people)[0] if d.p(0.5) else banks.first_name(d.rng)
            slot = (name, d.c(sorted(PERSON)))
        else:
            slot = any_slot(d)
        if slot not in d.facts and not clashes(d, slot):
            break
    else:
        return
    f = fact_of(slot)
    if d.p(0.15):
        v = (f.new or f.known)(d.rng)
        d.add(
            fmt(d.c(f.check), v),
            unknown_wording(d.rng, f),
            "recall unknown",
            "not told",
            names=True,
        )
    else:
        d.add(
            ask_wording(d.rng, f),
            unknown_wording(d.rng, f),
            "recall unknown",
            "not told",
            names=isinstance(slot, tuple),
        )


def answer_of(d, slot):
    f = fact_of(slot)
    return fmt(f.answer[0] if d.p(0.6) else d.c(f.answer), d.facts[slot])


def ask(d, slot=None, kind=None):
    """A question about a told fact (kind: what, check, both)."""
    slot = slot or d.c(list(d.facts))
    f, v = fact_of(slot), d.facts[slot]
    kind = (
        kind or d.rng.choices(("what", "check", "both"), (63, 28, 9 if len(d.facts) > 1 else 0))[0]
    )
    if kind == "both" and len(d.facts) > 1:
        other = d.c([s for s in d.facts if s != slot])
        second = d.c(fact_of(other).ask or ["What is " + fact_of(other).noun + "?"])
        q = d.c(f.ask or ["What is " + f.noun + "?"]).rstrip("?.") + " and " + low(second)
        a = fmt(f.answer[0], v)[:-1] + " and " + low(fmt(fact_of(other).answer[0], d.facts[other]))
        d.add(q, a, "recall two", a[:-1], names=True)
        return
    if kind != "check":
        d.add(
            ask_wording(d.rng, f),
            fmt(d.c(f.short), v) if d.short or d.p(0.04) else answer_of(d, slot),
            "recall",
            str(v),
            names=isinstance(slot, tuple),
        )
        return
    right = d.p(0.5)
    q = fmt(d.c(f.check), v if right else wrong_value(d, slot))
    if d.p(0.1):
        q = (
            q[:-1] + d.c(", right?", ", is that right?", ", or not?")
            if q[-1] == "?" and "right" not in q
            else q
        )
    d.add(
        q,
        ("Yes, " if right else "No, ") + low(fmt(f.answer[0], v)),
        "recall yes/no",
        "Yes" if right else "No",
        names=True,
    )


def correct_me(d):
    """A question, then the user contradicts; the new value counts from now on."""
    slots = [s for s in d.facts if s not in NOT_UPDATED and not isinstance(s, tuple)]
    if not slots:
        return
    slot = d.c(slots)
    ask(d, slot, kind=d.c("what", "what", "check"))
    v = d.facts[slot] = value(d, slot)
    f = fact_of(slot)
    said = told(d.rng, d.c(f.say), v)
    text = d.c(
        f"No, it is {v}.",
        f"No, it's {v}.",
        f"That is wrong. {said}.",
        f"No, {low(said)}.",
        f"You are wrong, {low(said)}.",
        f"That is not right. It is {v}.",
        f"Wrong. It's {v}.",
        f"Not any more. {said}.",
        f"Sorry, it is {v} now.",
        f"That has changed. It is {v}.",
    )
    if f.say[0].startswith(("I ", "The key", "The treasure")) and text.startswith(
        ("No, it", "That is not", "Wrong", "Sorry, it", "That has")
    ):
        text = f"No, {low(said)}."
    tail = low(fmt(f.answer[0], v))
    d.add(
        text,
        d.c(
            f"Sorry! {cap(tail)}",
            f"I am sorry, {tail}",
            f"Oh, I see: {tail}",
            f"Thank you, {tail}",
            f"Okay, {tail}",
        ),
        "correction",
        str(v),
        names=True,
    )


def about_me(d):
    slots = list(d.facts)[:4]
    bits = [fmt(fact_of(s).answer[0], d.facts[s])[:-1] for s in slots]
    d.add(
        d.c(
            "What do you know about me?",
            "Tell me all you know about me.",
            "What have I told you?",
            "What do you remember about me?",
            "Which facts did I tell you?",
            "What did I tell you so far?",
            "List what you know about me.",
        ),
        join([bits[0]] + [low(b) for b in bits[1:]]) + ".",
        "recall all",
        d.facts[slots[0]],
    )


def where_thing(d):
    if "where" not in d.lists or d.p(0.3):
        t, s = d.draw(
            lambda: (lambda t, s: (f"where|{t}|{s}", (t, s)))(
                d.c(banks.THINGS) if d.p(0.6) else d.c(banks.PLAIN),
                d.c(banks.SPOTS)
                if d.p(0.6)
                else banks.thing(d.rng, ("box", "drawer", "shed", "bag")),
            )
        )
        if t in d.lists.get("where", {}):
            return
        d.lists.setdefault("where", {})[t] = s
        d.add(
            d.c(
                f"I put my {t} in the {s}.",
                f"My {t} is in the {s}." if not t.endswith("s") else f"My {t} are in the {s}.",
                f"Remember: the {t} is in the {s}.",
                f"I left my {t} in the {s}.",
                f"I have put the {t} into the {s}.",
            ),
            d.c(
                f"I will remember: the {s}.",
                "Okay, I will remember that.",
                f"Good, the {t} in the {s}.",
                f"Got it, in the {s}.",
            ),
            "tell",
            names=True,
        )
    else:
        t, s = d.c(list(d.lists["where"].items()))
        v = "are" if t.endswith("s") else "is"
        if d.p(0.12):
            t = d.c([x for x in banks.THINGS if x not in d.lists["where"]])
            v = "are" if t.endswith("s") else "is"
            d.add(
                d.c(f"Where {v} my {t}?", f"Where did I put my {t}?"),
                f"You have not told me where your {t} {v}.",
                "recall unknown",
                "not told",
            )
            return
        d.add(
            d.c(
                f"Where {v} my {t}?",
                f"Where did I put my {t}?",
                f"I cannot find my {t}.",
                f"Do you know where my {t} {v}?",
                f"Where can I find my {t}?",
            ),
            d.reply(
                [f"Your {t} {v} in the {s}.", f"You put your {t} in the {s}."], [f"In the {s}."]
            ),
            "recall",
            s,
        )


def word_list(d):
    if "words" not in d.lists:
        n = d.rng.randint(2, 6)
        ws = (
            d.rng.sample(banks.PLAIN + banks.FRUITS, n)
            if d.p(0.5)
            else sorted({banks.word(d.rng) for _ in range(n)})
        )
        d.rng.shuffle(ws)
        ws = list(dict.fromkeys(ws))
        d.lists["words"] = ws
        d.add(
            d.c(
                "Remember these words: ",
                "Keep these words in mind: ",
                "Please remember: ",
                "My shopping list is: ",
                "Here is my list: ",
                "I need to buy: ",
            )
            + d.c(", ".join(ws), join(ws))
            + ".",
            d.c(
                "I will remember them.",
                f"Okay: {', '.join(ws)}.",
                "Got it.",
                f"I have {NUMBER[len(ws)]} words in mind.",
            ),
            "tell",
        )
    else:
        ws = d.lists["words"]
        x = d.rng.random()
        if x < 0.5:
            d.add(
                d.c(
                    "What were the words?",
                    "Which words should you remember?",
                    "Say the words again.",
                    "What was on my list?",
                    "Repeat my list.",
                    "What is on my list?",
                ),
                f"{cap(join(ws))}." if d.short else f"The words were {join(ws)}.",
                "recall list",
                join(ws),
            )
        elif x < 0.8:
            i = d.rng.randrange(min(len(ws), 4))
            if d.p(0.3):
                i = -1
            word = ("first", "second", "third", "fourth")[i] if i >= 0 else "last"
            d.add(
                d.c(
                    f"What was the {word} word?",
                    f"Which word was the {word}?",
                    f"What is the {word} word on my list?",
                ),
                f"The {word} word was {ws[i]}.",
                "recall list",
                ws[i],
            )
        else:
            inside = d.p(0.5)
            w = d.c(ws) if inside else d.c([x for x in banks.PLAIN if x not in ws])
            d.add(
                d.c(f"Is {w} on my list?", f"Did I say {w}?", f"Was {w} one of the words?"),
                f"Yes, {w} is on your list." if inside else f"No, {w} is not on your list.",
                "recall yes/no",
                "Yes" if inside else "No",
            )


FILLERS = banks.FILLER_SENTENCES


def filler(d, low_, high):
    out = []
    for _ in range(d.rng.randint(low_, high)):
        s = d.say(d.c(FILLERS))
        if s not in out:
            out.append(s)
    return out


def needle(d):
    """A fact inside a longer text of the user, and the question at its end or right after it."""
    slot = some_slot(d)
    v = value(d, slot)
    sentences = filler(d, 3, d.c(6, 10, 16, 26))
    sentences.insert(
        d.rng.randrange(len(sentences) + 1),
        (
            told(d.rng, d.c(fact_of(slot).more), v)
            if fact_of(slot).more and d.p(0.3)
            else statement(d, slot, v) + "."
        ),
    )
    text = " ".join(sentences)
    d.facts[slot] = v
    if d.p(0.5):
        q = ask_wording(d.rng, fact_of(slot))
        d.add(text + d.c(" ", "\n", "\n\n") + q, answer_of(d, slot), "recall", str(v), names=True)
    else:
        d.add(
            text,
            d.c(
                "Thank you for telling me.",
                "I see.",
                "Okay.",
                "That is interesting.",
                "I have read it.",
            ),
            "tell",
            names=True,
        )


def chatter(d):
    """The user says something long that asks for nothing."""
    d.add(
        " ".join(filler(d, 2, 9)),
        d.c(
            "I see.",
            "Thank you for telling me.",
            "That is interesting.",
            "Okay.",
            "How nice!",
            "Tell me more.",
        ),
        "chatter",
        names=True,
    )


# Questions about the conversation itself and its last messages, with answers.


def said(d):
    """Needs at least one turn; the words of the last turns are in d.turns."""
    if not d.turns:
        return
    last = d.turns[-1]
    x = d.rng.random()
    user, answer = last["user"], last["assistant"]
    if x < 0.35 and len(user) < 90 and "\n" not in user:
        question = user.rstrip()[-1:] == "?"
        q = d.say(
            "(What did I (just|) (say|ask|write)|What was my last (question|message|sentence)|Repeat what I (just|) (said|wrote)|Say again what I (said|wrote)|What were my last words|What have I just (said|asked))?"
        )
        d.add(q, f'You {"asked" if question else "said"}: "{user}"', "said user", user)
    elif x < 0.65 and len(answer) < 120:
        q = d.say(
            "(What did you (just|) (say|answer)|(Say|Repeat) that again|Can you repeat that|Pardon|Come again|Please repeat your (last|) answer|What was your (last|) answer|I did not hear you|Once more, please)."
        )
        if q.split()[0] in ("What", "Can", "Pardon", "Come"):
            q = q[:-1] + "?"
        # The answer already has the style, so the styled copy is replaced by the original.
        d.add(q, answer, "said assistant", answer)
        d.turns[-1]["assistant"] = d.turns[-1]["gold"] = answer
    elif (
        x < 0.8
        and len(d.turns[0]["user"]) < 90
        and "\n" not in d.turns[0]["user"]
        and len(d.turns) > 1
        and d.chars < 2000
    ):
        first = d.turns[0]["user"]
        q = d.say(
            "(What was (my first question|the first thing I (said|wrote)|my first message)|How did (I|we) (begin|start) this (chat|conversation)|What did I say first|What did I (say|write) at the (start|beginning))?"
        )
        d.add(q, f'You {"asked" if first[-1] == "?" else "said"}: "{first}"', "said first", first)
    else:
        repeat(d)


def repeat(d):
    """Repeat a word two to five times."""
    w = banks.word(d.rng) if d.p(0.6) else d.c(banks.PLAIN + banks.ANIMALS)
    n = d.rng.randint(2, 5)
    times = ("two times", "three times", "four times", "five times")[n - 2]
    if n == 2 and d.p(0.5):
        times = "twice"
    q = d.say(f"([Please] (say|write|repeat) [the word] {w} {times}|(say|write) {times}: {w}).")
    d.add(q, ", ".join([w] * n) + ".", "repeat", ", ".join([w] * n), names=True)


def no_story(d):
    """Asked about a story that was not told."""
    q = d.say(
        "(Who was the hero of the story|How did the story end|What was the story about|What happened next in the story|Who was in the story|Where did the story happen)?"
    )
    d.add(
        q,
        d.c(
            "I have not told you a story yet.",
            "There was no story yet. Would you like one?",
            "You have not told me a story yet, and I have not told you one.",
        ),
        "no story",
        "story",
    )


def yes_no(d):
    a, b = d.rng.randint(1, 99), d.rng.randint(1, 99)
    while a == b:
        b = d.rng.randint(1, 99)
    bigger = d.p(0.5)
    ok = (a > b) == bigger
    d.add(
        d.c("Answer with yes or no: ", "Yes or no: ", "Answer only yes or no. ")
        + f"is {a} {'bigger' if bigger else 'smaller'} than {b}?",
        "Yes." if ok else "No.",
        "compare",
        "Yes" if ok else "No",
    )
