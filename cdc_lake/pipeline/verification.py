"""Is the lake what the source is? At one consistent point, while the source is being written.

The argument. The point is a snapshot of PostgreSQL (resources/postgres_snapshot.py). A heartbeat is committed after
it was taken. Every transaction that the point sees had ended for everybody by then, so its commit record stands in
the WAL before the heartbeat's, and logical decoding, which follows the order of commit records, streamed it before.
Two barriers are waited for, one after the other: records of one Kafka transaction can show in one topic a moment
before another, but once a later transaction's record shows, the earlier ones show everywhere. A lake whose watermark
is at the second heartbeat has then applied everything that the point sees, and perhaps more.

What is more is told by transaction ids (contract/visibility.py): a row of the lake that the point has seen is the
newest of its key that the point sees, because changes of one key are committed one after another. Others are resolved
by the raw events (jobs/verify/resolving.py).

Here: fixing the point, waiting, and the job's spec. Not here: the comparison (jobs/verify).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cdc_lake.contract import schema, timeline
from cdc_lake.contract.chain import Chain
from cdc_lake.contract.epochs import Epochs
from cdc_lake.contract.errors import SchemaUnexplainedError, SourceUnreadableError
from cdc_lake.contract.position import Watermark
from cdc_lake.contract.store import ObjectStore as Bucket
from cdc_lake.contract.store import S3Location
from cdc_lake.contract.visibility import Point
from cdc_lake.jobs import land, upsert, verify
from cdc_lake.jobs.verify import KafkaRange, LakeState, SourceAccess, SourceTable, VerifyReport, VerifySpec
from cdc_lake.pipeline import stream
from cdc_lake.pipeline.flow import Flow, TableFlow, location
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.postgres import Postgres
from resources.postgres_snapshot import ConsistentPoint, consistent_point
from resources.spark import LocalSpark
from resources.waiting import until

LIMIT = 20
_PAUSE_SECONDS = 0.5
_COMPLETED = (".commit", ".deltacommit", ".replacecommit")
"""What writes rows ends in; a commit without a checkpoint is not of ours, and is read all the same."""

Show = Callable[[str], None]
"""Told what is being done, for people who wait."""


@dataclass(frozen=True)
class Systems:
    """What a verification asks."""

    postgres: Postgres
    kafka: Kafka
    store: ObjectStore
    spark: LocalSpark


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
        return one.compare(table, point, state, state, one.later(table, state), limit)


def lake_state(bucket: Bucket, table: TableFlow) -> LakeState | None:
    """The table as of its newest commit, whoever made that; None where it has none."""
    # The listing first: a commit that comes in between has a checkpoint, which then goes with its own instant.
    listed = [item.key.rpartition("/")[2] for item in bucket.scan(f"{table.lake_prefix}.hoodie/", recursive=False)]
    commit = timeline.last_commit(bucket, table.lake_prefix)
    if commit is None or commit.checkpoint is None:
        return None
    completed = (name.partition(".")[0] for name in listed if name.endswith(_COMPLETED))
    return LakeState(max([commit.instant, *completed]), commit.checkpoint.manifest)


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
        Epochs(self.bucket, self.flow.name).require_whole()
        with consistent_point(self.postgres, self.flow.slot) as found:
            self.show(f"the point: snapshot {found.snapshot_id}, LSN {found.lsn}")
            yield found

    def streamed(self, seconds: float) -> Watermark:
        """Wait until all that the point sees is in Kafka, and shows there; the heartbeat behind it."""
        self.show("waiting for the stream to pass the point")
        stream.barrier(self.postgres, self.systems.kafka, self.flow, seconds)
        return stream.barrier(self.postgres, self.systems.kafka, self.flow, seconds)

    def wait_for_lake(self, table: TableFlow, beat: Watermark, seconds: float, apply: bool) -> None:
        """Wait until the table has applied all that was streamed before the heartbeat."""
        self.show(f"waiting for the lake table {table.name} to pass LSN {beat.lsn}")

        def look() -> int:
            if apply:
                self._apply(table)
            mark = stream.lake_watermark(self.bucket, table, stream.topic_state(self.systems.kafka, table))
            return 0 if mark is None else mark.lsn

        until(
            look,
            lambda lsn: lsn >= beat.lsn,
            seconds=seconds,
            what=f"lake table {table.name} of {self.flow.name} to apply what was committed before LSN {beat.lsn}",
            hint=f"Let its sensors run (`cdc-lake dev`), or `cdc-lake verify {self.flow.name} --apply`.",
            pause_seconds=_PAUSE_SECONDS,
        )

    def later(self, table: TableFlow, state: LakeState | None) -> KafkaRange:
        """The records of the topic that a state has not applied."""
        chain = Chain(self.bucket, self.flow.name, table.topic)
        applied = chain.read(state.manifest).next_offsets() if state else {}
        kafka = self.systems.kafka
        ends = kafka.end_offsets(table.topic)
        begins = {partition: min(applied.get(partition, 0), end) for partition, end in ends.items()}
        return KafkaRange(table.topic, begins, ends, {"bootstrap.servers": kafka.bootstrap}, self.epoch)

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
        versions = schema.captured(self.bucket, self.flow.name, table.source_table)
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
        # TRUNCATE, VACUUM FULL and what else writes a table anew do not heed snapshots: rows may have been missed.
        if point.files(source.schema_, table.name).nodes != files.nodes:
            raise SourceUnreadableError(
                f"table {table.source_table} was truncated or rewritten while it was compared: nothing can be said of "
                "it. Run it again"
            )
        return report

    def _access(self) -> SourceAccess:
        server = self.postgres
        return SourceAccess(server.host, server.port, server.database, server.user, server.password)

    def _apply(self, table: TableFlow) -> None:
        state = stream.topic_state(self.systems.kafka, table)
        landing = stream.land_spec(table, state, self.where, self.systems.kafka.bootstrap)
        head = Chain(self.bucket, self.flow.name, table.topic).head()
        if any(span.first < span.next for span in land.pending(head, landing)):
            self.show(f"landing what topic {table.topic} has")
            self.systems.spark.run(land.run, landing)
        applying = table.upsert_spec(self.where, owner=f"cdc-lake verify {self.flow.name}")
        if upsert.new_manifests(self.bucket, applying):
            self.show(f"applying it to lake table {table.name}")
            self.systems.spark.run(upsert.run, applying)

    def _require_explained(self, table: TableFlow, captured: schema.TableSchema) -> None:
        source = self.flow.spec.source
        listed = self.postgres.columns(source.schema_, table.name)
        there = {column.name for column in listed}
        known = {column.name for column in captured.columns}
        if there != known:
            raise SchemaUnexplainedError(
                f"table {table.source_table} has other columns than version {captured.version} of its schema: "
                f"{', '.join(sorted(there ^ known))}. Materialise {self.flow.name}/source/{table.name} to capture them"
            )
