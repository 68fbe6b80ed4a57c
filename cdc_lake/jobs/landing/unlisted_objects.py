"""Delete a topic's raw objects that no manifest lists, because a Glue table would read all objects of its prefix.

Called under the landing lease, before a landing. A landing that was killed, or that lost a race, leaves such objects.
If a manifest has committed an object's offsets, no later manifest can list the object. An object after the chain's end
can still be listed: a landing that was paused and lost its lease may be about to append its manifest. Therefore an
empty manifest takes the next number first, so that the paused landing cannot append
(docs/decisions/0050-parquet-targets.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.object_names import ObjectName


def delete(
    chain: Chain,
    partitions: Iterable[int],
    head: Manifest | None,
    fence: Callable[[Manifest | None], object],
    columns: Sequence[str] = (),
) -> int:
    """Delete the unlisted objects of the chain's epoch from the newest manifest's first offsets on.

    Returns their number. `head` is the newest manifest, and `fence` commits an empty manifest after it. `columns` are
    the partition columns of the objects' keys: one listing is needed for each of their values. Objects before
    the newest manifest were deleted by earlier calls, except those that a landing without a lease wrote meanwhile; a
    daily check finds these.
    """
    found = list(_unlisted(chain, list(partitions), head, columns))
    if not found:
        return 0
    ends = {} if head is None else head.next_offsets()
    after = [name.key for name in found if name.first >= ends.get(name.partition, 0)]
    # Before the fence, whose manifest moves the start of the next scan to the chain's end.
    deleted = chain.store.delete(name.key for name in found if name.key not in after)
    if after:
        fence(head)
    return deleted + chain.store.delete(after)


def _unlisted(
    chain: Chain, partitions: Sequence[int], head: Manifest | None, columns: Sequence[str]
) -> Iterator[ObjectName]:
    epoch = 0 if head is None else head.epoch
    listed = set() if head is None else {item.key for item in head.objects}
    firsts = {} if head is None else {span.partition: span.first for span in head.spans}
    for folders, partition in product(_folders(chain, epoch, columns), partitions):
        topic_partition = (chain.pipeline, chain.topic, partition)
        folder = object_names.partition_prefix(*topic_partition, epoch, chain.id, folders)
        start = object_names.listing_start(*topic_partition, firsts.get(partition, 0), epoch, chain.id, folders)
        for item in chain.store.scan(folder, after=start):
            name = ObjectName.parse(item.key)
            if name is not None and name.key not in listed:
                yield name


def _folders(chain: Chain, epoch: int, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the folders of all values that the partition columns have in the epoch's objects."""
    prefix = object_names.epoch_objects_prefix(chain.pipeline, chain.topic, epoch, chain.id)
    found: list[tuple[str, ...]] = [()]
    for column in columns:
        found = [
            (*folders, name)
            for folders in found
            for name in chain.store.folders(prefix + "".join(f"{folder}/" for folder in folders))
            if name.startswith(f"{column}=")
        ]
    return found
