"""Dead letters: whole, in their place, there once however often the batch is applied, and closed only at the end."""

from __future__ import annotations

import json

import pytest

from cdc_lake.contract.errors import ContractError, ObjectConflictError, ObjectDamagedError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import StoredObject
from cdc_lake_tests.memory_store import MemoryStore
from cdc_lake_tests.trial_counts import Tried
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE, TOPIC

VALUE = b"\xff\x00{"
LETTER = DeadLetter.of(
    TOPIC, 2, 17, "it is not JSON", VALUE, "raw/shop/object", key=b"\xfe", headers=[("from", b"\xfd"), ("none", None)]
)
NAME = f"{TOPIC}/{TOPIC}+2+00000000000000000017"
KEY = f"dlq/shop/{NAME}.json"


def kept(store: MemoryStore, letter: DeadLetter = LETTER, value: bytes | None = VALUE) -> MemoryStore:
    """The store with a letter and its value."""
    dead_letters.put_value(store, PIPELINE, letter, value)
    dead_letters.put(store, PIPELINE, [letter])
    return store


def test_it_keeps_the_bytes_the_place_and_the_reason() -> None:
    store = kept(MemoryStore())
    assert list(dead_letters.letters(store, PIPELINE)) == [LETTER]
    assert dead_letters.value_of(store, PIPELINE, LETTER) == VALUE
    assert store.objects[f"dlq/shop/{NAME}.value"].body == VALUE
    told = json.loads(store.objects[KEY].body)
    assert (told["topic"], told["partition"], told["offset"], told["object"]) == (TOPIC, 2, 17, "raw/shop/object")
    assert (told["reason"], told["size"], told["epoch"]) == ("it is not JSON", 3, 0)


def test_a_record_without_a_value_keeps_that() -> None:
    letter = DeadLetter.of(TOPIC, 0, 0, "r", None)
    assert (letter.size, letter.sha256) == (None, None)
    assert dead_letters.value_of(kept(MemoryStore(), letter, None), PIPELINE, letter) is None
    letter = DeadLetter.of(TOPIC, 0, 0, "r", b"")
    assert dead_letters.value_of(kept(MemoryStore(), letter, b""), PIPELINE, letter) == b""


def test_listing_reads_no_values() -> None:
    store = MemoryStore()
    for offset in range(5):
        kept(store, DeadLetter.of(TOPIC, 0, offset, "r", b"x" * 1000), b"x" * 1000)
    store.forget_requests()
    assert len(list(dead_letters.letters(store, PIPELINE))) == 5
    assert store.requests == {"list": 1, "get": 5}
    store.forget_requests()
    assert len(list(dead_letters.keys(store, PIPELINE))) == 5
    assert store.requests == {"list": 1}


def test_putting_a_batch_again_changes_nothing() -> None:
    store = MemoryStore()
    letters = [LETTER, LETTER.model_copy(update={"offset": 18}), LETTER.model_copy(update={"partition": 3})]
    dead_letters.put(store, PIPELINE, letters[:1])
    before = store.objects[KEY]
    for _ in range(2):
        dead_letters.put(store, PIPELINE, letters)
        dead_letters.put(store, PIPELINE, [DeadLetter.of(TOPIC, 2, 17, "found anew, later", VALUE)])
    assert store.objects[KEY] is before
    assert len(list(dead_letters.keys(store, PIPELINE))) == 3


def test_another_record_in_its_place_is_a_conflict() -> None:
    store = kept(MemoryStore())
    with pytest.raises(ObjectConflictError, match="there is already a letter of another record"):
        dead_letters.put(store, PIPELINE, [DeadLetter.of(TOPIC, 2, 17, "r", b"another")])
    with pytest.raises(ObjectConflictError, match="exists with another value"):
        dead_letters.put_value(store, PIPELINE, LETTER, b"another")
    # Of another epoch it is not in its place.
    kept(store, DeadLetter.of(TOPIC, 2, 17, "r", b"another", epoch=1), b"another")
    assert {letter.id for letter in dead_letters.letters(store, PIPELINE)} == {f"{TOPIC}+2+17", f"{TOPIC}+2+17@1"}


def test_a_lost_answer_is_no_loss() -> None:
    store = MemoryStore()
    store.lose_answers(2)
    assert list(dead_letters.keys(kept(store), PIPELINE)) == [KEY]


def test_a_refused_put_that_left_nothing_is_not_taken_for_done() -> None:
    store = MemoryStore()
    store.be_busy(2)
    assert list(dead_letters.letters(kept(store), PIPELINE)) == [LETTER]


def test_a_topic_cannot_leave_the_prefix() -> None:
    with pytest.raises(ContractError):
        dead_letters.put(MemoryStore(), PIPELINE, [LETTER.model_copy(update={"topic": "../lake"})])


def test_keys_are_of_one_pipeline_and_without_temporary_files() -> None:
    store = kept(MemoryStore())
    dead_letters.put(store, "shop2", [LETTER])
    store.write(f"{KEY}-77d1", b"{")
    assert list(dead_letters.keys(store, PIPELINE)) == [KEY]


@pytest.mark.parametrize("epoch", [0, 12])
def test_it_is_found_by_its_id(epoch: int) -> None:
    letter = LETTER.model_copy(update={"epoch": epoch})
    store = kept(MemoryStore(), letter)
    assert dead_letters.find(store, PIPELINE, letter.id) == letter


