"""Polls on real engines: from a row of PostgreSQL to the lake, kills, deletes, and the comparison with the source."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.failpoints import FailpointReached
from cdc_lake.jobs.poll import jdbc_source
from cdc_lake.jobs.poll.poll import PollReport
from cdc_lake.pipeline.operations import polling, reconciliation
from cdc_lake_tests.integration.chain.formats.type_values import CASES, LONG, TYPES_SQL, same
from cdc_lake_tests.integration.poll.conftest import NewPolled
from cdc_lake_tests.integration.poll.polled_pipeline import PolledPipeline, settled, wait_for_bound
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TABLES = """\
    - { name: goods, key: [id], poll: { timestamp: changed } }
    - { name: described, key: [id], topic: alt.goods, poll: { table: goods, timestamp: changed, sql: described.sql } }
"""
# Python's datetime is limited to the years 1 to 9999.
AS_NUMBERS = {"timestamp": "unix_micros(`{}`)", "date": "datediff(`{}`, date'1970-01-01')"}
DESCRIBED = {
    "described.sql": "select g.id, g.v, k.name as kind, g.changed from story.goods g join story.kinds k using (kind) "
    "where '{\"?\": 1}'::jsonb ? '?' -- why?"
}
GOODS = """
create table kinds (kind int primary key, name text);
insert into kinds values (1, 'fruit'), (2, 'nut');
create table goods (id int primary key, v text, kind int default 1, at timestamp(3), changed timestamptz not null);
create function touch() returns trigger language plpgsql as $$ begin new.changed = now(); return new; end $$;
create trigger touch before insert or update on goods for each row execute function touch();
"""
FILES_ONLY = """\
    - { name: goods, key: [id], poll: { timestamp: changed } }
    - name: partitioned
      key: [id]
      landing: { format: parquet, partition_by: [v] }
      poll: { timestamp: changed, table: goods }
  targets:
    - { name: files, database: files_only, format: parquet }
"""


@pytest.fixture(scope="module")
def story(new_polled: NewPolled) -> PolledPipeline:
    """Return a pipeline with three rows."""
    pipeline = new_polled("story", TABLES, DESCRIBED)
    pipeline.execute(GOODS)
    pipeline.execute(
        "insert into goods (id, v, at) values (1, 'apple', '2024-01-01'), (2, 'hazel', null), (3, '', null)"
    )
    pipeline.execute("update goods set kind = 2 where id = 2")
    settled(pipeline, "goods")
    return pipeline


def values(pipeline: PolledPipeline, table: str) -> dict[Any, Any]:
    """Return column v of the lake by key."""
    return {key: row["v"] for key, row in pipeline.rows(table).items()}


def as_numbers(pipeline: PolledPipeline, table: str) -> dict[int, dict[str, Any]]:
    """Return all rows of the lake by id, with dates in days and timestamps in microseconds since 1970."""
    lake = pipeline.lake(table)
    for name, kind in lake.dtypes:
        if kind in AS_NUMBERS:
            lake = lake.withColumn(name, F.expr(AS_NUMBERS[kind].format(name)))
    return {row["id"]: row.asDict() for row in lake.collect()}


def immutable(value: Any) -> Any:  # noqa: ANN401 - any value of any type
    """Return a value that same() accepts on its right side."""
    return bytes(value) if isinstance(value, bytearray) else value


def interrupted(action: Callable[[], object], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Do an action that a failpoint interrupts."""
    monkeypatch.setenv(failpoints.VARIABLE, f"{name}=raise")
    failpoints._passes.clear()
    with pytest.raises(FailpointReached):
        action()
    monkeypatch.delenv(failpoints.VARIABLE)


def test_rows_arrive_and_an_idle_source_sends_nothing(story: PolledPipeline) -> None:
    assert values(story, "goods") == {1: "apple", 2: "hazel", 3: ""}
    assert story.watermark("goods") == 1
    again = story.carry("goods")
    assert (again.polls, again.records, again.poll.number) == (0, 0, 1)
    assert story.verify("goods").clean


