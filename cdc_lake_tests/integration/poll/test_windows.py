"""Windows miss no row of a real server: with our bound, and not with a naive one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from psycopg2.extensions import cursor

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.source.poll_state import Bound
from cdc_lake.pipeline.source_health import polled_source
from cdc_lake_tests.integration.poll.conftest import NewPolled
from cdc_lake_tests.integration.poll.polled_pipeline import PolledPipeline
from resources.errors import AccessRefused
from resources.postgres.exported_snapshot import consistent_point
from resources.postgres.polling import MARGIN_SECONDS, sequence
from resources.postgres.resource import Postgres
from resources.waiting import until

TABLES = "    - { name: goods, key: [id], poll: { timestamp: changed } }"
GOODS = """
create table goods (id int primary key, v text, changed timestamptz not null default now());
create index on goods (changed);
"""
NextBound = Callable[[PolledPipeline, Bound | None], Bound]


def ours(pipeline: PolledPipeline, last: Bound | None) -> Bound:
    """Return the bound that polling uses."""
    return pipeline.bound("goods", last)


def now(pipeline: PolledPipeline, last: Bound | None) -> Bound:  # noqa: ARG001 - it ignores it
    """Return the server's time."""
    [(at,)] = pipeline.execute("select clock_timestamp()")
    return Bound(at=at)


def newest(pipeline: PolledPipeline, last: Bound | None) -> Bound:
    """Return a bound right after the newest change that is visible."""
    [(at,)] = pipeline.execute("select max(changed) + interval '1 microsecond' from goods")
    return Bound(at=at) if at else last or Bound(at=datetime.fromisoformat("2000-01-01T00:00:00+00:00"))


BOUNDS = {"now": now, "newest": newest, "ours": ours}


class Reader:
    """Reads one window after another, as polls do."""

    def __init__(self, pipeline: PolledPipeline, next_bound: NextBound) -> None:
        self.pipeline, self.next_bound = pipeline, next_bound
        self.last: Bound | None = None
        self.seen: list[int] = []

    def read(self) -> None:
        """Read the next window."""
        bound = self.next_bound(self.pipeline, self.last)
        rows = polled_source.rows(self.pipeline.table("goods"))
        condition = rows.window(self.last, bound)
        self.seen += [key for (key,) in self.pipeline.execute(f"select id from {rows.relation} q where {condition}")]
        self.last = bound

    def lost(self) -> set[int]:
        """Return the rows that no window contained, and no later one will: those before the bound."""
        assert self.last is not None
        before = self.pipeline.execute("select id from goods where changed < %s", self.last.at)
        assert len(self.seen) == len({*self.seen})
        return {key for (key,) in before} - {*self.seen}


@pytest.fixture(params=sorted(BOUNDS))
def reader(request: pytest.FixtureRequest, new_polled: NewPolled) -> Reader:
    """Return a reader of an empty table for each kind of bound."""
    name = f"{request.param}_{request.function.__name__.removeprefix('test_')}"[:40]
    pipeline = new_polled(name, TABLES)
    pipeline.execute(GOODS)
    return Reader(pipeline, BOUNDS[request.param])


def await_margin(pipeline: PolledPipeline) -> None:
    """Wait until the server's clock is past the margin of our bound; an open transaction does not delay it."""
    clock = "select clock_timestamp()"
    [[now]] = pipeline.execute(clock)
    passed = now + timedelta(seconds=MARGIN_SECONDS)
    until(lambda: pipeline.execute(clock)[0][0], lambda at: at > passed, seconds=60, what=f"the time {passed}")


def await_rows(pipeline: PolledPipeline, number: int) -> None:
    """Wait until the writers have committed so many more rows."""
    count = "select count(*) from goods"
    [[before]] = pipeline.execute(count)
    until(
        lambda: pipeline.execute(count)[0][0],
        lambda rows: rows >= before + number,
        seconds=60,
        what=f"{number} more rows",
    )


def settle(reader: Reader) -> None:
    """Read until our bound has passed everything that is committed."""
    reader.read()
    await_margin(reader.pipeline)
    reader.read()


def expected(reader: Reader, lost: int) -> set[int]:
    """Return the lost rows: none with our bound, this one with a naive bound."""
    return set() if reader.next_bound is ours else {lost}


def test_late_commit(reader: Reader) -> None:
    with reader.pipeline.postgres.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"insert into {reader.pipeline.loaded.name}.goods values (1, 'late')")
        reader.pipeline.execute("insert into goods values (2, 'early')")
        settle(reader)
    reader.pipeline.execute("insert into goods values (3, 'after')")
    settle(reader)
    assert reader.lost() == expected(reader, 1)


def test_first_write_after_the_poll(reader: Reader) -> None:
    with reader.pipeline.postgres.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("select 1")  # now() is fixed, and the transaction has no id
        reader.pipeline.execute("insert into goods values (2, 'early')")
        settle(reader)
        cursor.execute(f"insert into {reader.pipeline.loaded.name}.goods values (1, 'first write')")
    reader.pipeline.execute("insert into goods values (3, 'after')")
    settle(reader)
    assert reader.lost() == expected(reader, 1)


