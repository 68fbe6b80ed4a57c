"""Functions that build asset metadata: column schemas, column lineage, watermarks, values, costs of Athena."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS
from cdc_lake.contract.schema.sent_columns import SentColumn
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Watermark
from resources.athena import Athena

UNCHANGED = "nothing new, nothing changed"
"""The value of `changes` if a materialisation changed nothing."""
LAKE_COMMITS = "lake_commits"
"""The entry of a dataset or dashboard that contains the lake commits it was built over."""
DELETES = "not seen by polling"
"""The value of the label `deletes` of assets and checks of polled tables."""

Metadata = dict[str, dg.MetadataValue]

# Descriptions of the columns that are not columns of the source table.
_EVENT_COLUMNS = {
    "__op": "The row's last change: c insert, u update, d delete, r read by a snapshot.",
    "__db": "The source's database.",
    "__schema": "The source table's schema.",
    "__table": "The source table.",
    "__lsn": "The change's position in the source's write-ahead log.",
    "__txid": "The source's transaction.",
    "__txId": "The source's transaction.",
    "__snapshot": "false for a streamed change; otherwise the phase of the snapshot that read the row.",
    "__source_ts_ms": "When the source made the change, in milliseconds since 1970.",
    "__deleted": "Whether the row is deleted at the source.",
    ORDER_COLUMN: "The order of a key's changes: source epoch, then snapshot before stream, then LSN.",
}

# The event fields of each lake column that is not derived from a field of the same name.
_EVENT_FIELDS_OF = {"__txid": ("__txId",), ORDER_COLUMN: ("__snapshot", "__lsn")}


def changes(phrases: Iterable[str]) -> str:
    """Return the value of `changes`: the phrases that describe what changed."""
    return ", ".join(phrases) or UNCHANGED


def schema(columns: Iterable[tuple[str, str]]) -> dg.TableSchema:
    """Return a column schema from names and types; columns that a change event adds have descriptions."""
    return dg.TableSchema([dg.TableColumn(name, kind, _EVENT_COLUMNS.get(name)) for name, kind in columns])


def event_schema(columns: Iterable[tuple[str, str]]) -> dg.TableSchema:
    """Return the schema of a change event: the row's columns with their source types, and Debezium's fields."""
    return schema([*columns, *EVENT_FIELDS.items()])


def renaming_lineage(upstream: dg.AssetKey, names: Mapping[str, str]) -> dg.TableColumnLineage:
    """Return the lineage of columns; `names` maps each column to the upstream column that it comes from."""
    return dg.TableColumnLineage({name: [dg.TableColumnDep(upstream, origin)] for name, origin in names.items()})


def sent_columns(source: dg.AssetKey, columns: Sequence[SentColumn]) -> dict[str, Any]:
    """Return schema and lineage of the fields of records in Kafka."""
    names = {each.sent.name: each.lake.source_name for each in columns if each.lake.inserted is None}
    return {
        "dagster/column_schema": event_schema((each.sent.name, each.sent.type) for each in columns),
        "dagster/column_lineage": renaming_lineage(source, names),
    }


def latest(instance: dg.DagsterInstance, key: dg.AssetKey) -> Mapping[str, dg.MetadataValue[Any]]:
    """Return the metadata of an asset's last materialisation; empty before the first one."""
    event = instance.get_latest_materialization_event(key)
    return event.asset_materialization.metadata if event and event.asset_materialization else {}


def lake_lineage(upstream: dg.AssetKey, names: Iterable[str]) -> dg.TableColumnLineage:
    """Return the lineage of a lake table's columns from the event's fields."""
    return dg.TableColumnLineage(
        {name: [dg.TableColumnDep(upstream, field) for field in _EVENT_FIELDS_OF.get(name, (name,))] for name in names}
    )


def values(by_name: Mapping[str, str | int | float]) -> Metadata:
    """Return texts and numbers as metadata."""
    return {name: dg.MetadataValue.text(v) if isinstance(v, str) else _number(v) for name, v in by_name.items()}


def athena_usage(athena: Athena) -> Metadata:
    """Return the number of a stage's Athena queries (`Athena.metered`), the bytes scanned, and their cost if known."""
    spent = athena.spent
    if not spent.queries:
        return {}
    usage: dict[str, str | int | float] = {"athena_queries": spent.queries, "athena_bytes_scanned": spent.bytes_scanned}
    cost = {} if spent.usd is None else {"athena_usd": dg.MetadataValue.float(round(spent.usd, 6))}
    return {**values(usage), **cost}


def watermark(found: Watermark | None) -> Metadata:
    """Return the commit time, LSN and age (seconds) of the newest heartbeat that a stage has processed."""
    if found is None:
        return {"watermark": dg.MetadataValue.text("no heartbeat yet")}
    return {
        "watermark": dg.MetadataValue.timestamp(datetime.fromtimestamp(found.source_ts_ms / 1000, UTC)),
        "watermark_lsn": dg.MetadataValue.int(found.lsn),
        "watermark_age_seconds": _number(age(found)),
    }


def age(found: Watermark) -> float:
    """Return the seconds since the heartbeat was committed."""
    return max(0.0, datetime.now(UTC).timestamp() - found.source_ts_ms / 1000)


def _number(value: float) -> dg.MetadataValue:
    """Return a number as metadata; a float is rounded to three places."""
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(round(value, 3))
