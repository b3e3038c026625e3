"""Facts about what the user likes and does, and about the user's family, pets, places and favourites."""

import re

import banks
from banks import an
from facts import fact, pick
from tellings import OF_FAVOURITE, OF_PERSON, OF_PET, OF_PLACE

DISHES = ("soup", "pie", "stew", "cake", "bread", "salad", "curry", "rice", "jam", "pudding")


def things(bank):
    return lambda r: banks.thing(r, bank)


LIKES = {
    "colour": fact(
        "my favourite colour",
        pick(banks.COLOURS),
        things(banks.COLOURS),
        [
            "I love {v}, it is my favourite colour",
            "The colour for me is {v}",
            "My favourite colour has always been {v}",
            "I prefer the colour {v}",
            "I like the colour {v} best",
            "The colour I love most is {v}",
            "My favorite color is {v}",
            "The colour I like best is {v}",
        ],
        ["{V} is my favourite colour.", "Of all colours I like {v} best."],
        [
            "Which colour do I like best?",
            "What colour do I like?",
            "What is my favorite color?",
            "Which color do I like?",
            "Tell me my favorite color.",
            "What colour do I like the most?",
        ],
        ["You like {v} best."],
        ["Do I like {v} best?"],
        ("{V}.",),
        ["{V} is a lovely colour.", "Nice, {v}!"],
    ),
    "food": fact(
        "my favourite food",
        pick(banks.FOODS),
        things(DISHES),
        [
            "My favourite thing to eat is {v}",
            "I always eat {v}",
            "The best food for me is {v}",
            "I eat {v} whenever I can",
            "The dish I love is {v}",
            "I love to eat {v}",
            "The food I like best is {v}",
            "I could eat {v} every day",
            "My favorite food is {v}",
            "I like eating {v}",
        ],
        ["{V} is my favourite food.", "There is no better food than {v}."],
        [
            "What do I like to eat?",
            "Which food do I like best?",
            "What do I love to eat?",
            "What food do I like?",
            "What is my favorite food?",
            "What could I eat every day?",
        ],
        ["You like to eat {v}."],
        ["Do I like to eat {v}?"],
        ("{V}.",),
        ["Yum, {v}!", "{V} sounds tasty."],
    ),
    "drink": fact(
        "my favourite drink",
        pick(banks.DRINKS),
        lambda r: f"{banks.word(r, 2)} {r.choice(('tea', 'juice', 'milk', 'soda'))}",
        ["I like to drink {v}", "The drink I like best is {v}", "I always drink {v}"],
        ["I could drink {v} all day."],
        ["What do I like to drink?", "Which drink do I like best?", "What do I always drink?"],
        ["You like to drink {v}."],
        ["Do I like to drink {v}?"],
        ("{V}.",),
    ),
    "animal": fact(
        "my favourite animal",
        pick(banks.ANIMALS),
        things(banks.ANIMALS),
        [
            "My favourite animal is the {v}",
            "The animal I like best is the {v}",
            "I love the {v} most of all animals",
        ],
        ["The {v} is my favourite animal.", "Of all animals I like the {v} best."],
        ["Which animal do I like best?", "What animal do I like?", "Which animal do I love most?"],
        ["Your favourite animal is the {v}.", "You like the {v} best."],
        ["Is my favourite animal the {v}?"],
        ("The {v}.",),
        ["The {v} is a wonderful animal."],
        general=False,
    ),
    "hobby": fact(
        "my hobby",
        pick(banks.HOBBIES),
        banks.hobby,
        [
            "I love {v}",
            "In my free time I like {v}",
            "The thing I like most is {v}",
            "I enjoy {v}",
            "I like {v} in the evening",
        ],
        ["{V} is my hobby.", "At the weekend I am always {v}."],
        [
            "What do I like to do?",
            "What do I do in my free time?",
            "What do I enjoy?",
            "Which hobby do I have?",
            "What do I do for fun?",
        ],
        ["You like {v}."],
        ["Do I like {v}?"],
        ("{V}.",),
        ["{V} sounds fun!"],
    ),
    "sport": fact(
        "my favourite sport",
        pick(banks.SPORTS),
        lambda r: banks.word(r, 2) + "ball",
        ["I play {v}", "The sport I like best is {v}"],
        [],
        ["Which sport do I like?", "What sport do I play?", "Which sport do I do?"],
        ["You like {v}."],
        ["Do I like {v}?"],
        ("{V}.",),
    ),
    "subject": fact(
        "my favourite subject",
        pick(banks.SUBJECTS),
        None,
        ["The subject I like best is {v}", "At school I like {v} best"],
        [],
        ["Which subject do I like best?", "What do I like at school?"],
        ["You like {v} best."],
        [],
        ("{V}.",),
    ),
    "season": fact(
        "my favourite season",
        pick(banks.SEASONS),
        None,
        ["The season I like best is {v}", "I like {v} best of all seasons"],
        [],
        ["Which season do I like best?"],
        ["You like {v} best."],
        [],
        ("{V}.",),
    ),
    "day": fact(
        "my favourite day",
        pick(banks.DAYS),
        None,
        ["The day I like best is {v}"],
        [],
        ["Which day do I like best?", "Which day of the week do I like?"],
        ["You like {v} best."],
    ),
    "instrument": fact(
        "my instrument",
        pick(banks.INSTRUMENTS),
        None,
        ["I play the {v}", "My instrument is the {v}", "I am learning the {v}"],
        [],
        ["Which instrument do I play?", "What instrument do I play?", "What do I play?"],
        ["You play the {v}."],
        ["Do I play the {v}?"],
        ("The {v}.",),
        general=False,
    ),
}


