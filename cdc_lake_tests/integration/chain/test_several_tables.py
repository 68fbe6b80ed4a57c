"""Several tables of a pipeline are landed and applied at once; one that fails does not stop the others."""

from __future__ import annotations

import threading

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.jobs.apply import upsert
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from cdc_lake_tests.integration.chain.conftest import NewPipeline

TABLES = ("first", "second", "third", "fourth")


def rows(pipeline: ChainPipeline, table: str) -> dict[int, str]:
    return {key: row["v"] for key, row in pipeline.by_spark(table).items()}


def test_tables_are_applied_at_once_and_a_lost_topic_stops_its_table_only(
    new_pipeline: NewPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = new_pipeline("several", dict.fromkeys(TABLES, ""))
    for name in TABLES:
        pipeline.execute(f"create table {name} (id int primary key, v text); insert into {name} values (1, '{name}')")
    threads = set()
    new_manifests = upsert.new_manifests

    def seen(*arguments: object) -> object:
        threads.add(threading.current_thread().name)
        return new_manifests(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(upsert, "new_manifests", seen)
    pipeline.materialise()
    assert len(threads) == len(TABLES)
    assert {name: rows(pipeline, name) for name in TABLES} == {name: {1: name} for name in TABLES}

    # The connector fails at the missing topic; after its restart it creates it again, and the others continue.
    kafka, connect = pipeline.resources["kafka"], pipeline.resources["connect"]
    lost, *others = TABLES
    kafka.delete_topic(pipeline.table(lost).topic)
    for name in TABLES:
        pipeline.execute(f"insert into {name} values (2, 'new')")
    with pytest.raises(ContractError, match=f"step several__topic__{lost}_topic failed"):
        pipeline.materialise("topic")
    if connect.status(pipeline.loaded.connector).failed_tasks:
        connect.restart_failed(pipeline.loaded.connector)
        connect.wait_running(pipeline.loaded.connector)
    with pytest.raises(ContractError, match=rf"step several__raw__{lost}_raw failed: .*was deleted and re-created"):
        pipeline.land_and_apply()
    for name in others:
        assert rows(pipeline, name) == {1: name, 2: "new"}
    assert rows(pipeline, lost) == {1: lost}
    pipeline.resnapshot()
    pipeline.land_and_apply()
    assert rows(pipeline, lost) == {1: lost, 2: "new"}
