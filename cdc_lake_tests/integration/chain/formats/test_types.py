"""Values of every type, from a snapshot and from the stream: each arrives, or becomes a dead letter."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS
from cdc_lake.pipeline.connector_config import connector_config
from cdc_lake.pipeline.operations import verification
from cdc_lake.profile import spark
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline, Formats
from cdc_lake_tests.integration.chain.conftest import NewPipeline
from cdc_lake_tests.integration.chain.formats.type_values import CASES, LONG, OMITTED, TYPES_SQL, same
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from resources.waiting import until

TESTS_IN_CI = 3

STREAMED = 1000
KEPT: dict[str, tuple[Any, ...]] = {
    "d": ("date", "'infinity'", "'-infinity'", 2_932_896, -719_162),
    "ts": ("timestamp", "'infinity'", "'-infinity'", 253_402_300_799_999_999, -62_135_596_800_000_000),
    "ts3": ("timestamp(3)", "'infinity'", "'-infinity'", 253_402_300_799_999_999, -62_135_596_800_000_000),
    "tz": ("timestamptz", "'infinity'", "'-infinity'", 253_402_300_799_999_999, -62_135_596_800_000_000),
}


def fill(pipeline: ChainPipeline, base: int) -> None:
    """Insert a row of `wide` with one value for each case, and a row of `ruled` for each infinity."""
    for place, case in enumerate(CASES):
        pipeline.execute(f"insert into wide (id, c{place}) values (%(id)s, {case.sql})", {"id": base + place, **LONG})
    for place in (0, 1):
        values = ", ".join(kept[1 + place] for kept in KEPT.values())
        pipeline.execute(f"insert into ruled values ({base + place}, {values}, 'NaN')")


@pytest.mark.parametrize(
    "formats", drawn((("json", "json"), ("avro", "json"), ("avro", "avro")), in_ci=1), ids="-".join
)
def test_values_of_every_type(new_pipeline: NewPipeline, count_trials: CountTrials, formats: Formats) -> None:
    name = "typed_{}_{}".format(*formats)
    pipeline = new_pipeline(name, {"wide": "", "ruled": ", values: { infinity: max, nan: null }"}, formats=formats)
    pipeline.execute(TYPES_SQL)
    wide = ", ".join(f"c{place} {case.type}" for place, case in enumerate(CASES))
    # Apicurio's converter replaces NULL by a column's default.
    defaults = ("default 7", "default 'x'") if formats[0] == "json" else ("", "")
    pipeline.execute(
        "create table wide (id int primary key, {}, unset int {}, unnamed text {})".format(wide, *defaults)
    )
    ruled = ", ".join(f"{name} {kept[0]}" for name, kept in KEPT.items())
    pipeline.execute(f"create table ruled (id int primary key, {ruled}, n numeric(6,2))")
    fill(pipeline, 0)
    pipeline.execute("insert into wide (id, unset, unnamed) values (900, null, null)")
    pipeline.materialise()
    fill(pipeline, STREAMED)
    pipeline.execute("insert into wide (id, unset, unnamed) values (1900, null, null)")
    pipeline.land_and_apply()

    rows = pipeline.by_spark("wide")
    reasons = {letter.reason for letter in pipeline.dead_letters()}
    wrong: list[tuple[object, ...]] = []
    for base in (0, STREAMED):
        for place, case in enumerate(CASES):
            row = rows.get(base + place)
            if case.lake is ...:
                if row is not None or not any(f"Cannot read column c{place}: " in reason for reason in reasons):
                    wrong.append((base, case, row, "is not a dead letter"))
            elif row is None or not same(row[f"c{place}"], case.lake):
                wrong.append((base, case.type, case.sql, None if row is None else row[f"c{place}"]))
        # A NULL is not replaced by the column's default.
        assert (rows[base + 900]["unset"], rows[base + 900]["unnamed"]) == (None, None)
        if formats[0] == "json":
            assert (rows[base]["unset"], rows[base]["unnamed"]) == (7, "x")
    assert wrong == []
    count_trials("values carried through the chain", 2 * len(CASES))

    bounded = pipeline.by_spark("ruled")
    assert len(bounded) == 4
    for base in (0, STREAMED):
        for place in (0, 1):
            row = bounded[base + place]
            assert [row[name] for name in KEPT] == [kept[3 + place] for kept in KEPT.values()]
            assert row["n"] is None

    assert pipeline.by_athena(f'SELECT count(*), count(DISTINCT id) FROM "{name}"."wide_current"') == [
        (len(rows), len(rows))
    ]


ODD = {f"odd{place}": declared for place, declared in enumerate(OMITTED)}
DOC = "(select string_agg(md5(g::text), '') from generate_series(1, 500) g)"
"""SQL of a text that is stored out of line, so that updates that do not change it omit it from the WAL."""
ODD_VALUES = {name: value for name, (_, value) in ODD.items() if value is not None}


def insert_odd(pipeline: ChainPipeline, row: int, **more: str) -> None:
    """Insert a row with a value in every column that is not generated; `more` are further columns."""
    required = {"phone": "'112'", "at": "'2024-02-29'", "total": "1.50", "doc": DOC, "last": f"'row {row}'"}
    given = {"id": str(row), **ODD_VALUES, "email": f"'{row}@x'", **required, **more}
    pipeline.execute(f"insert into odd ({', '.join(given)}) values ({', '.join(given.values())})")


def verified(pipeline: ChainPipeline) -> Sequence[str]:
    """Require that the lake equals the source in all columns that are compared; return the other columns."""
    found = pipeline.resources
    systems = verification.VerifySystems(
        pipeline.loaded.source_postgres(found["postgres"]), found["kafka"], found["connect"], found["store"], spark()
    )
    ((_, report),) = verification.verify_tables(pipeline.loaded, pipeline.loaded.tables, systems, seconds=120)
    assert report.clean, report
    assert report.compared == pipeline.execute("select count(*) from odd")[0][0]
    assert pipeline.dead_letters() == []
    return report.omitted_columns


@pytest.mark.parametrize("formats", drawn((("json", "json"), ("avro", "avro")), in_ci=1), ids="-".join)
def test_columns_that_are_not_captured_are_in_neither_snapshot_nor_stream(
    new_pipeline: NewPipeline, count_trials: CountTrials, formats: Formats
) -> None:
    name = f"omitting_{formats[0]}"
    pipeline = new_pipeline(name, {"odd": ", exclude_columns: [phone]"}, formats=formats)
    pipeline.execute(TYPES_SQL)
    odd = ", ".join(f"{column} {kind}" for column, (kind, _) in ODD.items())
    # The generated columns are before others: a record that has them, or lacks them, would shift the values of these.
    required = "phone text not null, at timestamptz not null, total numeric(6,2) not null, doc text not null"
    pipeline.execute(f"create table odd (id int primary key, {odd}, {required}, email text, last text not null)")
    insert_odd(pipeline, 1)
    shown = pipeline.materialise().metadata[f"{name}/source/odd_source"]["omitted_columns"]
    assert all(f"{column} (" in shown for column in (*ODD, "phone"))
    insert_odd(pipeline, 2)
    # The connector sends a new column until it is configured again.
    pipeline.execute("alter table odd add column late point")
    insert_odd(pipeline, 3, late="'(3,4)'")
    pipeline.execute("update odd set last = 'changed' where id = 1; delete from odd where id = 2")
    changes = pipeline.land_and_apply().metadata[f"{name}/lake/odd_lake"]["changes"]
    assert "late omitted (the lake has no type for PostgreSQL's point)" in changes
    event_fields = {name.lower() for name in (*EVENT_FIELDS, "__order")}
    assert set(dict(pipeline.types("odd"))) - event_fields == {"id", "at", "total", "doc", "email", "last"}
    assert {row: (found["email"], found["last"]) for row, found in pipeline.by_spark("odd").items()} == {
        1: ("1@x", "changed"),
        3: ("3@x", "row 3"),
    }
    # A delete contains the key only, because a virtual generated column prevents the replica identity FULL.
    last = "SELECT __deleted, CAST(total AS varchar), length(doc), email, last FROM odd WHERE id = 2"
    assert pipeline.by_athena(last) == [(True, "1.50", 16_000, "2@x", "row 2")]
    assert pipeline.materialise("topic").checks[f"{name}/topic/odd_topic:replica_identity_full"]
    assert set(verified(pipeline)) == {*ODD, "phone", "late"}

    # A column that is excluded later becomes history, as if it were dropped.
    declared = "    - { name: odd, key: [id], exclude_columns: [phone, email] }"
    text = (pipeline.loaded.folder / "defs.yaml").read_text()
    excluding = new_pipeline(name, {}, text=re.sub(r"    - \{ name: odd.*", declared, text))
    changes = excluding.materialise("source", "topic").metadata[f"{name}/source/odd_source"]["changes"]
    assert "email omitted (kept as history)" in changes
    insert_odd(excluding, 4)
    excluding.execute("update odd set last = 'again' where id = 3")
    excluding.land_and_apply()
    assert {row: found["email"] for row, found in excluding.by_spark("odd").items()} == {1: "1@x", 3: None, 4: None}
    assert set(verified(excluding)) == {*ODD, "phone", "email", "late"}
    if formats[0] == "json":
        messages = pipeline.resources["kafka"].peek(pipeline.table("odd").topic)
        records = [json.loads(message.value or b"{}") for message in messages]
        hidden = {*ODD, "phone"}
        assert [set(record) & {*hidden, "late", "email"} for record in records] == [
            {"email"},
            {"email"},
            {"email", "late"},
            {"email", "late"},
            {"email", "late"},
            set(),
            set(),
        ]

    # To capture it again, all rows must be read.
    with pytest.raises(ContractError, match=r"column email was omitted until now.*`cdc-lake resnapshot"):
        pipeline.materialise("source")
    pipeline.resnapshot()
    pipeline.materialise("source", "topic")
    pipeline.land_and_apply()
    assert {row: found["email"] for row, found in pipeline.by_spark("odd").items()} == {1: "1@x", 3: "3@x", 4: "4@x"}
    assert set(verified(pipeline)) == {*ODD, "phone", "late"}
    count_trials("columns omitted from snapshot and stream", len(ODD) + 3)


def test_a_table_whose_changes_cannot_be_followed_is_refused(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("refusing", {"odd": ""})
    pipeline.execute("create table odd (id pg_lsn primary key)")
    with pytest.raises(ContractError, match=r"odd: column id of its primary key cannot be captured \(the lake has no"):
        pipeline.materialise("source")
    pipeline.execute("drop table odd; create table odd (id int primary key) partition by hash (id)")
    pipeline.execute("create table odd_1 partition of odd for values with (modulus 1, remainder 0)")
    with pytest.raises(ContractError, match=r"table refusing\.odd: its rows are stored in .* \(\S*odd_1\)"):
        pipeline.materialise("source")
    # Nothing was created at the source.
    assert pipeline.execute("select count(*) from pg_publication where pubname = 'refusing'") == [(0,)]


def test_a_nullable_column_with_a_default_is_omitted_for_apicurios_converter(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("defaulted", {"odd": ""}, formats=("avro", "json"))
    pipeline.execute(
        "create table odd (id int primary key default 1, required int not null default 2, strange int default 3)"
    )
    pipeline.execute("insert into odd values (1, 1, 1)")
    shown = pipeline.materialise().metadata["defaulted/source/odd_source"]["omitted_columns"]
    assert "strange (it may be NULL and has a default" in shown
    pipeline.execute("insert into odd values (2, 2, null)")
    pipeline.land_and_apply()
    assert {row: found["required"] for row, found in pipeline.by_spark("odd").items()} == {1: 1, 2: 2}
    assert set(verified(pipeline)) == {"strange"}
    # Without the default it can be captured, when all rows are read again.
    pipeline.execute("alter table odd alter strange drop default")
    pipeline.resnapshot()
    pipeline.materialise("source", "topic")
    pipeline.land_and_apply()
    assert {row: found["strange"] for row, found in pipeline.by_spark("odd").items()} == {1: 1, 2: None}
    assert not verified(pipeline)


def test_early_dates_are_refused_by_a_snapshot_and_captured_from_the_stream(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("early", {"days": ""})
    pipeline.execute("create table days (id int primary key, d date); insert into days values (1, '0044-03-15 BC')")
    with pytest.raises(ContractError, match=r"dates before the year 1, .* in d, and Debezium's snapshot"):
        pipeline.materialise("source")
    pipeline.execute("update days set d = '1582-10-10'")
    with pytest.raises(ContractError, match=r"from 1582-10-05 to 1582-10-14, in d, and"):
        pipeline.materialise("source")
    pipeline.execute("update days set d = null")
    pipeline.materialise()
    pipeline.execute("update days set d = '0044-03-15 BC'")
    pipeline.land_and_apply()
    assert pipeline.by_spark("days")[1]["d"] == -735_160
    # The next snapshot would read another day, so it is refused.
    with pytest.raises(ContractError, match=r"dates before the year 1"):
        pipeline.resnapshot()
    assert pipeline.resources["connect"].status(pipeline.loaded.connector).is_running()


def test_long_values_arrive_under_replica_identity_default(
    new_pipeline: NewPipeline, count_trials: CountTrials
) -> None:
    pipeline = new_pipeline("toasted", {"docs": ""})
    pipeline.execute(
        "create table docs (id int primary key, n int, doc text, raw bytea, tags text[]);"
        "alter table docs alter doc set storage external, alter raw set storage external"
    )
    megabyte = "ß" * 500_000
    put = "insert into docs select %s, 0, %s, decode(repeat('00ff', 50000), 'hex'), array_fill('x'::text, array[9000])"
    pipeline.execute(put, 1, megabyte)
    pipeline.materialise()
    assert pipeline.materialise("topic").checks["toasted/topic/docs_topic:replica_identity_full"]
    pipeline.execute("alter table docs replica identity default")
    pipeline.execute(put, 2, megabyte)
    pipeline.execute("update docs set n = n + 1")
    pipeline.execute("update docs set doc = 'short' where id = 2")
    pipeline.execute("update docs set n = n + 1")
    pipeline.land_and_apply()
    rows = pipeline.by_spark("docs")
    assert {key: row["n"] for key, row in rows.items()} == {1: 2, 2: 2}
    assert {key: row["doc"] == text for (key, row), text in zip(rows.items(), (megabyte, "short"), strict=True)} == {
        1: True,
        2: True,
    }
    assert {bytes(row["raw"]) for row in rows.values()} == {b"\x00\xff" * 50_000}
    assert {row["tags"] for row in rows.values()} == {"[" + ",".join(['"x"'] * 9000) + "]"}
    assert pipeline.dead_letters() == []
    count_trials("values of a megabyte", 3)
    assert pipeline.graph.materialise("topic").checks["toasted/topic/docs_topic:replica_identity_full"] is False
    assert (
        pipeline.materialise("source").metadata["toasted/source/docs_source"]["changes"]
        == "replica identity set to full"
    )
    assert pipeline.materialise("topic").checks["toasted/topic/docs_topic:replica_identity_full"]


def test_a_row_of_ten_megabytes_arrives(new_pipeline: NewPipeline, count_trials: CountTrials) -> None:
    pipeline = new_pipeline("heavy", {"docs": ""})
    pipeline.execute("create table docs (id int primary key, doc text)")
    pipeline.execute("insert into docs select 1, repeat('0123456789', 1000000)")
    pipeline.materialise()
    pipeline.execute("insert into docs select 2, repeat('9876543210', 1000000)")
    pipeline.land_and_apply()
    assert {key: (len(row["doc"]), row["doc"][:3]) for key, row in pipeline.by_spark("docs").items()} == {
        1: (10_000_000, "012"),
        2: (10_000_000, "987"),
    }
    count_trials("values of ten megabytes", 2)


def test_a_record_over_the_size_limit_stops_the_task_until_the_limit_is_raised(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("huge", {"docs": ""})
    pipeline.execute("create table docs (id int primary key, doc text)")
    pipeline.materialise()
    pipeline.execute("insert into docs values (1, 'before')")
    pipeline.execute("insert into docs select 2, repeat('0123456789', 2000000)")
    pipeline.execute("insert into docs values (3, 'after')")
    found = pipeline.resources
    connect, kafka = found["connect"], found["kafka"]
    status = until(
        lambda: connect.status(pipeline.loaded.connector),
        lambda seen: seen is not None and bool(seen.failed_tasks),
        seconds=120,
        what="the connector's task to fail",
    )
    assert "max.request.size" in str(status)
    # With a higher limit it resumes at the same record; nothing is skipped.
    limit = str(32 * 2**20)
    kafka.ensure_topic(pipeline.table("docs").topic, 1, {"max.message.bytes": limit})
    config = connector_config(pipeline.loaded, pipeline.loaded.source_postgres(found["postgres"]), found["deployment"])
    connect.put(pipeline.loaded.connector, {**config, "producer.override.max.request.size": limit})
    connect.wait_running(pipeline.loaded.connector)
    pipeline.land_and_apply()
    assert {key: row["doc"] for key, row in pipeline.by_spark("docs").items()} == {1: "before", 3: "after"}
    (letter,) = pipeline.dead_letters()
    assert "20" in letter.reason
    assert "bytes" in letter.reason
