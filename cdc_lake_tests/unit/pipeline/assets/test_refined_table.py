"""A refined table's statements, and the builds that are kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError, LeaseLostError
from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.pipeline.assets import dataset, standard_metadata
from cdc_lake.pipeline.assets.refined_table import RETENTION_SECONDS, RefinedTable, catalog_names
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake_tests.fakes.aws.glue import FakeGlue
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop
from cdc_lake_tests.helpers.memory_store import MemoryStore
from resources.athena import Athena, QueryResult
from resources.errors import ResourceError
from resources.glue.catalog import TableDefinition


class RecordingAthena:
    """Answers with the columns and counts of a SELECT, and records and registers what statements create."""

    def __init__(self, glue: FakeGlue, store: MemoryStore, partitions: int) -> None:
        self.glue, self.store, self.partitions = glue, store, partitions
        self.statements: list[str] = []
        self.fails = ""

    def query(self, sql: str) -> QueryResult:
        """See Athena."""
        rows: tuple[tuple[Any, ...], ...] = ((self.partitions,),)
        if "max(" in sql:
            rows = ((-(-self.partitions // 100),),)
        return QueryResult((("country", "varchar"), ("total", "double")), rows, "q", 0, 0.0)

    def execute(self, sql: str) -> None:
        """See Athena."""
        self.statements.append(sql)
        if self.fails and sql.startswith(self.fails):
            raise ResourceError("the statement failed", "")
        if sql.startswith("CREATE TABLE"):
            name = sql.split('"')[3]
            self.glue.put_table(TableDefinition("shop_lake", name, "", ()))
            self.store.write(f"refined/shop/countries/{name.partition('__')[2]}/file", b"")
        if sql.startswith("CREATE OR REPLACE VIEW"):
            name, select = sql.split('"')[3], sql.partition(" AS ")[2]
            self.glue.put_view(TableDefinition("shop_lake", name, "", ()), select)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Return the shop with a refined table."""
    write_shop(tmp_path, YAML.replace("countries.sql]", "{ sql: countries.sql, partition_by: [country] }]"))
    return load("shop", tmp_path)


def made(pipeline: Pipeline, partitions: int = 3) -> tuple[RefinedTable, RecordingAthena, MemoryStore]:
    """Return the refined table over fakes."""
    glue, store = FakeGlue(), MemoryStore()
    athena = RecordingAthena(glue, store, partitions)
    dataset = pipeline.spec.datasets[1]
    table = RefinedTable(pipeline, dataset, "SELECT 1", cast(Athena, athena), glue, store, "shop")
    return table, athena, store


def held() -> None:
    """The lease is held."""


def heads(statements: Sequence[str]) -> list[str]:
    """Return the first two words of each statement."""
    return [" ".join(each.split()[:2]) for each in statements]


def test_a_build_is_one_statement_and_then_the_view(pipeline: Pipeline) -> None:
    table, athena, _ = made(pipeline)
    build = table.build(held)
    assert (build.partitions, build.statements) == (3, 1)
    created, view = athena.statements
    assert created == (
        f"CREATE TABLE \"shop_lake\".\"countries__{build.id}\" WITH (format = 'PARQUET', write_compression = 'SNAPPY', "
        f"external_location = 's3://shop/refined/shop/countries/{build.id}/', partitioned_by = ARRAY['country']) "
        'AS SELECT "total", "country" FROM (SELECT 1)'
    )
    assert view == (
        'CREATE OR REPLACE VIEW "shop_lake"."countries" AS '
        f'SELECT "country", "total" FROM "shop_lake"."countries__{build.id}"'
    )
    assert table.build_of_view() == build.id


def test_a_build_whose_lease_was_lost_does_not_replace_the_view(pipeline: Pipeline) -> None:
    table, athena, _ = made(pipeline)

    def lost() -> None:
        raise LeaseLostError("another run builds")

    with pytest.raises(LeaseLostError):
        table.build(lost)
    assert heads(athena.statements) == ["CREATE TABLE"]


def test_more_than_a_hundred_partitions_are_staged_and_written_in_groups(pipeline: Pipeline) -> None:
    table, athena, store = made(pipeline, 201)
    build = table.build(held)
    assert heads(athena.statements) == ["CREATE TABLE", "CREATE TABLE", "INSERT INTO", "INSERT INTO", "CREATE OR"]
    assert build.statements == 3
    assert list(store.objects) == [f"refined/shop/countries/{build.id}/file"], "the staged rows are deleted"


