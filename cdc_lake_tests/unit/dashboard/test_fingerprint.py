"""A page is rendered again when its fingerprint has changed: other rows or another declaration, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_lake.dashboard import DashboardSpec, Rows, fingerprint

from .northwind import SPEC as NORTHWIND
from .shop import BARS, DECLARED, query

SPEC = DashboardSpec.model_validate(DECLARED)
MORE = Rows(query(BARS).columns, (*query(BARS).rows, ("Foxtrot", 1, 1.0)))


def test_the_same_rows_and_declaration() -> None:
    assert fingerprint(SPEC, query) == fingerprint(DashboardSpec.model_validate(DECLARED), query)


@pytest.mark.parametrize("changed", [MORE, Rows(MORE.columns, MORE.rows[:2]), Rows(MORE.columns)])
def test_other_rows(changed: Rows) -> None:
    assert fingerprint(SPEC, lambda sql: changed if sql == BARS else query(sql)) != fingerprint(SPEC, query)


@pytest.mark.parametrize("change", [{"title": "Other"}, {"currency": "€"}, {"visuals": DECLARED["visuals"][:1]}])
def test_another_declaration(change: dict[str, Any]) -> None:
    assert fingerprint(DashboardSpec.model_validate({**DECLARED, **change}), query) != fingerprint(SPEC, query)


def test_quicksight_does_not_change_the_page() -> None:
    def no_rows(_: str) -> Rows:
        return Rows(())

    without = NORTHWIND.model_copy(update={"quicksight": None})
    assert fingerprint(without, no_rows) == fingerprint(NORTHWIND, no_rows)
