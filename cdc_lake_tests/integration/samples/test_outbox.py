"""The outbox: equal to its view after any statement, one event per statement and order, right under concurrency."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date
from decimal import Decimal
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import connection

from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.stories import delete_order, insert_order_with_lines, ship_order
from resources.waiting import until

DIFFERENT = """
SELECT order_id FROM (
    (SELECT order_id, customer_id, order_date, required_date, shipped_date, order_items, products, customer, employee,
            shipper, shipment FROM datalake.cdc_events
     EXCEPT ALL TABLE datalake.order_documents)
    UNION ALL
    (TABLE datalake.order_documents
     EXCEPT ALL
     SELECT order_id, customer_id, order_date, required_date, shipped_date, order_items, products, customer, employee,
            shipper, shipment FROM datalake.cdc_events)) AS differences
"""
NEW_ORDER = """
INSERT INTO datalake.orders (order_id, customer_id, employee_id, ship_via)
SELECT 20000, min(customer_id), 1, 1 FROM datalake.customers
"""
NEW_LINE = "INSERT INTO datalake.order_details VALUES (20000, {}, 14, 3, 0.15)"


def query(conn: connection, statement: str) -> list[tuple[Any, ...]]:
    with conn.cursor() as cur:
        cur.execute(statement)
        return cur.fetchall() if cur.description else []


@contextmanager
def events(conn: connection) -> Iterator[Counter[str]]:
    """Counts what the publication sends of the changes made in the block: I, U, D as in the replication protocol."""
    found: Counter[str] = Counter()
    query(conn, "SELECT pg_create_logical_replication_slot('samples_test', 'pgoutput')")
    try:
        yield found
        messages = query(
            conn,
            "SELECT data FROM pg_logical_slot_get_binary_changes('samples_test', NULL, NULL, "
            "'proto_version', '1', 'publication_names', 'cdc_publication')",
        )
        kinds = Counter(bytes(data)[:1].decode() for (data,) in messages)
        found.update({kind: kinds[kind] for kind in "IUD" if kinds[kind]})
    finally:
        query(conn, "SELECT pg_drop_replication_slot('samples_test')")


def test_documents_hold_exact_numbers_in_a_fixed_order(loaded: connection) -> None:
    query(loaded, NEW_ORDER)
    query(
        loaded,
        "INSERT INTO datalake.order_details VALUES (20000, 42, 9.80000019, 5, 0.150000006), (20000, 2, 14, 1, 0)",
    )
    ((items, products),) = query(
        loaded, "SELECT order_items::text, products FROM datalake.cdc_events WHERE order_id = 20000"
    )
    assert '"unit_price": 14.00' in items
    assert json.loads(items, parse_float=Decimal) == [
        {
            "order_id": 20000,
            "product_id": 2,
            "unit_price": Decimal("14.00"),
            "quantity": 1,
            "discount": Decimal("0.00"),
        },
        {
            "order_id": 20000,
            "product_id": 42,
            "unit_price": Decimal("9.80"),
            "quantity": 5,
            "discount": Decimal("0.15"),
        },
    ]
    assert [product["product_id"] for product in products] == [2, 42]


def test_an_order_line_that_costs_more_than_9999_is_no_error(loaded: connection) -> None:
    query(loaded, NEW_ORDER)
    query(loaded, "INSERT INTO datalake.order_details VALUES (20000, 2, 12500, 1, 0)")
    ((price,),) = query(
        loaded, "SELECT order_items -> 0 ->> 'unit_price' FROM datalake.cdc_events WHERE order_id = 20000"
    )
    assert price == "12500.00"


def test_all_documents_are_there_for_every_order(loaded: connection) -> None:
    assert query(
        loaded,
        "SELECT count(*), count(customer), count(employee), count(shipper), sum(jsonb_array_length(order_items)), "
        "sum(jsonb_array_length(products)), min(jsonb_array_length(employee -> 'territories')) > 0 "
        "FROM datalake.cdc_events",
    ) == [(829, 829, 829, 829, 2152, 2152, True)]
    assert query(loaded, DIFFERENT) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE datalake.orders SET freight = freight + 1 WHERE order_id < 10300",
        "UPDATE datalake.orders SET customer_id = (SELECT min(customer_id) FROM datalake.customers)",
        "UPDATE datalake.orders SET customer_id = NULL, employee_id = NULL, ship_via = NULL WHERE order_id < 10300",
        "UPDATE datalake.orders SET freight = 1 WHERE false",
        "UPDATE datalake.order_details SET quantity = quantity + 1",
        "UPDATE datalake.order_details SET order_id = 11077 WHERE order_id = 10248 AND product_id NOT IN "
        "(SELECT product_id FROM datalake.order_details WHERE order_id = 11077)",
        "DELETE FROM datalake.order_details WHERE order_id = 10248",
        "DELETE FROM datalake.order_details WHERE quantity > 20",
        "TRUNCATE datalake.order_details",
        "TRUNCATE datalake.orders, datalake.order_details",
        "TRUNCATE datalake.employee_territories",
        "INSERT INTO datalake.orders SELECT (order_id + 10000)::smallint, customer_id, employee_id, order_date "
        "FROM datalake.orders",
        "INSERT INTO datalake.orders (order_id) VALUES (10248) ON CONFLICT (order_id) DO UPDATE SET freight = 7",
        "MERGE INTO datalake.orders o USING (VALUES (10248), (30000)) AS v (id) ON o.order_id = v.id "
        "WHEN MATCHED THEN UPDATE SET freight = 3 WHEN NOT MATCHED THEN INSERT (order_id) VALUES (v.id)",
        "UPDATE datalake.customers SET company_name = upper(company_name)",
        "UPDATE datalake.employees SET last_name = upper(last_name)",
        "UPDATE datalake.shippers SET phone = NULL",
        "UPDATE datalake.products SET product_name = upper(product_name) WHERE product_id < 10",
        "UPDATE datalake.territories SET territory_description = upper(territory_description)",
        "DELETE FROM datalake.employee_territories WHERE employee_id = 2",
        "UPDATE datalake.employee_territories SET employee_id = 1 WHERE employee_id = 2 AND territory_id NOT IN "
        "(SELECT territory_id FROM datalake.employee_territories WHERE employee_id = 1)",
        "INSERT INTO datalake.employee_territories SELECT 1, territory_id FROM datalake.territories "
        "ON CONFLICT DO NOTHING",
    ],
)
def test_after_any_statement_the_outbox_equals_the_view(loaded: connection, statement: str) -> None:
    query(loaded, statement)
    assert query(loaded, DIFFERENT) == []


def test_a_changed_key_moves_the_row(loaded: connection) -> None:
    query(loaded, NEW_ORDER)
    with events(loaded) as counted:
        query(loaded, "UPDATE datalake.orders SET order_id = 20001 WHERE order_id = 20000")
    assert counted == {"D": 1, "I": 1}
    assert query(loaded, DIFFERENT) == []


@pytest.mark.parametrize("one_transaction", [False, True])
def test_an_order_and_three_lines_are_four_events(loaded: connection, one_transaction: bool) -> None:
    with events(loaded) as counted:
        if one_transaction:
            query(loaded, "BEGIN")
        query(loaded, NEW_ORDER)
        for product in (5, 7, 3):
            query(loaded, NEW_LINE.format(product))
        if one_transaction:
            query(loaded, "COMMIT")
    assert counted == {"I": 1, "U": 3}


def test_a_statement_with_many_lines_writes_each_order_once(loaded: connection) -> None:
    query(loaded, NEW_ORDER)
    with events(loaded) as counted:
        query(loaded, "INSERT INTO datalake.order_details SELECT 20000, product_id, 1, 1, 0 FROM datalake.products")
    assert counted == {"U": 1}
    with events(loaded) as counted:
        query(loaded, "UPDATE datalake.order_details SET discount = 0")
    assert counted == {"U": 830}


def test_what_no_document_shows_makes_no_event(loaded: connection) -> None:
    with events(loaded) as counted:
        query(loaded, "UPDATE datalake.products SET unit_price = unit_price + 1, units_in_stock = 0")
        query(loaded, "UPDATE datalake.customers SET fax = NULL")
        query(loaded, "UPDATE datalake.employees SET notes = NULL")
    assert counted == {}


def test_a_change_that_rewrites_many_rows_does_not_go_unnoticed(loaded: connection) -> None:
    del loaded.notices[:]
    query(loaded, "UPDATE datalake.products SET product_name = 'Other' WHERE product_id = 2")
    assert "NOTICE:  a change of datalake.products rewrote" in loaded.notices[-1]
    query(loaded, "UPDATE datalake.shippers SET company_name = 'Other' WHERE shipper_id = 2")
    assert any("WARNING:  a change of datalake.shippers rewrote" in notice for notice in loaded.notices)


def test_lines_added_by_two_transactions_at_once_are_both_there(loaded: connection) -> None:
    query(loaded, NEW_ORDER)
    with closing(psycopg2.connect(loaded.dsn, password="for these tests")) as first:
        query(first, NEW_LINE.format(5))  # not committed yet
        second = threading.Thread(target=query, args=(loaded, NEW_LINE.format(7)))
        second.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        until(
            lambda: query(first, waiting), bool, seconds=10, what="the second transaction to wait", pause_seconds=0.02
        )
        first.commit()
        second.join()
    assert query(loaded, "SELECT jsonb_array_length(order_items) FROM datalake.cdc_events WHERE order_id = 20000") == [
        (2,)
    ]
    assert query(loaded, DIFFERENT) == []


def test_the_repair_function_finds_what_went_past_the_triggers(loaded: connection) -> None:
    query(loaded, "SET session_replication_role = replica")
    query(loaded, "UPDATE datalake.orders SET freight = 0 WHERE order_id IN (10248, 10249)")
    query(loaded, "SET session_replication_role = origin")
    assert len(set(query(loaded, DIFFERENT))) == 2
    repair = "SELECT datalake.refresh_cdc_events(array_agg(order_id), true) FROM datalake.orders"
    assert query(loaded, repair) == [(2,)]
    assert query(loaded, DIFFERENT) == []


def test_cascading_deletes_make_one_event(loaded: connection) -> None:
    query(
        loaded,
        "ALTER TABLE datalake.order_details DROP CONSTRAINT order_details_order_id_fkey, "
        "ADD FOREIGN KEY (order_id) REFERENCES datalake.orders ON DELETE CASCADE",
    )
    with events(loaded) as counted:
        query(loaded, "DELETE FROM datalake.orders WHERE order_id = 10248")
    assert counted == {"D": 1}
    assert query(loaded, DIFFERENT) == []


def test_truncated_orders_are_sent_as_deletes(loaded: connection) -> None:
    with events(loaded) as counted:
        query(loaded, "TRUNCATE datalake.orders, datalake.order_details")
    assert counted == {"D": 829}


def test_story_one_an_order_is_shipped(loaded: connection) -> None:
    with events(loaded) as counted:
        told = ship_order(loaded)
    assert (told.order_id, told.before, told.shipped) == (11077, None, date(1998, 6, 15))
    assert counted == {"U": told.events}
    assert query(loaded, "SELECT shipped_date FROM datalake.cdc_events WHERE order_id = 11077") == [(told.shipped,)]


def test_story_two_an_order_comes_line_by_line_and_goes(loaded: connection) -> None:
    loaded.autocommit = False
    with events(loaded) as counted:
        loaded.commit()
        told = insert_order_with_lines(loaded)
    loaded.commit()
    assert counted == {"I": 1, "U": 3}
    assert told.events == 4
    ((customer, items),) = query(
        loaded, "SELECT customer_id, order_items FROM datalake.cdc_events WHERE order_id = 11075"
    )
    assert customer == told.customer_id
    assert [item["product_id"] for item in items] == [line.product_id for line in told.lines]
    assert all(item["discount"] == 0.15 for item in items)
    with events(loaded) as counted:
        loaded.commit()
        gone = delete_order(loaded)
    loaded.commit()
    assert (gone.lines, gone.events) == (3, 1)
    assert counted == {"D": 1}
    assert query(loaded, "SELECT count(*) FROM datalake.cdc_events") == [(829,)]


def test_stories_that_cannot_be_told_say_why(loaded: connection) -> None:
    with pytest.raises(LoadError, match=r"no order 11075 .* to delete"):
        delete_order(loaded)
    with pytest.raises(LoadError, match=r"no order 1 .* to ship"):
        ship_order(loaded, 1)
    with pytest.raises(LoadError, match="Order 11077 is already"):
        insert_order_with_lines(loaded, 11077)
