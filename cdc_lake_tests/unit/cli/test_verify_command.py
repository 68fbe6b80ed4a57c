"""`cdc-lake verify`: what it prints and its exit code. The comparison is faked here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from typer.testing import CliRunner, Result

from cdc_lake.cli.app import app
from cdc_lake.contract.table import pending_counts
from cdc_lake.jobs.verify import Difference, VerifyReport
from cdc_lake.pipeline.operations import verification
from cdc_lake_tests.fake_pipeline import World

EQUAL = VerifyReport(3, 3, 3, 1, 0, 0, 0, 0, 0, (), {"match": 0.5})
KEY = {"order_id": "7"}
SET_ASIDE = replace(EQUAL, compared=2, pending=1, pending_keys={"ab12": KEY})
NEVER = replace(SET_ASIDE, never_judged=[KEY])
DIFFERENT = replace(EQUAL, different=1, differences=[Difference("different", KEY, {"total": ("1", "2")})])


@pytest.fixture(autouse=True)
def _shop(commands: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_lake.profile.spark", lambda: commands.spark)


def verified(monkeypatch: pytest.MonkeyPatch, report: VerifyReport, *options: str) -> Result:
    """Run the command; each table has this report."""

    def tables(_flow: object, asked: list[object], *_: object, **__: object) -> Iterator[tuple[object, VerifyReport]]:
        yield from ((table, report) for table in asked)

    monkeypatch.setattr(verification, "verify_tables", tables)
    return CliRunner().invoke(app, ["verify", "shop", "--table", "orders", *options])


@pytest.mark.parametrize(
    ("report", "code", "verdict"),
    [(EQUAL, 0, "equal"), (SET_ASIDE, 0, "equal"), (NEVER, 1, "not judged"), (DIFFERENT, 1, "not equal")],
)
def test_the_verdict(monkeypatch: pytest.MonkeyPatch, report: VerifyReport, code: int, verdict: str) -> None:
    found = verified(monkeypatch, report)
    [row] = [line for line in found.stdout.splitlines() if "│ orders" in line]
    cells = [cell.strip() for cell in row.split("│")]
    assert (found.exit_code, cells[-2]) == (code, verdict)


def test_what_was_not_judged_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, NEVER)
    assert "orders: not judged: 1 of 3 keys" in found.stdout
    assert f"pending in each of the last {pending_counts.MAX_PENDING_RUNS} runs: 1" in found.stdout
    assert "not judged" not in verified(monkeypatch, EQUAL).stdout


def test_json(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, NEVER, "--json")
    said = json.loads(found.stdout)
    table = said["tables"]["orders"]
    assert (found.exit_code, said["clean"], table["clean"]) == (1, False, False)
    assert (table["pending"], table["pending_keys"], table["never_judged"]) == (1, {"ab12": KEY}, [KEY])
