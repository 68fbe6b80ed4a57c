"""The Pagila generator: the same rows each time, with Pagila's numbers of rows, and keys that refer to rows."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import pytest

from cdc_lake.samples.pagila import PAGILA, source_changes
from cdc_lake.samples.pagila.generate import dataset
from cdc_lake.samples.sample_tables import Table

Tables = dict[str, Table]
KEYS = {"film_actor": ("actor_id", "film_id"), "film_category": ("film_id", "category_id")}
"""The composite keys; the others are `<table>_id`."""
REFERENCES = {
    "film": {"language_id": "language"},
    "film_actor": {"actor_id": "actor", "film_id": "film"},
    "film_category": {"film_id": "film", "category_id": "category"},
    "city": {"country_id": "country"},
    "address": {"city_id": "city"},
    "store": {"address_id": "address", "manager_staff_id": "staff"},
    "staff": {"address_id": "address", "store_id": "store"},
    "customer": {"address_id": "address", "store_id": "store"},
    "inventory": {"film_id": "film", "store_id": "store"},
    "payment": {"customer_id": "customer", "staff_id": "staff"},
}


@pytest.fixture(scope="module")
def tables() -> Tables:
    return {table.name: table for table in dataset()}


def column(tables: Tables, table: str, name: str) -> list[Any]:
    at = tables[table].columns.index(name)
    return [row[at] for row in tables[table].rows]


def test_every_table_has_pagilas_number_of_rows(tables: Tables) -> None:
    assert sorted(tables) == sorted(PAGILA.tables)
    assert {name: len(table.rows) for name, table in tables.items()} == {
        "actor": 200,
        "address": 603,
        "category": 16,
        "city": 600,
        "country": 109,
        "customer": 599,
        "film": 1000,
        "film_actor": 5462,
        "film_category": 1000,
        "inventory": 4581,
        "language": 6,
        "payment": 9,
        "staff": 2,
        "store": 2,
    }


def test_the_rows_are_the_same_on_every_machine() -> None:
    assert dataset() == dataset()
    assert dataset(1) != dataset(2)
    assert zlib.crc32(repr(dataset()).encode()) == 2665435635


def test_keys_are_unique_and_refer_to_rows(tables: Tables) -> None:
    for name, table in tables.items():
        keys = list(zip(*(column(tables, name, each) for each in KEYS.get(name, (f"{name}_id",))), strict=True))
        assert len(set(keys)) == len(table.rows), name
        assert keys == sorted(keys), name
        for each, parent in REFERENCES.get(name, {}).items():
            assert set(column(tables, name, each)) <= set(column(tables, parent, f"{parent}_id")), (name, each)


def test_every_country_has_an_address_and_every_film_a_category(tables: Tables) -> None:
    assert set(column(tables, "city", "country_id")) == set(column(tables, "country", "country_id"))
    assert set(column(tables, "address", "city_id")) == set(column(tables, "city", "city_id"))
    assert Counter(column(tables, "city", "country_id")).most_common(1) == [
        (column(tables, "country", "country").index("India") + 1, 60)
    ]
    assert column(tables, "film_category", "film_id") == column(tables, "film", "film_id")
    for table, name in (("country", "country"), ("city", "city"), ("film", "title")):
        names = column(tables, table, name)
        assert len(set(names)) == len(names)


def test_the_values_of_film_are_those_of_its_types(tables: Tables) -> None:
    assert set(column(tables, "film", "rating")) == {"G", "PG", "PG-13", "R", "NC-17"}
    assert {str(rate) for rate in column(tables, "film", "rental_rate")} == {"0.99", "2.99", "4.99"}
    assert all(1901 <= year <= 2155 for year in column(tables, "film", "release_year"))
    features = column(tables, "film", "special_features")
    assert {len(each) for each in features if each} == {1, 2, 3, 4}
    for nullable in ("special_features", "length", "original_language_id"):
        assert None in column(tables, "film", nullable)


def test_last_update_is_one_value_a_table_in_utc(tables: Tables) -> None:
    for name in sorted(set(tables) - {"payment"}):
        [updated] = set(column(tables, name, "last_update"))
        assert updated.isoformat().startswith("2022-02-15T"), name
        assert updated.utcoffset().total_seconds() == 0


def test_the_example_changes_find_their_rows(tables: Tables) -> None:
    casts = {row[:2] for row in tables["film_actor"].rows}
    actors = {film: {actor for actor, at in casts if at == film} for film in (5, 100, source_changes.DELETED_FILM)}
    assert actors[source_changes.OLD_KEY_FILM] - actors[source_changes.NEW_KEY_FILM], (
        "a key can change from film 5 to 100"
    )
    assert len(actors[source_changes.DELETED_FILM]) > 1
    assert source_changes.DELETED_FILM in column(tables, "inventory", "film_id"), (
        "copies have to be given to another film"
    )
    assert source_changes.DELETED_ADDRESS in column(tables, "customer", "address_id")
    assert source_changes.CATEGORY not in column(tables, "category", "name")
    assert source_changes.COUNTRY not in column(tables, "country", "country")
