"""The settings in dagster.yaml of a stack, as Dagster reads them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from cdc_lake.instance import dagster_home, limit_comparisons
from cdc_lake.pipeline.pipeline import VERIFY_POOL


def test_pools_limit_the_number_of_runs(tmp_path: Path) -> None:
    """Slots of steps would outlive a killed run; a finished run does not count."""
    with dg.DagsterInstance.from_config(str(dagster_home(tmp_path))) as instance:
        pools = instance.get_concurrency_config().pool_config
    assert pools.pool_granularity is not None
    assert (pools.pool_granularity.value, pools.default_pool_limit) == ("run", 2)


def test_one_run_compares_whole_tables_unless_the_limit_is_set(tmp_path: Path) -> None:
    with dg.DagsterInstance.from_config(str(dagster_home(tmp_path))) as instance:
        for expected, changed in ((1, 2), (2, 3)):
            limit_comparisons(instance)
            [pool] = instance.event_log_storage.get_pool_limits()
            assert (pool.name, pool.limit) == (VERIFY_POOL, expected)
            instance.event_log_storage.set_concurrency_slots(VERIFY_POOL, changed)
