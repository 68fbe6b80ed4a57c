"""Schema changes at the source while rows are captured: the lake follows, or the error names the command to run.

Each change has earlier rows in the lake, earlier rows that are not applied yet, and later rows; at the end the lake's
rows equal the source's, column by column.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from cdc_lake.contract.errors import ContractError, SchemaChangeError
from cdc_lake.contract.schema import captured_schema
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from cdc_lake_tests.integration.chain.conftest import NewPipeline
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 1

# By table: its first columns, and its changes in each round.
CHANGES = {
    "grown": (
        "v text, gone int default 3, kept int default 4",
        [
            [
                "alter table grown add column more int",
                "alter table grown add column a int default 5",
                "alter table grown drop column gone",
            ],
            [
                "alter table grown add column b text default 'ß→🦆', add column c numeric(6,2) not null default 1.50,"
                " add column d date default '2024-02-29', add column e boolean default true",
            ],
            [
                "alter table grown add column f bytea default '\\x00ff', add column g timestamptz"
                " default '2024-02-29 23:59:59.123456+05:30', add column h time(3) default '01:02:03.004',"
                " add column i int[] default '{1,2}', add column j jsonb default '{\"a\": 1.50}',"
                # A later default must not change older rows.
                " alter column a set default 6, alter column b drop default",
            ],
        ],
    ),
    "widened": (
        "v text, a int default 1, b varchar(5) default 'abc', c numeric(6,2) default 1.5, d numeric default 0.00000015,"
        " e int default 7",
        [
            ["alter table widened alter a type bigint"],
            [
                "alter table widened alter b type text, alter c type numeric(12,4)",
            ],
            ["alter table widened alter e type numeric(20,2)"],
        ],
    ),
    "renamed": (
        "v text, old_name int default 1, a int default 2, b text default 'b'",
        [
            ["alter table renamed rename old_name to new_name"],
            ["alter table renamed add column c int default 9; alter table renamed drop column b"],
            ["alter table renamed rename new_name to newest_name; alter table renamed rename a to a2"],
        ],
    ),
}
ROUNDS = 3
# Values that do not fit the columns' earlier types.
WIDE = "a = 5000000000, b = 'longer than five', c = 1234567.8912, e = 12345678901234.56"


def at_source(pipeline: ChainPipeline, table: str) -> dict[int, dict[str, Any]]:
    """Return the source's rows, in the form of by_spark()."""
    names = pipeline.execute(
        "select attname, format_type(atttypid, -1) from pg_attribute where attrelid = %s::regclass and attnum > 0"
        " and not attisdropped",
        f"{pipeline.loaded.name}.{table}",
    )
    forms = {
        "date": "{0} - date '1970-01-01'",
        "timestamp with time zone": "(extract(epoch from {0}) * 1000000)::bigint",
        "time without time zone": "(extract(epoch from {0}) * 1000000)::bigint",
        "integer[]": "to_json({0})::text",
        "jsonb": "{0}::text",
        "uuid": "{0}::text",
    }
    columns = ", ".join(forms.get(kind, "{0}").format(f'"{name}"') for name, kind in names)
    rows = pipeline.execute(f"select {columns} from {table}")
    return {row[0]: {name: _plain(value) for (name, _), value in zip(names, row, strict=True)} for row in rows}


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of any type
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


def differences(pipeline: ChainPipeline, table: str) -> list[str]:
    """Describe the differences between the lake's rows and the source's, in the source's columns."""
    source, lake = at_source(pipeline, table), pipeline.by_spark(table)
    found = (
        [f"{table}: keys {sorted(source.keys() ^ lake.keys())} on one side only"]
        if source.keys() != lake.keys()
        else []
    )
    expected = captured_schema.latest(
        pipeline.store, pipeline.loaded.name, f"{pipeline.loaded.name}.{table}"
    ).lake_columns()
    if sorted(expected) != sorted(pipeline.types(table)):
        found.append(f"{table}: the captured schema has {expected}, the files have {pipeline.types(table)}")
    return found + [
        f"{table} {key}.{name}: {value!r} at the source, {_plain(lake[key][name.lower()])!r} in the lake"
        for key, row in source.items()
        for name, value in row.items()
        if key in lake and _plain(lake[key][name.lower()]) != _expected(value, lake[key][name.lower()])
    ]


def _expected(value: Any, held: Any) -> Any:  # noqa: ANN401 - any value of any type
    """Return the value that the lake should have: an unbounded numeric is a text there, without an exponent."""
    return format(value, "f") if isinstance(value, Decimal) and isinstance(held, str) else value


def create_tables(pipeline: ChainPipeline) -> None:
    """Create all tables, with rows."""
    for table, (columns, _) in CHANGES.items():
        pipeline.execute(f"create table {table} (id int primary key, {columns})")
        pipeline.execute(f"insert into {table} (id, v) select g, 'snapshot' from generate_series(1, 9) g")


def write(pipeline: ChainPipeline, table: str, number: int, word: str) -> None:
    """Insert, update and delete a row."""
    pipeline.execute(f"insert into {table} (id, v) values (%s, %s)", number, word)
    pipeline.execute(f"update {table} set v = %s where id = %s", word, number % 7 + 1)
    pipeline.execute(f"delete from {table} where id = %s", number - 3)


