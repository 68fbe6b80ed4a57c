"""RawWriter, which runs on executors, without Spark: Arrow batches to raw objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lake.contract.errors import ObjectConflictError, TooManyDeadLettersError
from cdc_lake.contract.objects import dead_letters, raw_objects
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.source.topic_records import fingerprint
from cdc_lake.jobs.landing.raw_formats import PARTITION_VALUES, REJECTED, TYPED, LandingFormat, RecordFormat, Rejected
from cdc_lake.jobs.landing.raw_writer import RawWriter, SeenRecord, consecutive_runs
from cdc_lake_tests.helpers.memory_store import MemoryLocation, MemoryStore
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE, TOPIC

Row = tuple[int, int, bytes | None]
LARGEST, LIMIT = 200, 200
ROWS: list[Row] = [(0, offset, json.dumps({"order_id": offset}).encode()) for offset in range(10)]


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return records as Spark passes them to an executor."""
    partitions, offsets, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.RecordBatch.from_arrays(
        [
            pa.array(partitions, pa.int32()),
            pa.array(offsets, pa.int64()),
            pa.array(values, pa.binary()),
            pa.array([b"key %d" % offset for offset in offsets], pa.binary()),
            pa.array([[{"key": "from", "value": b"\xff"}, {"key": "none", "value": None}]] * len(rows)),
        ],
        names=["partition", "offset", "value", "key", "headers"],
    )


def write(
    store: MemoryStore,
    *batches: Sequence[Row],
    attempt: str = "attempt",
    count: int = 100,
    size: int = 10_000,
    epoch: int = 0,
) -> tuple[list[LandedObject], list[DeadLetter]]:
    """Write these batches; return objects and dead letters."""
    location = cast(S3Location, MemoryLocation(store))
    writer = RawWriter(location, PIPELINE, TOPIC, attempt, count, size, epoch, LARGEST, LIMIT)
    rows = [row for result in writer(map(batch, batches)) for row in result.to_pylist()]
    return (
        [LandedObject.model_validate_json(row["json"]) for row in rows if row["kind"] == "object"],
        [DeadLetter.model_validate_json(row["json"]) for row in rows if row["kind"] == "dead_letter"],
    )


def content(store: MemoryStore, objects: Sequence[LandedObject]) -> list[Row]:
    """Return the records of the objects, verified as a reader does."""
    return [(item.partition, *record) for item in objects for record in raw_objects.records(store, item)]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_no_records_make_no_objects(store: MemoryStore) -> None:
    assert write(store) == ([], [])
    assert write(store, []) == ([], [])
    assert store.objects == {}


def test_one_object_contains_the_records_of_several_batches(store: MemoryStore) -> None:
    objects, letters = write(store, ROWS[:4], ROWS[4:])
    assert [(item.first, item.last, item.records) for item in objects] == [(0, 9, 10)]
    assert letters == []
    assert content(store, objects) == ROWS
    assert objects[0].key == ObjectName(PIPELINE, TOPIC, 0, 0, 9, "json").key
    stored = store.objects[objects[0].key]
    assert stored.metadata == {"attempt": "attempt", "sha256": objects[0].sha256}
    assert (stored.etag, len(stored.body)) == (objects[0].etag, objects[0].bytes)


def compared_records(
    store: MemoryStore, rows: Sequence[Row], firsts: dict[int, int]
) -> dict[str, dict[int, LastRecord]]:
    """Return the records to compare that a writer reports, by kind and partition. New records start at `firsts`."""
    location = cast(S3Location, MemoryLocation(store))
    writer = RawWriter(location, PIPELINE, TOPIC, "a", 100, 9999, 0, LARGEST, LIMIT, "0ab9", firsts)
    result_rows = [row for result in writer([batch(rows)]) for row in result.to_pylist()]
    objects = [LandedObject.model_validate_json(row["json"]) for row in result_rows if row["kind"] == "object"]
    assert all(item.first >= firsts[item.partition] for item in objects)
    assert all("/chain=0ab9/" in item.key for item in objects)
    found: dict[str, dict[int, LastRecord]] = {"before": {}, "last": {}}
    for row in result_rows:
        if row["kind"] in found:
            each = SeenRecord.model_validate_json(row["json"])
            found[row["kind"]][each.partition] = each.record
    return found


