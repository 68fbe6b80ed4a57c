"""identity(): which records are deliveries of the same change."""

from __future__ import annotations

from cdc_lake.contract.source.change_event import identity

KEY = ("order_id",)


def event(**fields: object) -> dict[str, object]:
    """Return a streamed update with these fields changed."""
    return {"order_id": 7, "note": "n", "__op": "u", "__lsn": 100, "__snapshot": "false", **fields}


def test_a_streamed_change_is_identified_by_lsn_and_key() -> None:
    assert identity(event(), KEY) == identity(event(note="same change delivered again"), KEY)
    assert identity(event(), KEY) == identity(event(__snapshot=None), KEY)
    assert identity(event(), KEY) != identity(event(__lsn=101), KEY)
    assert identity(event(), KEY) != identity(event(order_id=8), KEY)


def test_delete_and_insert_at_one_lsn_are_distinct() -> None:
    assert identity(event(__op="d"), KEY) != identity(event(__op="c"), KEY)


def test_a_snapshot_row_is_identified_by_key() -> None:
    first = event(__snapshot="first", __op="r", __lsn=50)
    assert identity(first, KEY) == identity(event(__snapshot="true", __op="r", __lsn=90), KEY)
    assert identity(first, KEY) != identity(event(__snapshot="true", order_id=8), KEY)
    assert identity(first, KEY) != identity(event(__lsn=50, __op="r"), KEY)


def test_a_snapshot_row_without_an_operation_is_a_snapshot_row() -> None:
    """Polled rows and rows of earlier records have no operation."""
    row = {"__snapshot": "true", "__lsn": 50, "order_id": 7}
    assert identity(row, KEY) == identity({**row, "__lsn": 90}, KEY) == identity({**row, "__op": "r"}, KEY)


def test_all_key_columns_are_compared() -> None:
    assert identity(event(line=1), ("order_id", "line")) != identity(event(line=2), ("order_id", "line"))


def test_a_change_that_debezium_marks_as_a_snapshots_is_a_change() -> None:
    """A connector that was killed in a chunk of an incremental snapshot does, until it has finished the next one."""
    change = {"__snapshot": "true", "__op": "u", "__lsn": 7, "id": 1}
    assert identity(change, ["id"]) == (7, "u", 1)
