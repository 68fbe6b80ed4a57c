"""The reference of the command line names every command and every variable that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from cdc_lake.cli.app import app

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/reference/command-line.md").read_text()
# Set by the product for its own processes.
OWN = {"CDC_LAKE_POSTGRES_PASSWORD", "CDC_LAKE_STACK_HOME", "CDC_LAKE_STACK_COMPONENT"}
SECRETS = re.compile(r"CDC_LAKE_S3_\w+")


def commands() -> list[str]:
    """Every command, groups with theirs."""
    root = typer.main.get_command(app)
    found = []
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found += [f"{name} {each}" for each in inner] if inner else [name]
    return found


@pytest.mark.parametrize("command", commands())
def test_each_command(command: str) -> None:
    first, _, second = command.partition(" ")
    rows = [line for line in TEXT.splitlines() if line.startswith("|") and re.search(rf"`[^`]*\b{first}\b", line)]
    assert [row for row in rows if re.search(rf"`[^`]*\b{second or first}\b", row)], f"{command} is not in the table"


def test_each_variable() -> None:
    # What only the aws profile reads is in docs/aws.md.
    packages = ("cdc_lake", "infra/local", "resources")
    sources = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    used = {name for path in sources for name in re.findall(r'"(CDC_LAKE_[A-Z_0-9]+)"', path.read_text())}
    told = set(re.findall(r"CDC_LAKE_[A-Z_0-9]+", TEXT + (ROOT / "docs/aws.md").read_text()))
    assert {name for name in used - told - OWN if not SECRETS.fullmatch(name)} == set()
