"""Dead letters: stored completely and once, also when a batch is applied again, and closed without loss."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from cdc_lake.contract.errors import ContractError, ObjectConflictError, ObjectDamagedError
from cdc_lake.contract.objects import dead_letters, object_names
from cdc_lake.contract.objects.dead_letters import DeadLetter, Outcome
from cdc_lake.contract.objects.store import StoredObject
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE, TOPIC

VALUE = b"\xff\x00{"
LETTER = DeadLetter.of(
    TOPIC, 2, 17, "it is not JSON", VALUE, "raw/shop/object", key=b"\xfe", headers=[("from", b"\xfd"), ("none", None)]
)
NAME = f"{TOPIC}/{TOPIC}+2+00000000000000000017"
KEY = f"dlq/shop/{NAME}.json"


def with_letter(store: MemoryStore, letter: DeadLetter = LETTER, value: bytes | None = VALUE) -> MemoryStore:
    """Put a letter and its value into the store; return the store."""
    dead_letters.put_value(store, PIPELINE, letter, value)
    dead_letters.put(store, PIPELINE, [letter])
    return store


def test_a_letter_contains_bytes_offset_and_reason() -> None:
    store = with_letter(MemoryStore())
    assert list(dead_letters.letters(store, PIPELINE)) == [LETTER]
    assert dead_letters.value_of(store, PIPELINE, LETTER) == VALUE
    assert store.objects[f"dlq/shop/{NAME}.value"].body == VALUE
    stored = json.loads(store.objects[KEY].body)
    assert (stored["topic"], stored["partition"], stored["offset"], stored["object"]) == (
        TOPIC,
        2,
        17,
        "raw/shop/object",
    )
    assert (stored["reason"], stored["size"], stored["epoch"]) == ("it is not JSON", 3, 0)


def test_a_missing_value_differs_from_an_empty_one() -> None:
    letter = DeadLetter.of(TOPIC, 0, 0, "r", None)
    assert (letter.size, letter.sha256) == (None, None)
    assert dead_letters.value_of(with_letter(MemoryStore(), letter, None), PIPELINE, letter) is None
    letter = DeadLetter.of(TOPIC, 0, 0, "r", b"")
    assert dead_letters.value_of(with_letter(MemoryStore(), letter, b""), PIPELINE, letter) == b""


def test_listing_reads_no_values() -> None:
    store = MemoryStore()
    for offset in range(5):
        with_letter(store, DeadLetter.of(TOPIC, 0, offset, "r", b"x" * 1000), b"x" * 1000)
    store.forget_requests()
    assert len(list(dead_letters.letters(store, PIPELINE))) == 5
    assert store.requests == {"list": 1, "get": 5}
    store.forget_requests()
    assert len(list(dead_letters.keys(store, PIPELINE))) == 5
    assert store.requests == {"list": 1}


def test_putting_a_batch_twice_stores_each_letter_once() -> None:
    store = MemoryStore()
    letters = [LETTER, LETTER.model_copy(update={"offset": 18}), LETTER.model_copy(update={"partition": 3})]
    dead_letters.put(store, PIPELINE, letters[:1])
    before = store.objects[KEY]
    for _ in range(2):
        dead_letters.put(store, PIPELINE, letters)
        dead_letters.put(store, PIPELINE, [DeadLetter.of(TOPIC, 2, 17, "found again later", VALUE)])
    assert store.objects[KEY] is before
    assert len(list(dead_letters.keys(store, PIPELINE))) == 3


def test_another_record_at_the_same_offset_is_a_conflict() -> None:
    store = with_letter(MemoryStore())
    with pytest.raises(ObjectConflictError, match="is that of another record at this offset"):
        dead_letters.put(store, PIPELINE, [DeadLetter.of(TOPIC, 2, 17, "r", b"another")])
    with pytest.raises(ObjectConflictError, match=r"\.value is that of another record at this offset"):
        dead_letters.put_value(store, PIPELINE, LETTER, b"another")
    # A letter of another epoch has another key.
    with_letter(store, DeadLetter.of(TOPIC, 2, 17, "r", b"another", epoch=1), b"another")
    assert {letter.id for letter in dead_letters.letters(store, PIPELINE)} == {f"{TOPIC}+2+17", f"{TOPIC}+2+17@1"}


def test_a_lost_response_does_not_lose_the_letter() -> None:
    store = MemoryStore()
    store.lose_answers(2)
    assert list(dead_letters.keys(with_letter(store), PIPELINE)) == [KEY]


def test_a_rejected_put_is_retried_until_the_letter_exists() -> None:
    store = MemoryStore()
    store.be_busy(2)
    assert list(dead_letters.letters(with_letter(store), PIPELINE)) == [LETTER]


def test_a_topic_that_would_leave_the_prefix_is_rejected() -> None:
    with pytest.raises(ContractError):
        dead_letters.put(MemoryStore(), PIPELINE, [LETTER.model_copy(update={"topic": "../lake"})])


def test_keys_are_listed_per_pipeline_without_temporary_files() -> None:
    store = with_letter(MemoryStore())
    dead_letters.put(store, "shop2", [LETTER])
    store.write(f"{KEY}-77d1", b"{")
    assert list(dead_letters.keys(store, PIPELINE)) == [KEY]


@pytest.mark.parametrize("epoch", [0, 12])
def test_a_letter_is_found_by_its_id(epoch: int) -> None:
    letter = LETTER.model_copy(update={"epoch": epoch})
    store = with_letter(MemoryStore(), letter)
    assert dead_letters.find(store, PIPELINE, letter.id) == letter


@pytest.mark.parametrize(
    "letter_id", ["", "17", f"{TOPIC}+2+18", f"{TOPIC}+2+17@1", "../x+0+1", f"{TOPIC}+2+17@0", "..+0+0"]
)
def test_an_invalid_or_unknown_id_is_rejected(letter_id: str) -> None:
    with pytest.raises(ContractError):
        dead_letters.find(with_letter(MemoryStore()), PIPELINE, letter_id)


@pytest.mark.parametrize("damage", ["missing", "damaged: its SHA-256 differs"])
def test_a_damaged_value_is_reported(damage: str) -> None:
    store = with_letter(MemoryStore())
    if damage == "missing":
        store.delete([f"dlq/shop/{NAME}.value"])
    else:
        store.write(f"dlq/shop/{NAME}.value", b"{}")
    with pytest.raises(
        ObjectDamagedError,
        match=rf"is {damage}.* or drop the letter with `cdc-lake dlq drop shop {re.escape(LETTER.id)}`",
    ):
        dead_letters.value_of(store, PIPELINE, LETTER)


def test_a_damaged_value_of_a_closed_letter_can_only_be_restored() -> None:
    store = with_letter(MemoryStore())
    dead_letters.close(store, PIPELINE, LETTER, "dropped", None)
    [closed] = dead_letters.letters(store, PIPELINE, closed=True)
    store.delete([f"dlq-closed/shop/{NAME}.value"])
    with pytest.raises(ObjectDamagedError, match=r"is missing\. Restore the value from a backup\.$"):
        dead_letters.value_of(store, PIPELINE, closed)


def test_a_failed_replay_updates_the_reason() -> None:
    store = with_letter(MemoryStore())
    dead_letters.record_failed_replay(store, PIPELINE, LETTER, "it is too late")
    [updated] = dead_letters.letters(store, PIPELINE)
    assert (updated.reason, updated.tries, updated.found_at) == ("it is too late", 2, LETTER.found_at)
    assert updated.tried_at is not None
    # A process with an outdated letter does not overwrite it.
    dead_letters.record_failed_replay(store, PIPELINE, LETTER, "stale")
    assert list(dead_letters.letters(store, PIPELINE)) == [updated]


def test_a_replacement_whose_response_was_lost_is_stored() -> None:
    store = with_letter(MemoryStore())
    store.lose_answers(2)  # of the value and of the letter
    replaced = dead_letters.replace_value(store, PIPELINE, LETTER, b"{}")
    assert dead_letters.find(store, PIPELINE, LETTER.id) == replaced


def test_a_replacement_loses_the_race_against_another_change() -> None:
    store = with_letter(MemoryStore())
    reads = store.get

    def change_after_read(key: str) -> StoredObject | None:
        found = reads(key)
        if key == KEY:
            store.get = reads  # type: ignore[method-assign]
            dead_letters.record_failed_replay(store, PIPELINE, LETTER, "it is too late")
        return found

    store.get = change_after_read  # type: ignore[method-assign]
    with pytest.raises(ContractError, match="another process changed or closed"):
        dead_letters.replace_value(store, PIPELINE, LETTER, b"{}")
    assert [letter.reason for letter in dead_letters.letters(store, PIPELINE)] == ["it is too late"]


def test_a_late_failure_does_not_reopen_a_closed_letter() -> None:
    store = with_letter(MemoryStore())
    dead_letters.close(store, PIPELINE, LETTER, "dropped", None)
    dead_letters.record_failed_replay(store, PIPELINE, LETTER, "late")
    assert list(dead_letters.keys(store, PIPELINE)) == []


def test_a_letter_of_an_earlier_version_keeps_its_replacement() -> None:
    stored = json.loads(LETTER.model_dump_json())
    del stored["replacement"]
    store = with_letter(MemoryStore())
    store.objects.pop(KEY)
    store.write(KEY, json.dumps({**stored, "mended": "ab"}).encode())
    found = dead_letters.find(store, PIPELINE, LETTER.id)
    assert found.replacement == "ab"
    assert dead_letters.value_of(store, PIPELINE, dead_letters.replace_value(store, PIPELINE, found, b"{}")) == b"{}"


def test_a_value_can_be_replaced_and_the_original_is_kept() -> None:
    store = with_letter(MemoryStore())
    replaced = dead_letters.replace_value(store, PIPELINE, LETTER, b'{"a": 1}')
    assert dead_letters.find(store, PIPELINE, LETTER.id) == replaced
    assert dead_letters.value_of(store, PIPELINE, replaced) == b'{"a": 1}'
    assert dead_letters.value_of(store, PIPELINE, replaced, original=True) == VALUE
    replaced_twice = dead_letters.replace_value(store, PIPELINE, replaced, b"{}")
    assert dead_letters.value_of(store, PIPELINE, replaced_twice) == b"{}"
    assert dead_letters.replace_value(store, PIPELINE, replaced_twice, VALUE).replacement is None
    with pytest.raises(ContractError, match="another process changed or closed"):
        dead_letters.replace_value(store, PIPELINE, LETTER.model_copy(update={"tries": 9}), b"{}")


def test_a_replacement_that_was_replaced_again_is_deleted_with_its_letter() -> None:
    store = with_letter(MemoryStore())
    replaced = dead_letters.replace_value(store, PIPELINE, LETTER, b'{"a": 1}')
    dead_letters.close(
        store, PIPELINE, dead_letters.replace_value(store, PIPELINE, replaced, b"{}"), "replayed", instant="1"
    )
    assert list(store.scan(object_names.dead_letter_prefix(PIPELINE))) == []
    [closed] = dead_letters.letters(store, PIPELINE, closed=True)
    assert dead_letters.value_of(store, PIPELINE, closed) == b"{}"
    assert dead_letters.value_of(store, PIPELINE, closed, original=True) == VALUE


def test_a_missing_value_can_be_replaced() -> None:
    letter = DeadLetter.of(TOPIC, 0, 0, "r", None)
    store = with_letter(MemoryStore(), letter, None)
    replaced = dead_letters.replace_value(store, PIPELINE, letter, b"{}")
    assert dead_letters.value_of(store, PIPELINE, replaced) == b"{}"
    assert dead_letters.value_of(store, PIPELINE, replaced, original=True) is None


def test_a_closed_letter_keeps_its_history() -> None:
    store = with_letter(MemoryStore())
    replaced = dead_letters.replace_value(store, PIPELINE, LETTER, b"{}")
    dead_letters.close(store, PIPELINE, replaced, "replayed", "20260101")
    assert [key for key in store.objects if key.startswith("dlq/")] == []
    [closed] = dead_letters.letters(store, PIPELINE, closed=True)
    assert closed.closed is not None
    assert (closed.closed.how, closed.closed.instant) == ("replayed", "20260101")
    assert dead_letters.value_of(store, PIPELINE, closed) == b"{}"
    assert dead_letters.value_of(store, PIPELINE, closed, original=True) == VALUE


def test_a_closed_letter_is_not_opened_again_by_a_batch_that_is_applied_later() -> None:
    store = with_letter(MemoryStore())
    dead_letters.close(store, PIPELINE, LETTER, "replayed", "20260101")
    closed = dict(store.objects)
    with_letter(store)
    assert store.objects == closed, "neither the letter nor its value"
    # Another record at the same offset has a letter of its own.
    other = DeadLetter.of(TOPIC, 2, 17, "another reason", b"another")
    with_letter(store, other, b"another")
    assert list(dead_letters.letters(store, PIPELINE)) == [other]


class InterruptedByTestError(Exception):
    """A request after the allowed number of requests."""


class InterruptedStore(MemoryStore):
    """A store that fails after `requests_left` requests."""

    requests_left = 10**6

    def _spend(self) -> None:
        if not self.requests_left:
            raise InterruptedByTestError
        self.requests_left -= 1

    def get(self, key: str) -> StoredObject | None:
        self._spend()
        return super().get(key)

    def put_new(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
        self._spend()
        return super().put_new(key, body, metadata)

    def delete(self, keys: object) -> int:
        self._spend()
        return super().delete(keys)  # type: ignore[arg-type]

    def interrupted(self, allowed_requests: int, work: Callable[[], object]) -> bool:
        """Do the work with this number of requests; return whether it was interrupted."""
        self.requests_left = allowed_requests
        try:
            work()
        except InterruptedByTestError:
            return True
        finally:
            self.requests_left = 10**6
        return False


def complete_letters(store: MemoryStore) -> tuple[list[DeadLetter], list[DeadLetter]]:
    """Return the open and the closed letters, which have both values."""
    opened, closed = (list(dead_letters.letters(store, PIPELINE, closed=each)) for each in (False, True))
    assert opened or closed
    for letter in (*opened, *closed):
        assert dead_letters.value_of(store, PIPELINE, letter) == b"{}"
        assert dead_letters.value_of(store, PIPELINE, letter, original=True) == VALUE
    return opened, closed


def test_closing_interrupted_after_any_request_loses_nothing(count_trials: CountTrials) -> None:
    """After an interruption the letter is complete, open or closed; closing it again completes the close."""
    for allowed_requests in range(20):
        store = InterruptedStore()
        replaced = dead_letters.replace_value(with_letter(store), PIPELINE, LETTER, b"{}")
        again = store.interrupted(
            allowed_requests,
            lambda: dead_letters.close(store, PIPELINE, replaced, "replayed", "1"),  # noqa: B023
        )
        opened, _ = complete_letters(store)
        for letter in opened:
            dead_letters.close(store, PIPELINE, letter, "replayed", "2")
        assert list(dead_letters.keys(store, PIPELINE)) == []
        assert len(list(dead_letters.letters(store, PIPELINE, closed=True))) == 1
        count_trials("requests after which closing a dead letter was interrupted", 1)
        if not again:
            return
    raise AssertionError("closing takes more requests than this test allows")


def test_reopening_interrupted_after_any_request_loses_nothing(count_trials: CountTrials) -> None:
    for allowed_requests in range(20):
        store = InterruptedStore()
        replaced = dead_letters.replace_value(with_letter(store), PIPELINE, LETTER, b"{}")
        dead_letters.close(store, PIPELINE, replaced, "replayed", "1")
        again = store.interrupted(
            allowed_requests,
            lambda: dead_letters.reopen_replayed(store, PIPELINE, TOPIC, 0, {LETTER.id}),  # noqa: B023
        )
        complete_letters(store)
        dead_letters.reopen_replayed(store, PIPELINE, TOPIC, 0, {LETTER.id})
        assert complete_letters(store) == ([replaced], [])
        assert not [key for key in store.objects if key.startswith(object_names.closed_letter_prefix(PIPELINE))]
        count_trials("requests after which reopening a dead letter was interrupted", 1)
        if not again:
            return
    raise AssertionError("reopening takes more requests than this test allows")


@pytest.mark.parametrize(
    ("topic", "epoch", "how", "unreadable"),
    [
        ("other", 0, "replayed", {LETTER.id}),
        (TOPIC, 1, "replayed", {LETTER.id}),
        (TOPIC, 0, "dropped", {LETTER.id}),
        (TOPIC, 0, "replayed", set()),
    ],
)
def test_only_replayed_letters_of_unreadable_records_of_the_epoch_are_reopened(
    topic: str, epoch: int, how: Outcome, unreadable: set[str]
) -> None:
    store = with_letter(MemoryStore())
    dead_letters.close(store, PIPELINE, LETTER, how, None)
    before = dict(store.objects)
    assert dead_letters.reopen_replayed(store, PIPELINE, topic, epoch, unreadable) == set()
    assert store.objects == before
