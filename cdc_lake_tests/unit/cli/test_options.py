"""Every option of every command, and both forms of a flag (--resume, --no-resume), are passed by some test.

The test reads the tests' sources. An option counts as passed to a command if an argument list contains the command's
words and the option. If a file has a helper that calls the command with the helper's own arguments, an option in
another argument list of the file counts too, unless that list calls another command.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from cdc_lake.cli.app import app

TESTS = Path(__file__).parents[2]
PROGRAMS = ("cdc-lake", "cdc_lake.cli.app")
"""Each of these words can precede a command. A command can also be at the start of the arguments."""
Words = tuple[str, ...]


@dataclass(frozen=True)
class Arguments:
    """An argument list in a test's source; it is open if it has parts that are not literals."""

    words: Words
    is_open: bool

    def calls(self, command: Words) -> bool:
        """Return whether this is a call of the command."""
        starts = [0, *(number + 1 for number, word in enumerate(self.words) if word in PROGRAMS)]
        return any(self.words[start : start + len(command)] == command for start in starts)


@cache
def commands() -> dict[Words, Any]:
    """Return every command by the words that call it."""
    return dict(below(typer.main.get_command(app), ()))


def below(group: Any, path: Words) -> Iterator[tuple[Words, Any]]:  # noqa: ANN401 - click's group
    """Yield the commands of a group and of its groups."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from below(command, (*path, name))
        else:
            yield (*path, name), command


def options() -> list[tuple[list[Words], Words]]:
    """Return the commands and the spellings of each option; a command with two names is listed twice."""
    found: dict[tuple[object, Words], list[Words]] = {}
    for path, command in commands().items():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                for half in (parameter.opts, parameter.secondary_opts):
                    if half:
                        found.setdefault((inspect.unwrap(command.callback), tuple(half)), []).append(path)
    return [(paths, spellings) for (_, spellings), paths in found.items()]


def argument_lists(source: str) -> list[Arguments]:
    """Return the argument lists of a source: literals in the arguments of calls, in lists and in tuples."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            found.append(arguments(node.args))
        elif isinstance(node, ast.List | ast.Tuple):
            found.append(arguments(node.elts))
    return [each for each in found if each.words]


def arguments(nodes: Sequence[ast.expr]) -> Arguments:
    """Return the words of the expressions' literals; of an f-string, those before its first value."""
    words: list[str] = []
    is_open = False
    for node in nodes:
        first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            words += [word.partition("=")[0] if word.startswith("-") else word for word in first.value.split()]
        else:
            is_open = True
    return Arguments(tuple(words), is_open)


@cache
def sources() -> list[list[Arguments]]:
    """Return the argument lists of each file of the tests but this one."""
    files = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    return [argument_lists(path.read_text(encoding="utf-8")) for path in files]


def is_passed(files: list[list[Arguments]], command: Words, spellings: Words) -> bool:
    """Return whether an argument list of the files passes the option to the command."""
    for found in files:
        having = [each for each in found if any(spelling in each.words for spelling in spellings)]
        if not having:
            continue
        starts = [
            command[: len(each.words)] for each in found if each.is_open and each.words == command[: len(each.words)]
        ]
        # The words that a helper leaves to its callers: `show` for `invoke(app, ["dlq", *more])`.
        rests = [command[len(start) :] for start in starts if len(start) < len(command)]

        def calls(each: Arguments, rests: Sequence[Words] = rests) -> bool:
            return each.calls(command) or any(each.words[: len(rest)] == rest for rest in rests)

        if any(calls(each) for each in having):
            return True
        if any(each.is_open and calls(each) for each in found) and not all(calls_any(each) for each in having):
            return True
    return False


def calls_any(arguments: Arguments) -> bool:
    """Return whether an argument list is a call of any command."""
    return any(arguments.calls(path) for path in commands())


@pytest.mark.parametrize(
    ("paths", "spellings"), [pytest.param(*each, id=f"{' '.join(each[0][0])} {each[1][0]}") for each in options()]
)
def test_every_option_is_passed_by_a_test(paths: list[Words], spellings: Words) -> None:
    assert any(is_passed(sources(), path, spellings) for path in paths), (
        f"no test calls `cdc-lake {' '.join(paths[0])}` with {' or '.join(spellings)}"
    )


@pytest.mark.parametrize(
    ("source", "passed"),
    [
        ('invoke(app, ["demo", "--no-resume"])', True),
        ('run("cdc-lake", "demo", "--no-resume")', True),
        ('def run(*more): invoke(app, ["demo", *more])\nrun("--no-resume")', True),
        ('invoke(app, ["demo", "--resume"])', False),
        ('invoke(app, ["aws", "smoke", "--no-resume"])', False),
        ('invoke(app, ["demo"])\nrun("--no-resume")', False),
        ('invoke(app, ["demo"])\nassert "--no-resume" in output', False),
        ('def run(*more): invoke(app, ["demo", *more])\ninvoke(app, ["verify", "--no-resume"])', False),
        ('"""demo --no-resume"""', False),
    ],
)
def test_an_option_is_found_only_in_calls_of_its_command(source: str, passed: bool) -> None:
    assert is_passed([argument_lists(source)], ("demo",), ("--no-resume",)) is passed


def test_an_option_that_is_passed_through_a_helper_is_found() -> None:
    helper = 'def run(*more): invoke(app, ["dlq", *more])'
    for call, passed in (('run("show", "--raw")', True), ('run("list", "--raw")', False)):
        assert is_passed([argument_lists(f"{helper}\n{call}")], ("dlq", "show"), ("--raw",)) is passed


def test_options_of_commands_in_groups_and_both_forms_of_flags_are_collected() -> None:
    found = {(path, spelling) for paths, spellings in options() for path in paths for spelling in spellings}
    assert found >= {
        (("up",), "--home"),
        (("demo",), "--resume"),
        (("demo",), "--no-resume"),
        (("aws", "plugins", "build"), "--no-provider"),
        (("dlq", "ls"), "--closed"),
    }
