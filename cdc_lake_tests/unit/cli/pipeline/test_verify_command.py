"""`cdc-lake verify`: output and exit code, with a fake comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from typer.testing import CliRunner, Result

from cdc_lake.cli.app import app
from cdc_lake.contract.errors import TablesNotComparedError
from cdc_lake.contract.table import pending_counts
from cdc_lake.jobs.verify import Difference, VerifyReport
from cdc_lake.pipeline.operations import verification
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

EQUAL = VerifyReport(3, 3, 3, 1, 0, 0, 0, 0, 0, (), {"match": 0.5})
KEY = {"order_id": "7"}
PENDING = replace(EQUAL, compared=2, pending=1, pending_keys={"ab12": KEY})
NEVER_COMPARED = replace(PENDING, never_compared=[KEY])
DIFFERENT = replace(EQUAL, different=1, differences=[Difference("different", KEY, {"total": ("1", "2")})])


@pytest.fixture(autouse=True)
def _shop(commands: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_lake.profile.spark", lambda: commands.spark)


def run_verify(monkeypatch: pytest.MonkeyPatch, report: VerifyReport, *options: str) -> Result:
    """Run the command with this report for each table."""

    def tables(
        _pipeline: object, requested: list[object], *_: object, **__: object
    ) -> Iterator[tuple[object, VerifyReport]]:
        yield from ((table, report) for table in requested)

    monkeypatch.setattr(verification, "verify_tables", tables)
    return CliRunner().invoke(app, ["verify", "shop", "--table", "orders", *options])


@pytest.mark.parametrize(
    ("report", "code", "verdict"),
    [(EQUAL, 0, "equal"), (PENDING, 0, "equal"), (NEVER_COMPARED, 1, "keys not compared"), (DIFFERENT, 1, "not equal")],
)
def test_verdict_and_exit_code(monkeypatch: pytest.MonkeyPatch, report: VerifyReport, code: int, verdict: str) -> None:
    found = run_verify(monkeypatch, report)
    [row] = [line for line in found.stdout.splitlines() if "│ orders" in line]
    cells = [cell.strip() for cell in row.split("│")]
    assert (found.exit_code, cells[-2]) == (code, verdict)


def test_keys_that_were_not_compared_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_verify(monkeypatch, NEVER_COMPARED)
    assert "orders: not compared: 1 of 3 keys" in found.stdout
    assert f"pending in each of the last {pending_counts.MAX_PENDING_RUNS} runs: 1" in found.stdout
    assert "not compared" not in run_verify(monkeypatch, EQUAL).stdout


def test_columns_that_are_not_captured_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    report = replace(EQUAL, omitted_columns=["place", "x\x1b[1m"])
    assert "orders: columns that are not captured: place, x" in run_verify(monkeypatch, report).stdout
    assert "\x1b" not in run_verify(monkeypatch, report).stdout
    assert "not captured" not in run_verify(monkeypatch, EQUAL).stdout
    printed = json.loads(run_verify(monkeypatch, report, "--json").stdout)
    assert printed["tables"]["orders"]["omitted_columns"] == ["place", "x\x1b[1m"]


def test_json_output_contains_pending_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_verify(monkeypatch, NEVER_COMPARED, "--json")
    printed = json.loads(found.stdout)
    table = printed["tables"]["orders"]
    assert (found.exit_code, printed["clean"], table["clean"]) == (1, False, False)
    assert (table["pending"], table["pending_keys"], table["never_compared"]) == (1, {"ab12": KEY}, [KEY])


def test_options_are_passed_to_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: dict[str, object] = {}

    def tables(_pipeline: object, requested: list[object], *_: object, **options: object) -> Iterator[object]:
        passed.update(options)
        yield from ((table, EQUAL) for table in requested)

    monkeypatch.setattr(verification, "verify_tables", tables)
    done = CliRunner().invoke(app, ["verify", "shop", "--timeout", "7", "--limit", "3", "--apply"])
    assert done.exit_code == 0, done.output
    assert {name: passed[name] for name in ("seconds", "limit", "apply")} == {"seconds": 7, "limit": 3, "apply": True}


def test_tables_that_cannot_be_compared_are_reported_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    report, reasons = EQUAL, {"customers": "Cannot read topic shop.sales.customers."}

    def tables(_pipeline: object, requested: list[PipelineTable], *_: object, **__: object) -> Iterator[object]:
        yield from ((table, report) for table in requested if table.lake_table not in reasons)
        raise TablesNotComparedError("shop", reasons)

    monkeypatch.setattr(verification, "verify_tables", tables)
    done = CliRunner().invoke(app, ["verify", "shop", "--json"])
    printed = json.loads(done.stdout)
    assert (printed["clean"], printed["not_compared"]) == (False, reasons)
    assert {name: table["clean"] for name, table in printed["tables"].items()} == {"orders": True}
    assert isinstance(done.exception, TablesNotComparedError)
    assert done.exception.exit_code == 2  # type: ignore[attr-defined]
    report = DIFFERENT
    shown = CliRunner().invoke(app, ["verify", "shop"])
    assert "│ not equal │" in shown.stdout
    assert shown.exception.exit_code == 1  # type: ignore[union-attr]
