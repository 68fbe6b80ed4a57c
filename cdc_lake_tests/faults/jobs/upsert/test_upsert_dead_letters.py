"""Unreadable records are kept unchanged as dead letters and the batch continues; too many of them stop it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cdc_lake.contract.errors import TooManyDeadLettersError, UnknownColumnsError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.table import timeline
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import Event, LakeTable, record_bytes
from cdc_lake_tests.integration.jobs.upsert.typed_table import COLUMNS, KEY, record
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 2

BAD: list[tuple[Event | bytes, str]] = [
    (b"{", "not a JSON object"),
    (b'{"id": 1', "not a JSON object"),
    (b"[1, 2]", "not a JSON object"),
    (b"null", "not a JSON object"),
    (b"5", "not a JSON object"),
    (b'{"id": "\xff\xfe"}', "not UTF-8"),
    (b"{}", "fields are missing: id, day"),
    (record(9, amount=...), "fields are missing: amount"),
    (record(9, __lsn=...), "fields are missing: __lsn"),
    (record(None), "the key column id is NULL"),
    (record(9, __lsn=None), "no __lsn"),
    (record(9, __deleted=None), "__deleted"),
    (record(9, id="nine"), r"Cannot read column id: '.*' is not a valid int"),
    (record(9, id=9.5), r"Cannot read column id: '.*' is not a valid int"),
    (record(9, id=99_999_999_999), r"Cannot read column id: '.*' is not a valid int"),
    (record(9, id={"a": 9}), r"Cannot read column id: '.*' is not a valid int"),
    (record(9, day="2024-02-29"), r"Cannot read column day: '.*' is not a valid date"),
    (record(9, day=1.5), r"Cannot read column day: '.*' is not a valid date"),
    (record(9, at="now"), r"Cannot read column at: '.*' is not a valid timestamp"),
    (record(9, at_ms=9_223_372_036_854_775_807), r"Cannot read column at_ms: '.*' is not a valid timestamp"),
    (record(9, at_zone="2024"), r"Cannot read column at_zone: '.*' is not a valid timestamp"),
    (record(9, clock=True), r"Cannot read column clock: '.*' is not a valid bigint"),
    (record(9, amount="1.00000000001"), r"Cannot read column amount: '.*' is not a valid decimal\(20,10\)"),
    (record(9, amount="12345678901.0"), r"Cannot read column amount: '.*' is not a valid decimal\(20,10\)"),
    (record(9, amount="NaN"), r"Cannot read column amount: NaN is not a valid decimal\(20,10\)"),
    (record(9, amount="1E-11"), r"Cannot read column amount: '.*' is not a valid decimal\(20,10\)"),
    (record(9, whole="0.5"), r"Cannot read column whole: '.*' is not a valid decimal\(38,0\)"),
    (record(9, raw="A"), r"Cannot read column raw: '.*' is not a valid binary"),
    (record(9, raw="!?"), r"Cannot read column raw: '.*' is not a valid binary"),
    (record(9, yes="perhaps"), r"Cannot read column yes: '.*' is not a valid boolean"),
    (record(9, yes=1), r"Cannot read column yes: '.*' is not a valid boolean"),
    (record(9, double="much"), r"Cannot read column double: '.*' is not a valid double"),
]


def letters(table: LakeTable) -> list[DeadLetter]:
    """Return the table's dead letters by offset."""
    return list(dead_letters.letters(table.store, table.name))


def applied(table: LakeTable) -> int:
    """Return the number of the last applied manifest."""
    commit = timeline.last_commit(table.store, table.spec.prefix)
    return 0 if commit is None or commit.checkpoint is None else commit.checkpoint.manifest


def test_bad_records_are_kept_and_the_others_are_applied(new_table: NewTable, count_trials: CountTrials) -> None:
    table = new_table(COLUMNS, KEY)
    table.deliver([record(1), *(bad for bad, _ in BAD), record(2)])
    report = table.upsert()
    kept = {dead_letters.value_of(table.store, table.name, letter): letter for letter in letters(table)}
    for bad, reason in BAD:
        assert re.search(reason, getattr(kept.get(record_bytes(bad)), "reason", "it landed")), bad
    assert {letter.object for letter in kept.values()} == {table.objects[0].key}
    assert (report.keys, report.dead_letters, report.events) == (2, len(BAD), len(BAD) + 2)
    assert {row["id"] for row in table.by_hudi_rs()} == {1, 2}
    count_trials("bad inputs", len(BAD))
    # A batch that has only dead letters advances the checkpoint too, and changes no row.
    before = table.by_hudi_rs()
    table.deliver([b"poison", record(None)])
    report = table.upsert()
    assert (report.keys, report.dead_letters, applied(table)) == (0, 2, 2)
    assert report.commit is not None
    assert sorted(table.by_hudi_rs(), key=str) == sorted(before, key=str)
    assert len(letters(table)) == len(BAD) + 2


def test_a_first_batch_with_only_dead_letters_creates_the_table(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    table.deliver([b"poison"])
    assert table.upsert().dead_letters == 1
    assert applied(table) == 1
    table.deliver([record(1)])
    assert table.upsert().commit.inserts == 1
    assert [row["id"] for row in table.by_hudi_rs()] == [1]


def test_too_many_dead_letters_stop_the_upsert(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    table.deliver([record(1), b"x", b"y", b"z"])
    with pytest.raises(TooManyDeadLettersError, match=r"Cannot apply topic shop.public.orders: more than 2 of its"):
        table.upsert(replace(table.spec, dead_letter_limit=2))
    assert (applied(table), letters(table)) == (0, [])


def test_an_unknown_field_stops_the_upsert(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    table.deliver([record(1), b"poison", record(2, added_later=5, more=None)])
    with pytest.raises(
        UnknownColumnsError,
        match=r"offset 2: the record has fields that are in no captured schema version: added_later, more\.",
    ):
        table.upsert()
    assert (applied(table), letters(table)) == (0, [])
