"""A table is added to a running pipeline while both tables are written, also if the worker is killed meanwhile."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.pipeline.assets import topic
from cdc_lake.pipeline.assets.standard_metadata import UNCHANGED
from cdc_lake.pipeline.connector_config import with_incremental_snapshots
from cdc_lake.pipeline.operations import table_additions, verification
from cdc_lake.profile import spark
from cdc_lake_tests.integration.chain.chain_pipeline import YAML, ChainPipeline
from cdc_lake_tests.integration.chain.conftest import NewPipeline
from cdc_lake_tests.pytest_hooks.long_test_sizes import size
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome
from resources.waiting import until

ROWS, RATE, CHUNK = size(3_000, 100_000), size(50, 200), size(20, 1024)
OLD, NEW = "parts", "stores"


@dataclass
class Writer:
    """Inserts, updates and deletes rows of both tables in a thread; `changes` counts them."""

    pipeline: ChainPipeline
    changes: int = 0
    upserts: dict[str, list[int]] = field(default_factory=lambda: {OLD: [], NEW: []})
    errors: list[Exception] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Write during the block."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stopped.set()
            thread.join()
        assert not self.errors, self.errors

    def _run(self) -> None:
        pipeline = self.pipeline.loaded
        chosen = random.Random(7)
        try:
            with pipeline.source_postgres(self.pipeline.resources["postgres"]).connect() as db, db.cursor() as cursor:
                cursor.execute(f"set search_path to {pipeline.name}")
                began = time.monotonic()
                while not self.stopped.wait(max(0.0, began + self.changes / RATE - time.monotonic())):
                    table, row = chosen.choice([OLD, NEW]), chosen.randint(1, ROWS + ROWS // 10)
                    if chosen.random() < 0.2:
                        cursor.execute(f"delete from {table} where id = %s", (row,))
                    else:
                        cursor.execute(
                            f"insert into {table} (id, v) values (%s, %s) "
                            "on conflict (id) do update set v = excluded.v",
                            (row, f"change {self.changes}"),
                        )
                        self.upserts[table].append(self.changes)
                    self.changes += 1
        except Exception as error:  # noqa: BLE001 - raised in the test's thread
            self.errors.append(error)


def started(
    new_pipeline: NewPipeline, name: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[ChainPipeline, ChainPipeline]:
    """Return a pipeline of one table that runs, and the same pipeline with a second table, which has rows."""
    monkeypatch.setattr(
        topic,
        "with_incremental_snapshots",
        lambda pipeline, config: {
            **with_incremental_snapshots(pipeline, config),
            "incremental.snapshot.chunk.size": str(CHUNK),
        },
    )
    before = new_pipeline(name, {OLD: ""})
    for table in (OLD, NEW):
        before.execute(
            f"create table {table} (id int primary key, v text not null);"
            f"insert into {table} (id, v) select g, 'row ' || g from generate_series(1, {ROWS}) g"
        )
    before.materialise()
    declared = "\n".join(f"    - {{ name: {table}, key: [id] }}" for table in (OLD, NEW))
    text = YAML.format(
        name=name,
        tables=f"{OLD}, {NEW}",
        declared=declared,
        targets=f"    - {{ name: lake, database: {name} }}",
        datasets="",
        limit=1000,
        stream="",
        landing="json",
        more="",
    )
    return before, new_pipeline(name, {}, text=text)


def notified(pipeline: ChainPipeline, kind: str) -> int:
    """Return the number of notifications of a kind about incremental snapshots."""
    kafka = pipeline.resources["kafka"]
    if kafka.topic(pipeline.loaded.notification_topic) is None:
        return 0
    messages = (json.loads(message.value) for message in kafka.peek(pipeline.loaded.notification_topic))
    return sum(each["aggregate_type"] == "Incremental Snapshot" and each["type"] == kind for each in messages)


def kill_worker() -> None:
    """Kill Kafka Connect with SIGKILL."""
    pid = {each.name: each.pid for each in _stack().status()}["connect"]
    assert pid is not None
    process = psutil.Process(pid)
    process.kill()
    process.wait()


def _stack() -> Stack:
    return Stack(StackHome(Path(os.environ["CDC_LAKE_HOME"])))


def check(pipeline: ChainPipeline, writer: Writer) -> None:
    """Require that the lake has the source's rows, of both tables, and that the other table was not read again."""
    found = pipeline.resources
    sent = [json.loads(message.value or b"{}") for message in found["kafka"].peek(pipeline.table(OLD).topic)]
    streamed = {each["v"] for each in sent if each["__op"] != "r"}
    lost = [number for number in writer.upserts[OLD] if f"change {number}" not in streamed]
    assert not lost, f"{len(lost)} of {len(writer.upserts[OLD])} changes of {OLD} are not in its topic: {lost}"
    systems = verification.VerifySystems(
        pipeline.loaded.source_postgres(found["postgres"]), found["kafka"], found["connect"], found["store"], spark()
    )
    for table, report in verification.verify_tables(pipeline.loaded, pipeline.loaded.tables, systems, seconds=120):
        assert report.clean, (table.name, report)
        assert report.compared > ROWS / 2, (table.name, report)
    for name in (OLD, NEW):
        rows = {row: value["v"] for row, value in pipeline.by_spark(name).items()}
        assert rows == dict(pipeline.execute(f"select id, v from {name}"))
    epoch = Epochs(pipeline.store, pipeline.loaded.name).current()
    assert epoch is not None
    assert (epoch.number, set(epoch.joins), epoch.joining) == (0, {pipeline.table(NEW).topic}, frozenset())
    read = {
        name: sum(
            json.loads(message.value or b"{}").get("__snapshot") == "incremental"
            for message in found["kafka"].peek(pipeline.table(name).topic)
        )
        for name in (OLD, NEW)
    }
    assert read[OLD] == 0
    assert read[NEW] > ROWS / 2
    assert writer.changes > 0


