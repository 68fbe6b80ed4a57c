"""The slot is lost, made again, invalidated or moved, or Connect's offset is lost: loud before silent, then mended."""

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
from cdc_lake.contract.objects import json_lines
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import streaming
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.faults.small_pipeline import Stall
from cdc_lake_tests.trial_counts import Tried
from resources.postgres.slots import SlotInfo
from resources.waiting import until

MB = 2**20


def slot(stall: Stall) -> SlotInfo | None:
    """The pipeline's slot."""
    found: SlotInfo | None = stall.flow.at_source(stall.resources["postgres"]).slot(stall.flow.slot)
    return found


def healthy_slot(stall: Stall) -> SlotInfo:
    """The pipeline's slot, which is there."""
    found = slot(stall)
    assert found is not None
    return found


def mended(stall: Stall, tried: Tried) -> None:
    """A resnapshot, and the lake has the source's rows."""
    before = stall.epoch.number
    stall.resnapshot()
    assert stall.epoch.number == before + 1
    assert stall.in_lake() == stall.at_source()
    tried("losses of the source's stream, each told and mended", 1)


def test_dropped_while_the_connector_runs(stall: Stall, tried: Tried) -> None:
    stall.flow.at_source(stall.resources["postgres"]).drop_slot(stall.flow.slot)
    stall.change("lost", [1, 2])
    stall.failed()
    with pytest.raises(ContractError, match=rf"{stall.flow.slot} .*cdc-lake resnapshot {stall.flow.name}"):
        stall.materialise("topic")
    for stage in ("raw", "lake"):
        with pytest.raises(ContractError, match=f"cdc-lake resnapshot {stall.flow.name}"):
            stall.materialise(stage)
    mended(stall, tried)


def test_dropped_while_the_connector_is_stopped(stall: Stall, tried: Tried) -> None:
    stall.stop_connector()
    stall.flow.at_source(stall.resources["postgres"]).drop_slot(stall.flow.slot)
    stall.change("lost", [3])
    with pytest.raises(ContractError, match=rf"replication slot {stall.flow.slot} is gone"):
        stall.materialise("topic")
    status = stall.resources["connect"].status(stall.flow.connector)
    assert status.state == "STOPPED", "the connector was started, and Debezium makes a slot that is missing"
    assert slot(stall) is None
    mended(stall, tried)


def test_dropped_and_made_again(stall: Stall, tried: Tried) -> None:
    stall.stop_connector()
    stall.flow.at_source(stall.resources["postgres"]).drop_slot(stall.flow.slot)
    stall.change("lost", [5])
    stall.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", stall.flow.slot)
    with pytest.raises(ContractError, match=r"it was dropped and made again, read by somebody else"):
        stall.materialise("topic")
    mended(stall, tried)


def test_moved_on_by_somebody(stall: Stall, tried: Tried) -> None:
    stall.stop_connector()
    stall.change("lost", [4])
    until(lambda: healthy_slot(stall).active, lambda active: not active, seconds=30, what="the slot to be free")
    stall.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", stall.flow.slot)
    with pytest.raises(ContractError, match=r"begins at .*, after .*, where connector .* stands"):
        stall.materialise("topic")
    mended(stall, tried)


def test_invalidated(stall: Stall, tried: Tried) -> None:
    stall.stop_connector()
    stall.change("lost", [6])
    stall.execute("alter system set max_slot_wal_keep_size = '1MB'")
    try:
        stall.execute("select pg_reload_conf()")
        for _ in range(4):
            stall.execute("select pg_logical_emit_message(false, 'filler', repeat('x', 1000)), pg_switch_wal()")
        stall.execute("checkpoint")
        until(
            lambda: healthy_slot(stall).invalidation_reason,
            lambda reason: reason is not None,
            seconds=30,
            what="the slot to be invalidated",
        )
    finally:
        stall.execute("alter system reset max_slot_wal_keep_size")
        stall.execute("select pg_reload_conf()")
    with pytest.raises(ContractError, match=r"was invalidated by the server \(wal_removed\)"):
        stall.materialise("topic")
    mended(stall, tried)


def test_connect_has_lost_its_offset(stall: Stall, tried: Tried) -> None:
    """The worker starts the connector by itself, which takes a snapshot under the same epoch."""
    connect = stall.resources["connect"]
    stall.stop_connector()
    connect.delete_offsets(stall.flow.connector)
    stall.flow.at_source(stall.resources["postgres"]).drop_slot(stall.flow.slot)
    stall.change("lost", [8])
    connect.put(stall.flow.connector, connect.get(stall.flow.connector))
    stall.barrier()
    with pytest.raises(ContractError, match=r"took a snapshot by itself"):
        stall.materialise("raw")
    with pytest.raises(ContractError, match=r"took a snapshot by itself"):
        stall.materialise("topic")
    mended(stall, tried)


def test_connect_has_lost_its_offset_and_the_slot_is_there(stall: Stall, tried: Tried) -> None:
    stall.stop_connector()
    stall.resources["connect"].delete_offsets(stall.flow.connector)
    stall.change("lost", [9])
    with pytest.raises(ContractError, match=r"Kafka Connect has no offset of connector .* any more"):
        stall.materialise("topic")
    status = stall.resources["connect"].status(stall.flow.connector)
    assert status.state == "STOPPED", "the connector was started, and takes a snapshot without the deletes before it"
    mended(stall, tried)


