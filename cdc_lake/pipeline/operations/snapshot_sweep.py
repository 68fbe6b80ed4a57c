"""Delete the rows that only an interrupted attempt at the first snapshot read.

Debezium restarts an interrupted snapshot from its beginning. A row that was deleted at the source between two attempts
has an event from the first attempt, but no delete event, because the stream had not begun.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Epochs, Swept
from cdc_lake.contract.table import timeline
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.maintenance import sweep
from cdc_lake.jobs.maintenance.sweep import SweepReport
from cdc_lake.pipeline.operations.land_and_apply import RunJob
from cdc_lake.pipeline.pipeline_table import PipelineTable


def sweep_once(
    table: PipelineTable,
    store: ObjectStore,
    spec: UpsertSpec,
    applied: Callable[[], Watermark | None],
    commit: timeline.Commit | None,
    run: RunJob,
) -> SweepReport | None:
    """Sweep a table once, as soon as the whole snapshot is applied; return None if no sweep is needed now.

    `applied` returns the lake's watermark, and is called only if there may be something to sweep: it reads Kafka.
    `commit` is the table's newest commit. Raises what the job raises.
    """
    epochs = Epochs(store, table.pipeline.name)
    epoch = epochs.current()
    completion = None if epoch is None else epochs.completion(epoch.number)
    if epoch is None or completion is None or completion.retaken_ts_ms is None or completion.snapshot_lsn is None:
        return None
    if epochs.swept(epoch.number, table.lake_table) is not None:
        return None
    # A watermark is a streamed heartbeat, which follows the snapshot's last row.
    reached = applied()
    if reached is None or reached.lsn < completion.snapshot_lsn:
        return None
    manifest = 0 if commit is None or commit.checkpoint is None else commit.checkpoint.manifest
    done: SweepReport = run(
        sweep.run, sweep.SweepSpec(spec, epoch.number, manifest, completion.snapshot_lsn, completion.retaken_ts_ms)
    )
    epochs.mark_swept(epoch.number, table.lake_table, Swept(rows=done.swept, swept_at=datetime.now(UTC)))
    return done
