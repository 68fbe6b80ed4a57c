"""Materialise stages of the asset graph in this process, so that all runs share one Spark session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from cdc_lake.contract.errors import ContractError

_BLOCKED = "DagsterAssetCheckFailedError"
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class Materialised:
    """The result of a run: metadata by asset, and each check's result."""

    metadata: Mapping[str, Mapping[str, Any]]
    checks: Mapping[str, bool]
    """`asset:check` → passed."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """`asset:check` → why it failed."""


class Graph:
    """Runs a pipeline's job stage by stage."""

    def __init__(self, pipeline: str, definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
        self.pipeline = pipeline
        self._job = definitions.resolve_job_def(pipeline)
        self._instance = instance
        self._keys = sorted(self._job.asset_layer.executable_asset_keys, key=lambda key: tuple(key.path))

    def stage(self, name: str, table: str | None = None) -> list[dg.AssetKey]:
        """Return the keys of a stage's assets, of all tables or of one."""
        keys = [key for key in self._keys if key.path[1] == name]
        return keys if table is None else [key for key in keys if self._table(key) == table]

    def _table(self, key: dg.AssetKey) -> str | None:
        return self._job.asset_layer.asset_graph.get(key).tags.get("table")

    def materialise(self, *stages: str, table: str | None = None, light: bool = False) -> Materialised:
        """Materialise stages, of all tables or of one, and run all their checks; with `light` only the light ones.

        The result is empty if the pipeline has no asset of these stages. Raises ContractError with the failed step and
        its cause.
        """
        keys: Sequence[dg.AssetKey] = [key for stage in stages for key in self.stage(stage, table)]
        if not keys:
            return Materialised({}, {})  # an empty selection would select all assets
        checks = {key for key in self._job.asset_layer.asset_graph.asset_check_keys if key.asset_key in keys}
        # Without a selection of checks, Dagster adds those that the job itself leaves out.
        job = self._job.get_subset(asset_selection=set(keys), asset_check_selection=checks if light else None)
        result = job.execute_in_process(instance=self._instance, raise_on_error=False, run_config=_QUIET)
        for event in result.all_events:
            error = event.step_failure_data.error if event.is_step_failure else None
            # A failed blocking check is not an error here: `checks` contains it, and downstream steps were skipped.
            if event.is_step_failure and not (error and error.cls_name == _BLOCKED):
                cause = error.cause if error is not None and error.cause is not None else error
                message = "no message" if cause is None else cause.message.strip()
                raise ContractError(
                    f"Cannot materialise pipeline {self.pipeline}: step {event.step_key} failed: {message}"
                )
        evaluations = result.get_asset_check_evaluations()
        named = {f"{found.asset_key.to_user_string()}:{found.check_name}": found for found in evaluations}
        return Materialised(
            metadata={
                event.asset_key.to_user_string(): {
                    name: value.value for name, value in event.materialization.metadata.items()
                }
                for event in result.get_asset_materialization_events()
                if event.asset_key is not None
            },
            checks={name: found.passed for name, found in named.items()},
            failed={
                name: ", ".join(f"{field}: {value.value}" for field, value in found.metadata.items())
                for name, found in named.items()
                if not found.passed
            },
        )
