"""Every `cdc-lake` command that a page or a message of the product names exists, with its options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from cdc_lake.cli.app import app
from cdc_lake_tests.helpers.markdown_blocks import blocks

ROOT = Path(__file__).parents[3]
PAGES = sorted({ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("connectors/*.md")})
MODULES = sorted(path for folder in ("cdc_lake", "infra", "resources") for path in (ROOT / folder).rglob("*.py"))
INLINE = re.compile(r"`cdc-lake ([^`]+)`")
INDENTED = re.compile(r"^ {4}(?:\$ )?cdc-lake (.*)$", re.MULTILINE)
IN_BLOCK = re.compile(r"(?:\w+=\S* )*cdc-lake (.*)")


def of_page(text: str) -> Iterator[str]:
    """Yield the arguments of each command in a Markdown page."""
    yield from INLINE.findall(text)
    yield from INDENTED.findall(text)
    for block in blocks(text):
        for command in block.commands():
            if found := IN_BLOCK.fullmatch(command):
                yield found[1]


def of_module(text: str) -> Iterator[str]:
    """Yield the arguments of each command in a module's strings; X stands for a value that is filled in."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield from INLINE.findall("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from INLINE.findall(node.value)


def commands() -> Iterator[tuple[str, str]]:
    """Yield the arguments of each command that is named, and the file that names it."""
    for files, read in ((PAGES, of_page), (MODULES, of_module)):
        for path in files:
            for found in read(path.read_text()):
                arguments = " ".join(re.split(r"\s[#|>&]", found)[0].split())
                if not arguments.startswith(("COMMAND", "X")):
                    yield arguments, str(path.relative_to(ROOT))


@pytest.mark.parametrize(("arguments", "file"), sorted(set(commands())))
def test_a_command_that_is_named_exists(arguments: str, file: str) -> None:
    group = typer.main.get_command(app)
    words = arguments.split()
    while words and hasattr(group, "commands"):
        name = words.pop(0)
        assert name in group.commands, f"{file}: there is no command `cdc-lake {arguments}`"
        group = group.commands[name]
    known = {option for parameter in group.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = {word.partition("=")[0] for word in words if word.startswith("-")} - known - {"--help"}
    assert not unknown, f"{file}: `cdc-lake {arguments}` has no option {', '.join(sorted(unknown))}"
