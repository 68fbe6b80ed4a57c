"""`cdc-lake dlq`: output and effect on the shop's dead letters, with a fake Spark."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cdc_lake import profile
from cdc_lake.cli.app import app
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.jobs.maintenance.replay import ReplayReport, ReplaySpec
from cdc_lake.pipeline import loading
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop

ORDERS, CUSTOMERS = "shop.sales.orders", "shop.sales.customers"
SECOND = f"{ORDERS}+0+2"
REAL = loading.load  # the fixture `commands` replaces it
Letter = Callable[..., DeadLetter]


def run(*arguments: str, answer: str | None = None) -> Result:
    """Run a `dlq` command with this answer to its confirmation."""
    return CliRunner().invoke(app, ["dlq", *arguments], input=answer)


def error_message(found: Result) -> str:
    """Return the message of the error of a command."""
    assert isinstance(found.exception, ContractError), found.output
    return found.exception.user_message


@pytest.fixture
def letters(commands: Shop) -> Shop:
    """The shop with three dead letters of two tables."""
    for letter, value in (
        (
            DeadLetter.of(ORDERS, 0, 1, "not a JSON object", b'{"order_id": [bold]1', "raw/shop/x"),
            b'{"order_id": [bold]1',
        ),
        (DeadLetter.of(ORDERS, 0, 2, "not UTF-8", b"\xff\x00\n", key=b"\xfe", headers=[("by", b"me")]), b"\xff\x00\n"),
        (DeadLetter.of(CUSTOMERS, 1, 7, "the record has no value", None, key=b'{"id": 7}', epoch=2), None),
    ):
        dead_letters.put_value(commands.bucket, "shop", letter, value)
        dead_letters.put(commands.bucket, "shop", [letter])
    return commands


@pytest.mark.usefixtures("commands")
def test_without_dead_letters_commands_report_that() -> None:
    assert run("list", "shop").stdout == "pipeline shop has no open dead letters\n"
    assert run("list", "shop", "--closed").stdout == "pipeline shop has no closed dead letters\n"
    assert run("list", "shop", "--json").stdout == ""
    assert run("replay", "shop").stdout == "pipeline shop has no open dead letters\n"


@pytest.mark.usefixtures("letters")
def test_list_prints_a_table() -> None:
    found = run("list", "shop")
    assert found.exit_code == 0
    [row] = [line for line in found.stdout.splitlines() if SECOND in line]
    cells = [cell.strip() for cell in row.strip("│┃").split("│")]
    assert (cells[0], *cells[2:]) == (SECOND, "3", "1", "not UTF-8")
    assert f"{CUSTOMERS}+1+7@2" in found.stdout


@pytest.mark.usefixtures("letters")
def test_list_prints_json_lines() -> None:
    found = [json.loads(line) for line in run("list", "shop", "--json").stdout.splitlines()]
    printed = {each["letter"]: each for each in found}
    assert (printed[SECOND]["reason"], printed[SECOND]["size"], printed[SECOND]["object"]) == ("not UTF-8", 3, None)
    assert (printed[SECOND]["key"], printed[SECOND]["headers"]) == ("hex fe", {"by": "me"})
    tombstone = printed[f"{CUSTOMERS}+1+7@2"]
    assert (tombstone["topic"], tombstone["partition"], tombstone["offset"]) == (CUSTOMERS, 1, 7)
    assert (tombstone["size"], tombstone["key"]) == (None, '{"id": 7}')


@pytest.mark.usefixtures("letters")
def test_show_prints_a_text_value() -> None:
    lines = run("show", "shop", f"{ORDERS}+0+1").stdout.splitlines()
    assert lines[-1] == '{"order_id": [bold]1'
    assert [line.split()[1:] for line in lines if line.startswith(("offset", "object", "reason"))] == [
        ["1"],
        ["raw/shop/x"],
        ["not", "a", "JSON", "object"],
    ]


@pytest.mark.usefixtures("letters")
def test_show_prints_bytes_as_hex_raw_or_base64() -> None:
    found = run("show", "shop", SECOND)
    assert found.stdout.splitlines()[-1].split() == ["00000000", "ff", "00", "0a", "..."]
    assert run("show", "shop", SECOND, "--raw").stdout_bytes == b"\xff\x00\n"
    printed = json.loads(run("show", "shop", SECOND, "--json").stdout)
    assert base64.b64decode(printed["value"]) == b"\xff\x00\n"
    assert printed["text"] == "hex ff000a"


@pytest.mark.usefixtures("letters")
def test_show_prints_that_there_is_no_value() -> None:
    found = run("show", "shop", f"{CUSTOMERS}+1+7@2")
    assert '{"id": 7}' in found.stdout
    assert found.stdout.splitlines()[-1] == "(the record has no value)"


def test_show_truncates_long_values(commands: Shop) -> None:
    for offset, value, unit in ((1, ("é" * 5000).encode(), "characters"), (2, b"\x00" * 5000, "bytes")):
        letter = DeadLetter.of(ORDERS, 0, offset, "r", value)
        dead_letters.put_value(commands.bucket, "shop", letter, value)
        dead_letters.put(commands.bucket, "shop", [letter])
        lines = run("show", "shop", letter.id).stdout.splitlines()
        assert lines[-1] == f"… 904 more {unit}; `--raw` prints all"
        assert run("show", "shop", letter.id, "--raw").stdout_bytes == value


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize("command", ["show", "drop", "replay"])
def test_an_unknown_letter_is_rejected(command: str) -> None:
    assert (
        "'shop.sales.orders+0+9': pipeline shop has no open letter with this id. `cdc-lake dlq list shop`"
        in error_message(run(command, "shop", f"{ORDERS}+0+9"))
    )


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize("command", ["list", "replay"])
def test_an_unknown_pipeline_is_rejected(command: str) -> None:
    assert (
        error_message(run(command, "other"))
        == "Cannot load pipeline 'other': it does not exist. Existing pipelines: shop."
    )


def test_drop_requires_confirmation(letters: Shop) -> None:
    found = run("drop", "shop", SECOND, answer="n\n")
    assert found.exit_code == 1
    assert "not UTF-8" in found.stdout
    assert len(list(dead_letters.keys(letters.bucket, "shop"))) == 3
    assert run("drop", "shop", SECOND, SECOND, answer="y\n").stdout.splitlines()[-1] == f"dropped {SECOND}"
    assert run("drop", "shop", f"{ORDERS}+0+1", "--yes").exit_code == 0
    assert len(list(dead_letters.keys(letters.bucket, "shop"))) == 1
    assert "dropped" in run("list", "shop", "--closed").stdout


def test_edit_replaces_the_value_and_keeps_the_original(letters: Shop, tmp_path: Path) -> None:
    file = tmp_path / "fixed.json"
    file.write_bytes(b'{"order_id": 2}\n')
    assert f"Replaced the value of {SECOND} (15 bytes)" in run("edit", "shop", SECOND, "--value", str(file)).stdout
    found = dead_letters.find(letters.bucket, "shop", SECOND)
    assert dead_letters.value_of(letters.bucket, "shop", found) == b'{"order_id": 2}'
    assert dead_letters.value_of(letters.bucket, "shop", found, original=True) == b"\xff\x00\n"
    file.write_bytes(b"\x00\x00\x00\x00\x07\x02\n")  # Avro ends with any byte
    assert "(7 bytes)" in run("edit", "shop", SECOND, "--value", str(file)).stdout
    file.write_bytes(b"\n")
    assert "is empty" in error_message(run("edit", "shop", SECOND, "--value", str(file)))
    assert "Give the path of a readable file with --value." in error_message(
        run("edit", "shop", SECOND, "--value", str(tmp_path / "none"))
    )


class FakeSpark:
    """Returns a given report for the replay job."""

    def __init__(self, report: ReplayReport) -> None:
        self.report = report
        self.specs: list[ReplaySpec] = []

    def run(self, _job: object, spec: ReplaySpec) -> ReplayReport:
        """Record the spec and return the report."""
        self.specs.append(spec)
        return self.report


def use_fake_spark(monkeypatch: pytest.MonkeyPatch, report: ReplayReport) -> FakeSpark:
    """Replace the profile's Spark by a fake that returns this report."""
    fake = FakeSpark(report)
    monkeypatch.setattr(profile, "spark", lambda: fake)
    return fake


