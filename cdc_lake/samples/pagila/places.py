"""Generate countries, cities and addresses. Countries are real; cities, districts and streets are invented."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lake.samples.dice import Dice
from cdc_lake.samples.pagila.last_update import last_update
from cdc_lake.samples.sample_tables import Row

CITIES = 600
ADDRESSES = 603
_COUNTRIES = (
    "Afghanistan, Albania, Algeria, Andorra, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan, Bahrain, "
    "Bangladesh, Belarus, Belgium, Bolivia, Bosnia and Herzegovina, Botswana, Brazil, Brunei, Bulgaria, Cambodia, "
    "Cameroon, Canada, Chad, Chile, China, Colombia, Costa Rica, Croatia, Cuba, Cyprus, Czechia, Côte d'Ivoire, "
    "Denmark, Dominican Republic, Ecuador, Egypt, Estonia, Ethiopia, Finland, France, Gabon, Georgia, Germany, "
    "Ghana, Greece, Guatemala, Honduras, Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel, Italy, "
    "Jamaica, Japan, Jordan, Kazakhstan, Kenya, Kuwait, Latvia, Lebanon, Lithuania, Luxembourg, Madagascar, "
    "Malawi, Malaysia, Mali, Malta, Mexico, Moldova, Morocco, Mozambique, Myanmar, Namibia, Nepal, Netherlands, "
    "New Zealand, Nigeria, Norway, Oman, Pakistan, Panama, Paraguay, Peru, Philippines, Poland, Portugal, Romania, "
    "Rwanda, Saudi Arabia, Senegal, Serbia, Singapore, Slovakia, South Africa, Spain, Sweden, Switzerland, "
    "Tanzania, Thailand, Turkey, Ukraine, United Kingdom, United States, Vietnam"
)
COUNTRIES = tuple(_COUNTRIES.split(", "))
_LARGE = {"India": 60, "China": 53, "United States": 35, "Japan": 31, "Mexico": 30, "Brazil": 28, "Philippines": 20}
"""The number of cities of the countries that have many, as in Pagila."""

_BEGINNINGS = (
    *("Al", "Bar", "Cor", "Dun", "El", "Far", "Gran", "Hol", "Is", "Jar", "Kal", "Lor", "Mar", "Nor", "Ost", "Pel"),
    *("Quil", "Ros", "Sal", "Tar", "Ul", "Vel", "Wes", "Xan", "Yar", "Zel", "Åd", "Łom", "Çan", "Ñan"),
)
_ENDINGS = (
    *("abad", "burg", "cova", "dale", "enga", "ford", "gama", "haven", "ington", "jena", "kent", "lund", "mouth"),
    *("nagar", "ovo", "pur", "rada", "stad", "tova", "ural", "ville", "wick", "yama", "zona", "ão"),
)
_DISTRICTS = ("North {}", "South {}", "East {}", "West {}", "Central {}", "{} Coast", "{} Highlands")
_STREETS = ("{} Way", "{} Avenue", "{} Street", "{} Manor", "{} Parkway", "{} Place", "{} Lane", "{} Boulevard")


def countries() -> Iterator[Row]:
    """Yield the countries, in alphabetical order."""
    for number, name in enumerate(COUNTRIES, start=1):
        yield (number, name, last_update("country"))


def cities(dice: Dice) -> list[Row]:
    """Return the cities in alphabetical order; each country has at least one."""
    numbers = [COUNTRIES.index(name) + 1 for name, share in _LARGE.items() for _ in range(share - 1)]
    numbers += range(1, len(COUNTRIES) + 1)
    others = [number for number, name in enumerate(COUNTRIES, start=1) if name not in _LARGE]
    numbers += [dice.pick(others) for _ in range(CITIES - len(numbers))]
    names = dice.shuffled([beginning + ending for beginning in _BEGINNINGS for ending in _ENDINGS])[:CITIES]
    return [
        (number, name, country, last_update("city"))
        for number, (name, country) in enumerate(zip(sorted(names), dice.shuffled(numbers), strict=True), start=1)
    ]


def addresses(dice: Dice, of_cities: list[Row]) -> Iterator[Row]:
    """Yield the addresses; each city has at least one. The first four are those of the stores and their staff."""
    numbers = [*range(1, CITIES + 1), *(dice.between(1, CITIES) for _ in range(ADDRESSES - CITIES))]
    for address_id, city_id in enumerate(dice.shuffled(numbers), start=1):
        country = COUNTRIES[int(str(of_cities[city_id - 1][2])) - 1]
        street = dice.pick(_STREETS).format(dice.pick(of_cities)[1])
        yield (
            *(address_id, f"{dice.between(1, 1999)} {street}", None if address_id <= 4 else ""),
            *(dice.pick(_DISTRICTS).format(country), city_id),
            "" if address_id <= 4 else f"{dice.between(1000, 99999)}",
            f"{dice.between(10**9, 10**12 - 1)}",
            last_update("address"),
        )
