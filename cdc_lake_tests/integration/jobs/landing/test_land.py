"""Landing of a real topic: every committed record is landed once, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import count
from random import Random
from typing import NoReturn, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import ContractError, ObjectConflictError, TopicRecreatedError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.value_rules import PLACEHOLDER
from cdc_lake.jobs.landing import land
from cdc_lake.jobs.landing.typed_rows import TypedLanding
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.integration.jobs.landing.landing_topic import Topic
from cdc_lake_tests.integration.jobs.no_spark import NoSpark
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 5

NewTopic = Callable[[int], AbstractContextManager[Topic]]


@pytest.fixture(scope="module")
def new_topic(job_engines: Engines) -> NewTopic:
    """Return a factory of topics; its argument is the number of partitions."""
    numbers = count(1)

    @contextmanager
    def make(partitions: int) -> Iterator[Topic]:
        topic = Topic(job_engines, f"land-{next(numbers)}", partitions)
        try:
            yield topic
        finally:
            topic.close()

    return make


def test_parquet_objects_have_typed_rows_and_unreadable_records_are_dead_letters(new_topic: NewTopic) -> None:
    left_out = event(7, "u", 207, note=PLACEHOLDER)
    events = [*(event(key, "c", 100 + key, note=f"note {key}") for key in range(120)), left_out]
    good = [json.dumps(each).encode() for each in events]
    unknown = json.dumps(event(1, "u", 300, colour="red")).encode()
    with new_topic(1) as topic:
        seen = TableSchema(version=0, table="public.orders", columns=COLUMNS, key=KEY)
        captured_schema.record(topic.store, topic.name, seen)
        topic.transaction({}, values=[*good[:60], b"no JSON", unknown, None, *good[60:]])
        spec = replace(topic.spec(), landing="parquet", typed=TypedLanding("public.orders", "zstd"))
        assert (topic.land(spec).records, [value for _, _, value in topic.landed()]) == (121, good)
        [item] = topic.manifests()[-1].objects
        stored = topic.store.get(item.key)
        assert stored is not None
        rows = pq.read_table(BytesIO(stored.body))
        assert rows.schema.field("qty").type == pa.int64()
        assert rows.column("id").to_pylist() == [*range(120), 7]
        assert rows.column("__offset").to_pylist() == list(item.offsets())
        assert rows.slice(120).drop_columns(["__record"]).to_pylist() == [
            {
                **{name.lower(): value for name, value in left_out.items()},
                "note": None,
                "__deleted": False,
                "__unchanged": ["note"],
                "__schema_version": 1,
                "__epoch": 0,
                "__partition": 0,
                "__offset": item.last,
            }
        ]
        letters = {letter.offset: letter for letter in dead_letters.letters(topic.store, topic.name)}
        assert [letters[offset].reason.partition(":")[0] for offset in sorted(letters)] == [
            "the record is not a JSON object",
            "the record has fields that are in no captured schema version",
            "the record has no value",
        ]
        assert dead_letters.value_of(topic.store, topic.name, letters[61]) == unknown


def test_committed_records_land_once_and_nothing_else(new_topic: NewTopic, count_trials: CountTrials) -> None:
    dice = Random(7)
    with new_topic(3) as topic:
        assert (topic.land().manifest, topic.land().manifest) == (1, None)  # an empty topic begins the chain
        for run in range(3):
            for _ in range(8):
                topic.transaction({p: dice.randint(0, 9) for p in range(3)}, commit=dice.random() < 0.6)
            before = len(topic.landed())
            report = topic.land(topic.spec(records_per_object=20))
            assert (report.manifest, report.records) == (run + 2, len(topic.committed) - before)
            assert sorted(topic.landed()) == sorted(topic.committed)
        count_trials("transactions landed, or skipped if aborted", 24)
        manifests = topic.manifests()
        items = [item for manifest in manifests for item in manifest.objects]
        assert all(item.records <= 20 for item in items)
        assert any(len(item.runs) > 1 for item in items), "no object spans a transaction marker"
        assert {ObjectName.parse(item.key) for item in items} == {
            ObjectName(topic.name, topic.name, item.partition, item.first, item.last, "json") for item in items
        }
        assert manifests[-1].next_offsets() == topic.engines.kafka.end_offsets(topic.name)
        again = land.run(cast(SparkSession, NoSpark()), topic.spec())
        assert (again.manifest, again.records) == (None, 0)
        assert again.seconds < 1


def test_a_long_range_of_one_partition_is_landed_by_several_tasks(
    new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(land, "_RECORDS_PER_TASK", 10)
    with new_topic(1) as topic:
        for before, after in ((30, 30), (40, 7)):
            topic.transaction({0: before})
            topic.transaction({0: 5}, commit=False)
            topic.transaction({0: after})
            report = topic.land()
            assert (report.records, report.objects) == (before + after, 2)
            assert sorted(topic.landed()) == sorted(topic.committed)
        assert topic.manifests()[-1].next_offsets() == topic.engines.kafka.end_offsets(topic.name)


def test_a_topic_with_a_transaction_open_in_one_partition_is_not_settled(new_topic: NewTopic) -> None:
    """The end of a transaction over two partitions can be visible in one of them before the other."""
    with new_topic(2) as topic:
        kafka = topic.engines.kafka
        topic.transaction({0: 3, 1: 1})
        opened = topic.open_transaction({1: 4})
        ends, settled = topic_state.settled_ends(kafka, topic.name)
        assert (ends, settled) == (kafka.end_offsets(topic.name), False)
        with pytest.raises(ContractError, match=f"Cannot read topic {topic.name} to its end"):
            topic_state.require_settled(kafka, topic.name, 0.2)
        assert topic.land().records == 4
        topic.end(opened)
        assert topic_state.require_settled(kafka, topic.name, 5) == kafka.written_offsets(topic.name)
        assert topic.land().records == 4
        assert sorted(topic.landed()) == sorted(topic.committed)


def test_open_transactions_are_landed_later_and_aborted_ones_are_skipped(new_topic: NewTopic) -> None:
    with new_topic(1) as topic:
        topic.transaction({0: 3})
        opened = topic.open_transaction({0: 4})
        assert topic.land().records == 3
        assert topic.land().manifest is None
        topic.end(opened)
        assert topic.land().records == 4
        topic.transaction({0: 5}, commit=False)
        report = topic.land()
        assert (report.manifest, report.records, report.objects) == (3, 0, 0)
        assert sorted(topic.landed()) == sorted(topic.committed)


def test_values_that_cannot_be_landed_are_dead_letters(new_topic: NewTopic) -> None:
    with new_topic(1) as topic:
        topic.transaction({0: 2}, values=[None, b"", b"{\n}"])
        report = topic.land()
        assert (report.records, report.dead_letters) == (2, 3)
        assert len(list(dead_letters.keys(topic.store, topic.name))) == 3
        assert topic.manifests()[0].dead_letters == 3
        assert sorted(topic.landed()) == sorted(topic.committed)


def test_a_topic_that_lost_its_tail_and_was_written_again_is_refused(new_topic: NewTopic) -> None:
    """A re-created topic under the old topic's id stands for a topic whose end was lost and written again."""
    with new_topic(2) as topic:
        kafka = topic.engines.kafka
        topic.transaction({0: 10, 1: 3})
        topic.transaction({0: 2}, commit=False)
        assert topic.land().records == 13
        [manifest] = topic.manifests()
        assert {p: last.offset for p, last in manifest.last_records().items()} == {0: 9, 1: 2}
        topic.transaction({1: 1})
        assert topic.land().records == 1
        topic_id, landed = topic.spec().topic_id, dict(topic.chain.read(2).next_offsets())
        values = [value for partition, _, value in sorted(topic.landed()) if partition == 0]
        kafka.delete_topic(topic.name)
        kafka.ensure_topic(topic.name, 2)
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        for value in [*values, *(b'{"rewritten": %d}' % n for n in range(10))]:
            producer.produce(topic.name, value=value, partition=0)
        for number in range(10):
            producer.produce(topic.name, value=b'{"rewritten": %d}' % number, partition=1)
        assert producer.flush(30) == 0
        rewritten = replace(topic.spec(), topic_id=topic_id)
        # Partition 0 has its last landed record at the same offset, and records at the offsets of the markers after it.
        message = rf"partition 0 lost .* offset 9, and the topic has another record at offset {landed[0] - 1}"
        with pytest.raises(TopicRecreatedError, match=message):
            topic.land(replace(rewritten, ends={**rewritten.ends, 1: landed[1]}))
        with pytest.raises(TopicRecreatedError, match=r"partition 1 lost .* another record .*cdc-lake resnapshot"):
            topic.land(replace(rewritten, ends={**rewritten.ends, 0: landed[0]}))
        assert topic.chain.length() == 2


