"""Captured schemas: the lake type of each PostgreSQL type, rejected types and names, and a version per change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cdc_lake.contract.errors import ContractError, UnsupportedTypeError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE

TABLE = "public.orders"
COLUMNS = [Column(name="order_id", type="integer", nullable=False), Column(name="note", type="text")]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def capture(store: MemoryStore, columns: Sequence[Column]) -> tuple[TableSchema, bool]:
    """Record a schema of the table; return the newest version, and whether it was added."""
    seen = TableSchema(version=0, table=TABLE, columns=tuple(columns), key=("order_id",))
    return captured_schema.record(store, PIPELINE, seen)


@pytest.mark.parametrize(
    ("postgres", "lake"),
    [
        ("smallint", "int"),
        ("integer", "int"),
        ("bigint", "bigint"),
        ("real", "float"),
        ("double precision", "double"),
        ("numeric(6,2)", "decimal(6,2)"),
        ("numeric(10,0)", "decimal(10,0)"),
        ("numeric(10)", "decimal(10,0)"),
        ("numeric(38,38)", "decimal(38,38)"),
        ("numeric", "string"),
        ("numeric(39,2)", "string"),
        ("numeric(1000,3)", "string"),
        ("numeric(3,5)", "string"),
        ("boolean", "boolean"),
        ("text", "string"),
        ("character varying", "string"),
        ("character varying(40)", "string"),
        ("character(2)", "string"),
        ("bpchar", "string"),
        ("uuid", "string"),
        ("json", "string"),
        ("jsonb", "string"),
        ("xml", "string"),
        ("date", "date"),
        ("timestamp without time zone", "timestamp"),
        ("timestamp(3) without time zone", "timestamp"),
        ("timestamp with time zone", "timestamp"),
        ("timestamp(0) with time zone", "timestamp"),
        ("time without time zone", "bigint"),
        ("time(3) without time zone", "bigint"),
        ("time with time zone", "string"),
        ("interval", "string"),
        ("bytea", "binary"),
        ("inet", "string"),
        ("macaddr", "string"),
        ("macaddr8", "string"),
        ("money", "decimal(19,2)"),
        ("oid", "bigint"),
        ("bit(1)", "boolean"),
        ("bit(10)", "string"),
        ("int4range", "string"),
        ("tstzrange", "string"),
        ("hstore", "string"),
        ("extensions.citext", "string"),
        ("public.ltree", "string"),
        ("tsvector", "string"),
        ("name", "string"),
        ('"char"', "string"),
        ("integer[]", "string"),
        ("character varying(5)[]", "string"),
        ("timestamp(3) with time zone[]", "string"),
    ],
)
def test_postgres_types_map_to_lake_types(postgres: str, lake: str) -> None:
    assert Column(name="c", type=postgres).lake_type == lake


@pytest.mark.parametrize(
    "postgres",
    [
        "numeric(6,2)[]",
        "numeric[]",
        "date[]",
        "time with time zone[]",
        "interval[]",
        "bytea[]",
        "numeric(5,-3)",
        "bit varying",
        "bit varying(9)",
        "point",
        "polygon",
        "pg_lsn",
        "int4multirange",
        "public.mood",
        "vector(3)",
        "",
    ],
)
def test_an_unsupported_type_is_rejected_with_the_column_name(store: MemoryStore, postgres: str) -> None:
    columns = [*COLUMNS, Column(name="odd_one", type=postgres)]
    with pytest.raises(UnsupportedTypeError, match=rf"column odd_one of {TABLE}: the lake has no type"):
        capture(store, columns)
    assert store.objects == {}


@pytest.mark.parametrize(
    ("postgres", "base", "arguments"),
    [
        ("timestamp(3) without time zone", "timestamp without time zone", (3,)),
        ("timestamp without time zone", "timestamp without time zone", ()),
        ("numeric(6,2)", "numeric", (6, 2)),
        ("character varying(40)", "character varying", (40,)),
        ("numeric(6,2)[]", "numeric[]", (6, 2)),
    ],
)
def test_a_type_is_split_into_base_and_arguments(postgres: str, base: str, arguments: tuple[int, ...]) -> None:
    column = Column(name="c", type=postgres)
    assert (column.base, column.arguments) == (base, arguments)


@pytest.mark.parametrize(
    "name", ["order id", "größe", "a.b", "a-b", "1st", "", "a`b", "__op", "__ORDER", "_hoodie_x", "__value", "__x"]
)
def test_an_unsupported_column_name_is_rejected(store: MemoryStore, name: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"its name (is not valid in the lake|begins with '__')"):
        capture(store, [*COLUMNS, Column(name=name, type="text")])


def test_names_that_differ_only_in_case_are_rejected(store: MemoryStore) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column Note of public.orders: it has the name of another column"):
        capture(store, [*COLUMNS, Column(name="Note", type="text")])


def test_lake_columns_are_source_columns_event_fields_and_order(store: MemoryStore) -> None:
    captured, _ = capture(store, COLUMNS)
    columns = captured.lake_columns()
    assert columns[:2] == [("order_id", "int"), ("note", "string")]
    assert columns[-1] == ("__order", "string")
    assert ("__txid", "bigint") in columns
    assert len(columns) == len(set(columns)) == 2 + len(captured_schema.EVENT_FIELDS) + 1


def test_a_version_is_added_only_on_a_change(store: MemoryStore) -> None:
    first = capture(store, COLUMNS)
    unchanged = capture(store, COLUMNS)
    wider = capture(store, [Column(name="order_id", type="bigint"), COLUMNS[1]])
    more = capture(store, [Column(name="order_id", type="bigint"), Column(name="other", type="date")])
    assert [(found.version, added) for found, added in (first, unchanged, wider, more)] == [
        (1, True),
        (1, False),
        (2, True),
        (3, True),
    ]
    assert [each.version for each in captured_schema.versions(store, PIPELINE, TABLE)] == [1, 2, 3]
    assert captured_schema.latest(store, PIPELINE, TABLE) == more[0]
    assert [column.name for column in more[0].dropped] == ["note"]


def test_versions_are_separate_for_each_table(store: MemoryStore) -> None:
    capture(store, COLUMNS)
    assert captured_schema.versions(store, PIPELINE, "public.order") == []
    with pytest.raises(
        ContractError,
        match=r"schema of public\.order: no version is captured yet\. Materialise asset shop/source/order_source\.",
    ):
        captured_schema.latest(store, PIPELINE, "public.order")


def test_temporary_files_are_not_versions(store: MemoryStore) -> None:
    capture(store, COLUMNS)
    store.write(f"{object_names.schema_prefix(PIPELINE, TABLE)}000002.json-0f3d", b"{")
    assert len(captured_schema.versions(store, PIPELINE, TABLE)) == 1


def capture_meanwhile(store: MemoryStore, columns: list[Column]) -> None:
    """Let another run capture these columns just before the next put."""

    def rival(_: str) -> None:
        store.before_put = None
        capture(store, columns)

    store.before_put = rival


def test_two_simultaneous_captures_of_the_same_schema_agree(store: MemoryStore) -> None:
    capture_meanwhile(store, COLUMNS)
    assert capture(store, COLUMNS)[0].version == 1
    assert len(captured_schema.versions(store, PIPELINE, TABLE)) == 1


def test_simultaneous_captures_of_different_schemas_do_not_overwrite_each_other(store: MemoryStore) -> None:
    capture_meanwhile(store, COLUMNS[:1])
    with pytest.raises(
        ContractError, match=r"version 1 of the schema of public.orders: another run stored a different one"
    ):
        capture(store, COLUMNS)
    assert captured_schema.latest(store, PIPELINE, TABLE).columns == tuple(COLUMNS[:1])


def test_a_lost_response_is_not_a_conflict(store: MemoryStore) -> None:
    store.lose_answers()
    assert capture(store, COLUMNS)[1]
