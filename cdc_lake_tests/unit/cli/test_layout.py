"""Output on a terminal of 80 columns and in a pipe: no word, name or path is split."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Column
from rich.text import Text
from typer.testing import CliRunner

from cdc_lake.cli import layout
from cdc_lake.cli.app import app
from cdc_lake.cli.data import topic
from cdc_lake.cli.layout import fold, grid
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.cli.doctor_checks import CHECKS, JAVA

LONG = "warehouse_replica_europe.public_reporting.customer_addresses_history_v2"


def printed_table(width: int, columns: list[Column], rows: list[list[Text]]) -> list[str]:
    """Return the lines of a table on a terminal of this width."""
    out = Console(width=width, file=StringIO(), force_terminal=True, color_system=None)
    out.print(grid(out, columns, rows))
    assert isinstance(out.file, StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


@given(st.text("ab /._-:", max_size=60), st.integers(1, 30))
def test_folding_removes_only_spaces_and_respects_the_width(text: str, width: int) -> None:
    folded = fold(Text(text), width).plain
    assert all(len(line) <= width for line in folded.split("\n"))
    assert re.sub(r"\s", "", folded) == re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("17 in /usr/lib/jvm/java", ["17 in", "/usr/lib/jvm/java"]),
        ("/usr/lib/jvm/java-17-openjdk", ["/usr/lib/jvm/java-", "17-openjdk"]),
        ("a_b.c see /opt/x", ["a_b.c see /opt/x"]),
        ("abcdefghijklmnopqrstuvwxyz", ["abcdefghijklmnopqr", "stuvwxyz"]),
        ("two\n  lines", ["two", "  lines"]),
        ("", [""]),
    ],
)
def test_text_is_folded_at_spaces_then_at_path_separators(text: str, lines: list[str]) -> None:
    assert fold(Text(text), 18).plain.split("\n") == lines


def test_folding_keeps_the_style_of_words() -> None:
    text = Text.assemble("plain words ", ("red/words/that/go/on", "red"))
    folded = fold(text, 12)
    assert folded.plain.split("\n") == ["plain words", "red/words/", "that/go/on"]
    assert {folded.plain[span.start : span.end] for span in folded.spans if span.style == "red"} >= {"that/go/on"}


def test_a_narrow_table_folds_only_its_widest_column() -> None:
    columns = [Column("topic"), *(Column(name, justify="right") for name in ("partitions", "offsets", "retention"))]
    lines = printed_table(80, columns, [[Text(LONG), Text("3"), Text("1000000"), Text("7 days, 0:00:00")]])
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].split() == ["topic", "partitions", "offsets", "retention"]
    assert lines[1].split() == ["warehouse_replica_europe.public_reporting.", "3", "1000000", "7", "days,", "0:00:00"]
    assert lines[2:] == ["customer_addresses_history_v2"]


RUN = """
import sys
from cdc_lake.cli.app import main
from cdc_lake_tests.unit.cli.doctor_checks import CHECKS
from infra.local import doctor
doctor.examine = lambda home, components: CHECKS
sys.argv = ["cdc-lake", "doctor"]
main()
"""


def doctor_output(terminal: bool) -> list[str]:
    """Return what the doctor prints on a real terminal of 80 columns, or into a pipe with COLUMNS=80."""
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "PYTHONPATH": os.pathsep.join(sys.path)}
    read_end, write_end = pty.openpty() if terminal else os.pipe()
    subprocess.run([sys.executable, "-c", RUN], stdout=write_end, env=environment, check=False)
    os.close(write_end)
    output = b""
    while True:
        try:
            part = os.read(read_end, 65536)
        except OSError:  # raised when the other end of the terminal is closed
            part = b""
        if not part:
            break
        output += part
    os.close(read_end)
    return [line.rstrip() for line in output.decode().splitlines()]


def test_doctor_on_a_terminal_splits_no_words() -> None:
    lines = doctor_output(terminal=True)
    assert all(len(line) <= 80 for line in lines)
    words = set(re.findall(r"\w+", "\n".join(lines)))
    for check in CHECKS:
        assert set(re.findall(r"\w+", f"{check.name} {check.level} {check.found} {check.todo}")) <= words


def test_doctor_in_a_pipe_prints_whole_lines() -> None:
    [_, java, user] = doctor_output(terminal=False)
    assert java.endswith(f"17 in {JAVA}")
    assert CHECKS[1].found in user
    assert user.endswith(CHECKS[1].todo)


def test_a_topic_that_keeps_its_records_for_ever_is_listed(commands: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_lake.profile.resources", lambda: {"kafka": commands.kafka})
    for name, retention in (("forever", "-1"), ("longest", "9223372036854775807"), ("short", "60000")):
        commands.kafka.make(name)
        commands.kafka._topics[name].config["retention.ms"] = retention
    listed = CliRunner().invoke(app, ["topic", "ls"]).stdout.splitlines()
    found = {line.split()[0]: "forever" in line.split()[1:] for line in listed if line.split()}
    assert [found[name] for name in ("forever", "longest", "short")] == [True, True, False]


def test_topic_commands_in_a_pipe_print_whole_lines(commands: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("cdc_lake.profile.resources", lambda: {"kafka": commands.kafka})
    commands.kafka.make(LONG)
    commands.order(1, customer_id="a word " * 20_000)
    listed = CliRunner().invoke(app, ["topic", "ls"]).stdout.splitlines()
    assert [line.split()[1] for line in listed if line.startswith(LONG)] == ["1"]
    peeked = CliRunner().invoke(app, ["topic", "peek", commands.orders.topic]).stdout
    assert "a word " * 20_000 in peeked


def test_topic_peek_on_a_terminal_splits_no_words(commands: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_lake.profile.resources", lambda: {"kafka": commands.kafka})
    out = Console(width=80, file=StringIO(), force_terminal=True, color_system=None)
    monkeypatch.setattr(topic, "console", lambda: out)
    commands.order(1, customer_id="/a/path/of/some/length" * 8)
    CliRunner().invoke(app, ["topic", "peek", commands.orders.topic])
    assert isinstance(out.file, StringIO)
    lines = [line.rstrip() for line in out.file.getvalue().splitlines()]
    assert all(len(line) <= 80 for line in lines)
    assert set(re.findall(r"\w+", "\n".join(lines))) >= {"partition", "offset", "customer_id", "path", "length"}
    assert not {"lengt", "engt", "pat"} & set(re.findall(r"\w+", "\n".join(lines)))


def test_the_width_of_a_pipe_ignores_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", StringIO())
    assert layout.console().width == layout.UNLIMITED_WIDTH
