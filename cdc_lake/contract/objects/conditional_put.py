"""Putting an object that nobody else may have put: what it means when the store refuses."""

from __future__ import annotations

from collections.abc import Mapping

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from cdc_lake.contract.errors import ObjectConflictError
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError, StoredObject

_PUTS = 6


class _NothingThereError(Exception):
    """S3's 409: another conditional put of this key is under way, or was given up."""


def put_or_get(store: ObjectStore, key: str, body: bytes, metadata: Mapping[str, str] | None = None) -> StoredObject:
    """Put an object that must not exist yet; it, or the one that was there.

    The one that was there can be one's own: a put that is retried after a lost answer finds what it had put.
    Raises ObjectConflictError where the store refuses the put again and again, and has no such object.
    """
    again = Retrying(
        retry=retry_if_exception_type(_NothingThereError),
        stop=stop_after_attempt(_PUTS),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        reraise=True,
    )
    try:
        return again(_once, store, key, body, dict(metadata or {}))
    except _NothingThereError as error:
        raise ObjectConflictError(
            f"the store refuses {key}, as if an object of that name were there or being put, and has none; look at "
            "who else writes below this prefix, then run it again"
        ) from error


def _once(store: ObjectStore, key: str, body: bytes, metadata: dict[str, str]) -> StoredObject:
    try:
        return StoredObject(key, body, store.put_new(key, body, metadata), metadata)
    except PreconditionFailedError as error:
        stored = store.get(key)
        if stored is None:
            raise _NothingThereError(key) from error
        return stored
