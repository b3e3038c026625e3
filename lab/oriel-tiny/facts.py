"""The facts a user can tell: values, and the wordings around them.

A Fact has the rules to draw a value, to tell it (`say`: clauses that can be joined; `more`: whole
sentences), to ask for it (`ask`, in addition to the questions that every noun has), and to answer and check it.
In the texts {v} is the value, {V} the value with a capital, {a_v} with its article.

facts_user.py has all facts about the user; `about_person` makes facts about other people, so the model must also read
the person's name.
"""
from collections import namedtuple

import banks
from banks import an
from phrases import say as phrase
from tellings import FRAMES, OF_NOUN

Fact = namedtuple("Fact", "noun known new say more ask answer check short ack")


def cap(s):
    return s[:1].upper() + s[1:]


def fmt(text, v):
    v = str(v)
    return text.format(v=v, V=cap(v), a_v=an(v), A_v=cap(an(v)))


def told(rng, pattern, v):
    """One wording of a pattern of `say` or `more`, with the value in it."""
    return cap(fmt(phrase(rng, pattern), v))


def yours(noun):
    """The user's noun phrase as the assistant says it."""
    return "your " + noun[3:] if noun.startswith("my ") else noun


ASK = [
    "What is {n}?",
    "What is {n}?",
    "What is {n}?",
    "What was {n} again?",
    "Do you remember {n}?",
    "Do you know {n}?",
    "Can you tell me {n}?",
    "Could you remind me what {n} is?",
    "Tell me {n}.",
    "Tell me what {n} is.",
    "Do you still know {n}?",
    "I forgot {n}. What is it?",
    "Remind me of {n}.",
    "What did I say {n} was?",
    "Please tell me {n}.",
    "{N}?",
    "And {n}?",
    "I cannot remember {n}. Can you help me?",
    "Do you remember what {n} is?",
    "What is {n}, do you remember?",
    "What do you think {n} is?",
    "What did I tell you about {n}?",
    "Do you recall {n}?",
    "I told you {n}. What was it?",
    "Say {n}.",
    "Earlier I told you {n}. What is it?",
    "Can you recall {n}?",
    "What is {n}? Answer in one sentence.",
    "Can you repeat {n}?",
    "You know {n}, right? What is it?",
    "What {m} did I tell you?",
    "Which {m} did I mention?",
    "What was the {m} I told you?",
    "(Please|Would you|Can you|Will you|Now) (say|repeat|name|give me) {n} [(again|once more|for me)].",
    "I (need|want to know|would like to hear|have to know|am looking for) {n} [(now|again)].",
    "(Let me hear|Let us hear|Let's see if you remember|Let me see if you know|Show me that you know) {n}.",
    "(What|And what) (is|was) {n} [(now|again|then|really|in fact)]?",
    "(Quick|Quiz|Test|A small test|Question)(:|,) what is {n}?",
    "(Somebody asks|My friend asks|They ask) [me] for {n}. What (is it|should I say)?",
    "(Do you have|Have you kept|Have you noted) {n}?",
    "(What did I call|What have I told you is|What did you note as) {n}?",
]
TELL = [
    *("{s}.",) * 14,
    "{s}!",
    "{s}!",
    "By the way, {l}.",
    "Please remember that {l}.",
    "Remember that {l}.",
    "Remember: {l}.",
    "Please remember this: {l}.",
    "Just so you know, {l}.",
    "You should know that {l}.",
    "I want to tell you that {l}.",
    "Keep in mind that {l}.",
    "Please note that {l}.",
    "For your information, {l}.",
    "Let me tell you something: {l}.",
    "I wanted to say that {l}.",
    "Here is a fact about me: {l}.",
    "{s}. Please remember it.",
    "{s}, remember that.",
    "{s}. Do not forget it.",
    "{s}. Can you remember that?",
    "One thing about me: {l}.",
    "Don't forget that {l}.",
    "Hi, {l}.",
    "Hello! {s}.",
    "Hey, {l}.",
    "Today I want to tell you that {l}.",
    "I have to tell you that {l}.",
]
TELL += 4 * FRAMES
UNKNOWN = [
    "You have not told me {n} yet.",
    "You have not told me {n}.",
    "I do not know {n}. You have not told me yet.",
    "I do not know that, you have not told me {n} yet.",
    "You have not told me {n} yet. What is it?",
]


