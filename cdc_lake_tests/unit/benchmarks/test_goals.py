"""Goals: figures are compared with an absolute bound, with a peer, or not at all."""

from __future__ import annotations

from itertools import takewhile

import pytest

from benchmarks import goals
from benchmarks.__main__ import PROGRAMS
from benchmarks.goals import GOALS, SIZES, Goal, GoalResult, evaluate, unmeasured
from benchmarks.report.figures import Figure, value_of


def evaluated(goal: Goal, *figures: Figure, monkeypatch: pytest.MonkeyPatch) -> GoalResult:
    monkeypatch.setattr(goals, "GOALS", (goal,))
    [found] = evaluate(goal.program, figures, {})
    return found


def figure(value: float, system: str = "cdc-lake", size: float | None = None) -> Figure:
    return Figure(what="load", unit="s", value=value, system=system, size=size)


@pytest.mark.parametrize(
    ("goal", "peer", "bound", "met"),
    [
        (Goal(1, "m", "p", "load", "s", bound=5), 1, 5, True),
        (Goal(1, "m", "p", "load", "s", bound=3), 1, 3, False),
        (Goal(1, "m", "p", "load", "s", peer="other", ratio=1.5), 4, 6, True),
        (Goal(1, "m", "p", "load", "s", peer="other"), 3, 3, False),
        (Goal(1, "m", "p", "load", "s", bound=10, peer="other", ratio=0.8, at_least=True), 5, 4, True),
        (Goal(1, "m", "p", "load", "s", bound=6, at_least=True), 1, 6, False),
        (Goal(1, "m", "p", "load", "s", peer="other", reported=True), 9, 9, None),
    ],
)
def test_a_figure_is_compared_with_its_bound(
    goal: Goal, peer: float, bound: float, met: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = evaluated(goal, figure(5), figure(peer, "other"), monkeypatch=monkeypatch)
    assert (found.measured, found.bound, found.met) == (5, bound, met)
    assert goal.reported or ((found.share or 0) <= 1) is met
    assert found.against == (f"{goal.ratio:.2g} x other ({peer:.3g})" if goal.peer else "")


def test_without_the_figure_or_the_peer_nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    goal = Goal(1, "m", "p", "load", "s", peer="other")
    assert evaluated(goal, figure(5), monkeypatch=monkeypatch).met is None
    assert evaluated(goal, figure(5, "other"), monkeypatch=monkeypatch).met is None


@pytest.mark.parametrize(
    ("rows", "met", "limit"),
    [
        (100, None, "evaluated only with --rows 1,000 or more"),
        (1000, False, "the disk"),
        ([10, 1000], False, "the disk"),
        (None, None, "evaluated only with --rows 1,000 or more"),
    ],
)
def test_a_goal_is_evaluated_at_its_size_only(
    rows: object, met: bool | None, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goals, "GOALS", (Goal(1, "m", "p", "load", "s", bound=1, limit="the disk"),))
    monkeypatch.setattr(goals, "SIZES", {"p": {"rows": 1000}})
    [found] = evaluate("p", [figure(5)], {"rows": rows})
    assert (found.measured, found.bound, found.met, found.limit) == (5, 1, met, limit)
    [missing] = unmeasured([(1, "another measure")])
    assert (missing.measured, missing.met, missing.limit) == (None, None, "")
    assert unmeasured([(1, "m")]) == ()


def test_a_figure_that_is_part_of_a_series_is_not_evaluated_and_a_doubled_one_is_an_error() -> None:
    assert value_of([figure(1, size=10), figure(2)], "load", "s", "cdc-lake") == 2
    with pytest.raises(ValueError, match="'load' of cdc-lake in s: it was measured 2 times"):
        value_of([figure(1), figure(2)], "load", "s", "cdc-lake")


def test_every_goal_of_the_issue_has_a_program_that_is_run() -> None:
    assert {goal.number for goal in GOALS} == set(range(1, 13))
    assert {goal.program for goal in GOALS} <= {program.name for program in PROGRAMS}
    assert all(goal.reported or goal.bound is not None or goal.peer is not None for goal in GOALS)
    assert len({(goal.number, goal.measure) for goal in GOALS}) == len(GOALS)


def test_a_full_run_is_large_enough_to_evaluate_its_goals() -> None:
    full = {program.name: program.full.split() for program in PROGRAMS}
    for program, sizes in SIZES.items():
        for argument, least in sizes.items():
            values = full[program][full[program].index(f"--{argument}") + 1 :]
            assert max(float(value) for value in takewhile(str.isdigit, values)) >= least
