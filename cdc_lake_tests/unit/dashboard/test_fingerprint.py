"""A page is drawn again when what it is made of has changed, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_lake.dashboard import DashboardSpec, Rows, fingerprint

from .shop import BARS, DECLARED, answer

SPEC = DashboardSpec.model_validate(DECLARED)
MORE = Rows(answer(BARS).columns, (*answer(BARS).rows, ("Foxtrot", 1, 1.0)))


def test_the_same_again() -> None:
    assert fingerprint(SPEC, answer) == fingerprint(DashboardSpec.model_validate(DECLARED), answer)


@pytest.mark.parametrize("changed", [MORE, Rows(MORE.columns, MORE.rows[:2]), Rows(MORE.columns)])
def test_other_rows(changed: Rows) -> None:
    assert fingerprint(SPEC, lambda sql: changed if sql == BARS else answer(sql)) != fingerprint(SPEC, answer)


@pytest.mark.parametrize("change", [{"title": "Other"}, {"currency": "€"}, {"headlines": []}])
def test_another_declaration(change: dict[str, Any]) -> None:
    changed: dict[str, Any] = {**DECLARED, **change}
    if not changed["headlines"]:
        changed["visuals"] = [{**visual, "message": "Nobody."} for visual in DECLARED["visuals"]]
    assert fingerprint(DashboardSpec.model_validate(changed), answer) != fingerprint(SPEC, answer)
