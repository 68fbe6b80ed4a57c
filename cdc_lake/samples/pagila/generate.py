"""Generate the rows of every table of Pagila; the same seed gives the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

from cdc_lake.samples.dice import Dice
from cdc_lake.samples.geography import COUNTRIES
from cdc_lake.samples.pagila import films, places
from cdc_lake.samples.pagila.last_update import last_update
from cdc_lake.samples.sample_tables import Row, Table, table

SEED = 20220215
STORES = 2
CUSTOMERS = 599
_FIRST_CUSTOMERS_ADDRESS = 2 * STORES + 1
_PAYMENTS = 9
_DAYS_OF_PAYMENTS = 66
"""The days from the first payment to the last, which are in three monthly partitions."""


def _stores() -> Iterator[Row]:
    for number in range(1, STORES + 1):
        yield (number, number, number, last_update("store"))


def _staff(dice: Dice) -> Iterator[Row]:
    for number in range(1, STORES + 1):
        first, last = _name(dice)
        address = STORES + number
        yield (number, first, last, address, f"{first}.{last}@store.example", number, first, last_update("staff"))


def _customers(dice: Dice) -> Iterator[Row]:
    for number in range(1, CUSTOMERS + 1):
        first, last = (part.upper() for part in _name(dice))
        active = dice.chance() >= 0.025
        yield (
            *(number, dice.between(1, STORES), first, last, f"{first}.{last}@customer.example"),
            *(_FIRST_CUSTOMERS_ADDRESS + number - 1, True, date(2022, 2, 14), last_update("customer"), int(active)),
        )


def _payments(dice: Dice) -> Iterator[Row]:
    first = last_update("actor") - timedelta(days=25)
    for number in range(1, _PAYMENTS + 1):
        paid = first + timedelta(days=(number - 1) * _DAYS_OF_PAYMENTS // (_PAYMENTS - 1))
        amount = Decimal(dice.between(0, 10)) + Decimal("0.99")
        yield (number, dice.between(1, CUSTOMERS), dice.between(1, STORES), number, amount, paid)


def _name(dice: Dice) -> tuple[str, str]:
    parts = dice.pick(list(COUNTRIES.values()))
    return dice.pick(parts.first_names), dice.pick(parts.last_names)


def dataset(seed: int = SEED) -> tuple[Table, ...]:
    """Return all tables, parents before children."""
    dice = Dice(seed)
    cities = places.cities(dice)
    return (
        table("actor", "actor_id first_name last_name last_update", films.actors(dice)),
        table("category", "category_id name last_update", films.names("category", films.CATEGORIES)),
        table("language", "language_id name last_update", films.names("language", films.LANGUAGES)),
        table("film", "film_id title description release_year language_id original_language_id rental_duration "
              "rental_rate length replacement_cost rating special_features last_update", films.films(dice)),
        table("film_actor", "actor_id film_id last_update", films.roles(dice)),
        table("film_category", "film_id category_id last_update", films.film_categories(dice)),
        table("country", "country_id country last_update", places.countries()),
        table("city", "city_id city country_id last_update", cities),
        table("address", "address_id address address2 district city_id postal_code phone last_update",
              places.addresses(dice, cities)),
        table("store", "store_id manager_staff_id address_id last_update", _stores()),
        table("staff", "staff_id first_name last_name address_id email store_id username last_update", _staff(dice)),
        table("customer", "customer_id store_id first_name last_name email address_id activebool create_date "
              "last_update active", _customers(dice)),
        table("inventory", "inventory_id film_id store_id last_update", films.copies(dice, STORES)),
        table("payment", "payment_id customer_id staff_id rental_id amount payment_date", _payments(dice)),
    )  # fmt: skip