def test_records_landed_earlier_are_reported_but_not_landed(store: MemoryStore) -> None:
    rows: list[Row] = [(0, 7, b"1"), (0, 8, b'{"a": 1}'), (0, 10, b"3"), (1, 0, b"x"), (1, 4, None)]
    found = compared_records(store, rows, {0: 10, 1: 0})
    assert found["before"] == {0: LastRecord(offset=8, fingerprint=fingerprint(b'{"a":1}'))}
    assert {partition: record.offset for partition, record in found["last"].items()} == {0: 10, 1: 4}
    assert found["last"][1].fingerprint == fingerprint(None), "a dead letter is a record too"
    assert [ObjectName.parse(key).first for key in store.objects if ObjectName.parse(key)] == [10, 0]


def test_a_batch_without_new_records_reports_the_last_landed_one(store: MemoryStore) -> None:
    found = compared_records(store, [(0, 9, b"1")], {0: 10})
    assert (found["before"][0].offset, found["last"]) == (9, {})
    assert store.objects == {}


def test_objects_are_cut_by_count(store: MemoryStore) -> None:
    objects, _ = write(store, ROWS[:5], ROWS[5:], count=4)
    assert [(item.first, item.last) for item in objects] == [(0, 3), (4, 7), (8, 9)]


def test_objects_are_cut_by_size(store: MemoryStore) -> None:
    objects, _ = write(store, ROWS, size=40)
    assert [(item.first, item.last) for item in objects] == [(0, 2), (3, 5), (6, 8), (9, 9)]
    assert all(item.bytes < 40 + 16 for item in objects)


def test_a_record_larger_than_an_object_gets_its_own_object(store: MemoryStore) -> None:
    large: list[Row] = [(0, 0, b"1"), (0, 1, b"2" * 150), (0, 2, b"3")]
    objects, _ = write(store, large, size=100)
    assert content(store, objects) == large


def test_objects_are_cut_by_partition(store: MemoryStore) -> None:
    rows: list[Row] = [(1, 5, b"a"), (1, 6, b"b"), (2, 5, b"c")]
    objects, _ = write(store, rows)
    assert [(item.partition, item.first, item.last) for item in objects] == [(1, 5, 6), (2, 5, 5)]


def test_runs_exclude_the_offsets_of_transaction_markers(store: MemoryStore) -> None:
    rows: list[Row] = [(0, offset, b"{}") for offset in (3, 4, 6, 9, 10)]
    objects, _ = write(store, rows)
    assert objects[0].runs == ((3, 2), (6, 1), (9, 2))
    assert content(store, objects) == rows


def test_values_that_cannot_be_landed_become_dead_letters(store: MemoryStore) -> None:
    large = b"[" + b"1" * LARGEST
    rows: list[Row] = [(0, 0, b"{}"), (0, 1, None), (0, 2, b"{\n}"), (0, 3, b""), (0, 4, b"[]"), (0, 5, large)]
    objects, letters = write(store, rows)
    assert content(store, objects) == [rows[0], rows[4]]
    assert [(letter.offset, letter.size, letter.object, letter.key) for letter in letters] == [
        (1, None, None, b"key 1"),
        (2, 3, None, b"key 2"),
        (3, 0, None, b"key 3"),
        (5, LARGEST + 1, None, b"key 5"),
    ]
    assert {letter.headers for letter in letters} == {(("from", b"\xff"), ("none", None))}
    assert "201 bytes, more than the 200 of landing.record_bytes" in letters[-1].reason
    assert objects[0].runs == ((0, 1), (4, 1))


