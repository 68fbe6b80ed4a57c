"""What passes by itself is waited for: a rebalance of Connect's workers, a partition without a leader."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from resources.connect.rest_client import _rebalances
from resources.errors import KafkaRequestFailed, LeaderMoving
from resources.kafka import partition_offsets
from resources.kafka.client import Broker
from resources.kafka.topic_settings import TopicInfo


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

    def __init__(self, refusals: int, code: int = KafkaError.NOT_LEADER_FOR_PARTITION) -> None:
        self.refusals = refusals
        self.code = code

    def list_offsets(self, partitions: dict[TopicPartition, object], **_: object) -> dict[TopicPartition, Future[Any]]:
        future: Future[Any] = Future()
        self.refusals -= 1
        if self.refusals >= 0:
            future.set_exception(KafkaException(KafkaError(self.code)))
        else:
            future.set_result(type("Found", (), {"offset": 7}))
        return dict.fromkeys(partitions, future)


@pytest.fixture(autouse=True)
def one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_offsets, "describe", lambda *_: TopicInfo("t", "id", 1))


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,  # the broker has not heard of the leader that the client knows of
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    ],
)
def test_a_leader_that_comes(code: int) -> None:
    broker = Broker("nowhere:1", timeout_seconds=5)
    assert partition_offsets.end_offsets(broker, Moving(3, code), "t") == {0: 7}  # type: ignore[arg-type]


def test_a_refusal_that_lasts_is_not_tried_again() -> None:
    client = Moving(3, KafkaError.INVALID_REQUEST)
    with pytest.raises(KafkaRequestFailed):
        partition_offsets.end_offsets(Broker("nowhere:1", timeout_seconds=5), client, "t")  # type: ignore[arg-type]
    assert client.refusals == 2


def test_a_leader_that_does_not_come() -> None:
    with pytest.raises(LeaderMoving, match="choosing a leader: read the offsets of topic t"):
        partition_offsets.end_offsets(Broker("nowhere:1", timeout_seconds=0.3), Moving(1000), "t")  # type: ignore[arg-type]
