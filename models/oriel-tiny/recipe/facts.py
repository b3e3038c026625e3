"""The facts a user can tell: values, and the wordings around them.

A Fact says how a value is drawn, how it is told (`say` are clauses that can be
joined, `more` whole sentences), how it is acknowledged, asked for, answered,
checked ("Is my name Tom?") and what to say while it is unknown.  In the texts
{v} is the value, {V} the value with a capital, {a_v} with its article.

FACTS holds them by slot.  Slots "fav ..." and "rel ..." are made from lists, so
that the wording has to be read as well as the value.
"""
from collections import namedtuple

import banks
import coined
from banks import an
from stories import cap

Fact = namedtuple("Fact", "known new say more ack ask answer short unknown check")


def fmt(text, v):
    v = str(v)
    return text.format(v=v, V=cap(v), a_v=an(v), A_v=cap(an(v)))


def fact(known, new, say, more, ack, ask, answer, unknown, check, short=("{v}.",)):
    return Fact(known, new, say, more, ack, ask, answer, short, unknown, check)


def pick(bank):
    return lambda r: r.choice(bank)


NAMES = banks.SHE + banks.HE

FACTS = {
    "name": fact(
        pick(NAMES), coined.full_name,
        ["My name is {v}", "I am {v}", "I'm {v}", "They call me {v}", "You can call me {v}", "My name's {v}",
         "Everyone calls me {v}", "The name is {v}", "I am called {v}"],
        ["Hi, I am {v}.", "Hello, my name is {v}.", "Remember that my name is {v}.", "Please call me {v}.", "Call me {v}.",
         "Hi! I'm {v}.", "Hello! My name is {v}.", "{v} is my name.", "Hey, {v} here.", "Just call me {v}.",
         "By the way, my name is {v}.", "Let me introduce myself: I am {v}.", "This is {v}.", "You are talking to {v}."],
        ["Nice to meet you, {v}!", "Hello, {v}!", "Hi {v}! What can I do for you?", "It is good to meet you, {v}.",
         "Thank you, {v}. I will remember your name.", "Welcome, {v}!", "Hello {v}, how can I help you?"],
        ["What is my name?", "Do you know my name?", "Who am I?", "What am I called?", "Do you remember my name?",
         "Can you tell me my name?", "Say my name.", "What's my name?", "Tell me my name.", "And what is my name?",
         "How am I called?", "What was my name again?", "Do you still know my name?", "What name did I tell you?",
         "Who are you talking to?", "Remind me, what is my name?"],
        ["Your name is {v}.", "You are {v}.", "You told me that your name is {v}."],
        ["I do not know your name yet.", "You have not told me your name yet.", "I do not know your name. What is it?"],
        "Is my name {v}?"),
    "age": fact(
        lambda r: r.randint(4, 99), None,
        ["I am {v} years old", "I'm {v} years old", "My age is {v}", "I turned {v} this year", "I am {v}"],
        ["Remember that I am {v} years old.", "I have just turned {v}."],
        ["You are {v} years old, I see.", "{v} is a good age!", "Thank you, I will remember that you are {v}.", "Great, {v} years old."],
        ["How old am I?", "What is my age?", "Do you know how old I am?", "Do you remember my age?", "What's my age?",
         "And how old am I?", "Tell me my age."],
        ["You are {v} years old.", "You told me that you are {v} years old."],
        ["I do not know your age yet.", "You have not told me how old you are."],
        "Am I {v} years old?", ("{v}.", "You are {v}.")),
    "colour": fact(
        pick(banks.COLOURS), lambda r: coined.thing(r, banks.COLOURS),
        ["My favourite colour is {v}", "I like the colour {v} best", "The colour I love most is {v}"],
        ["{V} is my favourite colour.", "Of all colours I like {v} best."],
        ["{V} is a lovely colour.", "I will remember that you like {v}.", "Nice, {v}!", "Good choice, {v} is beautiful."],
        ["What is my favourite colour?", "Which colour do I like best?", "Do you remember my favourite colour?",
         "What colour do I like?", "What's my favourite colour?", "And my favourite colour?"],
        ["Your favourite colour is {v}.", "You like {v} best."],
        ["I do not know your favourite colour yet.", "You have not told me your favourite colour."],
        "Is my favourite colour {v}?", ("{V}.",)),
    "food": fact(
        pick(banks.FOODS), lambda r: coined.thing(r, ("soup", "pie", "stew", "cake", "bread", "salad", "curry", "rice", "jam", "pudding")),
        ["My favourite food is {v}", "I love to eat {v}", "The food I like best is {v}", "I could eat {v} every day"],
        ["Remember that I like {v}.", "{V} is my favourite food.", "There is no better food than {v}."],
        ["Yum, {v}!", "{V} sounds tasty.", "I will remember that you like {v}.", "I cannot eat, but {v} sounds good."],
        ["What is my favourite food?", "What do I like to eat?", "Do you remember my favourite food?",
         "Which food do I like best?", "What's my favourite food?", "What do I love to eat?"],
        ["Your favourite food is {v}.", "You like to eat {v}."],
        ["I do not know what you like to eat yet.", "You have not told me your favourite food."],
        "Is my favourite food {v}?", ("{V}.",)),
    "animal": fact(
        pick(banks.ANIMALS), lambda r: coined.thing(r, banks.ANIMALS),
        ["My favourite animal is the {v}", "The animal I like best is the {v}", "I love the {v} most of all animals"],
        ["The {v} is my favourite animal.", "Of all animals I like the {v} best."],
        ["The {v} is a wonderful animal.", "I will remember the {v}.", "Good choice, I like the {v} too.", "The {v}, how nice!"],
        ["What is my favourite animal?", "Which animal do I like best?", "Do you remember my favourite animal?",
         "What's my favourite animal?", "And my favourite animal?"],
        ["Your favourite animal is the {v}.", "You like the {v} best."],
        ["I do not know your favourite animal yet.", "You have not told me your favourite animal."],
        "Is my favourite animal the {v}?", ("The {v}.",)),
    "city": fact(
        pick(banks.CITIES + [c for _, c in banks.CAPITALS]), coined.town,
        ["I live in {v}", "I am from {v}", "My home is in {v}", "My city is {v}", "I just moved to {v}", "I'm from {v}",
         "I come from {v}", "I am living in {v}"],
        ["{v} is my home.", "I was born in {v} and still live there.", "Remember that I live in {v}.", "Greetings from {v}!"],
        ["{v} sounds like a nice place.", "I will remember that you live in {v}.", "Oh, {v}! How nice.",
         "Thank you, now I know that you live in {v}."],
        ["Where do I live?", "Which city do I live in?", "Where is my home?", "Do you remember where I live?",
         "Where am I from?", "What city am I from?", "And where do I live?", "Where do I come from?",
         "Tell me where I live.", "Do you know where I live?", "In which city do I live?"],
        ["You live in {v}.", "Your home is in {v}."],
        ["I do not know where you live yet.", "You have not told me where you live."],
        "Do I live in {v}?", ("In {v}.",)),
    "code": fact(
        None, coined.code,
        ["My secret code is {v}", "The code is {v}", "The secret number is {v}", "My PIN is {v}"],
        ["The code is {v}. Please remember it.", "Remember this code: {v}.", "Keep this code for me: {v}.", "Here is the code: {v}."],
        ["I will remember the code {v}.", "Got it: {v}.", "The code is {v}. I will keep it.", "Okay, {v}."],
        ["What is my secret code?", "What is the code?", "Do you remember the code?", "Tell me the secret number.",
         "What was the code again?", "What's the code?", "Give me the code."],
        ["The code is {v}.", "Your secret code is {v}.", "It is {v}."],
        ["I do not know any code yet.", "You have not told me a code."],
        "Is the code {v}?"),
    "hobby": fact(
        pick(banks.HOBBIES), coined.hobby,
        ["My hobby is {v}", "I love {v}", "In my free time I like {v}", "The thing I like most is {v}", "I enjoy {v}"],
        ["{V} is my hobby.", "In the evening I am always {v}."],
        ["{V} sounds fun!", "I will remember that you like {v}.", "That is a great hobby."],
        ["What is my hobby?", "What do I like to do?", "Do you remember my hobby?", "What do I do in my free time?",
         "What's my hobby?", "What do I enjoy?"],
        ["Your hobby is {v}.", "You like {v}."],
        ["I do not know your hobby yet.", "You have not told me your hobby."],
        "Is my hobby {v}?", ("{V}.",)),
    "birthday": fact(
        None, lambda r: f"{r.choice(banks.MONTHS)} {r.randint(1, 28)}",
        ["My birthday is {v}", "My birthday is on {v}", "I was born on {v}"],
        ["Remember my birthday: {v}.", "My birthday? It is {v}."],
        ["I will remember {v}.", "{v}, that is a good day.", "Got it, your birthday is {v}."],
        ["When is my birthday?", "Do you remember my birthday?", "When was I born?", "What day is my birthday?"],
        ["Your birthday is {v}.", "Your birthday is on {v}."],
        ["I do not know your birthday yet.", "You have not told me your birthday."],
        "Is my birthday {v}?"),
    "word": fact(
        pick(banks.PLAIN), lambda r: coined.word(r),
        ["The secret word is {v}", "My password is {v}", "The magic word is {v}"],
        ["Remember the word {v}.", "Please remember this word: {v}.", "Keep this word in mind: {v}."],
        ["I will remember the word {v}.", "Okay, the word is {v}.", "Got it: {v}."],
        ["What is the secret word?", "What word did I tell you?", "Which word should you remember?", "What was the word?",
         "What is my password?"],
        ["The word is {v}.", "You told me the word {v}.", "The secret word is {v}."],
        ["I do not know any secret word yet.", "You have not told me a word."],
        "Is the secret word {v}?", ("{V}.", "{v}.")),
    "friend": fact(
        pick(NAMES), coined.full_name,
        ["My best friend is {v}", "My best friend is called {v}", "I have a friend named {v}", "My friend's name is {v}"],
        ["{v} is my best friend.", "I often play with my friend {v}."],
        ["{v} sounds like a good friend.", "I will remember {v}.", "It is nice to have a friend like {v}."],
        ["Who is my best friend?", "What is the name of my friend?", "What is my friend called?",
         "Do you remember my best friend?", "Who is my friend?"],
        ["Your best friend is {v}.", "Your friend is called {v}."],
        ["I do not know your friend yet.", "You have not told me about your friend."],
        "Is my best friend {v}?"),
    "job": fact(
        pick(banks.JOBS), coined.job,
        ["I work as {a_v}", "I am {a_v}", "My job is {v}", "I'm {a_v}"],
        ["I want to tell you that I am {a_v}.", "I earn my money as {a_v}."],
        ["How nice, {a_v}!", "I will remember that you are {a_v}.", "That is a fine job."],
        ["What is my job?", "What do I work as?", "Do you remember my job?", "What's my job?", "And my job?"],
        ["You are {a_v}.", "You work as {a_v}."],
        ["I do not know your job yet.", "You have not told me your job."],
        "Am I {a_v}?", ("{A_v}.",)),
    "number": fact(
        None, lambda r: r.randint(10, 999) if r.random() < 0.5 else r.randint(10, 99),
        ["My lucky number is {v}", "The number I like best is {v}"],
        ["Remember the number {v}.", "{v} is my lucky number."],
        ["{v} is a nice number.", "I will remember {v}.", "Got it: {v}."],
        ["What is my lucky number?", "Which number did I tell you?", "Do you remember my number?", "What's my lucky number?"],
        ["Your lucky number is {v}.", "The number is {v}."],
        ["I do not know your lucky number yet.", "You have not told me a number."],
        "Is my lucky number {v}?"),
}
CORE = list(FACTS)

