"""Which states of a table can be read: those whose files no clean has deleted."""

from __future__ import annotations

import time

import pytest

from cdc_lake.contract.errors import ContractError, ObjectDamagedError
from cdc_lake.contract.table import history
from cdc_lake_tests.helpers.memory_store import MemoryStore

TABLE = "lake/shop/orders/"
FIRST, SECOND, THIRD = "20261125100000000", "20261125100130500", "20261125110000000"


@pytest.fixture
def store() -> MemoryStore:
    """Return a bucket with a table of three commits, and one that is not completed."""
    found = MemoryStore()
    for name in (f"{FIRST}.commit", f"{SECOND}.deltacommit", f"{THIRD}.replacecommit", "20261125120000000.inflight"):
        found.write(f"{TABLE}.hoodie/{name}", b"{}")
    return found


def clean(store: MemoryStore, at: str, kept: str, *, ended: bool) -> None:
    """Add a clean that keeps the files of `kept` and later commits."""
    folder = f"{TABLE}.hoodie/{at}.clean"
    store.write(f"{folder}.requested", b"Obj\x01{avro}" + kept.encode() + b"COMPLETED" + THIRD.encode())
    store.write(f"{folder}.inflight", b"")
    if ended:
        store.write(folder, b"Obj\x01{avro}" + at.encode() + b"\x22" + kept.encode() + FIRST.encode())


@pytest.mark.parametrize(
    ("when", "instant"),
    [
        (SECOND, SECOND),
        ("20261125100130499", FIRST),
        ("2026-11-25T10:01:30.500", SECOND),
        ("2026-11-25 10:01:30", FIRST),
        ("2026-11-25T11:30+01:00", SECOND),
        ("2026-11-25T11:00:00Z", THIRD),
        ("2027-01-01", THIRD),
    ],
)
def test_a_time_is_resolved_to_the_newest_commit_before_it(store: MemoryStore, when: str, instant: str) -> None:
    assert history.resolve(store, TABLE, when) == instant


def test_a_time_without_a_zone_is_utc_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/St_Johns")
    time.tzset()
    try:
        found = [
            history.instant(when) for when in ("2026-11-25T10:00:00", "2026-11-25T11:00+01:00", "2026-11-25T10:00Z")
        ]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found == ["20261125100000000"] * 3


@pytest.mark.parametrize("when", ["yesterday", "2026112510", "10:00", ""])
def test_another_text_is_refused(store: MemoryStore, when: str) -> None:
    with pytest.raises(ContractError, match=r"it has another format\. Use an instant of 17 digits, or a time such as"):
        history.resolve(store, TABLE, when)


def test_a_time_before_the_first_commit_names_the_oldest_state(store: MemoryStore) -> None:
    with pytest.raises(ContractError, match=rf"oldest state .* is that of commit {FIRST} \(2026-11-25 10:00:00 UTC\)"):
        history.resolve(store, TABLE, "2026-11-25T09:59:59")


@pytest.mark.parametrize("ended", [True, False])
def test_states_that_a_clean_deletes_cannot_be_read(store: MemoryStore, ended: bool) -> None:
    clean(store, "20261125103000000", FIRST, ended=True)
    assert history.readable(store, TABLE) == [FIRST, SECOND, THIRD]
    clean(store, "20261125113000000", SECOND, ended=ended)
    assert history.readable(store, TABLE) == [SECOND, THIRD]
    with pytest.raises(ContractError, match=rf"oldest state .* commit {SECOND}"):
        history.resolve(store, TABLE, FIRST)


def test_a_state_that_an_earlier_clean_deleted_cannot_be_read_after_history_was_raised(store: MemoryStore) -> None:
    clean(store, "20261125113000000", SECOND, ended=True)
    clean(store, "20261125123000000", FIRST, ended=True)
    assert history.readable(store, TABLE)[0] == SECOND


def test_a_clean_that_cannot_be_read_is_an_error(store: MemoryStore) -> None:
    store.write(f"{TABLE}.hoodie/20261125113000000.clean", b"Obj\x01")
    with pytest.raises(ObjectDamagedError, match="it does not name the oldest commit that the clean keeps"):
        history.readable(store, TABLE)


def test_a_table_without_commits_has_no_state() -> None:
    with pytest.raises(ContractError, match="it has no commit yet"):
        history.resolve(MemoryStore(), TABLE, FIRST)
