"""Poll a table: begin a poll, send its window to the topic, and complete it, under the table's poll lease."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_none

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError, RaceLostError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs, broken_stream_error
from cdc_lake.contract.source.poll_state import Bound, Polls, PollState, StoredPoll
from cdc_lake.contract.table import lease
from cdc_lake.jobs.poll import poll as job
from cdc_lake.jobs.poll.poll import PollSpec
from cdc_lake.pipeline.operations.land_and_apply import RunJob
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source, schema_capture, stream_continuity, stream_faults
from resources.deployment import RECORD_BYTES
from resources.kafka.resource import Kafka

_MAX_RACES = 5


@dataclass(frozen=True)
class PollSystems:
    """The systems that polling uses; `run` runs a Spark job, `owner` owns the lease."""

    postgres: SourcePostgres
    kafka: Kafka
    location: S3Location
    run: RunJob
    owner: str
    lease_wait_seconds: float = lease.WAIT_SECONDS


@dataclass(frozen=True)
class PollResult:
    """The table's newest poll and the source's schema, with the numbers of polls and records and the duration.

    `polls` is 0 if no row had changed.
    """

    poll: PollState
    schema: schema_capture.Capture
    polls: int
    records: int
    seconds: float


def poll(table: PipelineTable, systems: PollSystems) -> PollResult:
    """Send all rows that changed before the current bound; first repeat an interrupted poll.

    Raises what the source, the job and Polls raise, LeaseHeldError, and ContractError if the topic has records before
    the table's first poll.
    """
    with polling_lease(table, systems) as store:
        ensure_topic(table, systems.kafka)
        epoch = current_epoch(table, systems.postgres, store)
        if polls(table, store).read() is None and table.topic not in epoch.starts:
            stream_continuity.require_empty_topic(table.pipeline, table.topic, systems.kafka)
        found = _poll(table, systems, store, epoch)
        if epoch.number == 0:  # a resnapshot completes other epochs
            done = Completion(snapshot_lsn=None, completed_at=datetime.now(UTC))
            Epochs(store, table.pipeline.name).complete(0, done)
        return found


@contextmanager
def polling_lease(table: PipelineTable, systems: PollSystems) -> Iterator[ObjectStore]:
    """Hold the table's poll lease; yield the bucket."""
    store = systems.location.store()
    key = object_names.poll_lease_key(table.pipeline.name, table.name)
    with lease.held(store, key, systems.owner, wait_seconds=systems.lease_wait_seconds):
        yield store


def polls(table: PipelineTable, store: ObjectStore) -> Polls:
    """Return the table's stored polls."""
    return Polls(store, table.pipeline.name, table.name)


def has_changes(table: PipelineTable, postgres: SourcePostgres, lower: Bound | None, upper: Bound) -> bool:
    """Return whether a row changed from `lower` (None: ever) to before `upper`."""
    return polled_source.finds_row(table, postgres, polled_source.rows(table).window(lower, upper))


def has_unpolled_rows(table: PipelineTable, postgres: SourcePostgres, store: ObjectStore) -> bool:
    """Return whether the source has a row that changed after the last complete poll."""
    last = polls(table, store).read()
    if last is None or last.poll.reached is None:
        return True
    return polled_source.finds_row(table, postgres, f"not {polled_source.rows(table).settled(last.poll.reached)}")


def ensure_topic(table: PipelineTable, kafka: Kafka) -> None:
    """Create the table's topic if it is missing."""
    pipeline = table.pipeline
    kafka.ensure_topic(table.topic, pipeline.spec.stream.partitions, pipeline.topic_settings({}))


def topic_id(table: PipelineTable, kafka: Kafka) -> str:
    """Return the id of the table's topic. Raises ContractError if it does not exist."""
    found = kafka.topic(table.topic)
    if found is None:
        raise ContractError(
            f"Cannot poll table {table.name}: topic {table.topic} does not exist. Materialise {table.asset('topic')}."
        )
    return found.topic_id


def sink_options(kafka: Kafka) -> dict[str, str]:
    """Return the options of Spark's Kafka sink; the limit of a record's size is that of the topics."""
    return {**kafka.spark_options(), "max.request.size": str(RECORD_BYTES)}


