"""Land and apply the new changes of one table, for the stages raw and lake and for commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.contract.errors import ContractError, ManifestGapError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import lease, timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert import UpsertReport
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.landing import pending_offsets
from cdc_lake.jobs.landing.land import LandReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.parquet_target import raw_table
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import schema_capture
from cdc_lake.pipeline.table_progress import LandingInput
from resources.kafka.resource import Kafka

RunJob = Callable[[Callable[[Any, Any], Any], Any], Any]
"""Runs a Spark job with its spec."""
_SINK_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class LandResult:
    """The input of a landing, and the job's report, which is None if nothing was pending."""

    input: LandingInput
    report: LandReport | None


def land(
    table: PipelineTable,
    postgres: SourcePostgres,
    kafka: Kafka,
    location: S3Location,
    run: RunJob,
    owner: str,
    wait_seconds: float = lease.WAIT_SECONDS,
    *,
    new_records: bool = False,
) -> LandResult:
    """Land or adopt the topic's new records under the landing lease, which is taken only if the topic has new records.

    With `new_records`, the caller has found new records, so the function does not look for them first. Raises what the
    job raises, and LeaseHeldError.
    """
    if not new_records:
        found = table_progress.landing_input(table, kafka, location)
        if not pending_offsets.has_work(found.head, landing_modes.pending(table, found.head, found.spec)):
            return LandResult(found, None)
    key = object_names.landing_lease_key(table.pipeline.name, table.topic)
    with lease.held(location.store(), key, owner, wait_seconds=wait_seconds) as held:
        # Read again under the lease: a reset that held it meanwhile may have deleted the topic that was read above.
        return land_claimed(table, postgres, kafka, location, run, held.claim)


def land_claimed(
    table: PipelineTable, postgres: SourcePostgres, kafka: Kafka, location: S3Location, run: RunJob, claim: lease.Claim
) -> LandResult:
    """Land or adopt the topic's new records; the caller holds the landing lease `claim`.

    If the records are decoded, captures the source's schema first. Raises what the job and the capture raise, and
    ContractError if a catalog table would read objects of two formats or with different partition columns.
    """
    found = table_progress.landing_input(table, kafka, location, claim)
    if found.head is not None and any(not each.is_hudi for each in table.in_targets):
        raw_table.object_names_of(table, found.head)
    if found.spec.typed is not None:
        # Capture after the topic's end is read: the records up to it have the schema that is captured now, or an
        # earlier one.
        schema_capture.capture(table, postgres, location.store())
    return LandResult(found, landing_modes.land(table, kafka, found.spec, run))


def land_all(table: PipelineTable, attempt: Callable[[], LandResult], seconds: float) -> int:
    """Repeat `attempt` until all records that the topic had at the first attempt are landed; return their number.

    The land job needs one attempt. A sink connector may write its objects later: the function waits for them. Raises
    what `attempt` raises, and ManifestGapError or ContractError if objects are still missing after `seconds`.
    """
    first: LandingInput | None = None
    head: Manifest | None = None
    records = 0

    def again() -> bool:
        nonlocal first, head, records
        landed = attempt()
        first = first or landed.input
        records += 0 if landed.report is None else landed.report.records
        head = landed.input.chain.head(landed.input.spec.head)
        return any(span.first < span.next for span in landing_modes.pending(table, head, first.spec))

    waiting = retry_if_result(bool)
    if landing_modes.sink(table) is None:
        again()
        return records
    incomplete = Retrying(
        retry=waiting | retry_if_exception_type(ManifestGapError),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(_SINK_POLL_SECONDS),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )(again)
    if incomplete:
        raise ContractError(
            f"Cannot land all records of topic {table.topic}: within {seconds:.0f} s the sink connector did not write "
            f"the records after manifest {0 if head is None else head.number}. Check the connector's status and log, "
            "then run this again."
        )
    return records


@dataclass(frozen=True)
class ApplyResult:
    """The source's captured schema, the job's report (None if nothing was pending), and the table's newest commit."""

    schema: schema_capture.Capture
    report: UpsertReport | None
    commit: timeline.Commit | None


def apply(table: PipelineTable, postgres: SourcePostgres, spec: UpsertSpec, run: RunJob, epoch: int = 0) -> ApplyResult:
    """Apply the landed records, after capturing the source's schema.

    `epoch` is the epoch of a resnapshot. Raises what schema_capture.capture() and the job raise.
    """
    store = spec.location.store()
    commit = timeline.last_commit(store, spec.prefix)
    new = upsert.new_manifests(store, spec, commit)
    # Capture after the manifests are listed: their records have the schema that is captured now, or an earlier one.
    schema = schema_capture.capture(table, postgres, store, epoch=epoch)
    if not new and upsert.new_version(store, spec, commit) is None:
        return ApplyResult(schema, None, commit)
    report: UpsertReport = run(upsert.run, replace(spec, until=new[-1].number if new else 0))
    return ApplyResult(schema, report, report.commit or timeline.last_commit(store, spec.prefix))
