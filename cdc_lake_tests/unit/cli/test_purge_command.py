"""`cdc-lake purge`: the tables that ask for hard deletes, and what was done to each. Spark's part is faked here."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cdc_lake import profile
from cdc_lake.cli.app import app
from cdc_lake.jobs.maintenance import purge
from cdc_lake.pipeline import loading
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.shop_pipeline import YAML, write_shop

REAL = loading.load  # the fixture takes its place


@pytest.mark.usefixtures("commands")
def test_a_pipeline_of_soft_deletes_keeps_its_tombstones() -> None:
    found = CliRunner().invoke(app, ["purge", "shop"])
    assert (found.exit_code, found.stdout) == (
        0,
        "no table of pipeline shop has `deletes: hard`: tombstones are kept\n",
    )


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (purge.PurgeReport("20260101", 7, "000000-1-7", 0.5), "orders: 7 tombstones purged, commit 20260101\n"),
        (purge.PurgeReport(None, 0, None, 0.5, "nothing is old"), "orders: nothing is old\n"),
    ],
)
def test_it_says_what_it_did(
    commands: World, monkeypatch: pytest.MonkeyPatch, report: purge.PurgeReport, said: str
) -> None:
    defs = commands.flow.folder.parent.parent / "hard"
    write_shop(defs, YAML.replace("key: [order_id]\n", "key: [order_id]\n      deletes: hard\n"))
    flow = REAL("shop", defs)
    monkeypatch.setattr(loading, "load", lambda _name: flow)
    asked: list[purge.PurgeSpec] = []

    def run(spec: purge.PurgeSpec) -> purge.PurgeReport:
        asked.append(spec)
        return report

    monkeypatch.setattr(profile, "spark", lambda: FakeSpark({purge.run: run}))
    found = CliRunner().invoke(app, ["purge", "shop"])
    assert found.stdout == said
    assert [spec.table.owner for spec in asked] == ["cdc-lake purge shop"]
