"""Open an epoch in a manifest chain: append a manifest without objects, from which landing continues in the epoch."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.source.epochs import Epoch, Start


def open_epoch(chain: Chain, epoch: Epoch) -> bool:
    """Append the manifest that opens the epoch; return False if the epoch is open already, or is the first one."""
    start = epoch.starts.get(chain.topic)
    head = chain.head()
    if start is None or not epoch.number or (head is not None and head.epoch == epoch.number):
        return False
    chain.append(
        Manifest(
            chain=chain.id,
            number=1 if head is None else head.number + 1,
            attempt=str(uuid.uuid4()),
            pipeline=chain.pipeline,
            topic=chain.topic,
            topic_id=start.topic_id,
            epoch=epoch.number,
            opens=epoch.reason if start.jump is None else f"{epoch.reason}; {start.jump}",
            spans=tuple(_opening(head, start, p) for p in sorted(start.offsets)),
            objects=(),
            # The previous watermark is an LSN of the previous epoch, possibly of another server.
            watermark=None,
            committed_at=datetime.now(UTC),
        )
    )
    return True


def _opening(head: Manifest | None, start: Start, partition: int) -> Span:
    """Return the empty span at which an epoch begins in a partition.

    The span keeps the last record of the previous manifest if that manifest ends at the same offset of the same topic.
    """
    at = start.offsets[partition]
    follows = head is not None and head.topic_id == start.topic_id and head.next_offsets().get(partition) == at
    last = head.last_records().get(partition) if head is not None and follows else None
    return Span(partition=partition, first=at, next=at, last=last)
