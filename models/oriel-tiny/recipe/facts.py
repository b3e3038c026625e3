"""The facts a user can tell: values, and the wordings around them.

A Fact says how a value is drawn, how it is told (`say`: clauses that can be joined; `more`: whole
sentences), asked for (`ask`, besides the questions that every noun has), answered and checked.
In the texts {v} is the value, {V} the value with a capital, {a_v} with its article.

FACTS holds the user's own by slot; `about_person` makes facts about somebody else, so that
who is meant has to be read as well as what.
"""
from collections import namedtuple

import banks
import coined
from banks import an

Fact = namedtuple("Fact", "noun known new say more ask answer check short ack")


def cap(s):
    return s[:1].upper() + s[1:]


def fmt(text, v):
    v = str(v)
    return text.format(v=v, V=cap(v), a_v=an(v), A_v=cap(an(v)))


def yours(noun):
    """The user's noun phrase as the assistant says it."""
    return "your " + noun[3:] if noun.startswith("my ") else noun


ASK = ["What is {n}?", "What is {n}?", "What is {n}?", "What was {n} again?", "Do you remember {n}?", "Do you know {n}?",
       "Can you tell me {n}?", "Could you remind me what {n} is?", "Tell me {n}.", "Tell me what {n} is.",
       "Do you still know {n}?", "I forgot {n}. What is it?", "Remind me of {n}.", "What did I say {n} was?",
       "Please tell me {n}.", "{N}?", "And {n}?", "I cannot remember {n}. Can you help me?", "Do you remember what {n} is?",
       "What is {n}, do you remember?", "What do you think {n} is?", "What did I tell you about {n}?", "Do you recall {n}?",
       "I told you {n}. What was it?", "Say {n}.", "Earlier I told you {n}. What is it?", "Can you recall {n}?",
       "What is {n}? Answer in one sentence.", "Can you repeat {n}?", "You know {n}, right? What is it?",
       "What {m} did I tell you?", "Which {m} did I mention?", "What was the {m} I told you?"]
TELL = ["{s}.", "{s}.", "{s}.", "{s}.", "{s}!", "By the way, {l}.", "Please remember that {l}.", "Remember that {l}.", "Remember: {l}.",
        "Please remember this: {l}.", "Just so you know, {l}.", "You should know that {l}.", "I want to tell you that {l}.",
        "Keep in mind that {l}.", "Please note that {l}.", "For your information, {l}.", "Let me tell you something: {l}.",
        "I wanted to say that {l}.", "Here is a fact about me: {l}.", "{s}. Please remember it.", "{s}, remember that.",
        "{s}. Do not forget it.", "{s}. Can you remember that?", "One thing about me: {l}.", "Don't forget that {l}.",
        "Hi, {l}.", "Hello! {s}.", "Hey, {l}.", "Today I want to tell you that {l}.", "I have to tell you that {l}."]
UNKNOWN = ["You have not told me {n} yet.", "You have not told me {n}.", "I do not know {n}. You have not told me yet.",
           "I do not know that, you have not told me {n} yet.", "You have not told me {n} yet. What is it?"]


def fact(noun, known, new, say, more=(), ask=(), answer=(), check=(), short=("{v}.",), ack=()):
    your = cap(yours(noun))
    say = [f"{cap(noun)} is {{v}}"] + list(say)
    return Fact(noun, known, new, say, list(more), list(ask), [f"{your} is {{v}}."] + list(answer),
                [f"Is {noun} {{v}}?"] + list(check), list(short),
                [f"I will remember that {yours(noun)} is {{v}}.", f"Got it, {yours(noun)} is {{v}}.", "I will remember {v}."] + list(ack))


def pick(bank):
    return lambda r: r.choice(bank)


def questions(f):
    """All wordings of the question for one fact."""
    noun = f.noun
    bare = noun.split(" ", 1)[1]
    frames = [q.format(n=noun, N=cap(noun), m=bare) for q in ASK if noun.startswith("my ") or "{m}" not in q]
    return frames, f.ask


def ask_wording(rng, f):
    frames, own = questions(f)
    return rng.choice(own) if own and rng.random() < 0.5 else rng.choice(frames)


def unknown_wording(rng, f):
    return rng.choice(UNKNOWN).format(n=yours(f.noun))


NAMES = banks.SHE + banks.HE
DISHES = ("soup", "pie", "stew", "cake", "bread", "salad", "curry", "rice", "jam", "pudding")


def mixed(*drawers):
    return lambda r: r.choice(drawers)(r)