def test_equal_timestamps(reader: Reader) -> None:
    """Two transactions write the same timestamp, and the second one commits after a poll has read the first one's."""
    with reader.pipeline.postgres.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("select now()")
        [(same,)] = cursor.fetchall()
        reader.pipeline.execute("insert into goods values (1, 'one', %s)", same)
        settle(reader)
        cursor.execute(f"insert into {reader.pipeline.loaded.name}.goods values (2, 'two', %s)", (same,))
    settle(reader)
    assert reader.lost() == expected(reader, 2)


def test_a_window_is_the_same_when_it_is_repeated(new_polled: NewPolled) -> None:
    """Sessions write while windows are read: a repeated window has the same rows, unless they changed since."""
    pipeline = new_polled("repeated", TABLES)
    pipeline.execute(GOODS)
    ended = threading.Event()

    def write(first: int) -> None:
        with pipeline.postgres.connect() as connection, connection.cursor() as cursor:
            for number in range(first, first + 10_000):
                if ended.is_set():
                    return
                cursor.execute("begin")
                cursor.execute("select pg_sleep(random() / 50)")
                cursor.execute("insert into repeated.goods values (%s, 'x')", (number,))
                cursor.execute("commit")

    writers = [threading.Thread(target=write, args=(start * 10_000,)) for start in range(4)]
    for writer in writers:
        writer.start()
    last: Bound | None = None
    seen: set[int] = set()
    rows = polled_source.rows(pipeline.table("goods"))
    try:
        for _ in range(12):
            bound = pipeline.bound("goods", last)
            select = f"select id from {rows.relation} q where {rows.window(last, bound)}"
            once = {key for (key,) in pipeline.execute(select)}
            await_rows(pipeline, 50)
            assert {key for (key,) in pipeline.execute(select)} == once
            assert not once & seen
            seen |= once
            last = bound
    finally:
        ended.set()
        for writer in writers:
            writer.join()
    polled_source.await_visible(pipeline.table("goods"), pipeline.postgres, 60)
    bound = pipeline.bound("goods", last)
    seen |= {key for (key,) in pipeline.execute(f"select id from {rows.relation} q where {rows.window(last, bound)}")}
    assert seen == {key for (key,) in pipeline.execute("select id from goods")}


def test_an_incrementing_column_waits_for_smaller_ids(new_polled: NewPolled) -> None:
    pipeline = new_polled("counted", "    - { name: goods, key: [id], poll: { mode: incrementing, incrementing: id } }")
    pipeline.execute("create table goods (id bigint generated always as identity primary key, v text)")
    reader = Reader(pipeline, ours)
    with pipeline.postgres.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("select nextval('counted.goods_id_seq')")  # an id without a row yet
        pipeline.execute("insert into goods (v) values ('two')")
        settle(reader)
        settle(reader)
        assert reader.seen == []
        cursor.execute("insert into counted.goods (id, v) overriding system value values (1, 'one')")
    settle(reader)
    settle(reader)
    assert sorted(reader.seen) == [1, 2]


def test_a_transaction_with_an_id_of_the_sequence_began_before_the_value_was_read(new_polled: NewPolled) -> None:
    pipeline = new_polled("raced", "    - { name: goods, key: [id], poll: { mode: incrementing, incrementing: id } }")
    pipeline.execute("create table goods (id bigint generated always as identity primary key, v text)")
    began: list[datetime] = []

    class Interleaved(cursor):
        """Begins another transaction, which takes an id, before the sequence's value is read."""

        def execute(self, query: Any, vars: Any = None) -> None:  # noqa: ANN401 - psycopg2's own names
            if "pg_sequence_last_value" in str(query):
                began.extend(
                    at for (at,) in pipeline.execute("select now() from (select nextval('raced.goods_id_seq')) s")
                )
            super().execute(query, vars)

    with pipeline.postgres.connect() as connection:
        connection.cursor_factory = Interleaved
        found = sequence(connection, "raced", "goods", "id")
    assert found is not None
    assert found.last_value == 1
    assert found.read_at > began[0]


def test_new_rows_are_found_by_id_and_changed_ones_by_time(new_polled: NewPolled) -> None:
    poll = "{ mode: timestamp_and_incrementing, timestamp: changed, incrementing: id }"
    pipeline = new_polled("both_columns", f"    - {{ name: goods, key: [id], poll: {poll} }}")
    pipeline.execute("create table goods (id bigserial primary key, v text, changed timestamptz)")
    pipeline.execute("insert into goods (v) values ('one'), ('two')")
    reader = Reader(pipeline, ours)
    settle(reader)
    settle(reader)
    assert sorted(reader.seen) == [1, 2]
    pipeline.execute("update goods set v = 'two again', changed = now() where id = 2")
    pipeline.execute("insert into goods (v) values ('three')")
    settle(reader)
    settle(reader)
    assert sorted(reader.seen) == [1, 2, 2, 3]


