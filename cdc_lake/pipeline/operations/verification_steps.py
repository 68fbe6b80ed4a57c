"""The steps of a comparison of lake tables with the source at one point; verification.py executes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cdc_lake.contract.errors import (
    ContractError,
    ManifestGapError,
    SourceUnreadableError,
    UnknownColumnsError,
)
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import ObjectStore as Bucket
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.source.epochs import Epoch, Epochs
from cdc_lake.contract.source.poll_state import Bound, Polls
from cdc_lake.contract.source.visibility import Point
from cdc_lake.contract.table import history, pending_counts, timeline
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs import verify
from cdc_lake.jobs.verify import KafkaRange, LakeState, SourceTable, VerifyReport, VerifySpec
from cdc_lake.pipeline import bucket_location, table_progress
from cdc_lake.pipeline.operations import land_and_apply, landing_modes
from cdc_lake.pipeline.parquet_target.boundary import current_boundary
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.registry_location import registry_location
from cdc_lake.pipeline.source_health import polled_source, stream_continuity, topic_state
from resources.connect.connector_interface import Connectors
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.exported_snapshot import ConsistentPoint, consistent_point
from resources.postgres.lsn import to_text
from resources.spark.job_interface import SparkJobs
from resources.waiting import until

_PAUSE_SECONDS = 0.5
_STORE_OFFSET_SECONDS = 5.0
"""The interval at which workers without exactly-once store an offset."""

Show = Callable[[str], None]
"""Receives progress messages for the user."""


@dataclass(frozen=True)
class VerifySystems:
    """The systems that a verification reads."""

    postgres: SourcePostgres
    kafka: Kafka
    connect: Connectors
    store: ObjectStore
    spark: SparkJobs


def lake_state(bucket: Bucket, table: PipelineTable) -> LakeState | None:
    """Return the table's state as of its newest commit by any program; None before the first commit.

    The state of a Parquet target is its newest manifest.
    """
    if not table.is_hudi:
        head = Chain(bucket, table.pipeline.name, table.topic).head()
        return None if head is None else LakeState(f"manifest-{head.number}", head.number)
    # Listed first: otherwise a commit that completes in between would be combined with the previous checkpoint.
    instants = history.commits(bucket, table.lake_prefix)
    commit = timeline.last_commit(bucket, table.lake_prefix)
    if commit is None or commit.checkpoint is None:
        return None
    return LakeState(max([commit.instant, *instants]), commit.checkpoint.manifest)


@dataclass(frozen=True)
class LastPoll:
    """The end of a table's last complete poll, as a bound and as a watermark. The table is compared as of this end."""

    bound: Bound
    watermark: Watermark