def fact(
    noun,
    known,
    new,
    say,
    more=(),
    ask=(),
    answer=(),
    check=(),
    short=("{v}.",),
    ack=(),
    general=True,
):
    """`general`: also in the wordings that fit every noun, unless sentences about it need "the" or a
    preposition before the value."""
    say, more, answer, check, ack = map(list, (say, more, answer, check, ack))
    if general:
        your = cap(yours(noun))
        say.insert(0, f"{cap(noun)} is {{v}}")
        more += [p.replace("{n}", noun).replace("{N}", cap(noun)) + "." for p in OF_NOUN]
        answer.insert(0, f"{your} is {{v}}.")
        check.insert(0, f"Is {noun} {{v}}?")
        ack = [
            f"I will remember that {yours(noun)} is {{v}}.",
            f"Got it, {yours(noun)} is {{v}}.",
            "I will remember {v}.",
        ] + ack
    else:
        ack = ["I will remember that.", "Got it."] + ack
    return Fact(noun, known, new, say, more, list(ask), answer, check, list(short), ack)


def pick(bank):
    return lambda r: r.choice(bank)


def questions(f):
    """All wordings of the question for one fact."""
    noun = f.noun
    bare = noun.split(" ", 1)[1]
    frames = [
        q.format(n=noun, N=cap(noun), m=bare)
        for q in ASK
        if noun.startswith("my ") or "{m}" not in q
    ]
    return frames, f.ask


def ask_wording(rng, f):
    frames, own = questions(f)
    q = phrase(rng, rng.choice(own) if own and rng.random() < 0.5 else rng.choice(frames))
    if q[-1] == "." and q.split()[0] in ("Would", "Can", "Will"):
        q = q[:-1] + "?"
    return q


def unknown_wording(rng, f):
    return rng.choice(UNKNOWN).format(n=yours(f.noun))


PERSON = {  # facts about a person called N: noun, drawers, clauses, questions, answer
    "city": (
        "home town",
        banks.town,
        ["N lives in {v}", "N is from {v}"],
        ["Where does N live?", "Where is N from?", "Which town does N live in?"],
        "N lives in {v}.",
    ),
    "job": (
        "job",
        lambda r: r.choice(banks.JOBS),
        ["N is {a_v}", "N works as {a_v}"],
        ["What does N work as?", "What does N do for a living?"],
        "N is {a_v}.",
    ),
    "age": (
        "age",
        lambda r: r.randint(4, 99),
        ["N is {v} years old"],
        ["How old is N?"],
        "N is {v} years old.",
    ),
    "colour": (
        "favourite colour",
        lambda r: r.choice(banks.COLOURS),
        ["N likes the colour {v} best"],
        ["Which colour does N like?"],
        "N likes {v} best.",
    ),
    "food": (
        "favourite food",
        lambda r: r.choice(banks.FOODS),
        ["N loves {v}", "N likes to eat {v}"],
        ["What does N like to eat?", "What food does N love?"],
        "N likes to eat {v}.",
    ),
    "pet": (
        "pet",
        lambda r: r.choice(banks.PETS),
        ["N has {a_v}", "N owns {a_v}"],
        ["What pet does N have?", "Which animal does N have?"],
        "N has {a_v}.",
    ),
    "hobby": (
        "hobby",
        lambda r: r.choice(banks.HOBBIES),
        ["N likes {v}", "N enjoys {v}"],
        ["What does N like to do?", "What does N enjoy?"],
        "N likes {v}.",
    ),
    "friend": (
        "best friend",
        banks.first_name,
        ["N is friends with {v}"],
        ["Who is N friends with?"],
        "N is friends with {v}.",
    ),
    "sport": (
        "sport",
        lambda r: r.choice(banks.SPORTS),
        ["N plays {v}"],
        ["Which sport does N play?", "What does N play?"],
        "N plays {v}.",
    ),
    "room": (
        "room",
        lambda r: r.randint(2, 420),
        ["N is in room {v}", "N sits in room {v}"],
        ["Which room is N in?"],
        "N is in room {v}.",
    ),
}


def about_person(name, kind):
    """A Fact about `name`."""
    noun, draw, say, ask, answer = PERSON[kind]
    put = lambda texts: [
        t.replace("N", name, 1)
        if t.startswith("N")
        else t.replace(" N ", f" {name} ").replace(" N?", f" {name}?")
        for t in texts
    ]
    return Fact(
        f"{name}'s {noun}",
        draw,
        None,
        put(say) + [f"{name}'s {noun} is {{v}}"],
        [],
        put(ask),
        put([answer]),
        [f"Is {name}'s {noun} {{v}}?"],
        ["{V}."],
        ["I will remember that.", "Okay, I will keep that in mind.", "Got it."],
    )
