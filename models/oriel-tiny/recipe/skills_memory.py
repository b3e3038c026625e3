"""Facts about the user: told, changed, and asked for later.

Every function takes a Dialogue and adds one or more turns to it.
"""
import banks
import coined
from banks import NUMBER, an, join
from facts import CORE, FACTS, fmt
from stories import cap

UPDATES = [
    "Actually, {s}", "I changed my mind. {s}", "Sorry, I was wrong. {s}", "Wait, no. {s}",
    "That has changed. {s}"
]
NOT_UPDATED = ("age", "birthday")


def low(s):
    """For the second half of a sentence: "My name" -> "my name", but "I am" and names stay."""
    return s[0].lower() + s[1:] if s.split()[0] in ("My", "The", "Everyone", "They", "You", "In") else s


def value(d, slot):
    """A value of this split: coined ones are held out by themselves, others with a wording.

    Values of a small bank are all met in training; what is held out of them is
    a tenth of the (value, wording) pairs, see `tell`.
    """
    f = FACTS[slot]
    if f.known and d.p(0.3 if f.new else 1) and not d.only_new:
        return f.known(d.rng)
    draw = f.new or f.known
    return d.draw(lambda: (lambda v: (f"{slot}|{v}", v))(draw(d.rng)))


def some_slot(d):
    new = [s for s in CORE if s not in d.facts]
    if new and d.p(0.75):
        return d.c(new)
    new = [s for s in FACTS if s not in d.facts]
    return d.c(new or list(FACTS))


def statement(d, slot, v, clause=False):
    f = FACTS[slot]
    say = f.say if clause else [s + "." for s in f.say] + f.more
    return fmt(d.draw(lambda: (lambda s: (f"{slot}|{v}|{s}", s))(d.c(say))), v)


def typed(d, text, slots):
    """Lower-case typing also changes the value, so it is only done here."""
    if d.p(0.06):
        for s in slots:
            if isinstance(d.facts[s], str):
                d.facts[s] = d.facts[s].lower()
        return text.lower()
    return text


def tell(d, slot=None, count=None):
    """One to three facts in one message."""
    update = slot in d.facts
    slots = [slot or some_slot(d)]
    count = count or (1 if update else d.c(1, 1, 1, 1, 2, 2, 2, 3))
    while len(slots) < count:
        s = some_slot(d)
        if s not in slots:
            slots.append(s)
    if count > 1 and d.p(0.3):
        slots[0] = "name" if "name" not in d.facts and "name" not in slots else slots[0]
    vs = [value(d, s) for s in slots]
    d.facts.update(zip(slots, vs))
    if count == 1:
        text = statement(d, slots[0], vs[0])
    elif d.p(0.7):
        parts = [statement(d, s, v, True) for s, v in zip(slots, vs)]
        sep = d.c(" and ", " and ", ", ", ", and ", " but ")
        text = (d.c("", "", "", "Hi! ", "Hello! ", "Hey, ") + ", ".join([parts[0]] + [low(p) for p in parts[1:-1]])
                + sep + low(parts[-1]) + ".")
    else:
        text = " ".join(statement(d, s, v) for s, v in zip(slots, vs))
    if update:
        text = d.c(UPDATES).format(s=text)
    text = typed(d, text, slots)
    vs = [d.facts[s] for s in slots]
    if d.short and d.p(0.7):
        answer = d.c("Okay.", "Got it.", "Noted.")
    elif count == 1:
        answer = fmt(d.c(FACTS[slots[0]].ack), vs[0])
    else:
        answer = d.c(" ".join(fmt(d.c(FACTS[s].ack), v) for s, v in list(zip(slots, vs))[:2]),
                     fmt(d.c(FACTS[slots[0]].ack), vs[0]), fmt(d.c(FACTS[slots[0]].ack), vs[0]),
                     "Thank you, I will remember that.", "I will remember that.")
    d.add(text, answer, "tell", names=True)


def named(slot):
    return slot in ("name", "friend", "city") or slot.startswith("rel")


