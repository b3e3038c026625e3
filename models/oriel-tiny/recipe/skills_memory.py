"""Facts about the user: told, changed, and asked for later.

Every function takes a Dialogue and adds one or more turns to it.
"""
import banks
from banks import NUMBER, an, join
from dialogue import made_up_name
from stories import cap

SLOTS = {
    "name": (lambda r: r.choice(banks.SHE + banks.HE) if r.random() < 0.5 else made_up_name(r), [
        "My name is {v}.", "I am {v}.", "I'm {v}.", "You can call me {v}.", "Hi, I am {v}.",
        "Hello, my name is {v}.", "They call me {v}.", "Remember that my name is {v}.",
        "Please call me {v}."
    ], [
        "Nice to meet you, {v}!", "Hello, {v}!", "Hi {v}! What can I do for you?",
        "It is good to meet you, {v}.", "Thank you, {v}. I will remember your name."
    ], [
        "What is my name?", "Do you know my name?", "Who am I?", "What am I called?",
        "Do you remember my name?", "Can you tell me my name?", "Say my name."
    ], ["Your name is {v}.", "You are {v}.", "You told me that your name is {v}."], ["{v}."], [
        "I do not know your name yet.", "You have not told me your name yet.",
        "I do not know your name. What is it?"
    ]),
    "age": (lambda r: r.randint(4, 90), [
        "I am {v} years old.", "I'm {v} years old.", "My age is {v}.", "I turned {v} this year.",
        "Remember that I am {v} years old."
    ], [
        "You are {v} years old, I see.", "{v} is a good age!",
        "Thank you, I will remember that you are {v}.", "Great, {v} years old."
    ], ["How old am I?", "What is my age?", "Do you know how old I am?", "Do you remember my age?"
       ], ["You are {v} years old.",
           "You told me that you are {v} years old."], ["{v}.", "You are {v}."],
            ["I do not know your age yet.", "You have not told me how old you are."]),
    "colour": (lambda r: r.choice(banks.COLOURS), [
        "My favourite colour is {v}.", "I like the colour {v} best.", "{V} is my favourite colour.",
        "The colour I love most is {v}."
    ], [
        "{V} is a lovely colour.", "I will remember that you like {v}.", "Nice, {v}!",
        "Good choice, {v} is beautiful."
    ], [
        "What is my favourite colour?", "Which colour do I like best?",
        "Do you remember my favourite colour?", "What colour do I like?"
    ], ["Your favourite colour is {v}.", "You like {v} best."], ["{V}."], [
        "I do not know your favourite colour yet.", "You have not told me your favourite colour."
    ]),
    "food":
        (lambda r: r.choice(banks.FOODS), [
            "My favourite food is {v}.", "I love to eat {v}.", "The food I like best is {v}.",
            "I could eat {v} every day.", "Remember that I like {v}."
        ], [
            "Yum, {v}!", "{V} sounds tasty.", "I will remember that you like {v}.",
            "I cannot eat, but {v} sounds good."
        ], [
            "What is my favourite food?", "What do I like to eat?",
            "Do you remember my favourite food?", "Which food do I like best?"
        ], ["Your favourite food is {v}.", "You like to eat {v}."], ["{V}."],
         ["I do not know what you like to eat yet.", "You have not told me your favourite food."]),
    "animal": (lambda r: r.choice(banks.ANIMALS), [
        "My favourite animal is the {v}.", "The animal I like best is the {v}.",
        "I love the {v} most of all animals.", "The {v} is my favourite animal."
    ], [
        "The {v} is a wonderful animal.", "I will remember the {v}.",
        "Good choice, I like the {v} too.", "The {v}, how nice!"
    ], [
        "What is my favourite animal?", "Which animal do I like best?",
        "Do you remember my favourite animal?"
    ], ["Your favourite animal is the {v}.", "You like the {v} best."], ["The {v}."], [
        "I do not know your favourite animal yet.", "You have not told me your favourite animal."
    ]),
    "city": (lambda r: r.choice(banks.CITIES) if r.random() < 0.6 else made_up_name(r), [
        "I live in {v}.", "I am from {v}.", "My home is in {v}.", "My city is {v}.",
        "I just moved to {v}."
    ], [
        "{v} sounds like a nice place.", "I will remember that you live in {v}.",
        "Oh, {v}! How nice.", "Thank you, now I know that you live in {v}."
    ], [
        "Where do I live?", "Which city do I live in?", "Where is my home?",
        "Do you remember where I live?", "Where am I from?"
    ], ["You live in {v}.", "Your home is in {v}."], ["In {v}."],
             ["I do not know where you live yet.", "You have not told me where you live."]),
    "code": (lambda r: f"{r.randint(0, 9999):04d}", [
        "My secret code is {v}.", "The code is {v}. Please remember it.",
        "Remember this code: {v}.", "The secret number is {v}.", "Keep this code for me: {v}."
    ], [
        "I will remember the code {v}.", "Got it: {v}.", "The code is {v}. I will keep it.",
        "Okay, {v}."
    ], [
        "What is my secret code?", "What is the code?", "Do you remember the code?",
        "Tell me the secret number.", "What was the code again?"
    ], ["The code is {v}.", "Your secret code is {v}.",
        "It is {v}."], ["{v}."], ["I do not know any code yet.", "You have not told me a code."]),
    "hobby": (lambda r: r.choice(banks.HOBBIES), [
        "My hobby is {v}.", "I love {v}.", "In my free time I like {v}.",
        "The thing I like most is {v}."
    ], ["{V} sounds fun!", "I will remember that you like {v}.", "That is a great hobby."], [
        "What is my hobby?", "What do I like to do?", "Do you remember my hobby?",
        "What do I do in my free time?"
    ], ["Your hobby is {v}.", "You like {v}."], ["{V}."],
              ["I do not know your hobby yet.", "You have not told me your hobby."]),
    "birthday": (lambda r: f"{r.choice(banks.MONTHS)} {r.randint(1, 28)}", [
        "My birthday is {v}.", "My birthday is on {v}.", "I was born on {v}.",
        "Remember my birthday: {v}."
    ], ["I will remember {v}.", "{v}, that is a good day.", "Got it, your birthday is {v}."], [
        "When is my birthday?", "Do you remember my birthday?", "When was I born?",
        "What day is my birthday?"
    ], ["Your birthday is {v}.", "Your birthday is on {v}."], ["{v}."],
                 ["I do not know your birthday yet.", "You have not told me your birthday."]),
    "word": (lambda r: r.choice(banks.PLAIN) if r.random() < 0.7 else made_up_name(r).lower(), [
        "The secret word is {v}.", "My password is {v}.", "Remember the word {v}.",
        "Please remember this word: {v}."
    ], ["I will remember the word {v}.", "Okay, the word is {v}.", "Got it: {v}."], [
        "What is the secret word?", "What word did I tell you?", "Which word should you remember?",
        "What was the word?"
    ], ["The word is {v}.", "You told me the word {v}.", "The secret word is {v}."], ["{V}."],
             ["I do not know any secret word yet.", "You have not told me a word."]),
    "friend": (lambda r: r.choice(banks.SHE + banks.HE) if r.random() < 0.5 else made_up_name(r), [
        "My best friend is {v}.", "My best friend is called {v}.", "{v} is my best friend.",
        "I have a friend named {v}."
    ], [
        "{v} sounds like a good friend.", "I will remember {v}.",
        "It is nice to have a friend like {v}."
    ], [
        "Who is my best friend?", "What is the name of my friend?", "What is my friend called?",
        "Do you remember my best friend?"
    ], ["Your best friend is {v}.", "Your friend is called {v}."], ["{v}."],
               ["I do not know your friend yet.", "You have not told me about your friend."]),
    "job": (lambda r: r.choice(banks.JOBS), [
        "I work as {a_v}.", "I am {a_v}.", "My job is {v}.", "I want to tell you that I am {a_v}."
    ], ["How nice, {a_v}!", "I will remember that you are {a_v}.", "That is a fine job."
       ], ["What is my job?", "What do I work as?",
           "Do you remember my job?"], ["You are {a_v}.", "You work as {a_v}."], ["{A_v}."],
            ["I do not know your job yet.", "You have not told me your job."]),
    "number":
        (lambda r: r.randint(10, 99),
         ["My lucky number is {v}.", "The number I like best is {v}.", "Remember the number {v}."
         ], ["{v} is a nice number.", "I will remember {v}.", "Got it: {v}."],
         ["What is my lucky number?", "Which number did I tell you?",
          "Do you remember my number?"], ["Your lucky number is {v}.", "The number is {v}."],
         ["{v}."], ["I do not know your lucky number yet.", "You have not told me a number."]),
}
UPDATES = [
    "Actually, {s}", "I changed my mind. {s}", "Sorry, I was wrong. {s}", "Wait, no. {s}",
    "That has changed. {s}"
]
NOT_UPDATED = ("age", "birthday")


