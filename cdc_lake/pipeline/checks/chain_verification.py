"""Verify a manifest chain and the objects that it lists: the new part since the last verification, or the whole chain.

Sizes and ETags are read from a listing, without reading objects; readers verify the SHA-256. Objects of a sink
connector only have to exist: the connector may rewrite them with more records, and readers verify the adopted records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, takewhile

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, Manifest
from cdc_lake.contract.objects.store import ObjectStore

_PARALLEL_REQUESTS = 8
_BATCH = 1000
"""The number of manifests whose objects are verified together; it bounds the memory for long chains."""


@dataclass(frozen=True)
class VerifyResult:
    """The result of a verification of the manifests after number `since`, up to number `to`.

    `objects` is the number of their objects; `damaged` are the keys of objects that are missing or changed.
    """

    since: int
    to: int
    objects: int
    damaged: Sequence[str]


def verify_new(chain: Chain) -> VerifyResult:
    """Verify the manifests after the stored mark; advance the mark if no object is damaged.

    Raises ContractError if the chain has a gap or a damaged manifest, or no longer contains the mark's manifest.
    """
    mark = chain.mark("verified")
    since, attempt, records = (0, None, 0) if mark is None else (mark.manifest, mark.attempt, mark.records)
    return _verify(chain, chain.since(since, attempt), since, records)


def verify_whole(chain: Chain) -> VerifyResult:
    """Verify the chain from its first manifest. Raises ContractError as verify_new() does."""
    return _verify(chain, chain.since(0), 0, 0)


def _verify(chain: Chain, manifests: Iterator[Manifest], since: int, records: int) -> VerifyResult:
    to, objects, damaged = since, 0, list[str]()
    for batch in _batches(manifests):
        items = [item for manifest in batch for item in manifest.objects]
        damaged += _damaged(chain.store, items)
        to, objects = batch[-1].number, objects + len({item.key for item in items})
        records += sum(manifest.records for manifest in batch)
        if not damaged:
            chain.set_mark("verified", batch[-1], records)
    return VerifyResult(since, to, objects, damaged)


def _batches(manifests: Iterator[Manifest]) -> Iterator[list[Manifest]]:
    for _, batch in groupby(enumerate(manifests), lambda each: each[0] // _BATCH):
        yield [manifest for _, manifest in batch]


def _damaged(store: ObjectStore, items: Sequence[LandedObject]) -> list[str]:
    """Return the keys of objects that are missing or changed, in the order of the manifests."""
    own = {item.key: (item.bytes, item.etag) for item in items if item.sink is None}
    found = dict(_listed(store, own))
    adopted = list(dict.fromkeys(item.key for item in items if item.sink is not None))
    with ThreadPoolExecutor(_PARALLEL_REQUESTS) as pool:
        existing = list(pool.map(store.exists, adopted))
    missing = [key for key, exists in zip(adopted, existing, strict=True) if not exists]
    return [key for key, expected in own.items() if found.get(key) != expected] + missing


def _listed(store: ObjectStore, keys: Iterable[str]) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield size and ETag of the objects from the first to the last key, folder by folder.

    Keys sort by offset, so that earlier objects are not listed.
    """
    for folder, names in groupby(sorted(keys), lambda key: key.rpartition("/")[0]):
        in_folder = list(names)
        listed = store.scan(f"{folder}/", after=in_folder[0][:-1])
        for item in takewhile(lambda item: item.key <= in_folder[-1], listed):  # noqa: B023 - consumed in this iteration
            yield item.key, (item.size, item.etag)
