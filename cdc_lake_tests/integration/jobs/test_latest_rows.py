"""The SELECT of a Parquet target's view returns the newest row of each key, for any order and repetition of rows."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, Column, TableSchema
from cdc_lake.contract.table import latest_rows
from cdc_lake.contract.table.event_order import NO_LSN, Position
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.pytest_hooks.seeds import named_in_failures

OLD = TableSchema(
    version=1,
    table="public.orders",
    columns=(
        Column(name="id", type="integer", nullable=False, attnum=1),
        Column(name="remark", type="text", attnum=2),
        Column(name="qty", type="integer", attnum=3),
    ),
    key=("id",),
)
NEW = OLD.model_copy(
    update={
        "version": 2,
        "columns": (
            OLD.columns[0],
            Column(name="note", type="text", attnum=2),
            Column(name="qty", type="bigint", attnum=3),
            Column(name="size", type="numeric(6,2)", attnum=4, missing="1.50"),
            Column(name="colour", type="text", attnum=5, missing="it's"),
            Column(name="at", type="timestamp with time zone", attnum=6, missing="2026-01-02T03:04:05.678900Z"),
        ),
        "dropped": (OLD.columns[1],),
    }
)
BOUNDARY = Position(1, streamed=False, lsn=500)
KEYS, SEED = 300, 7


class Row(NamedTuple):
    """A landed row; `note` is None in `remark` and in `note` alike if it was left out."""

    position: Position
    offset: int
    version: int
    deleted: bool
    note: str | None
    left_out: bool

    def stored(self, key: int) -> dict[str, Any]:
        """Return the row as an object has it."""
        old, lsn = self.version == 1, self.position.lsn
        return {
            "id": key,
            "note": None if old else self.note,
            "qty": self.offset,
            "size": None if old else "2.00",
            "colour": None if old else "red",
            "at": None if old else "2026-11-27 01:02:03",
            "remark": self.note if old else None,
            **dict.fromkeys(name.lower() for name in EVENT_FIELDS),
            "__op": "d" if self.deleted else "u" if self.position.streamed else "r",
            "__snapshot": "false" if self.position.streamed else "incremental" if lsn == NO_LSN else "true",
            "__lsn": None if lsn == NO_LSN else lsn,
            "__deleted": self.deleted,
            "__unchanged": ["remark" if old else "note"] if self.left_out else None,
            "__schema_version": self.version,
            "__epoch": self.position.epoch,
            "__partition": 0,
            "__offset": self.offset,
        }


def history(rng: random.Random, first: int) -> list[Row]:
    """Return a key's changes; a later schema version has a later offset."""
    rows = []
    for number in range(rng.randint(1, 6)):
        streamed = rng.random() < 0.7
        lsn = NO_LSN if not streamed and rng.random() < 0.2 else rng.randint(400, 600)
        position = Position(rng.randint(0, 2), streamed, lsn)
        left_out = streamed and rng.random() < 0.3
        note = None if left_out or rng.random() < 0.2 else f"note {first + number}"
        deleted = streamed and rng.random() < 0.2
        rows.append(Row(position, first + number, 1 if number < 3 else 2, deleted, note, left_out and not deleted))
    return rows


def newest(rows: list[Row]) -> tuple[Any, ...] | None:
    """Return what the view shows of a key."""
    shown = sorted((row for row in rows if row.position.epoch >= BOUNDARY.epoch), key=lambda row: (row[0], row[1]))
    if not shown or shown[-1].deleted or shown[-1].position < BOUNDARY:
        return None
    last = shown[-1]
    note = last.note
    if last.left_out:
        note = next((row.note for row in reversed(shown) if not row.left_out), None)
    added = (
        ("1.50", "it's", "2026-01-02 03:04:05.6789") if last.version == 1 else ("2.00", "red", "2026-11-27 01:02:03")
    )
    return (note, last.offset, *added, last.position.encode())


def test_the_newest_row_of_each_key(job_engines: Engines) -> None:
    rng = random.Random(SEED)
    histories = {key: history(rng, key * 10) for key in range(KEYS)}
    stored = [row.stored(key) for key, rows in histories.items() for row in rows]
    stored += rng.sample(stored, 200)  # repeated rows
    rng.shuffle(stored)
    kinds = dict(NEW.lake_columns()) | {"size": "string", "at": "string"}
    kinds |= {"__unchanged": "array<string>", "__schema_version": "int", "__epoch": "int", "__partition": "int"}
    kinds |= {"__offset": "bigint"}
    del kinds["__order"]
    spark = job_engines.spark
    rows = spark.createDataFrame(
        [tuple(row[name] for name in kinds) for row in stored],
        ", ".join(f"`{name}` {kind}" for name, kind in kinds.items()),
    ).withColumns({"size": F.col("size").cast("decimal(6,2)"), "at": F.col("at").cast("timestamp")})
    rows.createOrReplaceTempView("landed_orders")
    try:
        select = latest_rows.sql([OLD, NEW], "landed_orders", BOUNDARY.encode())
        found = spark.sql(
            f"SELECT id, note, qty, size, colour, CAST(at AS STRING) AS at, __order FROM ({select})"
        ).collect()
    finally:
        spark.catalog.dropTempView("landed_orders")
    expected = {key: one for key, rows in histories.items() if (one := newest(rows)) is not None}
    with named_in_failures("the constant SEED", SEED):
        assert len(found) == len({row["id"] for row in found})
        values = ("colour", "at", "__order")
        shown = {row["id"]: (row["note"], row["qty"], str(row["size"]), *map(row.__getitem__, values)) for row in found}
        assert shown == expected
