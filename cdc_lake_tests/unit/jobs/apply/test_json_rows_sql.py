"""The SELECT over JSON objects: columns, names of a field, and the changes of a table that it cannot follow.

integration/chain/formats/test_json_target.py runs it in Athena's engine and in Spark.
"""

from __future__ import annotations

from typing import Any

import pytest

from cdc_lake.contract.errors import SchemaChangeError, UnsupportedTypeError
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.schema.value_rules import STRICT
from cdc_lake.contract.table.event_order import Position
from cdc_lake.jobs.apply import json_fields, json_rows_sql
from cdc_lake.jobs.apply.json_rows_sql import Dialect

ID = Column(name="id", type="integer", nullable=False, attnum=1)
NAME = Column(name="Name", type="text", attnum=2)
AT = Column(name="at", type="timestamp without time zone", attnum=3)
NUMBER = Column(name="n", type="integer", attnum=4)
OTHER = NUMBER.model_copy(update={"attnum": 5})
START = Position(0, streamed=False, lsn=0).encode()


def schema(version: int, *columns: Column, epoch: int = 0, **more: Any) -> TableSchema:  # noqa: ANN401 - any fields
    return TableSchema(version=version, table="shop.orders", columns=(ID, *columns), key=("id",), epoch=epoch, **more)


def rows(
    versions: list[TableSchema], dialect: Dialect = "athena", partition_by: tuple[str, ...] = (), boundary: str = START
) -> str:
    """Return the SELECT of typed rows, without the one of the latest rows."""
    select = json_rows_sql.latest_sql(versions, '"db"."raw"', boundary, STRICT, dialect, partition_by)
    return select.partition("typed_rows AS (")[2].partition("), events AS")[0]


def test_the_table_has_the_fields_of_the_records() -> None:
    types = {
        "id": "integer",
        "day": "date",
        "at": "timestamp without time zone",
        "zoned": "timestamp with time zone",
        "price": "numeric(6,2)",
        "ratio": "double precision",
        "ok": "boolean",
        "tags": "text[]",
    }
    columns = tuple(Column(name=name, type=kind) for name, kind in types.items())
    given = schema(1, *columns[1:], dropped=(NAME,))
    found = json_fields.fields(given)
    assert found[:9] == [
        ("id", "int"),
        ("day", "int"),
        ("at", "bigint"),
        ("zoned", "string"),
        ("price", "string"),
        ("ratio", "double"),
        ("ok", "boolean"),
        ("tags", "string"),
        ("name", "string"),
    ]
    assert dict(found)["__deleted"] == "string"
    assert [name for name, _ in found] == [name for name, _ in given.lake_columns() if name != "__order"]


@pytest.mark.parametrize("dialect", ["spark", "athena"])
def test_a_field_is_read_under_each_name_of_its_column(dialect: Dialect) -> None:
    old, renamed = schema(1, NAME), NAME.model_copy(update={"name": "label"})
    new = schema(
        2, renamed, AT, Column(name="n", type="integer", nullable=False, missing="7", attnum=4), dropped=(NAME,)
    )
    found = rows([old, new], dialect)
    quote = '"' if dialect == "athena" else "`"
    label, name = (f"{quote}{each}{quote}" for each in ("label", "name"))
    assert f"coalesce(CASE WHEN {label} NOT IN" in found
    assert f"CASE WHEN {name} NOT IN ('__debezium_unavailable_value') THEN {name} END) AS {label}" in found
    assert f"coalesce({quote}n{quote}, 7) AS {quote}n{quote}" in found
    assert f"{label} IN ('__debezium_unavailable_value') OR {name} IN ('__debezium_unavailable_value')" in found


