"""Decoding on Spark: every encoded value is decoded unchanged, and an unreadable one is never a silent NULL."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import Column, OmittedColumn, TableSchema
from cdc_lake.contract.schema.value_rules import PLACEHOLDER, STRICT, ValueRules
from cdc_lake.contract.table.event_order import NO_LSN, Position, order_sql
from cdc_lake.jobs.apply.decode import OFFSET, REASON, UNAVAILABLE, decode
from cdc_lake.jobs.apply.record_fields import RecordParser, parse
from cdc_lake_tests.helpers import debezium_json
from cdc_lake_tests.integration.jobs.change_records import event
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

EVENT = {name: value for name, value in event(1, "u", 100).items() if name.startswith("__")}
RECORD = "epoch int, object string, partition int, offset bigint, value binary"
BATCH = 60
QUICK = settings(
    max_examples=4,
    # No shrinking: each step would be a Spark job, and the first failing rows are small enough to read.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

# PostgreSQL has no NUL in texts, and JSON no lone surrogates.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30).filter(
    lambda text: text != PLACEHOLDER
)
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "double precision": st.floats(allow_nan=False),
    "real": st.floats(width=32, allow_nan=False),
    "boolean": st.booleans(),
    "text": TEXT,
    "numeric(20,10)": st.decimals(-(10**10) + 1, 10**10 - 1, allow_nan=False, places=10),
    "numeric(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    "numeric": st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**50), max_value=10**50, places=12),
    "date": st.dates(),
    "timestamp without time zone": st.datetimes(),
    "timestamp(3) without time zone": st.datetimes().map(
        lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
    ),
    "timestamp with time zone": st.datetimes(
        min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29), timezones=st.just(UTC)
    ),
    "time without time zone": st.times(),
    "time(3) without time zone": st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    "bytea": st.binary(max_size=40),
    "uuid": st.uuids().map(str),
    "jsonb": st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=5
    ).map(lambda value: json.dumps(value, ensure_ascii=False)),
    "bit(10)": st.text("01", min_size=10, max_size=10),
    "integer[]": st.lists(st.integers(-5, 5), max_size=4).map(tuple),
    "text[]": st.lists(TEXT, max_size=4).map(tuple),
}
COLUMNS = tuple(Column(name=f"c{place}", type=kind) for place, kind in enumerate(TYPES))
SCHEMA = TableSchema(
    version=1, table="public.orders", columns=(Column(name="id", type="integer"), *COLUMNS), key=("id",)
)
# Timestamps are compared as microseconds and dates as days: PostgreSQL's range is larger than Python's.
AS_NUMBERS = {"timestamp": "unix_micros({})", "date": "datediff({}, date'1970-01-01')"}


@pytest.fixture(scope="package")
def spark(job_engines: Engines) -> SparkSession:
    """Return the session; these tests use no table."""
    return job_engines.spark


def decoded(
    spark: SparkSession,
    records: Sequence[bytes],
    versions: TableSchema | Sequence[TableSchema] = SCHEMA,
    rules: ValueRules = STRICT,
    epoch: int = 0,
) -> list[dict[str, Any]]:
    """Return the decoded rows of records, in their order."""
    frame = spark.createDataFrame([(epoch, "o", 0, place, bytearray(one)) for place, one in enumerate(records)], RECORD)
    parser = RecordParser.of([versions] if isinstance(versions, TableSchema) else versions)
    rows = decode(parse(frame, parser), versions, rules)
    for name, kind in rows.dtypes:
        if kind in AS_NUMBERS:
            rows = rows.withColumn(name, F.expr(AS_NUMBERS[kind].format(f"`{name}`")))
    return [row.asDict() for row in sorted(rows.collect(), key=lambda row: row[OFFSET])]


def record_bytes(**fields: object) -> bytes:
    """Return a record's value."""
    return json.dumps({"id": 1, **fields, **EVENT}, ensure_ascii=False).encode()