def current_epoch(table: PipelineTable, postgres: SourcePostgres, store: ObjectStore) -> Epoch:
    """Return the pipeline's current epoch; begin the first one if there is none.

    Raises SourceBrokenError if the server is not that of the epoch.
    """
    pipeline = table.pipeline
    epochs = Epochs(store, pipeline.name)
    epoch = epochs.current()
    if epoch is None:
        try:
            return epochs.begin(stream_continuity.new_epoch(pipeline, postgres, 0, "the pipeline was started"))
        except RaceLostError:  # the first poll of another table began it
            return epochs.read(0)
    epochs.require_whole()
    if faults := tuple(stream_faults.server_faults(postgres, epoch)):
        found = stream_continuity.new_break(faults)
        epochs.mark_broken(epoch.number, found)
        raise broken_stream_error(pipeline.name, found)
    return epoch


def _poll(table: PipelineTable, systems: PollSystems, store: ObjectStore, epoch: Epoch) -> PollResult:
    chain, topic = polls(table, store), topic_id(table, systems.kafka)
    count, records, seconds = 0, 0, 0.0
    while True:
        last = chain.read()
        if last is not None and last.poll.epoch != epoch.number:
            last = None
        repeated = last is not None and last.poll.interrupted
        bound = polled_source.bound(table, systems.postgres, None if last is None else last.poll.upper)
        # After the bound: a column that is added later has no value in the window.
        schema = schema_capture.capture(table, systems.postgres, store)
        if last is not None and not repeated:
            chain.require_topic(last.poll, topic)
            if not has_changes(table, systems.postgres, last.poll.upper, bound):
                advanced = retry_races(partial(_advance, chain, bound))
                return PollResult(advanced.poll, schema, count, records, seconds)
        if last is None or last.poll.reached is None:
            polled_source.require_times(table, systems.postgres)
        started = retry_races(partial(chain.begin, bound, topic, epoch.number))
        failpoints.reached("poll.after_begin")
        sent, took = _send(table, systems, started, schema.schema)
        done = chain.complete(started)
        failpoints.reached("poll.after_complete")
        count, records, seconds = count + 1, records + sent, seconds + took
        if not repeated:
            return PollResult(done.poll, schema, count, records, seconds)


def retry_races(change: Callable[[], StoredPoll]) -> StoredPoll:
    """Call `change`, which changes the poll state under the poll lease, and return the changed state.

    Repeats the call if the sensor, which holds no lease, advanced the state in the meantime.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(RaceLostError),
        stop=stop_after_attempt(_MAX_RACES),
        wait=wait_none(),
        reraise=True,
    )
    return retrying(change)


def _advance(chain: Polls, bound: Bound) -> StoredPoll:
    """Move the end of the last poll, or that of an interrupted reconciliation, to the bound."""
    last = chain.read()
    if last is None:
        raise RaceLostError(f"Cannot poll table {chain.table}: its state was deleted by a reset. Run this again.")
    return chain.advance(last if last.poll.state == "complete" else chain.complete(last), bound)


def _send(table: PipelineTable, systems: PollSystems, started: StoredPoll, schema: TableSchema) -> tuple[int, float]:
    """Send the window's rows; return their number, counted by the topic's offsets, and the duration in seconds."""
    kafka, rows, found = systems.kafka, polled_source.rows(table), started.poll
    name = (table.pipeline.spec.source.schema_, table.polled_table)
    files = systems.postgres.files(*name) if rows.divisible and rows.from_beginning(found.lower) else None
    before = kafka.end_offsets(table.topic)
    report = systems.run(
        job.run,
        PollSpec(
            access=polled_source.access(systems.postgres, hashes=schema.has_hashes),
            rows=rows,
            schema=schema,
            topic=table.topic,
            kafka=sink_options(kafka),
            number=found.number,
            lower=found.lower,
            upper=found.upper,
            pages=None if files is None else files.pages,
            transforms=table.landing_transforms,
            record_key=table.record_key,
        ),
    )
    if files is not None and systems.postgres.files(*name).nodes != files.nodes:
        # The job reads ranges of pages, each in a transaction of its own: rows may have moved to pages already read.
        raise ContractError(
            f"Cannot complete poll {found.number} of table {table.polled_table}: the table was rewritten while it was "
            "read (VACUUM FULL, CLUSTER, ALTER TABLE). Run this again, which reads all rows again."
        )
    return sum(kafka.end_offsets(table.topic).values()) - sum(before.values()), report.seconds
