"""Results: what a program writes can be read again, and the committed results belong to the goals."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.goals import GOALS
from benchmarks.report import results
from benchmarks.report.figures import OURS, Figure, value_of
from benchmarks.report.results import Recorder
from cdc_lake_tests.unit.benchmarks.result_files import written


def test_a_result_has_its_machine_versions_commit_and_evaluated_goals(tmp_path: Path) -> None:
    result = written(tmp_path, [Figure(what="50 events, warm", unit="s", value=1.2)])
    assert results.read(tmp_path) == [result]
    assert (result.program, result.arguments) == ("small_batch", ["rounds=3"])
    assert result.versions["spark"].startswith("hudi-spark3.5-bundle")
    assert "iceberg-spark-runtime" in result.versions["peers"]
    assert result.machine.cores > 0
    assert result.commit.rstrip("+").isalnum()
    assert [(goal.number, goal.bound, goal.met) for goal in result.goals] == [(6, 1.5, True)]


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    recorder = Recorder(parser)
    recorder.write(parser.parse_args([]), "small_batch", [])
    assert list(tmp_path.iterdir()) == []


def test_committed_results_have_the_figures_that_their_goals_name() -> None:
    for result in results.read():
        for goal in (goal for goal in GOALS if goal.program == result.program):
            for system in (OURS, *([goal.peer] if goal.peer else [])):
                assert value_of(result.figures, goal.what, goal.unit, system) is not None, (
                    goal.what,
                    goal.unit,
                    system,
                )
