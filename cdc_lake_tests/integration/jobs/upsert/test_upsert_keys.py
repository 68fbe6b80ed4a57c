"""Rows are distinguished by their keys, for keys of every type and content."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.maintenance import purge
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake_tests.integration.jobs.change_records import event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import Event, LakeTable
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

DAY = 86_400_000
# Separators, quotes, field names and null markers of the key encodings of Hudi and of the jobs.
HOSTILE = ("", " ", "1", "3", "1,b:2", "2,b:3", "__empty__", "__null__", "null", '"', '","', "\\", "a:1", "ß🦆", "1\n")


def change(op: str, lsn: int, **values: Any) -> Event:  # noqa: ANN401 - event() also has typed parameters
    """Return a change of a table whose key is not `id`."""
    return {name: value for name, value in event(None, op, lsn, **values).items() if name not in {"id", "qty"}}


def deliver(
    table: LakeTable, op: str, first: int, keys: Sequence[Mapping[str, object]]
) -> dict[tuple[object, ...], object]:
    """Deliver a change of each key, and return the new notes by key."""
    written: dict[tuple[object, ...], object] = {tuple(key.values()): f"{op} {n}" for n, key in enumerate(keys)}
    table.deliver([change(op, first + place, note=f"{op} {place}", **key) for place, key in enumerate(keys)])
    return written


def notes(table: LakeTable) -> dict[tuple[object, ...], object]:
    """Return the notes of the rows that are not deleted, by key; fail if a key is duplicated."""
    found = [((row["a"], row["b"]), row["note"]) for row in table.by_hudi_rs() if not row["__deleted"]]
    assert len(found) == len(dict(found))
    return dict(found)


def test_composite_text_keys_are_distinct(new_table: NewTable, count_trials: CountTrials) -> None:
    columns = [Column(name=name, type="text", nullable=name == "note") for name in ("a", "b", "note")]
    table = new_table(columns, ("a", "b"))
    keys = [{"a": one, "b": other} for one, other in product(HOSTILE, HOSTILE)]
    deliver(table, "c", 100, keys)
    assert table.upsert().commit.inserts == len(keys)
    changed = deliver(table, "u", 1000, keys)
    report = table.upsert()
    assert (report.commit.inserts, report.commit.updates, report.dead_letters) == (0, len(keys), 0)
    assert notes(table) == changed

    deliver(table, "d", 2000, keys[::2])
    # The order of the key's columns in the YAML makes no difference.
    assert table.upsert(replace(table.spec, key=("b", "a"))).commit.inserts == 0
    alive = {key: note for place, (key, note) in enumerate(changed.items()) if place % 2}
    assert notes(table) == alive

    table.deliver([], watermark=Watermark(source_ts_ms=1_700_000_000_000 + 8 * DAY, lsn=9000))
    table.upsert()
    purged = purge.run(table.engines.spark, PurgeSpec(table.spec, 7 * DAY // 1000))
    assert purged.purged == len(keys) - len(alive)
    assert {(row["a"], row["b"]) for row in table.by_spark()} == alive.keys()
    count_trials("hostile keys", len(keys))


def test_byte_keys_and_an_empty_text_key_are_distinct(new_table: NewTable) -> None:
    bytes_ = [b"", b"\x00", b"\xff", b"\xfe", b"\xef\xbf\xbd"]
    binary = new_table([Column(name="a", type="bytea", nullable=False), Column(name="note", type="text")], ("a",))
    text = new_table([Column(name="a", type="text", nullable=False), Column(name="note", type="text")], ("a",))
    for table, keys in (
        (binary, [{"a": base64.b64encode(each).decode()} for each in bytes_]),
        (text, [{"a": each} for each in HOSTILE]),
    ):
        deliver(table, "c", 100, keys)
        table.upsert()
        changed = deliver(table, "u", 1000, keys)
        assert table.upsert().commit.updates == len(keys)
        found = [row["note"] for row in table.by_hudi_rs()]
        assert sorted(map(str, found)) == sorted(map(str, changed.values()))


def test_number_and_time_keys_are_distinct_at_their_smallest_unit(new_table: NewTable) -> None:
    """-0.0 is the same key as 0.0, as in PostgreSQL."""
    kinds = ("numeric(12,2)", "date", "timestamp with time zone", "double precision", "boolean")
    first = ("1.10", 19_782, "2024-02-29T23:59:59.123456Z", 0.0, True)
    other = ("1.11", 19_783, "2024-02-29T23:59:59.123457Z", 5e-324, False)
    names = [f"k{place}" for place in range(len(kinds))]
    columns = [Column(name=name, type=kind, nullable=False) for name, kind in zip(names, kinds, strict=True)]
    table = new_table([*columns, Column(name="note", type="text")], names)
    keys = [dict(zip(names, values, strict=True)) for values in product(*zip(first, other, strict=True))]
    deliver(table, "c", 100, keys)
    assert table.upsert().commit.inserts == len(keys)
    same = [{**key, "k3": -0.0 if key["k3"] == 0.0 else key["k3"]} for key in keys]
    changed = deliver(table, "u", 1000, same)
    assert table.upsert().commit.updates == len(keys)
    assert sorted(str(row["note"]) for row in table.by_hudi_rs()) == sorted(map(str, changed.values()))
