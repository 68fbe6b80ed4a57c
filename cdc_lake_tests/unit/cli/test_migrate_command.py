"""`cdc-lake migrate`: what it prints for each table."""

from __future__ import annotations

from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake.contract.table import instants
from cdc_lake_tests.fake_pipeline import World


def test_it_says_what_it_did(commands: World) -> None:
    prefix = commands.orders.lake_prefix
    commands.bucket.write(f"{prefix}.hoodie/hoodie.properties", b"hoodie.table.version=6\n")
    found = CliRunner().invoke(app, ["migrate", "shop"])
    assert (found.exit_code, found.stdout) == (
        0,
        "orders: commits are named in UTC from now on\ncustomers: there is no table yet\n",
    )
    assert instants.zone(commands.bucket, prefix) == "UTC"
