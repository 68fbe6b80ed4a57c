"""Dagster's own settings of a stack, as Dagster reads them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from cdc_lake.instance import dagster_home


def test_runs_of_a_pool_are_bounded_by_run(tmp_path: Path) -> None:
    """Slots of steps outlive a run that was killed; runs that are over do not count."""
    with dg.DagsterInstance.from_config(str(dagster_home(tmp_path))) as instance:
        pools = instance.get_concurrency_config().pool_config
    assert pools.pool_granularity is not None
    assert (pools.pool_granularity.value, pools.default_pool_limit) == ("run", 2)
