"""Changed keys on the real connector: rows that get another key, and rows that are deleted and inserted again."""

from __future__ import annotations

import pytest

from cdc_lake.contract.table.event_order import Position
from cdc_lake_tests.integration.resources.source_side import Source
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from resources.postgres.internal_tables.heartbeat_table import HEARTBEAT

STATEMENTS = (
    "update ev set id = 100 where id = 1",  # another key
    "begin; delete from ev where id = 2; insert into ev values (2, 'back'); commit",
    "begin; update ev set id = 200 where id = 3; update ev set id = 3, v = 'home again' where id = 200; commit",
    "begin; update ev set id = -1 where id = 4; update ev set id = 4 where id = 5;"
    " update ev set id = 5 where id = -1; commit",  # two rows change places
    "insert into ev values (6, 'again') on conflict (id) do update set v = 'upserted'",
    "update ev set id = id + 1000, v = 'moved' where id > 6",  # many rows in a statement
    "begin; delete from ev where id = 1007; update ev set id = 1007 where id = 1008; commit",
)


@pytest.fixture
def moved(source: Source) -> Source:
    """Return a source with ten rows in the snapshot, after which the statements ran."""
    source.execute(
        "create table ev (id int primary key, v text); alter table ev replica identity full;"
        "insert into ev select g, 'row ' || g from generate_series(1, 10) g"
    )
    source.postgres.ensure_internal_table(source.schema, HEARTBEAT)
    source.postgres.ensure_publication(source.schema, [(source.schema, table) for table in source.tables])
    source.deploy()
    for statement in STATEMENTS:
        source.execute(statement)
    source.wait_for_heartbeat()
    return source


def test_the_fold_of_the_events_equals_the_source(moved: Source, count_trials: CountTrials) -> None:
    events = moved.rows()
    newest: dict[int, tuple[Position, int, dict[str, object]]] = {}
    for place, event in enumerate(events):
        at = (Position(0, event["__snapshot"] in {None, "false"}, event["__lsn"]), place, event)
        if event["id"] not in newest or newest[event["id"]][0] <= at[0]:
            newest[event["id"]] = at
    lake = {key: event["v"] for key, (_, _, event) in newest.items() if event["__deleted"] == "false"}
    with moved.postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f'select id, v from "{moved.schema}".ev')
        assert lake == dict(cursor.fetchall())
    # A key changes once at an LSN: events with the same position are the same change sent twice.
    streamed = [(event["__lsn"], event["id"]) for event in events if event["__snapshot"] in {None, "false"}]
    assert len(set(streamed)) == len(streamed)
    pairs = {lsn for lsn, _ in streamed if sum(1 for other, _ in streamed if other == lsn) == 2}
    assert pairs, "no changed key was sent as a delete and an insert with one LSN"
    count_trials("statements that change keys", len(STATEMENTS))
