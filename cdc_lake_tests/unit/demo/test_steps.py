"""The demo's steps: their order, resuming, and the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_lake.cli.samples.run_demo import DemoPipeline
from cdc_lake.demo import demos, steps, verification
from cdc_lake.demo.demo_run import AFTER_SOURCE, RunStages
from cdc_lake.demo.demos import PipelineDemo, UserRows
from cdc_lake.demo.graph import Materialised
from cdc_lake.demo.journal import Journal
from cdc_lake.demo.steps import Demo
from cdc_lake.pipeline import loading
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.northwind import loader
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

STEPS = [
    "reset",
    "load",
    "source",
    "topic",
    "raw",
    "lake",
    "dataset",
    "dashboard",
    "counts",
    "story shipped",
    "story inserted",
    "story deleted",
]


class Fakes:
    """A fake of the graph, the loader and the example changes, which records their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails_at: str | None = None
        self.failing_checks: set[str] = set()
        self.failing_once: set[str] = set()
        self.prepared_before: list[str] | None = None
        """The calls before the sample's database was created."""

    def record(self, call: str) -> None:
        """Record a call, or fail if it is the one to fail at."""
        if call == self.fails_at:
            raise RuntimeError(f"interrupted at {call}")
        self.calls.append(call)

    def prepare(self, _login: ConnectionParameters) -> None:
        """Create the sample's database."""
        self.prepared_before = list(self.calls)

    def materialise(self, *stages: str, table: str | None = None, light: bool = False) -> Materialised:
        """Materialise stages like Graph, with one check per stage."""
        for stage in stages:
            self.record(stage if table is None else f"{stage} {table} {light}")
        passed = {f"shop/{stage}:check": stage not in self.failing_checks | self.failing_once for stage in stages}
        self.failing_once -= set(stages)
        return Materialised({}, passed, {name: "rows: 3" for name, ok in passed.items() if not ok})

    def story(self, name: str, ok: bool = True) -> Callable[[object, RunStages], dict[str, Any]]:
        """Return an example change that records its call."""

        def run_story(_demo: object, carry: RunStages) -> dict[str, Any]:
            self.record(f"story {name}")
            carry(*AFTER_SOURCE)
            return {"order_id": 1, "ok": ok}

        return run_story