def things(bank):
    return lambda r: coined.thing(r, bank)


FACTS = {
    "name": fact("my name", pick(NAMES), coined.full_name,
        ["My friends and family call me {v}", "{v} is what people call me", "My full name is {v}", "I was named {v}", "I introduce myself as {v}", "I am {v}", "I'm {v}", "They call me {v}", "You can call me {v}", "My name's {v}", "Everyone calls me {v}", "The name is {v}",
         "I am called {v}", "People call me {v}", "I go by {v}"],
        ["Hi, I am {v}.", "Hello, my name is {v}.", "Please call me {v}.", "Call me {v}.", "{v} is my name.", "Hey, {v} here.",
         "Just call me {v}.", "Let me introduce myself: I am {v}.", "This is {v}.", "You are talking to {v}.", "{v} here!",
         "Hello there, I'm {v}, nice to meet you.", "Hi! My name is {v}. What is yours?", "Good morning, my name is {v}."],
        ["Who am I?", "What am I called?", "Say my name.", "How am I called?", "What name did I tell you?", "Who are you talking to?",
         "What do people call me?", "Do you know who I am?", "Do you remember who I am?", "Which name did I give you?", "What should you call me?",
         "By what name do I go?", "How should you call me?"],
        ["You are {v}.", "You told me that your name is {v}."], ["Am I {v}?", "Am I called {v}?", "My name is {v}, right?", "Do people call me {v}?"],
        ack=["Nice to meet you, {v}!", "Hello, {v}!", "Hi {v}! What can I do for you?", "It is good to meet you, {v}.", "Welcome, {v}!"]),
    "age": fact("my age", lambda r: r.randint(4, 99), None,
        ["I just had my birthday and I am {v} now", "I have been {v} since spring", "In years I am {v}", "I am {v} years old", "I'm {v} years old", "I turned {v} this year", "I am {v}", "I have just turned {v}"], [],
        ["How old am I?", "Do you know how old I am?", "And how old am I?", "How many years old am I?", "Do you remember how old I am?"],
        ["You are {v} years old.", "You told me that you are {v} years old."], ["Am I {v} years old?", "Am I {v}?"], ("{v}.", "You are {v}."),
        ["{v} is a good age!", "You are {v} years old, I see."]),
    "colour": fact("my favourite colour", pick(banks.COLOURS), things(banks.COLOURS),
        ["I love {v}, it is my favourite colour", "The colour for me is {v}", "My favourite colour has always been {v}", "I prefer the colour {v}", "I like the colour {v} best", "The colour I love most is {v}", "My favorite color is {v}", "The colour I like best is {v}"],
        ["{V} is my favourite colour.", "Of all colours I like {v} best."],
        ["Which colour do I like best?", "What colour do I like?", "What is my favorite color?", "Which color do I like?", "Tell me my favorite color.",
         "What colour do I like the most?"],
        ["You like {v} best."], ["Do I like {v} best?"], ("{V}.",), ["{V} is a lovely colour.", "Nice, {v}!"]),
    "food": fact("my favourite food", pick(banks.FOODS), things(DISHES),
        ["My favourite thing to eat is {v}", "I always eat {v}", "The best food for me is {v}", "I eat {v} whenever I can", "The dish I love is {v}", "I love to eat {v}", "The food I like best is {v}", "I could eat {v} every day", "My favorite food is {v}", "I like eating {v}"],
        ["{V} is my favourite food.", "There is no better food than {v}."],
        ["What do I like to eat?", "Which food do I like best?", "What do I love to eat?", "What food do I like?", "What is my favorite food?",
         "What could I eat every day?"],
        ["You like to eat {v}."], ["Do I like to eat {v}?"], ("{V}.",), ["Yum, {v}!", "{V} sounds tasty."]),
    "drink": fact("my favourite drink", pick(banks.DRINKS), lambda r: f"{coined.word(r, 2)} {r.choice(('tea', 'juice', 'milk', 'soda'))}",
        ["I like to drink {v}", "The drink I like best is {v}", "I always drink {v}"], ["I could drink {v} all day."],
        ["What do I like to drink?", "Which drink do I like best?", "What do I always drink?"], ["You like to drink {v}."], ["Do I like to drink {v}?"], ("{V}.",)),
    "animal": fact("my favourite animal", pick(banks.ANIMALS), things(banks.ANIMALS),
        ["My favourite animal is the {v}", "The animal I like best is the {v}", "I love the {v} most of all animals"],
        ["The {v} is my favourite animal.", "Of all animals I like the {v} best."], ["Which animal do I like best?", "What animal do I like?", "Which animal do I love most?"],
        ["Your favourite animal is the {v}.", "You like the {v} best."], ["Is my favourite animal the {v}?"], ("The {v}.",), ["The {v} is a wonderful animal."]),
    "city": fact("my home town", pick(banks.CITIES + [c for _, c in banks.CAPITALS]), coined.town,
        ["I have lived in {v} for years", "My family and I live in {v}", "My apartment is in {v}", "I stay in {v}", "I was born in {v} and I live there", "Home for me is {v}", "My town is {v}", "I live in {v}", "I am from {v}", "My home is in {v}", "My city is {v}", "I just moved to {v}", "I'm from {v}", "I come from {v}",
         "I am living in {v}", "I live in a town called {v}", "My house is in {v}"],
        ["{v} is my home.", "I was born in {v} and still live there.", "Greetings from {v}!", "I am writing to you from {v}, where I live."],
        ["Where do I live?", "Which city do I live in?", "Where is my home?", "Do you remember where I live?", "Where am I from?", "What city am I from?",
         "And where do I live?", "Where do I come from?", "Tell me where I live.", "Do you know where I live?", "In which city do I live?",
         "What town do I live in?", "In which town is my home?", "Can you tell me where I live?", "Which town do I come from?", "Where did I say I live?"],
        ["You live in {v}.", "Your home is in {v}."], ["Do I live in {v}?", "Am I from {v}?", "I live in {v}, right?", "Is my home in {v}?"],
        ("In {v}.", "{v}."), ["{v} sounds like a nice place."]),
    "country": fact("my country", pick(banks.COUNTRIES), coined.town, ["The country I live in is {v}", "The country I come from is {v}"], [],
        ["Which country am I from?", "In which country do I live?", "What country do I come from?", "Which country do I live in?"],
        ["You come from {v}."], ["Do I come from {v}?"], ("{V}.",)),
    "code": fact("my secret code", None, coined.code,
        ["The code you must keep is {v}", "My secret code has been changed to {v}", "I use the code {v}", "The code to remember is {v}", "The code is {v}", "The secret number is {v}", "The secret code is {v}", "The code for the door is {v}", "My code is {v}"],
        ["The code is {v}. Please remember it.", "Remember this code: {v}.", "Keep this code for me: {v}.", "Here is the code: {v}.", "Code: {v}"],
        ["What is the code?", "Do you remember the code?", "Tell me the secret number.", "What was the code again?", "Give me the code.", "What is the secret code?",
         "Which code did I give you?", "What is my code?", "I need the code."],
        ["The code is {v}.", "It is {v}."], ["Is the code {v}?"], ("{v}.",), ["Got it: {v}.", "The code is {v}. I will keep it."]),
    "pin": fact("my PIN", None, lambda r: "".join(r.choice("0123456789") for _ in range(4)), ["The PIN is {v}", "My PIN code is {v}"], [],
        ["What is the PIN?", "Which PIN did I give you?", "Tell me the PIN."], ["The PIN is {v}."]),
    "word": fact("my password", pick(banks.PLAIN), lambda r: coined.word(r),
        ["Our secret word is {v}", "The word to remember is {v}", "The password for today is {v}", "We use the code word {v}", "The secret word is {v}", "The magic word is {v}", "The code word is {v}", "The password is {v}", "My code word is {v}"],
        ["Remember the word {v}.", "Please remember this word: {v}.", "Keep this word in mind: {v}.", "Remember this word: {v}."],
        ["What is the secret word?", "What word did I tell you?", "Which word should you remember?", "What was the word?", "What is the code word?",
         "What is the magic word?", "What is the password?", "Tell me the code word.", "What is my code word?", "Which word did I ask you to remember?"],
        ["The word is {v}.", "You told me the word {v}."], ["Is the secret word {v}?", "Was the word {v}?"], ("{v}.",), ["Okay, the word is {v}.", "Got it: {v}."]),
    "hobby": fact("my hobby", pick(banks.HOBBIES), coined.hobby,
        ["I love {v}", "In my free time I like {v}", "The thing I like most is {v}", "I enjoy {v}", "I like {v} in the evening"], ["{V} is my hobby.", "At the weekend I am always {v}."],
        ["What do I like to do?", "What do I do in my free time?", "What do I enjoy?", "Which hobby do I have?", "What do I do for fun?"],
        ["You like {v}."], ["Do I like {v}?"], ("{V}.",), ["{V} sounds fun!"]),
    "birthday": fact("my birthday", None, lambda r: (f"{r.choice(banks.MONTHS)} {r.randint(1, 28)}" if r.random() < 0.7
                                                     else f"{r.randint(1, 28)} {r.choice(banks.MONTHS)}"),
        ["My birthday comes on {v}", "I get a year older on {v}", "We have a party for my birthday on {v}", "My birthday is on {v}", "I was born on {v}", "I have my birthday on {v}"], ["Remember my birthday: {v}.", "My birthday? It is {v}."],
        ["When is my birthday?", "When was I born?", "What day is my birthday?", "On which day is my birthday?", "What date is my birthday?", "When do I have my birthday?"],
        ["Your birthday is on {v}."], ["Is my birthday on {v}?", "Was I born on {v}?"]),
    "friend": fact("my best friend", pick(NAMES), coined.full_name,
        ["My best friend has the name {v}", "I know {v} well, that is my best friend", "My best friend since school is {v}", "My best friend is called {v}", "I have a friend named {v}", "My friend's name is {v}", "I have a friend called {v}", "The name of my best friend is {v}"],
        ["{v} is my best friend.", "I often play with my friend {v}."],
        ["Who is my best friend?", "What is the name of my friend?", "What is my friend called?", "Who is my friend?", "What is my friend's name?",
         "What is my best friend called?", "What is my best friend's name?"],
        ["Your friend is called {v}."], ["Is {v} my best friend?"], ("{v}.",), ["{v} sounds like a good friend."]),
    "job": fact("my job", pick(banks.JOBS), coined.job, ["In my job I am {a_v}", "My work is to be {a_v}", "I make my money as {a_v}", "I have a job as {a_v}", "I work as {a_v}", "I am {a_v}", "I'm {a_v}", "I am {a_v} by profession", "I earn my money as {a_v}"], [],
        ["What do I work as?", "What do I do for a living?", "What is my profession?", "Which job do I have?", "What do I do for work?", "What kind of work do I do?"],
        ["You are {a_v}.", "You work as {a_v}."], ["Am I {a_v}?", "Do I work as {a_v}?"], ("{A_v}.",), ["How nice, {a_v}!"]),
    "number": fact("my lucky number", None, lambda r: r.randint(10, 999) if r.random() < 0.5 else r.randint(2, 99),
        ["I always pick {v} as my lucky number", "My lucky number was always {v}", "The lucky number I have is {v}", "The number I like best is {v}", "My favourite number is {v}", "My number is {v}"], ["Remember the number {v}.", "{v} is my lucky number."],
        ["Which number did I tell you?", "What is my favourite number?", "Which number should you remember?", "What number do I like?", "What is my number?"],
        ["The number is {v}."], ["Was the number {v}?"], ack=["{v} is a nice number."]),
    "sport": fact("my favourite sport", pick(banks.SPORTS), lambda r: coined.word(r, 2) + "ball", ["I play {v}", "The sport I like best is {v}"], [],
        ["Which sport do I like?", "What sport do I play?", "Which sport do I do?"], ["You like {v}."], ["Do I like {v}?"], ("{V}.",)),
    "subject": fact("my favourite subject", pick(banks.SUBJECTS), None, ["The subject I like best is {v}", "At school I like {v} best"], [],
        ["Which subject do I like best?", "What do I like at school?"], ["You like {v} best."], [], ("{V}.",)),
    "language": fact("my language", pick(banks.LANGUAGES), None, ["I speak {v}", "At home I speak {v}", "I am learning {v}"], [],
        ["Which language do I speak?", "What language do I speak?", "Which language did I mention?"], ["You speak {v}."], ["Do I speak {v}?"]),
    "surname": fact("my last name", pick(banks.SURNAMES), lambda r: coined.title(coined.word(r)), ["My family name is {v}", "My surname is {v}"], [],
        ["What is my surname?", "What is my family name?"], ["Your family name is {v}."], ["Is my surname {v}?"]),
    "nickname": fact("my nickname", pick(banks.PETNAMES), coined.first_name, ["My friends call me {v}", "At school they called me {v}"], [],
        ["What do my friends call me?", "Which nickname do I have?"], ["Your friends call you {v}."], ["Do my friends call me {v}?"]),
    "season": fact("my favourite season", pick(banks.SEASONS), None, ["The season I like best is {v}", "I like {v} best of all seasons"], [],
        ["Which season do I like best?"], ["You like {v} best."], [], ("{V}.",)),
    "day": fact("my favourite day", pick(banks.DAYS), None, ["The day I like best is {v}"], [], ["Which day do I like best?", "Which day of the week do I like?"], ["You like {v} best."]),
    "instrument": fact("my instrument", pick(banks.INSTRUMENTS), None, ["I play the {v}", "My instrument is the {v}", "I am learning the {v}"], [],
        ["Which instrument do I play?", "What instrument do I play?", "What do I play?"], ["You play the {v}."], ["Do I play the {v}?"], ("The {v}.",)),
    "phone": fact("my phone number", None, lambda r: "".join(r.choice("0123456789") for _ in range(r.choice((5, 6, 6, 7)))), ["You can call me at {v}"], [],
        ["What number can you call me at?"], ["Your number is {v}."]),
    "room": fact("my room number", None, lambda r: r.randint(2, 420), ["I am in room {v}", "I stay in room {v}"], [], ["Which room am I in?", "In which room do I stay?"], ["You are in room {v}."]),
    "meeting": fact("the time of the meeting", None, lambda r: f"{r.randint(1, 12)}:{r.choice(('00', '15', '30', '45', '10', '20', '05'))}",
        ["The meeting is at {v}", "We meet at {v}", "The meeting starts at {v}"], [], ["When is the meeting?", "At what time is the meeting?", "When does the meeting start?", "What time do we meet?"],
        ["The meeting is at {v}."], ["Is the meeting at {v}?"], ("At {v}.",)),
    "train": fact("the train time", None, lambda r: f"{r.randint(5, 23)}:{r.randint(10, 59)}", ["The train leaves at {v}", "My train goes at {v}"], [],
        ["When does the train leave?", "At what time does my train go?", "When is my train?"], ["The train leaves at {v}."], ["Does the train leave at {v}?"], ("At {v}.",)),
    "key": fact("the place of the key", lambda r: r.choice(banks.SPOTS), lambda r: coined.thing(r, ("box", "drawer", "shed", "bag", "jar", "basket")),
        ["The key is in the {v}", "I put the key in the {v}", "I hid the key in the {v}"], ["The place of the key is the {v}."],
        ["Where is the key?", "Where did I put the key?", "Where did I hide the key?", "In what place is the key?"], ["The key is in the {v}."], ["Is the key in the {v}?"], ("In the {v}.",)),
    "treasure": fact("the place of the treasure", None, lambda r: coined.thing(r, ("hill", "cave", "tree", "lake", "rock", "tower")),
        ["The treasure is under the {v}", "They buried the treasure under the {v}"], [], ["Where is the treasure?", "Where did they bury the treasure?"], ["The treasure is under the {v}."], [], ("Under the {v}.",)),
}
for _slot in ("animal", "instrument", "key", "treasure", "meeting", "train"):
    # Their sentences need "the" or a preposition, which the general wording lacks.
    _f = FACTS[_slot]
    FACTS[_slot] = _f._replace(say=_f.say[1:], answer=_f.answer[1:], check=_f.check[1:] or _f.check, ack=["I will remember that.", "Got it."] + _f.ack[3:])
