"""Schema versions in the lake table: records of every version, and stored rows migrated to the newest version."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from cdc_lake.contract.errors import UnknownColumnsError
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.schema.value_rules import PLACEHOLDER
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.hudi.key_column import lake_columns
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.history_runs import open_epoch
from cdc_lake_tests.integration.jobs.hudi_table import SOURCE, LakeTable
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 3

NUMBERED = tuple(column.model_copy(update={"attnum": place}) for place, column in enumerate(COLUMNS, 1))


def capture(table: LakeTable, *columns: Column, epoch: int = 0) -> TableSchema:
    """Record a schema of the source's catalog, and return its version."""
    seen = TableSchema(version=0, table=SOURCE, columns=columns, key=KEY, oid=1, filenode=1, epoch=epoch)
    return captured_schema.record(table.store, table.name, seen)[0]


def held(table: LakeTable, *names: str) -> dict[int, tuple[object, ...]]:
    """Return columns by id; Spark and hudi-rs must agree."""
    found: list[dict[Any, Any]] = []
    for rows in (table.by_spark(), table.by_hudi_rs()):
        found.append({row["id"]: tuple(row[name] for name in names) for row in rows})
        assert len(found[-1]) == len(rows)
    assert found[0] == found[1]
    return found[0]


def apply(table: LakeTable) -> list[str]:
    """Apply everything that is landed, all of it before the last capture; return the schema changes."""
    chain = table.chain.length()
    return list(table.upsert(replace(table.spec, until=chain)).schema_changes)