def fmt(t, v):
    v = str(v)
    return t.format(v=v, V=cap(v), a_v=an(v), A_v=cap(an(v)))


def value(d, slot):
    return d.draw(lambda: (lambda v: (f"{slot}|{v}", v))(SLOTS[slot][0](d.rng)))


def tell(d, slot=None):
    new = [s for s in SLOTS if s not in d.facts]
    slot = slot or d.c(new or list(SLOTS))
    gen, say, ack = SLOTS[slot][:3]
    if slot not in d.facts and len(new) > 3 and d.p(0.15) and slot != "name":
        other = d.c([s for s in new if s != slot])
        v, w = value(d, slot), value(d, other)
        d.facts[slot], d.facts[other] = v, w
        u = fmt(d.c(say), v) + " " + fmt(d.c(SLOTS[other][1]), w)
        d.add(
            u,
            d.c(
                fmt(d.c(ack), v) + " " + fmt(d.c(SLOTS[other][2]), w),
                "Thank you, I will remember both.", "I will remember that."), "tell", names=True)
        return
    v = value(d, slot)
    s = fmt(d.c(say), v)
    if slot in d.facts:
        s = d.c(UPDATES).format(s=s)
    d.facts[slot] = v
    short = d.short and d.p(0.7)
    d.add(s,
          d.c("Okay.", "Got it.", "Noted.") if short else fmt(d.c(ack), v), "tell", names=slot
          in ("name", "city", "friend", "word"))


