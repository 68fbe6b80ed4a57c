"""Materialises parts of the shop's graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from cdc_lake.pipeline import component
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

Metadata = Mapping[str, Any]


class Runner:
    """Materialises parts of the shop's graph in one Dagster instance."""

    def __init__(self, shop: Shop, instance: dg.DagsterInstance, *, checks: bool = False) -> None:
        built = component.build(shop.pipeline)
        definitions = dg.Definitions(
            assets=built.assets,
            asset_checks=built.asset_checks,
            jobs=built.jobs,
            resources=fake_resources(**shop.resources),
            executor=dg.in_process_executor,
        )
        self.resolve_job = definitions.resolve_job_def
        self._with_checks = checks
        self._job = definitions.resolve_job_def("shop")
        self.instance = instance
        self.order: list[str] = []
        self.checks: dict[str, bool] = {}

    def __call__(self, *stages: str, table: str = "") -> dict[str, Metadata]:
        """Materialise the stages (default: all) of the tables whose names begin with `table`; return metadata by asset.

        Errors of steps are raised.
        """
        keys = [key for key in self._job.asset_layer.executable_asset_keys if not stages or key.path[1] in stages]
        keys = [key for key in keys if key.path[-1].startswith(table)]
        # Without a selection of checks, all checks of these assets run.
        part = self._job.get_subset(
            asset_selection=set(keys), asset_check_selection=None if self._with_checks else set()
        )
        result = part.execute_in_process(instance=self.instance, run_config=QUIET)
        events = result.get_asset_materialization_events()
        self.order = ["/".join(event.asset_key.path[1:]) for event in events if event.asset_key]
        self.checks = {
            f"{'/'.join(found.asset_key.path[1:])}:{found.check_name}": found.passed
            for found in result.get_asset_check_evaluations()
        }
        return {
            "/".join(event.asset_key.path[1:]): {
                name: value.value for name, value in event.materialization.metadata.items()
            }
            for event in events
            if event.asset_key
        }
