"""Every type through the real chain, from a snapshot and from the stream: the value arrives, or is told by name."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.assets.topic import connector_config
from cdc_lake_tests.integration.chain.chain_pipeline import Line
from cdc_lake_tests.integration.chain.conftest import NewLine
from cdc_lake_tests.integration.chain.type_values import CASES, LONG, REFUSED, TYPES_SQL
from cdc_lake_tests.trial_counts import Tried
from resources.waiting import until

STREAMED = 1000
KEPT = {
    "d": ("date", "'infinity'", "'-infinity'", 2_932_896, -719_162),
    "ts": ("timestamp", "'infinity'", "'-infinity'", 253_402_300_799_999_999, -62_135_596_800_000_000),
    "ts3": ("timestamp(3)", "'infinity'", "'-infinity'", 253_402_300_799_999_999, -62_135_596_800_000_000),
    "tz": ("timestamptz", "'infinity'", "'-infinity'", 253_402_300_799_999_999, -62_135_596_800_000_000),
}


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - any value of any type
    """Whether two values are one, NaN included."""
    if isinstance(left, bytearray):
        left = bytes(left)
    both_nan = isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)
    return both_nan or (left == right and type(left) is type(right))


def fill(line: Line, base: int) -> None:
    """A row of `wide` for each case, its value the only one; one of `ruled` for either infinity."""
    for place, case in enumerate(CASES):
        line.execute(f"insert into wide (id, c{place}) values (%(id)s, {case.sql})", {"id": base + place, **LONG})
    for place in (0, 1):
        values = ", ".join(kept[1 + place] for kept in KEPT.values())
        line.execute(f"insert into ruled values ({base + place}, {values}, 'NaN')")


def test_values_of_every_type(new_line: NewLine, tried: Tried) -> None:
    line = new_line("typed", {"wide": "", "ruled": ", values: { infinity: max, nan: null }"})
    line.execute(TYPES_SQL)
    wide = ", ".join(f"c{place} {case.type}" for place, case in enumerate(CASES))
    line.execute(f"create table wide (id int primary key, {wide}, unset int default 7, unnamed text default 'x')")
    line.execute("alter table wide alter column unset drop not null")
    ruled = ", ".join(f"{name} {kept[0]}" for name, kept in KEPT.items())
    line.execute(f"create table ruled (id int primary key, {ruled}, n numeric(6,2))")
    fill(line, 0)
    line.execute("insert into wide (id, unset, unnamed) values (900, null, null)")
    line.materialise()
    fill(line, STREAMED)
    line.execute("insert into wide (id, unset, unnamed) values (1900, null, null)")
    line.carry()

    rows = line.by_spark("wide")
    reasons = {letter.reason for letter in line.dead_letters()}
    wrong = []
    for base in (0, STREAMED):
        for place, case in enumerate(CASES):
            row = rows.get(base + place)
            if case.lake is ...:
                if row is not None or not any(f"Cannot read column c{place}: " in reason for reason in reasons):
                    wrong.append((base, case, row, "is no dead letter"))
            elif row is None or not same(row[f"c{place}"], case.lake):
                wrong.append((base, case.type, case.sql, None if row is None else row[f"c{place}"]))
        # A column's default takes no NULL's place.
        assert (rows[base + 900]["unset"], rows[base + 900]["unnamed"]) == (None, None)
        assert (rows[base]["unset"], rows[base]["unnamed"]) == (7, "x")
    assert wrong == []
    tried("values carried through the chain", 2 * len(CASES))

    bounded = line.by_spark("ruled")
    assert len(bounded) == 4
    for base in (0, STREAMED):
        for place in (0, 1):
            row = bounded[base + place]
            assert [row[name] for name in KEPT] == [kept[3 + place] for kept in KEPT.values()]
            assert row["n"] is None

    # Athena reads the same.
    assert line.by_athena('SELECT count(*), count(DISTINCT id) FROM "typed"."wide_current"') == [(len(rows), len(rows))]


def test_types_that_cannot_be_held_are_refused_by_name(new_line: NewLine, tried: Tried) -> None:
    line = new_line("refusing", {"odd": ""})
    line.execute(TYPES_SQL)
    for declared in REFUSED:
        line.execute(f"drop table if exists odd; create table odd (id int primary key, strange {declared})")
        with pytest.raises(ContractError, match=r"column strange .*(has PostgreSQL type|is generated)"):
            line.materialise("source")
        # Nothing was begun.
        assert line.execute("select count(*) from pg_publication where pubname = 'refusing'") == [(0,)]
    line.execute("drop table odd; create table odd (id int primary key) partition by hash (id)")
    line.execute("create table odd_1 partition of odd for values with (modulus 1, remainder 0)")
    with pytest.raises(ContractError, match=r"rows of table refusing\.odd stand in other tables \(\S*odd_1\)"):
        line.materialise("source")
    tried("types refused by name", len(REFUSED))


def test_days_before_christ_wait_for_the_stream(new_line: NewLine) -> None:
    line = new_line("early", {"days": ""})
    line.execute("create table days (id int primary key, d date); insert into days values (1, '0044-03-15 BC')")
    with pytest.raises(ContractError, match=r"days before the year 1, .* in d: Debezium's snapshot"):
        line.materialise("source")
    line.execute("update days set d = '1582-10-10'")
    with pytest.raises(ContractError, match=r"from 1582-10-05 to 1582-10-14, in d: "):
        line.materialise("source")
    line.execute("update days set d = null")
    line.materialise()
    line.execute("update days set d = '0044-03-15 BC'")
    line.carry()
    assert line.by_spark("days")[1]["d"] == -735_160
    # The next snapshot would tell another day: it is not begun.
    with pytest.raises(ContractError, match=r"days before the year 1"):
        line.resnapshot()
    assert line.resources["connect"].status(line.flow.connector).is_running()


def test_long_values_under_another_replica_identity(new_line: NewLine, tried: Tried) -> None:
    line = new_line("toasted", {"docs": ""})
    line.execute(
        "create table docs (id int primary key, n int, doc text, raw bytea, tags text[]);"
        "alter table docs alter doc set storage external, alter raw set storage external"
    )
    megabyte = "ß" * 500_000
    put = "insert into docs select %s, 0, %s, decode(repeat('00ff', 50000), 'hex'), array_fill('x'::text, array[9000])"
    line.execute(put, 1, megabyte)
    line.materialise()
    assert line.materialise("topic").checks["toasted/topic/docs:replica_identity_full"]
    line.execute("alter table docs replica identity default")
    line.execute(put, 2, megabyte)
    line.execute("update docs set n = n + 1")
    line.execute("update docs set doc = 'short' where id = 2")
    line.execute("update docs set n = n + 1")
    line.carry()
    rows = line.by_spark("docs")
    assert {key: row["n"] for key, row in rows.items()} == {1: 2, 2: 2}
    assert {key: row["doc"] == text for (key, row), text in zip(rows.items(), (megabyte, "short"), strict=True)} == {
        1: True,
        2: True,
    }
    assert {bytes(row["raw"]) for row in rows.values()} == {b"\x00\xff" * 50_000}
    assert {row["tags"] for row in rows.values()} == {"[" + ",".join(['"x"'] * 9000) + "]"}
    assert line.dead_letters() == []
    tried("values of a megabyte", 3)
    assert line.graph.materialise("topic").checks["toasted/topic/docs:replica_identity_full"] is False
    assert line.materialise("source").metadata["toasted/source/docs"]["changes"] == "replica identity set to full"
    assert line.materialise("topic").checks["toasted/topic/docs:replica_identity_full"]


def test_a_row_of_ten_megabytes_passes(new_line: NewLine, tried: Tried) -> None:
    line = new_line("heavy", {"docs": ""})
    line.execute("create table docs (id int primary key, doc text)")
    line.execute("insert into docs select 1, repeat('0123456789', 1000000)")
    line.materialise()
    line.execute("insert into docs select 2, repeat('9876543210', 1000000)")
    line.carry()
    assert {key: (len(row["doc"]), row["doc"][:3]) for key, row in line.by_spark("docs").items()} == {
        1: (10_000_000, "012"),
        2: (10_000_000, "987"),
    }
    tried("values of ten megabytes", 2)


def test_a_record_beyond_the_limit_stops_until_the_limit_is_raised(new_line: NewLine) -> None:
    line = new_line("huge", {"docs": ""})
    line.execute("create table docs (id int primary key, doc text)")
    line.materialise()
    line.execute("insert into docs values (1, 'before')")
    line.execute("insert into docs select 2, repeat('0123456789', 2000000)")
    line.execute("insert into docs values (3, 'after')")
    found = line.resources
    connect, kafka = found["connect"], found["kafka"]
    status = until(
        lambda: connect.status(line.flow.connector),
        lambda seen: seen is not None and bool(seen.failed_tasks),
        seconds=120,
        what="the connector's task to fail",
    )
    assert "max.request.size" in str(status)
    # Nothing is skipped: it goes on where it was.
    limit = str(32 * 2**20)
    kafka.ensure_topic(line.table("docs").topic, 1, {"max.message.bytes": limit})
    config = connector_config(line.flow, line.flow.at_source(found["postgres"]), found["deployment"])
    connect.put(line.flow.connector, {**config, "producer.override.max.request.size": limit})
    connect.wait_running(line.flow.connector)
    line.carry()
    assert {key: row["doc"] for key, row in line.by_spark("docs").items()} == {1: "before", 3: "after"}
    (letter,) = line.dead_letters()
    assert "20" in letter.reason
    assert "bytes" in letter.reason
