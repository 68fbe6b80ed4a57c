"""The runner continues after a program that fails, and reports it."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import CalledProcessError
from typing import NoReturn

import pytest

from benchmarks import __main__ as runner
from benchmarks.__main__ import PROGRAMS, Program
from cdc_lake_tests.unit.benchmarks.result_files import written


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    """Replace the programs by two, of which the first fails; return what is started."""
    found: list[tuple[str, tuple[str, ...]]] = []

    def run(program: Program, arguments: Sequence[str], folder: Path) -> int:
        found.append((program.name, tuple(arguments)))
        if program.name == "small_batch":
            written(folder, [])
        return int(program.name == "triggers")

    programs = (Program("triggers", "triggers", "--rounds 4", "--rounds 9"), Program("small_batch", "x", "", "--full"))
    monkeypatch.setattr(runner, "PROGRAMS", programs)
    monkeypatch.setattr(runner, "run", run)
    return found


def start(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments, "--results", str(folder)])
    return runner.main()


def test_a_failed_program_is_reported_and_the_others_run(
    started: list[tuple[str, tuple[str, ...]]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert start(monkeypatch, tmp_path) == 1
    assert started == [("triggers", ("--rounds", "4")), ("small_batch", ())]
    assert "failed: triggers" in capsys.readouterr().err
    assert (tmp_path / "index.html").exists()


def test_programs_that_need_the_demo_share_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps: list[object] = []

    @contextmanager
    def running_demo() -> Iterator[Path]:
        steps.append("demo")
        yield tmp_path
        steps.append("down")

    monkeypatch.setattr(runner, "running_demo", running_demo)
    programs = [
        Program(name, name, "", "", on_demo=name != "triggers") for name in ("cold_start", "triggers", "sustained")
    ]
    for program, arguments in runner.with_demo(programs):
        steps.append((program.name, *arguments))
    home = ("--home", str(tmp_path))
    assert steps == ["demo", ("cold_start", *home), ("triggers",), ("sustained", *home), "down"]
    assert [arguments for _, arguments in runner.with_demo(programs[:2])] == [(), ()]


def test_without_a_shared_demo_each_program_starts_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def running_demo() -> NoReturn:
        raise CalledProcessError(1, "cdc-lake demo")

    monkeypatch.setattr(runner, "running_demo", running_demo)
    programs = [Program(name, name, "", "", on_demo=True) for name in ("cold_start", "sustained")]
    assert list(runner.with_demo(programs)) == [(programs[0], ()), (programs[1], ())]


def test_options_are_passed_to_a_named_program(
    started: list[tuple[str, tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert start(monkeypatch, tmp_path, "--full", "small_batch", "--rounds", "2") == 0
    assert started == [("small_batch", ("--full", "--rounds", "2"))]


def test_a_program_without_a_usual_size_runs_if_it_is_named_or_with_full(
    started: list[tuple[str, tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = (Program("nothing_new", "x", "", ""), Program("hoodie_streamer", "x", None, "--minutes 10"))
    monkeypatch.setattr(runner, "PROGRAMS", programs)
    both = [("nothing_new", ()), ("hoodie_streamer", ("--minutes", "10"))]
    for arguments, expected in (((), both[:1]), (("--full",), both), (("hoodie_streamer",), both[1:])):
        started.clear()
        assert start(monkeypatch, tmp_path, *arguments) == 0
        assert started == expected


@pytest.mark.parametrize("arguments", [("triggrs",), ("--rounds", "2")])
@pytest.mark.usefixtures("started")
def test_unknown_names_and_options_of_no_program_are_refused(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        start(monkeypatch, tmp_path, *arguments)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_accepts_the_arguments_of_both_sizes(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(f"benchmarks.{program.module}")

    def parse(parser: argparse.ArgumentParser) -> None:
        _, unknown = parser.parse_known_args()
        raise SystemExit(f"unknown: {unknown}")

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    for size in (program.usual or "", program.full):
        monkeypatch.setattr("sys.argv", [program.module, *size.split(), "--results", "x"])
        with pytest.raises(SystemExit, match=r"unknown: \[\]"):
            module.main()