def test_interrupted_polls_are_repeated_with_their_windows(
    story: PolledPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = story.poll("goods").poll.number
    places = [name for name in failpoints.REGISTRY if name.startswith("poll.")]
    for place in places:
        story.execute("update goods set v = %s where id = 1", place)
        wait_for_bound(story, "goods")
        interrupted(partial(story.poll, "goods"), monkeypatch, place)
        story.execute("update goods set v = v || ' again' where id = 1")
        wait_for_bound(story, "goods")
        polled = story.poll("goods")
        number += 2
        assert (polled.polls, polled.poll.number) == (1 if place == "poll.after_complete" else 2, number)
    story.land_and_apply("goods")
    assert values(story, "goods")[1] == f"{places[-1]} again"
    assert story.lake("goods").count() == 3
    report = story.verify("goods")
    assert (report.clean, report.pending, report.compared) == (True, 0, 3)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select id, changed fro goods", 'syntax error at or near "goods"'),
        ("select id, changed from wrong.missing", 'relation "wrong.missing" does not exist'),
        ("select g.id, g.id, g.changed from wrong.goods g", "several of its columns have the same name: id"),
        ("select id, changed, 1 / (id - 1) as n from wrong.goods", "division by zero.*Nothing was sent"),
        ("select id, changed from wrong.goods, generate_series(1, 2)", "its SELECT returned 2 rows with key .*1"),
        ("select id, null::timestamptz as changed from wrong.goods", "column changed is NULL in some of its rows"),
    ],
)
def test_a_wrong_query_is_reported_with_its_file(new_polled: NewPolled, sql: str, message: str) -> None:
    poll = "{ table: goods, timestamp: changed, sql: wrong.sql }"
    pipeline = new_polled("wrong", f"    - {{ name: chosen, key: [id], poll: {poll} }}", {"wrong.sql": sql})
    pipeline.execute("create table goods (id int primary key, changed timestamptz not null default now())")
    pipeline.execute("insert into goods values (1)")
    wait_for_bound(pipeline, "chosen")
    with pytest.raises(ContractError, match=rf"Cannot poll (wrong\.sql for chosen|table wrong\.chosen): .*{message}"):
        pipeline.poll("chosen")
    pipeline.execute("drop schema wrong cascade")
    pipeline.store.delete([polling.polls(pipeline.table("chosen"), pipeline.store).key])


def test_the_query_and_the_table_have_topics_of_their_own(story: PolledPipeline) -> None:
    settled(story, "described")
    found = story.rows("described")
    assert {key: row["kind"] for key, row in found.items()} == {1: "fruit", 2: "nut", 3: "fruit"}
    assert story.engines.kafka.topic("polled.story.alt.goods") is not None
    assert story.verify("described").clean


