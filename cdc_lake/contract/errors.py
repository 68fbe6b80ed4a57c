"""What can go wrong between the stages: each error says what happened, to what, and what to do."""

from __future__ import annotations


class ContractError(Exception):
    """A stage found something that the contract rules out; nothing was changed.

    Attributes:
        user_message: what happened, to which object, and what to do next.
    """

    def __init__(self, user_message: str) -> None:
        super().__init__(user_message)
        self.user_message = user_message


class ManifestGapError(ContractError):
    """Two manifests do not meet: offsets are missing or stand twice."""


class TopicRecreatedError(ContractError):
    """The topic has another id than the one that was landed, or lost records that were landed."""


class SourceBrokenError(ContractError):
    """The stream from the source can't be continued: changes in between are lost, or can't be ruled out to be."""


class EpochUnopenedError(ContractError):
    """Another epoch of the source has begun than the one that is landed."""


class OffsetsExpiredError(ContractError):
    """Retention removed records that were not landed yet."""


class SnapshotNotAppliedError(ContractError):
    """The lake table does not have the snapshot that a sweep would delete rows by."""


class RaceLostError(ContractError):
    """Another attempt committed first; this one starts over from the new end of the chain."""


class ObjectConflictError(ContractError):
    """An object exists under a name that this attempt needs, with other content."""


class ObjectDamagedError(ContractError):
    """A manifested object is missing or differs from what its manifest says."""


class ForeignObjectError(ContractError):
    """An object lies below a sink connector's prefix that no such connector, or not this one, wrote."""


class UnreadableEventError(ContractError):
    """A message is none of S3's about objects."""


class StoreUnreachableError(ContractError):
    """The object store does not answer, after all retries: what was asked last may be done or not."""


class StoreRefusedError(ContractError):
    """The object store answered, and refuses: credentials, permissions, a missing bucket, a fault of its own."""


class LeaseHeldError(ContractError):
    """Another writer holds the table."""


class LeaseLostError(ContractError):
    """This writer's lease expired and another one took it: it must not commit."""


class SchemaUnexplainedError(ContractError):
    """Records carry a column that no captured schema explains."""


class SchemaChangeError(ContractError):
    """The source table changed in a way that can't be applied to what is stored."""


class LocalTimeError(ContractError):
    """A Hudi table names its commits in local time: the order of commits can go back."""


class TableAheadError(ContractError):
    """A Hudi table's newest instant is later than now: a new commit would sort before it."""


class UnsupportedTypeError(ContractError):
    """A source column has a type that the lake has no mapping for."""


class TooManyDeadLettersError(ContractError):
    """So many records of one batch can't be read that the fault is likely not in the records."""


class SourceUnreadableError(ContractError):
    """The source's rows can't be read at the point that they were to be compared at."""


class SecretUnreadableError(ContractError):
    """A secret that a job needs can't be read where it is kept."""


class NotPortableError(ContractError):
    """A job's spec or report can't be written as JSON, or read from it."""