@pytest.mark.parametrize("rival_lands", ["less", "the same", "more"])
def test_two_concurrent_runs_land_every_record_once(
    new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch, count_trials: CountTrials, rival_lands: str
) -> None:
    """The rival run commits between the objects and the manifest of this run."""
    write = land._write
    with new_topic(2) as topic:
        topic.transaction({0: 6, 1: 6})
        ours = topic.spec(records_per_object=4)
        if rival_lands == "less":
            theirs = replace(topic.spec(), ends={0: 4, 1: 2})
        else:
            if rival_lands == "more":
                topic.transaction({0: 5})
            theirs = topic.spec(records_per_object=4)

        def slow(*arguments: object) -> object:
            written = write(*arguments)  # type: ignore[arg-type]  # passed on as they come
            monkeypatch.setattr(land, "_write", write)
            assert topic.land(theirs).manifest == 1
            return written

        monkeypatch.setattr(land, "_write", slow)
        report = topic.land(ours)
        assert report.manifest == (2 if rival_lands == "less" else None)
        assert sorted(topic.landed()) == sorted(topic.committed)
        assert topic.chain.read(1).attempt == theirs.attempt
        assert topic.land().manifest is None
        count_trials("concurrent landing runs", 1)


def test_objects_of_an_interrupted_run_are_reused(new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(_: Chain, manifest: Manifest) -> NoReturn:
        raise KeyboardInterrupt(manifest.attempt)

    with new_topic(1) as topic:
        topic.transaction({0: 10})
        cut = topic.spec(records_per_object=4)
        with monkeypatch.context() as patch:
            patch.setattr(Chain, "append", die)
            with pytest.raises(KeyboardInterrupt):
                topic.land(cut)
        assert topic.manifests() == []
        topic.transaction({0: 3})
        assert topic.land(topic.spec(records_per_object=4)).records == 13
        assert sorted(topic.landed()) == sorted(topic.committed)
        found = [topic.store.get(item.key) for item in topic.manifests()[0].objects]
        assert [stored is not None and stored.metadata["attempt"] == cut.attempt for stored in found[:2]] == [True] * 2


def test_a_conflicting_object_and_a_recreated_topic_have_their_own_errors(new_topic: NewTopic) -> None:
    with new_topic(1) as topic:
        topic.transaction({0: 2})
        key = ObjectName(topic.name, topic.name, 0, 0, 1, "json").key
        topic.store.put_new(key, b"another writer's\n")
        with pytest.raises(ObjectConflictError) as caught:
            topic.land()
        assert caught.value.user_message.startswith(f"Cannot write object {key}: it exists")
        topic.store.delete([key])
        assert topic.land().records == 2
        topic.engines.kafka.delete_topic(topic.name)
        topic.engines.kafka.ensure_topic(topic.name, 1)
        with pytest.raises(TopicRecreatedError, match="was deleted and re-created"):
            topic.land()
