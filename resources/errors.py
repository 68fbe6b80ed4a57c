"""The errors of the resources, named for what happened."""

# ruff: noqa: N818 - a class that says what happened (SlotBusy) needs no "Error" behind it

from __future__ import annotations


class ResourceError(Exception):
    """Something outside of this process isn't as it has to be; the message is written for people."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep the message and the sentence that says what to do next.

        Args:
            message: what happened, and to which object.
            hint: a sentence to append, usually the resource's own `hint`.
        """
        self.message = message
        self.hint = hint
        super().__init__(message, hint)

    @property
    def user_message(self) -> str:
        """The message with its hint: what to show instead of a traceback."""
        return f"{self.message} {self.hint}".strip()

    def __str__(self) -> str:
        """Return `user_message`, so that logs say what to do as well."""
        return self.user_message


class Unreachable(ResourceError):
    """A server didn't answer, or not in time."""


class LeaderMoving(Unreachable):
    """A Kafka partition has no leader at this moment: right after the topic was made, or while brokers change."""


class AccessRefused(ResourceError):
    """A server answered, and refuses this user, password or permission."""


class WaitTimedOut(ResourceError):
    """Something that was waited for didn't happen within its bound."""


class DatabaseMissing(ResourceError):
    """The PostgreSQL server has no such database."""


class TableMissing(ResourceError):
    """The database has no such table, or this user can't see it."""


class PublicationConflict(ResourceError):
    """A publication exists, and holds back changes that a pipeline needs."""


class SlotBusy(ResourceError):
    """A replication slot can't be dropped, because its consumer comes back again and again."""


class TopicMissing(ResourceError):
    """Kafka has no such topic, or no such partition of it."""


class TopicContractBroken(ResourceError):
    """A topic exists with settings that would lose or reorder records."""


class OffsetsExpired(ResourceError):
    """Records that were asked for by offset are no longer in the topic (retention), or not yet."""


class KafkaRequestFailed(ResourceError):
    """The broker refused a request for another reason."""


class ConnectRequestFailed(ResourceError):
    """Kafka Connect refused a request."""


class ConnectorConfigInvalid(ResourceError):
    """A connector's configuration was refused, by field, or can't be completed."""


class ConnectorMissing(ResourceError):
    """Kafka Connect has no connector of that name."""


class ConnectorFailed(ResourceError):
    """A connector or one of its tasks is FAILED."""


class JobFailed(ResourceError):
    """A Spark job that runs elsewhere ended without a report."""
