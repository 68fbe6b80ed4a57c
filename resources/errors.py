"""The exceptions of the resources, named after the failure."""

# ruff: noqa: N818 - names such as SlotBusy need no suffix "Error"

from __future__ import annotations


class ResourceError(Exception):
    """An external system is not in the required state; the message is written for users."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Create an error.

        Args:
            message: what happened, and to which object.
            hint: what to do next, in a sentence; usually the resource's own `hint`.
        """
        self.message = message
        self.hint = hint
        super().__init__(message, hint)

    @property
    def user_message(self) -> str:
        """The message with its hint, for display instead of a traceback."""
        return f"{self.message} {self.hint}".strip()

    def __str__(self) -> str:
        """Return `user_message`, so that logs also contain the hint."""
        return self.user_message


class Unreachable(ResourceError):
    """A server did not answer, or not in time."""


class LeaderMoving(Unreachable):
    """A Kafka partition has no leader at the moment: after the topic's creation, or while brokers change."""


class AccessRefused(ResourceError):
    """A server rejected the user, the password or the operation."""


class WaitTimedOut(ResourceError):
    """A condition was not met within the timeout."""


class DatabaseMissing(ResourceError):
    """The PostgreSQL server has no such database."""


class TableMissing(ResourceError):
    """The database has no such table, or the user cannot see it."""


class QueryRejected(ResourceError):
    """PostgreSQL reports an error of a query; `message` is PostgreSQL's."""


class PublicationConflict(ResourceError):
    """An existing publication does not publish all changes that a pipeline needs."""


class SlotBusy(ResourceError):
    """A replication slot cannot be dropped because its consumer reconnects repeatedly."""


class TopicMissing(ResourceError):
    """Kafka has no such topic, or no such partition of it."""


class TopicContractBroken(ResourceError):
    """A topic has settings that would lose or reorder records."""


class OffsetsExpired(ResourceError):
    """Requested offsets are no longer in the topic (retention), or have not been written yet."""


class KafkaRequestFailed(ResourceError):
    """A Kafka broker rejected a request, for a reason that has no exception of its own."""


class ConnectRequestFailed(ResourceError):
    """Kafka Connect rejected a request."""


class ConnectorConfigInvalid(ResourceError):
    """A connector's configuration was rejected or is incomplete."""


class ConnectorMissing(ResourceError):
    """Kafka Connect has no connector of that name."""


class ConnectorFailed(ResourceError):
    """A connector or one of its tasks is FAILED."""


class JobFailed(ResourceError):
    """A remote Spark job failed or was cancelled, or its cancellation failed."""
