"""The table equals the fold of the source's changes for every delivery: late, early, duplicated or replayed.

Hypothesis draws histories with their deliveries; one table contains them all. SEED selects them; CDC_LAKE_SEED and
CDC_LAKE_HISTORIES select others and more.
"""

from __future__ import annotations

from itertools import cycle
from random import Random

import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.table import timeline
from cdc_lake_tests.faults.jobs.history_seed import HISTORIES, SEED, seeded
from cdc_lake_tests.helpers.source_changes.delivery_orders import Delivery, in_order, sample, smaller
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.history_runs import HistoryRun
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 2

SHRINKS = 12
PLACES = (
    "upsert.after_lease",
    "upsert.before_dead_letters",
    "upsert.before_write",
    "commit.before_lease_check",
    "commit.after_lease_check",
    "upsert.after_commit",
)


class Crash(Exception):  # noqa: N818 - a simulated event, not an error of the product
    """The simulated end of an upsert at a failpoint."""


@seeded
def test_the_table_equals_the_fold_after_every_batch(
    new_table: NewTable, count_trials: CountTrials, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = HistoryRun(new_table(COLUMNS, KEY), sample(HISTORIES, SEED))
    dice = Random(SEED)
    places = cycle(dice.sample(PLACES, len(PLACES)))
    crashes = records = batches = 0
    for landed in run.land():
        records += landed.records
        if dice.random() < 0.25:
            continue  # it is applied together with the next one, perhaps of another epoch
        crash(run.table, next(places), monkeypatch)
        crashes += 1
        run.table.upsert()
        batches += 1
        require(run, run.table.by_hudi_rs())
    run.table.upsert()
    require(run, run.table.by_spark())
    count_trials("histories delivered", len(run.deliveries))
    count_trials("changes delivered, duplicates included", records)
    count_trials("batches upserted and compared", batches + 1)
    count_trials("upserts that crashed", crashes)


@seeded
def test_one_upsert_of_all_manifests_equals_the_fold(new_table: NewTable, count_trials: CountTrials) -> None:
    run = HistoryRun(new_table(COLUMNS, KEY), [whole(each) for each in sample(HISTORIES, SEED + 1)])
    for _ in run.land():
        pass
    run.table.upsert()
    require(run, run.table.by_hudi_rs())
    count_trials("histories delivered", len(run.deliveries))


@seeded
def test_omitted_values_are_taken_from_the_previous_change(new_table: NewTable, count_trials: CountTrials) -> None:
    run = HistoryRun(new_table(COLUMNS, KEY), sample(HISTORIES, SEED + 2, in_order()))
    for _ in run.land():
        assert run.table.upsert().dead_letters == 0
        require(run, run.table.by_hudi_rs())
    count_trials("histories delivered", len(run.deliveries))
    count_trials(
        "values that records left out", sum(event.toast_omitted for each in run.deliveries for event in each.events())
    )


def crash(table: LakeTable, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crash an upsert at a failpoint; require that nothing of its batch is applied, or all of it after the commit."""
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
    """Return the table's last commit."""
    return timeline.last_commit(table.store, table.spec.prefix)


def whole(delivery: Delivery) -> Delivery:
    """Return a delivery with all events of each epoch in one batch."""
    epochs = sorted({event.epoch for event in delivery.events()})
    return Delivery(tuple(tuple(event for b in delivery.of_epoch(epoch) for event in b) for epoch in epochs))


def require(run: HistoryRun, rows: list[dict[str, object]]) -> None:
    """Fail with the histories whose content is wrong in the table, and show the first one, shrunk."""
    wrong = run.differences(rows)
    if not wrong:
        return
    number = int(wrong[0].split()[1].rstrip(":"))
    engines = run.table.engines
    attempts = iter(range(SHRINKS + 2))

    def fails(delivery: Delivery) -> bool:
        table = LakeTable(engines, f"{run.table.name}-alone-{next(attempts)}", COLUMNS, KEY, run.table.table_type)
        alone = HistoryRun(table, [delivery])
        for _ in alone.land():
            table.upsert()
        return bool(alone.differences(table.by_hudi_rs()))

    delivery = run.deliveries[number]
    alone = fails(delivery)
    shown = smaller(delivery, fails, SHRINKS) if alone else delivery
    batches = "\n".join(f"batch {n}:\n  " + "\n  ".join(map(str, batch)) for n, batch in enumerate(shown.batches, 1))
    pytest.fail(
        f"{len(wrong)} of {len(run.deliveries)} histories are wrong (seed {SEED}):\n" + "\n".join(wrong[:5]) + "\n\n"
        f"history {number}, delivered alone, is {'wrong too' if alone else 'right'}:\n{batches}"
    )
