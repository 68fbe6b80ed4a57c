"""Is the lake what the source is? At one consistent point, while the source is being written.

The argument. The point is a snapshot of PostgreSQL (resources/postgres/exported_snapshot.py). A heartbeat is committed
after it was taken. Every transaction that the point sees had ended for everybody by then, so its commit record is in
the WAL before the heartbeat's, and logical decoding, which follows the order of commit records, streamed it before.
Two barriers are waited for, one after the other: records of one Kafka transaction can show in one topic a moment
before another, but once a later transaction's record shows, the earlier ones show everywhere. A lake whose watermark
is at the second heartbeat has then applied everything that the point sees, and perhaps more.

Transaction ids (contract/source/visibility.py) separate what is more: a row of the lake that the point has seen is
the newest of its key that the point sees, because changes of one key are committed one after another. Others are
resolved by the raw events (jobs/verify/changed_keys.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cdc_lake.contract.errors import SchemaUnexplainedError, SourceUnreadableError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import ObjectStore as Bucket
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.source.visibility import Point
from cdc_lake.contract.table import pending_counts, timeline
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs import verify
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.hudi import writer
from cdc_lake.jobs.landing import land
from cdc_lake.jobs.verify import KafkaRange, LakeState, SourceAccess, SourceTable, VerifyReport, VerifySpec
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.naming import Flow, TableFlow, location
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.source_health import stream_continuity, topic_state
from resources.connect.connector_interface import Connectors
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.exported_snapshot import ConsistentPoint, consistent_point
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs
from resources.waiting import until

LIMIT = 20
_PAUSE_SECONDS = 0.5
_NOTED_SECONDS = 5.0
"""Workers without exactly-once store an offset as often as this."""
COMMITS_KEPT = int(writer.properties(writer.OPTIONS.read_text())["hoodie.cleaner.commits.retained"])
"""Of a table: so many commits after it, the files of a commit may be cleaned away."""
_COMPLETED = (".commit", ".deltacommit", ".replacecommit")
"""What writes rows ends in; a commit without a checkpoint is not of ours, and is read all the same."""

Show = Callable[[str], None]
"""Told what is being done, for people who wait."""


@dataclass(frozen=True)
class Systems:
    """What a verification asks."""

    postgres: Postgres
    kafka: Kafka
    connect: Connectors
    store: ObjectStore
    spark: SparkJobs


def verify_tables(
    flow: Flow,
    tables: Sequence[TableFlow],
    systems: Systems,
    *,
    seconds: float,
    apply: bool = False,
    limit: int = LIMIT,
    show: Show = lambda _: None,
) -> Iterator[tuple[TableFlow, VerifyReport]]:
    """Compare tables with the source at one point that the lake has passed; yields each table's report.

    Waits up to `seconds` for stream and lake to pass the point; with `apply`, lands and upserts itself meanwhile.
    Raises ContractError and ResourceError for what stands in the way of a comparison.
    """
    one = _Verification(flow, systems, show)
    base = {table.name: lake_state(one.bucket, table) for table in tables}
    with one.point() as point:
        beat = one.streamed(seconds)
        for table in tables:
            one.wait_for_lake(table, beat, seconds, apply)
        for table in tables:
            yield table, one.compare(table, point, lake_state(one.bucket, table), base[table.name], None, limit)


def verify_applied(table: TableFlow, systems: Systems, *, seconds: float, limit: int = LIMIT) -> VerifyReport:
    """Compare a table with the source as far as the lake has come; keys with records that it has not applied are set
    aside as pending. Waits up to `seconds` for the stream, and not for later runs. Raises as verify_tables() does.
    """
    one = _Verification(table.pipeline, systems, lambda _: None)
    # Before the point: what another run applies from here on is pending too.
    state = lake_state(one.bucket, table)
    with one.point() as point:
        one.streamed(seconds)
        return one.compare(table, point, state, state, one.later(table, state, seconds), limit)


def lake_state(bucket: Bucket, table: TableFlow) -> LakeState | None:
    """The table as of its newest commit, whoever made that; None where it has none."""
    # The listing first: a commit that comes in between has a checkpoint, which then goes with its own instant.
    instants = completed(bucket, table)
    commit = timeline.last_commit(bucket, table.lake_prefix)
    if commit is None or commit.checkpoint is None:
        return None
    return LakeState(max([commit.instant, *instants]), commit.checkpoint.manifest)


def completed(bucket: Bucket, table: TableFlow) -> list[str]:
    """The instants of the table's completed commits that are not archived, whoever made them."""
    listed = (item.key.rpartition("/")[2] for item in bucket.scan(f"{table.lake_prefix}.hoodie/", recursive=False))
    return [name.partition(".")[0] for name in listed if name.endswith(_COMPLETED)]