def test_values_are_stored_before_their_dead_letters(store: MemoryStore) -> None:
    _, letters = write(store, [(0, 7, None), (0, 8, b"{\n}"), (0, 9, b"")])
    assert list(dead_letters.keys(store, PIPELINE)) == []
    dead_letters.put(store, PIPELINE, letters)
    assert [dead_letters.value_of(store, PIPELINE, letter) for letter in letters] == [None, b"{\n}", b""]


def test_dead_letters_contain_their_epoch(store: MemoryStore) -> None:
    for epoch, value in ((0, b""), (1, b"\n")):
        dead_letters.put(store, PIPELINE, write(store, [(0, 7, value)], epoch=epoch)[1])
    found = list(dead_letters.letters(store, PIPELINE))
    assert sorted(letter.id for letter in found) == [f"{TOPIC}+0+7", f"{TOPIC}+0+7@1"]


def test_too_many_dead_letters_fail_the_run(store: MemoryStore) -> None:
    rows: list[Row] = [(0, offset, None) for offset in range(LIMIT + 1)]
    assert len(write(store, rows[:-1])[1]) == LIMIT
    with pytest.raises(
        TooManyDeadLettersError, match=f"land topic {TOPIC}: more than {LIMIT} records of a batch cannot"
    ):
        write(store, rows)


def test_a_batch_of_dead_letters_makes_no_object(store: MemoryStore) -> None:
    objects, letters = write(store, [(0, 0, None), (1, 0, None)])
    assert (objects, len(letters), store.objects) == ([], 2, {})


def test_a_lost_response_is_not_a_conflict(store: MemoryStore) -> None:
    store.lose_answers()
    objects, _ = write(store, ROWS)
    assert content(store, objects) == ROWS


def test_objects_of_an_interrupted_run_are_reused(store: MemoryStore) -> None:
    first, _ = write(store, ROWS[:5], attempt="interrupted", count=5)
    second, _ = write(store, ROWS, attempt="next", count=5)
    assert second[:1] == first
    assert store.objects[first[0].key].metadata["attempt"] == "interrupted"
    assert content(store, second) == ROWS


def test_an_object_with_other_content_is_a_conflict_and_is_kept(store: MemoryStore) -> None:
    objects, _ = write(store, ROWS)
    with pytest.raises(ObjectConflictError, match="it exists, and its content differs"):
        write(store, [(0, offset, b"other") for offset in range(10)])
    assert content(store, objects) == ROWS


def test_a_busy_key_is_retried(store: MemoryStore) -> None:
    store.be_busy(2)
    objects, _ = write(store, ROWS)
    assert content(store, objects) == ROWS


def decoded(rows: Sequence[Row], places: Sequence[Sequence[str | None]]) -> pa.RecordBatch:
    """Return records as the land job passes them to an executor after it has decoded them."""
    plain = batch(rows)
    columns = {name: plain.column(name) for name in plain.schema.names}
    return pa.RecordBatch.from_pydict(
        columns
        | {
            PARTITION_VALUES: pa.array(list(map(list, places)), pa.list_(pa.string())),
            REJECTED: pa.array([None if value else "it has no value" for _, _, value in rows], pa.string()),
            TYPED: pa.array(
                [{"id": offset, "__record": None if value is None else value.decode()} for _, offset, value in rows],
                pa.struct([("id", pa.int64()), ("__record", pa.string())]),
            ),
        }
    )


