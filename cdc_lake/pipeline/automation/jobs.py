"""The jobs of a pipeline, one for each purpose. Sensors launch them by name, for all or some of their assets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

import dagster as dg

from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.pipeline import PURPOSE, Pipeline

DEAD_LETTERS = "dead_letters_empty"
"""A check of raw that apply runs also evaluate: applying writes dead letters, and a replay removes them."""


@dataclass(frozen=True)
class Job:
    """A job, or the part of a job for some of its assets."""

    pipeline: str
    purpose: str
    description: str
    assets: tuple[dg.AssetKey, ...]
    checks: tuple[dg.AssetCheckKey, ...]

    @property
    def name(self) -> str:
        """The job's name in Dagster."""
        return f"{self.pipeline}_{self.purpose}" if self.purpose else self.pipeline

    @property
    def tags(self) -> dict[str, str]:
        """The tags of each of its runs."""
        return {"cdc_lake/pipeline": self.pipeline, PURPOSE: self.purpose or "all"}

    @property
    def selection(self) -> dg.AssetSelection:
        """The assets, and exactly the checks in `checks`."""
        return dg.AssetSelection.assets(*self.assets).without_checks() | dg.AssetSelection.checks(*self.checks)

    def only(self, *assets: dg.AssetKey, checking: Sequence[dg.AssetKey] = ()) -> Job:
        """Return the part of the job for these assets, with the job's checks of them and of those in `checking`."""
        checked = {*assets, *checking}
        return replace(self, assets=assets, checks=tuple(key for key in self.checks if key.asset_key in checked))

    def request(self, run_key: str, tags: dict[str, str]) -> dg.RunRequest:
        """Return a request for a run.

        The request names the checks, because Dagster adds all checks of the assets to a request that names only assets.
        """
        return dg.RunRequest(
            run_key=run_key,
            tags=tags | self.tags,
            job_name=self.name,
            asset_selection=self.assets,
            asset_check_keys=self.checks,
        )


class Jobs:
    """The jobs of one pipeline."""

    def __init__(self, pipeline: Pipeline, checks: Sequence[dg.AssetChecksDefinition]) -> None:
        self.pipeline = pipeline
        light = tiers.light(checks)
        source = [table.key("source") for table in pipeline.tables]
        lake = [table.key("lake") for table in pipeline.lake_tables]
        raw = [table.key("raw") for table in pipeline.tables]
        topic = [table.key("topic") for table in pipeline.tables]
        datasets = [pipeline.key("dataset", dataset.name) for dataset in pipeline.spec.datasets]
        dashboards = [pipeline.key("dashboard", PurePath(file).stem) for file in pipeline.spec.dashboards]
        stages = [*source, *topic, *raw, *lake, *datasets, *dashboards]
        self.all = self._job("", "All stages, with their light checks.", stages, light)
        starting = "Starts the source connector if it does not run."
        self.connect = self._job("connect", starting, [] if pipeline.polled else topic, light)
        self.poll = self._job("poll", "Polls the tables.", topic if pipeline.polled else [], light)
        self.land = self._job("land", "Lands new records and applies them to the lake tables.", [*raw, *lake], light)
        applying = self._job("apply", "Applies landed records to the lake tables.", lake, light)
        letters = tuple(key for key in light if key.name == DEAD_LETTERS)
        self.apply = replace(applying, checks=(*applying.checks, *letters))
        self.refresh = self._job("refresh", "Builds datasets and dashboards.", [*datasets, *dashboards], light)
        self.checks = self._checking("checks", "Runs the checks that read whole tables.", tiers.scheduled(checks))
        self.daily_checks = self._checking(
            "daily_checks", "Runs the checks that read the whole history.", tiers.daily(checks)
        )

    @cached_property
    def definitions(self) -> dict[str, Any]:
        """Dagster's definitions of the jobs that have assets or checks, by name.

        Cached, because Dagster rejects a second definition of the same name.
        """
        purposes = (
            self.all,
            self.connect,
            self.poll,
            self.land,
            self.apply,
            self.refresh,
            self.checks,
            self.daily_checks,
        )
        return {
            job.name: dg.define_asset_job(
                job.name,
                selection=job.selection,
                description=job.description,
                tags=job.tags,
                # A process for each step would start Spark for each table (assets/parallel_tables.py).
                executor_def=dg.in_process_executor,
            )
            for job in purposes
            if job.assets or job.checks
        }

    def _job(
        self, purpose: str, description: str, assets: Sequence[dg.AssetKey], light: Sequence[dg.AssetCheckKey]
    ) -> Job:
        checks = tuple(key for key in light if key.asset_key in assets)
        return Job(self.pipeline.name, purpose, f"{self.pipeline.name}: {description}", tuple(assets), checks)

    def _checking(self, purpose: str, description: str, checks: Sequence[dg.AssetCheckKey]) -> Job:
        return Job(self.pipeline.name, purpose, f"{self.pipeline.name}: {description}", (), tuple(checks))
