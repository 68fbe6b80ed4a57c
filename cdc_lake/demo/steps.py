"""The steps of a demo, from an empty database to the summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, Protocol

from cdc_lake import profile
from cdc_lake.demo import verification
from cdc_lake.demo.demo_run import DemoRun, ExampleChange
from cdc_lake.demo.demos import PipelineDemo, UserRows
from cdc_lake.demo.graph import Graph
from cdc_lake.demo.journal import Journal
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations.reset import reset
from cdc_lake.pipeline.pipeline import STAGES, Pipeline


class Show(Protocol):
    """Shows the progress of the demo."""

    def step(self, name: str, what: str) -> None:
        """Show the start of a step."""

    def done(self, name: str, what: str) -> None:
        """Show the end of a step."""


class Demo:
    """The demo of one pipeline on its sample database."""

    def __init__(
        self,
        pipeline: Pipeline,
        resources: Mapping[str, Any],
        graph: Callable[[], Graph],
        journal: Journal,
        show: Show,
        given: UserRows,
        sample: PipelineDemo,
    ) -> None:
        self._pipeline, self._resources, self._make_graph = pipeline, resources, graph
        self._journal, self._show, self._given = journal, show, given
        self._sample = sample
        self._store = location(resources["store"]).store()
        self._demo = DemoRun(pipeline, resources, self._store)
        self._graph: Graph | None = None

    def run(self) -> dict[str, Any]:
        """Run the steps that are not finished; return the summary. Raises a step's error."""
        self._step("reset", "removing the objects of an earlier demo", self._reset)
        self._step("load", "loading the sample database", self._load)
        checks: dict[str, str | None] = {}
        for stage in STAGES:
            _keep(checks, self._step(stage, f"materialising {stage}", partial(self._materialise, stage)))
        counts = self._step("counts", "counting rows of each stage", self._counts)
        results = {}
        stories = {} if self._given.files else self._sample.stories
        for name, (what, story) in stories.items():
            found = self._step(f"story {name}", f"example change: {what}", partial(self._story, story))
            _keep(checks, found["checks"])
            results[name] = found["seen"]
        verified = self._step("verify", "comparing source and lake", self._verify) if self._sample.verify else {}
        failed = {name: why for name, why in checks.items() if why is not None}
        dashboards = [
            self._resources["dashboards"].address(self._pipeline.name, PurePath(file).stem)
            for file in self._pipeline.spec.dashboards
        ]
        return {
            **counts,
            "stories": results,
            "checks": {"passed": len(checks) - len(failed), "failed": len(failed), "faults": failed},
            **({"verify": verified} if verified else {}),
            "seconds": self._journal.seconds(),
            "dashboard": dashboards[0] if dashboards else None,
        }

    def _step(self, name: str, what: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - a JSON value
        self._show.step(name, what)
        result = self._journal.step(name, work)
        self._show.done(name, f"{self._journal.seconds()[name]:.1f} s")
        return result

    def _reset(self) -> list[str]:
        resources = self._resources
        self._sample.prepare(self._demo.observer.login)  # the reset drops the slot in this database
        removed = list(
            reset(
                self._pipeline,
                self._pipeline.source_postgres(resources["postgres"]),
                resources["kafka"],
                resources["connect"],
                resources["glue"],
                self._store,
                resources["deployment"],
                resources["dashboards"],
            )
        )
        self._sample.unload(self._demo.observer.login)
        return removed

    def _load(self) -> dict[str, int]:
        # An earlier attempt may have committed before it was interrupted.
        self._sample.unload(self._demo.observer.login)
        return dict(self._sample.load(self._demo.observer.login, self._given))

    def _materialise(self, *stages: str, table: str | None = None, light: bool = False) -> dict[str, str | None]:
        """Materialise the stages; return why each check failed, None if it passed."""
        if self._graph is None:
            self._graph = self._make_graph()
        done = self._graph.materialise(*stages, table=table, light=light)
        return {name: None if passed else done.failed[name] for name, passed in done.checks.items()}

    def _counts(self) -> dict[str, Any]:
        """Return the counts of each table and dataset, and the sums over all tables with the first dataset's count."""
        found = {name: observer.counts() for name, observer in self._demo.observers.items()}
        datasets = {
            name: self._demo.observer.count_rows(self._pipeline.catalog, name)
            for name in (dataset.name for dataset in self._pipeline.spec.datasets)
        }
        stages = _sums([counts.stages for counts in found.values()])
        return {
            "stages": {**stages, "dataset": next(iter(datasets.values()))} if datasets else stages,
            "records": _sums([counts.records for counts in found.values()]),
            "tables": {
                name: {"stages": dict(counts.stages), "records": dict(counts.records)} for name, counts in found.items()
            },
            "datasets": datasets,
        }

    def _story(self, story: ExampleChange) -> dict[str, Any]:
        checks: dict[str, str | None] = {}

        def run_stages(*stages: str, table: str | None = None, light: bool = False) -> None:
            _keep(checks, self._materialise(*stages, table=table, light=light))

        seen = story(self._demo, run_stages)
        return {"seen": seen, "checks": checks}

    def _verify(self) -> dict[str, dict[str, Any]]:
        return verification.compare(self._pipeline, self._resources, profile.spark())


def _sums(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum over all tables for each stage."""
    return {stage: sum(each[stage] for each in counts) for stage in counts[0]}


def _keep(checks: dict[str, str | None], found: Mapping[str, str | None]) -> None:
    """Add check results: a check that failed once counts as failed, even if it passes later."""
    for name, why in found.items():
        checks[name] = checks.get(name) or why
