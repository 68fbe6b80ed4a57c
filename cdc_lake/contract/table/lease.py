"""Leases in the object store: only one writer at a time of a table, or of a topic's raw objects.

Polls, builds of datasets, resnapshots and continuous mode have leases too: contract/objects/object_names.py has all
keys.

A lease is an object that is replaced under If-Match; the writer that replaces it holds the lease, with a fencing token
higher than all previous ones. A writer renews it while it works, and checks it right before it commits
(docs/decisions/0018-fencing.md). Jobs that write a lake table take its lease by UpsertSpec.writer_lease().
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pydantic import BaseModel, ConfigDict
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import LeaseHeldError, LeaseLostError
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError

SECONDS = 30.0
"""How long a lease is valid without renewal. Its holder renews it after each third of this time."""
WAIT_SECONDS = SECONDS + 15.0
"""Longer than a lease is valid: the lease of a killed writer has expired by then."""


class LeaseRecord(BaseModel):
    """The contents of a lease object: owner, fencing token, and expiry (seconds since 1970)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    owner: str
    token: int
    expires_at: float


@dataclass(frozen=True)
class Claim:
    """Identifies a held lease, so that a job in another process can check that its caller still holds it."""

    key: str
    owner: str
    token: int


def check(store: ObjectStore, claim: Claim, now: Callable[[], float] = time.time, detail: str = "") -> None:
    """Raise LeaseLostError if the claimant does not hold the lease any more; `detail` is a sentence of the message."""
    stored = store.get(claim.key)
    held = None if stored is None else LeaseRecord.model_validate_json(stored.body)
    ours = held is not None and (held.owner, held.token) == (claim.owner, claim.token)
    if held is None or not ours or held.expires_at <= now():
        if held is None:
            state = "does not exist any more"
        else:
            state = "has expired" if ours else f"was taken by {held.owner} (token {held.token})"
        raise LeaseLostError(
            f"Cannot continue: the lease {claim.key} of {claim.owner} (token {claim.token}) {state}. {detail}This run "
            "commits nothing. Run it again."
        )


def holder(store: ObjectStore, key: str, now: Callable[[], float] = time.time) -> str | None:
    """Return the owner of a lease that is held; None if it is free, or expired."""
    stored = store.get(key)
    found = None if stored is None else LeaseRecord.model_validate_json(stored.body)
    return found.owner if found is not None and found.expires_at > now() else None


class Lease:
    """A held lease, which a background thread renews until it is released."""

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        record: LeaseRecord,
        etag: str,
        seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._store, self._key, self._seconds, self._now = store, key, seconds, now
        self._record, self._etag = record, etag
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._lost: Exception | None = None
        self._thread = threading.Thread(target=self._renew_until_stopped, name=f"lease {key}", daemon=True)

    @property
    def token(self) -> int:
        """The fencing token, higher than that of every previous holder."""
        return self._record.token

    @property
    def claim(self) -> Claim:
        """The claim with which a job in another process checks that this lease is still held."""
        return Claim(self._key, self._record.owner, self._record.token)

    def check(self) -> None:
        """Raise LeaseLostError if this writer does not hold the lease any more."""
        with self._lock:
            detail = f"The last renewal failed: {self._lost}. " if self._lost else ""
            check(self._store, self.claim, self._now, detail)

    def renew(self) -> None:
        """Extend the expiry. Raises PreconditionFailedError if another writer took the lease."""
        with self._lock:
            record = self._record.model_copy(update={"expires_at": self._now() + self._seconds})
            self._etag = self._replace(record)
            self._record = record
            self._lost = None

    def secure(self) -> None:
        """Renew the lease for its full duration right before a commit. Raises LeaseLostError."""
        failpoints.reached("commit.before_lease_check")
        try:
            self.renew()
        except PreconditionFailedError:
            self.check()  # its error names the holder
            raise
        self.check()
        failpoints.reached("commit.after_lease_check")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        with self._lock:
            record = self._record.model_copy(update={"expires_at": 0.0})
            try:
                self._replace(record)
            except PreconditionFailedError:
                if error is None:
                    raise LeaseLostError(
                        f"Cannot release the lease {self._key} of {record.owner} (token {record.token}): it was taken "
                        "by another writer before this one had ended, so both may have written. Compare the table with "
                        "its source."
                    ) from None

    def _replace(self, record: LeaseRecord) -> str:
        """Replace this writer's record; return the new ETag. Raises PreconditionFailedError."""
        try:
            return _put(self._store, self._key, record, self._etag)
        except PreconditionFailedError:
            stored = self._store.get(self._key)
            found = None if stored is None else LeaseRecord.model_validate_json(stored.body)
            if stored is None or found is None or (found.owner, found.token) != (record.owner, record.token):
                raise
            # An earlier renewal succeeded, although its answer was lost, so that the ETag is not known.
            return _put(self._store, self._key, record, stored.etag)

    def _renew_until_stopped(self) -> None:
        while not self._stop.wait(self._seconds / 3):
            try:
                self.renew()
            except Exception as error:  # noqa: BLE001 - check() reports it; the store may answer again before the expiry
                self._lost = error


@contextmanager
def held(
    store: ObjectStore,
    key: str,
    owner: str,
    seconds: float = SECONDS,
    wait_seconds: float = WAIT_SECONDS,
    now: Callable[[], float] = time.time,
) -> Iterator[Lease]:
    """Hold the lease during a block.

    Waits up to `wait_seconds` until another holder's lease is released or expires. Raises LeaseHeldError after that.
    """
    attempts = Retrying(
        retry=retry_if_exception_type(LeaseHeldError),
        stop=stop_after_delay(wait_seconds),
        wait=wait_random(0.2, 1.0),
        reraise=True,
    )
    lease = attempts(_acquire, store, key, owner, seconds, now)
    with lease:
        yield lease


def _acquire(store: ObjectStore, key: str, owner: str, seconds: float, now: Callable[[], float]) -> Lease:
    stored = store.get(key)
    before = None if stored is None else LeaseRecord.model_validate_json(stored.body)
    if before is not None and before.expires_at > now():
        raise LeaseHeldError(
            f"Cannot take the lease: {before.owner} holds {key} for another {before.expires_at - now():.0f} s. Wait "
            "until it ends; if it was killed, the lease expires by itself."
        )
    token = 1 if before is None else before.token + 1
    record = LeaseRecord(owner=owner, token=token, expires_at=now() + seconds)
    try:
        etag = _put(store, key, record, None if stored is None else stored.etag)
    except PreconditionFailedError as error:
        raise LeaseHeldError(
            f"Cannot take the lease {key}: another writer took it at the same moment. Run the command or job again."
        ) from error
    return Lease(store, key, record, etag, seconds, now)


def _put(store: ObjectStore, key: str, record: LeaseRecord, etag: str | None) -> str:
    """Replace the object with this ETag (None: create it); return the new ETag. Raises PreconditionFailedError."""
    body = record.model_dump_json().encode()
    try:
        return store.put_new(key, body) if etag is None else store.replace(key, body, etag)
    except PreconditionFailedError:
        stored = store.get(key)
        # A put that was retried after a lost answer finds its own record: it had succeeded. No other writer can
        # have written the same record, because owner and token together are unique.
        if stored is not None and stored.body == body:
            return stored.etag
        raise
