"""Northwind's demo: make three changes at the source, and read the results from each stage up to the dataset.

Each function returns the observed values and `ok`: whether they are the expected ones. After an interruption it can be
called again.
"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import date

from cdc_lake.demo.demo_run import AFTER_SOURCE, DemoRun, Observed, RunStages
from cdc_lake.samples.northwind import source_changes

SHIPPED, INSERTED = 11077, 11075
_COUNT_ITEMS = f"SELECT count(*) FROM order_items WHERE order_id = {INSERTED}"  # noqa: S608 - a constant


def ship(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Ship order 11077, which emits one event; raw then contains the snapshot record and the update."""
    observer = demo.observer
    day = source_changes.SHIPPED_LATE
    with closing(observer.login.connect()) as connection:
        source_changes.ship_order(connection, SHIPPED, day)
    run_stages(*AFTER_SOURCE)
    raw = observer.changes(observer.raw_records(), SHIPPED)
    days = (day - date(1970, 1, 1)).days
    # S608: the names are validated, the order's id is a constant.
    shipped = f'SELECT shipped_date FROM "{observer.table.view}" WHERE order_id = {SHIPPED}'  # noqa: S608
    streamed = [record for record in raw if record["__op"] != "r"]
    seen = {
        "order_id": SHIPPED,
        "events": len(streamed),
        "records_in_raw": len(raw),
        "shipped_date_in_raw": raw[-1]["shipped_date"],
        "shipped_date_in_lake": str(observer.scalar(shipped)),
    }
    return {**seen, "ok": list(seen.values()) == [SHIPPED, 1, 2, days, str(day)]}


def insert(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Insert order 11075 and three lines, each in a separate transaction, which emits four events."""
    observer = demo.observer
    with closing(observer.login.connect()) as connection:
        source_changes.insert_order_with_lines(connection, INSERTED, resume=True)
    run_stages(*AFTER_SOURCE)
    events = observer.changes(observer.raw_records(), INSERTED)
    seen = {
        "order_id": INSERTED,
        "events": len(events),
        "items_by_event": [len(json.loads(record["order_items"] or "[]")) for record in events],
        "items_in_lake": observer.scalar(_COUNT_ITEMS),
    }
    return {**seen, "ok": list(seen.values()) == [INSERTED, 4, [0, 1, 2, 3], 3]}


def delete(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Delete order 11075: the dataset no longer contains it, and the lake marks it as deleted."""
    observer = demo.observer
    with closing(observer.login.connect()) as connection:
        source_changes.delete_order(connection, INSERTED, resume=True)
    run_stages(*AFTER_SOURCE)
    # S608: the names are validated, the order's id is a constant.
    deleted = f'SELECT "__deleted" FROM "{observer.table.name}" WHERE order_id = {INSERTED}'  # noqa: S608
    seen = {
        "order_id": INSERTED,
        "items_in_dataset": observer.scalar(_COUNT_ITEMS),
        "deleted_in_lake": observer.scalar(deleted),
    }
    return {**seen, "ok": list(seen.values()) == [INSERTED, 0, True]}