RELATIONS = banks.words("""sister, brother, mother, father, teacher, boss, neighbour, aunt, uncle, cousin, son, daughter,
grandmother, grandfather, doctor, coach, street, school, team, boat, car, company, village, robot, band, doll""")
FAVOURITES = banks.words("""book, song, game, film, drink, fruit, flower, tree, place, toy, singer, planet, dish, shop,
sport, stone, star, band, writer, holiday spot""")

for _r in RELATIONS:
    FACTS["rel " + _r] = fact(
        pick(NAMES), coined.full_name if RELATIONS.index(_r) < 16 else coined.town,
        [f"My {_r} is called {{v}}", f"My {_r}'s name is {{v}}", f"The name of my {_r} is {{v}}", f"My {_r} is {{v}}"],
        [f"I have a {_r} called {{v}}." if _r[0] not in "aeiou" else f"I have an {_r} called {{v}}.",
         f"Remember that my {_r} is called {{v}}.", f"{{v}} is the name of my {_r}."],
        ["I will remember {v}.", "{v}, what a nice name.", f"Your {_r} is called {{v}}, I see.", "Got it: {v}."],
        [f"What is my {_r} called?", f"What is the name of my {_r}?", f"Do you remember the name of my {_r}?",
         f"What is my {_r}'s name?", f"And my {_r}?"],
        [f"Your {_r} is called {{v}}.", f"The name of your {_r} is {{v}}."],
        [f"You have not told me about your {_r}.", f"I do not know the name of your {_r} yet."],
        f"Is my {_r} called {{v}}?")
for _f in FAVOURITES:
    FACTS["fav " + _f] = fact(
        None, lambda r: coined.town(r) if r.random() < 0.5 else coined.thing(r, banks.PLAIN),
        [f"My favourite {_f} is {{v}}", f"The {_f} I like best is {{v}}"],
        [f"{{V}} is my favourite {_f}.", f"Remember that my favourite {_f} is {{v}}."],
        [f"{{V}} is a good {_f}.", "I will remember {v}.", "Nice, {v}!"],
        [f"What is my favourite {_f}?", f"Which {_f} do I like best?", f"Do you remember my favourite {_f}?"],
        [f"Your favourite {_f} is {{v}}.", f"The {_f} you like best is {{v}}."],
        [f"You have not told me your favourite {_f}.", f"I do not know your favourite {_f} yet."],
        f"Is my favourite {_f} {{v}}?")
