"""The demo's steps, from an empty database to the summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Protocol

from cdc_lake.demo import stories
from cdc_lake.demo.graph import Graph
from cdc_lake.demo.journal import Journal
from cdc_lake.demo.observe import Observer
from cdc_lake.pipeline.naming import STAGES, Flow, location
from cdc_lake.pipeline.operations.reset import reset
from cdc_lake.samples import loader
from cdc_lake.samples.errors import LoadError

_AFTER_SOURCE = STAGES[1:]


class Show(Protocol):
    """Shows the progress of the demo."""

    def step(self, name: str, what: str) -> None:
        """Show the start of a step."""

    def done(self, name: str, what: str) -> None:
        """Show the end of a step."""


class Demo:
    """The demo of one pipeline on the sample database."""

    def __init__(
        self,
        flow: Flow,
        resources: Mapping[str, Any],
        graph: Callable[[], Graph],
        journal: Journal,
        show: Show,
        sql_dir: Path | None,
    ) -> None:
        self._flow, self._resources, self._make_graph = flow, resources, graph
        self._journal, self._show, self._sql_dir = journal, show, sql_dir
        self._store = location(resources["store"]).store()
        self._observer = Observer(flow.tables[0], resources, self._store)
        self._dataset = PurePath(flow.spec.datasets[0]).stem
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
        for name, story in (("shipped", stories.ship), ("inserted", stories.insert), ("deleted", stories.delete)):
            found = self._step(f"story {name}", f"story: an order is {name}", partial(self._story, story))
            _keep(checks, found["checks"])
            results[name] = found["seen"]
        failed = {name: why for name, why in checks.items() if why is not None}
        dashboards = [
            self._resources["dashboards"].address(self._flow.name, PurePath(file).stem)
            for file in self._flow.spec.dashboards
        ]
        return {
            "stages": counts["stages"],
            "records": counts["records"],
            "stories": results,
            "checks": {"passed": len(checks) - len(failed), "failed": len(failed), "faults": failed},
            "seconds": self._journal.seconds(),
            "dashboard": dashboards[0] if dashboards else None,
        }

    def _step(self, name: str, what: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - a JSON value
        self._show.step(name, what)
        result = self._journal.step(name, work)
        self._show.done(name, f"{self._journal.seconds()[name]:.1f} s")
        return result

    def _reset(self) -> list[str]:
        bound = self._resources
        removed = list(
            reset(
                self._flow,
                bound["postgres"],
                bound["kafka"],
                bound["connect"],
                bound["glue"],
                self._store,
                bound["deployment"],
                bound["dashboards"],
            )
        )
        with closing(self._observer.login.connect()) as connection:
            loader.unload(connection)
        return removed

    def _load(self) -> dict[str, int]:
        with closing(self._observer.login.connect()) as connection:
            loader.unload(connection)  # if this step was interrupted after its commit
        report = loader.load(self._observer.login, self._sql_dir)
        if report.own_outbox:
            raise LoadError(
                f"Cannot run the demo with the scripts in {self._sql_dir}: they create their own outbox, and "
                "the demo needs the sample's outbox, which also contains deletes. Leave out the script that creates "
                f"{loader.OUTBOX}, or load the scripts with `cdc-lake load --sql-dir` and capture "
                "them with another pipeline."
            )
        return dict(report.tables)

    def _materialise(self, *stages: str) -> dict[str, str | None]:
        """Materialise the stages; return why each check failed, None if it passed."""
        if self._graph is None:
            self._graph = self._make_graph()
        done = self._graph.materialise(*stages)
        return {name: None if passed else done.failed[name] for name, passed in done.checks.items()}

    def _counts(self) -> dict[str, Any]:
        counts = self._observer.counts(self._dataset)
        return {"stages": dict(counts.stages), "records": dict(counts.records)}

    def _story(self, story: Callable[[Observer, Callable[[], None]], stories.Story]) -> dict[str, Any]:
        checks: dict[str, str | None] = {}
        seen = story(self._observer, lambda: _keep(checks, self._materialise(*_AFTER_SOURCE)))
        return {"seen": seen, "checks": checks}


def _keep(checks: dict[str, str | None], found: Mapping[str, str | None]) -> None:
    """Add check results: a check that failed once counts as failed, even if it passes later."""
    for name, why in found.items():
        checks[name] = checks.get(name) or why
