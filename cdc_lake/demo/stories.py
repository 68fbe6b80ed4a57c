"""The demo's three changes, made at the source and followed to the dataset.

Each function returns the observed values and `ok`: whether they are the expected ones. After an interruption it can be
called again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import date
from typing import Any

from cdc_lake.demo.observe import Observer
from cdc_lake.samples import stories

SHIPPED, INSERTED = 11077, 11075
RunStages = Callable[[], None]
"""Materialises all stages after the source."""
Story = dict[str, Any]


def ship(observer: Observer, run_stages: RunStages) -> Story:
    """Ship order 11077: one event; raw keeps both records."""
    day = stories.SHIPPED_LATE
    with closing(observer.login.connect()) as connection:
        stories.ship_order(connection, SHIPPED, day)
    run_stages()
    raw = observer.changes(observer.raw_records(), SHIPPED)
    days = (day - date(1970, 1, 1)).days
    lake = observer.scalar(f'SELECT shipped_date FROM "{observer.table.view}" WHERE order_id = {SHIPPED}')  # noqa: S608 - our own
    streamed = [record for record in raw if record["__op"] != "r"]
    seen = {
        "order_id": SHIPPED,
        "events": len(streamed),
        "records_in_raw": len(raw),
        "shipped_date_in_raw": raw[-1]["shipped_date"],
        "shipped_date_in_lake": str(lake),
    }
    return {**seen, "ok": list(seen.values()) == [SHIPPED, 1, 2, days, str(day)]}


def insert(observer: Observer, run_stages: RunStages) -> Story:
    """Insert order 11075 and three lines, each in a separate transaction: four events."""
    with closing(observer.login.connect()) as connection:
        stories.insert_order_with_lines(connection, INSERTED, resume=True)
    run_stages()
    events = observer.changes(observer.raw_records(), INSERTED)
    seen = {
        "order_id": INSERTED,
        "events": len(events),
        "items_by_event": [len(json.loads(record["order_items"] or "[]")) for record in events],
        "items_in_lake": observer.scalar(f"SELECT count(*) FROM order_items WHERE order_id = {INSERTED}"),  # noqa: S608 - our own
    }
    return {**seen, "ok": list(seen.values()) == [INSERTED, 4, [0, 1, 2, 3], 3]}


def delete(observer: Observer, run_stages: RunStages) -> Story:
    """Delete order 11075: the dataset no longer has it, the lake keeps it marked as deleted."""
    with closing(observer.login.connect()) as connection:
        stories.delete_order(connection, INSERTED, resume=True)
    run_stages()
    seen = {
        "order_id": INSERTED,
        "items_in_dataset": observer.scalar(f"SELECT count(*) FROM order_items WHERE order_id = {INSERTED}"),  # noqa: S608 - our own
        "deleted_in_lake": observer.scalar(
            f'SELECT "__deleted" FROM "{observer.table.name}" WHERE order_id = {INSERTED}'  # noqa: S608 - our own
        ),
    }
    return {**seen, "ok": list(seen.values()) == [INSERTED, 0, True]}
