"""replay: apply dead letters again, after the cause of their failure is fixed.

They are processed like all records: decoded with the schema versions that are captured now, and reduced to the newest
row of each key (docs/decisions/0005-order-column.md), so that an old record does not overwrite a newer one. The commit
keeps the table's checkpoint. The letters are closed after the commit; if the job is interrupted in between, the next
run applies them again, which changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.transforms import TableTransforms
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.source.schema_registry import RegistryLocation
from cdc_lake.contract.table import lease
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Position
from cdc_lake.jobs.apply.decode import OBJECT, REASON, decode
from cdc_lake.jobs.apply.fold import cached, fold
from cdc_lake.jobs.apply.record_fields import RecordParser, parse
from cdc_lake.jobs.apply.schema_migration import migration
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.maintenance import dead_letter_reader


@dataclass(frozen=True)
class ReplaySpec:
    """The table, and the ids of its letters to replay; None for all open ones.

    A letter exists once for all targets of its topic: `close` is False for each target but the last one.
    """

    table: UpsertSpec
    ids: Sequence[str] | None = None
    close: bool = True
    registry: RegistryLocation | None = None
    """The registry of a topic in Avro, because a record that was never landed is stored as it is in Kafka."""
    transforms: TableTransforms | None = None
    """The transforms that landing applies, for the same reason."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reasons of the letters, by id, that could not be applied to an earlier target: they are not closed."""


@dataclass(frozen=True)
class ReplayReport:
    """The result by letter id; `instant` is None if nothing was written.

    `overtaken` are letters of an epoch before the newest snapshot, which has read their rows again. `failed` has the
    reasons of the letters that could not be applied to this table, and remain open.
    """

    instant: str | None = None
    applied: Sequence[str] = ()
    overtaken: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@contract_errors()
def run(spark: SparkSession, spec: ReplaySpec) -> ReplayReport:
    """Apply dead letters to the table, in one commit, and close those that were applied.

    Raises ContractError if the table or its newest snapshot is missing, LeaseHeldError, LeaseLostError and
    ObjectDamagedError; then nothing is committed, and no letter is closed.
    """
    started = time.monotonic()
    table = spec.table
    store = table.location.store()
    with table.writer_lease(store) as held:
        chosen = _chosen(store, spec)
        old, letters = _by_epoch(store, table, chosen)
        instant, failed = _apply(spark, store, spec, letters, held) if letters else (None, {})
        failpoints.reached("replay.after_commit")
        # A writer that was paused here may have lost its lease: then the next writer closes the letters.
        held.secure()
        failures = {**spec.failed, **failed}
        for letter in letters:
            if letter.id in failed and letter.id not in spec.failed:
                held.check()
                dead_letters.record_failed_replay(store, table.pipeline, letter, failed[letter.id])
        if spec.close:
            _close(store, table.pipeline, held, old, [each for each in letters if each.id not in failures], instant)
    return ReplayReport(
        instant=instant,
        applied=[letter.id for letter in letters if letter.id not in failed],
        overtaken=[letter.id for letter in old],
        failed=failed,
        seconds=time.monotonic() - started,
    )


def _close(
    store: ObjectStore,
    pipeline: str,
    held: lease.Lease,
    old: Sequence[DeadLetter],
    applied: Sequence[DeadLetter],
    instant: str | None,
) -> None:
    for letter in old:
        held.check()
        dead_letters.close(store, pipeline, letter, "overtaken", None)
    for letter in applied:
        held.check()
        dead_letters.close(store, pipeline, letter, "replayed", instant)


def _chosen(store: ObjectStore, spec: ReplaySpec) -> list[DeadLetter]:
    pipeline, topic = spec.table.pipeline, spec.table.topic
    if spec.ids is not None:
        return [dead_letters.find(store, pipeline, each) for each in dict.fromkeys(spec.ids)]
    return [letter for letter in dead_letters.letters(store, pipeline) if letter.topic == topic]


def _by_epoch(
    store: ObjectStore, table: UpsertSpec, letters: Sequence[DeadLetter]
) -> tuple[list[DeadLetter], list[DeadLetter]]:
    """Return the letters of previous epochs, and those of the current epoch."""
    epochs = Epochs(store, table.pipeline)
    current = epochs.current()
    number = 0 if current is None else current.number
    old = [letter for letter in letters if letter.epoch < number]
    if old and epochs.completion(number) is None:
        raise ContractError(
            f"Cannot replay dead letter {old[0].id}: it is from an earlier epoch, and the running snapshot of pipeline "
            f"{table.pipeline} reads its row again. Nothing was replayed. Run this again after the snapshot."
        )
    return old, [letter for letter in letters if letter.epoch >= number]


def _apply(
    spark: SparkSession, store: ObjectStore, spec: ReplaySpec, letters: Sequence[DeadLetter], held: lease.Lease
) -> tuple[str | None, dict[str, str]]:
    """Return the commit's instant (None if no letter could be applied), and the reasons of the failed letters by id."""
    table = spec.table
    lake_table = table.lake_table(store)
    before = lake_table.recover(spark)
    checkpoint = None if before is None else before.checkpoint
    asset = table.asset
    if before is None or checkpoint is None:
        raise ContractError(
            f"Cannot replay dead letters: table {table.table} does not exist yet. Materialise {asset}, then replay "
            "again."
        )
    versions = captured_schema.require_versions(store, table.pipeline, table.source_table)
    if migration(versions, checkpoint.schema_version) is not None:
        raise ContractError(
            f"Cannot replay dead letters: table {table.table} does not have the columns of schema version "
            f"{versions[-1].version} yet. Materialise {asset}, then replay again."
        )
    with_value = [letter for letter in letters if letter.size or letter.replacement]
    # A record without a value is not a change.
    failed = {letter.id: letter.reason for letter in letters if letter not in with_value}
    if not with_value:
        return None, failed
    epochs = {letter.epoch for letter in with_value}
    letter_records = dead_letter_reader.read(
        spark, with_value, table.location, table.pipeline, spec.registry, spec.transforms
    )
    records = parse(letter_records, RecordParser.of(versions, epochs))
    decoded = decode(records, versions, table.values, epochs)
    current = max(letter.epoch for letter in letters)
    completion = Epochs(store, table.pipeline).completion(current)
    # Rows before the complete snapshot's position are left out: an interrupted snapshot may have read rows that were
    # deleted before the complete one.
    snapshot_lsn = 0 if completion is None else completion.snapshot_lsn or 0
    boundary = Position(current, streamed=False, lsn=snapshot_lsn).encode()
    with (
        fold(decoded, table.key, table.partition_by, lambda: lake_table.rows(spark), checkpoint) as folded,
        cached(folded.newest.where(F.col(ORDER_COLUMN) >= boundary)) as rows,
    ):
        if folded.bad is not None:
            failed |= {row[OBJECT]: row[REASON] for row in folded.bad.select(OBJECT, REASON).collect()}
        if rows.isEmpty():
            return None, failed
        held.check()
        failpoints.reached("replay.before_write")
        commit = lake_table.write(rows, checkpoint, held, previous=before)
    return commit.instant, failed
