"""The two stories of the original, told at the source and followed to the dataset.

Each is a dictionary of what was seen, and `ok`: whether that is what had to be seen. Telling a story again
after it was cut off changes nothing that is done already.
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
Carry = Callable[[], None]
"""Brings what was committed through all stages."""
Story = dict[str, Any]


def ship(see: Observer, carry: Carry) -> Story:
    """Order 11077 is shipped: one more event, and raw keeps both."""
    day = stories.SHIPPED_LATE
    with closing(see.login.connect()) as connection:
        stories.ship_order(connection, SHIPPED, day)
    carry()
    raw = see.changes(see.raw_records(), SHIPPED)
    days = (day - date(1970, 1, 1)).days
    lake = see.scalar(f'SELECT shipped_date FROM "{see.table.view}" WHERE order_id = {SHIPPED}')  # noqa: S608 - our own
    streamed = [record for record in raw if record["__op"] != "r"]
    seen = {
        "order_id": SHIPPED,
        "events": len(streamed),
        "records_in_raw": len(raw),
        "shipped_date_in_raw": raw[-1]["shipped_date"],
        "shipped_date_in_lake": str(lake),
    }
    return {**seen, "ok": list(seen.values()) == [SHIPPED, 1, 2, days, str(day)]}


def insert(see: Observer, carry: Carry) -> Story:
    """Order 11075 comes in with three lines, each its own statement: four events."""
    with closing(see.login.connect()) as connection:
        stories.insert_order_with_lines(connection, INSERTED, resume=True)
    carry()
    events = see.changes(see.raw_records(), INSERTED)
    seen = {
        "order_id": INSERTED,
        "events": len(events),
        "items_by_event": [len(json.loads(record["order_items"] or "[]")) for record in events],
        "items_in_lake": see.scalar(f"SELECT count(*) FROM order_items WHERE order_id = {INSERTED}"),  # noqa: S608 - our own
    }
    return {**seen, "ok": list(seen.values()) == [INSERTED, 4, [0, 1, 2, 3], 3]}


def delete(see: Observer, carry: Carry) -> Story:
    """Order 11075 is deleted: gone from the dataset, still known to the lake as deleted."""
    with closing(see.login.connect()) as connection:
        stories.delete_order(connection, INSERTED, resume=True)
    carry()
    seen = {
        "order_id": INSERTED,
        "items_in_dataset": see.scalar(f"SELECT count(*) FROM order_items WHERE order_id = {INSERTED}"),  # noqa: S608 - our own
        "deleted_in_lake": see.scalar(f'SELECT "__deleted" FROM "{see.table.name}" WHERE order_id = {INSERTED}'),  # noqa: S608 - our own
    }
    return {**seen, "ok": list(seen.values()) == [INSERTED, 0, True]}
