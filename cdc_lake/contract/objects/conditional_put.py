"""Put an object that must not exist yet, with retries while S3 reports a conflict without an object."""

from __future__ import annotations

from collections.abc import Mapping

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from cdc_lake.contract.errors import ObjectConflictError
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError, StoredObject

_MAX_PUTS = 6


class _NoObjectError(Exception):
    """S3 rejected the put, but has no object: another conditional put of this key is in progress, or was aborted."""


def put_or_get(store: ObjectStore, key: str, body: bytes, metadata: Mapping[str, str] | None = None) -> StoredObject:
    """Put an object that must not exist yet. Return it, or the object that already exists.

    The existing object can be the caller's own: boto3 retries a put whose response was lost, although it succeeded.
    Raises ObjectConflictError if the store rejects the put six times, but has no such object.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(_NoObjectError),
        stop=stop_after_attempt(_MAX_PUTS),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        reraise=True,
    )
    try:
        return retrying(_put_or_get_once, store, key, body, dict(metadata or {}))
    except _NoObjectError as error:
        raise ObjectConflictError(
            f"Cannot put {key}: the store rejected {_MAX_PUTS} attempts because the object exists or is being put, but "
            "a read finds no object. Find out which other program writes this object, then run this again."
        ) from error


def _put_or_get_once(store: ObjectStore, key: str, body: bytes, metadata: dict[str, str]) -> StoredObject:
    try:
        return StoredObject(key, body, store.put_new(key, body, metadata), metadata)
    except PreconditionFailedError as error:
        stored = store.get(key)
        if stored is None:
            raise _NoObjectError(key) from error
        return stored
