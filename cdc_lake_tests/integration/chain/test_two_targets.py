"""A pipeline with two targets, copy-on-write and merge-on-read: equal rows, one dead letter, a replay into both."""

from __future__ import annotations

import json
from typing import cast

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake.contract.objects import dead_letters
from cdc_lake.jobs.maintenance import compact
from cdc_lake.jobs.maintenance.replay import ReplaySpec
from cdc_lake.jobs.maintenance.replay import run as replay
from cdc_lake.pipeline import loading
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations.verification import VerifySystems, verify_tables
from cdc_lake.profile import spark
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from cdc_lake_tests.integration.chain.conftest import NewPipeline

Rows = dict[int, object]


def rows(pipeline: ChainPipeline, target: int) -> Rows:
    """Return the values by id, as Spark reads a target."""
    return {key: row["v"] for key, row in pipeline.by_spark("goods", target).items()}


def printed(*command: str) -> list[dict[str, object]]:
    """Run a command of the command line, and return the JSON that it prints."""
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    return found if isinstance(found, list) else [found]


def test_two_targets_have_equal_rows(new_pipeline: NewPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = new_pipeline(
        "double",
        {"goods": ", partition_by: [kind]"},
        targets=["{ name: cow, database: double_cow }", "{ name: mor, database: double_mor, table_type: mor }"],
    )
    pipeline.execute("create table goods (id int primary key, kind text, v text)")
    pipeline.execute("insert into goods values (1, 'a', 'one'), (2, null, 'two'), (3, 'b', 'three')")
    found = pipeline.materialise()
    assert found.metadata["double/lake/cow/goods_cow"]["dagster/row_count"] == 3
    assert found.metadata["double/lake/mor/goods_mor"]["dagster/row_count"] == 3
    pipeline.execute("update goods set v = 'uno', kind = 'b' where id = 1")
    pipeline.execute("update goods set v = 'zwei' where id = 2")
    pipeline.execute("delete from goods where id = 3")
    pipeline.land_and_apply()
    assert rows(pipeline, 0) == rows(pipeline, 1) == {1: "uno", 2: "zwei"}
    in_target = "SELECT id, kind, v FROM {} ORDER BY id, v"
    assert pipeline.by_athena(in_target.format("double_cow.goods_current")) == [(1, "b", "uno"), (2, None, "zwei")]
    # Base files only: the row that moved is in both partitions, and the update is in a log file.
    before = [(1, "a", "one"), (1, "b", "uno"), (2, None, "two")]
    assert pipeline.by_athena(in_target.format("double_mor.goods_ro_current")) == before
    where = location(pipeline.resources["store"])
    merge_on_read = pipeline.table("goods").in_targets[1].upsert_spec(where, "test")
    assert spark().run(compact.run, compact.CompactSpec(merge_on_read)).commit is not None
    assert pipeline.by_athena(in_target.format("double_mor.goods_ro_current")) == [(1, "b", "uno"), (2, None, "zwei")]

    # Spark answers for `_rt`, and for earlier states.
    monkeypatch.setattr(loading, "names", lambda: ["double"])
    monkeypatch.setattr(loading, "load", lambda _name: pipeline.loaded)
    merged = "SELECT v, count_if(__deleted) AS gone FROM double_mor.goods_rt GROUP BY v ORDER BY v"
    assert printed("query", merged, "--format", "json") == [
        *({"v": "three", "gone": 1}, {"v": "uno", "gone": 0}, {"v": "zwei", "gone": 0})
    ]
    [shown] = printed("table", "show", "double_mor.goods", "--limit", "9", "--json")
    commits = cast("list[dict[str, object]]", shown["commits"])
    first = str(commits[-1]["instant"])
    assert [each["what"] for each in commits] == ["manifest 2", "manifest 2", "manifest 1"]
    assert (shown["oldest_readable"], shown["pending_compactions"]) == (first, [])
    assert [each["operation"] for each in commits] == ["compact", "upsert", "bulk_insert"]
    applied, written = (
        sum(cast("int", each[name] or 0) for each in commits) for name in ("raw_bytes", "bytes_written")
    )
    assert commits[0]["raw_bytes"] is None
    assert shown["write_amplification"] == written / applied > 1
    for table in ("double_cow.goods_current", "double_mor.goods_ro_current"):
        early = f"SELECT v FROM {table} g WHERE g.kind IS NULL"
        [at_first] = printed("table", "show", table, "-n", "9", "--json")
        instant = str(cast("list[dict[str, object]]", at_first["commits"])[-1]["instant"])
        assert printed("query", early, "--as-of", instant, "--format", "json") == [{"v": "two"}]
        assert printed("query", early, "--format", "json") == [{"v": "zwei"}]
    [of_cow] = printed("table", "show", "double_cow.goods", "-n", "9", "--json")
    first_of_cow = str(cast("list[dict[str, object]]", of_cow["commits"])[-1]["instant"])
    wrong = CliRunner().invoke(app, ("query", "SELECT colour FROM double_cow.goods", "--as-of", first_of_cow))
    assert "colour" in getattr(wrong.exception, "user_message", ""), wrong.exception
    changed = printed("changes", "double_mor.goods", "--since", first, "--until", "2999-01-01", "--format", "json")
    assert {row["id"]: row["__deleted"] for row in changed} == {1: False, 2: False, 3: True}

    # One letter for both targets; a replay for the first one leaves it open.
    producer = Producer({"bootstrap.servers": pipeline.resources["kafka"].bootstrap})
    producer.produce(pipeline.table("goods").topic, b"no JSON")
    assert producer.flush(30) == 0
    pipeline.land_and_apply()
    [letter] = pipeline.dead_letters()
    pipeline.execute("insert into goods values (4, 'a', 'four')")
    pipeline.land_and_apply()
    row = pipeline.by_spark("goods")[4]
    again = {name: row[name] for name in ("id", "kind", "v", "__op", "__db", "__schema", "__table", "__lsn")}
    again |= {"__txId": row["__txid"], "__snapshot": row["__snapshot"], "__source_ts_ms": row["__source_ts_ms"]}
    again["__deleted"] = "false"
    dead_letters.replace_value(pipeline.store, "double", letter, json.dumps(again).encode())
    first_target, last_target = (target.upsert_spec(where, "test") for target in pipeline.table("goods").in_targets)
    rejected_by_first = ReplaySpec(last_target, [letter.id], failed={letter.id: "too late"})
    assert spark().run(replay, rejected_by_first).applied == [letter.id]
    assert [each.id for each in pipeline.dead_letters()] == [letter.id]
    for number, spec in enumerate((first_target, last_target)):
        report = spark().run(replay, ReplaySpec(spec, [letter.id], close=number == 1))
        assert report.applied == [letter.id], report
        assert len(pipeline.dead_letters()) == 1 - number
    assert rows(pipeline, 0) == rows(pipeline, 1) == {1: "uno", 2: "zwei", 4: "four"}

    resources = pipeline.resources
    postgres = pipeline.loaded.source_postgres(resources["postgres"])
    systems = VerifySystems(postgres, resources["kafka"], resources["connect"], resources["store"], spark())
    compared = verify_tables(pipeline.loaded, pipeline.loaded.lake_tables, systems, seconds=120, apply=True)
    verified = {table.lake_table: report for table, report in compared}
    assert {name: (report.clean, report.source_rows) for name, report in verified.items()} == {
        "cow.goods": (True, 3),
        "mor.goods": (True, 3),
    }
