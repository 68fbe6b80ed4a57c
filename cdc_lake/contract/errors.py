"""Errors of the modules in cdc_lake/contract and of the code that uses them, and phrases that their messages share."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lake.contract.plurals import counted


class ContractError(Exception):
    """An error with a message for users: the base of the errors of cdc_lake/contract and its callers.

    Attributes:
        user_message: what happened, to which object, and what to do next.
    """

    def __init__(self, user_message: str) -> None:
        super().__init__(user_message)
        self.user_message = user_message


def reset_advice(pipeline: str) -> str:
    """Return the advice to build a pipeline again, for the end of a message: "run `cdc-lake reset …"."""
    return (
        f"run `cdc-lake reset {pipeline}` (it deletes the pipeline's topics, raw objects, dead letters and lake "
        "tables) and materialise the pipeline"
    )


def parse_fault(error: Exception) -> str:
    """Return the cause of an error in parsed content, in words for a message: a KeyError names the missing field."""
    if isinstance(error, KeyError):
        return f"no field {error.args[0]}"
    if isinstance(error, TypeError | AttributeError):
        return "a value has the wrong type"
    return (str(error).splitlines() or ["it ends too early"])[0]


class ManifestGapError(ContractError):
    """The manifests of a topic are not contiguous, or one of them belongs to another attempt, epoch or chain."""


class TopicRecreatedError(ContractError):
    """The topic's id differs from the one in the manifests, or the topic lost records that were landed."""


class SourceBrokenError(ContractError):
    """The stream from the source cannot be continued: changes are lost, or may be lost."""


class EpochNotLandedError(ContractError):
    """The source has a new epoch, and the manifests do not contain its first offsets yet."""


class OffsetsExpiredError(ContractError):
    """Kafka's retention removed records that were not landed yet."""


class SnapshotNotAppliedError(ContractError):
    """Rows that a new snapshot lacks cannot be deleted from a lake table yet: it has not applied the snapshot."""


class TableIncompleteError(ContractError):
    """A table is being added to a running pipeline, and its topic does not have all rows yet."""


class RaceLostError(ContractError):
    """Another attempt wrote the object first. Nothing is lost; the caller, or the user, tries again."""


class ObjectConflictError(ContractError):
    """An object with other content exists at the key that this attempt writes."""


class ObjectDamagedError(ContractError):
    """A stored object is missing, is unreadable, or differs from its manifest."""


class ForeignObjectError(ContractError):
    """An object below a sink connector's prefix has a name or content that the connector does not write."""


class UnreadableEventError(ContractError):
    """A message is not an S3 event notification."""


class StoreUnreachableError(ContractError):
    """The object store does not answer, after all retries. The last request may or may not have succeeded."""


class StoreRefusedError(ContractError):
    """The object store rejected a request: credentials, permissions, a missing bucket, or an internal error."""


class LeaseHeldError(ContractError):
    """Another writer holds the lease."""


class LeaseLostError(ContractError):
    """This writer's lease expired or was taken by another writer. This writer must not commit."""


class UnknownColumnsError(ContractError):
    """Records, or the source table, have columns that differ from the captured schema versions."""


class SchemaChangeError(ContractError):
    """The source table changed in a way that cannot be applied to the stored rows."""


class LocalTimeError(ContractError):
    """The instants of a Hudi table's commits are in local time, so their order is not reliable."""


class TableAheadError(ContractError):
    """A Hudi table's newest instant is later than now: a new commit would sort before it."""


class UnsupportedTypeError(ContractError):
    """A source column has a name or type that the lake cannot hold."""


class SchemaRegistryError(ContractError):
    """The schema registry did not answer in time, or did not return what was requested."""


class TooManyDeadLettersError(ContractError):
    """One batch has more dead letters than the limit allows, so they probably have a common cause."""


class TopicUnreadableError(ContractError):
    """Records of a topic cannot be read: Kafka refused, did not answer in time, or no longer has them."""


class SourceUnreadableError(ContractError):
    """The source's rows cannot be read at the exported snapshot."""


class TablesNotComparedError(ContractError):
    """Some lake tables could not be compared with the source; `reasons` has the cause by lake table."""

    def __init__(self, pipeline: str, reasons: Mapping[str, str]) -> None:
        causes = "; ".join(f"{table}: {reason.rstrip('.')}" for table, reason in reasons.items())
        super().__init__(
            f"Cannot compare {counted(len(reasons), 'lake table')} of pipeline {pipeline} with the source: {causes}. "
            f"Correct {'the cause' if len(reasons) == 1 else 'the causes'} and run `cdc-lake verify {pipeline}` again."
        )
        self.reasons = reasons


class SecretUnreadableError(ContractError):
    """A secret that a job needs cannot be read."""


class NotPortableError(ContractError):
    """A job's spec or report cannot be written as JSON, or read from it."""
