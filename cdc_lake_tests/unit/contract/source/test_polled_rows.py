"""The conditions of windows, as SQL text; integration/poll/test_windows.py runs them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lake.contract.source.poll_state import Bound
from cdc_lake.contract.source.polled_rows import PolledRows, literal, quoted

LOWER = Bound(at=datetime(2026, 1, 1, 10, tzinfo=UTC), last_id=7)
UPPER = Bound(at=datetime(2026, 1, 1, 10, 0, 5, 1, tzinfo=UTC), last_id=9)
SINCE, UNTIL = "timestamptz '2026-01-01 10:00:00+00:00'", "timestamptz '2026-01-01 10:00:05.000001+00:00'"
TIME, BY_ID = PolledRows("t", timestamp="c"), PolledRows("t", incrementing="i")
BOTH = PolledRows("t", timestamp="c", incrementing="i")
LOCAL = PolledRows("t", timestamp="c", time_zone="UTC")


@pytest.mark.parametrize(
    ("rows", "lower", "condition"),
    [
        (TIME, LOWER, f'(q."c" >= {SINCE} and q."c" < {UNTIL})'),
        (TIME, None, f'(q."c" < {UNTIL})'),
        (LOCAL, None, f"(q.\"c\" < ({UNTIL} at time zone 'UTC'))"),
        (BY_ID, LOWER, '(q."i" > 7 and q."i" <= 9)'),
        (BY_ID, None, '(q."i" <= 9)'),
        (BOTH, LOWER, f'((q."c" >= {SINCE} and q."c" < {UNTIL}) or (q."c" is null and (q."i" > 7 and q."i" <= 9)))'),
    ],
)
def test_a_window_is_half_open_by_time_and_ends_with_an_id(
    rows: PolledRows, lower: Bound | None, condition: str
) -> None:
    assert rows.window(lower, UPPER) == condition


@pytest.mark.parametrize(
    ("rows", "lower", "expected"),
    [
        (TIME, None, True),
        (TIME, Bound(at=UPPER.at), False),
        (BY_ID, None, True),
        (BY_ID, Bound(at=UPPER.at, next_id=9), True),
        (BY_ID, LOWER, False),
        (BOTH, Bound(at=UPPER.at), False),
    ],
)
def test_a_window_without_a_lower_limit_may_be_the_whole_table(
    rows: PolledRows, lower: Bound | None, expected: bool
) -> None:
    assert rows.from_beginning(lower) is expected


def test_no_id_is_settled_before_the_first_bound() -> None:
    assert BY_ID.window(None, Bound(at=UPPER.at)) == "false"


@pytest.mark.parametrize(
    ("rows", "condition"),
    [
        (TIME, f'coalesce(q."c" < {UNTIL}, true)'),
        (BY_ID, 'coalesce((q."i" <= 9), false)'),
        (BOTH, f'coalesce(q."c" < {UNTIL}, (q."i" <= 9), false)'),
    ],
)
def test_settled_rows_are_in_no_later_window(rows: PolledRows, condition: str) -> None:
    assert rows.settled(UPPER) == condition


def test_names_and_texts_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'
    assert literal("it's") == "'it''s'"
    assert literal("a\\'b") == "E'a\\\\''b'"
