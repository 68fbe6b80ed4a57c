"""A first snapshot that was interrupted and taken again: rows that only the earlier attempts told leave the lake.

Debezium tells a snapshot from its beginning after an interruption. A row that was deleted in between was told once and
is never told again, by nobody: no stream had begun. Here: when that is due for a table, and that it is done once.
Not here: the sweep (jobs/sweep.py), and the snapshots of later epochs (resnapshot.py).
"""

from __future__ import annotations

from datetime import UTC, datetime

from cdc_lake.contract.epochs import Epochs, Swept
from cdc_lake.contract.position import Watermark
from cdc_lake.contract.store import ObjectStore
from cdc_lake.jobs import sweep
from cdc_lake.jobs.upsert import UpsertSpec
from cdc_lake.pipeline import stream
from cdc_lake.pipeline.carrying import RunJob
from cdc_lake.pipeline.flow import TableFlow


def finish(
    table: TableFlow, store: ObjectStore, spec: UpsertSpec, applied: Watermark | None, run: RunJob
) -> int | None:
    """Sweep a table once, as soon as the snapshot is applied whole; how many rows were swept, None where it is not
    due. `applied` is the lake's watermark. Raises what the job raises.
    """
    epochs = Epochs(store, table.pipeline.name)
    epoch = epochs.current()
    completion = None if epoch is None else epochs.completion(epoch.number)
    if epoch is None or completion is None or completion.retaken_ts_ms is None or completion.snapshot_lsn is None:
        return None
    # A beat of the stream comes after the snapshot's last row.
    if applied is None or applied.lsn < completion.snapshot_lsn or epochs.swept(epoch.number, table.name) is not None:
        return None
    checkpoint = stream.checkpoint(store, table)
    manifest = 0 if checkpoint is None else checkpoint.manifest
    done: sweep.SweepReport = run(
        sweep.run, sweep.SweepSpec(spec, epoch.number, manifest, completion.snapshot_lsn, completion.retaken_ts_ms)
    )
    epochs.mark_swept(epoch.number, table.name, Swept(rows=done.swept, swept_at=datetime.now(UTC)))
    return done.swept