def test_a_table_is_added_while_both_are_written(new_pipeline: NewPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    _, pipeline = started(new_pipeline, "added", monkeypatch)
    with Writer(pipeline).writing() as writer:
        with pytest.raises(ContractError, match="lacks stores"):
            pipeline.materialise("topic")
        pipeline.materialise("source")
        pipeline.materialise("topic")
        pipeline.materialise("raw", "lake")
    pipeline.land_and_apply()
    check(pipeline, writer)
    assert notified(pipeline, "IN_PROGRESS") >= ROWS / CHUNK / 2
    assert pipeline.materialise("topic").metadata[f"added/topic/{NEW}_topic"]["changes"] == UNCHANGED


def test_a_worker_that_is_killed_in_a_chunk_resumes(new_pipeline: NewPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    _, pipeline = started(new_pipeline, "killed", monkeypatch)
    with Writer(pipeline).writing() as writer:
        pipeline.materialise("source")

        def kill_in_a_chunk() -> None:
            until(
                lambda: notified(pipeline, "IN_PROGRESS"),
                lambda n: n >= 3,
                seconds=120,
                what="three chunks",
                pause_seconds=0.05,
            )
            kill_worker()

        killing = threading.Thread(target=kill_in_a_chunk, daemon=True)
        killing.start()
        try:
            with pytest.raises(ContractError):
                pipeline.materialise("topic")
            killing.join()
            assert notified(pipeline, "COMPLETED") == 0, "the worker was killed after the snapshot"
            with pytest.raises(ContractError, match="Materialise killed/topic/stores_topic"):
                pipeline.materialise("raw")
        finally:
            _stack().up(["connect"])  # other tests need it too
        pipeline.materialise("topic")
    pipeline.land_and_apply()
    check(pipeline, writer)
    assert notified(pipeline, "STARTED") == 1, "the signal was sent again"


def test_a_transaction_that_was_open_before_the_publication_is_awaited(
    new_pipeline: NewPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, pipeline = started(new_pipeline, "awaited", monkeypatch)
    found = pipeline.resources
    waiting = threading.Event()

    def noted(*args: Any, **settings: Any) -> object:  # noqa: ANN401 - until()'s arguments
        waiting.set()
        return until(*args, **settings)

    monkeypatch.setattr(table_additions, "until", noted)
    # The first time, `source` waits for open transactions itself: it creates a trigger.
    pipeline.materialise("source")
    pipeline.execute(f"alter publication awaited drop table {NEW}")
    with (
        ThreadPoolExecutor(1) as pool,
        pipeline.loaded.source_postgres(found["postgres"]).connect(autocommit=False) as db,
        db.cursor() as cursor,
    ):
        cursor.execute(f"update awaited.{NEW} set v = 'early' where id = 1")
        pipeline.materialise("source")
        adding = pool.submit(pipeline.materialise, "topic")
        assert waiting.wait(60)
        cursor.execute(f"update awaited.{NEW} set v = 'later' where id = 2")
        assert not adding.done()
        db.commit()
        adding.result()
    pipeline.land_and_apply()
    rows = pipeline.by_spark(NEW)
    assert (rows[1]["v"], rows[2]["v"], len(rows)) == ("early", "later", ROWS)
