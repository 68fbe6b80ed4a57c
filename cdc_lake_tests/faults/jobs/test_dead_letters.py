"""Bad records in a real topic become dead letters and the others land; a replay applies letters that are repaired."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError, LeaseHeldError, LeaseLostError, TooManyDeadLettersError
from cdc_lake.contract.failpoints import FailpointReached
from cdc_lake.contract.objects import dead_letters, object_names
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs
from cdc_lake.contract.table import lease, timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.maintenance import replay
from cdc_lake.jobs.maintenance.replay import ReplaySpec
from cdc_lake_tests.faults.jobs.bad_records import AT_LANDING, AT_READING, SOURCE, PoisonedTopic, good
from cdc_lake_tests.faults.jobs.paused_writer import Pause
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 5

NewTopic = Callable[[], PoisonedTopic]
PRETTY = json.dumps(event(1, "u", 10, note="old"), indent=1).encode()
"""A good record that cannot be landed, because it has line breaks; a replay reads it."""


@pytest.fixture(scope="package")
def numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def poisoned(job_engines: Engines, numbers: Iterator[int]) -> Iterator[PoisonedTopic]:
    """Return a new topic and its table."""
    topic = PoisonedTopic(job_engines, f"poisoned-{next(numbers)}")
    yield topic
    job_engines.kafka.delete_topic(topic.name)


def test_bad_records_of_every_kind_are_kept_and_the_others_land(
    poisoned: PoisonedTopic, count_trials: CountTrials
) -> None:
    bad_records = [*AT_LANDING, *AT_READING]
    sent = [value for number, (bad, _) in enumerate(bad_records) for value in (good(number, 10 + number), bad)]
    offsets = poisoned.send(*sent)
    landed = poisoned.land()
    assert (landed.dead_letters, landed.records) == (len(AT_LANDING), len(sent) - len(AT_LANDING))
    applied = poisoned.upsert()
    letters = poisoned.letters()
    assert [bad for (bad, _), offset in zip(bad_records, offsets[1::2], strict=True) if offset not in letters] == []
    assert (applied.dead_letters, applied.keys) == (len(AT_READING), len(bad_records))
    for (bad, reason), offset in zip(bad_records, offsets[1::2], strict=True):
        letter = letters.pop(offset)
        assert re.search(reason, letter.reason), (bad and bad[:100], letter.reason)
        assert dead_letters.value_of(poisoned.store, poisoned.name, letter) == bad
        assert (letter.topic, letter.partition) == (poisoned.name, 0)
        at_landing = (bad, reason) in AT_LANDING
        assert (letter.object is None) == at_landing
        assert letter.headers == ((("by", b"\xff"),) if at_landing else ())
        assert (letter.key is not None) == at_landing
    assert letters == {}
    assert poisoned.rows().keys() == set(range(len(bad_records)))
    count_trials("bad inputs", len(bad_records))
    # A replay cannot read them either, and commits nothing.
    checkpoint = poisoned.checkpoint()
    report = poisoned.replay(*(each.id for each in poisoned.letters().values() if not each.key))
    assert (report.instant, len(report.failed), report.applied) == (None, len(AT_READING), [])
    assert {each.tries for each in poisoned.letters().values() if not each.key} == {2}
    assert poisoned.checkpoint() == checkpoint


def test_too_many_records_that_cannot_be_landed_stop_the_run(poisoned: PoisonedTopic) -> None:
    poisoned.send(good(1, 1), None, None, None)
    with pytest.raises(TooManyDeadLettersError, match=r"Cannot land topic \S+: more than 2 records of a batch cannot"):
        poisoned.land(dead_letter_limit=2)
    assert poisoned.letters() == {}
    # With a higher limit they become dead letters.
    assert poisoned.land(dead_letter_limit=3).dead_letters == 3
    assert len(poisoned.letters()) == 3


def test_a_replay_does_not_overwrite_a_newer_change(poisoned: PoisonedTopic, count_trials: CountTrials) -> None:
    poisoned.deliver(PRETTY, good(1, 20, note="new"), PRETTY.replace(b'"id": 1', b'"id": 2'))
    assert poisoned.rows()[1]["note"] == "new"
    before = poisoned.checkpoint()
    report = poisoned.replay()
    assert (len(report.applied), report.failed) == (2, {})
    assert {key: row["note"] for key, row in poisoned.rows().items()} == {1: "new", 2: "old"}
    # The checkpoint is kept: nothing is applied again, and later records are applied.
    assert poisoned.checkpoint() == before
    newest = timeline.last_commit(poisoned.store, poisoned.table.prefix)
    assert upsert.new_manifests(poisoned.store, poisoned.table, newest) == []
    assert poisoned.deliver(good(3, 30)).keys == 1
    assert poisoned.rows().keys() == {1, 2, 3}
    # The letters are closed, with the commit that applied them; another replay finds none.
    assert poisoned.letters() == {}
    closed = [letter.closed for letter in poisoned.letters(closed=True).values()]
    assert [(each.how, each.instant) for each in closed if each] == [("replayed", report.instant)] * 2
    assert poisoned.replay().applied == []
    count_trials("dead letters replayed", 2)


def test_a_replayed_delete_is_applied_and_a_later_delete_wins(poisoned: PoisonedTopic) -> None:
    delete = json.dumps(event(1, "d", 30), indent=1).encode()
    late = json.dumps(event(2, "u", 10, note="old"), indent=1).encode()
    poisoned.deliver(good(1, 20), delete, late, json.dumps(event(2, "d", 20)).encode())
    assert {key: row["__deleted"] for key, row in poisoned.rows().items()} == {1: False, 2: True}
    assert len(poisoned.replay().applied) == 2
    assert {key: row["__deleted"] for key, row in poisoned.rows().items()} == {1: True, 2: True}


def test_a_replay_after_a_schema_capture_applies_the_letter(poisoned: PoisonedTopic) -> None:
    unknown = good(2, 20).replace(b'"qty"', b'"added": "late", "qty"')
    poisoned.send(good(1, 10), unknown, good(3, 30))
    poisoned.land()
    upsert.run(poisoned.engines.spark, replace(poisoned.table, until=1))
    [letter] = poisoned.letters().values()
    assert "added" in letter.reason
    assert poisoned.replay().failed.keys() == {letter.id}
    assert poisoned.rows().keys() == {1, 3}
    wider = (*COLUMNS, Column(name="added", type="text"))
    captured_schema.record(poisoned.store, poisoned.name, TableSchema(version=0, table=SOURCE, columns=wider, key=KEY))
    with pytest.raises(
        ContractError, match=r"does not have the columns of schema version 2 yet\. Materialise \S+/lake"
    ):
        poisoned.replay()
    poisoned.upsert()  # the migration
    assert poisoned.replay().applied == [letter.id]
    assert {key: row["added"] for key, row in poisoned.rows().items()} == {1: None, 2: "late", 3: None}


def test_a_repaired_value_is_applied_and_the_original_is_kept(poisoned: PoisonedTopic) -> None:
    poisoned.deliver(good(1, 10), good(2, 20)[:-1], None)
    broken, tombstone = poisoned.letters().values()
    dead_letters.replace_value(poisoned.store, poisoned.name, broken, good(2, 20, note="repaired"))
    report = poisoned.replay()
    assert (report.applied, report.failed) == ([broken.id], {tombstone.id: "the record has no value"})
    assert poisoned.rows()[2]["note"] == "repaired"
    [closed] = poisoned.letters(closed=True).values()
    assert dead_letters.value_of(poisoned.store, poisoned.name, closed, original=True) == good(2, 20)[:-1]


@pytest.mark.parametrize("place", ["replay.before_write", "replay.after_commit", "commit.before_lease_check"])
def test_an_interrupted_replay_is_completed_by_the_next(
    poisoned: PoisonedTopic, monkeypatch: pytest.MonkeyPatch, count_trials: CountTrials, place: str
) -> None:
    poisoned.deliver(good(1, 5), PRETTY)
    monkeypatch.setenv(failpoints.VARIABLE, f"{place}=raise")
    monkeypatch.setattr(failpoints, "_passes", Counter())
    with pytest.raises(FailpointReached):
        poisoned.replay()
    monkeypatch.delenv(failpoints.VARIABLE)
    assert len(poisoned.letters()) == 1
    committed = place == "replay.after_commit"
    assert poisoned.rows()[1]["note"] == ("old" if committed else None)
    # A newer change arrives in between: the second replay must not undo it.
    poisoned.deliver(good(1, 20, note="new"))
    assert len(poisoned.replay().applied) == 1
    assert poisoned.rows()[1]["note"] == "new"
    assert (poisoned.letters(), len(poisoned.letters(closed=True))) == ({}, 1)
    count_trials("interrupted replays", 1)


def test_a_replay_that_lost_its_lease_closes_no_letter(poisoned: PoisonedTopic, pause_writer: Pause) -> None:
    """It was paused after its commit, and the next writer has taken the lease since."""
    poisoned.deliver(good(2, 5), PRETTY)
    paused = pause_writer(
        replace(poisoned.table, owner="the paused one"),
        "replay.after_commit",
        lambda spec: replay.run(poisoned.engines.spark, ReplaySpec(spec)),
    )
    [letter] = poisoned.letters().values()
    poisoned.send(good(1, 20, note="new"))
    poisoned.land()
    upsert.run(poisoned.engines.spark, replace(poisoned.table, owner="the next one", lease_wait_seconds=60))
    error = paused.finish().error
    assert isinstance(error, LeaseLostError)
    assert list(poisoned.letters().values()) == [letter]
    assert poisoned.letters(closed=True) == {}
    assert "was taken by the next one" in str(error)
    assert poisoned.replay().applied == [letter.id]
    assert poisoned.rows()[1]["note"] == "new"


def epoch(number: int) -> Epoch:
    """Return an epoch."""
    now = datetime.now(UTC)
    return Epoch(
        number=number,
        pipeline="p",
        reason="a test",
        began_at=now,
        system_identifier="1",
        timeline=1,
        slot="slot",
        lsn=number * 100,
    )


def test_a_letter_older_than_the_newest_snapshot_is_overtaken(poisoned: PoisonedTopic) -> None:
    poisoned.deliver(good(2, 5), PRETTY)
    epochs = Epochs(poisoned.store, poisoned.name)
    for number in (0, 1):
        epochs.begin(epoch(number))
    with pytest.raises(ContractError, match=r"the running snapshot of pipeline \S+ reads its row again"):
        poisoned.replay()
    epochs.complete(1, Completion(snapshot_lsn=100, completed_at=datetime.now(UTC)))
    [letter] = poisoned.letters().values()
    report = poisoned.replay()
    assert (report.instant, report.applied, report.overtaken) == (None, [], [letter.id])
    assert poisoned.rows().keys() == {2}
    [closed] = poisoned.letters(closed=True).values()
    assert closed.closed is not None
    assert closed.closed.how == "overtaken"


def test_a_row_of_an_interrupted_snapshot_is_not_restored(poisoned: PoisonedTopic) -> None:
    first, second, after = (
        json.dumps(event(key, op, lsn, snapshot), indent=1).encode()
        for key, op, lsn, snapshot in ((1, "r", 50, "true"), (2, "r", 100, "true"), (3, "c", 70, "false"))
    )
    poisoned.deliver(good(9, 500), first, second, after)
    epochs = Epochs(poisoned.store, poisoned.name)
    epochs.begin(epoch(0))
    epochs.complete(0, Completion(snapshot_lsn=100, completed_at=datetime.now(UTC)))
    assert len(poisoned.replay().applied) == 3
    assert poisoned.rows().keys() == {2, 3, 9}


def test_a_replay_fails_while_another_writer_has_the_lease(poisoned: PoisonedTopic) -> None:
    poisoned.deliver(good(1, 5), PRETTY)
    key = object_names.lease_key(poisoned.name, "orders")
    with lease.held(poisoned.store, key, "another"), pytest.raises(LeaseHeldError, match="another holds"):
        poisoned.replay()
    assert len(poisoned.letters()) == 1


def test_a_replay_requires_the_table(poisoned: PoisonedTopic) -> None:
    poisoned.send(PRETTY)
    poisoned.land()
    with pytest.raises(ContractError, match=r"table orders does not exist yet\. Materialise \S+/lake/orders_lake"):
        poisoned.replay()
    assert len(poisoned.letters()) == 1
