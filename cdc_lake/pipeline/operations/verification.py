"""Compare the lake with the source at one consistent point, while the source is being written.

The point is a PostgreSQL snapshot (resources/postgres/exported_snapshot.py). A heartbeat is committed after it.
A transaction that is visible at the point has its commit record in the WAL before the heartbeat's. Logical decoding
follows the order of commit records, so it streams the transaction before the heartbeat. Verification waits for two
barriers in sequence: records of one Kafka transaction can become visible in one topic before another, but when a record
of a later transaction is visible, all earlier ones are. A lake whose watermark is at the second heartbeat has therefore
applied everything that is visible at the point, and possibly later changes.

Transaction ids (contract/source/visibility.py) identify the later changes. A lake row whose change is visible at the
point is the newest visible one of its key, because changes of one key are committed one after another. Keys of other
rows are compared by their raw events (jobs/verify/changed_keys.py).

A polled table is compared as of the end of its last poll: those rows of the PostgreSQL snapshot that did not change
later are compared with the lake's rows of that poll or an earlier one. The keys of other rows are pending.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from cdc_lake.contract.errors import ContractError, TablesNotComparedError
from cdc_lake.jobs.verify import LakeState, VerifyReport
from cdc_lake.pipeline.operations.verification_steps import LastPoll, Show, Verification, VerifySystems, lake_state
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import stream_continuity
from resources.errors import ResourceError

__all__ = ["LIMIT", "VerifySystems", "verify_applied", "verify_tables"]

LIMIT = 20
_MIN_WAIT_SECONDS = 1.0
"""How long each table is waited for, even if the wait for another one took all of the time."""


def verify_tables(
    pipeline: Pipeline,
    tables: Sequence[PipelineTable],
    systems: VerifySystems,
    *,
    seconds: float,
    apply: bool = False,
    limit: int = LIMIT,
    show: Show = lambda _: None,
) -> Iterator[tuple[PipelineTable, VerifyReport]]:
    """Compare tables with the source at one point that the lake has passed; yield each table's report.

    Waits until the stream (up to twice `seconds`), and then the lake (up to `seconds`) have passed the point; with
    `apply`, lands and applies records meanwhile, for each table up to `seconds`. A table that cannot be compared does
    not prevent the comparison of the others: after the last report, raises TablesNotComparedError. Raises ContractError
    and ResourceError if no table can be compared.
    """
    verification = Verification(pipeline, systems, show)
    base: dict[str, LakeState | None] = {}
    polled: dict[str, LastPoll] = {}
    errors: dict[str, str] = {}
    for table in tables:
        with _collect_errors(errors, table):
            stream_continuity.require_complete_topic(table, verification.current_epoch)
            base[table.lake_table] = lake_state(verification.bucket, table)  # before the point
            if pipeline.polled:
                polled[table.name] = verification.last_poll(table)
    with verification.point() as point:
        heartbeat = None if pipeline.polled else verification.wait_for_stream(seconds)
        end = time.monotonic() + seconds
        for table in _without_errors(tables, errors):
            with _collect_errors(errors, table):
                left = seconds if apply else max(end - time.monotonic(), _MIN_WAIT_SECONDS)
                verification.wait_for_lake(table, heartbeat or polled[table.name].watermark, left, apply)
        for table in _without_errors(tables, errors):
            report = None
            with _collect_errors(errors, table):
                state, before = lake_state(verification.bucket, table), base[table.lake_table]
                report = verification.compare(table, point, state, before, None, limit, polled.get(table.name))
            if report is not None:
                yield table, report
    if errors:
        raise TablesNotComparedError(pipeline.name, errors)


def _without_errors(tables: Sequence[PipelineTable], errors: Mapping[str, str]) -> list[PipelineTable]:
    return [table for table in tables if table.lake_table not in errors]


@contextmanager
def _collect_errors(errors: dict[str, str], table: PipelineTable) -> Iterator[None]:
    """Add an error of the block to `errors`, by lake table."""
    try:
        yield
    except (ContractError, ResourceError) as error:
        errors[table.lake_table] = error.user_message


def verify_applied(table: PipelineTable, systems: VerifySystems, *, seconds: float, limit: int = LIMIT) -> VerifyReport:
    """Compare a table with the source; keys with records that the lake has not applied are reported as pending.

    Waits up to twice `seconds` for the stream, but not for runs that land or apply its records. Raises ContractError
    and ResourceError if the comparison is not possible.
    """
    verification = Verification(table.pipeline, systems, lambda _: None)
    stream_continuity.require_complete_topic(table, verification.current_epoch)
    polled = verification.last_poll(table) if table.pipeline.polled else None
    # Read before the point: changes that another run applies from now on are reported as pending.
    state = lake_state(verification.bucket, table)
    with verification.point() as point:
        if polled is None:
            verification.wait_for_stream(seconds)
        return verification.compare(
            table, point, state, state, verification.unapplied(table, state, seconds), limit, polled
        )
