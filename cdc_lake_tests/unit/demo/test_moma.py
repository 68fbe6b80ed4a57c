"""MoMA's example changes: each is ok only with the expected states, and restores the sample's row first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cdc_lake import reading
from cdc_lake.demo import moma
from cdc_lake.samples.moma import source_changes


class FakeScene:
    """A lake of one row in each target, and the changes at the source, which a run applies."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.source: dict[str, Any] | None = dict(row)
        self.cow: dict[str, Any] | None = dict(row)
        self.base_files: dict[str, Any] | None = dict(row)
        """The state of the last compaction, which is also that of merge-on-read's `_ro` table."""
        self.history: dict[str, dict[str, Any] | None] = {}
        self.runs: list[tuple[str, ...]] = []
        self.ignored: set[int] = set()
        """The numbers of runs, from 1, that apply nothing."""
        self.login = SimpleNamespace(connect=lambda: SimpleNamespace(close=lambda: None))
        self.table = SimpleNamespace(database="moma_cow", view="current")
        self.observers = {"artists": self, "artworks": self}

    def run_stages(self, *stages: str, table: str | None = None, light: bool = False) -> None:
        """Apply the source's row to both targets."""
        assert light == (table is not None), "checks of whole tables in each of the runs would take minutes"
        self.runs.append(stages)
        if "lake" in stages and len(self.runs) not in self.ignored:
            self.cow = None if self.source is None else dict(self.source)
        self.history[f"{len(self.runs):017d}"] = self.cow

    def lake_table(self, name: str, target: str) -> SimpleNamespace:
        """See DemoRun."""
        return SimpleNamespace(name=name, target=target, database="moma_mor", catalog_table="ro", view="ro_current")

    def instant(self, _table: object) -> str:
        """See DemoRun."""
        return max(self.history)

    def row(self, _table: object, row_id: int, as_of: str | None = None) -> dict[str, Any] | None:
        """See DemoRun."""
        found = self.cow if as_of is None else self.history[as_of]
        same = found is not None and self.base_files is not None and found.items() <= self.base_files.items()
        in_base_file = self.base_files if same and self.base_files is not None else {}
        file = in_base_file.get(reading.FILE_NAME, "group")
        return {"artist_id": row_id, **(found or {}), "__deleted": found is None, reading.FILE_NAME: file}

    def compact(self, _table: object) -> None:
        """See DemoRun."""
        self.base_files = None if self.cow is None else {**self.cow, reading.FILE_NAME: "group_0-1-2_2026.parquet"}

    def scalar(self, sql: str) -> object:
        """Answer the example changes' queries."""
        shown = self.base_files if "moma_mor" in sql else self.cow
        if "count(" in sql:
            return 0 if shown is None else 1
        return None if shown is None else shown["date"]


@pytest.fixture
def artwork(monkeypatch: pytest.MonkeyPatch) -> FakeScene:
    """A demo with the artwork."""
    demo = FakeScene({"artwork_id": 33000, "date": source_changes.YEAR})

    def set_year(_connection: object, year: int) -> tuple[int, bool]:
        assert demo.source is not None
        before, demo.source["date"] = demo.source["date"], year
        return 33000, before != year

    monkeypatch.setattr(source_changes, "set_artwork_year", set_year)
    return demo


@pytest.fixture
def artist(monkeypatch: pytest.MonkeyPatch) -> FakeScene:
    """A demo with the artist."""
    demo = FakeScene(source_changes.ARTIST)

    def restore(_connection: object) -> bool:
        before, demo.source = demo.source, dict(source_changes.ARTIST)
        return before != demo.source

    def update(_connection: object, column: str, value: object) -> None:
        assert demo.source is not None
        demo.source[column] = value

    monkeypatch.setattr(source_changes, "restore_artist", restore)
    monkeypatch.setattr(source_changes, "update_artist", update)
    monkeypatch.setattr(source_changes, "delete_artist", lambda _connection: setattr(demo, "source", None))
    return demo


def run(story: Any, demo: FakeScene) -> dict[str, Any]:  # noqa: ANN401 - a fake demo
    """Run an example change."""
    found: dict[str, Any] = story(demo, demo.run_stages)
    return found


def test_the_year_is_in_the_base_files_after_the_compaction(artwork: FakeScene) -> None:
    seen = run(moma.change_year, artwork)
    assert seen == {
        "artwork_id": 33000,
        "year_in_cow": 1960,
        "year_in_ro_before_and_after_compaction": [1959, 1960],
        "year_in_rt_before_and_after_compaction": [1960, 1960],
        "file_of_rt_before_and_after_compaction": ["log", "parquet"],
        "file_names_in_rt": {"before_compaction": "group", "after_compaction": "group_0-1-2_2026.parquet"},
        "ok": True,
    }


def test_a_year_that_is_in_a_base_file_before_the_compaction_is_not_ok(
    artwork: FakeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_stages = artwork.run_stages

    def apply_and_compact(*stages: str, table: str | None = None, light: bool = False) -> None:
        run_stages(*stages, table=table, light=light)
        artwork.compact(None)

    monkeypatch.setattr(artwork, "run_stages", apply_and_compact)
    seen = run(moma.change_year, artwork)
    assert not seen["ok"]
    assert seen["file_of_rt_before_and_after_compaction"] == ["parquet", "parquet"]


def test_a_year_that_is_not_applied_is_not_ok(artwork: FakeScene) -> None:
    artwork.ignored = {1}
    assert not run(moma.change_year, artwork)["ok"]


def test_the_artist_has_six_states_in_both_targets(artist: FakeScene) -> None:
    seen = run(moma.change_artist, artist)
    assert seen["ok"], seen
    assert seen["states"] == [
        "Belkis Ayón Cuban Female 1968 1999",
        "Belkis Ayón Cuban Female 1968 2000",
        "Belkis Ayón Cuban – 1968 2000",  # noqa: RUF001 - a dash for NULL
        "Belkis Ayón American – 1968 2000",  # noqa: RUF001 - as above
        "Belkis Ayón Manso American – 1968 2000",  # noqa: RUF001 - as above
        "deleted",
    ]
    assert (seen["in_ro_before_compaction"], seen["in_ro_after_compaction"]) == (True, False)
    assert {name: len(instants) for name, instants in seen["instants"].items()} == {"cow": 6, "mor": 6}
    assert artist.runs == [("topic", "raw", "lake")] * 6 + [("dataset", "dashboard")]


@pytest.mark.parametrize("ignored", [1, 4, 6])
def test_a_change_that_is_not_applied_is_not_ok(artist: FakeScene, ignored: int) -> None:
    artist.ignored = {ignored}
    assert not run(moma.change_artist, artist)["ok"]


@pytest.mark.parametrize(("story", "demo"), [(moma.change_year, "artwork"), (moma.change_artist, "artist")])
def test_an_example_change_can_be_run_again(story: Any, demo: str, request: pytest.FixtureRequest) -> None:  # noqa: ANN401
    stage: FakeScene = request.getfixturevalue(demo)
    first = run(story, stage)
    again = run(story, stage)
    assert again["ok"]
    assert {**again, "instants": 0} == {**first, "instants": 0}
