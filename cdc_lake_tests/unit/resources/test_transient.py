"""What passes by itself is waited for: a rebalance of Connect's workers, a partition without a leader."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from resources import kafka_offsets
from resources.errors import LeaderMoving
from resources.kafka_client import Broker
from resources.kafka_connect_rest import _rebalances
from resources.kafka_topics import TopicInfo


@pytest.mark.parametrize(
    ("status", "message", "again"),
    [
        (409, "Cannot complete request momentarily due to stale configuration", True),
        (503, "", True),
        (500, "Request cannot be completed because a rebalance is expected", True),
        (500, "Could not read properties from file", False),
        (404, "Connector x not found", False),
        (200, "rebalance", False),
    ],
)
def test_a_rebalance_by_any_status(status: int, message: str, again: bool) -> None:
    assert _rebalances(httpx.Response(status, json={"error_code": status, "message": message})) is again


class Moving:
    """An admin client whose partition has no leader at first."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    def list_offsets(self, partitions: dict[TopicPartition, object], **_: object) -> dict[TopicPartition, Future[Any]]:
        future: Future[Any] = Future()
        self.refusals -= 1
        if self.refusals >= 0:
            future.set_exception(KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)))
        else:
            future.set_result(type("Found", (), {"offset": 7}))
        return dict.fromkeys(partitions, future)


@pytest.fixture(autouse=True)
def one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_offsets, "describe", lambda *_: TopicInfo("t", "id", 1))


def test_a_leader_that_comes() -> None:
    assert kafka_offsets.end_offsets(Broker("nowhere:1", timeout_seconds=5), Moving(3), "t") == {0: 7}  # type: ignore[arg-type]


def test_a_leader_that_does_not_come() -> None:
    with pytest.raises(LeaderMoving, match="choosing a leader: read the offsets of topic t"):
        kafka_offsets.end_offsets(Broker("nowhere:1", timeout_seconds=0.3), Moving(1000), "t")  # type: ignore[arg-type]