NAMES = banks.SHE + banks.HE


def noun_in(pattern, noun):
    """The patterns of tellings.py with N for a noun, Ns for its plural."""
    pattern = re.sub(r"\ba N\b", an(noun), pattern)
    return re.sub(r"\bN(?=s?\b)", noun, pattern)


RELATIONS = banks.words(
    """sister, brother, mother, father, teacher, boss, neighbour, aunt, uncle, cousin, son, daughter,
grandmother, grandfather, doctor, coach, wife, husband, dentist, street, school, team, boat, car, company, village, robot, band, doll"""
)
PEOPLE = 19
FAVOURITES = banks.words(
    """book, song, game, film, fruit, flower, tree, place, toy, singer, planet, dish, shop,
stone, star, band, writer, holiday spot, vegetable, dessert, movie, ice cream, number, city, word, letter, month"""
)
FAVOURITE_NEW = {
    "number": lambda r: r.randint(2, 99),
    "letter": lambda r: r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "month": pick(banks.MONTHS),
    "city": banks.town,
    "fruit": pick(banks.FRUITS),
    "vegetable": pick(banks.VEGETABLES),
    "planet": pick(banks.words("Mercury, Venus, Mars, Jupiter, Saturn, Uranus, Neptune")),
}

RELATED = {}
for _r in RELATIONS + banks.PETS:
    _human, _pet = _r in RELATIONS[:PEOPLE], _r in banks.PETS
    RELATED[("pet " if _pet else "rel ") + _r] = fact(
        f"my {_r}'s name",
        pick(banks.PETNAMES) if _pet else pick(NAMES) if _human else None,
        banks.first_name if _pet else banks.full_name if _human else banks.town,
        [
            f"My {_r} is called {{v}}",
            f"The name of my {_r} is {{v}}",
            f"I have {an(_r)} called {{v}}",
            f"I have {an(_r)} named {{v}}",
            f"My {_r} is named {{v}}",
            f"We have {an(_r)} called {{v}}",
            f"Our {_r} is called {{v}}",
            f"We call our {_r} {{v}}",
            f"My {_r} goes by the name {{v}}",
        ]
        + ([f"My {_r} is {{v}}"] if _human else [])
        + [
            noun_in(p, _r)
            for p in (OF_PET if _pet else OF_PERSON if _human else OF_PLACE)
        ],
        [f"{{v}} is the name of my {_r}.", f"{{v}} is my {_r}."],
        [
            f"What is my {_r} called?",
            f"What is the name of my {_r}?",
            f"Do you remember the name of my {_r}?",
            f"And my {_r}?",
            f"What did I call my {_r}?",
            f"How is my {_r} called?",
            f"What is the name of the {_r} I have?",
        ]
        + ([f"Who is my {_r}?"] if _human else [])
        + (
            ["What is my pet called?", "What is my pet's name?", "What is the name of my pet?"]
            if _pet
            else []
        ),
        [f"Your {_r} is called {{v}}.", f"The name of your {_r} is {{v}}."],
        [f"Is my {_r} called {{v}}?", f"Is {{v}} the name of my {_r}?"],
        ("{v}.",),
        ["{v}, what a nice name."],
    )
for _f in FAVOURITES:
    RELATED["fav " + _f] = fact(
        f"my favourite {_f}",
        None,
        FAVOURITE_NEW.get(_f)
        or (lambda r: banks.town(r) if r.random() < 0.5 else banks.thing(r, banks.PLAIN)),
        [f"The {_f} I like best is {{v}}", f"My favorite {_f} is {{v}}"]
        + [
            noun_in(p, _f) for p in OF_FAVOURITE if "Ns" not in p or _f[-1] not in "syh"
        ],
        [f"{{V}} is my favourite {_f}."],
        [f"Which {_f} do I like best?", f"What {_f} do I like?", f"What is my favorite {_f}?"],
        [f"The {_f} you like best is {{v}}."],
        [f"Is my favorite {_f} {{v}}?"],
        ("{V}.",),
        ["Nice, {v}!"],
    )