def without(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without a field."""
    return {field: value for field, value in record.items() if field != name}


def test_columns_are_added_widened_renamed_and_dropped(new_table: NewTable, count_trials: CountTrials) -> None:
    table = new_table(NUMBERED, KEY)
    table.deliver([event(1, "c", 100, note="one", qty=1), event(2, "c", 101, note="two", qty=2)])
    table.upsert()

    # Added with a default: stored rows have it, and earlier records that are applied later have it too.
    more = Column(name="more", type="integer", attnum=4, missing="5")
    table.deliver([event(3, "c", 102, note="three", qty=3), event(1, "u", 110, note="uno", qty=1, more=None)])
    capture(table, *NUMBERED, more)
    assert apply(table) == ["more integer added (older rows show 5)"]
    assert held(table, "note", "more") == {1: ("uno", None), 2: ("two", 5), 3: ("three", 5)}

    # Widened, without a record: the migration has its own commit.
    wide = more.model_copy(update={"type": "bigint", "missing": None})
    capture(table, *NUMBERED, wide)
    assert apply(table) == ["more widened from integer to bigint"]
    assert apply(table) == []
    table.deliver([event(4, "c", 120, more=2**40), event(2, "u", 121, note="zwei", qty=2, more=6)])
    assert apply(table) == []
    assert held(table, "more") == {1: (None,), 2: (6,), 3: (5,), 4: (2**40,)}
    assert dict(table.engines.spark.read.format("hudi").load(table.spec.uri()).dtypes)["more"] == "bigint"

    # Renamed and dropped between two captures, with a record of each state in between.
    renamed = NUMBERED[1].model_copy(update={"name": "remark"})
    table.deliver(
        [
            event(1, "u", 130, note="old name", qty=11, more=1),
            {**without("note", event(2, "u", 131, qty=12, more=2)), "remark": "new name"},
            {**without("qty", without("note", event(3, "u", 132, more=3))), "remark": "and without qty"},
        ]
    )
    capture(table, NUMBERED[0], renamed, wide)
    assert apply(table) == ["note renamed to remark", "qty dropped (kept as history)"]
    assert held(table, "remark", "qty", "more") == {
        1: ("old name", 11, 1),
        2: ("new name", 12, 2),
        3: ("and without qty", None, 3),
        4: (None, 1, 2**40),
    }
    # A replay of the whole topic into a new table, which starts with the last version, gives the same rows.
    before = held(table, "remark", "qty", "more", "__lsn", "__order")
    again = replace(table.spec, table="again", until=table.chain.length())
    table.upsert(again)
    rows = table.engines.spark.read.format("hudi").load(again.uri()).collect()
    assert {row["id"]: tuple(row[n] for n in ("remark", "qty", "more", "__lsn", "__order")) for row in rows} == before

    # Renamed by case only: one column in the lake, two fields in one batch.
    capital = renamed.model_copy(update={"name": "Remark"})
    bare = [without("qty", without("note", event(key, "u", 140 + key, more=4))) for key in (1, 2)]
    table.deliver([{**bare[0], "remark": "small"}, {**bare[1], "Remark": "large"}])
    capture(table, NUMBERED[0], capital, wide)
    assert apply(table) == [], "a column of the lake was changed"
    table.deliver([{**without("qty", without("note", event(3, "u", 150, more=4))), "Remark": "still"}])
    assert apply(table) == []
    assert held(table, "remark") == {1: ("small",), 2: ("large",), 3: ("still",), 4: (None,)}
    count_trials("schema changes applied", 5)


def test_a_late_older_change_does_not_win_after_a_schema_change(new_table: NewTable) -> None:
    table = new_table(NUMBERED, KEY)
    table.deliver([event(1, "c", 100, note="a")])
    table.upsert()
    more = Column(name="more", type="text", attnum=4, missing="x")
    capture(table, *NUMBERED, more)
    table.deliver([event(1, "u", 200, note="b", more="new")])
    apply(table)
    table.deliver([event(1, "u", 150, note="late")])
    apply(table)
    assert held(table, "note", "more") == {1: ("b", "new")}


def test_an_added_column_is_in_the_table_before_its_first_record(new_table: NewTable) -> None:
    table = new_table(NUMBERED, KEY)
    table.deliver([event(1, "c", 100, note="a")])
    table.upsert()
    capture(table, *NUMBERED, Column(name="more", type="date", attnum=4))
    assert apply(table) == ["more date added (older rows show NULL)"]
    assert held(table, "note", "more") == {1: ("a", None)}
    commit = timeline.last_commit(table.store, table.spec.prefix)
    assert commit is not None
    assert commit.checkpoint is not None
    assert (commit.checkpoint.schema_version, commit.rows_written) == (2, 0)


def test_a_field_in_no_captured_schema_version_stops_the_upsert(new_table: NewTable) -> None:
    table = new_table(NUMBERED, KEY)
    table.deliver([event(1, "c", 100), event(2, "c", 101, ghost=1)])
    with pytest.raises(
        UnknownColumnsError, match="the record has fields that are in no captured schema version: ghost"
    ):
        table.upsert()
    assert table.upsert(replace(table.spec, until=1)).dead_letters == 1
    assert [row["id"] for row in table.by_hudi_rs()] == [1]


def test_an_omitted_value_is_taken_from_the_previous_row(new_table: NewTable, count_trials: CountTrials) -> None:
    table = new_table(NUMBERED, KEY)
    table.deliver([event(1, "c", 100, note="stored"), event(2, "c", 101, note=None), event(5, "c", 102, note="gone")])
    table.upsert()
    table.deliver(
        [
            event(1, "u", 110, note=PLACEHOLDER, qty=7),
            event(2, "u", 111, note=PLACEHOLDER, qty=8),
            event(3, "u", 112, note=PLACEHOLDER, qty=9),
            event(4, "u", 114, note=PLACEHOLDER, qty=11),
            event(4, "u", 113, note="in the batch", qty=10),
            event(4, "u", 115, note=PLACEHOLDER, qty=12),
            event(5, "u", 90, note=PLACEHOLDER, qty=0),
        ]
    )
    report = table.upsert()
    assert held(table, "note", "qty") == {
        1: ("stored", 7),
        2: (None, 8),
        4: ("in the batch", 12),
        5: ("gone", 1),
    }
    assert report.dead_letters == 1
    count_trials("omitted values resolved", 6)


def test_after_a_resnapshot_a_column_may_have_another_encoding(new_table: NewTable) -> None:
    at = Column(name="at", type="timestamp(3) without time zone", attnum=4)
    table = new_table((*NUMBERED, at), KEY)
    table.deliver([event(1, "c", 100, at=1_000), event(2, "c", 101, at=2_000), event(3, "c", 102, at=3_000)])
    table.upsert()
    table.deliver([event(2, "u", 103, at=2_500)])
    open_epoch(table, 1)
    capture(table, *NUMBERED, at.model_copy(update={"type": "timestamp without time zone"}), epoch=1)
    table.deliver([event(1, "r", 200, "true", at=1_000_001), event(3, "r", 200, "true", at=3_000_001)], epoch=1)
    apply(table)
    rows = table.engines.spark.read.format("hudi").load(table.spec.uri()).selectExpr("id", "unix_micros(at) as at")
    assert {row["id"]: row["at"] for row in rows.collect()} == {1: 1_000_001, 2: 2_500_000, 3: 3_000_001}


WIDENED: tuple[tuple[str, str, object, object], ...] = (
    ("smallint", "text", 7, "7"),
    ("smallint", "real", 7, 7.0),
    ("integer", "double precision", 7, 7.0),
    ("integer", "bigint", 7, 7),
    ("integer", "numeric(20,2)", 7, Decimal("7.00")),
    ("bigint", "numeric(38,0)", 7, Decimal(7)),
    ("bigint", "text", 7, "7"),
    ("numeric(6,2)", "numeric(12,4)", "7.50", Decimal("7.5000")),
    ("numeric(40,2)", "numeric", "7.50", "7.50"),
    ("boolean", "text", True, "true"),
    ("character varying(5)", "text", "seven", "seven"),
    ("integer[]", "bigint[]", [7, None], "[7,null]"),
)


def test_every_widening_migrates_stored_and_new_rows(new_table: NewTable, count_trials: CountTrials) -> None:
    names = [f"w{place}" for place in range(len(WIDENED))]
    narrow = [
        Column(name=n, type=w[0], attnum=place) for place, (n, w) in enumerate(zip(names, WIDENED, strict=True), 4)
    ]
    wide = [Column(name=n, type=w[1], attnum=place) for place, (n, w) in enumerate(zip(names, WIDENED, strict=True), 4)]
    values: dict[str, Any] = {name: each[2] for name, each in zip(names, WIDENED, strict=True)}
    table = new_table((*NUMBERED, *narrow), KEY)
    nulls: dict[str, Any] = dict.fromkeys(names)
    table.deliver([event(1, "c", 100, **values), event(2, "c", 101, **nulls)])
    table.upsert()
    table.deliver([event(3, "c", 102, **values)])
    capture(table, *NUMBERED, *wide)
    assert len(apply(table)) == len(WIDENED)
    expected = tuple(each[3] for each in WIDENED)
    assert held(table, *names) == {1: expected, 2: (None,) * len(names), 3: expected}
    rows = table.engines.spark.read.format("hudi").load(table.spec.uri())
    assert sorted(rows.select(*lake_columns(rows)).dtypes) == sorted(table.lake_columns())
    count_trials("schema changes applied", len(WIDENED))
