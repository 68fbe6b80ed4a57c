"""A transaction that the coordinator does not know hangs after a kill of the broker, and `up` aborts it.

The state is made by the loss of the coordinator's own topic: the broker is killed in between its two writes too rarely.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # the stubs lack the re-export

from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from infra.local.components.hanging_transactions import OFFSETS_TOPIC, HangingTransaction, parse
from infra.local.stack.attach import load_endpoints
from infra.local.stack.process import find

EVENTS = "events"


def read_committed(bootstrap: str, topic: str) -> bytes | None:
    """Return the first record of a topic that a reader at read_committed gets; None if it gets none in 30 s."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
        return None if message is None else message.value()
    finally:
        consumer.close()


@pytest.mark.timeout(300)
def test_records_after_a_hanging_transaction_can_be_read_again() -> None:
    with scratch_home() as home, running_stack(home, ["kafka"]) as stack:
        bootstrap = load_endpoints(home).kafka_bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for created in admin.create_topics([NewTopic(EVENTS, 1), NewTopic(OFFSETS_TOPIC, 1)]).values():
            created.result(30)
        task = Producer({"bootstrap.servers": bootstrap, "transactional.id": "task"})
        task.init_transactions(30)
        task.begin_transaction()
        for topic in (EVENTS, OFFSETS_TOPIC):
            task.produce(topic, b"lost")
        assert task.flush(30) == 0
        broker = next(found.process for found in find(home) if found.component == "kafka")
        broker.kill()
        psutil.wait_procs([broker], timeout=30)
        forget_transactions(home / "kafka" / "data")

        stack.up(["kafka"])
        later = Producer({"bootstrap.servers": bootstrap})
        for topic in (EVENTS, OFFSETS_TOPIC):
            later.produce(topic, b"later")
        assert later.flush(30) == 0
        assert [read_committed(bootstrap, topic) for topic in (EVENTS, OFFSETS_TOPIC)] == [b"later", b"later"]


def forget_transactions(data: Path) -> None:
    """Delete what the coordinator has stored."""
    partitions = list(data.glob("__transaction_state-*"))
    assert partitions
    for partition in partitions:
        for file in partition.glob("0*"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()


def test_the_tools_table_is_read_without_the_log_above_it() -> None:
    output = (
        "2026-11-26 WARN a message\n"
        "Topic   \tPartition\tProducerId\tProducerEpoch\tCoordinatorEpoch\tStartOffset\tLastTimestamp\tDuration(min)\n"
        "events  \t0        \t1         \t2608         \t4               \t14553      \t1795721701752\t36           \n"
    )
    assert list(parse(output)) == [HangingTransaction("events", 0, 1, 14553)]
    assert list(parse("")) == []