@dataclass(frozen=True)
class Verification:
    """One verification of one pipeline."""

    pipeline: Pipeline
    systems: VerifySystems
    show: Show

    @property
    def location(self) -> S3Location:
        """The location of the bucket."""
        return bucket_location.location(self.systems.store)

    @property
    def bucket(self) -> Bucket:
        """The bucket."""
        return self.location.store()

    @property
    def postgres(self) -> SourcePostgres:
        """The source's database."""
        return self.systems.postgres

    @property
    def current_epoch(self) -> Epoch | None:
        """The source's current epoch."""
        return Epochs(self.bucket, self.pipeline.name).current()

    @property
    def epoch_number(self) -> int:
        """The number of the source's epoch."""
        found = self.current_epoch
        return 0 if found is None else found.number

    @contextmanager
    def point(self) -> Iterator[ConsistentPoint]:
        """Yield a point; its snapshot is held during the block."""
        epochs = Epochs(self.bucket, self.pipeline.name)
        epochs.require_whole()
        current = epochs.current()
        if current is not None:
            what = f"compare pipeline {self.pipeline.name} with its source"
            stream_continuity.require_no_resnapshot(self.pipeline, epochs, current, what)
        with consistent_point(self.postgres, self.pipeline.slot) as found:
            self.show(f"comparing as of snapshot {found.snapshot_id}, LSN {to_text(found.lsn)}")
            yield found

    def last_poll(self, table: PipelineTable) -> LastPoll:
        """Return the last complete poll of a polled table. Raises ContractError before the first one."""
        last = Polls(self.bucket, self.pipeline.name, table.name).read()
        if last is None or last.poll.reached is None or last.poll.watermark is None:
            raise ContractError(
                f"Cannot compare table {table.name}: no poll of it is complete. Materialise {table.asset('topic')}."
            )
        return LastPoll(last.poll.reached, last.poll.watermark)

    def wait_for_stream(self, seconds: float) -> Watermark:
        """Wait until all changes before the point are visible in Kafka; return the heartbeat after them.

        Waits twice, each time up to `seconds`, for the reason that verification.py gives.
        """
        self.show("waiting for the stream to pass the point")
        table_progress.barrier(self.postgres, self.systems.kafka, self.systems.connect, self.pipeline, seconds)
        return table_progress.barrier(self.postgres, self.systems.kafka, self.systems.connect, self.pipeline, seconds)

    def wait_for_lake(self, table: PipelineTable, watermark: Watermark, seconds: float, apply: bool) -> None:
        """Wait until the table has applied everything up to the watermark: a heartbeat, or the end of a poll."""
        action = "landing and applying what is pending" if apply else "waiting"
        polled = self.pipeline.polled
        up_to = f"poll {watermark.lsn}" if polled else f"everything before LSN {to_text(watermark.lsn)}"
        self.show(f"{action} until lake table {table.lake_table} has applied {up_to}")

        stored_at = -_STORE_OFFSET_SECONDS

        def applied_lsn() -> int:
            nonlocal stored_at
            if not polled and time.monotonic() >= stored_at + _STORE_OFFSET_SECONDS:
                stream_continuity.store_acknowledged(self.pipeline, self.systems.connect, self.bucket)
                stored_at = time.monotonic()
            if apply:
                self._apply(table)
            # A Parquet target has no apply stage: its rows are the landed objects.
            read = table_progress.lake_watermark if table.is_hudi else table_progress.raw_watermark
            reached = read(self.bucket, table, topic_state.current(self.systems.kafka, table, self.bucket))
            return 0 if reached is None else reached.lsn

        name = self.pipeline.name
        until(
            applied_lsn,
            lambda lsn: lsn >= watermark.lsn,
            seconds=seconds,
            what=f"lake table {table.lake_table} of {name} to apply {up_to}",
            hint=(
                "Raise --timeout, or look for the cause of the delay (`cdc-lake status`)."
                if apply
                else f"Let its sensors run (`cdc-lake dev`), or `cdc-lake verify {name} --apply`."
            ),
            pause_seconds=_PAUSE_SECONDS,
        )

    def unapplied(self, table: PipelineTable, state: LakeState | None, seconds: float) -> KafkaRange:
        """Return the offsets of the records that a lake state has not applied, after open transactions have ended."""
        chain = Chain(self.bucket, self.pipeline.name, table.topic)
        applied = chain.read(state.manifest).next_offsets() if state else {}
        kafka = self.systems.kafka
        ends = topic_state.require_settled(kafka, table.topic, seconds)
        begins = {partition: min(applied.get(partition, 0), end) for partition, end in ends.items()}
        return KafkaRange(
            table.topic, begins, ends, kafka.spark_options(), self.epoch_number, registry_location(kafka, self.pipeline)
        )

    def compare(
        self,
        table: PipelineTable,
        point: ConsistentPoint,
        lake: LakeState | None,
        base: LakeState | None,
        later: KafkaRange | None,
        limit: int,
        polled: LastPoll | None,
    ) -> VerifyReport:
        """Run the job for one table; a polled table is compared as of the end of its last poll.

        Raises SourceUnreadableError if the source table was rewritten or lake files were deleted meanwhile, and
        UnknownColumnsError if the source's columns are not those of the captured schema.
        """
        self.show(f"comparing {table.source_table} with the lake table {table.lake_table}")
        source = self.pipeline.spec.source
        versions = captured_schema.require_versions(self.bucket, self.pipeline.name, table.source_table)
        self._require_known_columns(table, versions[-1])
        name = table.polled_table if self.pipeline.polled else table.name
        files = point.files(source.schema_, name)
        access = polled_source.access(self.postgres, hashes=versions[-1].has_hashes)
        compared = SourceTable(access, point.snapshot_id, source.schema_, name, files.pages)
        if polled is not None:
            rows = polled_source.rows(table)
            pages = files.pages if rows.divisible else None
            compared = replace(compared, pages=pages, relation=rows.relation, settled=rows.settled(polled.bound))
        applying = table.upsert_spec(self.location, owner="verify")
        spec = VerifySpec(
            location=self.location,
            pipeline=self.pipeline.name,
            topic=table.topic,
            uri=applying.uri(),
            versions=versions,
            values=applying.values,
            source=compared,
            point=Point(
                epoch=self.epoch_number,
                # Polled rows have no transaction id: the number of the poll decides which rows are visible.
                lsn=point.lsn if polled is None else polled.watermark.lsn,
                horizon=point.horizon if polled is None else 0,
                xmax=point.snapshot.xmax,
                in_progress=point.snapshot.in_progress,
            ),
            lake=lake,
            base=base,
            later=later,
            limit=limit,
            boundary=current_boundary(self.bucket, table, self.systems.kafka),
        )
        report = self.systems.spark.run(verify.run, spec)
        if not report.clean and table.is_hudi:
            self._require_kept(table, lake)
            self._require_kept(table, base)
        # TRUNCATE, VACUUM FULL and other rewrites of a table ignore snapshots: rows may be missing.
        if point.files(source.schema_, name).nodes != files.nodes:
            raise SourceUnreadableError(
                f"Cannot compare table {table.source_table}: it was truncated or rewritten during the comparison. Run "
                "it again."
            )
        return self._with_never_compared(table, report)

    def _with_never_compared(self, table: PipelineTable, report: VerifyReport) -> VerifyReport:
        """Add to the report the keys that were pending in all recent runs; comparing a key resets its count."""
        runs = pending_counts.count_pending_run(self.bucket, self.pipeline.name, table.lake_table, report.pending_keys)
        stayed = [key for digest, key in report.pending_keys.items() if runs[digest] >= pending_counts.MAX_PENDING_RUNS]
        return replace(report, never_compared=stayed) if stayed else report

    def _require_kept(self, table: PipelineTable, state: LakeState | None) -> None:
        """Raise if files of the commit were cleaned while it was read: their rows would be missing."""
        kept = history.readable(self.bucket, table.lake_prefix)
        if state is not None and state.instant not in kept:
            raise SourceUnreadableError(
                f"Cannot compare lake table {table.lake_table}: files of commit {state.instant} were deleted during "
                f"the comparison, because it took longer than the table's `history` of {table.spec.history}. Run it "
                "again, or raise `history` in the pipeline's YAML."
            )

    def _apply(self, table: PipelineTable) -> None:
        owner, kafka, run = f"cdc-lake verify {self.pipeline.name}", self.systems.kafka, self.systems.spark.run
        try:
            land_and_apply.land(table, self.postgres, kafka, self.location, run, owner)
        except ManifestGapError as error:
            if landing_modes.sink(table) is None:
                raise
            self.show(error.user_message)  # the sink connector may not have written the records yet: the caller waits
        if table.is_hudi:
            land_and_apply.apply(table, self.postgres, table.upsert_spec(self.location, owner=owner), run)

    def _require_known_columns(self, table: PipelineTable, captured: captured_schema.TableSchema) -> None:
        source = self.pipeline.spec.source
        if self.pipeline.polled and table.poll.sql:
            actual = {column.name for column in polled_source.query_columns(table, self.postgres)}
        else:
            name = table.polled_table if self.pipeline.polled else table.name
            actual = {column.name for column in self.postgres.columns(source.schema_, name)}
        known = {column.source_name for column in captured.source_columns}
        known |= {column.name for column in captured.omitted}
        if actual != known:
            raise UnknownColumnsError(
                f"Cannot compare table {table.source_table}: its columns differ from version {captured.version} of its "
                f"schema in {', '.join(sorted(actual ^ known))}. Materialise {table.asset('source')} to capture them."
            )
