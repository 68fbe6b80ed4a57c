"""Values arrive unchanged from PostgreSQL in the lake's types, and two engines read the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.value_rules import PLACEHOLDER
from cdc_lake.jobs.hudi.key_column import lake_columns
from cdc_lake_tests.integration.jobs import change_records
from cdc_lake_tests.integration.jobs.change_records import event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.upsert.typed_table import COLUMNS, KEY, record

TESTS_IN_CI = 2

MOMENTS = ("at", "at_ms", "at_zone")
NULLS = {column.name: None for column in COLUMNS if column.name != "id"}
EDGES = {
    "day": -719_162,
    "at": -62_135_596_800_000_000,
    "at_ms": -1,
    "at_zone": "1969-12-31T23:59:59.999999+05:30",
    "amount": "-0.0000000001",
    "whole": "-1",
    "unbounded": "NaN",
    "raw": "",
    "yes": False,
    "doc": "null",
    "small": 0,
    "big": -9_223_372_036_854_775_808,
    "single": "Infinity",
    "double": 5e-324,
    "MixedCase": "",
}


def by_spark(table: LakeTable) -> dict[int, dict[str, Any]]:
    """Return rows by id, with timestamps in microseconds, which do not depend on this process's time zone."""
    rows = table.engines.spark.read.format("hudi").load(table.spec.uri())
    for name in MOMENTS:
        rows = rows.withColumn(name, F.expr(f"unix_micros({name})"))
    return {row["id"]: {**row.asDict(), "raw": _bytes(row["raw"])} for row in rows.collect()}


def by_hudi_rs(table: LakeTable) -> dict[Any, dict[str, Any]]:
    """Return the same as by_spark(), read by hudi-rs."""
    found: dict[Any, dict[str, Any]] = {row["id"]: dict(row) for row in table.by_hudi_rs()}
    for row in found.values():
        row.update({name: _micros(row[name]) for name in MOMENTS})
    return found


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def _micros(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def test_values_of_every_type(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    zeros = record(4, amount="0E-10", whole="1E+3", unbounded="0E-10")
    table.deliver([record(1), record(2, **NULLS), record(3, **EDGES), zeros])
    report = table.upsert()
    assert (report.keys, report.commit.inserts, report.dead_letters) == (4, 4, 0)
    rows = by_spark(table)
    first, nulls, edges = rows[1], rows[2], rows[3]
    assert {name: first[name.lower()] for name in NULLS} == {
        "day": date(2024, 2, 29),
        "at": 1_709_251_199_123_456,
        "at_ms": 1_709_251_199_123_000,
        "at_zone": 1_709_251_199_123_456,
        "clock": 86_399_999_999,
        "clock_ms": 86_399_999_000,
        "amount": Decimal("1234567890.0123456789"),
        "whole": Decimal("12345678901234567890123456789012345678"),
        "unbounded": "3.14159265358979323846264338327950288419716939937510582",
        "raw": b"\x00\xff\x80ab",
        "yes": True,
        "doc": '{"a": [1, {"b": null}], "ß": "🦆"}',
        "small": -32_768,
        "big": 2**63 - 1,
        "single": 0.10000000149011612,
        "double": 1.7976931348623157e308,
        "uuid": "6f1c1f1e-0000-4000-8000-000000000001",
        "MixedCase": "ß→🦆 \\ \"'",
    }
    assert {nulls[name.lower()] for name in NULLS} == {None}
    assert {name: edges[name.lower()] for name in EDGES} == {
        **EDGES,
        "day": date(1, 1, 1),
        "at": -62_135_596_800_000_000,
        "at_ms": -1_000,
        "at_zone": -19_800_000_001,
        "amount": Decimal("-1E-10"),
        "whole": Decimal(-1),
        "raw": b"",
        "single": float("inf"),
    }
    assert [rows[4][name] for name in ("amount", "whole", "unbounded")] == [Decimal(0), Decimal(1000), "0.0000000000"]
    assert by_hudi_rs(table) == rows


def test_types_and_table_version_suit_old_readers(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    table.deliver([record(1)])
    table.upsert()
    rows = table.engines.spark.read.format("hudi").load(table.spec.uri())
    assert rows.select(*lake_columns(rows)).dtypes == table.lake_columns()
    properties = table.store.get(f"{table.spec.prefix}.hoodie/hoodie.properties")
    assert properties is not None
    lines = properties.body.decode().splitlines()
    assert "hoodie.table.version=6" in lines
    assert "hoodie.table.type=COPY_ON_WRITE" in lines
    [file] = [item for item in table.store.scan(table.spec.prefix) if item.key.endswith(".parquet")]
    assert file.size < 40_000, "each reader of a small table reads a large Bloom filter"


def test_columns_may_have_the_names_of_the_jobs_own_columns(new_table: NewTable) -> None:
    """The jobs use these names for a record's position, key and value."""
    names = ("object", "partition", "offset", "value", "key", "epoch", "schema", "_text", "_wire", "_keys", "reason")
    texts = [Column(name=name, type="text") for name in names]
    table = new_table([Column(name="id", type="integer", nullable=False), *texts], KEY)

    def change(key: int, lsn: int, **values: str) -> dict[str, Any]:
        fields = {name: values.get(name, f"{name} {lsn}") for name in names}
        own = {name: value for name, value in event(key, "u", lsn).items() if name not in {"note", "qty"}}
        return {**own, **fields}

    table.deliver([change(1, 10), change(2, 11), b"poison"])
    table.deliver([change(2, 9), change(1, 20, value=PLACEHOLDER), change(1, 12)])
    assert table.upsert().dead_letters == 1
    assert {row["id"]: [row[name] for name in names] for row in table.by_hudi_rs()} == {
        1: ["value 12" if name == "value" else f"{name} 20" for name in names],
        2: [f"{name} 11" for name in names],
    }


def test_a_deleted_row_can_keep_its_key_and_partition_only(new_table: NewTable) -> None:
    table = new_table((*change_records.COLUMNS, Column(name="kind", type="text")), change_records.KEY)
    spec = replace(table.spec, nullify=True, partition_by=["kind"], table_type="mor")
    table.deliver([event(1, "c", 10, note="first", kind="a"), event(2, "c", 11, note="second", kind="b")])
    table.upsert(spec)
    table.deliver([event(1, "d", 20, note="first", kind="a"), event(2, "d", 21, note="second", kind="b")])
    table.deliver([event(2, "c", 30, note="again", kind="c"), event(1, "u", 15, note="late", kind="c")])
    table.upsert(spec)
    found = {row["id"]: (row["note"], row["kind"], row["__deleted"], row["__op"]) for row in table.by_spark()}
    assert found == {1: (None, "a", True, "d"), 2: ("again", "c", False, "c")}
