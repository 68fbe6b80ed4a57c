"""A lost, re-created, invalidated or advanced slot and a lost Connect offset are reported, and a resnapshot repairs."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import topic as topic_checks
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.faults.stream.replication_slot import assert_repaired_by_resnapshot, existing_slot, slot
from cdc_lake_tests.faults.stream.small_pipeline import SmallPipeline
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from resources.waiting import until

TESTS_IN_CI = 3

MB = 2**20


def test_slot_dropped_while_the_connector_runs_is_reported(pipeline: SmallPipeline, count_trials: CountTrials) -> None:
    pipeline.loaded.source_postgres(pipeline.resources["postgres"]).drop_slot(pipeline.loaded.slot)
    pipeline.change("lost", [1, 2])
    pipeline.failed()
    with pytest.raises(ContractError, match=rf"{pipeline.loaded.slot} .*cdc-lake resnapshot {pipeline.loaded.name}"):
        pipeline.materialise("topic")
    for stage in ("raw", "lake"):
        with pytest.raises(ContractError, match=f"cdc-lake resnapshot {pipeline.loaded.name}"):
            pipeline.materialise(stage)
    assert_repaired_by_resnapshot(pipeline, count_trials)


def test_slot_dropped_while_the_connector_is_stopped_is_reported(
    pipeline: SmallPipeline, count_trials: CountTrials
) -> None:
    pipeline.stop_connector()
    pipeline.loaded.source_postgres(pipeline.resources["postgres"]).drop_slot(pipeline.loaded.slot)
    pipeline.change("lost", [3])
    with pytest.raises(ContractError, match=rf"replication slot {pipeline.loaded.slot} does not exist any more"):
        pipeline.materialise("topic")
    status = pipeline.resources["connect"].status(pipeline.loaded.connector)
    assert status.state == "STOPPED", "the connector was started; Debezium creates a missing slot"
    assert slot(pipeline) is None
    assert_repaired_by_resnapshot(pipeline, count_trials)


def test_slot_dropped_and_recreated_is_reported(pipeline: SmallPipeline, count_trials: CountTrials) -> None:
    pipeline.stop_connector()
    pipeline.loaded.source_postgres(pipeline.resources["postgres"]).drop_slot(pipeline.loaded.slot)
    pipeline.change("lost", [5])
    pipeline.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", pipeline.loaded.slot)
    with pytest.raises(ContractError, match=r"the slot was dropped and re-created, another program read it"):
        pipeline.materialise("topic")
    assert_repaired_by_resnapshot(pipeline, count_trials)


def test_slot_moved_by_another_client_is_reported(pipeline: SmallPipeline, count_trials: CountTrials) -> None:
    pipeline.stop_connector()
    pipeline.change("lost", [4])
    until(lambda: existing_slot(pipeline).active, lambda active: not active, seconds=30, what="the slot to be free")
    pipeline.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", pipeline.loaded.slot)
    with pytest.raises(ContractError, match=r"begins at .*, after the offset .* of connector"):
        pipeline.materialise("topic")
    assert_repaired_by_resnapshot(pipeline, count_trials)


def test_slot_invalidated_by_the_server_is_reported(pipeline: SmallPipeline, count_trials: CountTrials) -> None:
    pipeline.stop_connector()
    pipeline.change("lost", [6])
    pipeline.execute("alter system set max_slot_wal_keep_size = '1MB'")
    try:
        pipeline.execute("select pg_reload_conf()")
        for _ in range(4):
            pipeline.execute("select pg_logical_emit_message(false, 'filler', repeat('x', 1000)), pg_switch_wal()")
        pipeline.execute("checkpoint")
        until(
            lambda: existing_slot(pipeline).invalidation_reason,
            lambda reason: reason is not None,
            seconds=30,
            what="the slot to be invalidated",
        )
    finally:
        pipeline.execute("alter system reset max_slot_wal_keep_size")
        pipeline.execute("select pg_reload_conf()")
    with pytest.raises(ContractError, match=r"was invalidated by the server \(wal_removed\)"):
        pipeline.materialise("topic")
    assert_repaired_by_resnapshot(pipeline, count_trials)


def test_offset_lost_with_the_slot_is_reported_after_the_next_snapshot(
    pipeline: SmallPipeline, count_trials: CountTrials
) -> None:
    """As if the worker had started the connector by itself, which then takes a snapshot in the same epoch."""
    connect = pipeline.resources["connect"]
    pipeline.stop_connector()
    connect.delete_offsets(pipeline.loaded.connector)
    pipeline.loaded.source_postgres(pipeline.resources["postgres"]).drop_slot(pipeline.loaded.slot)
    pipeline.change("lost", [8])
    connect.put(pipeline.loaded.connector, connect.get(pipeline.loaded.connector))
    pipeline.barrier()
    with pytest.raises(ContractError, match=r"took a new snapshot"):
        pipeline.materialise("raw")
    with pytest.raises(ContractError, match=r"took a new snapshot"):
        pipeline.materialise("topic")
    assert_repaired_by_resnapshot(pipeline, count_trials)


def test_offset_lost_without_the_slot_is_reported_before_the_connector_starts(
    pipeline: SmallPipeline, count_trials: CountTrials
) -> None:
    pipeline.stop_connector()
    pipeline.resources["connect"].delete_offsets(pipeline.loaded.connector)
    pipeline.change("lost", [9])
    with pytest.raises(ContractError, match=r"Kafka Connect has no offset of connector .* any more"):
        pipeline.materialise("topic")
    status = pipeline.resources["connect"].status(pipeline.loaded.connector)
    assert status.state == "STOPPED", "the connector was started; its snapshot does not contain earlier deletes"
    assert_repaired_by_resnapshot(pipeline, count_trials)


def test_an_idle_database_does_not_retain_wal(pipeline: SmallPipeline) -> None:
    """Another database writes; the heartbeats advance the slot, and a check bounds the retained WAL."""
    before = existing_slot(pipeline).confirmed_flush_lsn or 0
    postgres = pipeline.resources["postgres"]
    with postgres.connect("postgres") as db, db.cursor() as cursor:
        cursor.execute(
            "select pg_logical_emit_message(false, 'filler', repeat('x', 1000000)) from generate_series(1, 8)"
        )
        cursor.execute("select pg_current_wal_lsn() - '0/0'")
        written = int(cursor.fetchone()[0])
    assert written > before
    until(
        lambda: existing_slot(pipeline).restart_lsn or 0,
        lambda at: at >= written,
        seconds=120,
        what="the slot to pass the WAL of another database",
    )

    pipeline.stop_connector()
    check = f"{pipeline.loaded.name}/topic/goods_topic:slot_healthy"
    # 30 MB for a limit of 16 MB: the server's position does not include its WAL buffers (4 MB).
    with postgres.connect("postgres") as db, db.cursor() as cursor:
        cursor.execute(
            "select pg_logical_emit_message(false, 'filler', repeat('x', 1000000)) from generate_series(1, 30)"
        )
    [bound] = [each for each in topic_checks.build(pipeline.table) if "slot_healthy" in str(each.check_key)]
    found = evaluate(bound, postgres=postgres)
    assert not found.passed
    retained = found.metadata["retained_wal_bytes"].value
    assert isinstance(retained, int)
    assert retained > pipeline.loaded.spec.retained_wal_limit_mb * MB
    pipeline.land_and_compare()
    until(
        lambda: pipeline.materialise("topic").checks[check],
        lambda passed: passed,
        seconds=120,
        what="the check of the slot to pass after the retained WAL is read",
    )


def test_a_resnapshot_interrupted_at_each_step_completes(
    pipeline: SmallPipeline, monkeypatch: pytest.MonkeyPatch, count_trials: CountTrials
) -> None:
    places = [name for name in failpoints.REGISTRY if name.startswith("resnapshot.")]
    epoch = pipeline.epoch.number
    for place in places:
        monkeypatch.setenv(failpoints.VARIABLE, f"{place}=raise")
        pipeline.change(place, [pipeline.at_source()[0][0]])
        with pytest.raises(failpoints.FailpointReached, match=place):
            pipeline.resnapshot()
        monkeypatch.delenv(failpoints.VARIABLE)
        if pipeline.epoch.number > epoch:
            with pytest.raises(ContractError, match="a resnapshot is running, or was interrupted"):
                pipeline.materialise("topic")
        count_trials("failpoints at which a resnapshot was interrupted", 1)
    pipeline.resnapshot()
    assert pipeline.epoch.number == epoch + 1
    assert Epochs(pipeline.store, pipeline.loaded.name).completion(epoch + 1) is not None
    assert pipeline.in_lake() == pipeline.at_source()
    pipeline.land_and_compare()


def test_a_transaction_open_across_a_resnapshot_is_applied(pipeline: SmallPipeline) -> None:
    """Its changes have lower LSNs than the snapshot, but are newer than the snapshot's rows.

    A new slot waits for the transactions that are open when its creation begins, and then for those that have begun
    since. A transaction that begins after that is open across the snapshot. So the test always has an open transaction
    until the slot is ready.
    """
    at_source = pipeline.loaded.source_postgres(pipeline.resources["postgres"])
    with ExitStack() as opened, ThreadPoolExecutor(1) as threads:

        def begin(value: str) -> tuple[Connection, int]:
            connection = opened.enter_context(at_source.connect(autocommit=False))
            with connection.cursor() as cursor:
                cursor.execute(
                    f"update {pipeline.loaded.name}.goods set v = %s where id %% 5 = %s", (value, len(value) % 5)
                )
                cursor.execute("select pg_current_xact_id()::text::bigint")
                row = cursor.fetchone()
            assert row is not None
            return connection, int(row[0])

        current, xid = begin("open")
        done = threads.submit(pipeline.resnapshot)
        until(
            lambda: slot(pipeline),
            lambda found: found is not None and found.confirmed_flush_lsn is None,
            seconds=120,
            what="the new slot, which is not ready while a transaction is open",
        )
        for number in range(1, 10):
            until(
                partial(_waits_or_ready, pipeline, xid),
                bool,
                seconds=60,
                what="the new slot to wait for a transaction, or to be ready",
            )
            if _ready(pipeline):
                break
            following = begin("open" + "+" * number)
            current.commit()
            current, xid = following
        current.commit()
        done.result(timeout=120)
    pipeline.land_and_compare()
    completion = Epochs(pipeline.store, pipeline.loaded.name).completion(pipeline.epoch.number)
    assert completion is not None
    assert completion.snapshot_lsn is not None
    before = [each for each in _streamed(pipeline) if each["__lsn"] < completion.snapshot_lsn]
    assert before, "no change was streamed with an LSN lower than the snapshot's, so the case was not tested"


def _ready(pipeline: SmallPipeline) -> bool:
    found = slot(pipeline)
    return found is not None and found.confirmed_flush_lsn is not None


def _streamed(pipeline: SmallPipeline) -> list[dict[str, Any]]:
    """Return the landed records of the current epoch that are not from its snapshot."""
    records = [
        json.loads(value)
        for manifest in table_progress.manifests(pipeline.store, pipeline.table)
        if manifest.epoch == pipeline.epoch.number
        for item in manifest.objects
        for _, value in raw_objects.records(pipeline.store, item)
    ]
    return [record for record in records if record["__snapshot"] in (None, "false")]


def _waits_or_ready(pipeline: SmallPipeline, xid: int) -> bool:
    waiting = "select 1 from pg_locks where locktype = 'transactionid' and not granted and transactionid::text = %s"
    return _ready(pipeline) or bool(pipeline.execute(waiting, str(xid % 2**32)))


def test_no_failpoint_is_left_set() -> None:
    assert failpoints.VARIABLE not in os.environ
