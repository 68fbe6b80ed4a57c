"""Dead letters: whole, in their place, and there once however often the batch is applied."""

from __future__ import annotations

import base64

import pytest

from cdc_lake.contract import dead_letters
from cdc_lake.contract.dead_letters import DeadLetter
from cdc_lake.contract.errors import ContractError
from cdc_lake_tests.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.landed import PIPELINE, TOPIC

LETTER = DeadLetter.of(TOPIC, 2, 17, "the record is not a JSON object", b"\xff\x00{", "raw/shop/object")
KEY = f"dlq/shop/{TOPIC}/{TOPIC}+2+00000000000000000017.json"


def test_it_keeps_the_bytes_the_place_and_the_reason() -> None:
    store = MemoryStore()
    dead_letters.put(store, PIPELINE, [LETTER])
    kept = DeadLetter.model_validate_json(store.objects[KEY].body)
    assert kept == LETTER
    assert kept.value is not None
    assert base64.b64decode(kept.value) == b"\xff\x00{"


def test_a_record_without_a_value_keeps_that() -> None:
    assert DeadLetter.of(TOPIC, 0, 0, "r", None).value is None
    assert DeadLetter.of(TOPIC, 0, 0, "r", b"").value == ""


def test_putting_a_batch_again_changes_nothing() -> None:
    store = MemoryStore()
    letters = [LETTER, LETTER.model_copy(update={"offset": 18}), LETTER.model_copy(update={"partition": 3})]
    dead_letters.put(store, PIPELINE, letters[:1])
    before = store.objects[KEY]
    for _ in range(2):
        dead_letters.put(store, PIPELINE, letters)
    assert store.objects[KEY] is before
    assert len(list(dead_letters.keys(store, PIPELINE))) == 3


def test_a_lost_answer_is_no_loss() -> None:
    store = MemoryStore()
    store.lose_answers()
    dead_letters.put(store, PIPELINE, [LETTER])
    assert list(dead_letters.keys(store, PIPELINE)) == [KEY]


def test_a_refused_put_that_left_nothing_is_not_taken_for_done() -> None:
    store = MemoryStore()
    store.be_busy(1)
    dead_letters.put(store, PIPELINE, [LETTER])
    assert list(dead_letters.keys(store, PIPELINE)) == [KEY]


def test_a_topic_cannot_leave_the_prefix() -> None:
    with pytest.raises(ContractError):
        dead_letters.put(MemoryStore(), PIPELINE, [LETTER.model_copy(update={"topic": "../lake"})])


def test_keys_are_of_one_pipeline_and_without_temporary_files() -> None:
    store = MemoryStore()
    dead_letters.put(store, PIPELINE, [LETTER])
    dead_letters.put(store, "shop2", [LETTER])
    store.write(f"{KEY}-77d1", b"{")
    assert list(dead_letters.keys(store, PIPELINE)) == [KEY]
