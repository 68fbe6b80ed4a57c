"""Axes, legends, the places of labels, and which rows stand out."""

from __future__ import annotations

import itertools
import random

import pytest

from cdc_lake.dashboard.chart_spec import Highlight
from cdc_lake.dashboard.labels import Dot, Label, Place, _Plot, place_labels
from cdc_lake.dashboard.marks import highlighted
from cdc_lake.dashboard.scales import legend_values, nice_domain


def test_only_the_strongest_of_the_eligible_stand_out() -> None:
    records: list[dict[str, object]] = [
        {"r": 5, "few": False},
        {"r": 3, "few": True},
        {"r": None, "few": True},
        {"r": 4, "few": True},
    ]
    assert highlighted(Highlight(top=2, by="r", where="few"), records) == [3, 1]
    assert highlighted(Highlight.model_validate({"top": 2, "by": "r"}), records) == [0, 3]
    assert highlighted(None, records) == []


@pytest.mark.parametrize("values", [[0.003], [1282.3], [46.1], [7.9e6], [-3.0, 4.0], [-2.0], [0.0], []])
def test_axes_hold_all_values_and_zero(values: list[float]) -> None:
    low, high = nice_domain(values)
    assert low <= min([0.0, *values])
    assert high >= max([0.0, *values])
    assert low < high


@pytest.mark.parametrize("largest", [0.4, 1.0, 2.0, 9.0, 31.0, 100.0, 123456.0])
def test_legends_stay_within_the_data(largest: float) -> None:
    values = legend_values(largest)
    assert values == sorted(set(values))
    assert 1 <= len(values) <= 3
    assert values[-1] <= largest


def test_labels_of_near_dots_do_not_meet_at_any_width() -> None:
    randomness = random.Random(7)
    dots = [Dot(randomness.uniform(0.4, 0.6), randomness.uniform(0.3, 0.7), 6) for _ in range(40)]
    labels = [Label(number, f"NAME{number}") for number in range(5)]
    widths = (225.0, 560.0, 1400.0)
    places = place_labels(dots, labels, widths, 470)
    for width in widths:
        plot = _Plot(dots, frozenset(range(5)), width, 470)
        boxes = [plot.label_box(label, place) for label, place in zip(labels, places, strict=True)]
        assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))


def test_a_label_at_the_edge_stays_inside() -> None:
    assert place_labels([Dot(0.99, 0.5, 5)], [Label(0, "QUICK")], (300.0, 800.0), 400) == [Place("right", -9, 0)]
