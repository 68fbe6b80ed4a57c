"""Records that were not landed are lost from Kafka: expired, or with the topic; landing stops, a resnapshot mends."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake_tests.faults.small_pipeline import Stall
from cdc_lake_tests.trial_counts import Tried


def expire(stall: Stall) -> None:
    """Retention removes everything that the topic has."""
    kafka = stall.resources["kafka"]
    ends = [TopicPartition(stall.table.topic, p, at) for p, at in kafka.end_offsets(stall.table.topic).items()]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.delete_records(ends).values():
        future.result(30)


def recreate(stall: Stall) -> None:
    """The topic is deleted, and made again by who comes first."""
    kafka = stall.resources["kafka"]
    stall.stop_connector()
    kafka.delete_topic(stall.table.topic)
    kafka.ensure_topic(stall.table.topic, stall.flow.spec.stream.partitions, stall.flow.topic_settings({}))


@pytest.mark.parametrize(
    ("lose", "said"),
    [(expire, "expired before they were landed"), (recreate, "was deleted and (made again|re-created)")],
    ids=["expired", "made_again"],
)
def test_lost_before_it_was_landed(stall: Stall, tried: Tried, lose: object, said: str) -> None:
    assert callable(lose)
    stall.change("lost", [stall.at_source()[0][0]])
    stall.barrier()
    lose(stall)
    with pytest.raises(ContractError, match=rf"{said}.*cdc-lake resnapshot {stall.flow.name}"):
        stall.materialise("raw")
    stall.resnapshot(said)
    assert stall.in_lake() == stall.at_source()
    chain = list(Chain(stall.store, stall.flow.name, stall.table.topic).since(0))
    [opening] = [one for one in chain if one.opens is not None and one.epoch == stall.epoch.number]
    assert said in (opening.opens or "")
    stall.change("afterwards", [stall.at_source()[0][0]])
    stall.carry()
    tried("losses of the source's stream, each told and mended", 1)
