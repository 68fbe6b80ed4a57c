"""Generate films with their actors, categories and copies. Titles, plots and persons are invented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from cdc_lake.samples.dice import Dice
from cdc_lake.samples.geography import COUNTRIES
from cdc_lake.samples.pagila.last_update import last_update
from cdc_lake.samples.sample_tables import Row

ACTORS = 200
FILMS = 1000
ROLES = 5462
"""The number of rows of film_actor."""
COPIES = 4581
"""The number of rows of inventory."""
CATEGORIES = (
    "Action", "Animation", "Children", "Classics", "Comedy", "Documentary", "Drama", "Family", "Foreign", "Games",
    "Horror", "Music", "New", "Sci-Fi", "Sports", "Travel",
)  # fmt: skip
LANGUAGES = ("English", "Italian", "Japanese", "Mandarin", "French", "German")
_WITHOUT_ACTORS = (257, 323, 803)
_MOST_ACTORS = 15
_FILMS_WITH_COPIES = 958
_RATINGS = {"G": 178, "PG": 194, "PG-13": 223, "R": 195, "NC-17": 210}
_FEATURES = ("Trailers", "Commentaries", "Deleted Scenes", "Behind the Scenes")

_FIRST_WORDS = (
    "AMBER BROKEN CRIMSON DISTANT ELECTRIC FORGOTTEN GOLDEN HOLLOW IVORY JADED KINDRED LUNAR MIDNIGHT NOBLE OPEN "
    "PAPER QUIET RUSTED SILENT TENDER UNDONE VELVET WINTER YELLOW ZIGZAG BITTER CLOCKWORK DANCING FROZEN HIDDEN "
    "RESTLESS STOLEN"
)
_SECOND_WORDS = (
    "ANCHOR BALLAD CARNIVAL DESERT EMPIRE FERRY GARDEN HARVEST ISLAND JOURNEY KITCHEN LANTERN MIRROR NAVIGATOR "
    "ORCHARD PARADE QUARRY RIVER SUMMIT THEATRE UMBRELLA VOYAGE WHISPER YARD ZEPPELIN BRIDGE CANYON DETECTIVE "
    "ENGINE FOREST GIANT HORIZON"
)
_KINDS = ("comedy", "chase", "mystery", "romance", "chronicle", "tragedy", "adventure")
_PERSONS = ("a botanist", "a ferryman", "two sisters", "a retired boxer", "a cartographer", "a lighthouse keeper")
_DEEDS = ("must find", "falls in love with", "escapes from", "competes with", "builds a boat with", "forgives")
_PLACES = ("in the Alps", "on a night train", "in an abandoned mine", "at the edge of the desert", "in old Lisbon")


def actors(dice: Dice) -> Iterator[Row]:
    """Yield the actors, in capital letters as in Pagila."""
    parts = list(COUNTRIES.values())
    for number in range(1, ACTORS + 1):
        first, last = dice.pick(dice.pick(parts).first_names), dice.pick(dice.pick(parts).last_names)
        yield (number, first.upper(), last.upper(), last_update("actor"))


def films(dice: Dice) -> Iterator[Row]:
    """Yield the films, ordered by title."""
    titles = dice.shuffled([f"{first} {second}" for first in _FIRST_WORDS.split() for second in _SECOND_WORDS.split()])[
        :FILMS
    ]
    for number, title in enumerate(sorted(titles), start=1):
        hero, other, *_ = dice.shuffled(_PERSONS)
        plot = f"{hero} who {dice.pick(_DEEDS)} {other} {dice.pick(_PLACES)}"
        length = dice.between(46, 185)
        yield (
            *(number, title, f"The {dice.pick(_KINDS)} of {plot}", dice.between(1985, 2022)),
            1 if dice.chance() < 0.7 else dice.between(2, len(LANGUAGES)),
            dice.between(1, len(LANGUAGES)) if dice.chance() < 0.05 else None,
            *(dice.between(3, 7), dice.pick((Decimal("0.99"), Decimal("2.99"), Decimal("4.99")))),
            None if dice.chance() < 0.01 else length,
            Decimal(dice.between(9, 29)) + Decimal("0.99"),
            dice.weighted(list(_RATINGS), list(_RATINGS.values())),
            [name for name in _FEATURES if dice.chance() < 0.54] or None,
            last_update("film"),
        )


def roles(dice: Dice) -> list[Row]:
    """Return the rows of film_actor, ordered by key."""
    casts = [number for number in range(1, FILMS + 1) if number not in _WITHOUT_ACTORS]
    sizes = Counter(casts)
    while sizes.total() < ROLES:
        film = dice.pick(casts)
        sizes[film] += sizes[film] < _MOST_ACTORS
    pairs = [(actor, film) for film in casts for actor in _distinct(dice, sizes[film])]
    return [(*pair, last_update("film_actor")) for pair in sorted(pairs)]


def film_categories(dice: Dice) -> Iterator[Row]:
    """Yield one category for each film."""
    for number in range(1, FILMS + 1):
        yield (number, dice.between(1, len(CATEGORIES)), last_update("film_category"))


def copies(dice: Dice, stores: int) -> Iterator[Row]:
    """Yield the rows of inventory: at least two copies of each of 958 films."""
    stocked = sorted(dice.shuffled(range(1, FILMS + 1))[:_FILMS_WITH_COPIES])
    numbers = [*stocked, *stocked, *(dice.pick(stocked) for _ in range(COPIES - 2 * len(stocked)))]
    for number, film in enumerate(sorted(numbers), start=1):
        yield (number, film, dice.between(1, stores), last_update("inventory"))


def names(table: str, values: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table that has only a name: category and language."""
    for number, name in enumerate(values, start=1):
        yield (number, name, last_update(table))


def _distinct(dice: Dice, count: int) -> set[int]:
    """Return the numbers of `count` random actors."""
    found: set[int] = set()
    while len(found) < count:
        found.add(dice.between(1, ACTORS))
    return found