def expected(kind: str, value: Any) -> Any:  # noqa: ANN401 - any value of any type
    """Return a value as it should be in the lake, in the types of decoded()."""
    found = value
    match value:
        case datetime():
            found = (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        case date():
            found = (value - date(1970, 1, 1)).days
        case time():
            found = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case Decimal() if kind == "numeric":
            found = f"{value:f}"
        case float() if kind == "real":
            found = struct.unpack("f", struct.pack("f", value))[0]
        case tuple():
            found = list(value)
    return found


def comparable(kind: str, value: Any) -> Any:  # noqa: ANN401 - any value of any type
    """Return a decoded value in the types of expected()."""
    if isinstance(value, bytearray):
        return bytes(value)
    return json.loads(value) if kind.endswith("[]") and value is not None else value


def test_the_order_of_a_change_is_the_same_in_sql_and_in_python(spark: SparkSession) -> None:
    """Also for the smallest and largest LSN, each snapshot phase, and an event that lacks the field."""
    rows: list[tuple[int, str | None, str, int | None]] = [
        (epoch, snapshot, operation, lsn)
        for epoch in (0, 7, 999_999)
        for snapshot in ("false", None, "true", "first", "last", "incremental")
        for operation in ("r", "u")
        for lsn in (0, 9, 2**63 - 1)
    ]
    rows.append((7, "incremental", "r", None))
    events = spark.createDataFrame(rows, "epoch int, snapshot string, operation string, lsn bigint")
    found = events.select("*", F.expr(order_sql("epoch", "snapshot", "operation", "lsn")).alias("position")).collect()
    assert {row["position"] for row in found} == {
        Position(
            epoch,
            streamed=snapshot in {"false", None} or operation != "r",
            lsn=NO_LSN if lsn is None or (snapshot, operation) == ("incremental", "r") else lsn,
        ).encode()
        for epoch, snapshot, operation, lsn in rows
    }


@QUICK
@given(rows=st.lists(st.tuples(*(st.none() | values for values in TYPES.values())), min_size=1, max_size=BATCH))
def test_encoded_values_are_decoded_unchanged(
    spark: SparkSession, count_trials: CountTrials, rows: list[tuple[Any, ...]]
) -> None:
    records = [
        record_bytes(
            **{column.name: debezium_json.field(column.type, value) for column, value in zip(COLUMNS, row, strict=True)}
        )
        for row in rows
    ]
    found = decoded(spark, records)
    for row, got in zip(rows, found, strict=True):
        assert got[REASON] is None, (got[REASON], row)
        for column, value in zip(COLUMNS, row, strict=True):
            assert comparable(column.type, got[column.name]) == expected(column.type, value), (column.type, value)
    count_trials("values decoded", len(rows) * len(COLUMNS))


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.sampled_from(["1e5", "0x10", "1d", " 1", "1 ", "+1", "NaN", "infinity", "2024-01-01", "AAA", "--1", "1.0"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=3,
)


@QUICK
@given(junk=st.lists(st.tuples(st.sampled_from(COLUMNS), JUNK), min_size=1, max_size=BATCH))
def test_an_unreadable_value_is_never_a_null_without_a_reason(
    spark: SparkSession, count_trials: CountTrials, junk: list[tuple[Column, Any]]
) -> None:
    nothing = dict.fromkeys((each.name for each in COLUMNS), None)
    records = [record_bytes(**{**nothing, column.name: value}) for column, value in junk]
    for (column, value), got in zip(junk, decoded(spark, records), strict=True):
        if value is not None and got[column.name] is None:
            assert got[REASON] is not None, (column, value)
            assert column.name in got[REASON]
    count_trials("values of any kind that a column received", len(junk))


@QUICK
@given(
    bodies=st.lists(
        st.binary(max_size=60) | TEXT.map(str.encode) | JUNK.map(json.dumps).map(str.encode), max_size=BATCH
    )
)
def test_bytes_that_are_not_a_record_have_a_reason(
    spark: SparkSession, count_trials: CountTrials, bodies: list[bytes]
) -> None:
    assert all(got[REASON] is not None for got in decoded(spark, bodies))
    count_trials("records of any bytes", len(bodies))


def single(
    spark: SparkSession, cases: Sequence[tuple[str, object]], rules: ValueRules = STRICT
) -> list[dict[str, Any]]:
    """Decode each value in its own record and column; the row has the value as `c` and the column's name as `name`."""
    columns = tuple(Column(name=f"c{place}", type=kind) for place, (kind, _) in enumerate(cases))
    schema = SCHEMA.model_copy(update={"columns": (SCHEMA.columns[0], *columns)})
    nothing = dict.fromkeys((column.name for column in columns), None)
    records = [record_bytes(**{**nothing, f"c{place}": value}) for place, (_, value) in enumerate(cases)]
    rows = decoded(spark, records, schema, rules)
    return [{**row, "c": row[f"c{place}"], "name": f"c{place}"} for place, row in enumerate(rows)]


INFINITE = [
    ("date", 2146033979, "infinity"),
    ("date", -622191234, "infinity"),
    ("date", -2147472691, "-infinity"),
    ("date", -625821272, "-infinity"),
    ("timestamp without time zone", 2**63 - 1, "infinity"),
    ("timestamp without time zone", -(2**63), "-infinity"),
    ("timestamp(3) without time zone", 9223372036825200000, "infinity"),
    ("timestamp(0) without time zone", -9223372036832400000, "-infinity"),
    ("timestamp with time zone", "infinity", "infinity"),
    ("timestamp(3) with time zone", "-infinity", "-infinity"),
]


def test_infinity_follows_the_rule(spark: SparkSession, count_trials: CountTrials) -> None:
    cases = [(kind, value) for kind, value, _ in INFINITE]
    for (_, _, text), row in zip(INFINITE, single(spark, cases), strict=True):
        assert row["c"] is None
        assert row[REASON].startswith(f"Cannot read column {row['name']}: {text} is not a valid ")
    assert [(row["c"], row[REASON]) for row in single(spark, cases, ValueRules(infinity="null"))] == [
        (None, None) for _ in cases
    ]
    last, first = datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1)
    for (kind, _, text), row in zip(INFINITE, single(spark, cases, ValueRules(infinity="max")), strict=True):
        moment = last if text == "infinity" else first
        assert (row["c"], row[REASON]) == (expected(kind, moment.date() if kind == "date" else moment), None)
    count_trials("values that the lake can't hold", 3 * len(cases))


NUMBERS = ["1" * 40, "10000.00", "0.001", "-99999.5", "1e9", "POSITIVE_INFINITY"]


def test_numbers_that_do_not_fit_have_a_reason(spark: SparkSession, count_trials: CountTrials) -> None:
    cases: list[tuple[str, object]] = [("numeric(6,2)", text) for text in NUMBERS]
    for text, row in zip(NUMBERS, single(spark, cases), strict=True):
        assert row[REASON] == f"Cannot read column {row['name']}: '{text}' is not a valid decimal(6,2)"
    refused, kept, *texts = single(
        spark,
        [
            ("numeric(6,2)", "NAN"),
            ("double precision", "NaN"),
            ("numeric", "NAN"),
            ("numeric", "POSITIVE_INFINITY"),
            ("numeric", "NEGATIVE_INFINITY"),
        ],
    )
    assert refused[REASON].startswith("Cannot read column c0: NaN is not a valid decimal(6,2)")
    assert math.isnan(kept["c"])
    assert [row["c"] for row in texts] == ["NaN", "Infinity", "-Infinity"]
    (null,) = single(spark, [("numeric(6,2)", "NAN")], ValueRules(nan="null"))
    assert (null["c"], null[REASON]) == (None, None)
    count_trials("values that the lake can't hold", len(NUMBERS) + 2)


NESTED = [
    ("integer[]", [None, None]),
    ("text[]", ["[Ljava.lang.String;@1d8d5457", "[Ljava.lang.String;@7247588e"]),
    ("uuid[]", ["[Ljava.util.UUID;@3290b3eb"]),
    ("inet[]", ["[Ljava.lang.Object;@6676c11f"]),
]
LEFT_OUT = [
    ("text", PLACEHOLDER),
    ("jsonb", PLACEHOLDER),
    ("numeric", PLACEHOLDER),
    ("bytea", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="),
    ("text[]", [PLACEHOLDER]),
    ("integer[]", list(PLACEHOLDER.encode())),
    ("bigint[]", list(PLACEHOLDER.encode())),
    ("uuid[]", ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]),
]


def test_values_that_debezium_cannot_send_are_marked(spark: SparkSession) -> None:
    assert all("more than one dimension" in row[REASON] for row in single(spark, NESTED))
    for row in single(spark, LEFT_OUT):
        assert (row["c"], row[REASON], row[UNAVAILABLE]) == (None, None, [row["name"]])


def test_fields_of_omitted_columns_are_ignored_and_a_delete_may_contain_only_the_key(spark: SparkSession) -> None:
    twice = OmittedColumn(name="twice", reason="virtual generated, never published", streamed=False)
    place = OmittedColumn(name="place", reason="the lake has no type for PostgreSQL's point")
    columns = (Column(name="id", type="integer"), Column(name="c", type="numeric(6,2)"), Column(name="d", type="text"))
    for omitted in ((place,), (place, twice)):
        schema = TableSchema(version=1, table="public.orders", columns=columns, key=("id",), omitted=omitted)
        update = record_bytes(c="1.50", d="x", place={"x": 1})
        delete = json.dumps({"id": 1, "c": "", "d": "", **EVENT, "__op": "d", "__deleted": "true"}).encode()
        unknown = record_bytes(c="1.50", d="x", other=1)
        updated, deleted, refused = decoded(spark, [update, delete, unknown], schema)
        assert (updated["c"], updated["d"], updated[REASON], updated[UNAVAILABLE]) == (Decimal("1.50"), "x", None, [])
        assert refused[REASON].endswith(": other")
        if schema.allows_full_replica_identity:
            assert "Cannot read column c: '' is not a valid decimal(6,2)" in deleted[REASON]
        else:
            assert (deleted["id"], deleted["c"], deleted["d"]) == (1, None, None)
            assert (deleted[REASON], deleted[UNAVAILABLE]) == (None, ["c", "d"])


DISTANT: list[tuple[str, object, int]] = [
    ("date", -735_160, -735_160),
    ("date", 3_789_391, 3_789_391),
    ("timestamp without time zone", -63_517_824_000_000_000, -63_517_824_000_000_000),
    ("timestamp(3) without time zone", -63_517_824_000_000, -63_517_824_000_000_000),
    ("timestamp with time zone", "-0043-03-15T00:00:00.000000Z", -63_517_824_000_000_000),
    ("timestamp with time zone", "1500-01-01T00:00:00.000000Z", -14_831_769_600_000_000),
    ("timestamp with time zone", "+12345-01-01T00:00:00.000000Z", 327_403_382_400_000_000),
]


def test_distant_years_and_long_texts_are_decoded(spark: SparkSession, count_trials: CountTrials) -> None:
    text = 'ß🦆\\"\n' * 250_000
    rows = single(spark, [*((kind, value) for kind, value, _ in DISTANT), ("text", text)])
    assert [row["c"] for row in rows] == [*(number for _, _, number in DISTANT), text]
    count_trials("values of a megabyte", 1)
