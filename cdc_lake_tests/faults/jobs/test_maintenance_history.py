"""Sweeps and purges amid histories: the table is still the fold of the source's changes.

Which histories is fixed by SEED; CDC_LAKE_SEED and CDC_LAKE_HISTORIES try others and more.
"""

from __future__ import annotations

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.maintenance import purge, sweep
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake.jobs.maintenance.sweep import SweepSpec
from cdc_lake_tests.delivery_orders import sample, to_purge, to_sweep
from cdc_lake_tests.faults.jobs.test_upsert_history import HISTORIES, SEED, seeded
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.history_runs import Told
from cdc_lake_tests.source_simulator import DAY, FAR, START
from cdc_lake_tests.trial_counts import Tried

PAUSE, WINDOW = 30, 7
TO_PURGE = max(HISTORIES, 300)
"""Few histories have a change that comes later than the window allows: none of the first 60."""


@seeded
def test_deletions_that_nobody_told_are_made_up_for_by_the_sweep(new_table: NewTable, tried: Tried) -> None:
    told = Told(new_table(COLUMNS, KEY), sample(HISTORIES, SEED + 3, to_sweep()))
    spark, swept = told.table.engines.spark, 0
    for landed in told.land():
        told.table.upsert()
        if landed.epoch == 1 and landed.place == 0:
            swept = sweep.run(spark, SweepSpec(told.table.spec, 1, told.table.chain.length(), FAR, START)).swept
            told.swept = True
        if landed.epoch == 1:
            require(told)
    assert swept > HISTORIES // 10
    tried("histories", len(told.deliveries))
    tried("deliveries", len(told.deliveries))
    tried("deletions that a sweep made up for", swept)


@seeded
def test_what_comes_after_a_purge_brings_no_deleted_row_back(new_table: NewTable, tried: Tried) -> None:
    heartbeat = Watermark(source_ts_ms=START + (PAUSE - 1) * DAY, lsn=FAR - 1)
    told = Told(new_table(COLUMNS, KEY), sample(TO_PURGE, SEED + 4, to_purge(PAUSE)), heartbeat)
    spark, purged = told.table.engines.spark, 0
    for landed in told.land():
        told.table.upsert()
        if landed.place == 1:
            purged = purge.run(spark, PurgeSpec(told.table.spec, WINDOW * DAY // 1000)).purged
            told.purged = True
        if landed.place > 0:
            require(told)
    late = len(list(dead_letters.letters(told.table.store, told.table.name)))
    assert purged > TO_PURGE // 10
    assert late > 0, "nothing came later than the window allows"
    tried("histories", len(told.deliveries))
    tried("deliveries", len(told.deliveries))
    tried("tombstones purged", purged)
    tried("changes that came later than the window allows", late)


def require(told: Told) -> None:
    """Fail with the histories that the table holds wrongly."""
    wrong = told.wrong(told.table.by_hudi_rs())
    assert not wrong, f"{len(wrong)} of {len(told.deliveries)} (seed {SEED}):\n" + "\n".join(wrong[:5])
