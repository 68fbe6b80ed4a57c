"""Changes and watermarks on a day of a simulated month, for tests of the purge and its replay window."""

from __future__ import annotations

from typing import Any

from cdc_lake.contract.table.event_order import Watermark
from cdc_lake_tests.integration.jobs.change_records import event

DAY = 86_400_000
START = 1_700_000_000_000
WINDOW = 7 * 86_400


def at(day: float) -> int:
    """Return the source's time on a day, in milliseconds."""
    return START + int(day * DAY)


def change(key: int, op: str, day: float, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - event() also has typed parameters
    """Return a change on a day; later days have higher LSNs."""
    return {**event(key, op, int(day * 1000), **values), "__source_ts_ms": at(day)}


def heartbeat(day: float) -> Watermark:
    """Return the watermark of a manifest that was landed on a day."""
    return Watermark(source_ts_ms=at(day), lsn=int(day * 1000))
