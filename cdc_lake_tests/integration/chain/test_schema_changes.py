"""The source's columns change while rows flow through the real chain: the lake follows, or says what to do.

Each change has rows before it in the lake, rows before it that are still on their way, and rows after it; in the end
the lake's rows are the source's, column by column.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from cdc_lake.contract.errors import ContractError, SchemaChangeError
from cdc_lake.contract.schema import captured_schema
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake_tests.integration.chain.chain_pipeline import Line
from cdc_lake_tests.integration.chain.conftest import NewLine
from cdc_lake_tests.trial_counts import Tried

# By table: its columns at first, and what happens to it in each round.
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
                # What it is later is no business of older rows.
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
# Values that no column could take before.
WIDE = "a = 5000000000, b = 'longer than five', c = 1234567.8912, e = 12345678901234.56"


def at_source(line: Line, table: str) -> dict[int, dict[str, Any]]:
    """The source's rows, spelled as by_spark() has them."""
    names = line.execute(
        "select attname, format_type(atttypid, -1) from pg_attribute where attrelid = %s::regclass and attnum > 0"
        " and not attisdropped",
        f"{line.flow.name}.{table}",
    )
    forms = {
        "date": "{0} - date '1970-01-01'",
        "timestamp with time zone": "(extract(epoch from {0}) * 1000000)::bigint",
        "time without time zone": "(extract(epoch from {0}) * 1000000)::bigint",
        "integer[]": "to_json({0})::text",
        "jsonb": "{0}::text",
        "uuid": "{0}::text",
    }
    asked = ", ".join(forms.get(kind, "{0}").format(f'"{name}"') for name, kind in names)
    rows = line.execute(f"select {asked} from {table}")
    return {row[0]: {name: _plain(value) for (name, _), value in zip(names, row, strict=True)} for row in rows}


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of any type
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


def differences(line: Line, table: str) -> list[str]:
    """Where the lake's rows differ from the source's, in the source's columns."""
    source, lake = at_source(line, table), line.by_spark(table)
    found = (
        [f"{table}: keys {sorted(source.keys() ^ lake.keys())} on one side only"]
        if source.keys() != lake.keys()
        else []
    )
    promised = captured_schema.latest(line.store, line.flow.name, f"{line.flow.name}.{table}").lake_columns()
    if sorted(promised) != sorted(line.types(table)):
        found.append(f"{table}: the schema promises {promised}, the files have {line.types(table)}")
    return found + [
        f"{table} {key}.{name}: {value!r} at the source, {_plain(lake[key][name.lower()])!r} in the lake"
        for key, row in source.items()
        for name, value in row.items()
        if key in lake and _plain(lake[key][name.lower()]) != _told(value, lake[key][name.lower()])
    ]


def _told(value: Any, held: Any) -> Any:  # noqa: ANN401 - any value of any type
    """A numeric without bounds is a text in the lake, as PostgreSQL writes it: without an exponent."""
    return format(value, "f") if isinstance(value, Decimal) and isinstance(held, str) else value


def make(line: Line) -> None:
    """All tables, with rows."""
    for table, (columns, _) in CHANGES.items():
        line.execute(f"create table {table} (id int primary key, {columns})")
        line.execute(f"insert into {table} (id, v) select g, 'snapshot' from generate_series(1, 9) g")


def touch(line: Line, table: str, number: int, word: str) -> None:
    """A new row, a changed one and a deleted one."""
    line.execute(f"insert into {table} (id, v) values (%s, %s)", number, word)
    line.execute(f"update {table} set v = %s where id = %s", word, number % 7 + 1)
    line.execute(f"delete from {table} where id = %s", number - 3)


