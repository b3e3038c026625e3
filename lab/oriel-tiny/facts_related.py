"""Facts about the user's family, pets and places, and what the user likes best."""
import re

import banks
import coined
from banks import an
from facts import fact, pick
from tellings import OF_FAVOURITE, OF_PERSON, OF_PET, OF_PLACE

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
    "city": coined.town,
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
        coined.first_name if _pet else coined.full_name if _human else coined.town,
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
        or (lambda r: coined.town(r) if r.random() < 0.5 else coined.thing(r, banks.PLAIN)),
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