def test_a_former_name_of_a_column_is_another_column_in_a_new_epoch() -> None:
    """`n` is renamed to `m`, then a new column `n` is added: capture refuses that until a resnapshot."""
    renamed = NUMBER.model_copy(update={"name": "m"})
    versions = [schema(1, NUMBER), schema(2, renamed), schema(3, renamed, OTHER, epoch=1)]
    in_both = rows(versions)
    assert 'CASE WHEN "__epoch" < 1 THEN coalesce("m", "n") ELSE "m" END AS "m"' in in_both
    assert 'CASE WHEN "__epoch" < 1 THEN NULL ELSE "n" END AS "n"' in in_both
    after = Position(1, streamed=False, lsn=0).encode()
    assert '"m" AS "m", "n" AS "n"' in rows(versions, boundary=after)
    # A table that was added in epoch 1 has its first version in epoch 0.
    later = [schema(1, NUMBER), schema(2, renamed), schema(3, renamed, OTHER, epoch=2)]
    assert 'CASE WHEN "__epoch" < 2 THEN coalesce("m", "n") ELSE "m" END AS "m"' in rows(later, boundary=after)


def test_a_partition_column_has_the_type_of_the_lake() -> None:
    day = Column(name="day", type="date", attnum=3)
    found = rows([schema(1, NAME, day)], partition_by=("name", "day"))
    assert '"day" AS "day"' in found
    assert 'CASE WHEN "name" NOT IN (\'__debezium_unavailable_value\') THEN "name" END AS "name"' in found
    assert "date_add('day', \"day\", DATE '1970-01-01') END AS \"day\"" in rows([schema(1, NAME, day)])


def test_texts_are_quoted_for_the_dialect() -> None:
    inserted = Column(name="c", type="text", missing="it's \\", inserted="it's \\")
    assert r"'it''s \'" in rows([schema(1), schema(2, inserted)], "athena")
    assert r"'it\'s \\'" in rows([schema(1), schema(2, inserted)], "spark")


@pytest.mark.parametrize(
    ("versions", "seen", "fault"),
    [
        ([], schema(0, NAME), None),
        ([], schema(0, NUMBER.model_copy(update={"missing": "7"})), None),
        ([schema(1)], schema(0, NUMBER), None),
        ([schema(1)], schema(0, NUMBER.model_copy(update={"missing": "7", "nullable": False})), None),
        ([schema(1)], schema(0, NUMBER.model_copy(update={"missing": "7"})), "Cannot add column n to shop.orders: it"),
        ([schema(1)], schema(0, NUMBER.model_copy(update={"missing": "7"}), epoch=1), None),
        (
            [schema(1), schema(2, NUMBER.model_copy(update={"missing": "7", "nullable": False}))],
            schema(0, NUMBER),  # DROP NOT NULL
            "older rows have the value '7', which the landed JSON objects do not show",
        ),
        ([schema(1)], schema(0, Column(name="c", type="text", missing="x", inserted="x")), None),
        (
            [schema(1, AT)],
            schema(0, AT.model_copy(update={"type": "timestamp(3) without time zone"}), epoch=1),
            "from timestamp without time zone to timestamp(3) without time zone",
        ),
        ([schema(1, AT)], schema(0, AT.model_copy(update={"type": "timestamp with time zone"})), "to timestamp with"),
        ([schema(1, NUMBER)], schema(0, NUMBER.model_copy(update={"type": "bigint"})), None),
        ([schema(1, NAME)], schema(0, NAME.model_copy(update={"type": "text[]"})), "other texts of its values"),
    ],
)
def test_a_change_that_json_does_not_show_is_rejected(
    versions: list[TableSchema], seen: TableSchema, fault: str | None
) -> None:
    if fault is None:
        json_fields.require_readable(versions, seen, "shop")
        return
    with pytest.raises(SchemaChangeError) as caught:
        json_fields.require_readable(versions, seen, "shop")
    assert fault in caught.value.user_message


def test_a_bit_string_is_rejected() -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column bits of shop\.orders: .* values of type bit\(5\)"):
        json_fields.require_readable([], schema(0, Column(name="bits", type="bit(5)")), "shop")
    json_fields.require_readable([], schema(0, Column(name="flag", type="bit(1)")), "shop")
