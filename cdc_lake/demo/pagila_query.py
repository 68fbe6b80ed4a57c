"""The demo of Pagila's polled tables: change an address, and read the latest rows and the refined table.

A poll reads only the last of several changes, and no deletes; the reconciliation detects deletes. After an interruption
each function can be called again.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from psycopg2.extensions import connection

from cdc_lake.demo.catalog_reader import CatalogReader
from cdc_lake.demo.demo_run import DemoRun, Observed, RunStages
from cdc_lake.pipeline.source_health import polled_source
from cdc_lake.samples.pagila import source_changes

_TO_LAKE = ("topic", "raw", "lake")
_ADDRESS = f"address_id = {source_changes.ADDRESS}"
_DELETED = "\"__deleted\" = 'true'"
"""The condition of a delete in raw, whose objects are JSON."""
_BOUND_SECONDS = 60.0


def update_twice(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Update an address in two transactions, and poll after each: raw has the state after each poll."""
    with closing(_connect(demo)) as conn:
        steps = source_changes.update_address(conn)
        for _ in steps:
            _poll(demo, run_stages, "address")
    catalog = CatalogReader.of(demo)
    states = "address, coalesce(address2, '')"
    expected = (source_changes.NEW_STREET, source_changes.NEW_ADDRESS2)
    seen: Observed = {
        "address_id": source_changes.ADDRESS,
        "states_in_raw": len(set(catalog.values(states, "address_raw", _ADDRESS))),
        "in_latest": list(catalog.values(states, "address_latest", _ADDRESS)[0]),
        "in_lake": list(catalog.values(states, catalog.hudi("address"), _ADDRESS)[0]),
    }
    # Raw has the state of the first poll, and those after the two updates.
    return {**seen, "ok": list(seen.values())[2:] == [list(expected)] * 2 and seen["states_in_raw"] >= 3}


def move(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Insert a country with a city, and move the address there: first by a faulty statement, then by the correct one.

    The exercise's printed statement sets only the phone (source_changes.move_address_as_printed()).
    """
    with closing(_connect(demo)) as conn:
        _, city = source_changes.insert_country_and_city(conn)
        phone = source_changes.move_address_as_printed(conn, city)
        for table in ("city", "country", "address", "address_with_country"):
            _poll(demo, run_stages, table)
        catalog = CatalogReader.of(demo)
        printed = catalog.values("phone", "address_latest", _ADDRESS)
        source_changes.move_address(conn, city)
        for table in ("address", "address_with_country"):
            _poll(demo, run_stages, table)
    run_stages("dataset", light=True)
    phones = {phone, source_changes.NEW_PHONE}
    where = catalog.values("city || ', ' || country", "address_with_country_latest", _ADDRESS)
    seen: Observed = {
        "address_id": source_changes.ADDRESS,
        "phone_as_printed": printed,
        "phone_as_meant": catalog.values("phone", "address_latest", _ADDRESS),
        "phones_in_raw": len(phones & set(catalog.values("phone", "address_raw", _ADDRESS))),
        "place_in_latest": where,
        "country_in_refined": catalog.values("country", "addresses_by_country", _ADDRESS),
        "countries_in_refined": catalog.count("(SELECT DISTINCT country FROM addresses_by_country)", "true"),
    }
    place = f"{source_changes.CITY}, {source_changes.COUNTRY}"
    expected = [[phone], [source_changes.NEW_PHONE], len(phones), [place], [source_changes.COUNTRY]]
    return {**seen, "ok": list(seen.values())[1:6] == expected and seen["countries_in_refined"] > 100}


def rename_district(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Rename a district in all addresses that use it."""
    with closing(_connect(demo)) as conn:
        source_changes.rename_district(conn)
        renamed = _ids(conn, source_changes.NEW_DISTRICT)
        _poll(demo, run_stages, "address")
    catalog = CatalogReader.of(demo)
    in_district = f"district = '{source_changes.NEW_DISTRICT}'"
    seen = {
        "address_id": source_changes.ADDRESS,
        "addresses_at_the_source": len(renamed),
        "addresses_in_raw": len(set(catalog.values("address_id", "address_raw", in_district))),
        "addresses_in_latest": len(catalog.values("address_id", "address_latest", in_district)),
        "addresses_in_lake": catalog.count(catalog.hudi("address"), in_district),
    }
    return {**seen, "ok": len(set(list(seen.values())[1:])) == 1 and len(renamed) > 0}


def delete(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Delete an address: polling does not detect it, verify reports it, and the reconciliation applies the delete."""
    address, tables = source_changes.DELETED_ADDRESS, [demo.lake_table("address", name) for name in ("files", "lake")]
    with closing(_connect(demo)) as conn:
        source_changes.delete_address(conn)
        _poll(demo, run_stages, "address")
    catalog, address_condition = CatalogReader.of(demo), f"address_id = {address}"
    before = catalog.count("address_latest", address_condition)
    reports = [demo.verify(table) for table in tables]
    differences = [[f"{each.kind} {each.key['address_id']}" for each in report.differences] for report in reports]
    for name in ("address", "address_with_country", "alt_address"):
        demo.reconcile(demo.lake_table(name, "lake"))
    run_stages(*_TO_LAKE, light=True)  # polls the other tables too: their last poll may be minutes ago
    run_stages("dataset")
    seen = {
        "address_id": address,
        "in_latest_before": before,
        "differences_before": differences[0],
        "deletes_in_raw": len(set(catalog.values("address_id", "address_raw", f"{address_condition} AND {_DELETED}"))),
        "in_latest_after": catalog.count("address_latest", address_condition),
        "in_lake_after": catalog.count(catalog.hudi("address"), address_condition),
        "in_refined_after": catalog.count("addresses_by_country", address_condition),
        "equal_after": all(demo.verify(table).clean for table in tables),
    }
    # `before` is 0 if the story was interrupted after the reconciliation, and runs again.
    expected = [address, before, [f"extra {address}"] * before, 1, 0, 0, 0, True]
    return {**seen, "ok": list(seen.values()) == expected and differences[0] == differences[1]}


def _poll(demo: DemoRun, run_stages: RunStages, table: str) -> None:
    """Poll, land and apply a table once a poll sees what is committed."""
    postgres = demo.pipeline.source_postgres(demo.resources["postgres"])
    polled_source.await_visible(demo.observers[table].table, postgres, _BOUND_SECONDS)
    run_stages(*_TO_LAKE, table=table, light=True)


def _ids(conn: connection, district: str) -> list[Any]:
    with conn, conn.cursor() as cur:
        cur.execute("SELECT address_id FROM address WHERE district = %s", (district,))
        return [row[0] for row in cur.fetchall()]


def _connect(demo: DemoRun) -> connection:
    return demo.observer.login.connect()
