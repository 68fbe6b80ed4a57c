"""`cdc-lake purge`, `compact` and `cluster`: the tables that need it and the output for each, with a fake Spark."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cdc_lake import profile
from cdc_lake.cli.app import app
from cdc_lake.contract.errors import LeaseHeldError
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.maintenance import cluster, compact, purge
from cdc_lake.pipeline import loading
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop
from resources.errors import JobFailed

REAL = loading.load  # the fixture `commands` replaces it


COMMIT = timeline.Commit("20260101", None, rows_written=3, inserts=0, updates=3, bytes_written=99, files_written=2)


@pytest.mark.usefixtures("commands")
def test_a_pipeline_with_soft_deletes_keeps_its_tombstones() -> None:
    found = CliRunner().invoke(app, ["purge", "shop"])
    assert (found.exit_code, found.stdout) == (
        0,
        "Nothing to purge: no target of pipeline shop has `deletes: hard`.\n",
    )


@pytest.mark.parametrize(
    ("report", "output"),
    [
        (purge.PurgeReport("20260101", 7, "000000-1-7", 0.5), "7 tombstones purged in commit 20260101"),
        (purge.PurgeReport(None, 0, None, 0.5, "nothing is old"), "nothing purged, nothing is old"),
    ],
)
def test_purge_prints_the_result_of_each_table(
    commands: Shop, monkeypatch: pytest.MonkeyPatch, report: purge.PurgeReport, output: str
) -> None:
    defs = commands.pipeline.folder.parent.parent / "hard"
    write_shop(defs, YAML.replace("database: shop_lake\n", "database: shop_lake\n      deletes: hard\n"))
    pipeline = REAL("shop", defs)
    monkeypatch.setattr(loading, "load", lambda _name: pipeline)
    specs: list[purge.PurgeSpec] = []

    def run(spec: purge.PurgeSpec) -> purge.PurgeReport:
        specs.append(spec)
        return report

    monkeypatch.setattr(profile, "spark", lambda: FakeSpark({purge.run: run}))
    found = CliRunner().invoke(app, ["purge", "shop"])
    assert found.stdout == f"orders: {output}\ncustomers: {output}\n"
    assert [spec.table.owner for spec in specs] == ["cdc-lake purge shop"] * 2


@pytest.mark.usefixtures("commands")
def test_a_pipeline_that_is_captured_from_the_log_has_nothing_to_reconcile() -> None:
    found = CliRunner().invoke(app, ["reconcile", "shop"])
    assert (found.exit_code, found.stdout) == (
        0,
        "Nothing to reconcile: pipeline shop captures the log, which contains all deletes.\n",
    )


@pytest.mark.usefixtures("commands")
def test_a_pipeline_without_merge_on_read_has_nothing_to_compact() -> None:
    found = CliRunner().invoke(app, ["compact", "shop"])
    assert (found.exit_code, found.stdout) == (
        0,
        "Nothing to compact: no target of pipeline shop has `table_type: mor`.\n",
    )


@pytest.mark.parametrize(
    ("commit", "output"),
    [
        (COMMIT, "2 base files with 3 rows written in commit 20260101"),
        (None, "nothing compacted, there are no log files"),
    ],
)
def test_compact_prints_the_result_of_each_table(
    commands: Shop, monkeypatch: pytest.MonkeyPatch, commit: timeline.Commit | None, output: str
) -> None:
    defs = commands.pipeline.folder.parent.parent / "mor"
    write_shop(defs, YAML.replace("shop_lake\n", "shop_lake\n    - { name: log, database: b, table_type: mor }\n"))
    pipeline = REAL("shop", defs)
    monkeypatch.setattr(loading, "load", lambda _name: pipeline)
    report = compact.CompactReport(commit, 0.5)
    monkeypatch.setattr(profile, "spark", lambda: FakeSpark({compact.run: lambda _: report}))
    assert CliRunner().invoke(app, ["compact", "shop"]).stdout == f"log.orders: {output}\nlog.customers: {output}\n"


def test_cluster_prints_the_result_of_each_table(commands: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(spec: cluster.ClusterSpec) -> cluster.ClusterReport:
        return cluster.ClusterReport(COMMIT if spec.table.table == "orders" else None, 0.5)

    monkeypatch.setattr(profile, "spark", lambda: FakeSpark({cluster.run: run}))
    assert CliRunner().invoke(app, ["cluster", commands.pipeline.name]).stdout == (
        "orders: 2 base files with 3 rows written in commit 20260101\n"
        "customers: nothing clustered, no partition has several small files\n"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (LeaseHeldError("The table is being written."), "The table is being written."),
        (JobFailed("The step failed.", "Wait."), "The step failed. Wait."),
        (RuntimeError("a file is damaged\nat org.apache.hudi"), "RuntimeError: a file is damaged"),
    ],
)
def test_a_table_whose_service_fails_does_not_stop_the_others(
    commands: Shop, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def run(spec: cluster.ClusterSpec) -> cluster.ClusterReport:
        if spec.table.table == "orders":
            raise error
        return cluster.ClusterReport(COMMIT, 0.5)

    monkeypatch.setattr(profile, "spark", lambda: FakeSpark({cluster.run: run}))
    found = CliRunner().invoke(app, ["cluster", commands.pipeline.name])
    assert found.exit_code == 1
    assert found.stderr == f"orders: {message}\n"
    assert found.stdout == "customers: 2 base files with 3 rows written in commit 20260101\n"
