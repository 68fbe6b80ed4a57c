"""The settings in dagster.yaml of a stack, as Dagster reads them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from cdc_lake.instance import dagster_home


def test_pools_limit_the_number_of_runs(tmp_path: Path) -> None:
    """Slots of steps would outlive a killed run; a finished run does not count."""
    with dg.DagsterInstance.from_config(str(dagster_home(tmp_path))) as instance:
        pools = instance.get_concurrency_config().pool_config
    assert pools.pool_granularity is not None
    assert (pools.pool_granularity.value, pools.default_pool_limit) == ("run", 2)
