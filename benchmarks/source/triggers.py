"""Measure what the outbox's triggers add to a transaction, compared with a row trigger that writes the same documents.

Starts a separate PostgreSQL with four databases: Northwind without triggers, with a row trigger
(peers/row_trigger.sql), with cdc-lake's outbox, and with the outbox and 100 times as many rows in the reference tables.
Each kind of transaction has rounds of its own. A round runs it once in each database, in a random order.
Commits do not wait for the disk (`synchronous_commit = off`), whose time is the same for all and varies most.

    python -m benchmarks.source.triggers --rounds 40
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from psycopg2 import sql
from psycopg2.extensions import connection, cursor
from rich.console import Console
from rich.table import Table

from benchmarks.goals import GROWN, ROW_TRIGGER
from benchmarks.report.figures import OURS, Figure
from benchmarks.report.results import Recorder
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.northwind.loader import OUTBOX_READS, load
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from infra.local.stack.attach import load_endpoints

NONE = "no trigger"
FIRST, NEW_ORDER, MANY = 10248, 30_000, 500
WARM_UP = 5
SQL = Path(__file__).parents[1] / "peers" / "row_trigger.sql"
GROW = Path(__file__).with_name("grown_reference_tables.sql")
LINES = "SELECT order_id FROM datalake.orders ORDER BY order_id LIMIT %s"


def update_order(cur: cursor, number: int) -> None:
    """Change one order."""
    cur.execute("UPDATE datalake.orders SET freight = %s WHERE order_id = %s", (number % 100, FIRST + number % 400))


def order_with_lines(cur: cursor, number: int) -> None:
    """Insert an order with three lines."""
    cur.execute(
        "INSERT INTO datalake.orders (order_id, customer_id, employee_id, order_date, ship_via) "
        "SELECT %s, min(customer_id), 1, current_date, 1 FROM datalake.customers",
        (NEW_ORDER + number,),
    )
    for product in (11, 42, 72):
        cur.execute(
            "INSERT INTO datalake.order_details (order_id, product_id, unit_price, quantity, discount) "
            "VALUES (%s, %s, 14, 3, 0)",
            (NEW_ORDER + number, product),
        )


def many_orders(cur: cursor, number: int) -> None:
    """Change 500 orders in one statement."""
    cur.execute(f"UPDATE datalake.orders SET freight = %s WHERE order_id IN ({LINES})", (number % 100, MANY))  # noqa: S608 - a constant


def many_lines(cur: cursor, number: int) -> None:
    """Change all lines of 500 orders in one statement."""
    cur.execute(
        f"UPDATE datalake.order_details SET quantity = %s WHERE order_id IN ({LINES})",  # noqa: S608 - a constant
        (1 + number % 100, MANY),
    )


TRANSACTIONS: Mapping[str, Callable[[cursor, int], None]] = {
    "an order updated": update_order,
    "an order with three lines": order_with_lines,
    "500 orders in one statement": many_orders,
    "all lines of 500 orders": many_lines,
}


def prepare(server: ConnectionParameters, system: str) -> ConnectionParameters:
    """Create and load the database of a system."""
    database = replace(server, dbname=re.sub(r"\W+", "_", system))
    with closing(server.connect()) as admin:
        admin.autocommit = True
        with admin.cursor() as cur:
            cur.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database.dbname)))
    load(database)
    with closing(database.connect()) as conn, conn, conn.cursor() as cur:
        if system not in (OURS, GROWN):
            for table in OUTBOX_READS:
                cur.execute(sql.SQL("ALTER TABLE datalake.{} DISABLE TRIGGER USER").format(sql.Identifier(table)))
        if system == ROW_TRIGGER:
            cur.execute(SQL.read_text(encoding="utf-8"))
        if system == GROWN:
            cur.execute(GROW.read_text(encoding="utf-8"))
    with closing(database.connect()) as conn:
        conn.autocommit = True
        with conn.cursor() as cur:
            cur.execute("VACUUM ANALYZE")
    return database


@contextmanager
def connections() -> Iterator[Mapping[str, connection]]:
    """Run PostgreSQL, and yield a connection to each system's database."""
    with scratch_home() as home, running_stack(home, ("postgres",)), ExitStack() as opened:
        at = load_endpoints(home)
        password = at.postgres_password.get_secret_value()
        server = ConnectionParameters(
            at.postgres_host, at.postgres_port, at.postgres_database, at.postgres_user, password
        )
        found = {}
        for system in (NONE, ROW_TRIGGER, OURS, GROWN):
            conn = opened.enter_context(closing(prepare(server, system).connect()))
            with conn, conn.cursor() as cur:
                cur.execute("SET synchronous_commit = off")
            found[system] = conn
        yield found


def milliseconds(conn: connection, work: Callable[[cursor, int], None], number: int) -> float:
    """Return how long one transaction takes, with its commit."""
    started = time.perf_counter()
    with conn, conn.cursor() as cur:
        work(cur, number)
    return (time.perf_counter() - started) * 1000


def main() -> int:
    """Run it, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    recorder = Recorder(parser)
    options = parser.parse_args()
    times: dict[tuple[str, str], list[float]] = {}
    with connections() as found:
        order = random.Random(1)  # noqa: S311 - not for security
        for what, work in TRANSACTIONS.items():
            for number in range(WARM_UP + options.rounds):
                for system in order.sample(list(found), len(found)):
                    took = milliseconds(found[system], work, number)
                    if number >= WARM_UP:
                        times.setdefault((what, system), []).append(took)
    medians = {each: statistics.median(values) for each, values in times.items()}
    shown = Table("transaction", *found, title=f"ms, and times that of no trigger; median of {options.rounds}")
    figures = []
    for what in TRANSACTIONS:
        base = medians[what, NONE]
        shown.add_row(what, *(f"{medians[what, each]:.2f} ({medians[what, each] / base:.1f}x)" for each in found))
        for system in found:
            over = medians[what, system] - base
            figures.append(Figure(what=what, unit="ms", system=system, value=round(medians[what, system], 4)))
            figures.append(Figure(what=what, unit="ms over no trigger", system=system, value=round(over, 4)))
    Console(width=110).print(shown)
    recorder.write(options, "triggers", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
