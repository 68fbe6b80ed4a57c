"""Generate the rows of MoMA's tables, artists and artworks; the same seed gives the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from cdc_lake.samples.dice import Dice
from cdc_lake.samples.geography import COUNTRIES
from cdc_lake.samples.sample_tables import Row, Table, table

SEED = 19291107
ARTISTS = 1000
ARTWORKS = 2000

# Shares in the museum's file of 1,000 artists, in thousandths. The key None is for rows without a nationality.
_NATIONALITIES: dict[str | None, int] = {
    **{"American": 356, "German": 80, "French": 50, "British": 48, "Italian": 39, "Japanese": 32, "Austrian": 22},
    **{"Nationality_Unknown": 16, "Spanish": 13, "Canadian": 12, "Swedish": 11, "Mexican": 11, "Brazilian": 10},
    **{
        "Swiss": 27,
        "Dutch": 16,
        "Russian": 11,
        "Belgian": 11,
        "Norwegian": 9,
        "Argentine": 8,
        "Peruvian": 5,
        "Czech": 5,
    },
    **{"Colombian": 5, "South_African": 4, "Danish": 4, "Australian": 4, "Uruguayan": 3},
    None: 144,
}
_COUNTRY_OF: dict[str, str] = {
    **{"American": "USA", "German": "Germany", "French": "France", "British": "UK", "Italian": "Italy"},
    **{"Japanese": "Japan", "Austrian": "Austria", "Spanish": "Spain", "Canadian": "Canada", "Swedish": "Sweden"},
    **{"Mexican": "Mexico", "Brazilian": "Brazil"},
}
_GENDERS: dict[str | None, int] = {"Male": 686, "Female": 138, None: 175}
_CLASSIFICATIONS: dict[str | None, int] = {
    **{"Print": 230, "Photograph": 220, "Illustrated_Book": 200, "Drawing": 90, "Design": 80, "Film": 20},
    **{"Painting": 20, "Video": 15, "Sculpture": 15, "Architecture": 60, None: 20},
}
_DEPARTMENTS = {"Photograph": "Photography", "Film": "Film", "Video": "Media and Performance Art"}
_DEPARTMENTS |= {"Painting": "Painting & Sculpture", "Sculpture": "Painting & Sculpture"}
_DEPARTMENTS |= {"Design": "Architecture & Design", "Architecture": "Architecture & Design"}
_MEDIA = {
    "Print": ("Lithograph", "Etching and aquatint", "Woodcut"),
    "Photograph": ("Gelatin silver print", "Albumen silver print"),
    "Drawing": ("Pencil on paper", "Charcoal, ink and gouache on paper"),
    "Painting": ("Oil on canvas", "Synthetic polymer paint on canvas"),
    "Sculpture": ("Bronze", "Painted steel"),
    "Film": ("16mm film (black and white, silent)",),
}
_SUBJECTS = ("Harbor", "Seated Figure", "Composition", "Still Life", "Night Street", "Garden", "Étude", "Köpfe")
_FORMS = ("{}", "Untitled ({})", "Study for “{}”", 'The "{}" Series', "{}, second state", "{} | {number}")

DEMO_ARTIST: Row = (441, "Belkis Ayón", "Cuban", "Female", 1967, 1999)
DEMO_ARTWORK = ("Picador (La Pique)", 4609, "Pablo Picasso", 1959, "Lithograph")


def _drawn(dice: Dice, shares: dict[str | None, int]) -> str | None:
    return dice.weighted(list(shares), list(shares.values()))


def _artists(dice: Dice) -> Iterator[Row]:
    yield DEMO_ARTIST
    for number in range(1, ARTISTS):
        nationality = _drawn(dice, _NATIONALITIES)
        country = COUNTRIES[_COUNTRY_OF.get(nationality or "", dice.pick(list(COUNTRIES)))]
        name = f"{dice.pick(country.first_names)} {dice.pick(country.last_names)}"
        if dice.chance() < 0.01:
            name = f'{name}, called "{dice.pick(country.last_names)}"'
        born = None if dice.chance() < 0.23 else dice.between(1830, 1985)
        died = born + dice.between(25, 90) if born is not None and dice.chance() < 0.4 else None
        yield (1000 + number, name, nationality, _drawn(dice, _GENDERS), born, died)


def _artworks(dice: Dice, artists: list[Row]) -> Iterator[Row]:
    title, artist_id, artist, year, medium = DEMO_ARTWORK
    for number in range(ARTWORKS):
        classification = _drawn(dice, _CLASSIFICATIONS)
        department = _DEPARTMENTS.get(classification or "", "Drawings & Prints")
        height, width = (round(dice.between(80, 2400) / 10, 1) for _ in range(2))
        acquired = date(1929, 11, 7) + timedelta(days=dice.between(0, 32_000))
        if number > 0:
            artist_id, artist, _, _, born, _ = dice.pick(artists)  # type: ignore[assignment]  # a row's values
            year = (born if isinstance(born, int) else 1900) + dice.between(20, 60)
            medium = dice.pick(_MEDIA.get(classification or "", ("Mixed media",)))
            title = dice.pick(_FORMS).format(dice.pick(_SUBJECTS), number=number)
        else:
            classification = "Print"
        solid = classification in {"Sculpture", "Design"}
        yield (
            *(33_000 + number, title, artist_id, artist, None if dice.chance() < 0.05 and number else year, medium),
            f'{height / 2.54:.1f} x {width / 2.54:.1f}" ({height} x {width} cm)',
            acquired.isoformat() if dice.chance() < 0.95 else None,
            f"Gift of {artist}" if dice.chance() < 0.3 else "Purchase",
            *("Y" if dice.chance() < 0.7 else "N", department, classification),
            f"{dice.between(1, 999)}.{acquired.year}",
            *(None, None, str(height), None, str(width), str(round(height / 3, 1)) if solid else None),
            str(dice.between(1, 400)) if solid else None,
            dice.between(30, 7200) if classification in {"Film", "Video"} else None,
        )


def dataset(seed: int = SEED) -> tuple[Table, ...]:
    """Return artists and artworks."""
    dice = Dice(seed)
    artists = list(_artists(dice))
    return (
        table("artists", "artist_id name nationality gender birth_year death_year", artists),
        table(
            "artworks",
            "artwork_id title artist_id name date medium dimensions acquisition_date credit catalogue department "
            "classification object_number diameter_cm circumference_cm height_cm length_cm width_cm depth_cm weight_kg "
            "durations",
            _artworks(dice, artists),
        ),
    )
