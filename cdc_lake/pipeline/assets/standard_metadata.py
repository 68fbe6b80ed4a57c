"""Dagster's standard metadata, written one way: row counts, column schemas, lineage, watermarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Watermark
from resources.athena import Athena

UNCHANGED = "nothing new: nothing was changed"

Metadata = dict[str, dg.MetadataValue]

# What is said in the catalog of the columns that are not the source's own.
_EVENT_COLUMNS = {
    "__op": "The row's last change: c insert, u update, d delete, r read by a snapshot.",
    "__db": "The source's database.",
    "__schema": "The source table's schema.",
    "__table": "The source table.",
    "__lsn": "Where the change stands in the source's write-ahead log.",
    "__txid": "The source's transaction.",
    "__txId": "The source's transaction.",
    "__snapshot": "false for a streamed change; otherwise the step of the snapshot that read the row.",
    "__source_ts_ms": "When the source made the change, in milliseconds since 1970.",
    "__deleted": "Whether the row is deleted at the source.",
    ORDER_COLUMN: "The order of a key's changes: source epoch, snapshot before stream, LSN.",
}

# Columns of the lake that are not called as the field that they come from.
_FOLDED_OF = {"__txid": ("__txId",), ORDER_COLUMN: ("__snapshot", "__lsn")}


def schema(columns: Iterable[tuple[str, str]]) -> dg.TableSchema:
    """A column schema from names and types; the columns that a change event adds are explained."""
    return dg.TableSchema([dg.TableColumn(name, kind, _EVENT_COLUMNS.get(name)) for name, kind in columns])


def event_schema(columns: Iterable[tuple[str, str]]) -> dg.TableSchema:
    """The fields of a change event: the row's columns, with their types at the source, and what Debezium adds."""
    return schema([*columns, *EVENT_FIELDS.items()])


def passed_on(upstream: dg.AssetKey, names: Iterable[str]) -> dg.TableColumnLineage:
    """The lineage of columns that come from the columns of the same name upstream."""
    return dg.TableColumnLineage({name: [dg.TableColumnDep(upstream, name)] for name in names})


def last(instance: dg.DagsterInstance, key: dg.AssetKey) -> Mapping[str, dg.MetadataValue[Any]]:
    """The metadata of an asset's last materialisation; empty where there is none."""
    event = instance.get_latest_materialization_event(key)
    return event.asset_materialization.metadata if event and event.asset_materialization else {}


def folded(upstream: dg.AssetKey, names: Iterable[str]) -> dg.TableColumnLineage:
    """The lineage of a lake table's columns from the event's fields."""
    return dg.TableColumnLineage(
        {name: [dg.TableColumnDep(upstream, field) for field in _FOLDED_OF.get(name, (name,))] for name in names}
    )


def facts(values: Mapping[str, str | int | float]) -> Metadata:
    """Texts and numbers as metadata."""
    return {name: dg.MetadataValue.text(v) if isinstance(v, str) else _number(v) for name, v in values.items()}


def scanned(athena: Athena) -> Metadata:
    """What a stage's own statements took of Athena (`Athena.metered`), and what that costs where there is a price."""
    spent = athena.spent
    if not spent.queries:
        return {}
    told: dict[str, str | int | float] = {"athena_queries": spent.queries, "athena_bytes_scanned": spent.bytes_scanned}
    cost = {} if spent.usd is None else {"athena_usd": dg.MetadataValue.float(round(spent.usd, 6))}
    return {**facts(told), **cost}


def watermark(found: Watermark | None) -> Metadata:
    """When the newest heartbeat that passed was committed, and how long ago (seconds, plots over time)."""
    if found is None:
        return {"watermark": dg.MetadataValue.text("no heartbeat yet")}
    return {
        "watermark": dg.MetadataValue.timestamp(datetime.fromtimestamp(found.source_ts_ms / 1000, UTC)),
        "watermark_lsn": dg.MetadataValue.int(found.lsn),
        "watermark_age_seconds": _number(age(found)),
    }


def age(found: Watermark) -> float:
    """Seconds since the heartbeat was committed."""
    return max(0.0, datetime.now(UTC).timestamp() - found.source_ts_ms / 1000)


def _number(value: float) -> dg.MetadataValue:
    """A float to three places: what is reported is measured, and read by people."""
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(round(value, 3))
