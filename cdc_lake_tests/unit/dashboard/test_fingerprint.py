"""A page's fingerprint depends on its rows and its declaration only; a change renders the page again."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_lake.dashboard import DashboardSpec, Rows, fingerprint

from .northwind import SPEC as NORTHWIND
from .shop import BARS, DECLARED, query

SPEC = DashboardSpec.model_validate(DECLARED)
MORE = Rows(query(BARS).columns, (*query(BARS).rows, ("Foxtrot", 1, 1.0)))


def test_the_same_rows_and_declaration_have_the_same_fingerprint() -> None:
    assert fingerprint(SPEC, query) == fingerprint(DashboardSpec.model_validate(DECLARED), query)


@pytest.mark.parametrize("changed", [MORE, Rows(MORE.columns, MORE.rows[:2]), Rows(MORE.columns)])
def test_other_rows_change_the_fingerprint(changed: Rows) -> None:
    assert fingerprint(SPEC, lambda sql: changed if sql == BARS else query(sql)) != fingerprint(SPEC, query)


@pytest.mark.parametrize("change", [{"title": "Other"}, {"currency": "€"}, {"visuals": DECLARED["visuals"][:1]}])
def test_another_declaration_changes_the_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint(DashboardSpec.model_validate({**DECLARED, **change}), query) != fingerprint(SPEC, query)


def test_quicksight_settings_do_not_change_the_fingerprint() -> None:
    def no_rows(_: str) -> Rows:
        return Rows(())

    without = NORTHWIND.model_copy(update={"quicksight": None})
    assert fingerprint(without, no_rows) == fingerprint(NORTHWIND, no_rows)