def test_a_failed_build_leaves_the_view_and_is_deleted_an_hour_after_it_was_seen(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, athena, store = made(pipeline, 201)
    first = table.build(held)
    views = len([each for each in athena.statements if "VIEW" in each])
    athena.fails = "INSERT"
    with pytest.raises(ResourceError):
        table.build(held)
    assert len([each for each in athena.statements if "VIEW" in each]) == views
    athena.fails = ""
    second = table.build(held)
    now = 1_000_000.0
    monkeypatch.setattr("cdc_lake.pipeline.assets.refined_table.time.time", lambda: now)
    seen = table.delete_earlier(second.id, {})
    assert set(seen.values()) == {now}
    assert first.id in seen
    assert len(seen) == 2, "the first build and the failed one"
    monkeypatch.setattr("cdc_lake.pipeline.assets.refined_table.time.time", lambda: now + RETENTION_SECONDS - 1)
    assert table.delete_earlier(second.id, seen) == seen
    monkeypatch.setattr("cdc_lake.pipeline.assets.refined_table.time.time", lambda: now + RETENTION_SECONDS)
    assert table.delete_earlier(second.id, seen) == {}
    assert list(store.objects) == [f"refined/shop/countries/{second.id}/file"]
    assert catalog_names(pipeline, table.glue) == ["totals", "countries", f"countries__{second.id}"]


def test_a_run_that_ended_before_its_state_was_stored_is_repeated(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _, store = made(pipeline)
    dataset._refine(table, "first", "a")
    monkeypatch.setenv(failpoints.VARIABLE, "refined.after_view=raise")
    with pytest.raises(failpoints.FailpointReached):
        dataset._refine(table, "second", "b")
    monkeypatch.delenv(failpoints.VARIABLE)
    of_second = table.build_of_view()
    dataset._refine(table, "first", "c")  # the SELECT was changed back
    assert table.build_of_view() != of_second
    state = stage_state.read(store, object_names.stage_state_key("shop", "dataset", "countries"))
    assert state["build"] == table.build_of_view()
    assert of_second in state["seen"]
    assert dataset._refine(table, "first", "d") == {"changes": standard_metadata.UNCHANGED}


def test_a_view_is_created_again_if_the_run_before_ended_before_its_state_was_stored(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, athena, _ = made(pipeline)
    dataset._create_view(table, "first")
    monkeypatch.setenv(failpoints.VARIABLE, "dataset.after_view=raise")
    with pytest.raises(failpoints.FailpointReached):
        dataset._create_view(table, "second")
    monkeypatch.delenv(failpoints.VARIABLE)
    dataset._create_view(table, "first")
    assert heads(athena.statements) == ["CREATE OR"] * 3
    assert dataset._create_view(table, "first") == {"changes": standard_metadata.UNCHANGED}


def test_builds_of_a_dataset_that_becomes_a_view_are_deleted(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _, store = made(pipeline)
    build = table.build(held)
    key = object_names.stage_state_key("shop", "dataset", "countries")
    stage_state.write(store, key, {"inputs_digest": "old", "build": build.id, "seen": {}})
    assert dataset._create_view(table, "new") == {"changes": "view shop_lake.countries created"}
    assert build.id in stage_state.read(store, key)["seen"]
    late = time.time() + RETENTION_SECONDS
    monkeypatch.setattr("cdc_lake.pipeline.assets.refined_table.time.time", lambda: late)
    dataset._create_view(table, "new")
    assert stage_state.read(store, key) == {"inputs_digest": "new"}
    assert catalog_names(pipeline, table.glue) == ["totals", "countries"]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [("town", "the SELECT has no column town"), ("total, country", "all columns are partition columns")],
)
def test_partition_columns_are_some_columns_of_the_select(tmp_path: Path, keys: str, problem: str) -> None:
    write_shop(tmp_path, YAML.replace("countries.sql]", f"{{ sql: countries.sql, partition_by: [{keys}] }}]"))
    table, _, _ = made(load("shop", tmp_path))
    with pytest.raises(ContractError, match=f"datasets: countries.sql: partition_by: {problem}"):
        table.build(held)
