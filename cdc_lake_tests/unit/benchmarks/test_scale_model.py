"""The model of a pipeline past one machine: its equation, and what a higher rate needs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scale_model import Measured, backlog_rate, batch_seconds, read, size

MEASURED = Measured(land_cpu=50e-6, apply_cpu=150e-6, fixed_seconds=1.2, connector_rate=2_000)


@given(rate=st.floats(1, 9_000), cores=st.integers(2, 64))
def test_a_batch_contains_what_arrived_during_the_one_before(rate: float, cores: int) -> None:
    seconds = batch_seconds(rate, cores, MEASURED)
    arrived = rate * seconds
    assert seconds == pytest.approx(MEASURED.fixed_seconds + arrived * MEASURED.cpu / cores)


def test_a_rate_above_the_capacity_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"30,000 changes/s need 6\.0 of 4 cores"):
        batch_seconds(30_000, 4, MEASURED)


def test_a_higher_rate_needs_pipelines_with_executors_and_costs_less_for_a_change() -> None:
    low, middle, high = (size(rate, MEASURED) for rate in (10, 3_000, 50_000))
    assert [each.pipelines for each in (low, middle, high)] == [1, 2, 25]
    assert [each.executors for each in (low, middle, high)] == [1, 2, 25]
    assert [each.partitions for each in (low, middle, high)] == [1, 1, 1]
    assert [each.brokers for each in (low, middle, high)] == [3, 3, 11]
    assert low.batch_seconds == pytest.approx(MEASURED.fixed_seconds, rel=0.01)
    totals = [sum(each.dollars.values()) for each in (low, middle, high)]
    assert totals == sorted(totals, reverse=True)


def test_a_fast_connector_needs_executors_and_partitions_instead() -> None:
    found = size(50_000, replace(MEASURED, connector_rate=60_000))
    assert (found.pipelines, found.executors, found.partitions) == (1, 4, 4)


def test_a_large_backlog_approaches_the_rate_of_the_cores() -> None:
    assert backlog_rate(10_000_000, 2, MEASURED) == pytest.approx(2 / MEASURED.cpu, rel=0.01)


def test_a_missing_result_names_the_program_to_run() -> None:
    with pytest.raises(LookupError, match=r"no result of landing_rate with it\. Run `make bench"):
        read([])
