"""`cdc-lake migrate`: the output for each table."""

from __future__ import annotations

from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake.contract.table import instants
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


def test_migrate_prints_a_line_for_each_table(commands: Shop) -> None:
    prefix = commands.orders.lake_prefix
    commands.bucket.write(f"{prefix}.hoodie/hoodie.properties", b"hoodie.table.version=6\n")
    found = CliRunner().invoke(app, ["migrate", "shop"])
    assert (found.exit_code, found.stdout) == (
        0,
        "orders: commits are named in UTC from now on\ncustomers: the Hudi table does not exist yet\n",
    )
    assert instants.zone(commands.bucket, prefix) == "UTC"