def test_schema_changes_while_rows_are_captured_reach_the_lake(
    new_pipeline: NewPipeline, count_trials: CountTrials
) -> None:
    datasets = {
        "widest.sql": "SELECT id, a, c FROM evolving.widened_current\n",
        "names.sql": "SELECT * FROM evolving.grown_current\n",
    }
    pipeline = new_pipeline("evolving", dict.fromkeys(CHANGES, ""), datasets)
    create_tables(pipeline)
    pipeline.materialise()
    pipeline.materialise("dataset")
    numbers, changed, reported = count(100), 0, []
    for round_ in range(ROUNDS):
        for table, (_, rounds) in CHANGES.items():
            write(pipeline, table, next(numbers), f"before {round_}")
            for statement in rounds[round_]:
                pipeline.execute(statement)
                changed += 1
                write(pipeline, table, next(numbers), f"after {statement}")
        if round_ == ROUNDS - 1:
            pipeline.execute(f"update widened set {WIDE} where id = 2")
        done = pipeline.land_and_apply()
        reported += [str(done.metadata[f"evolving/lake/{table}_lake"]["changes"]) for table in CHANGES]
        assert [each for table in CHANGES for each in differences(pipeline, table)] == []
    count_trials("schema changes on the real chain", changed)
    assert pipeline.dead_letters() == []
    changes = "; ".join(reported)
    for phrase in (
        "more integer added (older rows show NULL)",
        "a integer added (older rows show 5)",
        "gone dropped (kept as history)",
        "a widened from integer to bigint",
        "old_name renamed to new_name",
    ):
        assert phrase in changes

    # Columns that the source has dropped keep their earlier values.
    grown = pipeline.by_spark("grown")
    assert grown[9]["gone"] == 3
    assert {row["gone"] for row in grown.values() if row["v"].startswith("after alter table grown drop")} == {None}
    # Catalog, views and datasets have the changes too.
    assert pipeline.by_athena("SELECT a, c FROM widened_current WHERE id = 2") == [
        (5_000_000_000, Decimal("1234567.8912"))
    ]
    assert "gone" in {row[0] for row in pipeline.by_athena("SHOW COLUMNS FROM grown_current")}
    pipeline.materialise("dataset")
    assert pipeline.by_athena("SELECT a FROM widest WHERE id = 2") == [(5_000_000_000,)]
    assert ("more",) in {(row[0],) for row in pipeline.by_athena("SHOW COLUMNS FROM names")}


def test_a_schema_change_without_rows_is_applied(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("silent", {"goods": ""})
    pipeline.execute("create table goods (id int primary key, v text); insert into goods values (1, 'a'), (2, 'b')")
    pipeline.materialise()
    pipeline.execute("alter table goods add column n int not null default 42")
    changes = pipeline.materialise("lake").metadata["silent/lake/goods_lake"]["changes"]
    assert "n integer added (older rows show 42)" in changes
    assert pipeline.materialise("lake").metadata["silent/lake/goods_lake"]["changes"] == standard_metadata.UNCHANGED
    assert differences(pipeline, "goods") == []
    assert {row["n"] for row in pipeline.by_spark("goods").values()} == {42}


STOPPED = [
    ("add column u uuid default gen_random_uuid()", "the new column u was filled in a rewritten table"),
    ("alter column n type smallint", "column n changed from integer to smallint"),
    ("drop column v; alter table goods add column v text default 'x'", "column v has the name of an earlier column"),
]


def test_a_schema_change_that_cannot_be_applied_requires_a_resnapshot(
    new_pipeline: NewPipeline, count_trials: CountTrials
) -> None:
    # After each change, more records arrive than the dead letter limit allows; the resnapshot supersedes them.
    pipeline = new_pipeline("stopping", {"goods": ""}, limit=2)
    pipeline.execute(
        "create table goods (id int primary key, v text, n int); insert into goods values (1, 'a', 1), (2, 'b', 2)"
    )
    pipeline.materialise()
    for number, (change, cause) in enumerate(STOPPED, 10):
        pipeline.execute("insert into goods (id, n) values (%s, 1)", number)
        pipeline.execute(f"alter table goods {change}")
        pipeline.execute("update goods set n = n + 1")
        pipeline.execute("update goods set n = n - 1")
        before = pipeline.by_spark("goods")
        with pytest.raises(ContractError, match=cause) as caught:
            pipeline.land_and_apply()
        assert "`cdc-lake resnapshot stopping`" in str(caught.value)
        assert pipeline.by_spark("goods") == before
        pipeline.resnapshot()
        pipeline.land_and_apply()
        assert differences(pipeline, "goods") == []
        assert pipeline.dead_letters() == []
    count_trials("schema changes that required a resnapshot", len(STOPPED))
    # The type of a column in a table's files cannot change.
    pipeline.execute("alter table goods drop column v; alter table goods add column v int default 8")
    with pytest.raises(SchemaChangeError, match=r"column v .*string.*int.*`cdc-lake reset stopping`"):
        pipeline.resnapshot()
    assert pipeline.by_spark("goods").keys() == at_source(pipeline, "goods").keys()
