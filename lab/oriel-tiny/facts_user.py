"""All that users tell about themselves and theirs, by slot."""
import banks
from facts_kept import KEPT
from facts_likes import LIKES
from facts_related import RELATED
from facts_self import SELF
from tellings import CLAUSES

# Dialogues draw a slot by its place among the others: another order is another corpus.
CORE = banks.words(
    """name, age, colour, food, drink, animal, city, country, code, pin, word, hobby, birthday, friend, job,
number, sport, subject, language, surname, nickname, season, day, instrument, phone, room, meeting, train,
key, treasure"""
)
FACTS = dict(sorted({**SELF, **LIKES, **KEPT}.items(), key=lambda item: CORE.index(item[0])))
for _slot, _clauses in CLAUSES.items():
    FACTS[_slot].say.extend(_clauses)
FACTS.update(RELATED)
