"""The identity of a change."""

from __future__ import annotations

from cdc_lake.contract.source.change_event import identity

KEY = ("order_id",)


def event(**fields: object) -> dict[str, object]:
    """A streamed update."""
    return {"order_id": 7, "note": "n", "__op": "u", "__lsn": 100, "__snapshot": "false", **fields}


def test_a_streamed_change_is_told_by_lsn_and_key() -> None:
    assert identity(event(), KEY) == identity(event(note="same change delivered again"), KEY)
    assert identity(event(), KEY) == identity(event(__snapshot=None), KEY)
    assert identity(event(), KEY) != identity(event(__lsn=101), KEY)
    assert identity(event(), KEY) != identity(event(order_id=8), KEY)


def test_a_changed_key_makes_two_changes_of_one_lsn() -> None:
    assert identity(event(__op="d"), KEY) != identity(event(__op="c"), KEY)


def test_a_snapshots_row_is_told_by_key_alone() -> None:
    first = event(__snapshot="first", __op="r", __lsn=50)
    assert identity(first, KEY) == identity(event(__snapshot="true", __op="r", __lsn=90), KEY)
    assert identity(first, KEY) != identity(event(__snapshot="true", order_id=8), KEY)
    assert identity(first, KEY) != identity(event(__lsn=50, __op="r"), KEY)


def test_all_columns_of_the_key_count() -> None:
    assert identity(event(line=1), ("order_id", "line")) != identity(event(line=2), ("order_id", "line"))