FACTS["treasure"] = FACTS["treasure"]._replace(check=["Is the treasure under the {v}?"])
CORE = list(FACTS)

RELATIONS = banks.words("""sister, brother, mother, father, teacher, boss, neighbour, aunt, uncle, cousin, son, daughter,
grandmother, grandfather, doctor, coach, wife, husband, dentist, street, school, team, boat, car, company, village, robot, band, doll""")
PEOPLE = 19
PETS = banks.PETS
FAVOURITES = banks.words("""book, song, game, film, fruit, flower, tree, place, toy, singer, planet, dish, shop,
stone, star, band, writer, holiday spot, vegetable, dessert, movie, ice cream, number, city, word, letter, month""")
FAVOURITE_NEW = {"number": lambda r: r.randint(2, 99), "letter": lambda r: r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), "month": pick(banks.MONTHS), "city": coined.town,
                 "fruit": pick(banks.FRUITS), "vegetable": pick(banks.VEGETABLES), "planet": pick(banks.words("Mercury, Venus, Mars, Jupiter, Saturn, Uranus, Neptune"))}

for _r in RELATIONS + PETS:
    _human, _pet = _r in RELATIONS[:PEOPLE], _r in PETS
    FACTS[("pet " if _pet else "rel ") + _r] = fact(
        f"my {_r}'s name", pick(banks.PETNAMES) if _pet else pick(NAMES) if _human else None,
        coined.first_name if _pet else coined.full_name if _human else coined.town,
        [f"My {_r} is called {{v}}", f"The name of my {_r} is {{v}}", f"I have {an(_r)} called {{v}}", f"I have {an(_r)} named {{v}}", f"My {_r} is named {{v}}", f"We have {an(_r)} called {{v}}", f"Our {_r} is called {{v}}", f"We call our {_r} {{v}}", f"My {_r} goes by the name {{v}}"]
        + ([f"My {_r} is {{v}}"] if _human else []),
        [f"{{v}} is the name of my {_r}.", f"{{v}} is my {_r}."],
        [f"What is my {_r} called?", f"What is the name of my {_r}?", f"Do you remember the name of my {_r}?", f"And my {_r}?", f"What did I call my {_r}?", f"How is my {_r} called?",
         f"What is the name of the {_r} I have?"] + ([f"Who is my {_r}?"] if _human else []) + (["What is my pet called?", "What is my pet's name?", "What is the name of my pet?"] if _pet else []),
        [f"Your {_r} is called {{v}}.", f"The name of your {_r} is {{v}}."], [f"Is my {_r} called {{v}}?", f"Is {{v}} the name of my {_r}?"], ("{v}.",), ["{v}, what a nice name."])
