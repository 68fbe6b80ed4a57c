"""The position at which the rows of a Parquet target's view begin: the start of the newest complete snapshot."""

from __future__ import annotations

from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.table.event_order import Position, Watermark
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import topic_state
from resources.kafka.resource import Kafka


def current_boundary(store: ObjectStore, table: PipelineTable, kafka: Kafka) -> str | None:
    """Return the boundary of a table as of now; None for a Hudi table, which has no such view."""
    if table.is_hudi:
        return None
    landed = table_progress.raw_watermark(store, table, topic_state.current(kafka, table, store))
    return boundary(store, table.pipeline.name, landed)


def boundary(store: ObjectStore, pipeline: str, landed: Watermark | None) -> str:
    """Return the position of the first row of the newest complete snapshot whose rows are all landed.

    Without such a snapshot, returns the first position of epoch 0. `landed` is the watermark of the landed records.

    A key whose rows are all before the boundary is no longer in the source, even if it has no delete event: the delete
    was lost with a broken stream, or only an interrupted attempt of the snapshot has read the key.
    """
    epochs = Epochs(store, pipeline)
    current = epochs.current()
    for number in range(0 if current is None else current.number, -1, -1):
        completion = epochs.completion(number)
        if completion is None:
            continue
        lsn = completion.snapshot_lsn or 0
        # Only a streamed heartbeat has such a watermark, and it comes after the snapshot's last row.
        if landed is not None and landed.lsn >= lsn:
            return Position(number, streamed=False, lsn=lsn).encode()
    return Position(0, streamed=False, lsn=0).encode()
