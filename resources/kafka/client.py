"""Clients of a Kafka broker, and translation of librdkafka's errors to ResourceErrors."""

from __future__ import annotations

import logging
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from resources.errors import (
    AccessRefused,
    KafkaRequestFailed,
    LeaderMoving,
    OffsetsExpired,
    ResourceError,
    TopicMissing,
    Unreachable,
)
from resources.kafka import msk_iam
from resources.kafka.msk_iam import TokenSource

Answer = TypeVar("Answer")

_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
_DOWN = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError.REQUEST_TIMED_OUT,
}
# Errors while brokers and clients do not yet agree on a new topic or on a partition's leader. Kafka's protocol marks
# all of these as retriable (https://kafka.apache.org/protocol.html#protocol_error_codes).
_MOVING = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}
_REFUSED = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
_RANGE = {KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET}

# librdkafka repeats "connection refused" on stderr as long as a client exists; the raised errors contain it once.
_log = logging.getLogger("resources.kafka.resource")
_log.setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Broker:
    """The address of a Kafka cluster, and the settings of its clients."""

    bootstrap: str
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 10.0
    hint: str = ""
    tokens: TokenSource | None = field(default=None, repr=False)
    """Creates the tokens that clients authenticate with. None: clients authenticate by `settings`, or not at all."""

    def admin(self) -> AdminClient:
        """Return a new admin client."""
        return AdminClient({**self._common(), "log_level": 0}, logger=_log)

    def consumer(self, *, read_committed: bool = True) -> Consumer:
        """Return a new consumer that commits no offsets; the caller assigns partitions at explicit offsets."""
        return Consumer(
            {
                **self._common(),
                # librdkafka requires a group id; it has no effect, since the consumer is assigned and never subscribes.
                "group.id": f"cdc-lake-reader-{uuid.uuid4()}",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                # A missing offset is an error: the consumer must not continue at another offset.
                "auto.offset.reset": "error",
                "isolation.level": "read_committed" if read_committed else "read_uncommitted",
                # At the end of a range, the broker waits this long for new records, which are not read.
                "fetch.wait.max.ms": 5,
                # librdkafka's defaults hold 64 MB and 100,000 records of a partition, also beyond the end of a range.
                "queued.max.messages.kbytes": 16 * 1024,
                "queued.min.messages": 10_000,
                # How long librdkafka waits before it fetches again when the queue is full. With the default of 1000 ms,
                # a landing waits for most of its time.
                "fetch.queue.backoff.ms": 5,
                "check.crcs": True,
            },
            logger=_log,
        )

    def producer(self) -> Producer:
        """Return a new producer, which is idempotent and waits for all replicas."""
        return Producer({**self._common(), "enable.idempotence": True, "acks": "all"}, logger=_log)

    def require_reachable(self) -> None:
        """Wait until one of the bootstrap addresses accepts a connection.

        Without this check, librdkafka retries a refused connection until the request's timeout.

        Raises:
            ResourceError: an address is not host:port.
            Unreachable: no address accepts a connection in three attempts.
        """
        attempts = Retrying(
            stop=stop_after_attempt(3), wait=wait_fixed(0.3), retry=retry_if_exception_type(OSError), reraise=True
        )
        refusals = []
        for address in self.bootstrap.split(","):
            host, _, port = address.strip().rpartition(":")
            if not host or not port.isdecimal():
                raise ResourceError(f"Cannot use broker address {address.strip()!r}: it is not host:port.", self.hint)
            try:
                attempts(lambda at: socket.create_connection(at, self.timeout_seconds).close(), (host, int(port)))
            except OSError as error:
                refusals.append(f"{address.strip()}: {error}")
            else:
                return
        raise Unreachable(f"Cannot reach Kafka: {'; '.join(refusals)}.", self.hint)

    def _common(self) -> dict[str, Any]:
        signing: dict[str, Any] = {}
        if self.tokens is not None:
            # librdkafka turns an error in its callback into a timeout without a cause. This call raises the error.
            self.tokens("")
            signing = {**msk_iam.CLIENT, "oauth_cb": self.tokens}
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": "cdc-lake",
            "socket.connection.setup.timeout.ms": int(min(self.timeout_seconds, 10) * 1000),
            **signing,
            **self.settings,
        }

    def answer(self, future: Future[Answer], about: str) -> Answer:
        """Return the result of an admin request; `about` completes "Cannot …" in errors: `create topic orders`."""
        with self.translate_errors(about):
            try:
                return future.result(timeout=self.timeout_seconds + 5)
            except FutureTimeoutError as error:
                raise Unreachable(f"Cannot {about}: Kafka at {self.bootstrap} did not answer.", self.hint) from error

    @contextmanager
    def translate_errors(self, about: str) -> Iterator[None]:
        """Raise ResourceErrors for librdkafka's errors in the block; `about` completes "Cannot …" in them."""
        try:
            yield
        except KafkaException as error:
            raise self.translated(error.args[0], about) from error

    def translated(self, error: KafkaError, about: str) -> ResourceError:
        """Return the ResourceError for an error of librdkafka."""
        code, text = error.code(), error.str()
        if code in _MISSING:
            hint = "`cdc-lake topic ls` lists the topics."
            return TopicMissing(f"Cannot {about}: Kafka at {self.bootstrap} has no such topic or partition.", hint)
        if code in _MOVING:
            return LeaderMoving(f"Cannot {about}: Kafka at {self.bootstrap} is electing a leader ({text}).", self.hint)
        if code in _DOWN:
            return Unreachable(f"Cannot {about}: Kafka at {self.bootstrap} did not answer ({text}).", self.hint)
        if code in _REFUSED:
            return AccessRefused(f"Cannot {about}: Kafka at {self.bootstrap} refused access ({text}).", self.hint)
        if code in _RANGE:
            return OffsetsExpired(f"Cannot {about}: the topic does not contain the requested offset ({text}).")
        return KafkaRequestFailed(f"Cannot {about}: Kafka at {self.bootstrap} returned an error ({text}).")
