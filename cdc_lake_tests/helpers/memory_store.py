"""An ObjectStore in memory with conditional puts, faults on demand and request counts."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cdc_lake.contract.objects.store import ObjectInfo, PreconditionFailedError, StoredObject

PAGE = 1000


@dataclass
class MemoryStore:
    """One bucket.

    `requests` counts what S3 would count: each page of a listing, each batch of deletes. `before_put` is called with
    the key before each conditional put, outside of the lock, for a rival writer.
    """

    objects: dict[str, StoredObject] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    before_put: Callable[[str], None] | None = None
    _lost_answers: int = 0
    _busy: int = 0
    _writes: int = 0
    _modified: dict[str, datetime] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def lose_answers(self, count: int = 1) -> None:
        """Let the next puts succeed and raise PreconditionFailed, as seen by a client that retries a lost response."""
        self._lost_answers = count

    def be_busy(self, count: int = 1) -> None:
        """Let the next puts fail without effect: S3's 409 during another conditional put of the key."""
        self._busy = count

    def forget_requests(self) -> None:
        """Reset the counts."""
        self.requests.clear()

    @property
    def total(self) -> int:
        """Return the number of all requests."""
        return sum(self.requests.values())

    def get(self, key: str) -> StoredObject | None:
        """See ObjectStore."""
        with self._lock:
            self.requests["get"] += 1
            return self.objects.get(key)

    def exists(self, key: str) -> bool:
        """See ObjectStore."""
        with self._lock:
            self.requests["head"] += 1
            return key in self.objects

    def put_new(self, key: str, body: bytes, metadata: dict[str, str] | None = None) -> str:
        """See ObjectStore."""
        return self._put(key, body, metadata or {}, None)

    def replace(self, key: str, body: bytes, etag: str) -> str:
        """See ObjectStore."""
        return self._put(key, body, {}, etag)

    def scan(self, prefix: str, after: str = "", recursive: bool = True) -> Iterator[ObjectInfo]:
        """See ObjectStore."""
        with self._lock:
            keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
            if not recursive:
                keys = [key for key in keys if "/" not in key.removeprefix(prefix)]
            found = [self._info(key) for key in keys]
        for index in range(0, max(1, len(found)), PAGE):
            with self._lock:
                self.requests["list"] += 1
            yield from found[index : index + PAGE]

    def folders(self, prefix: str) -> list[str]:
        """See ObjectStore."""
        with self._lock:
            self.requests["list"] += 1
            below = [key.removeprefix(prefix) for key in self.objects if key.startswith(prefix)]
        return sorted({name.partition("/")[0] for name in below if "/" in name})

    def delete(self, keys: Iterable[str]) -> int:
        """See ObjectStore."""
        deleted = list(keys)
        with self._lock:
            self.requests["delete"] += 1
            for key in deleted:
                self.objects.pop(key, None)
        return len(deleted)

    def write(self, key: str, body: bytes) -> None:
        """Write an object without the contract's checks: damage, or another program's object."""
        with self._lock:
            self._store(key, body, {})

    def _put(self, key: str, body: bytes, metadata: dict[str, str], etag: str | None) -> str:
        if self.before_put is not None:
            self.before_put(key)
        with self._lock:
            self.requests["put"] += 1
            if self._busy:
                self._busy -= 1
                raise PreconditionFailedError(key)
            before = self.objects.get(key)
            if (None if before is None else before.etag) != etag:
                raise PreconditionFailedError(key)
            stored = self._store(key, body, metadata)
            if self._lost_answers:
                self._lost_answers -= 1
                raise PreconditionFailedError(key)
            return stored.etag

    def _store(self, key: str, body: bytes, metadata: dict[str, str]) -> StoredObject:
        stored = StoredObject(key, body, hashlib.md5(body, usedforsecurity=False).hexdigest(), metadata)
        self._writes += 1
        self._modified[key] = datetime.fromtimestamp(self._writes, UTC)
        self.objects[key] = stored
        return stored

    def _info(self, key: str) -> ObjectInfo:
        stored = self.objects[key]
        return ObjectInfo(key, len(stored.body), stored.etag, self._modified[key])


@dataclass(frozen=True)
class MemoryLocation:
    """A replacement of S3Location for the jobs; every call returns the same store."""

    bucket: MemoryStore

    def store(self) -> MemoryStore:
        return self.bucket
