"""The demo's steps: their order, what is left out on resuming, and the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdc_lake.demo import steps
from cdc_lake.demo.graph import Materialised
from cdc_lake.demo.journal import Journal
from cdc_lake.demo.steps import Demo
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake_tests.fake_pipeline import World

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


class Stage:
    """Stands for the graph, the loader and the stories, and notes what they are asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails_at: str | None = None
        self.red: set[str] = set()
        self.red_once: set[str] = set()
        self.own_outbox = False

    def take(self, what: str) -> None:
        """Something is asked for."""
        if what == self.fails_at:
            raise RuntimeError(f"cut off at {what}")
        self.calls.append(what)

    def materialise(self, *stages: str) -> Materialised:
        """See Graph: a check a stage."""
        for stage in stages:
            self.take(stage)
        passed = {f"shop/{stage}:check": stage not in self.red | self.red_once for stage in stages}
        self.red_once -= set(stages)
        return Materialised({}, passed, {name: "rows: 3" for name, ok in passed.items() if not ok})

    def story(self, name: str, ok: bool = True) -> Callable[[object, Callable[[], None]], dict[str, Any]]:
        """A story that carries its change through."""

        def tell(_see: object, carry: Callable[[], None]) -> dict[str, Any]:
            self.take(f"story {name}")
            carry()
            return {"order_id": 1, "ok": ok}

        return tell


class Show:
    """Notes which steps are shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def step(self, name: str, what: str) -> None:
        """A step begins."""
        assert what
        self.shown.append(name)

    def done(self, name: str, what: str) -> None:
        """A step has ended."""
        assert self.shown[-1] == name
        assert what.endswith(" s")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The demo's surroundings."""
    made = Stage()

    @contextmanager
    def connection() -> Iterator[None]:
        yield None

    def load(_login: ConnectionParameters, sql_dir: Path | None) -> SimpleNamespace:
        made.take(f"load {sql_dir}" if sql_dir else "load")
        return SimpleNamespace(tables={"orders": 3}, own_outbox=made.own_outbox)

    def reset(*_parts: object) -> Iterator[str]:
        made.take("reset")
        yield "topic a"

    monkeypatch.setattr(ConnectionParameters, "connect", lambda _self: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(
        steps, "loader", SimpleNamespace(load=load, unload=lambda _connection: True, OUTBOX="cdc_events")
    )
    monkeypatch.setattr(steps, "reset", reset)
    stories = {name: made.story(name) for name in ("ship", "insert", "delete")}
    monkeypatch.setattr(steps, "stories", SimpleNamespace(**stories, Story=dict))
    return made


def demo(
    shop: World, stage: Stage, resume: bool = False, show: Show | None = None, sql_dir: Path | None = None
) -> Demo:
    """The demo of the shop."""
    journal = Journal(shop.pages.parent / "demo.json", resume)
    for table in ("totals",):
        shop.athena.sql.make("shop_lake", table, ["total"], [(1,), (2,)])
    return Demo(shop.flow, shop.resolved, lambda: stage, journal, show or Show(), sql_dir)  # type: ignore[arg-type,return-value]


def filled(shop: World) -> World:
    """Three orders in every stage."""
    for number in (1, 2, 3):
        shop.order(number)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    return shop


def test_the_steps_in_their_order(shop: World, stage: Stage) -> None:
    show = Show()
    summary = demo(filled(shop), stage, show=show).run()
    assert show.shown == list(summary["seconds"]) == STEPS
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


def test_the_summary(shop: World, stage: Stage) -> None:
    summary = demo(filled(shop), stage).run()
    assert summary["stages"] == {"source": 3, "topic": 3, "raw": 3, "lake": 3, "dataset": 2}
    assert summary["records"] == {"topic": 3, "raw": 3}
    assert summary["checks"] == {"passed": 6, "failed": 0, "faults": {}}
    assert summary["stories"] == {name: {"order_id": 1, "ok": True} for name in ("shipped", "inserted", "deleted")}
    assert summary["dashboard"] is None  # the shop has none


def test_a_check_that_failed(shop: World, stage: Stage) -> None:
    stage.red = {"lake"}
    summary = demo(filled(shop), stage).run()
    assert summary["checks"] == {"passed": 5, "failed": 1, "faults": {"shop/lake:check": "rows: 3"}}


def test_a_check_that_failed_once_has_failed(shop: World, stage: Stage) -> None:
    stage.red_once = {"lake"}
    summary = demo(filled(shop), stage).run()
    assert summary["checks"] == {"passed": 5, "failed": 1, "faults": {"shop/lake:check": "rows: 3"}}


@pytest.mark.parametrize("cut", ["reset", "load", "source", "raw", "dashboard", "story insert"])
def test_resuming_goes_on_where_it_stopped(shop: World, stage: Stage, cut: str) -> None:
    stage.fails_at = cut
    with pytest.raises(RuntimeError):
        demo(filled(shop), stage).run()
    before = list(stage.calls)
    stage.fails_at = None
    summary = demo(shop, stage, resume=True).run()
    assert list(summary["seconds"]) == STEPS
    again = stage.calls[len(before) :]
    assert again[0] == cut
    assert not {"reset", "load", "source"} & set(before) & set(again)


def test_a_finished_demo_resumed_does_nothing(shop: World, stage: Stage) -> None:
    first = demo(filled(shop), stage).run()
    count = len(stage.calls)
    assert demo(shop, stage, resume=True).run() == first
    assert len(stage.calls) == count


def test_someones_own_scripts(shop: World, stage: Stage, tmp_path: Path) -> None:
    demo(filled(shop), stage, sql_dir=tmp_path).run()
    assert stage.calls[1] == f"load {tmp_path}"


def test_scripts_with_an_outbox_of_their_own_are_refused(shop: World, stage: Stage, tmp_path: Path) -> None:
    stage.own_outbox = True
    with pytest.raises(LoadError, match=r"Cannot run the demo with the scripts in .*they create their own outbox"):
        demo(filled(shop), stage, sql_dir=tmp_path).run()