def wrong_value(d, slot):
    """Another value of the same kind, now and then one that was named in this chat."""
    v = str(d.facts[slot]).lower()
    for _ in range(20):
        others = [x for s, x in d.facts.items() if s != slot and named(s) and named(slot)]
        if slot in ("name", "friend") and d.story and d.p(0.4):
            w = d.c(d.story.hero, d.story.friend)
        elif others and d.p(0.25):
            w = d.c(others)
        else:
            f = FACTS[slot]
            w = f.known(d.rng) if f.known and d.p(0.5) else (f.new or f.known)(d.rng)
        if str(w).lower() != v:
            return w
    return w


def ask(d, slot=None, known=True, kind=None):
    """A question about a told fact (kind: what, check, both) or about an unknown one."""
    if not known:
        slot = slot or d.c([s for s in (CORE if d.p(0.8) else FACTS) if s not in d.facts] or list(FACTS))
        f = FACTS[slot]
        if d.p(0.25):
            v = value(d, slot)
            d.add(fmt(f.check, v), d.c(f.unknown), "recall unknown", None, names=True)
        else:
            d.add(d.c(f.ask), d.c(f.unknown), "recall unknown", None)
        return
    slot = slot or d.c(list(d.facts))
    f, v = FACTS[slot], d.facts[slot]
    kind = kind or d.rng.choices(("what", "check", "both"), (70, 60 if d.practice else 22, 8 if len(d.facts) > 1 else 0))[0]
    if kind == "both" and len(d.facts) > 1:
        other = d.c([s for s in d.facts if s != slot])
        second = [q for q in FACTS[other].ask if not q.startswith("And ") or not d.practice]
        q = d.c(f.ask).rstrip("?.") + " and " + low_question(d.c(second))
        a = fmt(f.answer[0], v)[:-1] + " and " + low_question(fmt(FACTS[other].answer[0], d.facts[other]))
        d.add(q, a, "recall two", a[:-1])
        return
    if kind != "check":
        d.add(d.c(f.ask), fmt(d.reply(f.answer, f.short), v), "recall", fmt("{v}", v))
        return
    right = d.p(0.45)
    w = v if right else wrong_value(d, slot)
    tail = fmt(f.answer[0], v)
    q = fmt(f.check, w)
    if d.p(0.25) and slot == "name":
        q = d.c(f"Am I {w}?", f"You know that my name is {w}, right?", f"My name is {w}, right?", f"Am I called {w}?")
    elif d.p(0.25) and slot == "city":
        q = d.c(f"Am I from {w}?", f"Is my home in {w}?", f"I live in {w}, right?")
    d.add(q, ("Yes, " if right else "No, ") + low_question(tail), "recall yes/no",
          "Yes" if right else "No", names=True)


def low_question(s):
    return s if s.startswith(("I ", "I'")) or s.split()[0] not in (
        "Your", "You", "The", "It", "What", "What's", "Where", "Who", "Which", "Do", "How", "When", "Can", "Tell", "Say",
        "In", "And", "Give", "Remind") else s[0].lower() + s[1:]


def correct_me(d):
    """A question, then the user contradicts; the new value counts from now on."""
    slots = [s for s in d.facts if s not in NOT_UPDATED]
    if not slots:
        return
    slot = d.c(slots)
    ask(d, slot, kind=d.c("what", "what", "check"))
    v = d.facts[slot] = value(d, slot)
    f = FACTS[slot]
    said = statement(d, slot, v, True)
    text = d.c(f"No, it is {v}.", f"No, it's {v}.", f"That is wrong. {said}.", f"No, {low(said)}.",
               f"You are wrong, {low(said)}.", f"That is not right. It is {v}.", f"Wrong. It's {v}.")
    tail = low_question(fmt(d.c(f.answer[:2]), v))
    d.add(text, d.c(f"Sorry! {cap(tail)}", f"I am sorry, {tail}", f"Oh, I see: {tail}", f"Thank you, {tail}"),
          "correction", fmt("{v}", v), names=True)


def about_me(d):
    bits = [fmt(FACTS[s].answer[0], v)[:-1] for s, v in d.facts.items()]
    bits = bits[:4]
    text = join([bits[0]] + [low_question(b) for b in bits[1:]]) + "."
    d.add(
        d.c("What do you know about me?", "Tell me all you know about me.", "What have I told you?",
            "What do you remember about me?"), text, "recall all", d.facts[list(d.facts)[0]])


