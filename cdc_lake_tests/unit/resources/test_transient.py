"""Temporary errors are retried: a rebalance of Connect's workers, a partition without a leader."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from resources.connect.rest_client import _is_not_ready
from resources.errors import KafkaRequestFailed, LeaderMoving
from resources.kafka import partition_offsets
from resources.kafka.client import Broker


@pytest.mark.parametrize(
    ("status", "message", "retried"),
    [
        (409, "Cannot complete request momentarily due to stale configuration", True),
        (503, "", True),
        (500, "Request cannot be completed because a rebalance is expected", True),
        (500, "Could not read properties from file", False),
        (404, "Connector x not found", False),
        (200, "rebalance", False),
    ],
)
def test_a_rebalance_is_recognised_by_status_or_message(status: int, message: str, retried: bool) -> None:
    assert _is_not_ready(httpx.Response(status, json={"error_code": status, "message": message})) is retried


class FakeAdmin:
    """An admin client whose first calls fail with this error code."""

    def __init__(self, failures_left: int, code: int = KafkaError.NOT_LEADER_FOR_PARTITION) -> None:
        self.failures_left = failures_left
        self.code = code

    def list_offsets(self, partitions: dict[TopicPartition, object], **_: object) -> dict[TopicPartition, Future[Any]]:
        future: Future[Any] = Future()
        self.failures_left -= 1
        if self.failures_left >= 0:
            future.set_exception(KafkaException(KafkaError(self.code)))
        else:
            future.set_result(type("Found", (), {"offset": 7}))
        return dict.fromkeys(partitions, future)


@pytest.fixture(autouse=True)
def one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_offsets, "partitions", lambda *_: 1)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,  # the client knows a newer leader than the broker
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    ],
)
def test_offsets_are_read_once_there_is_a_leader(code: int) -> None:
    broker = Broker("nowhere:1", timeout_seconds=5)
    assert partition_offsets.end_offsets(broker, FakeAdmin(3, code), "t") == {0: 7}  # type: ignore[arg-type]


def test_other_errors_are_not_retried() -> None:
    client = FakeAdmin(3, KafkaError.INVALID_REQUEST)
    with pytest.raises(KafkaRequestFailed):
        partition_offsets.end_offsets(Broker("nowhere:1", timeout_seconds=5), client, "t")  # type: ignore[arg-type]
    assert client.failures_left == 2


def test_a_lasting_lack_of_a_leader_is_reported() -> None:
    with pytest.raises(LeaderMoving, match=r"Cannot read the offsets of topic t: Kafka at .* is electing a leader"):
        partition_offsets.end_offsets(Broker("nowhere:1", timeout_seconds=0.3), FakeAdmin(1000), "t")  # type: ignore[arg-type]