def test_a_prepared_transaction_holds_the_bound(new_polled: NewPolled) -> None:
    pipeline = new_polled("prepared", TABLES)
    pipeline.execute(GOODS)
    with pipeline.postgres.connect() as connection, connection.cursor() as cursor:
        for statement in ("begin", "insert into prepared.goods values (1, 'p')", "prepare transaction 'held'"):
            cursor.execute(statement)
        try:
            with pytest.raises(ContractError, match="transaction 'held' is prepared"):
                pipeline.bound("goods", None)
            before = Bound(at=datetime.fromisoformat("2026-01-01T00:00:00+00:00"))
            assert pipeline.bound("goods", before) == before
        finally:
            cursor.execute("commit prepared 'held'")
    assert pipeline.bound("goods", None).at.year > 2000


@pytest.mark.parametrize("application", ["cdc-lake verify", "Debezium General", "an application"])
def test_sessions_that_write_no_rows_do_not_hold_the_bound(new_polled: NewPolled, application: str) -> None:
    pipeline = new_polled(f"bound_{application.lower().replace(' ', '_').replace('-', '_')}", TABLES)
    postgres = pipeline.postgres.model_copy(update={"capture_role": ""})  # Debezium signs in as the pipeline's user
    with postgres.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("set application_name = %s", (application,))
        cursor.execute("select transaction_timestamp()")
        [began] = cursor.fetchone() or (None,)
        assert isinstance(began, datetime)
        found = until(
            postgres.transactions_bound,
            lambda bound: bound.at > began or application in (bound.held_back_by or ""),
            seconds=30,
            what="the bound to pass the transaction, or to be held back by it",
        )
        assert (found.held_back_by is not None) is (application == "an application")


def test_a_snapshot_of_a_verification_does_not_hold_the_bound(new_polled: NewPolled) -> None:
    pipeline = new_polled("bound_of_a_snapshot", TABLES)
    with consistent_point(pipeline.postgres, "no_slot") as point, point.connection.cursor() as cursor:
        cursor.execute("select transaction_timestamp()")
        [began] = cursor.fetchone() or (None,)
        assert isinstance(began, datetime)
        until(
            pipeline.postgres.transactions_bound,
            lambda bound: bound.at > began,
            seconds=30,
            what="the bound to pass the snapshot",
        )


def test_a_login_that_does_not_see_other_sessions_is_refused(new_polled: NewPolled) -> None:
    pipeline = new_polled("blind", TABLES)
    pipeline.execute("create role blind_login login password 'blind'")
    blind = Postgres(**{**pipeline.postgres.model_dump(), "user": "blind_login", "password": "blind"})
    with pytest.raises(AccessRefused, match="cannot see when the transactions of other users began") as caught:
        blind.transactions_bound()
    assert 'GRANT pg_read_all_stats TO "blind_login"' in str(caught.value)
    pipeline.execute("grant pg_read_all_stats to blind_login")
    assert blind.transactions_bound().prepared is None


def test_a_login_that_may_not_read_the_sequence_is_refused(new_polled: NewPolled) -> None:
    """PostgreSQL shows it a sequence that was never used, so that no row would ever be polled."""
    pipeline = new_polled("hidden_sequence", TABLES)
    pipeline.execute("create table numbered (id bigserial primary key)")
    pipeline.execute("create role numbers_login login password 'numbers'")
    pipeline.execute("grant usage on schema hidden_sequence to numbers_login")
    pipeline.execute("grant select on numbered to numbers_login")
    login = Postgres(**{**pipeline.postgres.model_dump(), "user": "numbers_login", "password": "numbers"})
    with pytest.raises(AccessRefused, match="user numbers_login may not read sequence") as caught:
        login.sequence("hidden_sequence", "numbered", "id")
    grant = str(caught.value)
    assert 'GRANT SELECT ON SEQUENCE hidden_sequence.numbered_id_seq TO "numbers_login"' in grant
    pipeline.execute("grant select on sequence numbered_id_seq to numbers_login")
    pipeline.execute("insert into numbered default values")
    found = login.sequence("hidden_sequence", "numbered", "id")
    assert found is not None
    assert found.last_value == 1


def test_a_resnapshot_of_a_table_with_ids_polls_its_rows(new_polled: NewPolled) -> None:
    """The first poll of an epoch reads no row by id: it only reads how far the next one may go."""
    poll = "{ mode: incrementing, incrementing: id }"
    pipeline = new_polled("ids_again", f"    - {{ name: goods, key: [id], poll: {poll} }}")
    pipeline.execute("create table goods (id bigserial primary key, v text)")
    pipeline.execute("insert into goods (v) values ('one'), ('two')")
    for _ in range(3):
        pipeline.poll("goods")
        pipeline.land_and_apply("goods")
    assert {row["id"] for row in pipeline.lake("goods").collect()} == {1, 2}
    pipeline.execute("update goods set v = 'changed' where id = 1")  # not seen by polls
    lines = pipeline.resnapshot()
    assert [line for line in lines if line.endswith("reached id 2")], lines
    assert {row["id"]: row["v"] for row in pipeline.lake("goods").collect()} == {1: "changed", 2: "two"}
