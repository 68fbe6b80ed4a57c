"""Records are lost from Kafka before they are landed, by expiry or with the topic: landing stops until a resnapshot."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake_tests.faults.stream.small_pipeline import SmallPipeline
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 1


def expire(pipeline: SmallPipeline) -> None:
    """Remove all records of the topic, as retention does."""
    kafka = pipeline.resources["kafka"]
    ends = [TopicPartition(pipeline.table.topic, p, at) for p, at in kafka.end_offsets(pipeline.table.topic).items()]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.delete_records(ends).values():
        future.result(30)


def recreate(pipeline: SmallPipeline) -> None:
    """Delete the topic, and create it again."""
    kafka = pipeline.resources["kafka"]
    pipeline.stop_connector()
    kafka.delete_topic(pipeline.table.topic)
    kafka.ensure_topic(pipeline.table.topic, pipeline.loaded.spec.stream.partitions, pipeline.loaded.topic_settings({}))


@pytest.mark.parametrize(
    ("lose", "message"),
    [(expire, "expired before they were landed"), (recreate, "was deleted and re-created")],
    ids=["expired", "recreated"],
)
def test_records_lost_before_they_are_landed_are_reported(
    pipeline: SmallPipeline, count_trials: CountTrials, lose: object, message: str
) -> None:
    assert callable(lose)
    pipeline.change("lost", [pipeline.at_source()[0][0]])
    pipeline.barrier()
    lose(pipeline)
    with pytest.raises(ContractError, match=rf"{message}.*cdc-lake resnapshot {pipeline.loaded.name}"):
        pipeline.materialise("raw")
    pipeline.resnapshot(message)
    assert pipeline.in_lake() == pipeline.at_source()
    chain = list(Chain(pipeline.store, pipeline.loaded.name, pipeline.table.topic).since(0))
    [opening] = [one for one in chain if one.opens is not None and one.epoch == pipeline.epoch.number]
    assert message in (opening.opens or "")
    pipeline.change("afterwards", [pipeline.at_source()[0][0]])
    pipeline.land_and_compare()
    count_trials("losses of the source's stream, reported and repaired", 1)
