"""docs/reference/command-line.md names every command and every environment variable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from cdc_lake.cli.app import app

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/reference/command-line.md").read_text()
# Set by cdc-lake for its own processes.
OWN = {f"CDC_LAKE_{each}" for each in ("POSTGRES_PASSWORD", "STACK_HOME", "STACK_COMPONENT", "REGISTRY_AUTHORIZATION")}
SECRETS = re.compile(r"CDC_LAKE_S3_\w+")


def commands() -> list[str]:
    """Return every command; those of a group with the group's name."""
    root = typer.main.get_command(app)
    found = []
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found += [f"{name} {each}" for each in inner] if inner else [name]
    return found


@pytest.mark.parametrize("command", commands())
def test_every_command_is_documented(command: str) -> None:
    first, _, second = command.partition(" ")
    rows = [line for line in TEXT.splitlines() if line.startswith("|") and re.search(rf"`[^`]*\b{first}\b", line)]
    assert [row for row in rows if re.search(rf"`[^`]*\b{second or first}\b", row)], f"{command} is not in the table"


def test_every_variable_is_documented() -> None:
    # Variables that only the aws profile reads are in docs/aws.md.
    packages = ("cdc_lake", "infra/local", "resources")
    sources = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    used = {name for path in sources for name in re.findall(r'"(CDC_LAKE_[A-Z_0-9]+)"', path.read_text())}
    documented = set(re.findall(r"CDC_LAKE_[A-Z_0-9]+", TEXT + (ROOT / "docs/aws.md").read_text()))
    assert {name for name in used - documented - OWN if not SECRETS.fullmatch(name)} == set()
