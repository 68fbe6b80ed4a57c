"""The gate compares each ratio with its committed bound."""

from __future__ import annotations

import json

from benchmarks import gate


def test_a_ratio_above_its_bound_or_without_one_is_reported() -> None:
    bounds = {"load": 1.5, "scan": 2.0}
    assert gate.exceeded({"load": 1.5, "scan": 1.0}, bounds) == []
    assert gate.exceeded({"load": 1.51, "merge": 1.0}, bounds) == [
        "load: 1.51, and the bound is 1.50",
        "merge: there is no bound",
    ]


def test_the_committed_bounds_belong_to_the_measured_ratios() -> None:
    assert json.loads(gate.BOUNDS.read_text()).keys() == {gate.LOADING, gate.LANDING, *gate.COMPARED}