@pytest.mark.parametrize("landing", ["json", "parquet"])
def test_an_object_has_the_records_of_one_value(store: MemoryStore, landing: LandingFormat) -> None:
    countries = ("Peru", "Chile", None, "Peru", "", "Chile", "Peru")
    rows: list[Row] = [(0, offset, b'{"id": %d}' % offset) for offset in range(len(countries))]
    rows[5] = (0, 5, None)
    location = cast(S3Location, MemoryLocation(store))
    writer = RawWriter(
        location,
        PIPELINE,
        TOPIC,
        "attempt",
        2,
        10_000,
        landing=landing,
        compression="gzip" if landing == "parquet" else None,
        partition_by=("country",),
    )
    places = [(country,) for country in countries]
    batches = [decoded(rows[:4], places[:4]), decoded(rows[4:], places[4:])]
    found = [row for result in writer(batches) for row in result.to_pylist()]
    objects = [LandedObject.model_validate_json(row["json"]) for row in found if row["kind"] == "object"]
    letters = [DeadLetter.model_validate_json(row["json"]) for row in found if row["kind"] == "dead_letter"]
    by_place: dict[str, list[int]] = {}
    for item in objects:
        name = ObjectName.parse(item.key)
        assert name is not None
        assert name.key == item.key
        offsets = [offset for offset, value in raw_objects.records(store, item) if json.loads(value) == {"id": offset}]
        by_place.setdefault(name.fields[0], []).extend(offsets)
    assert by_place == {
        "country=Peru": [0, 3, 6],
        "country=Chile": [1],
        "country=__HIVE_DEFAULT_PARTITION__": [2],
    }
    assert [item.records for item in objects if "Peru" in item.key] == [2, 1], "records_per_object is per folder"
    assert [letter.offset for letter in letters] == [4, 5]
    assert letters[0].reason == "the partition column country is '', which readers return as NULL"
    if landing == "parquet":
        peru = store.objects[objects[0].key]
        assert pq.read_table(BytesIO(peru.body)).column_names == ["id", "__record"]


def test_objects_of_many_values_are_written_before_they_fill_the_memory(store: MemoryStore) -> None:
    rows: list[Row] = [(0, offset, b"[%d]" % (offset % 2)) for offset in range(40)]
    location = cast(S3Location, MemoryLocation(store))
    writer = RawWriter(location, PIPELINE, TOPIC, "attempt", 1000, 40, partition_by=("country",))
    found = [
        row for result in writer([decoded(rows, [(str(row[1] % 10),) for row in rows])]) for row in result.to_pylist()
    ]
    objects = [LandedObject.model_validate_json(row["json"]) for row in found if row["kind"] == "object"]
    assert sum(item.records for item in objects) == 40
    assert len(objects) > 10, "ten open objects never have more than 40 bytes together"
    assert sorted(content(store, objects)) == rows


VALUES = st.one_of(st.none(), st.binary(max_size=12))


@given(
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 60)), VALUES),
    st.integers(1, 7),
    st.integers(1, 60),
    st.lists(st.integers(0, 60), max_size=4),
)
@settings(max_examples=200)
def test_every_record_lands_once_in_order_or_is_a_dead_letter(
    count_trials: CountTrials, records: dict[tuple[int, int], bytes | None], count: int, size: int, cuts: list[int]
) -> None:
    rows: list[Row] = [(partition, offset, value) for (partition, offset), value in sorted(records.items())]
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    store = MemoryStore()
    objects, letters = write(store, *(rows[start:end] for start, end in pairwise(edges)), count=count, size=size)
    formats = RecordFormat(None, "json", LARGEST)
    dead = [row for row in rows if isinstance(formats.convert(row[2]), Rejected)]
    assert content(store, objects) == [row for row in rows if row not in dead]
    assert [(letter.partition, letter.offset) for letter in letters] == [row[:2] for row in dead]
    assert all(item.records <= count for item in objects)
    assert all(ObjectName.parse(item.key) is not None for item in objects)
    count_trials("ways to cut records into raw objects", 1)


@pytest.mark.parametrize(
    ("offsets", "runs"),
    [
        ([], []),
        ([0], [(0, 1)]),
        ([5, 6, 7], [(5, 3)]),
        ([0, 2, 3, 9], [(0, 1), (2, 2), (9, 1)]),
    ],
)
def test_consecutive_runs(offsets: list[int], runs: list[tuple[int, int]]) -> None:
    assert list(consecutive_runs(offsets)) == runs
