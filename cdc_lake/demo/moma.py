"""MoMA's demo: change an artwork's year, make six changes to an artist, and read the results from both targets.

The copy-on-write target shows each commit. In the merge-on-read target, the catalog's `_ro` table shows the state of
the last compaction, and `_rt` shows each commit. After an interruption each function can be called again: it first
restores the sample's row.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial

from cdc_lake import reading
from cdc_lake.demo.demo_run import DemoRun, Observed, RunStages
from cdc_lake.samples.moma import source_changes

_TO_LAKE = ("topic", "raw", "lake")
_TARGETS = ("cow", "mor")
_DELETED = "__deleted"
_PARQUET = ".parquet"


def change_year(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Set the year of 'Picador (La Pique)' from 1959 to 1960, and read it before and after a compaction.

    In the merge-on-read table the change is in a log file before the compaction, and in a Parquet file after it.
    """
    observer, merged = demo.observers["artworks"], demo.lake_table("artworks", "mor")
    with closing(observer.login.connect()) as connection:
        artwork_id, restored = source_changes.set_artwork_year(connection, source_changes.YEAR)
        if restored:
            run_stages(*_TO_LAKE, table="artworks", light=True)
            demo.compact(merged)
        source_changes.set_artwork_year(connection, source_changes.NEW_YEAR)
    run_stages(*_TO_LAKE, table="artworks", light=True)
    year = 'SELECT "date" FROM "{}"."{}" WHERE artwork_id = {}'
    base_files = year.format(merged.database, merged.catalog_table, artwork_id)
    cow = observer.scalar(year.format(observer.table.database, observer.table.view, artwork_id))
    before, in_log = observer.scalar(base_files), demo.row(merged, artwork_id) or {}
    demo.compact(merged)
    in_parquet = demo.row(merged, artwork_id) or {}
    files = [str(row.get(reading.FILE_NAME)) for row in (in_log, in_parquet)]
    seen = {
        "artwork_id": artwork_id,
        "year_in_cow": cow,
        "year_in_ro_before_and_after_compaction": [before, observer.scalar(base_files)],
        "year_in_rt_before_and_after_compaction": [in_log.get("date"), in_parquet.get("date")],
        "file_of_rt_before_and_after_compaction": ["parquet" if file.endswith(_PARQUET) else "log" for file in files],
        "file_names_in_rt": dict(zip(("before_compaction", "after_compaction"), files, strict=True)),
    }
    old, new = source_changes.YEAR, source_changes.NEW_YEAR
    same_group = files[1].startswith(f"{files[0]}_")
    expected = [artwork_id, new, [old, new], [new, new], ["log", "parquet"], seen["file_names_in_rt"]]
    return {**seen, "ok": list(seen.values()) == expected and same_group}


def change_artist(demo: DemoRun, run_stages: RunStages) -> Observed:
    """Update artist 441 five times and delete it, each change in a separate commit; then read each commit's state."""
    observer = demo.observers["artists"]
    tables = {name: demo.lake_table("artists", name) for name in _TARGETS}
    instants: dict[str, list[str]] = {name: [] for name in _TARGETS}
    with closing(observer.login.connect()) as connection:
        if source_changes.restore_artist(connection):
            run_stages(*_TO_LAKE, table="artists", light=True)
            demo.compact(tables["mor"])
        updates = [
            partial(source_changes.update_artist, connection, *update) for update in source_changes.ARTIST_UPDATES
        ]
        for change in (*updates, partial(source_changes.delete_artist, connection)):
            change()
            run_stages(*_TO_LAKE, table="artists", light=True)
            for name, table in tables.items():
                instants[name].append(demo.instant(table))
    states = {name: [_state(demo, name, instant) for instant in instants[name]] for name in _TARGETS}
    merged = tables["mor"]
    base_files = (
        f'SELECT count(*) FROM "{merged.database}"."{merged.view}" '  # noqa: S608 - validated identifiers
        f"WHERE artist_id = {source_changes.ARTIST_ID}"
    )
    before = observer.scalar(base_files)
    demo.compact(merged)
    run_stages("dataset", "dashboard")
    artist_names = (
        f'SELECT count(artist) FROM "{observer.table.database}".collection '  # noqa: S608 - as above
        f"WHERE artist_id = {source_changes.ARTIST_ID}"
    )
    seen = {
        "artist_id": source_changes.ARTIST_ID,
        "states": states["cow"],
        "states_in_mor_equal": states["mor"] == states["cow"],
        "in_ro_before_compaction": before > 0,
        "in_ro_after_compaction": observer.scalar(base_files) > 0,
        "artworks_with_name_in_dataset": observer.scalar(artist_names),
        "instants": instants,
    }
    expected = [source_changes.ARTIST_ID, _expected(), True, True, False, 0, instants]
    return {**seen, "ok": list(seen.values()) == expected}


def _state(demo: DemoRun, target: str, instant: str) -> str:
    row = demo.row(demo.lake_table("artists", target), source_changes.ARTIST_ID, instant)
    return "missing" if row is None else "deleted" if row[_DELETED] else _text(row)


def _expected() -> list[str]:
    """Return the artist's state after each change."""
    row, states = dict(source_changes.ARTIST), []
    for column, value in source_changes.ARTIST_UPDATES:
        row[column] = value
        states.append(_text(row))
    return [*states, "deleted"]


def _text(row: dict[str, object]) -> str:
    """Return the artist's values, separated by spaces, without the id."""
    return " ".join(str(row[column] or "–") for column in source_changes.ARTIST_COLUMNS[1:])  # noqa: RUF001 - a dash for NULL