def ask(d, slot=None, known=True):
    if known:
        slot = slot or d.c(list(d.facts))
        v = d.facts[slot]
        x = d.rng.random()
        if x < 0.82:
            d.add(d.c(SLOTS[slot][3]), fmt(d.reply(SLOTS[slot][4], SLOTS[slot][5]), v), "recall",
                  fmt("{v}", v))
        else:
            right = d.p(0.5)
            w = v if right else value(d, slot)
            right = str(w) == str(v)
            q = {
                "name": "Is my name {v}?",
                "age": "Am I {v} years old?",
                "colour": "Is my favourite colour {v}?",
                "food": "Is my favourite food {v}?",
                "animal": "Is my favourite animal the {v}?",
                "city": "Do I live in {v}?",
                "code": "Is the code {v}?",
                "hobby": "Is my hobby {v}?",
                "birthday": "Is my birthday {v}?",
                "word": "Is the secret word {v}?",
                "friend": "Is my best friend {v}?",
                "job": "Am I {a_v}?",
                "number": "Is my lucky number {v}?"
            }[slot]
            tail = fmt(SLOTS[slot][4][0], v)
            tail = tail[0].lower() + tail[1:]
            d.add(fmt(q, w), ("Yes, " if right else "No, ") + tail, "recall yes/no",
                  "Yes" if right else "No", names=True)
    else:
        slot = d.c([s for s in SLOTS if s not in d.facts])
        d.add(d.c(SLOTS[slot][3]), d.c(SLOTS[slot][6]), "recall unknown", None)


def about_me(d):
    bits = [fmt(SLOTS[s][4][0], v)[:-1] for s, v in d.facts.items()]
    bits = bits[:4]
    text = join([bits[0]] + [b[0].lower() + b[1:] for b in bits[1:]]) + "."
    d.add(
        d.c("What do you know about me?", "Tell me all you know about me.", "What have I told you?",
            "What do you remember about me?"), text, "recall all", d.facts[list(d.facts)[0]])


def where_thing(d):
    if "where" not in d.lists or d.p(0.3):
        t, s = d.draw(lambda: (lambda t, s: (f"where|{t}|{s}", (t, s)))
                      (d.c(banks.THINGS), d.c(banks.SPOTS)))
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
                                                       if d.p(0.6) else made_up_name(d.rng)))
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
        ws = d.rng.sample(banks.PLAIN, d.rng.randint(2, 4))
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
