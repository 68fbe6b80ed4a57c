"""The table equals the fold of the source's changes, whatever the delivery did (design, section 5).

Hypothesis draws histories with their deliveries; one table holds them all. Which ones is fixed by SEED; CDC_LAKE_SEED
and CDC_LAKE_HISTORIES try others and more.
"""

from __future__ import annotations

import os
from itertools import cycle
from random import Random

import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.table import timeline
from cdc_lake_tests.delivery_orders import Delivery, in_order, sample, smaller
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.history_runs import Told
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.long_test_sizes import size
from cdc_lake_tests.seeds import named_in_failures
from cdc_lake_tests.trial_counts import Tried

SEED = int(os.environ.get("CDC_LAKE_SEED", "20260101"))
seeded = named_in_failures("CDC_LAKE_SEED", SEED)
HISTORIES = int(os.environ.get("CDC_LAKE_HISTORIES") or size(in_ci=60, full=300))
"""Of each of five kinds."""
SHRINKS = 12
PLACES = (
    "upsert.after_lease",
    "upsert.before_dead_letters",
    "upsert.before_write",
    "commit.before_lease_check",
    "commit.after_lease_check",
    "upsert.after_commit",
)


class Crash(Exception):  # noqa: N818 - what happens, no fault of the product
    """The upsert ends here."""


@seeded
def test_the_table_is_the_fold_after_every_batch(
    new_table: NewTable, tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(new_table(COLUMNS, KEY), sample(HISTORIES, SEED))
    dice = Random(SEED)
    places = cycle(dice.sample(PLACES, len(PLACES)))
    crashes = records = batches = 0
    for landed in told.land():
        records += landed.records
        if dice.random() < 0.25:
            continue  # this one is applied together with the next, of another epoch perhaps
        crash(told.table, next(places), monkeypatch)
        crashes += 1
        told.table.upsert()
        batches += 1
        require(told, told.table.by_hudi_rs())
    told.table.upsert()
    require(told, told.table.by_spark())
    tried("histories", len(told.deliveries))
    tried("deliveries", len(told.deliveries))
    tried("changes delivered, duplicates included", records)
    tried("batches upserted and compared", batches + 1)
    tried("upserts that crashed in between", crashes)


@seeded
def test_told_again_from_the_first_offset_into_a_new_chain(new_table: NewTable, tried: Tried) -> None:
    told = Told(new_table(COLUMNS, KEY), [whole(each) for each in sample(HISTORIES, SEED + 1)])
    for _ in told.land():
        pass
    told.table.upsert()
    require(told, told.table.by_hudi_rs())
    tried("histories", len(told.deliveries))
    tried("deliveries", len(told.deliveries))


@seeded
def test_values_that_were_left_out_are_those_of_before(new_table: NewTable, tried: Tried) -> None:
    told = Told(new_table(COLUMNS, KEY), sample(HISTORIES, SEED + 2, in_order()))
    for _ in told.land():
        assert told.table.upsert().dead_letters == 0
        require(told, told.table.by_hudi_rs())
    tried("histories", len(told.deliveries))
    tried("deliveries", len(told.deliveries))
    tried("values that records left out", sum(event.left_out for each in told.deliveries for event in each.events()))


def crash(table: LakeTable, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an upsert end at a place: nothing of its batch is applied, or, past the commit, all of it."""
    before, rows = committed(table), None

    def reached(name: str) -> None:
        if name == place:
            raise Crash(place)

    if before is not None:
        rows = sorted(map(str, table.by_hudi_rs()))
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "reached", reached)
        with pytest.raises(Crash):
            table.upsert()
    if place == "upsert.after_commit":
        assert committed(table) != before
    else:
        assert committed(table) == before
        assert rows is None or sorted(map(str, table.by_hudi_rs())) == rows


def committed(table: LakeTable) -> timeline.Commit | None:
    """The table's last commit."""
    return timeline.last_commit(table.store, table.spec.prefix)


def whole(delivery: Delivery) -> Delivery:
    """All events of each epoch in one batch."""
    epochs = sorted({event.epoch for event in delivery.events()})
    return Delivery(tuple(tuple(event for b in delivery.of_epoch(epoch) for event in b) for epoch in epochs))


def require(told: Told, rows: list[dict[str, object]]) -> None:
    """Fail with the histories that the table holds wrongly, the first of them made as small as it gets."""
    wrong = told.wrong(rows)
    if not wrong:
        return
    number = int(wrong[0].split()[1].rstrip(":"))
    engines = told.table.engines
    attempts = iter(range(SHRINKS + 2))

    def fails(delivery: Delivery) -> bool:
        table = LakeTable(engines, f"{told.table.name}-alone-{next(attempts)}", COLUMNS, KEY)
        alone = Told(table, [delivery])
        for _ in alone.land():
            table.upsert()
        return bool(alone.wrong(table.by_hudi_rs()))

    delivery = told.deliveries[number]
    alone = fails(delivery)
    shown = smaller(delivery, fails, SHRINKS) if alone else delivery
    batches = "\n".join(f"batch {n}:\n  " + "\n  ".join(map(str, batch)) for n, batch in enumerate(shown.batches, 1))
    pytest.fail(
        f"{len(wrong)} of {len(told.deliveries)} histories are wrong (seed {SEED}):\n" + "\n".join(wrong[:5]) + "\n\n"
        f"history {number}, told alone, is {'wrong too' if alone else 'right'}:\n{batches}"
    )