@pytest.mark.parametrize(
    "given", ["", "17", f"{TOPIC}+2+18", f"{TOPIC}+2+17@1", "../x+0+1", f"{TOPIC}+2+17@0", "..+0+0"]
)
def test_an_id_that_is_none(given: str) -> None:
    with pytest.raises(ContractError):
        dead_letters.find(kept(MemoryStore()), PIPELINE, given)


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_damaged_value_is_not_believed(damage: str) -> None:
    store = kept(MemoryStore())
    if damage == "gone":
        store.delete([f"dlq/shop/{NAME}.value"])
    else:
        store.write(f"dlq/shop/{NAME}.value", b"{}")
    with pytest.raises(ObjectDamagedError, match=r"dlq drop"):
        dead_letters.value_of(store, PIPELINE, LETTER)


def test_a_letter_that_fails_again_has_its_new_reason() -> None:
    store = kept(MemoryStore())
    dead_letters.record_failed_replay(store, PIPELINE, LETTER, "it is too late")
    [now] = dead_letters.letters(store, PIPELINE)
    assert (now.reason, now.tries, now.found_at) == ("it is too late", 2, LETTER.found_at)
    assert now.tried_at is not None
    # Who still has the letter as it was overwrites nothing.
    dead_letters.record_failed_replay(store, PIPELINE, LETTER, "stale")
    assert list(dead_letters.letters(store, PIPELINE)) == [now]


def test_a_closed_letter_is_not_opened_by_a_late_failure() -> None:
    store = kept(MemoryStore())
    dead_letters.close(store, PIPELINE, LETTER, "dropped", None)
    dead_letters.record_failed_replay(store, PIPELINE, LETTER, "late")
    assert list(dead_letters.keys(store, PIPELINE)) == []


def test_a_value_can_be_mended_and_the_original_stays() -> None:
    store = kept(MemoryStore())
    mended = dead_letters.replace_value(store, PIPELINE, LETTER, b'{"a": 1}')
    assert dead_letters.find(store, PIPELINE, LETTER.id) == mended
    assert dead_letters.value_of(store, PIPELINE, mended) == b'{"a": 1}'
    assert dead_letters.value_of(store, PIPELINE, mended, original=True) == VALUE
    again = dead_letters.replace_value(store, PIPELINE, mended, b"{}")
    assert dead_letters.value_of(store, PIPELINE, again) == b"{}"
    assert dead_letters.replace_value(store, PIPELINE, again, VALUE).mended is None
    with pytest.raises(ContractError, match="another process changed or closed"):
        dead_letters.replace_value(store, PIPELINE, LETTER.model_copy(update={"tries": 9}), b"{}")


def test_a_tombstone_can_be_given_a_value() -> None:
    letter = DeadLetter.of(TOPIC, 0, 0, "r", None)
    store = kept(MemoryStore(), letter, None)
    mended = dead_letters.replace_value(store, PIPELINE, letter, b"{}")
    assert dead_letters.value_of(store, PIPELINE, mended) == b"{}"
    assert dead_letters.value_of(store, PIPELINE, mended, original=True) is None


def test_a_closed_letter_keeps_its_history() -> None:
    store = kept(MemoryStore())
    mended = dead_letters.replace_value(store, PIPELINE, LETTER, b"{}")
    dead_letters.close(store, PIPELINE, mended, "replayed", "20260101")
    assert [key for key in store.objects if key.startswith("dlq/")] == []
    [closed] = dead_letters.letters(store, PIPELINE, closed=True)
    assert closed.closed is not None
    assert (closed.closed.how, closed.closed.instant) == ("replayed", "20260101")
    assert dead_letters.value_of(store, PIPELINE, closed) == b"{}"
    assert dead_letters.value_of(store, PIPELINE, closed, original=True) == VALUE


def test_closing_that_is_cut_off_anywhere_loses_nothing(tried: Tried) -> None:
    """Cut after each request: the letter is open and whole, or closed and whole; closing again ends it."""

    class CutOffError(Exception):
        pass

    class Cut(MemoryStore):
        left = 10**6

        def _spend(self) -> None:
            if not self.left:
                raise CutOffError
            self.left -= 1

        def get(self, key: str) -> StoredObject | None:
            self._spend()
            return super().get(key)

        def put_new(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
            self._spend()
            return super().put_new(key, body, metadata)

        def delete(self, keys: object) -> int:
            self._spend()
            return super().delete(keys)  # type: ignore[arg-type]

    for cut in range(20):
        store = Cut()
        kept(store)
        mended = dead_letters.replace_value(store, PIPELINE, LETTER, b"{}")
        store.left = cut
        try:
            dead_letters.close(store, PIPELINE, mended, "replayed", "1")
            done = True
        except CutOffError:
            done = False
        store.left = 10**6
        opened = list(dead_letters.letters(store, PIPELINE))
        closed = list(dead_letters.letters(store, PIPELINE, closed=True))
        assert opened or closed
        for letter in (*opened, *closed):
            assert dead_letters.value_of(store, PIPELINE, letter) == b"{}"
            assert dead_letters.value_of(store, PIPELINE, letter, original=True) == VALUE
        for letter in opened:
            dead_letters.close(store, PIPELINE, letter, "replayed", "2")
        assert list(dead_letters.keys(store, PIPELINE)) == []
        assert len(list(dead_letters.letters(store, PIPELINE, closed=True))) == 1
        tried("requests after which closing a dead letter was cut off", 1)
        if done:
            return
    raise AssertionError("closing takes more requests than this test allows")
