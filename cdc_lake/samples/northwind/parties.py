"""Generate customers and suppliers from the names in geography.py; list the employees and shippers."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from cdc_lake.samples.dice import Dice
from cdc_lake.samples.geography import COUNTRIES, Country

CUSTOMERS_BY_COUNTRY = (
    ("USA", 13), ("Germany", 11), ("France", 11), ("Brazil", 9), ("UK", 8), ("Spain", 6),
    ("Mexico", 6), ("Italy", 6), ("Canada", 6), ("Austria", 5), ("Sweden", 5), ("Japan", 5),
)  # fmt: skip
SUPPLIERS_BY_COUNTRY = (
    ("USA", 5), ("Germany", 4), ("France", 4), ("UK", 3), ("Italy", 3), ("Sweden", 3),
    ("Japan", 3), ("Canada", 2), ("Spain", 1), ("Brazil", 1),
)  # fmt: skip
TITLES = ("Owner", "Buyer", "Purchasing Lead", "Accounts Manager", "Sales Agent", "Marketing Assistant")

SHIPPERS = ("Comet Parcel", "Blue Anchor Freight", "Overland & Sons", "Kestrel Air", "Tramline Post", "Northgate")
"""The first three ship the orders; the others have no orders."""

EMPLOYEES = (
    # last name, first name, title, courtesy, born, hired, reports to, number of territories
    ("Sandoval", "Priya", "Sales Representative", "Ms.", date(1958, 3, 14), date(1992, 5, 4), 2, 2),
    ("Whitlock", "Desmond", "Vice President, Sales", "Dr.", date(1951, 11, 2), date(1992, 8, 17), None, 7),
    ("Karlsen", "Ingrid", "Sales Representative", "Ms.", date(1963, 6, 21), date(1992, 4, 6), 2, 4),
    ("Abara", "Chidi", "Sales Representative", "Mr.", date(1959, 9, 9), date(1993, 5, 3), 2, 3),
    ("Moreau", "Étienne", "Sales Manager", "Mr.", date(1955, 1, 30), date(1993, 10, 18), 2, 7),
    ("Tanizaki", "Ren", "Sales Representative", "Mr.", date(1964, 7, 5), date(1993, 10, 18), 5, 5),
    ("Holloway", "Grace", "Sales Representative", "Ms.", date(1960, 5, 27), date(1994, 1, 3), 5, 10),
    ("Petrov", "Milena", "Inside Sales Coordinator", "Ms.", date(1957, 12, 11), date(1994, 3, 7), 2, 4),
    ("Lindqvist", "Oskar", "Sales Representative", "Mr.", date(1966, 2, 18), date(1994, 11, 14), 5, 7),
)


@dataclass(frozen=True)
class Firm:
    """A customer or a supplier, with a contact person."""

    company_name: str
    contact_name: str
    contact_title: str
    address: str
    city: str
    region: str | None
    postal_code: str
    country: str
    phone: str
    fax: str | None


def _company_names(country: Country) -> Iterator[str]:
    families, trades = country.last_names, country.trades
    for number in range(len(families) * len(trades)):
        trade = trades[(number + number // len(families)) % len(trades)]
        yield trade.format(name=families[number % len(families)])


def _firm(company_name: str, country: Country, dice: Dice) -> Firm:
    city, postal_code, region = dice.pick(country.cities)
    return Firm(
        company_name=company_name,
        contact_name=f"{dice.pick(country.first_names)} {dice.pick(country.last_names)}",
        contact_title=dice.pick(TITLES),
        address=country.street.format(street=dice.pick(country.streets), number=dice.between(2, 480)),
        city=city,
        region=region,
        postal_code=postal_code,
        country=country.name,
        phone=country.phone.format(dice.between(100, 9999)),
        fax=country.phone.format(dice.between(100, 9999)) if dice.chance() < 0.7 else None,
    )


def firms(dice: Dice) -> tuple[list[Firm], list[Firm]]:
    """Return the 91 customers and the 29 suppliers, with unique names."""
    names = {name: _company_names(country) for name, country in COUNTRIES.items()}
    customers, suppliers = (
        [_firm(next(names[name]), COUNTRIES[name], dice) for name, count in plan for _ in range(count)]
        for plan in (CUSTOMERS_BY_COUNTRY, SUPPLIERS_BY_COUNTRY)
    )
    return customers, suppliers


def customer_ids(customers: list[Firm]) -> list[str]:
    """Return a unique key of five letters for each customer: the first four letters of its name, and a later one."""
    ids: list[str] = []
    for customer in customers:
        plain = unicodedata.normalize("NFKD", customer.company_name)
        letters = "".join(letter for letter in plain.upper() if "A" <= letter <= "Z")
        candidates = (letters[:4] + letter for letter in letters[4:])
        ids.append(next(candidate for candidate in candidates if candidate not in ids))
    return ids