@pytest.mark.usefixtures("letters")
def test_replay_applies_all_letters_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = use_fake_spark(monkeypatch, ReplayReport(instant="1", applied=["a"]))
    found = run("replay", "shop")
    assert found.exit_code == 0
    assert found.stdout.splitlines() == [
        "orders: 1 applied by commit 1, 0 still cannot be read",
        "customers: 1 applied by commit 1, 0 still cannot be read",
    ]
    replayed: Any = {spec.table.topic: spec.ids for spec in spark.specs}
    assert replayed == {ORDERS: [f"{ORDERS}+0+1", SECOND], CUSTOMERS: [f"{CUSTOMERS}+1+7@2"]}


@pytest.mark.usefixtures("letters")
def test_replay_reports_letters_that_fail_again(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = use_fake_spark(monkeypatch, ReplayReport(failed={SECOND: "not UTF-8"}, overtaken=["b"]))
    found = run("replay", "shop", SECOND, SECOND)
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "orders: 0 applied, 1 still cannot be read",
        "orders: 1 not applied, because a newer snapshot has read the rows",
        f"  {SECOND}: not UTF-8",
    ]
    assert [spec.ids for spec in spark.specs] == [[SECOND]]
    assert json.loads(run("replay", "shop", SECOND, "--json").stdout)["failed"] == {SECOND: "not UTF-8"}


def test_a_letter_that_an_earlier_target_could_not_apply_is_not_closed(
    letters: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    defs = letters.pipeline.folder.parent.parent / "two_targets"
    write_shop(defs, YAML.replace("shop_lake\n", "shop_lake\n    - { name: log, database: b, table_type: mor }\n"))
    pipeline = REAL("shop", defs)
    monkeypatch.setattr(loading, "load", lambda _name: pipeline)
    spark = use_fake_spark(monkeypatch, ReplayReport(failed={SECOND: "too late"}))
    assert run("replay", "shop", SECOND).exit_code == 1
    assert [(spec.close, spec.failed) for spec in spark.specs] == [(False, {}), (True, {SECOND: "too late"})]


def test_a_letter_of_a_removed_table_does_not_stop_the_others(letters: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = use_fake_spark(monkeypatch, ReplayReport())
    dead_letters.put(letters.bucket, "shop", [DeadLetter.of("shop.sales.gone", 0, 1, "r", None)])
    message = "Cannot replay shop.sales.gone+0+1: pipeline shop has no table for topic shop.sales.gone"
    assert message in error_message(run("replay", "shop", "shop.sales.gone+0+1"))
    assert spark.specs == []
    found = run("replay", "shop")
    assert (found.exit_code, message in found.stderr) == (1, True)
    assert len(spark.specs) == 2
