"""Loads MoMA into a real server, from generated rows or from CSV files in the museum's format.

A failed load leaves no tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.moma import MOMA, source_changes
from cdc_lake.samples.moma.generate import dataset
from cdc_lake.samples.sample_tables import no_progress
from cdc_lake.samples.table_sample import load, unload

HEAD = "artist_id|name|nationality|gender|birth_year|death_year\n"
ROWS = (
    '47261|"John ""Teflon"" Sims"|British|Male|1950|\n'
    "2036|Jaromír Funke|Czech|Male|1896|1945\n"
    '5|"a | b"||||\n'
    '6|"two\nlines"|""|Female|-2|0\n'
)


def rows(parameters: ConnectionParameters, table: str) -> list[tuple[Any, ...]]:
    with closing(parameters.connect()) as conn, conn.cursor() as cur:
        cur.execute(f"SELECT * FROM {table} ORDER BY 1")
        return cur.fetchall()


def load_moma(parameters: ConnectionParameters, files: Mapping[str, Path] | None = None) -> LoadReport:
    return load(MOMA, parameters, no_progress, files=files)


def test_generated_rows_are_loaded_into_a_new_database(server: ConnectionParameters) -> None:
    parameters = replace(server, dbname="museum")
    report = load_moma(parameters)
    assert (dict(report.tables), report.wal_level) == ({"artists": 1000, "artworks": 2000}, "logical")
    for table in dataset():
        assert rows(parameters, table.name) == sorted(table.rows, key=lambda row: int(str(row[0])))
    with pytest.raises(LoadError, match=r"\"artists\" already exists.*DROP TABLE artists, artworks"):
        load_moma(parameters)


def test_a_file_of_the_museum_is_loaded(database: ConnectionParameters, tmp_path: Path) -> None:
    file = tmp_path / "artists.txt"
    file.write_text("\ufeff" + HEAD + ROWS, encoding="utf-8")
    assert dict(load_moma(database, {"artists": file}).tables) == {"artists": 4, "artworks": 0}
    assert rows(database, "artists") == [
        (5, "a | b", None, None, None, None),
        (6, "two\nlines", "", "Female", -2, 0),
        (2036, "Jaromír Funke", "Czech", "Male", 1896, 1945),
        (47261, 'John "Teflon" Sims', "British", "Male", 1950, None),
    ]


@pytest.mark.parametrize(
    ("table", "content", "message"),
    [
        (
            "artists",
            HEAD.replace("gender", "sex"),
            r"contains unknown names \('sex'\)\. .*Begin the file with names of columns",
        ),
        ("artists", "", "first line contains no names"),
        ("artists", HEAD + "1|A\n", 'missing data for column "nationality"'),
        ("artists", HEAD + "one|A||||\n", 'invalid input syntax for type integer: "one"'),
        ("artists", HEAD + "1|A||||\n1|B||||\n", r"Cannot load .* into artists: duplicate key"),
        (
            "painters",
            HEAD,
            "Cannot load a file into painters: the sample has no such table. Choose from artists, artworks",
        ),
    ],
)
def test_a_bad_file_loads_nothing(
    database: ConnectionParameters, tmp_path: Path, table: str, content: str, message: str
) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(LoadError, match=message):
        load_moma(database, {table: file})
    with closing(database.connect()) as conn, conn.cursor() as cur:
        cur.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert cur.fetchone() == (0,)


def test_a_missing_file_and_another_encoding_are_named(database: ConnectionParameters, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"Cannot read .*absent\.txt"):
        load_moma(database, {"artists": tmp_path / "absent.txt"})
    latin = tmp_path / "latin.txt"
    # psycopg2 reads a file in blocks of 8 KiB.
    for lines_before in (0, 1000):
        lines = [f"{number}|Ana||||\n" for number in range(lines_before)]
        latin.write_bytes((HEAD + "".join(lines) + "5000|Équipo||||\n").encode("latin-1"))
        with pytest.raises(LoadError, match=r"Cannot load .*latin\.txt: it is not UTF-8"):
            load_moma(database, {"artists": latin})


def test_an_unloaded_sample_can_be_loaded_again(server: ConnectionParameters) -> None:
    parameters = replace(server, dbname="museum_again")
    assert unload(MOMA, parameters) is False, "the database is created"
    for _ in range(2):
        load_moma(parameters)
        assert unload(MOMA, parameters) is True


def test_only_the_samples_own_tables_are_unloaded(database: ConnectionParameters) -> None:
    load_moma(database)
    with closing(database.connect()) as conn, conn, conn.cursor() as cur:
        cur.execute("DROP TABLE artworks; CREATE TABLE artworks (id integer)")
    with pytest.raises(LoadError, match=r"`cdc-lake load` did not create artworks. Nothing was changed"):
        unload(MOMA, database)
    assert len(rows(database, "artists")) == 1000


def test_the_example_changes_change_one_row_and_restore_it(database: ConnectionParameters) -> None:
    load_moma(database)
    before = {name: rows(database, name) for name in MOMA.tables}
    with closing(database.connect()) as conn:
        artwork_id, changed = source_changes.set_artwork_year(conn, source_changes.NEW_YEAR)
        assert changed
        assert source_changes.set_artwork_year(conn, source_changes.NEW_YEAR) == (artwork_id, False)
        [artwork] = set(rows(database, "artworks")) - set(before["artworks"])
        assert (artwork[0], artwork[1], artwork[4]) == (artwork_id, "Picador (La Pique)", 1960)
        source_changes.set_artwork_year(conn, source_changes.YEAR)
        assert not source_changes.restore_artist(conn), "an unchanged row is no change event"
        for column, value in source_changes.ARTIST_UPDATES:
            source_changes.update_artist(conn, column, value)
        [artist] = set(rows(database, "artists")) - set(before["artists"])
        assert artist == (441, "Belkis Ayón Manso", "American", None, 1968, 2000)
        assert source_changes.restore_artist(conn)
        source_changes.delete_artist(conn)
        assert len(rows(database, "artists")) == 999
        assert source_changes.restore_artist(conn)
    assert {name: rows(database, name) for name in MOMA.tables} == before


def test_an_example_change_without_the_sample_is_an_error(database: ConnectionParameters, tmp_path: Path) -> None:
    file = tmp_path / "artists.txt"
    file.write_text(HEAD)
    load_moma(database, {"artists": file})
    with closing(database.connect()) as conn, pytest.raises(LoadError, match="Load the MoMA sample first"):
        source_changes.set_artwork_year(conn, 1960)
