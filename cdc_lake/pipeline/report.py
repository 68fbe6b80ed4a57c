"""Dagster's standard metadata, written one way: row counts, column schemas, lineage, watermarks.

Here: turning facts into metadata. Not here: finding the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import dagster as dg

from cdc_lake.contract.position import Watermark

UNCHANGED = "nothing new: nothing was changed"

Metadata = dict[str, dg.MetadataValue]


def schema(columns: Iterable[tuple[str, str]]) -> dg.TableSchema:
    """A column schema from names and types."""
    return dg.TableSchema([dg.TableColumn(name, kind) for name, kind in columns])


def passed_on(upstream: dg.AssetKey, names: Iterable[str]) -> dg.TableColumnLineage:
    """The lineage of columns that come from the columns of the same name upstream."""
    return dg.TableColumnLineage({name: [dg.TableColumnDep(upstream, name)] for name in names})


def facts(values: Mapping[str, str | int | float]) -> Metadata:
    """Texts and numbers as metadata."""
    return {name: dg.MetadataValue.text(v) if isinstance(v, str) else _number(v) for name, v in values.items()}


def watermark(found: Watermark | None) -> Metadata:
    """When the newest heartbeat that passed was committed, and how long ago (seconds, plots over time)."""
    if found is None:
        return {"watermark": dg.MetadataValue.text("no heartbeat yet")}
    return {
        "watermark": dg.MetadataValue.timestamp(datetime.fromtimestamp(found.source_ts_ms / 1000, UTC)),
        "watermark_lsn": dg.MetadataValue.int(found.lsn),
        "watermark_age_seconds": dg.MetadataValue.float(age(found)),
    }


def age(found: Watermark) -> float:
    """Seconds since the heartbeat was committed."""
    return max(0.0, datetime.now(UTC).timestamp() - found.source_ts_ms / 1000)


def _number(value: float) -> dg.MetadataValue:
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(value)