class Show:
    """Records which steps are shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def step(self, name: str, text: str) -> None:
        """Record the begin of a step."""
        assert text
        self.shown.append(name)

    def done(self, name: str, text: str) -> None:
        """Check the end of a step."""
        assert self.shown[-1] == name
        assert text.endswith(" s")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    """The fakes that the demo uses."""
    fakes = Fakes()

    def reset(*_parts: object) -> Iterator[str]:
        fakes.record("reset")
        yield "topic a"

    monkeypatch.setattr(steps, "reset", reset)
    return fakes


def sample(stage: Fakes, verify: bool = False) -> PipelineDemo:
    """Return a demo whose sample is loaded by the fakes."""

    def load(_login: ConnectionParameters, given: UserRows) -> dict[str, int]:
        stage.record(f"load {given.sql_dir}" if given.sql_dir else "load")
        return {"orders": 3}

    names = {"shipped": "ship", "inserted": "insert", "deleted": "delete"}
    stories = {name: (f"an order is {name}", stage.story(story)) for name, story in names.items()}
    return PipelineDemo("Shop", stage.prepare, lambda _login: None, load, stories, verify, lambda _summary: "")


def demo(
    shop: Shop,
    stage: Fakes,
    resume: bool = False,
    show: Show | None = None,
    given: UserRows = UserRows(),  # noqa: B008 - it is frozen
    verify: bool = False,
) -> Demo:
    """Return the demo of the shop."""
    journal = Journal(shop.pages.parent / "demo.json", resume)
    shop.athena.sql.make("shop_lake", "totals", ["total"], [(1,), (2,)])
    shop.athena.sql.make("shop_lake", "countries", ["country"], [("PL",)])
    return Demo(shop.pipeline, shop.resolved, lambda: stage, journal, show or Show(), given, sample(stage, verify))  # type: ignore[arg-type,return-value]


def filled(shop: Shop) -> Shop:
    """Carry three orders through every stage."""
    for number in (1, 2, 3):
        shop.order(number)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    return shop


def test_all_steps_run_in_order(shop: Shop, stage: Fakes) -> None:
    show = Show()
    summary = demo(filled(shop), stage, show=show).run()
    assert show.shown == list(summary["seconds"]) == STEPS
    assert stage.prepared_before == [], "the reset drops the slot in that database"
    after_source = ["topic", "raw", "lake", "dataset", "dashboard"]
    assert stage.calls == [
        "reset",
        "load",
        "source",
        *after_source,
        *("story ship", *after_source),
        *("story insert", *after_source),
        *("story delete", *after_source),
    ]


def test_the_summary_contains_counts_checks_and_example_changes(shop: Shop, stage: Fakes) -> None:
    summary = demo(filled(shop), stage).run()
    assert summary["stages"] == {"source": 3, "topic": 3, "raw": 3, "lake": 3, "dataset": 2}
    assert summary["records"] == {"topic": 3, "raw": 3}
    assert summary["tables"]["orders"]["stages"] == {"source": 3, "topic": 3, "raw": 3, "lake": 3}
    assert summary["tables"]["customers"]["stages"] == {"source": 0, "topic": 0, "raw": 0, "lake": 0}
    assert summary["datasets"] == {"totals": 2, "countries": 1}
    assert "verify" not in summary
    assert summary["checks"] == {"passed": 6, "failed": 0, "faults": {}}
    assert summary["stories"] == {name: {"order_id": 1, "ok": True} for name in ("shipped", "inserted", "deleted")}
    assert summary["dashboard"] is None  # the shop has no dashboard


def test_a_failed_check_is_in_the_summary(shop: Shop, stage: Fakes) -> None:
    stage.failing_checks = {"lake"}
    summary = demo(filled(shop), stage).run()
    assert summary["checks"] == {"passed": 5, "failed": 1, "faults": {"shop/lake:check": "rows: 3"}}


def test_a_check_that_failed_once_counts_as_failed(shop: Shop, stage: Fakes) -> None:
    stage.failing_once = {"lake"}
    summary = demo(filled(shop), stage).run()
    assert summary["checks"] == {"passed": 5, "failed": 1, "faults": {"shop/lake:check": "rows: 3"}}


@pytest.mark.parametrize("step", ["reset", "load", "source", "raw", "dashboard", "story insert"])
def test_resuming_continues_at_the_failed_step(shop: Shop, stage: Fakes, step: str) -> None:
    stage.fails_at = step
    with pytest.raises(RuntimeError):
        demo(filled(shop), stage).run()
    before = list(stage.calls)
    stage.fails_at = None
    summary = demo(shop, stage, resume=True).run()
    assert list(summary["seconds"]) == STEPS
    repeated = stage.calls[len(before) :]
    assert repeated[0] == step
    assert not {"reset", "load", "source"} & set(before) & set(repeated)


def test_a_finished_demo_resumed_does_nothing(shop: Shop, stage: Fakes) -> None:
    first = demo(filled(shop), stage).run()
    count = len(stage.calls)
    assert demo(shop, stage, resume=True).run() == first
    assert len(stage.calls) == count


def test_own_sql_scripts_are_loaded(shop: Shop, stage: Fakes, tmp_path: Path) -> None:
    demo(filled(shop), stage, given=UserRows(tmp_path)).run()
    assert stage.calls[1] == f"load {tmp_path}"


def test_the_example_changes_are_left_out_for_files_of_rows(shop: Shop, stage: Fakes, tmp_path: Path) -> None:
    summary = demo(filled(shop), stage, given=UserRows(files={"orders": tmp_path / "orders.txt"})).run()
    assert summary["stories"] == {}
    assert list(summary["seconds"]) == [name for name in STEPS if not name.startswith("story ")]


def test_a_verification_is_the_last_step(shop: Shop, stage: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"orders": {"clean": True, "compared": 3, "source_rows": 3}}
    monkeypatch.setattr(verification, "compare", lambda *_: found)
    monkeypatch.setattr("cdc_lake.profile.spark", lambda: shop.spark)
    summary = demo(filled(shop), stage, verify=True).run()
    assert summary["verify"] == found
    assert list(summary["seconds"]) == [*STEPS, "verify"]


LOGIN = ConnectionParameters("nowhere", 1, "devdb", "me", "")


def test_scripts_with_their_own_outbox_are_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = LoadReport((("orders", 3),), "logical", 0.1, own_outbox=True)
    monkeypatch.setattr(loader, "load", lambda *_: report)
    with pytest.raises(LoadError, match=r"Cannot run the demo with the scripts in .*they create their own outbox"):
        demos.DEMOS["northwind"].load(LOGIN, UserRows(tmp_path))


def test_scripts_are_not_loaded_as_moma(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="leave out --sql-dir"):
        demos.DEMOS["moma"].load(LOGIN, UserRows(tmp_path))


def test_every_demo_has_a_pipeline_and_a_command() -> None:
    assert set(demos.DEMOS) == set(loading.names()) == {each.value for each in DemoPipeline}


def test_the_hint_of_moma_reads_the_first_earlier_state() -> None:
    summary = {"stories": {"changed": {"instants": {"mor": ["20261125100000000", "20261125100100000"]}}}}
    assert "--as-of 20261125100000000 " in demos.DEMOS["moma"].hint(summary)