def test_columns_change_while_rows_flow(new_line: NewLine, tried: Tried) -> None:
    datasets = {
        "widest.sql": "SELECT id, a, c FROM evolving.widened_current\n",
        "names.sql": "SELECT * FROM evolving.grown_current\n",
    }
    line = new_line("evolving", dict.fromkeys(CHANGES, ""), datasets)
    make(line)
    line.materialise()
    line.materialise("dataset")
    numbers, changed, told = count(100), 0, []
    for round_ in range(ROUNDS):
        for table, (_, rounds) in CHANGES.items():
            touch(line, table, next(numbers), f"before {round_}")
            for statement in rounds[round_]:
                line.execute(statement)
                changed += 1
                touch(line, table, next(numbers), f"after {statement}")
        if round_ == ROUNDS - 1:
            line.execute(f"update widened set {WIDE} where id = 2")
        done = line.carry()
        told += [str(done.metadata[f"evolving/lake/{table}"]["changes"]) for table in CHANGES]
        assert [each for table in CHANGES for each in differences(line, table)] == []
    tried("schema changes on the real chain", changed)
    assert line.dead_letters() == []
    said = "; ".join(told)
    for phrase in (
        "more integer added (older rows show NULL)",
        "a integer added (older rows show 5)",
        "gone dropped (kept as history)",
        "a widened from integer to bigint",
        "old_name renamed to new_name",
    ):
        assert phrase in said

    # History stays, in the columns that the source has no more.
    grown = line.by_spark("grown")
    assert grown[9]["gone"] == 3
    assert {row["gone"] for row in grown.values() if row["v"].startswith("after alter table grown drop")} == {None}
    # Catalog, views and datasets have followed.
    assert line.by_athena("SELECT a, c FROM widened_current WHERE id = 2") == [(5_000_000_000, Decimal("1234567.8912"))]
    assert "gone" in {row[0] for row in line.by_athena("SHOW COLUMNS FROM grown_current")}
    line.materialise("dataset")
    assert line.by_athena("SELECT a FROM widest WHERE id = 2") == [(5_000_000_000,)]
    assert ("more",) in {(row[0],) for row in line.by_athena("SHOW COLUMNS FROM names")}


def test_a_change_without_rows_is_applied_all_the_same(new_line: NewLine) -> None:
    line = new_line("silent", {"goods": ""})
    line.execute("create table goods (id int primary key, v text); insert into goods values (1, 'a'), (2, 'b')")
    line.materialise()
    line.execute("alter table goods add column n int not null default 42")
    changes = line.materialise("lake").metadata["silent/lake/goods"]["changes"]
    assert "n integer added (older rows show 42)" in changes
    assert line.materialise("lake").metadata["silent/lake/goods"]["changes"] == standard_metadata.UNCHANGED
    assert differences(line, "goods") == []
    assert {row["n"] for row in line.by_spark("goods").values()} == {42}


STOPPED = [
    ("add column u uuid default gen_random_uuid()", "the new column u was filled in a rewritten table"),
    ("alter column n type smallint", "column n changed from integer to smallint"),
    ("drop column v; alter table goods add column v text default 'x'", "column v has the name of an earlier column"),
]


def test_what_cannot_be_applied_stops_and_is_resnapshot(new_line: NewLine, tried: Tried) -> None:
    # More records come in after each change than may be dead letters: the resnapshot has overtaken them.
    line = new_line("stopping", {"goods": ""}, limit=2)
    line.execute(
        "create table goods (id int primary key, v text, n int); insert into goods values (1, 'a', 1), (2, 'b', 2)"
    )
    line.materialise()
    for number, (change, said) in enumerate(STOPPED, 10):
        line.execute("insert into goods (id, n) values (%s, 1)", number)
        line.execute(f"alter table goods {change}")
        line.execute("update goods set n = n + 1")
        line.execute("update goods set n = n - 1")
        before = line.by_spark("goods")
        with pytest.raises(ContractError, match=said) as caught:
            line.carry()
        assert "`cdc-lake resnapshot stopping`" in str(caught.value)
        assert line.by_spark("goods") == before
        line.resnapshot()
        line.carry()
        assert differences(line, "goods") == []
        assert line.dead_letters() == []
    tried("schema changes that stop, and are resnapshot", len(STOPPED))
    # A table's files can't be of another type than they were.
    line.execute("alter table goods drop column v; alter table goods add column v int default 8")
    with pytest.raises(SchemaChangeError, match=r"column v .*string.*int.*`cdc-lake reset stopping`"):
        line.resnapshot()
    assert line.by_spark("goods").keys() == at_source(line, "goods").keys()