for _f in FAVOURITES:
    FACTS["fav " + _f] = fact(
        f"my favourite {_f}", None, FAVOURITE_NEW.get(_f) or (lambda r: coined.town(r) if r.random() < 0.5 else coined.thing(r, banks.PLAIN)),
        [f"The {_f} I like best is {{v}}", f"My favorite {_f} is {{v}}"], [f"{{V}} is my favourite {_f}."],
        [f"Which {_f} do I like best?", f"What {_f} do I like?", f"What is my favorite {_f}?"], [f"The {_f} you like best is {{v}}."], [f"Is my favorite {_f} {{v}}?"], ("{V}.",), ["Nice, {v}!"])

PERSON = {  # what can be said about somebody called N: noun, drawers, clauses, questions, answer
    "city": ("home town", coined.town, ["N lives in {v}", "N is from {v}"], ["Where does N live?", "Where is N from?", "Which town does N live in?"], "N lives in {v}."),
    "job": ("job", lambda r: r.choice(banks.JOBS), ["N is {a_v}", "N works as {a_v}"], ["What does N work as?", "What does N do for a living?"], "N is {a_v}."),
    "age": ("age", lambda r: r.randint(4, 99), ["N is {v} years old"], ["How old is N?"], "N is {v} years old."),
    "colour": ("favourite colour", lambda r: r.choice(banks.COLOURS), ["N likes the colour {v} best"], ["Which colour does N like?"], "N likes {v} best."),
    "food": ("favourite food", lambda r: r.choice(banks.FOODS), ["N loves {v}", "N likes to eat {v}"], ["What does N like to eat?", "What food does N love?"], "N likes to eat {v}."),
    "pet": ("pet", lambda r: r.choice(PETS), ["N has {a_v}", "N owns {a_v}"], ["What pet does N have?", "Which animal does N have?"], "N has {a_v}."),
    "hobby": ("hobby", lambda r: r.choice(banks.HOBBIES), ["N likes {v}", "N enjoys {v}"], ["What does N like to do?", "What does N enjoy?"], "N likes {v}."),
    "friend": ("best friend", coined.first_name, ["N is friends with {v}"], ["Who is N friends with?"], "N is friends with {v}."),
    "sport": ("sport", lambda r: r.choice(banks.SPORTS), ["N plays {v}"], ["Which sport does N play?", "What does N play?"], "N plays {v}."),
    "room": ("room", lambda r: r.randint(2, 420), ["N is in room {v}", "N sits in room {v}"], ["Which room is N in?"], "N is in room {v}."),
}


def about_person(name, kind):
    """A Fact about `name`."""
    noun, draw, say, ask, answer = PERSON[kind]
    put = lambda texts: [t.replace("N", name, 1) if t.startswith("N") else t.replace(" N ", f" {name} ").replace(" N?", f" {name}?") for t in texts]
    return Fact(f"{name}'s {noun}", draw, None, put(say) + [f"{name}'s {noun} is {{v}}"], [], put(ask), put([answer]), [f"Is {name}'s {noun} {{v}}?"],
                ["{V}."], ["I will remember that.", "Okay, I will keep that in mind.", "Got it."])