def test_deletes_are_found_by_a_reconciliation(story: PolledPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    story.execute("insert into goods (id, v) values (10, 'gone'), (11, 'back'), (12, 'kept')")
    settled(story, "goods")
    story.execute("delete from goods where id in (10, 11)")
    settled(story, "goods")
    report = story.verify("goods")
    assert (report.extra, report.missing, report.different) == (2, 0, 0)
    assert sorted(difference.key["id"] or "" for difference in report.differences) == ["10", "11"]
    for place in [name for name in failpoints.REGISTRY if name.startswith("reconcile.")]:
        interrupted(partial(reconciliation.reconcile, story.table("goods"), story.systems), monkeypatch, place)
    done = story.reconcile("goods").report
    assert done is not None
    assert (done.deletes, done.lake_keys, done.source_keys) == (2, 6, 4)
    assert story.verify("goods").clean
    [deleted] = story.lake("goods").where("id = 10").collect()
    assert (deleted["__deleted"], deleted["__op"], deleted["v"]) == (True, "d", "gone")
    story.execute("insert into goods (id, v) values (11, 'back again')")  # newer than the delete
    settled(story, "goods")
    assert values(story, "goods")[11] == "back again"
    assert story.verify("goods").clean
    nothing = story.reconcile("goods").report
    assert nothing is not None
    assert nothing.deletes == 0


def test_a_row_that_is_inserted_during_a_reconciliation_stays(
    story: PolledPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key is missing when the source is read, and present when the delete is sent."""
    story.execute("insert into goods (id, v) values (20, 'first')")
    settled(story, "goods")
    story.execute("delete from goods where id = 20")

    def insert_again(name: str) -> None:
        if name == "reconcile.before_deletes":
            story.execute("insert into goods (id, v) values (20, 'second')")

    monkeypatch.setattr(failpoints, "reached", insert_again)
    report = story.reconcile("goods").report
    assert report is not None
    assert report.deletes == 1
    settled(story, "goods")
    assert values(story, "goods")[20] == "second"
    assert story.verify("goods").clean


def test_deletes_are_found_without_a_hudi_target(new_polled: NewPolled) -> None:
    pipeline = new_polled("files_only", FILES_ONLY)
    pipeline.execute(GOODS)
    pipeline.execute("insert into goods (id, v) values (1, 'kept'), (2, 'gone'), (3, 'back')")
    for table in ("goods", "partitioned"):
        settled(pipeline, table)
    pipeline.execute("delete from goods where id > 1")
    for table in ("goods", "partitioned"):
        settled(pipeline, table)
        assert (pipeline.verify(table).extra, pipeline.verify(table).missing) == (2, 0)
        done = pipeline.reconcile(table).report
        assert done is not None
        assert (done.deletes, done.lake_keys, done.source_keys) == (2, 3, 1)
        assert pipeline.verify(table).clean
    pipeline.execute("insert into goods (id, v) values (3, 'back')")
    for table in ("goods", "partitioned"):
        settled(pipeline, table)
        assert (pipeline.verify(table).clean, pipeline.verify(table).compared) == (True, 2)
        assert pipeline.reconcile(table).report.deletes == 0  # type: ignore[union-attr]
    assert pipeline.reasons() == []


def test_a_row_that_changed_after_the_last_poll_is_not_compared(story: PolledPipeline) -> None:
    settled(story, "goods")
    story.execute("update goods set v = 'newer' where id = 3")
    report = story.verify("goods")
    assert (report.clean, report.pending) == (True, 1)


def test_a_resnapshot_polls_all_rows_again_and_deletes_the_others(story: PolledPipeline) -> None:
    settled(story, "goods")
    with story.postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set session_replication_role to replica")  # no trigger: the change is not polled
        cursor.execute("update story.goods set v = 'unseen' where id = 3")
        cursor.execute("delete from story.goods where id = 12")
    settled(story, "goods")
    assert values(story, "goods")[3] != "unseen"
    lines = story.resnapshot()
    assert lines[-1] == "epoch 1 is complete"
    assert "goods: 1 row deleted that the source does not have any more" in lines
    assert values(story, "goods")[3] == "unseen"
    assert 12 not in values(story, "goods")
    assert story.verify("goods").clean
    story.execute("update goods set v = 'after' where id = 3")
    settled(story, "goods")
    assert values(story, "goods")[3] == "after"


def test_a_large_table_is_read_in_ranges(new_polled: NewPolled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdbc_source, "_RANGE_PAGES", 4)
    table = "{ name: many, key: [id], exclude_columns: [secret], poll: { timestamp: changed } }"
    pipeline = new_polled("large", f"    - {table}")
    columns = (
        "changed timestamptz not null default now(), secret text default 's', twice int generated always as (id * 2)"
    )
    pipeline.execute(f"create table many (id int primary key, {columns})")
    pipeline.execute("insert into many (id) select generate_series(1, 3000)")
    wait_for_bound(pipeline, "many")
    reports: list[PollReport] = []

    def run(job: Callable[[Any, Any], PollReport], spec: object) -> PollReport:
        reports.append(job(pipeline.engines.spark, spec))
        return reports[-1]

    pipeline.run_job = run
    assert pipeline.poll("many").records == 3000
    ranges = jdbc_source.page_ranges(pipeline.postgres.files("large", "many").pages)
    assert [report.ranges for report in reports] == [len(ranges)]
    records = [json.loads(each.value or b"") for each in pipeline.engines.kafka.peek("polled.large.many")]
    assert sorted(record["id"] for record in records) == list(range(1, 3001))
    assert all(record["twice"] == 2 * record["id"] and "secret" not in record for record in records)
    first, *_, last = ranges
    relation = "(select q.id, q.ctid as record_ctid from large.many q where q.changed < now()) ranged"
    for condition in (first, last):
        plan = pipeline.execute(f"explain select id from {relation} where {condition}")
        assert any("Tid Range Scan" in line for (line,) in plan)
    for method, found in (("hash", False), ("brin", True)):
        pipeline.execute(f"create index on many using {method} (changed)")
        assert pipeline.postgres.has_index("large", "many", "changed") is found


def test_values_of_every_type(new_polled: NewPolled, count_trials: CountTrials) -> None:
    """The same cases as through Debezium, by the same decoder."""
    pipeline = new_polled("typed", "    - { name: wide, key: [id], poll: { timestamp: changed } }")
    pipeline.execute(TYPES_SQL)
    wide = ", ".join(f"c{place} {case.type}" for place, case in enumerate(CASES))
    pipeline.execute(f"create table wide (id int primary key, changed timestamptz not null default now(), {wide})")
    for place, case in enumerate(CASES):
        pipeline.execute(f"insert into wide (id, c{place}) values (%(id)s, {case.sql})", {"id": place, **LONG})
    settled(pipeline, "wide")
    rows = as_numbers(pipeline, "wide")
    reasons = pipeline.reasons()
    wrong: list[tuple[object, ...]] = []
    for place, case in enumerate(CASES):
        row = rows.get(place)
        if case.lake is ...:
            if row is not None or not any(f"Cannot read column c{place}: " in reason for reason in reasons):
                wrong.append((case.type, case.sql, row, "is not a dead letter"))
        elif row is None or not same(row[f"c{place}"], case.lake):
            wrong.append((case.type, case.sql, None if row is None else row[f"c{place}"]))
    assert wrong == []
    count_trials("values polled", len(CASES))
    # A delete from the lake's row has the same values: the decoder reads what delete_records.py writes.
    pipeline.execute("delete from wide")
    pipeline.reconcile("wide")
    after = as_numbers(pipeline, "wide")
    assert after.keys() == rows.keys()
    assert all(row["__deleted"] for row in after.values())
    columns = [f"c{place}" for place in range(len(CASES))]
    assert [
        (CASES[key].type, after[key][name], row[name])
        for key, row in rows.items()
        for name in columns
        if row[name] is not None and not same(after[key][name], immutable(row[name]))
    ] == []
