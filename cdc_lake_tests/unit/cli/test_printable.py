"""Data from outside is printed without terminal escape sequences, and CSV without formulas."""

from __future__ import annotations

import json
import unicodedata
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row
from rich.console import Console
from typer.testing import CliRunner

from cdc_lake.cli import printable
from cdc_lake.cli.app import app
from cdc_lake.cli.data import query_output, topic
from cdc_lake.cli.pipeline import verify
from cdc_lake.cli.samples.run_demo import show
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.jobs.verify import Difference, VerifyReport
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from infra.local.stack.state_folder import find_home
from resources.athena import QueryResult
from resources.kafka.records import Message

HOSTILE = "\x1b]0;owned\x07\x9b2J\r\u202eé"
ESCAPED = "\\u001b]0;owned\\u0007\\u009b2J\\u000d\\u202eé"


def clean(text: str) -> bool:
    """Return whether a text has no control or format characters."""
    return not any(unicodedata.category(each) in {"Cc", "Cf"} and each not in "\n\t" for each in text)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make standard output look like a terminal."""
    monkeypatch.setattr(printable, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))


def result(*row: object) -> QueryResult:
    columns = tuple((f"{HOSTILE}{number}", "varchar") for number, _ in enumerate(row))
    return QueryResult(columns, (row,), "q", 0, 0.1)


def test_only_control_and_bidi_characters_are_escaped() -> None:
    every = "".join(map(chr, [*range(0x3000), 0xD800, 0xDFFF, 0x1F600]))
    escaped = printable.printable(every)
    escaped_characters = {each for each in every if each not in escaped}
    assert escaped_characters == {
        each for each in every if unicodedata.category(each) in {"Cc", "Cs"} and each not in "\n\t"
    } | set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def test_query_rows_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    query_output.print_table(result(HOSTILE, [HOSTILE]))
    output = capsys.readouterr().out
    assert clean(output)
    assert ESCAPED in output
    text = query_output.json_text(result(HOSTILE, [HOSTILE]))
    assert clean(text)
    assert json.loads(text) == [{f"{HOSTILE}0": HOSTILE, f"{HOSTILE}1": [HOSTILE]}]


@pytest.mark.usefixtures("terminal")
def test_csv_on_a_terminal_is_escaped() -> None:
    assert clean("".join(printable.for_output(line) for line in query_output.csv_lines(result(HOSTILE))))


def test_raw_records_in_a_pipe_are_unchanged(commands: Shop) -> None:
    value = b'{"order_id": 1, "note": "\x9b\x7f"}'.replace(b"\x9b", "\x9b".encode())
    commands.kafka.send(commands.orders.topic, value)
    commands.land(commands.orders)
    assert CliRunner().invoke(app, ["raw", "cat", "shop"]).stdout == value.decode() + "\n"


@pytest.mark.usefixtures("terminal")
def test_raw_records_on_a_terminal_are_escaped(commands: Shop) -> None:
    commands.kafka.send(commands.orders.topic, HOSTILE.encode())
    commands.land(commands.orders)
    assert CliRunner().invoke(app, ["raw", "cat", "shop"]).stdout == ESCAPED + "\n"


def test_topic_records_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    raw = HOSTILE.encode()
    messages = [
        Message(0, 0, 0, raw, raw, ((HOSTILE, raw),)),
        Message(0, 1, 0, None, json.dumps({"note": HOSTILE}, ensure_ascii=False).encode()),
    ]
    topic._print_pretty(messages)
    assert clean(capsys.readouterr().out)
    topic._print_lines("t", messages)
    lines = capsys.readouterr().out
    assert clean(lines)
    assert [json.loads(line)["value"] for line in lines.splitlines()] == [HOSTILE, {"note": HOSTILE}]


def test_dead_letters_are_escaped(commands: Shop) -> None:
    letter = DeadLetter.of(commands.orders.topic, 0, 1, f"not read: {HOSTILE}", HOSTILE.encode(), key=HOSTILE.encode())
    dead_letters.put_value(commands.bucket, "shop", letter, HOSTILE.encode())
    dead_letters.put(commands.bucket, "shop", [letter])
    for command in (["list", "shop"], ["list", "shop", "--json"], ["show", "shop", letter.id]):
        found = CliRunner().invoke(app, ["dlq", *command])
        assert found.exit_code == 0, found.output
        assert clean(found.stdout), command
        assert "owned" in found.stdout


def test_differences_of_verify_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    difference = Difference("different", {"id": HOSTILE}, {HOSTILE: (HOSTILE, None)})
    numbers: dict[str, Any] = dict.fromkeys(VerifyReport.__dataclass_fields__, 0)
    report = VerifyReport(**{**numbers, "differences": (difference,)})
    Console(width=1000).print(verify._differences("orders", report))
    output = capsys.readouterr().out
    assert clean(output)
    assert ESCAPED in output


def test_the_demo_summary_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {
        "tables": {"orders": {"stages": {"source": 1, "topic": 1, "raw": 1, "lake": 1}, "records": {}}},
        "datasets": {},
        "seconds": {"source": 1.0},
        "stories": {"grows": {"ok": True, "order_id": 1, "customer": f"[red]{HOSTILE}"}},
        "checks": {"passed": 1, "failed": 1, "faults": {"equals_source": HOSTILE}},
        "dashboard": "here",
    }
    show(Console(width=1000), summary, "Shop")
    output = capsys.readouterr().out
    assert clean(output)
    assert f"[red]{ESCAPED}" in output


def test_logs_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path))
    log = find_home().log("kafka")
    log.parent.mkdir(parents=True)
    log.write_text(f"a topic named {HOSTILE}\n")
    output = CliRunner().invoke(app, ["logs", "kafka"]).stdout
    assert clean(output)
    assert "owned" in output


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "-", "+49 30 123", "=HYPERLINK(1)"]
)
def test_csv_cells_that_look_like_formulas_are_quoted(text: str) -> None:
    _, line = query_output.csv_lines(result(text))
    assert line.lstrip('"').startswith("'" + text)


@pytest.mark.parametrize(
    ("value", "cell"), [(bytearray(b"\x00\xff"), "00ff"), (Row(a=1, b=None), '{"a": 1, "b": null}'), ([1], "[1]")]
)
def test_values_from_spark_are_printed_like_those_from_athena(value: object, cell: str) -> None:
    assert query_output.as_text(value) == cell


@pytest.mark.parametrize(
    ("value", "cell"), [(-1.5, "-1.5"), (-2, "-2"), (Decimal("-1.50"), "-1.50"), ("-1.5", "-1.5"), ("+3e-7", "+3e-7")]
)
def test_csv_keeps_negative_numbers(value: object, cell: str) -> None:
    assert query_output.csv_lines(result(value))[1] == cell
