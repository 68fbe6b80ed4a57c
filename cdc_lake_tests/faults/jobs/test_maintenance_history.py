"""Sweeps and purges between the batches of histories: the table equals the fold of the source's changes.

SEED selects the histories; CDC_LAKE_SEED and CDC_LAKE_HISTORIES select others and more.
"""

from __future__ import annotations

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.maintenance import purge, sweep
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake.jobs.maintenance.sweep import SweepSpec
from cdc_lake_tests.faults.jobs.history_seed import HISTORIES, SEED, seeded
from cdc_lake_tests.helpers.source_changes.delivery_orders import sample, to_purge, to_sweep
from cdc_lake_tests.helpers.source_changes.source_simulator import DAY, FAR, START
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.history_runs import HistoryRun
from cdc_lake_tests.pytest_hooks.long_test_sizes import DEFAULT_SEED
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 1

PAUSE, WINDOW = 30, 7
TO_PURGE = max(HISTORIES, 300)
"""Few histories have a change that arrives after the replay window: none of the first 60."""


@seeded
def test_deletions_without_an_event_are_applied_by_the_sweep(new_table: NewTable, count_trials: CountTrials) -> None:
    run = HistoryRun(new_table(COLUMNS, KEY), sample(HISTORIES, SEED + 3, to_sweep()))
    spark, swept = run.table.engines.spark, 0
    for landed in run.land():
        run.table.upsert()
        if landed.epoch == 1 and landed.place == 0:
            swept = sweep.run(spark, SweepSpec(run.table.spec, 1, run.table.chain.length(), FAR, START)).swept
            run.swept = True
        if landed.epoch == 1:
            require(run)
    assert swept > HISTORIES // 10
    count_trials("histories delivered", len(run.deliveries))
    count_trials("deletions applied by a sweep", swept)


@seeded
def test_late_changes_after_a_purge_restore_no_deleted_row(new_table: NewTable, count_trials: CountTrials) -> None:
    heartbeat = Watermark(source_ts_ms=START + (PAUSE - 1) * DAY, lsn=FAR - 1)
    run = HistoryRun(new_table(COLUMNS, KEY), sample(TO_PURGE, SEED + 4, to_purge(PAUSE)), heartbeat)
    spark, purged = run.table.engines.spark, 0
    for landed in run.land():
        run.table.upsert()
        if landed.place == 1:
            purged = purge.run(spark, PurgeSpec(run.table.spec, WINDOW * DAY // 1000)).purged
            run.purged = True
        if landed.place > 0:
            require(run)
    late = len(list(dead_letters.letters(run.table.store, run.table.name)))
    assert purged > TO_PURGE // 10
    assert late > 0 or SEED != DEFAULT_SEED, "no change arrived after the replay window"
    count_trials("histories delivered", len(run.deliveries))
    count_trials("tombstones purged", purged)
    count_trials("changes that arrived after the replay window", late)


def require(run: HistoryRun) -> None:
    """Fail with the histories whose content is wrong in the table."""
    wrong = run.differences(run.table.by_hudi_rs())
    assert not wrong, f"{len(wrong)} of {len(run.deliveries)} (seed {SEED}):\n" + "\n".join(wrong[:5])