def where_thing(d):
    if "where" not in d.lists or d.p(0.3):
        t, s = d.draw(lambda: (lambda t, s: (f"where|{t}|{s}", (t, s)))
                      (d.c(banks.THINGS) if d.p(0.6) else d.c(banks.PLAIN),
                       d.c(banks.SPOTS) if d.p(0.6) else coined.thing(d.rng, ("box", "drawer", "shed", "bag"))))
        d.lists.setdefault("where", {})[t] = s
        d.add(
            d.c(f"I put my {t} in the {s}.",
                f"My {t} is in the {s}." if not t.endswith("s") else f"My {t} are in the {s}.",
                f"Remember: the {t} is in the {s}.", f"I left my {t} in the {s}."),
            d.c(f"I will remember: the {s}.", "Okay, I will remember that.",
                f"Good, the {t} in the {s}.", f"Got it, in the {s}."), "tell")
    else:
        t, s = d.c(list(d.lists["where"].items()))
        v = "are" if t.endswith("s") else "is"
        d.add(
            d.c(f"Where {v} my {t}?", f"Where did I put my {t}?", f"I cannot find my {t}.",
                f"Do you know where my {t} {v}?"),
            d.reply([f"Your {t} {v} in the {s}.", f"You put your {t} in the {s}."],
                    [f"In the {s}."]), "recall", s)


def pet(d):
    if "pet" not in d.lists:
        k = d.c(banks.PETS)
        n = d.draw(lambda: (lambda n: (f"pet|{n}", n))(d.c(banks.PETNAMES)
                                                       if d.p(0.3) else coined.first_name(d.rng)))
        d.lists["pet"] = (k, n)
        d.add(
            d.c(f"I have {an(k)} named {n}.", f"My {k} is called {n}.",
                f"I have a pet, {an(k)}. The name is {n}.", f"My pet is {an(k)} called {n}."),
            d.c(f"{n} is a lovely name for {an(k)}.", f"I would like to meet {n}.",
                f"How nice! I will remember {n}.", f"{n} the {k} sounds sweet."), "tell",
            names=True)
    else:
        k, n = d.lists["pet"]
        if d.p(0.7):
            d.add(
                d.c(f"What is the name of my {k}?", "What is my pet called?",
                    f"What is my {k} called?", "Do you remember the name of my pet?"),
                d.reply([f"Your {k} is called {n}.", f"The name of your {k} is {n}."], [f"{n}."]),
                "recall", n)
        else:
            d.add(
                d.c("What kind of pet do I have?", f"What kind of animal is {n}?",
                    "Which pet do I have?"),
                d.reply([f"You have {an(k)}.", f"{n} is {an(k)}."], [cap(an(k)) + "."]), "recall",
                k, names=True)


def word_list(d):
    if "words" not in d.lists:
        n = d.rng.randint(2, 5)
        ws = d.rng.sample(banks.PLAIN, n) if d.p(0.5) else [coined.word(d.rng) for _ in range(n)]
        d.lists["words"] = ws
        d.add(
            d.c("Remember these words: ", "Keep these words in mind: ", "Please remember: ",
                "My shopping list is: ") + ", ".join(ws) + ".",
            d.c("I will remember them.", f"Okay: {', '.join(ws)}.", "Got it.",
                f"I have {NUMBER[len(ws)]} words in mind."), "tell")
    else:
        ws = d.lists["words"]
        x = d.rng.random()
        if x < 0.6:
            d.add(
                d.c("What were the words?", "Which words should you remember?",
                    "Say the words again.", "What was on my list?"),
                d.c(f"The words were {join(ws)}.", f"{cap(join(ws))}."), "recall list", ws[-1])
        else:
            i = 0 if x < 0.8 else -1
            d.add(f"What was the {'first' if i == 0 else 'last'} word?",
                  f"The {'first' if i == 0 else 'last'} word was {ws[i]}.", "recall list", ws[i])
