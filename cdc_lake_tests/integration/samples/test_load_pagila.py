"""Loading Pagila into a real server: generated rows, or scripts like a dump; triggers, example changes and removal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg2.extensions import connection

from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.pagila import PAGILA, source_changes
from cdc_lake.samples.pagila.generate import dataset
from cdc_lake.samples.sample_tables import no_progress
from cdc_lake.samples.table_sample import load, unload

SMALL = """
SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
ALTER SCHEMA public OWNER TO postgres;
CREATE DOMAIN public."größe" AS bigint;
CREATE DOMAIN public.year AS integer CONSTRAINT year_check CHECK (((VALUE >= 1901) AND (VALUE <= 2155)));
ALTER DOMAIN public.year OWNER TO {role};
CREATE FUNCTION public._concat(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $_$
SELECT $1 || '; ' || $2;
$_$;
CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE SEQUENCE public.actor_actor_id_seq START WITH 1;
CREATE TABLE public.actor (actor_id integer DEFAULT nextval('public.actor_actor_id_seq'::regclass) NOT NULL, name text);
ALTER TABLE public.actor OWNER TO {role};
CREATE FUNCTION public.all_actors() RETURNS SETOF public.actor LANGUAGE sql AS $_$ SELECT * FROM actor $_$;
CREATE AGGREGATE public.concat_all(text) (SFUNC = public._concat, STYPE = text);
ALTER AGGREGATE public.concat_all(text) OWNER TO {role};
CREATE VIEW public.names AS SELECT public.concat_all(name) FROM public.actor;
CREATE TABLE public.payment (id integer, paid date) PARTITION BY RANGE (paid);
CREATE TABLE public.payment_1 PARTITION OF public.payment FOR VALUES FROM ('2022-01-01') TO ('2022-02-01');
CREATE TABLE public.rental (id integer);
CREATE TRIGGER touch BEFORE UPDATE ON public.actor FOR EACH ROW EXECUTE FUNCTION public.touch();
{others}
"""
"""Statements of the kinds that are in a dump of the published Pagila."""
ROWS = """\\restrict k3y
COPY public.actor (actor_id, name) FROM stdin;
1\tÉmile; O'Hara
2\t\\N
\\.

COPY public.payment (id, paid) FROM stdin;
1\t2022-01-05
\\.
SELECT pg_catalog.setval('public.actor_actor_id_seq', 2, true);
\\unrestrict k3y
"""


def query(parameters: ConnectionParameters, statement: str) -> list[tuple[Any, ...]]:
    with closing(parameters.connect()) as conn, conn, conn.cursor() as cur:
        cur.execute("SET timezone TO 'UTC'")
        cur.execute(statement)
        return cur.fetchall()


@pytest.fixture(scope="module")
def pagila(server: ConnectionParameters) -> ConnectionParameters:
    """Load generated rows into a new database, which the tests copy or read."""
    parameters = replace(server, dbname="pagila")
    report = load(PAGILA, parameters, no_progress)
    assert dict(report.tables) == {table.name: len(table.rows) for table in dataset()}
    assert report.wal_level == "logical"
    return parameters


@pytest.fixture
def copied(pagila: ConnectionParameters, new_database: Callable[[str], ConnectionParameters]) -> ConnectionParameters:
    return new_database(pagila.dbname)


def write(folder: Path, role: str, rows: str = ROWS) -> None:
    others = (
        f"CREATE TABLE public.{name} ({name}_id integer PRIMARY KEY);"
        for name in PAGILA.tables
        if name not in ("actor", "payment")
    )
    (folder / "1_schema.sql").write_text(SMALL.format(role=role, others="\n".join(others)), encoding="utf-8")
    (folder / "2_data.sql").write_text(rows, encoding="utf-8")


def test_generated_rows_are_loaded_unchanged(pagila: ConnectionParameters) -> None:
    for table in dataset():
        columns = ", ".join("rating::text" if name == "rating" else name for name in table.columns)
        assert query(pagila, f"SELECT {columns} FROM {table.name} ORDER BY 1, 2") == list(table.rows)
    assert query(pagila, "SELECT count(*) FROM payment_p2022_01, payment_p2022_02, payment_p2022_03") != [(0,)]
    assert query(
        pagila, "SELECT attgenerated FROM pg_attribute WHERE attrelid = 'film'::regclass AND attname = 'length_hours'"
    ) == [("v",)]
    assert query(pagila, "SELECT DISTINCT length_hours = round(length / 60.0, 2) FROM film ORDER BY 1") == [
        (True,),
        (None,),
    ]
    assert query(pagila, "SELECT title FROM film WHERE fulltext @@ to_tsquery('amber & anchor')") == [("AMBER ANCHOR",)]
    with pytest.raises(LoadError, match=r'"actor" already exists.*To load the sample again: DROP TABLE actor, .*store; '
                                        r"DROP FUNCTION last_updated\(\); DROP TYPE mpaa_rating, year\.$"):  # fmt: skip
        load(PAGILA, pagila, no_progress)


def test_the_sample_is_unloaded_and_loaded_again(server: ConnectionParameters) -> None:
    parameters = replace(server, dbname="pagila_again")
    assert unload(PAGILA, parameters) is False, "the database is created"
    load(PAGILA, parameters, no_progress)
    before = query(parameters, "SELECT * FROM film_actor ORDER BY 1, 2")
    assert unload(PAGILA, parameters) is True
    left = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    assert query(parameters, left) == []
    load(PAGILA, parameters, no_progress)
    assert query(parameters, "SELECT * FROM film_actor ORDER BY 1, 2") == before


def test_objects_that_the_load_did_not_create_are_kept(copied: ConnectionParameters) -> None:
    with closing(copied.connect()) as conn, conn, conn.cursor() as cur:
        cur.execute("CREATE TABLE mine (id integer); CREATE VIEW titles AS SELECT title FROM film")
    with pytest.raises(LoadError, match=r"(?s)view titles depends on table film.*Nothing was changed\. Drop"):
        unload(PAGILA, copied)
    with closing(copied.connect()) as conn, conn, conn.cursor() as cur:
        cur.execute("DROP VIEW titles; DROP TABLE film_category; CREATE TABLE film_category (id integer)")
    with pytest.raises(LoadError, match=r"`cdc-lake load` did not create film_category\. Nothing was changed"):
        unload(PAGILA, copied)
    with pytest.raises(LoadError, match=r"already exists.*not the sample's table: load into another database"):
        load(PAGILA, copied, no_progress)
    with closing(copied.connect()) as conn, conn, conn.cursor() as cur:
        cur.execute("DROP TABLE film_category")
    assert unload(PAGILA, copied) is True
    assert query(copied, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [("mine",)]


def test_a_dump_is_loaded_and_unloaded(database: ConnectionParameters, tmp_path: Path) -> None:
    role = f"{database.dbname}_owner"
    write(tmp_path, role)
    for roles in ((role,), ()):
        report = load(PAGILA, database, no_progress, sql_dir=tmp_path)
        assert report.roles == roles
        counts = dict(report.tables)
        assert (counts["actor"], counts["payment"], counts["rental"]) == (2, 1, 0)
        assert "payment_1" not in counts, "a partition is counted with its table"
        assert query(database, "SELECT * FROM actor ORDER BY 1") == [(1, "Émile; O'Hara"), (2, None)]
        assert query(database, "SELECT nextval('actor_actor_id_seq')") == [(3,)]
        assert unload(PAGILA, database) is True
    for catalog, namespace in (("pg_class", "relnamespace"), ("pg_proc", "pronamespace"), ("pg_type", "typnamespace")):
        assert query(database, f"SELECT * FROM {catalog} WHERE {namespace} = 'public'::regnamespace") == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS.replace("2\t", "two\t"), r"2_data\.sql, line 4: invalid input syntax for type integer: .two.*\nNothing"),
        (ROWS.replace("2022-01-05", "2023-01-05"), r"2_data\.sql, line 8: no partition of relation"),
        ("DROP TABLE public.film, public.city;", "they do not create city, film in schema public. Nothing"),
    ],
)
def test_a_bad_dump_loads_nothing(database: ConnectionParameters, tmp_path: Path, rows: str, message: str) -> None:
    write(tmp_path, "postgres", rows)
    with pytest.raises(LoadError, match=f"(?s){message}"):
        load(PAGILA, database, no_progress, sql_dir=tmp_path)
    assert query(database, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace") == []


def changed(conn: connection, before: set[str]) -> set[str]:
    """Return the tables whose rows differ from `before`, which is updated."""
    with conn, conn.cursor() as cur:
        states = []
        for name in PAGILA.tables:
            cur.execute(f"SELECT coalesce(md5(string_agg(t::text, '' ORDER BY t::text)), '') FROM {name} t")
            states.append(f"{name} {cur.fetchall()}")
    names = {state.split(maxsplit=1)[0] for state in set(states) - before}
    before.clear()
    before.update(states)
    return names


def test_the_log_based_example_changes(copied: ConnectionParameters) -> None:
    states: set[str] = set()
    with closing(copied.connect()) as conn:
        changed(conn, states)
        category = source_changes.insert_category(conn)
        assert (category, source_changes.insert_category(conn)) == (17, 17), "it is inserted once"
        assert changed(conn, states) == {"category"}
        source_changes.update_films(conn)
        assert changed(conn, states) == {"film"}
        assert query(
            copied,
            "SELECT film_id, rating::text, rental_rate::text, last_update > '2022-02-16', length_hours IS NOT NULL "
            "FROM film WHERE last_update > '2022-02-16' ORDER BY 1",
        ) == [(number, "NC-17", "3.99", True, True) for number in source_changes.CHANGED_FILMS]
        source_changes.change_film_category(conn, category)
        assert changed(conn, states) == {"film_category"}
        assert query(copied, "SELECT film_id FROM film_category WHERE category_id = 17") == [(1,)]
        actor = source_changes.change_film_actor_key(conn)
        moved = f"SELECT film_id FROM film_actor WHERE actor_id = {actor} AND film_id IN (5, 100)"
        assert query(copied, moved) == [(100,)]
        removed = source_changes.delete_film_actor(conn)
        assert removed is not None
        assert query(copied, f"SELECT * FROM film_actor WHERE (actor_id, film_id) = ({removed}, 7)") == []
        changed(conn, states)
        for _ in range(2):
            source_changes.delete_film(conn)
        assert changed(conn, states) == {"film", "film_actor", "film_category", "inventory"}
        assert source_changes.delete_film_actor(conn) is None
        assert query(copied, "SELECT count(*) FROM film") == [(999,)]
        assert query(copied, "SELECT count(*) FROM inventory") == [(4581,)]


def test_the_query_based_example_changes(copied: ConnectionParameters) -> None:
    address = (
        f"SELECT address, address2, district, phone, city_id FROM address WHERE address_id = {source_changes.ADDRESS}"
    )
    [(_, _, district, phone, old_city)] = query(copied, address)
    with closing(copied.connect()) as conn:
        assert len(list(source_changes.update_address(conn))) == 2
        assert query(copied, address) == [("1 Vibranium Way", "Suite 200", district, phone, old_city)]
        country, city = source_changes.insert_country_and_city(conn)
        assert (country, city) == (110, 601)
        assert source_changes.insert_country_and_city(conn) == (110, 601)
        assert source_changes.move_address_as_printed(conn, city) == "false"
        assert query(copied, address) == [("1 Vibranium Way", "Suite 200", district, "false", old_city)]
        source_changes.move_address(conn, city)
        assert source_changes.move_address_as_printed(conn, city) == "true"
        source_changes.move_address(conn, city)
        assert source_changes.rename_district(conn) == 4
        assert query(copied, address) == [("1 Vibranium Way", "Suite 200", "Lake Turkana", "5550100", 601)]
        for _ in range(2):
            source_changes.delete_address(conn)
    assert query(copied, "SELECT count(*) FROM address") == [(602,)]
    assert query(copied, "SELECT count(*) FROM customer WHERE address_id = 105") == [(2,)]
    assert query(copied, "SELECT count(*) FROM address WHERE last_update > '2022-02-16'") == [(4,)]


def test_an_example_change_without_its_rows_is_an_error(copied: ConnectionParameters) -> None:
    with closing(copied.connect()) as conn:
        with conn, conn.cursor() as cur:
            cur.execute("DELETE FROM film_actor WHERE film_id IN (1, 5)")
        with pytest.raises(LoadError, match="Load the Pagila sample again"):
            source_changes.change_film_actor_key(conn)