def test_an_idle_database_does_not_hold_back_wal(stall: Stall) -> None:
    """Another database writes; the heartbeats move the slot, and what it retains is bounded by a check."""
    before = healthy_slot(stall).confirmed_flush_lsn or 0
    postgres = stall.resources["postgres"]
    with postgres.connect("postgres") as db, db.cursor() as cursor:
        cursor.execute(
            "select pg_logical_emit_message(false, 'filler', repeat('x', 1000000)) from generate_series(1, 8)"
        )
        cursor.execute("select pg_current_wal_lsn() - '0/0'")
        written = int(cursor.fetchone()[0])
    assert written > before
    until(
        lambda: healthy_slot(stall).restart_lsn or 0,
        lambda at: at >= written,
        seconds=120,
        what="the slot to leave behind what another database wrote",
    )

    stall.stop_connector()
    check = f"{stall.flow.name}/topic/goods:slot_healthy"
    # 30 MB for a limit of 16: the server's position leaves out what is still in its WAL buffers (4 MB).
    with postgres.connect("postgres") as db, db.cursor() as cursor:
        cursor.execute(
            "select pg_logical_emit_message(false, 'filler', repeat('x', 1000000)) from generate_series(1, 30)"
        )
    [bound] = [each for each in streaming.build(stall.table) if "slot_healthy" in str(each.check_key)]
    found = evaluate(bound, postgres=postgres)
    assert not found.passed
    retained = found.metadata["retained_wal_bytes"].value
    assert isinstance(retained, int)
    assert retained > stall.flow.spec.retained_wal_limit_mb * MB
    stall.carry()
    until(
        lambda: stall.materialise("topic").checks[check],
        lambda passed: passed,
        seconds=120,
        what="the check of the slot to be green once what it held back is read",
    )


def test_a_resnapshot_is_cut_off_at_each_step(stall: Stall, monkeypatch: pytest.MonkeyPatch, tried: Tried) -> None:
    places = [name for name in failpoints.REGISTRY if name.startswith("resnapshot.")]
    epoch = stall.epoch.number
    for place in places:
        monkeypatch.setenv(failpoints.VARIABLE, f"{place}=raise")
        stall.change(place, [stall.at_source()[0][0]])
        with pytest.raises(failpoints.FailpointReached, match=place):
            stall.resnapshot()
        monkeypatch.delenv(failpoints.VARIABLE)
        if stall.epoch.number > epoch:
            with pytest.raises(ContractError, match="a resnapshot is under way, or was cut off"):
                stall.materialise("topic")
        tried("places where a resnapshot was cut off", 1)
    stall.resnapshot()
    assert stall.epoch.number == epoch + 1
    assert Epochs(stall.store, stall.flow.name).completion(epoch + 1) is not None
    assert stall.in_lake() == stall.at_source()
    stall.carry()


def test_a_transaction_is_open_across_a_resnapshot(stall: Stall) -> None:
    """Its changes stream with an LSN before the snapshot's, and are newer than what the snapshot tells.

    A new slot waits for the transactions that are open when it begins, and again for those that have begun since; the
    one that begins then is open across the snapshot. So there is always one open here until the slot is ready.
    """
    at_source = stall.flow.at_source(stall.resources["postgres"])
    with ExitStack() as opened, ThreadPoolExecutor(1) as threads:

        def begin(value: str) -> tuple[Connection, int]:
            connection = opened.enter_context(at_source.connect(autocommit=False))
            with connection.cursor() as cursor:
                cursor.execute(f"update {stall.flow.name}.goods set v = %s where id %% 5 = %s", (value, len(value) % 5))
                cursor.execute("select pg_current_xact_id()::text::bigint")
                row = cursor.fetchone()
            assert row is not None
            return connection, int(row[0])

        current, xid = begin("open")
        done = threads.submit(stall.resnapshot)
        until(
            lambda: slot(stall),
            lambda found: found is not None and found.confirmed_flush_lsn is None,
            seconds=120,
            what="the new slot, which is not ready while a transaction is open",
        )
        for number in range(1, 10):
            until(
                partial(_waits_or_ready, stall, xid),
                bool,
                seconds=60,
                what="the new slot to wait for a transaction, or to be ready",
            )
            if _ready(stall):
                break
            following = begin("open" + "+" * number)
            current.commit()
            current, xid = following
        current.commit()
        done.result(timeout=120)
    stall.carry()
    completion = Epochs(stall.store, stall.flow.name).completion(stall.epoch.number)
    assert completion is not None
    assert completion.snapshot_lsn is not None
    before = [each for each in _streamed(stall) if each["__lsn"] < completion.snapshot_lsn]
    assert before, "no change was streamed with an LSN before the snapshot's: nothing was tried"


def _ready(stall: Stall) -> bool:
    found = slot(stall)
    return found is not None and found.confirmed_flush_lsn is not None


def _streamed(stall: Stall) -> list[dict[str, Any]]:
    """What the present epoch's stream has brought to the raw objects."""
    records = [
        json.loads(value)
        for manifest in table_progress.manifests(stall.store, stall.table)
        if manifest.epoch == stall.epoch.number
        for item in manifest.objects
        for _, value in json_lines.records(stall.store, item)
    ]
    return [record for record in records if record["__snapshot"] in (None, "false")]


def _waits_or_ready(stall: Stall, xid: int) -> bool:
    waiting = "select 1 from pg_locks where locktype = 'transactionid' and not granted and transactionid::text = %s"
    return _ready(stall) or bool(stall.execute(waiting, str(xid % 2**32)))


def test_nothing_is_armed_any_more() -> None:
    assert failpoints.VARIABLE not in os.environ