@dataclass(frozen=True)
class _Verification:
    """One verification of one pipeline."""

    flow: Flow
    systems: Systems
    show: Show

    @property
    def where(self) -> S3Location:
        """The bucket's place."""
        return location(self.systems.store)

    @property
    def bucket(self) -> Bucket:
        """The bucket."""
        return self.where.store()

    @property
    def postgres(self) -> Postgres:
        """The source's database."""
        return self.flow.at_source(self.systems.postgres)

    @property
    def epoch(self) -> int:
        """The source's epoch."""
        found = Epochs(self.bucket, self.flow.name).current()
        return 0 if found is None else found.number

    @contextmanager
    def point(self) -> Iterator[ConsistentPoint]:
        """A point, held during the block."""
        epochs = Epochs(self.bucket, self.flow.name)
        epochs.require_whole()
        current = epochs.current()
        if current is not None:
            stream_continuity.require_finished(self.flow, epochs, current)
        with consistent_point(self.postgres, self.flow.slot) as found:
            self.show(f"the point: snapshot {found.snapshot_id}, LSN {found.lsn}")
            yield found

    def streamed(self, seconds: float) -> Watermark:
        """Wait until all that the point sees is in Kafka, and shows there; the heartbeat behind it."""
        self.show("waiting for the stream to pass the point")
        table_progress.barrier(self.postgres, self.systems.kafka, self.systems.connect, self.flow, seconds)
        return table_progress.barrier(self.postgres, self.systems.kafka, self.systems.connect, self.flow, seconds)

    def wait_for_lake(self, table: TableFlow, beat: Watermark, seconds: float, apply: bool) -> None:
        """Wait until the table has applied all that was streamed before the heartbeat."""
        self.show(f"waiting for the lake table {table.name} to pass LSN {beat.lsn}")

        noted = -_NOTED_SECONDS

        def look() -> int:
            nonlocal noted
            if time.monotonic() >= noted + _NOTED_SECONDS:
                stream_continuity.note_acknowledged(self.flow, self.systems.connect, self.bucket)
                noted = time.monotonic()
            if apply:
                self._apply(table)
            mark = table_progress.lake_watermark(self.bucket, table, topic_state.now(self.systems.kafka, table))
            return 0 if mark is None else mark.lsn

        until(
            look,
            lambda lsn: lsn >= beat.lsn,
            seconds=seconds,
            what=f"lake table {table.name} of {self.flow.name} to apply what was committed before LSN {beat.lsn}",
            hint=f"Let its sensors run (`cdc-lake dev`), or `cdc-lake verify {self.flow.name} --apply`.",
            pause_seconds=_PAUSE_SECONDS,
        )

    def later(self, table: TableFlow, state: LakeState | None, seconds: float) -> KafkaRange:
        """The records of the topic that a state has not applied, once none of an open transaction is among them."""
        chain = Chain(self.bucket, self.flow.name, table.topic)
        applied = chain.read(state.manifest).next_offsets() if state else {}
        kafka = self.systems.kafka
        ends = topic_state.require_settled(kafka, table.topic, seconds)
        begins = {partition: min(applied.get(partition, 0), end) for partition, end in ends.items()}
        return KafkaRange(table.topic, begins, ends, kafka.spark_options(), self.epoch)

    def compare(
        self,
        table: TableFlow,
        point: ConsistentPoint,
        lake: LakeState | None,
        base: LakeState | None,
        later: KafkaRange | None,
        limit: int,
    ) -> VerifyReport:
        """Run the job for one table."""
        self.show(f"comparing {table.source_table} with the lake table {table.name}")
        source = self.flow.spec.source
        versions = captured_schema.require_versions(self.bucket, self.flow.name, table.source_table)
        self._require_explained(table, versions[-1])
        files = point.files(source.schema_, table.name)
        applying = table.upsert_spec(self.where, owner="verify")
        spec = VerifySpec(
            location=self.where,
            pipeline=self.flow.name,
            topic=table.topic,
            uri=applying.uri(),
            versions=versions,
            values=applying.values,
            source=SourceTable(self._access(), point.snapshot_id, source.schema_, table.name, files.pages),
            point=Point(
                epoch=self.epoch,
                lsn=point.lsn,
                horizon=point.horizon,
                xmax=point.snapshot.xmax,
                in_progress=point.snapshot.in_progress,
            ),
            lake=lake,
            base=base,
            later=later,
            limit=limit,
        )
        report = self.systems.spark.run(verify.run, spec)
        if not report.clean:
            self._require_kept(table, lake)
            self._require_kept(table, base)
        # TRUNCATE, VACUUM FULL and what else writes a table anew do not heed snapshots: rows may have been missed.
        if point.files(source.schema_, table.name).nodes != files.nodes:
            raise SourceUnreadableError(
                f"table {table.source_table} was truncated or rewritten while it was compared: nothing can be said of "
                "it. Run it again"
            )
        return self._with_never_judged(table, report)

    def _with_never_judged(self, table: TableFlow, report: VerifyReport) -> VerifyReport:
        """The report with the keys that stayed pending; a run that judges a key starts its count again."""
        runs = pending_counts.count_pending_run(self.bucket, self.flow.name, table.name, report.pending_keys)
        stayed = [key for digest, key in report.pending_keys.items() if runs[digest] >= pending_counts.MAX_PENDING_RUNS]
        return replace(report, never_judged=stayed) if stayed else report

    def _require_kept(self, table: TableFlow, state: LakeState | None) -> None:
        """Make sure that no file of a commit was cleaned away while it was read: its rows would be missing."""
        commits = completed(self.bucket, table)
        if state is not None and sum(instant > state.instant for instant in commits) >= COMMITS_KEPT:
            raise SourceUnreadableError(
                f"lake table {table.name} was written {COMMITS_KEPT} times and more while it was compared: files of "
                f"commit {state.instant} may be gone, so that nothing can be said. Run it again while less is written, "
                "or keep more commits (hoodie.cleaner.commits.retained in cdc_lake/jobs/hudi/hudi.properties)"
            )

    def _access(self) -> SourceAccess:
        login = self.postgres.login()
        return SourceAccess(login.host, login.port, self.postgres.database, login.user, login.password)

    def _apply(self, table: TableFlow) -> None:
        owner, kafka, run = f"cdc-lake verify {self.flow.name}", self.systems.kafka, self.systems.spark.run
        found = table_progress.landing(table, kafka, self.where)
        if any(span.first < span.next for span in land.pending(found.head, found.spec)):
            self.show(f"landing what topic {table.topic} has")
            land_and_apply.land(table, kafka, self.where, run, owner)
        applying = table.upsert_spec(self.where, owner=owner)
        if upsert.new_manifests(self.bucket, applying) or upsert.new_version(self.bucket, applying) is not None:
            self.show(f"applying it to lake table {table.name}")
            land_and_apply.apply(table, self.systems.postgres, applying, run)

    def _require_explained(self, table: TableFlow, captured: captured_schema.TableSchema) -> None:
        source = self.flow.spec.source
        listed = self.postgres.columns(source.schema_, table.name)
        there = {column.name for column in listed}
        known = {column.name for column in captured.columns}
        if there != known:
            raise SchemaUnexplainedError(
                f"table {table.source_table} has other columns than version {captured.version} of its schema: "
                f"{', '.join(sorted(there ^ known))}. Materialise {self.flow.name}/source/{table.name} to capture them"
            )
